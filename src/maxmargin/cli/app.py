"""The commands, and the exit codes and messages of their errors."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from maxmargin.cli.compare import compare
from maxmargin.cli.convert import convert
from maxmargin.cli.demo import demo
from maxmargin.cli.doctor import doctor
from maxmargin.cli.grid_search import search
from maxmargin.cli.help import Command, Group
from maxmargin.cli.output import BadInput, Interrupted, one_line, show_warning
from maxmargin.cli.predict import predict
from maxmargin.cli.report import report
from maxmargin.cli.solvers import solvers
from maxmargin.cli.train import train
from maxmargin.cli.tune import tune
from maxmargin.cli.warmup import warmup

app = typer.Typer(
    name="maxmargin",
    help="Tune, train, report on, search, compare and convert kernel support vector machines. Data are read "
    "from LIBSVM/SVMlight, CSV, Parquet and NPZ files, compressed or not, or from the standard input (-).",
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from maxmargin import __version__

        typer.echo(f"maxmargin {__version__}")
        raise typer.Exit


@app.callback()
def _about(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


# Exit code after Ctrl-C, as in shells.
_CTRL_C = 130
_REPORT = "please report it with the traceback, which the environment variable MAXMARGIN_TRACEBACK=1 shows"


class _PipeClosed(Exception):
    """The reader of the output has closed its end of the pipe."""


def _accept_closed_pipe(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command so that a closed pipe is not a failure, which it would be for typer."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
            sys.stdout.flush()
        except BrokenPipeError as error:
            raise _PipeClosed from error
        except KeyboardInterrupt as error:  # for which typer would print nothing
            raise Interrupted(_ended(error)) from error

    return run


for command in (demo, tune, report, train, predict, search, solvers, compare, convert, doctor, warmup):
    app.command(cls=Command)(_accept_closed_pipe(command))


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code.

    Bad input (a wrong option, a missing file, unsuitable data) ends with exit code 2 and one line on the
    standard error; Ctrl-C ends with exit code 130.
    """
    warnings.showwarning = show_warning
    return run(arguments)


def run(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code."""
    try:
        code = app(args=arguments, prog_name="maxmargin", standalone_mode=False)
        if code == _CTRL_C:  # before the command had begun
            return _fail("interrupted", _CTRL_C)
        return code if isinstance(code, int) else 0
    except Interrupted as error:
        return _fail(str(error), _CTRL_C)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", _CTRL_C)
    except _PipeClosed:
        # Python would report at exit the output that it could not write.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (BadInput, ValueError, OSError, ImportError, MemoryError) as error:
        if os.environ.get("MAXMARGIN_TRACEBACK"):
            raise
        return _fail(_message(error), 2)
    except Exception as error:
        code = getattr(error, "exit_code", None)  # usage errors have it in all versions of typer
        if code is None:
            if os.environ.get("MAXMARGIN_TRACEBACK"):
                raise
            return _fail(f"unexpected {type(error).__name__}: {error} ({_REPORT})", 1)
        return _fail(_usage(error), int(code)) if str(error) and int(code) else int(code)


def _ended(error: BaseException) -> str:
    """The message for Ctrl-C before there was a result; searches say how far they have got."""
    found = re.search(r"before .*[^.]", str(error))
    return f"interrupted {found[0]}; nothing is written" if found else "interrupted"


def _fail(message: str, code: int) -> int:
    print(f"maxmargin: {one_line(message)}", file=sys.stderr)
    return code


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}"
    return str(error) or type(error).__name__


def _usage(error: Any) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "maxmargin"
    return f"{error.format_message()} See: {path} --help"
