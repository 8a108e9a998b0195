"""CSV: with or without names in the first line; commas, semicolons, tabs or spaces between the cells."""

from __future__ import annotations

import csv
import io
import re
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from maxmargin.data.table import DataError, Table, Wanted, as_labels

_CANNOT = re.compile(r"could not convert string '(.*)' to float64 at row (\d+), column (\d+)", re.DOTALL)
_SHORT = re.compile(r"at row (\d+) with (\d+) columns")


def read(contents: bytes, where: str, wanted: Wanted) -> Table:
    """Parse the text; every cell but those of the target must be a number."""
    try:
        text = contents.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{where} is neither text in UTF-8 nor Parquet or NPZ (byte {error.start} is not of a text)."
        ) from error
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    first = text.lstrip("\n").split("\n", 1)[0]
    delimiter = next((d for d in ",;\t" if d in first), None)
    cells = _cells(first, delimiter)
    named = not all(_is_number(cell) or not cell.strip() for cell in cells)
    names = [c.strip() for c in cells] if named else [str(k) for k in range(len(cells))]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{where}: two columns are called {twice!r}; give every column a name of its own.")
    places, target, guessed = wanted.split(names, where)
    options: dict[str, Any] = {
        "delimiter": delimiter,
        "quotechar": '"',
        "comments": None,
        "skiprows": int(named) + len(text) - len(text.lstrip("\n")),
        "ndmin": 2,
    }
    X = _numbers(text, places, names, where, options)
    y = None
    if target is not None:
        labels = _load(text, [target], str, where, options)[:, 0]
        empty = np.flatnonzero(np.char.strip(labels) == "")
        if len(empty):
            raise DataError(
                f"{where}: row {empty[0] + 1} has no value in the target column {names[target]!r}."
            )
        y = as_labels(np.char.strip(labels))
    return Table(
        X,
        y,
        [names[k] for k in places] if named else None,
        names[target] if target is not None else None,
        guessed,
    )


def write(table: Table, out: BinaryIO) -> None:
    """With names in the first line; the target comes last."""
    d = table.X.shape[1]
    names = list(table.names or (f"x{k}" for k in range(d)))
    text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names if table.y is None else [*names, table.target or "target"])
    for start in range(0, table.X.shape[0], 4096):
        part = table.X[start : start + 4096]
        values = (part.toarray() if sp.issparse(part) else part).tolist()
        if table.y is not None:
            for row, label in zip(values, table.y[start : start + 4096].tolist(), strict=True):
                row.append(label)
        writer.writerows(values)
    text.detach()


def _numbers(text: str, places: list[int], names: list[str], where: str, options: dict[str, Any]) -> Any:
    try:
        return _load(text, places, np.float64, where, options)
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        found = _CANNOT.search(str(error))
        if found is None:
            raise DataError(f"{where} cannot be read as CSV: {error}.") from error
        cell, row, column = found[1], int(found[2]) + 1, int(found[3]) - 1  # NumPy counts so
        name = names[column] if column < len(names) else str(column)
        if not cell.strip():
            what = f"row {row}, column {name!r} is empty: fill in missing values or leave the column out"
        else:
            what = (
                f"row {row}, column {name!r} holds {cell!r}, not a number: encode text as numbers or leave "
                "the column out"
            )
        raise DataError(f"{where}: {what} (--drop {name}).") from error


def _load(text: str, places: list[int], dtype: Any, where: str, options: dict[str, Any]) -> Any:
    try:
        with np.errstate(all="ignore"):
            if text.count("\n", 0, len(text.rstrip("\n"))) < options["skiprows"]:
                return np.empty((0, len(places)), dtype)  # names and nothing else
            return np.loadtxt(io.StringIO(text), dtype=dtype, usecols=places, **options)
    except ValueError as error:
        short = _SHORT.search(str(error))
        if short is None:
            raise
        raise DataError(
            f"{where}: row {short[1]} has {short[2]} cells only; every row needs as many as the first."
        ) from error


def _cells(line: str, delimiter: str | None) -> list[str]:
    if delimiter is None:
        return line.split()
    return next(csv.reader([line], delimiter=delimiter), [])


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
