"""Output of the commands: tables to read, JSON for programs, warnings in one line."""

from __future__ import annotations

import json
import math
import numbers
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TextIO

_shown: set[str] = set()
# Beginnings of warnings that the commands give in their own words, at the end.
_INTERRUPTED = ("The search was interrupted", "Tuning was interrupted")


class BadInput(Exception):
    """Input that cannot be used; the message says why and what to do."""


class Interrupted(Exception):
    """Ctrl-C, after the results so far have been written."""


def one_line(text: str) -> str:
    """The text with line breaks and indentation replaced by single spaces."""
    return " ".join(str(text).split())


def note(text: str) -> None:
    """Print a message on the standard error."""
    print(one_line(text), file=sys.stderr)


def warn(text: str) -> None:
    """Print a warning in one line on the standard error."""
    print(f"warning: {one_line(text)}", file=sys.stderr)


def show_warning(
    message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    """Show a Python warning in one line, without the source line that raised it.

    Of warnings that differ only in their numbers, such as those of the fits of a search, the first is shown.
    """
    kind = re.sub(r"[\d.]+(e[-+]\d+)?", "#", str(message))
    if (
        issubclass(category, DeprecationWarning | FutureWarning | ResourceWarning)
        or kind in _shown
        or kind.startswith(_INTERRUPTED)
    ):
        return
    _shown.add(kind)
    warn(str(message))


def console(stream: TextIO | None = None) -> Any:
    """A console as wide as the terminal, or 200 columns wide where the output is not a terminal."""
    from rich.console import Console

    stream = stream or sys.stdout
    terminal = stream.isatty()
    return Console(file=stream, width=None if terminal else 200, highlight=False, emoji=False)


def table(title: str, rows: Sequence[Mapping[str, Any]], stream: TextIO | None = None) -> None:
    """Print rows with the same keys, numbers aligned right; Markdown if the output is not a terminal."""
    from rich import box
    from rich.table import Table

    out = console(stream)
    grid = Table(
        title=title or None, box=box.SIMPLE_HEAD if out.is_terminal else box.MARKDOWN, title_justify="left",
        pad_edge=not out.is_terminal,
    )  # fmt: skip
    for name in rows[0] if rows else ():
        text = any(isinstance(row[name], str) and not _numeric(row[name]) for row in rows)
        grid.add_column(name, justify="left" if text else "right", overflow="fold")
    for row in rows:
        grid.add_row(*(_cell(value) for value in row.values()))
    out.print(grid)


def facts(title: str, values: Mapping[str, Any]) -> None:
    """Print names and values, one per line."""
    from rich.table import Table

    out = console()
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in values.items():
        if value is not None:
            grid.add_row(name.replace("_", " "), _cell(value))
    if title:
        out.print(title)
    out.print(grid)


def emit(values: Mapping[str, Any]) -> None:
    """Print one JSON object, and nothing else, on the standard output."""
    print(json.dumps(plain(values), allow_nan=False))


def plain(value: Any) -> Any:
    """The value in types that JSON has; numbers that are not finite become text."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy, which is not imported for `--help`
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def working(text: str) -> AbstractContextManager[Any]:
    """A spinner with a text during long work, in a terminal only."""
    if not sys.stderr.isatty():
        return nullcontext()
    return console(sys.stderr).status(text)


def _cell(value: Any) -> str:
    from rich.markup import escape

    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return f"{int(value):,}"
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return f"{float(value):.4g}"
    return escape(str(value))


def _numeric(text: str) -> bool:
    return text[:1].isdigit() or text[:1] in "-+<" or text in ("", "inf", "nan")
