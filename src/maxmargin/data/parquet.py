"""Parquet, through pyarrow where it is installed."""

from __future__ import annotations

import io
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from maxmargin.data.table import DataError, Table, Wanted, as_labels


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise DataError(
            "Parquet needs pyarrow, which is not installed: pip install 'maxmargin[parquet]'."
        ) from error
    return pyarrow


def read(contents: bytes, where: str, wanted: Wanted) -> Table:
    """All features must be numbers without missing values."""
    pa = _pyarrow()
    try:
        table = pa.parquet.read_table(io.BytesIO(contents))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{where} is not a Parquet file: {str(error).splitlines()[0]}") from error
    names = [n for n in map(str, table.column_names) if not n.startswith("__index_level_")]
    if len(set(names)) < len(names):
        raise DataError(f"{where}: two columns have the same name.")
    places, target, guessed = wanted.split(names, where)
    X = np.empty((table.num_rows, len(places)))
    for k, place in enumerate(places):
        X[:, k] = _numbers(pa, table.column(names[place]), names[place], where)
    y = None
    if target is not None:
        column = table.column(names[target])
        if column.null_count:
            raise DataError(
                f"{where}: the target column {names[target]!r} has {column.null_count} empty cells."
            )
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        y = column.to_numpy()
        if y.dtype == object:
            y = as_labels(y.astype(str))
    return Table(X, y, [names[k] for k in places], names[target] if target is not None else None, guessed)


def write(table: Table, out: BinaryIO) -> None:
    """One column per feature; the target comes last."""
    pa = _pyarrow()
    X = table.X.toarray() if sp.issparse(table.X) else table.X
    names = list(table.names or (f"x{k}" for k in range(X.shape[1])))
    columns = [pa.array(np.ascontiguousarray(X[:, k])) for k in range(X.shape[1])]
    if table.y is not None:
        names.append(table.target or "target")
        columns.append(pa.array(table.y))
    pa.parquet.write_table(pa.table(columns, names=names), out)


def _numbers(pa: Any, column: Any, name: str, where: str) -> Any:
    if column.null_count:
        raise DataError(
            f"{where}: column {name!r} has {column.null_count} empty cells: fill them in or leave the column "
            f"out (--drop {name})."
        )
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise DataError(
            f"{where}: column {name!r} is of the type {kind}, not a number: encode it as numbers or leave it "
            f"out (--drop {name})."
        )
    return column.to_numpy().astype(np.float64)
