"""The text format of LIBSVM and SVMlight: a label, then index:value for each non-zero value."""

from __future__ import annotations

import io
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from maxmargin.data.limits import Limit
from maxmargin.data.table import DataError, Table, Wanted, brief

# Share of non-zero values from which on a dense matrix is better.
_DENSE = 1 / 3
# Memory in bytes while a file is read, at most: per entry, per row, and per character of the longest line.
_ENTRY, _ROW, _CHARACTER = 16, 24, 32
# The largest index that fits the shape of an array.
_LARGEST = 2**62


def read(
    contents: bytes,
    where: str,
    wanted: Wanted,
    limit: Limit,
    zero_based: bool | str = "auto",
    before: int = 0,
) -> Table:
    """Read a table; indices start at 1 as in LIBSVM, or at 0 if 0 occurs.

    `before` is the number of lines before these in the same text, for which `zero_based` is known.
    """
    if wanted.target not in (None, "") or wanted.drop:
        raise DataError(f"{where}: a file in SVMlight format has no named columns; the label comes first.")
    longest = max(map(len, io.BytesIO(contents)), default=0)
    size = contents.count(b":") * _ENTRY + contents.count(b"\n") * _ROW + longest * _CHARACTER
    limit.check(size, "the table", where)
    try:
        X, y = load_svmlight_file(io.BytesIO(contents), zero_based=zero_based)
        if not 0 < X.shape[1] <= _LARGEST:
            raise OverflowError("an index is too large")
    except (ValueError, OverflowError, IndexError) as error:
        raise DataError(f"{where} is not in SVMlight format: {_reason(contents, error, before)}.") from error
    whole = np.asarray(y, dtype=np.int64) if np.isfinite(y).all() and np.abs(y).max(initial=0) < 2**53 else y
    y = whole if np.array_equal(whole, y) else y
    X = sp.csr_array(X)
    if wanted.width is not None and X.shape[1] < wanted.width:  # the last features are zero in all rows
        X = sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], wanted.width))
    values = X.shape[0] * X.shape[1]
    if X.nnz > _DENSE * values and 8 * values <= limit.bytes:
        return Table(X.toarray(), y, target="label")
    return Table(X, y, target="label")


def write(table: Table, out: BinaryIO) -> None:
    """Write a table, whose labels must be numbers."""
    y = np.zeros(table.X.shape[0]) if table.y is None else table.y
    if not np.issubdtype(y.dtype, np.number):
        raise DataError("The SVMlight format stores only numbers: encode the labels, or write CSV or NPZ.")
    dump_svmlight_file(sp.csr_matrix(table.X), y, out, zero_based=False)


def _reason(contents: bytes, error: BaseException, before: int) -> Any:
    """Describe the first line with an error."""
    for number, line in enumerate(io.BytesIO(contents), before + 1):
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
            if not colon or not last < place < _LARGEST:
                problem = "index:value was expected"
                if colon and place >= 0:
                    problem = "indices must ascend" if place <= last else "the index is too large"
                return f"line {number}: {brief(part.decode(errors='replace'))}, {problem}"
            last = place
        if parts:
            try:
                float(parts[0])
            except ValueError:
                return f"line {number}: the label {brief(parts[0].decode(errors='replace'))} is not a number"
    return str(error).rstrip(".")
