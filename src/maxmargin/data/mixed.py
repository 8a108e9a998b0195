"""Mixed tables: CSV and Parquet files with categories, dates, text and empty cells, read with pandas.

A table of numbers is read without pandas, by `maxmargin.data.read`.
"""

from __future__ import annotations

import io
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.data import parquet, text_frame
from maxmargin.data.files import Contents
from maxmargin.data.kinds import Column, kind_of, read_values
from maxmargin.data.limits import Limit
from maxmargin.data.table import DataError, Table, Wanted, as_labels, brief, find, first_repeated, quoted
from maxmargin.data.values import MISSING

#: What is to be installed for mixed tables.
INSTALL = "pip install 'maxmargin[tables]'"
# Texts that are no label, in lower case; in a column of numbers all of `MISSING` are.
_NO_LABEL = frozenset({"", "nan", "<na>", "#n/a", "n/a"})
# Numbers with a decimal comma, perhaps with points between the thousands.
_COMMA = re.compile(r"\s*[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?(e[+-]?\d+)?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Schema:
    """The columns that a trained model knows.

    Attributes
    ----------
    known : list of str
        All columns of its training data, in their order, including those that it does not use.
    columns : dict of str to Column
        Those that it uses.
    """

    known: list[str]
    columns: Mapping[str, Column]


@dataclass(frozen=True)
class MixedTable(Table):
    """A table whose X is a data frame: floats for numbers, truth values and dates, texts for the others.

    Attributes
    ----------
    columns : list of Column
        What the columns of X hold.
    named : bool
        Whether the file has names.
    unlabelled : int
        Rows that were left out because they have no value of the target.
    """

    columns: list[Column] = field(default_factory=list)
    named: bool = True
    unlabelled: int = 0


@dataclass(frozen=True)
class _Raw:
    """Cells as they are in the file; `typed` if it has types, `decided` has the columns of categories."""

    names: list[str]
    cells: list[Any]
    named: bool = True
    typed: bool = False
    commas: bool = False
    decided: frozenset[str] = frozenset()


def need_pandas(why: str) -> Any:
    """Pandas; raises `DataError` with the reason if it is not installed."""
    try:
        import pandas
    except ImportError as error:
        raise DataError(f"{why.rstrip('.')} (reading such tables needs pandas: {INSTALL}).") from error
    return pandas


def read_training(contents: Contents, wanted: Wanted, *, category: Iterable[str] = ()) -> MixedTable:
    """Read a mixed table to train on: the kinds of its columns are found from their values.

    Rows without a value of the target are left out.
    """
    where = contents.where
    raw = _raw(contents, None, set(map(str, wanted.drop)))
    places, target, guessed = wanted.split(raw.names, where)
    chosen = {find(name, raw.names, where, "column of categories (--category)") for name in category}
    for place in chosen - set(places):
        raise DataError(
            f"{where}: column {brief(raw.names[place])} is not a feature, so it cannot be a category."
        )
    keep, y = None, None
    if target is not None:
        y, keep = _labels(raw, raw.cells[target])
        if not keep.any():
            raise DataError(f"{where}: no row has a value in the target column {brief(raw.names[target])}.")
    columns, values = [], {}
    for place in places:
        name = raw.names[place]
        cells = raw.cells[place]
        try:
            forced = place in chosen or name in raw.decided
            column = kind_of(name, cells, typed=raw.typed, category=forced)
            read = _empty(len(cells)) if column.kind == "left out" else read_values(cells, column)
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
        columns.append(column)
        values[name] = read if keep is None else read[keep]
    return MixedTable(
        need_pandas(where).DataFrame(values), y, [raw.names[place] for place in places],
        None if target is None else raw.names[target], guessed, columns, raw.named,
        0 if keep is None else int((~keep).sum()),
    )  # fmt: skip


def read_new(contents: Contents, schema: Schema, target: str | None = None) -> MixedTable:
    """Read rows for a trained model: its columns by name, in any order; others are left out.

    Where the target has no value, the label is NaN or None.
    """
    where = contents.where
    raw = _raw(contents, schema.columns)
    missing = [name for name in schema.columns if name not in raw.names]
    if missing:
        raise DataError(
            f"{where}: there is no column {quoted(missing)}, which the model was trained with; the columns "
            f"are {quoted(raw.names)}."
        )
    place, guessed = None, False
    if target not in (None, ""):
        place = find(target, raw.names, where, "target column")
    elif target is None:
        rest = [k for k, name in enumerate(raw.names) if name not in schema.known]
        place, guessed = (rest[0], True) if len(rest) == 1 else (None, False)
    n = len(raw.cells[0])
    values = {}
    for name in schema.known:
        column = schema.columns.get(name)
        cells = None if column is None else raw.cells[raw.names.index(name)]
        try:
            values[name] = _empty(n) if column is None else read_values(cells, column)
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
        if column is not None and column.kind in ("number", "date") and np.isinf(values[name]).any():
            row = int(np.flatnonzero(np.isinf(values[name]))[0])
            raise DataError(
                f"{where}: row {row + 1} has {values[name][row]:g} in column {brief(name)}, but a finite "
                "number is needed."
            )
    y, unlabelled = None, 0
    if place is not None:
        labels, there = _labels(raw, raw.cells[place])
        unlabelled = int((~there).sum())
        y = labels
        if 0 < unlabelled < n:
            y = np.full(n, np.nan) if labels.dtype.kind in "iuf" else np.full(n, None, dtype=object)
            y[there] = labels
    return MixedTable(
        need_pandas(where).DataFrame(values), None if unlabelled == n else y, list(schema.known),
        None if place is None else raw.names[place], guessed, list(schema.columns.values()), raw.named,
        unlabelled,
    )  # fmt: skip


def _empty(n: int) -> NDArray[Any]:
    return np.full(n, None, dtype=object)


def _raw(contents: Contents, needed: Mapping[str, Column] | None, drop: Container[str] = ()) -> _Raw:
    where = contents.where
    need_pandas(f"{where} has cells that are not numbers")
    try:
        if contents.kind == "parquet":
            raw = _of_parquet(contents.data, where, contents.limit, needed, drop)
        elif contents.kind == "csv":
            names = None if needed is None else set(needed)
            frame = text_frame.read(contents.data, where, contents.limit, names)
            cells = [frame.column(k) for k in range(len(frame.names))]
            raw = _Raw(frame.names, cells, frame.named)
            if frame.delimiter != ",":
                raw = _Raw(raw.names, [_with_points(column) for column in cells], raw.named, commas=True)
        else:
            raise DataError(f"{where}: only CSV and Parquet files can hold columns that are not numbers.")
    except MemoryError as error:
        raise DataError(f"{where} does not fit into memory.") from error
    twice = first_repeated(raw.names)
    if twice is not None:
        raise DataError(f"{where}: two columns are named {brief(twice)}; column names must be unique.")
    if not raw.cells or not len(raw.cells[0]):
        raise DataError(f"{where} has no rows of data.")
    return raw


def _with_points(column: NDArray[Any]) -> NDArray[Any]:
    """The texts with decimal points, if all of them are numbers with decimal commas, or are missing."""
    known = {text for text in set(column.tolist()) if text.strip().lower() not in MISSING}
    if not any("," in text for text in known) or not all(_COMMA.fullmatch(text) for text in known):
        return column
    out = np.empty(len(column), dtype=object)
    out[:] = [text.replace(".", "").replace(",", ".") if text in known else text for text in column.tolist()]
    return out


def _of_parquet(
    data: bytes, where: str, limit: Limit, needed: Container[str] | None, drop: Container[str]
) -> _Raw:
    pa = parquet.pyarrow_for_tables()
    damaged = (pa.ArrowException, OSError, ValueError, TypeError, LookupError, AttributeError)
    try:
        file = pa.parquet.ParquetFile(io.BytesIO(data))
        schema, n = file.schema_arrow, file.metadata.num_rows
        names = [str(name) for name in schema.names if not str(name).startswith("__index_level_")]
        limit.check(n * 8 * len(names), "the table", where)
        kinds = {name: schema.field(schema.names.index(name)).type for name in names}
        others = {name for name, kind in kinds.items() if not parquet.is_simple(pa, kind)}
        for k, (name, kind) in enumerate(kinds.items()):
            used = name not in drop and str(k) not in drop if needed is None else name in needed
            if name in others and used:
                raise DataError(
                    f"{where}: column {brief(name)} has type {brief(str(kind))[1:-1]}, which is neither "
                    f"numbers, text nor dates: leave it out (--drop {brief(name)[1:-1]})."
                )
        words = [name for name, kind in kinds.items() if parquet.is_text(pa, kind)]
        # Repeated text takes little space in the file, and must not take more here: each is kept once.
        simple = [name for name in names if name not in others]
        table = pa.parquet.read_table(io.BytesIO(data), columns=simple, read_dictionary=words)
        cells = [_empty(n) if name in others else _array(pa, table.column(name)) for name in names]
        decided = {name for name, kind in kinds.items() if pa.types.is_dictionary(kind)}
        described = (schema.pandas_metadata or {}).get("columns", []) if schema.metadata else []
        decided |= {column.get("name") for column in described if column.get("pandas_type") == "categorical"}
    except damaged as error:
        if isinstance(error, DataError):
            raise
        reason = str(error).strip().split("\n", 1)[0] or type(error).__name__
        raise DataError(f"{where} is not a Parquet file that can be read: {reason[:200]}") from error
    return _Raw(names, cells, typed=True, decided=frozenset(decided))


def _array(pa: Any, column: Any) -> NDArray[Any]:
    """A column as an array; a text that is repeated is one object."""
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us"))  # in UTC
    series = column.to_pandas()
    simple = getattr(series.dtype, "kind", "O") in "biufM" and hasattr(series.dtype, "num")
    return series.to_numpy() if simple else series.to_numpy(dtype=object)


def _labels(raw: _Raw, column: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The labels of the rows that have one, and which rows those are."""
    if column.dtype.kind != "O":
        known = ~np.isnan(column) if column.dtype.kind == "f" else np.ones(len(column), np.bool_)
        known = ~np.isnat(column) if column.dtype.kind == "M" else known
        return (column[known] if column.dtype.kind != "M" else column[known].astype(str)), known
    if all(isinstance(value, bool) or value is None for value in set(column.tolist())):
        known = np.array([value is not None for value in column.tolist()])
        return column[known].astype(bool), known
    words = np.array(
        ["" if value is None or value != value else str(value).strip() for value in column.tolist()]
    )
    lower = np.char.lower(words)
    sure = ~np.isin(lower, list(MISSING))
    numbers = as_labels(words[sure]) if sure.any() else words[sure]
    if not raw.typed and numbers.dtype.kind in "iuf":
        return numbers, sure
    known = ~np.isin(lower, list(_NO_LABEL))
    return (words[known] if raw.typed else as_labels(words[known])), known


def plain(table: MixedTable) -> Table | None:
    """The table as one of numbers, if its columns are numbers without empty cells."""
    if any(column.kind != "number" or column.missing for column in table.columns):
        return None
    X = table.X.to_numpy(dtype=np.float64)
    return Table(X, table.y, table.names if table.named else None, table.target, table.guessed)


def names_of(columns: Sequence[Column], *kinds: str) -> list[str]:
    """The names of the columns of some kinds."""
    return [column.name for column in columns if column.kind in kinds]
