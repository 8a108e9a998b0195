"""``maxmargin warmup``: compile everything in advance."""

from __future__ import annotations

import signal
import sys
import time
from typing import Annotated, Any

import typer

from maxmargin.cli import options as o
from maxmargin.cli.output import BadInput, console, emit, note


def warmup(
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Processes.", show_default="one per core")
    ] = None,
    json: o.Json = False,
) -> None:
    """Compile everything that is missing, so that no fit has to: for Dockerfiles, CI jobs and clusters.

    The code goes to the cache folder of the user, or to the folder in the variable MAXMARGIN_CODE.
    """
    from maxmargin._warmup import warmup as compile_all

    began = time.perf_counter()
    # As Ctrl-C: the processes that compile, the lock and temporary files are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with _Progress() as progress:
            path = compile_all(jobs, progress=progress)
    except RuntimeError as error:
        raise BadInput(str(error)) from error
    there = progress.steps == 0
    seconds = time.perf_counter() - began
    if json:
        emit({"file": path and str(path), "compiled": not there, "seconds": seconds})
    elif there:
        print(f"Nothing to compile: {path} has code for this CPU.")
    elif path is None:
        print(f"Compiled into Numba's cache in {seconds:.0f} s.")
    else:
        print(f"Compiled into {path} in {seconds:.0f} s.")


class _Progress:
    """A bar in a terminal, otherwise one line."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._line: Any = None
        self.steps = 0

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        self.steps = done
        if self._bar is None:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            if not sys.stderr.isatty():
                if done == 1:
                    note("Compiling: this takes a few minutes.")
                return
            self._bar = Progress(
                TextColumn("compiling"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                console=console(sys.stderr),
            )  # fmt: skip
            self._bar.start()
            self._line = self._bar.add_task("compiling", total=total)
        self._bar.update(self._line, completed=done)
