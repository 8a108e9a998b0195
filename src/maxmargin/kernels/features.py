"""Linear kernels through weights: sums of rows of X X' as X w with w = X'u.

Such a sum takes the non-zeros of X once, instead of once per row of the kernel matrix, and is computed in
float64 throughout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _costs as costs
from maxmargin._compiled.jit import REORDER, compiled
from maxmargin._compiled.limits import slices
from maxmargin._types import Floats, Index
from maxmargin.kernels.panels import Lines


@dataclass(frozen=True)
class Features:
    """The samples of a linear kernel in float64.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        The samples, in C order or with one type of indices.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.kernels.features import Features
    >>> features = Features(np.array([[1.0, 0.0], [1.0, 2.0]]))
    >>> w = features.weights(np.array([1]), np.array([3.0]))
    >>> w, features.values(w, np.array([0, 1]))
    (array([3., 6.]), array([ 3., 15.]))
    """

    X: Any

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def width(self) -> float:
        """Non-zeros of a sample, on average."""
        return float(self.X.nnz / max(1, self.X.shape[0])) if sp.issparse(self.X) else float(self.d)

    @property
    def cost(self) -> float:
        """Operations per sample of a product with weights, for slices of work."""
        return costs.PRODUCT_TIME * self.width

    @property
    def lines(self) -> Lines:
        """The samples for compiled loops."""
        return Lines.of(self.X)

    @property
    def _entries(self) -> tuple[NDArray[Any], ...]:
        """The arrays of a CSR matrix, for compiled loops."""
        return self.lines[:3]

    def weights(self, rows: Index, coef: Floats) -> Floats:
        """``X[rows].T @ coef``."""
        w = np.zeros(self.d)
        n = self.X.shape[0]
        if not sp.issparse(self.X):
            if len(rows) > costs.WEIGHTS_GATHERED * n:
                u = np.bincount(rows, weights=coef, minlength=n)
                for s, e in slices(n, self.cost):
                    w += u[s:e] @ self.X[s:e]
                return w
            for s, e in slices(len(rows), self.cost, most=costs.WEIGHTS_ROWS):
                w += coef[s:e] @ self.X[rows[s:e]]
            return w
        for s, e in slices(len(rows), self.cost):
            _add_weights(*self._entries, rows[s:e], coef[s:e], w)
        return w

    def values(self, w: Floats, rows: Index) -> Floats:
        """``X[rows] @ w``."""
        out = np.zeros(len(rows))
        whole = len(rows) == self.X.shape[0] and np.array_equal(rows, np.arange(len(rows)))
        gathered = not (whole or sp.issparse(self.X))
        for s, e in slices(len(rows), self.cost, most=costs.WEIGHTS_ROWS if gathered else None):
            if whole:
                self.add(out[s:e], w, s, e)
            elif gathered:
                out[s:e] = self.X[rows[s:e]] @ w
            else:
                _add_values(*self._entries, rows[s:e], w, out[s:e])
        return out

    def add(self, out: NDArray[Any], w: Floats, start: int, stop: int) -> None:
        """Add ``X[start:stop] @ w`` to `out`."""
        if sp.issparse(self.X):
            _add_values(*self._entries, np.arange(start, stop), w, out)
        else:
            out += self.X[start:stop] @ w

    def normal(self, rows: Index) -> Floats:
        """``X[rows].T @ X[rows]``, of which the lower triangle is filled."""
        out = np.zeros((self.d, self.d))
        sparse = sp.issparse(self.X)
        for s, e in slices(len(rows), self.width**2, most=None if sparse else costs.WEIGHTS_ROWS):
            if sparse:
                _add_normal(*self._entries, rows[s:e], out)
            else:
                part = self.X[rows[s:e]]
                out += part.T @ part
        return out


@compiled(fastmath=REORDER)
def _add_values(indptr, indices, data, rows, w, out):
    """``out += X[rows] @ w`` for CSR rows."""
    for r in range(len(rows)):
        a = 0.0
        for k in range(indptr[rows[r]], indptr[rows[r] + 1]):
            a += data[k] * w[np.uint32(indices[k])]
        out[r] += a


@compiled()
def _add_weights(indptr, indices, data, rows, coef, w):
    """``w += X[rows].T @ coef`` for CSR rows."""
    for r in range(len(rows)):
        c = coef[r]
        for k in range(indptr[rows[r]], indptr[rows[r] + 1]):
            w[np.uint32(indices[k])] += c * data[k]


@compiled()
def _add_normal(indptr, indices, data, rows, out):
    """Add ``X[rows].T @ X[rows]`` to the lower triangle of `out`; indices ascend within a row."""
    for r in range(len(rows)):
        start, end = indptr[rows[r]], indptr[rows[r] + 1]
        for k in range(start, end):
            v, line = data[k], out[np.uint32(indices[k])]
            for t in range(start, k + 1):
                line[np.uint32(indices[t])] += v * data[t]
