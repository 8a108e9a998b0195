"""Parquet, with pyarrow if it is installed."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, BinaryIO, NoReturn

import numpy as np
import scipy.sparse as sp

from maxmargin.data.limits import Limit
from maxmargin.data.table import DataError, NotNumbers, Table, Wanted, brief, first_repeated

# Bytes per column in the schema of a file.
_COLUMN = 1000


def pyarrow_for_tables() -> Any:
    """pyarrow; raises `DataError` if it is not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise DataError(
            "Parquet needs pyarrow, which is not installed: pip install 'maxmargin[parquet]'."
        ) from error
    return pyarrow


def read(contents: bytes, where: str, wanted: Wanted, limit: Limit) -> Table:
    """Read a table; all features must be numbers without missing values."""
    pa = pyarrow_for_tables()
    damaged = _damaged(pa)
    try:
        file = pa.parquet.ParquetFile(io.BytesIO(contents))
        schema, n = file.schema_arrow, file.metadata.num_rows
    except damaged as error:
        _refuse(error, where)
    names = [name for name in map(str, schema.names) if not name.startswith("__index_level_")]
    twice = first_repeated(names)
    if twice is not None:
        raise DataError(f"{where}: two columns are named {brief(twice)}; column names must be unique.")
    places, target, guessed = wanted.split(names, where)
    for place in places:
        _check_number(pa, schema.field(names[place]).type, names[place], where)
    # Repeated text takes little space in the file: only indices are expanded, see `_labels`.
    limit.check(n * 8 * (len(places) + 2), "the table", where)
    chosen = [names[place] for place in places] + ([] if target is None else [names[target]])
    texts = [] if target is None else [names[target]]
    try:
        table = pa.parquet.read_table(io.BytesIO(contents), columns=chosen, read_dictionary=texts)
    except damaged as error:
        _refuse(error, where)
    X = np.empty((table.num_rows, len(places)))
    for k, place in enumerate(places):
        X[:, k] = _numbers(table.column(names[place]), names[place], where)
    y = (
        None
        if target is None
        else _labels(pa, table.column(names[target]), names[target], where, wanted, limit)
    )
    return Table(X, y, [names[k] for k in places], names[target] if target is not None else None, guessed)


def blocks(path: str, where: str, wanted: Wanted, limit: Limit, size: int) -> Iterator[bytes] | None:
    """Small files with parts of a table, of about `size` bytes of numbers each, row group by row group."""
    pa = pyarrow_for_tables()
    try:
        file = pa.parquet.ParquetFile(path, pre_buffer=False)
        n, width = file.metadata.num_rows, max(1, file.metadata.num_columns)
    except _damaged(pa) as error:
        _refuse(error, where)
    rows = max(1, size // (8 * width))
    return None if n <= rows else _parts(pa, file, rows, where)


def _parts(pa: Any, file: Any, rows: int, where: str) -> Iterator[bytes]:
    batches = file.iter_batches(batch_size=rows)
    while True:
        try:
            batch = next(batches, None)
        except _damaged(pa) as error:
            _refuse(error, where)
        if batch is None:
            return
        part = io.BytesIO()
        pa.parquet.write_table(pa.Table.from_batches([batch]), part, compression="none")
        yield part.getvalue()


def _damaged(pa: Any) -> tuple[type[Exception], ...]:
    return (pa.ArrowException, OSError, ValueError, TypeError, LookupError)


def write(table: Table, out: BinaryIO) -> None:
    """Write one column per feature, and the target last."""
    pa = pyarrow_for_tables()
    limit = Limit()
    limit.check(8 * table.X.shape[0] * table.X.shape[1], "the table without its sparsity", "Parquet")
    limit.check(_COLUMN * table.X.shape[1], f"the names of {table.X.shape[1]:,} columns", "Parquet")
    X = table.X.toarray() if sp.issparse(table.X) else table.X
    names = list(table.names or (f"x{k}" for k in range(X.shape[1])))
    columns = [pa.array(np.ascontiguousarray(X[:, k])) for k in range(X.shape[1])]
    if table.y is not None:
        names.append(table.target or "target")
        columns.append(pa.array(table.y))
    pa.parquet.write_table(pa.table(columns, names=names), out)


def _is_number(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def is_text(pa: Any, kind: Any) -> bool:
    """Whether a type is text."""
    view = getattr(pa.types, "is_string_view", lambda kind: False)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or view(kind))


def is_simple(pa: Any, kind: Any) -> bool:
    """Whether a type is numbers, truth values, dates, text, categories of these, or nothing."""
    if pa.types.is_dictionary(kind):
        return is_text(pa, kind.value_type) or _is_number(pa, kind.value_type)
    others = (pa.types.is_date, pa.types.is_timestamp, pa.types.is_decimal, pa.types.is_null)
    return is_text(pa, kind) or _is_number(pa, kind) or any(test(kind) for test in others)


def _check_number(pa: Any, kind: Any, name: str, where: str) -> None:
    if not _is_number(pa, kind):
        raise NotNumbers(
            f"{where}: column {brief(name)} has type {brief(str(kind))[1:-1]}, not a numeric type: encode it "
            f"as numbers or leave it out (--drop {brief(name)[1:-1]})."
        )


def _numbers(column: Any, name: str, where: str) -> Any:
    if column.null_count:
        raise NotNumbers(
            f"{where}: column {brief(name)} has {column.null_count} empty cells: fill them in or leave the "
            f"column out (--drop {brief(name)[1:-1]})."
        )
    return column.to_numpy().astype(np.float64)


def _labels(pa: Any, column: Any, name: str, where: str, wanted: Wanted, limit: Limit) -> Any:
    """A target column as numbers or text."""
    if column.null_count:
        raise NotNumbers(f"{where}: the target column {brief(name)} has {column.null_count} empty cells.")
    if pa.types.is_dictionary(column.type):
        found = column.unify_dictionaries().combine_chunks()
        found = found.chunk(0) if isinstance(found, pa.ChunkedArray) else found
        used, places = np.unique(found.indices.to_numpy(), return_inverse=True)
        values = _texts(found.dictionary.take(pa.array(used)), limit, where)
        limit.check(len(places) * values.dtype.itemsize, "the target", where)
        return wanted.labels(values)[places]
    if (
        pa.types.is_integer(column.type)
        or pa.types.is_floating(column.type)
        or pa.types.is_boolean(column.type)
    ):
        return column.to_numpy()
    return wanted.labels(_texts(column, limit, where))


def _texts(column: Any, limit: Limit, where: str) -> Any:
    """Values of any type as text."""
    limit.check(column.nbytes + 100 * len(column), "the target", where)
    texts = [str(value) for value in column.to_pylist()]
    limit.check(len(texts) * 4 * max(map(len, texts), default=1), "the target", where)
    return np.array(texts, dtype=str)


def _refuse(error: BaseException, where: str) -> NoReturn:
    reason = str(error).strip().split("\n", 1)[0] or type(error).__name__
    raise DataError(f"{where} is not a Parquet file: {reason[:200]}") from error
