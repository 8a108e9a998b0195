"""Values of the columns of a mixed table: numbers, texts and days, from whatever form they have.

Columns are arrays, or series of pandas; texts may have spaces around them. A cell is missing if it is empty,
None, NaN, NaT or NA, or text such as "NA" or "?".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.data.table import DataError, brief

#: Texts that mean that there is no value, in lower case.
MISSING = frozenset({"", "?", "-", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "<na>", "nat"})
_EMPTY = frozenset({"", "NA", "?", "NaN", "nan"})  # the most frequent ones
_TRUTH = {"true": 1.0, "false": 0.0}
#: Forms of dates that are understood: their name, and what `pandas.to_datetime` calls them.
DATES: dict[str, str] = {"year-month-day": "ISO8601"} | {
    f"{name}{clock}": code + form
    for clock, form in (("", ""), (" hour:minute", " %H:%M"), (" hour:minute:second", " %H:%M:%S"))
    for name, code in (
        ("year/month/day", "%Y/%m/%d"),
        ("day.month.year", "%d.%m.%Y"),
        ("month/day/year", "%m/%d/%Y"),
        ("day/month/year", "%d/%m/%Y"),
    )
}
_DAY = 86_400_000_000  # microseconds


def cells(column: Any) -> NDArray[Any]:
    """The values of a column as an array, of objects unless they are numbers or dates without a time zone."""
    kind = getattr(column, "dtype", None)
    if hasattr(column, "to_numpy"):
        return column.to_numpy() if getattr(kind, "kind", "O") in "biufM" else column.to_numpy(dtype=object)
    found = np.asarray(column)
    return found if found.dtype.kind in "biufM" else found.astype(object)


def is_missing(value: Any) -> bool:
    """Whether there is no value in a cell."""
    if isinstance(value, str):
        return value.strip().lower() in MISSING
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return bool(isinstance(value, float | np.floating | np.datetime64) and value != value)


def missing_cells(column: Any) -> NDArray[np.bool_]:
    """Which cells of a column have no value."""
    found = cells(column)
    if found.dtype.kind in "biu":
        return np.zeros(len(found), np.bool_)
    if found.dtype.kind == "f":
        return np.isnan(found)
    if found.dtype.kind == "M":
        return np.isnat(found)
    return np.fromiter(each(found.tolist(), is_missing), np.bool_, len(found))


def each(column: list[Any], convert: Callable[[Any], Any]) -> list[Any]:
    """A function of every cell, called once for every value that occurs."""
    try:
        if len(set(map(type, column))) == 1:
            one = {value: convert(value) for value in set(column)}
            return [one[value] for value in column]
        keys = [(type(value), value) for value in column]  # True, 1 and 1.0 are equal
        known = {key: convert(key[1]) for key in set(keys)}
        return [known[key] for key in keys]
    except TypeError:  # values that cannot be keys
        return [convert(value) for value in column]


def parsed_numbers(column: list[Any]) -> NDArray[np.float64] | None:
    """Texts as numbers, NaN where they are missing; None unless all of them are numbers or missing.

    Faster than `number` cell by cell.
    """
    if set(map(type, column)) != {str} or any("_" in text for text in column):  # Python reads 1_0 as 10
        return None
    with suppress(ValueError):
        return np.fromiter(map(float, column), np.float64, len(column))
    with suppress(ValueError):
        cells = (math.nan if text in _EMPTY or is_missing(text) else float(text) for text in column)
        return np.fromiter(cells, np.float64, len(column))
    return None


def number(value: Any) -> float:
    """A number from a cell, NaN for a missing one; raises ValueError or TypeError if it is anything else."""
    if is_missing(value):
        return float("nan")
    if isinstance(value, str):
        word = value.strip().lower()
        return _TRUTH[word] if word in _TRUTH else _parsed(word)
    return float(value)


def numbers(column: Any, name: str = "") -> NDArray[np.float64]:
    """A column as numbers, NaN where they are missing; truth values are 0 and 1."""
    found = cells(column)
    if found.dtype.kind in "biuf":
        return found.astype(np.float64)
    if found.dtype.kind == "M":
        raise DataError(f"column {brief(name)} contains dates, where the model was trained with numbers.")
    values = found.tolist()
    parsed = parsed_numbers(values)
    if parsed is not None:
        return parsed
    out = np.empty(len(found))
    for row, value in enumerate(values):
        try:
            out[row] = number(value)
        except (ValueError, TypeError):
            raise DataError(
                f"row {row + 1}, column {brief(name)} contains {brief(str(value))}, not a number."
            ) from None
    return out


def text(value: Any) -> Any:
    """The text that a cell has as a category, NaN for a missing one.

    Whole numbers have the same text whether they were read as integers or not.
    """
    if is_missing(value):
        return float("nan")
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def texts(column: Any) -> NDArray[Any]:
    """A column as texts, NaN where they are missing."""
    out = np.empty(len(column), dtype=object)
    out[:] = each(cells(column).tolist(), text)
    return out


def days(column: Any, form: str | None = None, name: str = "") -> NDArray[np.float64]:
    """Dates as days since the beginning of 1970, NaN where they are missing; with a time zone in UTC.

    `form` is one of `DATES`, of dates that are text; numbers count as days.
    """
    found = cells(column)
    if found.dtype.kind in "biuf":
        return found.astype(np.float64)
    if found.dtype.kind != "M":
        import pandas as pd

        missing = missing_cells(found)
        known = found[~missing]
        kept = [value.strip() if isinstance(value, str) else value for value in known.tolist()]
        how = DATES[form or "year-month-day"] if any(isinstance(value, str) for value in kept) else None
        parsed = pd.Series(
            pd.to_datetime(pd.Series(kept, dtype=object), format=how, errors="coerce", utc=True)
        )
        wrong = np.flatnonzero(parsed.isna().to_numpy())
        if len(wrong):
            row = int(np.flatnonzero(~missing)[wrong[0]]) + 1
            raise DataError(
                f"row {row}, column {brief(name)} contains {brief(str(known[wrong[0]]))}, not a date"
                + (f" ({form})." if form else ".")
            )
        found = np.full(len(missing), "NaT", dtype="M8[us]")
        found[~missing] = parsed.dt.tz_localize(None).to_numpy().astype("M8[us]")
    out = np.full(len(found), np.nan)
    known = ~np.isnat(found)
    out[known] = found[known].astype("M8[us]").astype(np.int64) / _DAY
    return out


def _parsed(word: str) -> float:
    if "_" in word:  # which Python reads over
        raise ValueError
    return float(word)
