"""Sparse data with many columns, few of which are used: memory is needed for those only.

Loops over sparse rows work with dense panels of `shape[1]` columns, and products of SciPy need arrays of that
length. With hashed features there may be 2**30 columns, of which a data set uses some thousands. The columns
in use are therefore renumbered, and later data get the same numbers. Columns that occur only in later data
share one additional number: the first data are zero there, so that such an entry adds nothing to a product,
and its absolute value to a 1-norm distance, which is correct.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin import _costs as costs
from maxmargin._types import Index


def occurring(X: Any) -> Index | None:
    """The columns in which a CSR matrix has entries, ascending; None if most have, or there are few columns.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from maxmargin.kernels._columns import occurring
    >>> X = sp.csr_array(([1.0, 2.0], ([0, 1], [7, 10**9])), shape=(2, 2 * 10**9))
    >>> occurring(X)
    array([         7, 1000000000])
    """
    d = X.shape[1]
    if d <= costs.FEW_COLUMNS:
        return None
    entries = X.indices[: X.nnz]
    if d <= costs.MARKED_COLUMNS * X.nnz:
        mark = np.zeros(d, np.bool_)
        for s in range(0, len(entries), costs.MARKED_AT_ONCE):
            mark[entries[s : s + costs.MARKED_AT_ONCE]] = True
            if 2 * np.count_nonzero(mark) >= d:  # often after the first rows
                return None
        found = np.flatnonzero(mark)
    else:
        found = np.unique(entries).astype(np.intp, copy=False)
    return found if 2 * len(found) < d else None


def renumbered(X: Any, columns: Index | None) -> Any:
    """Number the columns of a CSR matrix by their positions in `columns`, all others by ``len(columns)``.

    A row may have several entries with this last number. None means all columns.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from maxmargin.kernels._columns import renumbered
    >>> X = sp.csr_array(([1.0, 2.0, 3.0], ([0, 0, 0], [5, 7, 9])), shape=(1, 10**9))
    >>> renumbered(X, np.array([5, 9])).toarray()
    array([[1., 3., 2.]])
    """
    if columns is None:
        return X
    count = len(columns)
    entries = X.indices[: X.nnz]
    place = np.searchsorted(columns, entries)
    known = columns[np.minimum(place, count - 1)] == entries if count else np.zeros(len(entries), np.bool_)
    place[~known] = count
    kind = np.int32 if max(len(entries), count + 1) < 2**31 else np.int64
    out = sp.csr_array((X.shape[0], count + 1), dtype=X.dtype)
    out.data, out.indices = X.data[: X.nnz], place.astype(kind)
    out.indptr = X.indptr.astype(kind, copy=False)
    return out


def compact(X: Any, rows: Index | None = None) -> Any:
    """Renumber the columns that occur in X, or in some rows of it; return X itself if these are most."""
    if X.shape[1] <= costs.FEW_COLUMNS:
        return X
    # A selection of millions of entries takes longer than looking at all of them.
    return renumbered(X, occurring(X if rows is None or len(rows) >= X.shape[0] else X[rows]))


def product(coef: Any, X: Any) -> Any:
    """``coef @ X`` for a CSR matrix X, as a CSR matrix.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from maxmargin.kernels._columns import product
    >>> X = sp.csr_array(([1.0, 2.0], ([0, 1], [7, 10**9])), shape=(2, 2 * 10**9))
    >>> product([[3.0, 4.0]], X).data
    array([3., 8.])
    """
    columns = occurring(X)
    out = sp.csr_array(sp.csr_array(coef) @ sp.csr_array(renumbered(X, columns)))
    if columns is None:
        return out
    out.sort_indices()
    kind = np.int32 if X.shape[1] < 2**31 else np.int64
    indices = columns[out.indices].astype(kind, copy=False)
    return sp.csr_array((out.data, indices, out.indptr), shape=(out.shape[0], X.shape[1]))
