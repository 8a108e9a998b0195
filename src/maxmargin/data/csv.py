"""CSV: with or without names in the first line; commas, semicolons, tabs or spaces between the cells."""

from __future__ import annotations

import codecs
import csv
import io
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from maxmargin.data.limits import Limit
from maxmargin.data.table import DataError, NotNumbers, Table, Wanted, brief, first_repeated

_CANNOT = re.compile(r"could not convert string '(.*)' to float64 at row (\d+), column (\d+)", re.DOTALL)
_SHORT = re.compile(r"at row (\d+) with (\d+) columns")
# Memory in bytes while a file is read: at most per column, and per character of the longest line.
_COLUMN, _CHARACTER = 400, 16
# Values that are written at a time.
_PART = 1 << 20


@dataclass(frozen=True)
class Layout:
    """The columns of a text, and where its rows begin.

    `skip`: lines before the rows; `before`: rows in earlier parts of the same text.
    """

    delimiter: str | None
    names: list[str]
    named: bool
    skip: int
    before: int = 0


def layout_of(contents: bytes, where: str, limit: Limit) -> Layout:
    """The layout that the first line shows."""
    lines = enumerate(lines_of(contents))
    at, first = next(((k, line.rstrip("\n")) for k, line in lines if line != "\n"), (0, ""))
    delimiter = next((d for d in ",;\t" if d in first), None)
    limit.check((first.count(delimiter or " ") + 1) * _COLUMN, "the names of the columns", where)
    cells = _cells(first, delimiter, where)
    named = are_names(cells)
    names = [c.strip() for c in cells] if named else [str(k) for k in range(len(cells))]
    twice = first_repeated(names)
    if twice is not None:
        raise DataError(f"{where}: two columns are named {brief(twice)}; column names must be unique.")
    return Layout(delimiter, names, named, at + int(named))


def read(contents: bytes, where: str, wanted: Wanted, limit: Limit, layout: Layout | None = None) -> Table:
    """Parse the text; all cells except those of the target must be numbers.

    `layout` is that of a text of which these are some lines.
    """
    check_encoding(contents, where)
    longest = max(map(len, io.BytesIO(contents)), default=0)
    limit.check(longest * _CHARACTER, "the longest line", where)
    if layout is None:
        layout = layout_of(contents, where, limit)
    delimiter, names, named = layout.delimiter, layout.names, layout.named
    places, target, guessed = wanted.split(names, where)
    n_rows = contents.count(b"\n") + contents.count(b"\r") - contents.count(b"\r\n") + 1
    limit.check(n_rows * len(places) * 8, "the table", where)
    options: dict[str, Any] = {
        "delimiter": delimiter,
        "quotechar": '"',
        "comments": None,
        "skiprows": layout.skip,
        "ndmin": 2,
    }
    if layout.skip and all(
        line == "\n" for line in islice(lines_of(contents), layout.skip, None)
    ):  # only names
        return Table(np.empty((0, len(places))), None, names)
    X = _numbers(contents, places, names, where, options, layout.before)
    y = None
    if target is not None:
        if n_rows * longest * 4 > limit.bytes:
            width = _longest_cell(contents, target, delimiter, where)
            limit.check(n_rows * width * 4, f"the labels, of up to {width:,} characters,", where)
        labels = np.char.strip(_load(contents, [target], str, where, options, layout.before)[:, 0])
        empty = np.flatnonzero(labels == "")
        if len(empty):
            row = layout.before + int(empty[0]) + 1
            raise NotNumbers(f"{where}: row {row} has no value in the target column {brief(names[target])}.")
        y = wanted.labels(labels)
    return Table(
        X,
        y,
        [names[k] for k in places] if named else None,
        names[target] if target is not None else None,
        guessed,
    )


def write(table: Table, out: BinaryIO) -> None:
    """Write the names in the first line, and the target in the last column."""
    n, d = table.X.shape
    Limit().check(d * _COLUMN, f"the names of {d:,} columns", "CSV")
    names = list(table.names or (f"x{k}" for k in range(d)))
    text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names if table.y is None else [*names, table.target or "target"])
    step = max(1, _PART // max(1, d))
    for start in range(0, n, step):
        part = table.X[start : start + step]
        values = (part.toarray() if sp.issparse(part) else part).tolist()
        if table.y is not None:
            for row, label in zip(values, table.y[start : start + step].tolist(), strict=True):
                row.append(label)
        writer.writerows(values)
    text.detach()


def are_names(cells: list[str]) -> bool:
    """Whether the first line names the columns.

    Numbers and one label, in the first or the last cell, are data without names; consecutive integers (the
    default column names of pandas) are names.
    """
    numbers = [cell.strip() for cell in cells if _is_number(cell)]
    text = [k for k, cell in enumerate(cells) if cell.strip() and not _is_number(cell)]
    if not text or not numbers:
        return bool(text)
    counted = any(numbers == [str(k + start) for k in range(len(numbers))] for start in (0, 1))
    return counted or len(text) > 1 or text[0] not in (0, len(cells) - 1)


def lines_of(contents: bytes) -> Iterator[str]:
    """The lines of the text with uniform line ends, without a copy of the whole text."""
    return io.TextIOWrapper(io.BytesIO(contents), encoding="utf-8", newline=None)


def check_encoding(contents: bytes, where: str) -> None:
    """Raise an error that names the first byte that is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    step = 1 << 20
    for start in range(0, len(contents), step):
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(contents[start : start + step], final=start + step >= len(contents))
        except UnicodeDecodeError as error:
            raise DataError(
                f"{where} is neither text in UTF-8 nor Parquet or NPZ (byte {start - pending + error.start} "
                "is not valid UTF-8)."
            ) from error


def _longest_cell(contents: bytes, place: int, delimiter: str | None, where: str) -> int:
    """The length of the longest cell of a column."""
    longest = 0
    try:
        for line in (
            lines_of(contents) if delimiter is None else csv.reader(lines_of(contents), delimiter=delimiter)
        ):
            cells = line.split() if isinstance(line, str) else line
            longest = max(longest, len(cells[place]) if place < len(cells) else 0)
    except csv.Error as error:
        raise DataError(f"{where} cannot be read as CSV: {error}.") from error
    return longest


def _numbers(
    contents: bytes, places: list[int], names: list[str], where: str, options: dict[str, Any], before: int
) -> Any:
    try:
        return _load(contents, places, np.float64, where, options, before)
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        found = _CANNOT.search(str(error))
        if found is None:
            raise DataError(f"{where} cannot be read as CSV: {str(error).rstrip('.')}.") from error
        cell, row, column = found[1], before + int(found[2]) + 1, int(found[3]) - 1  # as NumPy counts
        name = names[column] if column < len(names) else str(column)
        if not cell.strip():
            what = f"row {row}, column {brief(name)} is empty: fill in missing values or leave the column out"
        else:
            what = (
                f"row {row}, column {brief(name)} contains {brief(cell)}, not a number: encode text as "
                "numbers or leave the column out"
            )
        raise NotNumbers(f"{where}: {what} (--drop {brief(name)[1:-1]}).") from error


def _load(
    contents: bytes, places: list[int], dtype: Any, where: str, options: dict[str, Any], before: int
) -> Any:
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"(loadtxt: input|Input line \d+) contained no data")
            found = np.loadtxt(lines_of(contents), dtype=dtype, usecols=places, **options)
        return found if found.size else np.empty((0, len(places)), dtype)
    except ValueError as error:
        short = _SHORT.search(str(error))
        if short is None:
            raise
        row = before + int(short[1])
        raise DataError(
            f"{where}: row {row} has only {short[2]} cells; all rows must have as many as the first."
        ) from error


def _cells(line: str, delimiter: str | None, where: str) -> list[str]:
    if delimiter is None:
        return line.split()
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error as error:
        raise DataError(f"{where} cannot be read as CSV: {error}.") from error


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
