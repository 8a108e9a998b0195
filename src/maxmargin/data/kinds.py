"""Kinds of the columns of a mixed table: numbers, truth values, dates, categories, text, or of no use."""

from __future__ import annotations

import datetime
import decimal
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.data.table import DataError, brief
from maxmargin.data.values import (
    DATES,
    cells,
    days,
    is_missing,
    missing_cells,
    number,
    numbers,
    parsed_numbers,
    texts,
)

# Up to so many different texts are categories, whatever they are.
_FEW = 20
# A column is a column of numbers with errors if this share of its values are numbers.
_MOST = 0.9
# Running text has so many words per value, and this share of different values; names have this other share.
_WORDS, _VARIED, _DISTINCT = 3.0, 0.5, 0.9


@dataclass(frozen=True)
class Column:
    """A column of a mixed table, and how it is used.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"number", "boolean", "date", "category", "text", "left out"}
        How its values are read.
    missing : int
        Number of empty cells.
    form : str or None
        Of dates that are text, one of `maxmargin.data.values.DATES`.
    why : str
        Why it is left out.
    """

    name: str
    kind: str
    missing: int = 0
    form: str | None = None
    why: str = ""


def read_values(values: Any, column: Column) -> NDArray[Any]:
    """The values of a column that is of a known kind: floats, or texts with NaN."""
    if column.kind in ("number", "boolean"):
        return numbers(values, column.name)
    if column.kind == "date":
        return days(values, column.form, column.name)
    return texts(values)


def kind_of(name: str, values: Any, *, typed: bool = False, category: bool = False) -> Column:
    """Find the kind of a column.

    `typed` says that the file has types, so that texts are not numbers; `category` that its values are
    categories, whatever they look like.
    """
    found = cells(values)
    if found.dtype.kind == "O" and not typed and not category:
        parsed = parsed_numbers(found.tolist())
        found = found if parsed is None else parsed
    if found.dtype.kind != "O":
        missing = int(missing_cells(found).sum())
        kind = {"b": "boolean", "M": "date"}.get(found.dtype.kind, "number")
        column = Column(name, "category" if category else kind, missing)
        distinct = len(np.unique(found[~missing_cells(found)])) if category else 0
    else:
        counts = Counter(found.tolist())
        known = {value: n for value, n in counts.items() if not is_missing(value)}
        missing, distinct = len(found) - sum(known.values()), len(known)
        column = Column(name, "category", missing)
        if known and not category:
            column = _of_objects(name, known, found, missing, typed)
    if missing == len(found):
        return Column(name, "left out", missing, why="empty")
    if column.kind in ("text", "left out"):
        return column
    if column.kind == "category":
        constant = distinct == 1 and not missing
        return Column(name, "left out", missing, why="constant") if constant else column
    read = read_values(found, column)
    if np.isinf(read).any():
        row = int(np.flatnonzero(np.isinf(read))[0])
        raise DataError(
            f"row {row + 1} has {read[row]:g} in column {brief(name)}, but a finite number is needed: fill "
            "such cells, remove these rows, or leave out the column (--drop)."
        )
    if np.nanmin(read) == np.nanmax(read):
        return Column(name, "left out", missing, why="constant")
    if not name and column.kind == "number" and not missing and _counts_rows(read):
        return Column(name, "left out", missing, why="row numbers")
    return column


def _of_objects(name: str, known: dict[Any, int], found: Any, missing: int, typed: bool) -> Column:
    """The kind of a column of texts and other objects; `known` has the values that occur, and how often."""
    kinds = {type(value) for value in known}
    if all(issubclass(kind, bool | np.bool_) for kind in kinds):
        return Column(name, "boolean", missing)
    if all(issubclass(kind, int | float | np.number | decimal.Decimal) for kind in kinds):
        return Column(name, "number", missing)
    if all(issubclass(kind, datetime.date) for kind in kinds):
        return Column(name, "date", missing)
    if kinds != {str}:
        return Column(name, "category", missing)
    words = {value.strip().lower() for value in known}
    if words <= {"true", "false"}:
        return Column(name, "boolean", missing)
    form = _form_of_dates(list(known))
    if form is not None:
        return Column(name, "date", missing, form)
    total, distinct = sum(known.values()), len(known)
    if not typed:
        parsed = sum(n for value, n in known.items() if _is_number(value))
        if parsed == total:
            return Column(name, "number", missing)
        if distinct > _FEW and parsed >= _MOST * total:
            odd = next(value for value in known if not _is_number(value))
            row = int(np.flatnonzero(found == odd)[0])
            raise DataError(
                f"row {row + 1}, column {brief(name)} contains {brief(odd)}, and {parsed / total:.0%} of its "
                "values are numbers: correct such cells or leave them empty, take the values as categories "
                f"(--category {brief(name)[1:-1]}), or leave the column out (--drop {brief(name)[1:-1]})."
            )
    if distinct <= _FEW:
        return Column(name, "category", missing)
    length = sum(n * len(value.split()) for value, n in known.items()) / total
    if length >= _WORDS and distinct > _VARIED * total:
        return Column(name, "text", missing)
    if distinct > _DISTINCT * total:
        return Column(name, "left out", missing, why="differs in nearly every row")
    return Column(name, "category", missing)


def _is_number(value: str) -> bool:
    try:
        number(value)
    except ValueError:
        return False
    return True


def _form_of_dates(values: list[str]) -> str | None:
    """The form of dates that all texts have, if there is one."""
    first = values[0].strip()
    if not 8 <= len(first) <= 40 or not first[0].isdigit():
        return None
    column = np.array(values, dtype=object)
    for form in DATES:
        try:
            days(column[:1], form)
            days(column, form)
        except (DataError, ValueError, OverflowError):
            continue
        return form
    return None


def _counts_rows(values: NDArray[np.float64]) -> bool:
    return bool(values[0] in (0.0, 1.0) and (np.diff(values) == 1.0).all())
