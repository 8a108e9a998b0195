"""CSV with cells of any kind as texts, read with pandas."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from itertools import islice
from typing import Any

from numpy.typing import NDArray

from maxmargin.data.csv import are_names, check_encoding, lines_of
from maxmargin.data.limits import Limit
from maxmargin.data.table import DataError

_LONG = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")
_OPEN = re.compile(r"EOF inside string starting at row (\d+)")
# Memory in bytes per cell while a file is read, and per character of the longest line.
_CELL, _CHARACTER = 60, 16
# Lines that are looked at to find the delimiter and the names.
_LINES = 50


@dataclass(frozen=True)
class TextFrame:
    """Cells as texts.

    Attributes
    ----------
    names : list of str
        Names of the columns; their numbers if the file has none.
    frame : object
        The data frame, whose first row has the names if `named`.
    named : bool
        Whether the file has names.
    delimiter : str or None
        What separates the cells; None for spaces.
    """

    names: list[str]
    frame: Any
    named: bool
    delimiter: str | None

    def column(self, k: int) -> NDArray[Any]:
        """The cells of a column."""
        found: NDArray[Any] = self.frame.iloc[int(self.named) :, k].to_numpy(dtype=object)
        return found


def read(contents: bytes, where: str, limit: Limit, needed: set[str] | None) -> TextFrame:
    """Read the cells; `needed` has the names that the columns of a trained model have."""
    import pandas as pd

    check_encoding(contents, where)
    limit.check(max(map(len, io.BytesIO(contents)), default=0) * _CHARACTER, "the longest line", where)
    first = [line for line in islice(lines_of(contents), _LINES) if line.strip()]
    delimiter = _delimiter(first)
    width = len(_cells(first[0], delimiter, where)) if first else 0
    limit.check((contents.count(b"\n") + 1) * width * _CELL, "the table", where)
    try:
        frame = pd.read_csv(
            io.BytesIO(contents), sep=delimiter or r"\s+", header=None, dtype=str, keep_default_na=False,
            encoding="utf-8", low_memory=False,
        )  # fmt: skip
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError, OverflowError) as error:
        raise DataError(_reason(str(error), where)) from error
    cells = [str(cell) for cell in frame.iloc[0].tolist()]
    stripped = [cell.strip() for cell in cells]
    if needed is not None and needed:
        numbered = all(name.isdecimal() for name in needed)
        named = needed <= set(stripped) or not numbered
    else:
        named = _has_names(cells, frame.iloc[1:_LINES])
    if (frame.iloc[:, -1] == "").any():  # which the last cell of a short row is, too
        _check_widths(contents, delimiter, where, len(cells), named)
    names = stripped if named else [str(k) for k in range(len(cells))]
    return TextFrame(names, frame, named, delimiter)


def _check_widths(contents: bytes, delimiter: str | None, where: str, width: int, named: bool) -> None:
    """Raise an error for a row that ends early."""
    row = 0 if named else 1
    for cells in csv.reader(lines_of(contents), delimiter=delimiter) if delimiter else ():
        if 0 < len(cells) < width:
            what = f"row {row}" if row else "the line of names"
            raise DataError(
                f"{where}: {what} has only {len(cells)} cells; all rows must have as many as the first, "
                f"{width}."
            )
        row += bool(cells)


def _delimiter(lines: list[str]) -> str | None:
    """Commas, semicolons or tabs, whichever come first in this order; with decimal commas the others."""
    if not lines:
        return ","
    found = [d for d in ",;\t" if d in lines[0]]
    for other in found[1:] if found[:1] == [","] else ():
        widths = {len(line.split(other)) for line in lines}
        parts = [part for line in lines for part in line.strip().split(other) if "," in part]
        if len(widths) == 1 and all(re.fullmatch(r'\s*"?[+-]?[\d.]+,\d+"?\s*', part) for part in parts):
            return other
    return found[0] if found else None


def _has_names(cells: list[str], rest: Any) -> bool:
    """Whether the first line names the columns.

    A text above numbers is a name. If all columns of numbers begin with one, and there are such columns, the
    first line has data.
    """
    if not are_names(cells):
        return False
    of_numbers = [k for k in range(len(cells)) if len(rest) and all(map(_is_number, rest[k].tolist()))]
    above = [_is_number(cells[k]) for k in of_numbers]
    counted = [cells[k].strip() for k in of_numbers if _is_number(cells[k])]
    if not above or not all(above):
        return True
    return all(name.isdecimal() for name in counted) and len(set(cells)) == len(cells) and _ascend(counted)


def _ascend(numbers: list[str]) -> bool:
    """Whether numbers are consecutive, as years and counted names are."""
    values = list(map(int, numbers))
    return len(values) > 1 and all(b == a + 1 for a, b in zip(values, values[1:], strict=False))


def _is_number(cell: Any) -> bool:
    try:
        float(str(cell).replace(",", "."))
    except ValueError:
        return False
    return True


def _cells(line: str, delimiter: str | None, where: str) -> list[str]:
    try:
        return line.split() if delimiter is None else next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error as error:
        raise DataError(f"{where} cannot be read as CSV: {error}.") from error


def _reason(text: str, where: str) -> str:
    long = _LONG.search(text)
    if long is not None:
        many = f"line {long[2]} has {long[3]} cells"
        return f"{where}: {many}; all rows must have as many as the first, {long[1]}."
    opened = _OPEN.search(text)
    if opened is not None:
        return f'{where}: line {int(opened[1]) + 1} opens a quotation (") that is never closed.'
    return f"{where} cannot be read as CSV: {' '.join(text.split()).rstrip('.')}."
