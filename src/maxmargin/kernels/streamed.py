"""Data that are prepared for a kernel some rows at a time, where a copy of all would take too much memory.

Sums over kernel rows multiply hundreds of rows by each tile of columns: to convert a tile anew for every sum
takes a few hundredths of the time, and no copy of the data is needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _costs as costs
from maxmargin._compiled.lazy import lazy
from maxmargin._compiled.limits import check
from maxmargin._compiled.memory import writable
from maxmargin._types import Index
from maxmargin.kernels.layout import without, without_duplicates

Array = NDArray[Any]


def streams(X: Any, dtype: np.dtype[Any], n: int, sparse: bool) -> bool:
    """Whether prepared copies of n rows of X would take so much memory that they are made tile by tile."""
    if not isinstance(getattr(X, "dtype", None), np.dtype) or X.dtype.char not in "fd":
        return False
    if not (sp.issparse(X) or (isinstance(X, np.ndarray) and X.flags.c_contiguous)):
        return False
    width = float(X.shape[1])
    if sparse and sp.issparse(X) and X.shape[1] > costs.PANEL_COLUMNS:
        width = 4.0 * X.nnz / max(1, X.shape[0])  # entries and their columns, twice
    return n * width * dtype.itemsize > costs.STREAMED_BYTES


class Streamed:
    """Rows of a data set in the layout of `maxmargin.kernels.layout.laid_out`, made when they are asked for.

    Parameters
    ----------
    X : ndarray in C order or CSR matrix
        The data, of which a reference is kept.
    dtype : dtype
        Working precision.
    index : ndarray of int, optional
        Use only these rows, in this order.
    centre : ndarray, optional
        Subtracted from every row; dense layout only.
    sparse : bool
        Whether the layout is CSR.
    hidden : ndarray of bool, optional
        Rows that are replaced by zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.kernels.streamed import Streamed
    >>> X = np.array([[1.0, 0.0], [3.0, 4.0]], dtype=np.float32)
    >>> Streamed(X, np.dtype("float64"), np.array([1, 0]), np.array([1.0, 2.0]), sparse=False)[:1]
    array([[2., 2.]])
    """

    def __init__(
        self,
        X: Any,
        dtype: np.dtype[Any],
        index: Index | None,
        centre: Array | None,
        sparse: bool,
        hidden: Array | None = None,
    ) -> None:
        self.X = without_duplicates(sp.csr_array(X)) if sp.issparse(X) else np.asarray(X)
        self.dtype, self.index, self.centre, self.sparse, self.hidden = dtype, index, centre, sparse, hidden
        self.shape = (X.shape[0] if index is None else len(index), X.shape[1])

    @lazy
    def _arrays(self) -> tuple[Array, Array, Array]:
        """Offsets of the rows, columns and values; without offsets and columns for dense data."""
        if isinstance(self.X, np.ndarray):
            none = np.empty(0, np.int32)
            return none, none, writable(self.X.reshape(-1))
        # As they are: indices of 64 bits are not copied to narrower ones.
        return writable(self.X.indptr), writable(self.X.indices), writable(self.X.data)

    @lazy
    def _shift(self) -> Array:
        return np.empty(0) if self.centre is None else np.asarray(self.centre, dtype=np.float64)

    def without(self, rows: Array) -> Streamed:
        """The same with zeros in place of the marked rows."""
        return Streamed(self.X, self.dtype, self.index, self.centre, self.sparse, rows)

    def about(self, centre: Array) -> Streamed:
        """The same with another centre."""
        return Streamed(self.X, self.dtype, self.index, centre, self.sparse, self.hidden)

    def __getitem__(self, rows: slice | Index) -> Any:
        """Some of the rows: a dense array, or a CSR matrix."""
        part = self._sparse_rows(rows) if self.sparse else self._dense_rows(rows)
        if self.hidden is not None and self.hidden[rows].any():
            part = without(part, self.hidden[rows])
        return part

    def _source(self, rows: slice | Index) -> Index:
        """Rows of the data."""
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(self.shape[0])) if self.index is None else rows
        return np.asarray(rows if self.index is None else self.index[rows], dtype=np.intp)

    def _dense_rows(self, rows: slice | Index) -> Array:
        from maxmargin.kernels._gather import gather_dense

        source = self._source(rows)
        out = np.empty((len(source), self.shape[1]), self.dtype)
        gather_dense(*self._arrays, source, self._shift, out)
        return out

    def _sparse_rows(self, rows: slice | Index) -> Any:
        from maxmargin.kernels._gather import gather_rows, lengths

        source, d = self._source(rows), self.shape[1]
        indptr, columns, data = self._arrays
        starts = lengths(indptr, data, d, source)
        kind = np.int32 if max(starts[-1], len(source), d) < 2**31 else np.int64
        out = sp.csr_array((len(source), d), dtype=self.dtype)
        out.indptr = starts.astype(kind)
        out.indices, out.data = np.empty(starts[-1], kind), np.empty(starts[-1], self.dtype)
        gather_rows(indptr, columns, data, d, source, out.indptr, out.indices, out.data)
        return out

    def scatter(self, start: int, stop: int, values: Array, width: int, slope: Any) -> None:
        """Lay the rows start:stop out in panels of so many samples, times `slope`."""
        from maxmargin.kernels._gather import scatter

        rows = slice(start, stop)
        scatter(*self._arrays, self._source(rows), self._shift, values, width, self.shape[1], slope)

    def parts(self) -> Any:
        """All rows, some at a time: yields (start, stop, rows)."""
        step = max(1, costs.COPIED_VALUES // max(1, self.shape[1]))
        for s in range(0, self.shape[0], step):
            if s:
                check()
            yield s, min(self.shape[0], s + step), self[s : s + step]

    @lazy
    def _lengths(self) -> tuple[int, int]:
        from maxmargin.kernels._gather import lengths

        indptr, _, data = self._arrays
        starts = lengths(indptr, data, self.shape[1], self._source(slice(None)))
        return int(starts[-1]), int(np.max(np.diff(starts), initial=0))

    @property
    def nnz(self) -> int:
        """Non-zeros of the rows."""
        return self._lengths[0]

    @property
    def longest(self) -> int:
        """Non-zeros of the row that has most."""
        return self._lengths[1]
