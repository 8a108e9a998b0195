"""LIBSVM's and SVMlight's text: a label, then index:value for what is not zero."""

from __future__ import annotations

import io
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from maxmargin.data.table import DataError, Table, Wanted

# Share of values that are not zero from which a matrix is better dense, and its largest size then.
_DENSE, _MOST_VALUES = 1 / 3, 1 << 28


def read(contents: bytes, where: str, wanted: Wanted) -> Table:
    """Indices start at 1 as LIBSVM has them; a file in which 0 occurs starts there."""
    if wanted.target not in (None, "") or wanted.drop:
        raise DataError(f"{where}: a file in SVMlight format has no named columns; the label comes first.")
    try:
        X, y = load_svmlight_file(io.BytesIO(contents))
    except (ValueError, OverflowError, MemoryError) as error:
        raise DataError(f"{where} is not in SVMlight format: {_reason(contents, error)}.") from error
    whole = np.asarray(y, dtype=np.int64) if np.isfinite(y).all() and np.abs(y).max(initial=0) < 2**53 else y
    y = whole if np.array_equal(whole, y) else y
    X = sp.csr_array(X)
    if wanted.width is not None and X.shape[1] < wanted.width:  # the last features are zero in all rows
        X = sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], wanted.width))
    size = X.shape[0] * X.shape[1]
    if X.nnz > _DENSE * size and size <= _MOST_VALUES:
        return Table(X.toarray(), y, target="label")
    return Table(X, y, target="label")


def write(table: Table, out: BinaryIO) -> None:
    """Labels must be numbers."""
    y = np.zeros(table.X.shape[0]) if table.y is None else table.y
    if not np.issubdtype(y.dtype, np.number):
        raise DataError("SVMlight's format holds numbers only: encode the labels, or write CSV or NPZ.")
    dump_svmlight_file(sp.csr_matrix(table.X), y, out, zero_based=False)


def _reason(contents: bytes, error: BaseException) -> Any:
    """The first line that is not right."""
    for number, line in enumerate(contents.splitlines(), 1):
        parts = line.split(b"#", 1)[0].split()
        last = -1
        for part in parts[1:]:
            index, colon, value = part.partition(b":")
            if index == b"qid":
                continue
            try:
                float(value)
                place = int(index)
            except ValueError:
                place = -2
            if not colon or place <= last:
                problem = (
                    "indices must ascend" if colon and 0 <= place <= last else "index:value was expected"
                )
                return f"line {number}: {part.decode(errors='replace')!r}, {problem}"
            last = place
        if parts:
            try:
                float(parts[0])
            except ValueError:
                return f"line {number}: the label {parts[0].decode(errors='replace')!r} is not a number"
    return str(error).rstrip(".")
