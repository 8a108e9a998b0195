r"""Kernel matrices of one data set for many parameters, from one matrix.

All kernels of one family in a search are computed from one matrix of the data: squared distances for
``rbf``, inner products for ``linear``, ``poly`` and ``sigmoid``. A kernel of another width is one pass over
it,

.. math:: k_\gamma(x, x') = \exp(-\gamma \|x - x'\|^2).

The power :math:`k_\gamma = k_{\gamma_0}^{\gamma/\gamma_0}` of a kernel matrix is no substitute: values of a
narrow kernel underflow, and a wider one cannot be computed from them. Folds are subsets of rows and columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances
from sklearn.utils.extmath import row_norms

from maxmargin import _costs as costs
from maxmargin._compiled.memo import Memo
from maxmargin._compiled.memory import Buffers
from maxmargin.kernels._columns import compact
from maxmargin.kernels.centre import central
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.layout import without_duplicates

Array = NDArray[Any]
# Multiple of the median squared norm from which on the distances of a row are computed from differences.
_DISTANT = 1e6


class SharedKernels:
    """Kernel matrices of all rows of X, each computed once for all threads.

    Parameters
    ----------
    X : array-like or sparse matrix
        The data; for ``kernel="precomputed"`` the matrix itself.
    dtype : dtype
        Precision of the matrices.
    keep : int
        Number of matrices that are kept; the least recently used goes first.
    buffers : Buffers, optional
        The memory of the matrices; fresh memory would cost more than the values of a kernel.

    Examples
    --------
    >>> from maxmargin.kernels import Kernel
    >>> from maxmargin.kernels.shared import SharedKernels
    >>> shared = SharedKernels([[0.0], [1.0]], "float64")
    >>> shared.matrix(Kernel("rbf", gamma=2.0)).round(4)
    array([[1.    , 0.1353],
           [0.1353, 1.    ]])
    """

    def __init__(
        self,
        X: Any,
        dtype: Any = np.float32,
        keep: int = costs.KEPT_MATRICES,
        buffers: Buffers | None = None,
    ) -> None:
        self.X, self.dtype = X, np.dtype(dtype)
        self._buffers = Buffers() if buffers is None else buffers
        self._matrices, self._base = Memo(keep), Memo()

    def matrix(self, kernel: Kernel) -> Array:
        """Return the kernel matrix; the same array for the same kernel while it is kept."""
        return self._matrices.get(kernel, lambda: self._compute(kernel))

    def distances(self, name: str) -> Array:
        """Return squared distances of all rows ("rbf"), or sums of absolute differences ("laplacian")."""
        return self._of(name)

    def _compute(self, kernel: Kernel) -> Array:
        if kernel.name == "precomputed":
            return np.ascontiguousarray(self.X, dtype=self.dtype)
        if kernel.composed:
            X: Any = self.X if hasattr(self.X, "dtype") else np.asarray(self.X, dtype=np.float64)
            points = kernel.prepare(X.tocsr() if sp.issparse(X) else X)
            K = self._buffers.empty((points.n, points.n), self.dtype)
            kernel.fill(points, points, 0, points.n, K, np.arange(points.n))
            return K
        if callable(kernel.name):
            K = np.asarray(kernel.name(self.X, self.X))
            if K.shape != (len(K), len(K)):
                raise ValueError(f"The kernel must return a square matrix, got one of shape {K.shape}.")
            return np.ascontiguousarray(K, dtype=self.dtype)
        if kernel.name in ("rbf", "laplacian"):
            from maxmargin.kernels._widths import exponentials  # compiled: not at import

            D = self._of(str(kernel.name))
            return exponentials(D, kernel.gamma, self._buffers.empty(D.shape, D.dtype))
        G = self._of("linear")
        if kernel.name == "linear":
            return G
        from maxmargin.kernels._form import KINDS
        from maxmargin.kernels._tiles import transform  # compiled: not at import

        out, number = self._buffers.empty(G.shape, G.dtype), G.dtype.type
        slope, shift = number(kernel.gamma), number(kernel.coef0)
        transform(KINDS[kernel.name], G, slope, shift, int(kernel.degree), out, np.arange(len(G)), 0)
        return out

    def _of(self, name: str) -> Array:
        return self._base.get(name, lambda: self._distances(name))

    def _distances(self, name: str) -> Array:
        X: Any = self.X if hasattr(self.X, "dtype") else np.asarray(self.X, dtype=np.float64)
        X = compact(without_duplicates(X.tocsr())) if sp.issparse(X) else X
        if name == "rbf":
            return _squared_distances(X, self.dtype, self._buffers)
        elif name == "laplacian":
            D = manhattan_distances(X)
        else:
            D = X @ X.T
            D = D.toarray() if hasattr(D, "toarray") else D
        return np.ascontiguousarray(D, dtype=self.dtype)


def _squared_distances(X: Any, dtype: Any, buffers: Buffers) -> Array:
    """Squared distances of all rows, from norms and products unless these cancel."""
    from maxmargin.kernels._accurate import squared_distances  # compiled: not at import

    given = X
    with np.errstate(over="ignore", invalid="ignore"):  # rows that overflow are distant
        if sp.issparse(X):
            D = np.ascontiguousarray(euclidean_distances(X, squared=True), dtype=dtype)
            norm = row_norms(X, squared=True)
        else:
            X = np.ascontiguousarray(X - central(X))  # a common offset of all rows would cost digits
            norm = row_norms(X, squared=True)
            D = _from_products(X, norm, buffers.empty((len(X), len(X)), dtype))
    distant = np.flatnonzero(~(norm <= _DISTANT * np.median(norm)))
    if len(distant):
        with np.errstate(over="ignore"):
            D[distant] = squared_distances(given[distant], given)
        D[:, distant] = D[distant].T
    np.fill_diagonal(D, 0.0)
    return D


def _from_products(X: Array, norm: Array, D: Array) -> Array:
    """Fill D with squared distances of rows with given squared norms, in tiles that stay in the cache."""
    from maxmargin.kernels._widths import fill_distances  # compiled: not at import

    n, size = len(X), costs.DISTANCE_TILE
    products = np.empty(size * size)
    for a in range(0, n, size):
        b = min(a + size, n)
        for c in range(a, n, size):
            d = min(c + size, n)
            tile = products[: (b - a) * (d - c)].reshape(b - a, d - c)
            np.matmul(X[a:b], X[c:d].T, out=tile)
            fill_distances(tile, norm, a, c, D)
    return D
