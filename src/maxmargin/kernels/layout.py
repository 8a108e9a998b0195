"""The layout of data for loops over kernel values: contiguous, dense or CSR, in working precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _costs as costs
from maxmargin._compiled.limits import check, slices
from maxmargin._compiled.memory import writable

Array = NDArray[Any]


def laid_out(X: Any, dtype: np.dtype[Any], index: Array | None, centre: Array | None, sparse: bool) -> Any:
    """The rows `index` of X in working precision, dense or as CSR."""
    with np.errstate(over="ignore", invalid="ignore"):  # overflow of float32 shows in infinite norms
        if not sparse:
            return _dense(X, dtype, index, centre)
        if not sp.issparse(X):
            return _nonzeros(X, dtype, index)
        return canonical_csr(X, dtype) if index is None else _csr_rows(X, dtype, index)


def without(X: Any, rows: Array) -> Any:
    """A copy of X in which the marked rows are zero."""
    if sp.issparse(X):
        keep = sp.diags_array((~rows).astype(X.dtype), format="csr")
        X = X.copy()
        X.data[~np.isfinite(X.data)] = 0
        return canonical_csr(keep @ X, X.dtype)
    X = X.copy()
    X[rows] = 0
    return X


def _dense(X: Any, dtype: np.dtype[Any], index: Array | None, centre: Array | None) -> Array:
    """``X[index] - centre`` in `dtype`, without a float64 copy of the whole."""
    if centre is None and index is None and not sp.issparse(X):
        return in_c_order(X, dtype)
    n = X.shape[0] if index is None else len(index)
    sparse = sp.issparse(X)
    out = np.empty((n, X.shape[1]), dtype)
    step = max(1, costs.COPIED_VALUES // max(1, X.shape[1]))
    for s in range(0, n, step):
        if s:
            check()
        if index is None:
            part = X[s : s + step]
        else:
            rows = index[s : s + step]
            part = X[rows] if sparse else X.take(rows, axis=0)  # in half the time
        part = part.toarray() if sparse else part
        if centre is not None and index is not None and part.dtype == np.float64:
            part -= centre  # a copy already
        elif centre is not None:
            part = part - centre
        out[s : s + step] = part
    return out


def in_c_order(X: Array, dtype: np.dtype[Any]) -> Array:
    """``np.ascontiguousarray(X, dtype)`` of a matrix in any order, some rows at a time.

    A few rows of all columns stay in the cache, where a copy of a whole matrix from Fortran order takes ten
    times as long. A long copy can be stopped, see `maxmargin._compiled.limits`.
    """
    if X.dtype == dtype and X.flags.c_contiguous:
        return X
    out = np.empty(X.shape, dtype)
    step = max(1, costs.COPIED_VALUES // max(1, X.shape[1]))
    for s in range(0, X.shape[0], step):
        if s:
            check()
        out[s : s + step] = X[s : s + step]
    return out


def prefers_sparse(X: Any) -> bool:
    """Whether sparse products are faster for these data."""
    n, d = X.shape
    if sp.issparse(X):
        # Dense rows would cost more memory than the matrix itself, or more time.
        return bool(X.nnz < costs.SPARSE_BELOW * n * d)
    sample = X[:: max(1, n // costs.SPARSE_ROWS)]
    return d >= costs.SPARSE_FEATURES and bool(np.count_nonzero(sample) < costs.SPARSE_BELOW * sample.size)


def _nonzeros(X: Any, dtype: np.dtype[Any], index: Array | None) -> Any:
    """The rows `index` of a dense array as CSR."""
    from maxmargin.kernels._loops import copy_nonzeros, count_nonzeros

    X = writable(np.ascontiguousarray(X))
    index = np.arange(X.shape[0]) if index is None else index
    indptr = count_nonzeros(X, index)
    kind = np.int32 if max(indptr[-1], *X.shape) < 2**31 else np.int64
    indices, data = np.empty(indptr[-1], kind), np.empty(indptr[-1], dtype)
    copy_nonzeros(X, index, indptr, indices, data)
    return sp.csr_array((data, indices, indptr.astype(kind)), shape=(len(index), X.shape[1]), copy=False)


def _csr_rows(X: Any, dtype: np.dtype[Any], index: Array) -> Any:
    """The rows `index` of a CSR matrix, see `canonical_csr`; in slices of work."""
    if X.dtype.char not in "fd":
        return canonical_csr(X[index], dtype)
    from maxmargin.kernels._loops import copy_rows
    from maxmargin.kernels.panels import Lines

    X = without_duplicates(sp.csr_array(X))
    indptr = np.zeros(len(index) + 1, np.int64)
    np.cumsum(np.diff(X.indptr)[index], out=indptr[1:])
    kind = np.int32 if max(indptr[-1], len(index), X.shape[1]) < 2**31 else np.int64
    out = sp.csr_array((len(index), X.shape[1]), dtype=dtype)
    out.indptr, out.indices, out.data = (
        indptr.astype(kind),
        np.empty(indptr[-1], kind),
        np.empty(indptr[-1], dtype),
    )
    lines, width = Lines.of(X), indptr[-1] / max(1, len(index))
    for s, e in slices(len(index), costs.COPY_TIME * width):
        copy_rows(
            lines.indptr, lines.indices, lines.data, index[s:e], out.indptr[s : e + 1], out.indices, out.data
        )
    return out


def canonical_csr(X: Any, dtype: np.dtype[Any]) -> Any:
    """CSR with one entry per position, in `dtype`; all indices in the narrowest type that fits.

    If `indices` and `indptr` have different types, SciPy converts them on every selection of rows.
    """
    X = without_duplicates(sp.csr_array(X))
    index = np.int32 if max(X.nnz, *X.shape) < 2**31 else np.int64
    out = sp.csr_array(X.shape, dtype=dtype)
    out.data = X.data.astype(dtype, copy=False)
    out.indices, out.indptr = (a.astype(index, copy=False) for a in (X.indices, X.indptr))
    return out


def without_duplicates(X: Any) -> Any:
    """A CSR matrix with one entry per position, in order; X itself if it is one."""
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def squared_norms(X: Any) -> Array:
    """Squared norms of the rows as stored, that is after rounding, summed in float64."""
    if hasattr(X, "parts"):  # `Streamed`
        return _by_parts(squared_norms, X)
    if sp.issparse(X):
        from maxmargin.kernels._loops import row_squares
        from maxmargin.kernels.panels import Lines

        lines, out = Lines.of(X), np.empty(X.shape[0])
        row_squares(lines.indptr, lines.data, out)
        return out
    if X.dtype == np.float64:
        return np.einsum("ij,ij->i", X, X)
    # In parts, which are converted faster than by `einsum`.
    out = np.empty(len(X))
    step = max(1, costs.COPIED_VALUES // max(1, X.shape[1]))
    for s in range(0, len(X), step):
        part = X[s : s + step].astype(np.float64)
        np.einsum("ij,ij->i", part, part, out=out[s : s + step])
    return out


def absolute_sums(X: Any) -> Array:
    """1-norms of the rows, summed in float64."""
    if hasattr(X, "parts"):
        return _by_parts(absolute_sums, X)
    return np.asarray(abs(X).sum(axis=1, dtype=np.float64), dtype=np.float64).ravel()


def _by_parts(function: Any, X: Any) -> Array:
    """A number for each row of `Streamed` data."""
    out = np.empty(X.shape[0])
    for start, stop, part in X.parts():
        out[start:stop] = function(part)
    return out
