"""Rows with multipliers and a gradient, and the kernel values between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin._compiled.threads import Threads
from maxmargin._types import Floats, Index
from maxmargin.kernels.kernel import Kernel
from maxmargin.solvers import costs
from maxmargin.solvers.incremental.exactness import InexactError


class StoredRows:
    """Rows that can be added and removed.

    Removed rows keep their places until `compact`; vectors have an entry for each place, and unused places
    at the end.

    Attributes
    ----------
    n : int
        Places in use.
    X : array or CSR matrix
        The data.
    alive : ndarray of bool
        Whether the row is still held.
    y, ridge : ndarray
        Side (-1 or 1) of each row, and its 1 / (2C).
    u, g : ndarray
        Multipliers, and the gradient (K + D) u - y.
    diag : ndarray
        The diagonal of K + D.
    lo, hi : ndarray
        Bounds of the multipliers.
    """

    _vectors = ("alive", "y", "ridge", "u", "g", "diag", "lo", "hi")

    def __init__(self, kernel: Kernel, *, most_bytes: int, n_jobs: int | None) -> None:
        self.kernel, self.most_bytes = kernel, int(most_bytes)
        self.threads, self.n_jobs = Threads(n_jobs), n_jobs
        self.n = 0
        self.X: Any = None
        self.alive = np.zeros(0, np.bool_)
        self.y, self.ridge, self.u, self.g, self.diag, self.lo, self.hi = (np.zeros(0) for _ in range(7))
        # K between all places, or None where it does not fit `most_bytes`.
        self.K: Floats | None = np.zeros((0, 0))

    @property
    def held(self) -> Index:
        """Places of the rows that are held, in the order of arrival."""
        return np.flatnonzero(self.alive[: self.n])

    def rebind(self) -> None:
        """Called after vectors were replaced by longer or shorter ones."""

    def append(self, X: Any, y: Floats, ridge: Floats) -> Index:
        """Add rows with multiplier zero, and compute their kernel values; return their places."""
        new = np.arange(self.n, self.n + len(y))
        self._store(X)
        self.y[new], self.ridge[new], self.alive[new] = y, ridge, True
        self.lo[new], self.hi[new] = np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0)
        self.diag[new] = self.kernel.diag(self.kernel.prepare(self.X[new])) + ridge
        if not np.isfinite(self.diag[new]).all():
            raise InexactError("Kernel values overflow")
        if self.K is not None:
            for some in np.array_split(new, -(-len(new) // costs.EXACT_ROWS)):
                part = self.kernel.block(self.X[some], self.X[np.arange(self.n)])
                self.K[some, : self.n], self.K[: self.n, some] = part, part.T
        self.g[new] = -y
        return new

    def _store(self, X: Any) -> None:
        """Append rows to the data; buffers grow by half of their size."""
        needed = self.n + X.shape[0]
        capacity = len(self.u)
        if needed > capacity:
            capacity = max(needed, capacity * 3 // 2, costs.EXACT_PLACES)
            for name in self._vectors:
                setattr(self, name, _longer(getattr(self, name)[: self.n], capacity))
            if self.K is not None:
                fits = 8 * capacity**2 <= self.most_bytes
                self.K = _longer(self.K[: self.n, : self.n], capacity, capacity) if fits else None
            self.rebind()
        if sp.issparse(X):
            self.X = sp.csr_array(X) if self.X is None else sp.csr_array(sp.vstack([self.X, X]))
        else:
            if self.X is None:
                self.X = np.zeros((0, X.shape[1]), X.dtype)
            dtype = np.result_type(self.X, X)
            if needed > len(self.X) or dtype != self.X.dtype:
                self.X = _longer(self.X[: self.n].astype(dtype), capacity, X.shape[1])
            self.X[self.n : needed] = X
        self.n = needed

    def compact(self) -> None:
        """Release the places of rows that are no longer held."""
        kept = self.held
        if self.K is not None:
            self.K = self.K[np.ix_(kept, kept)]
        self.X = self.X[kept]
        for name in self._vectors:
            setattr(self, name, getattr(self, name)[kept])
        self.n = len(kept)
        self.rebind()

    def block(self, a: Index, b: Index) -> Floats:
        """K between two sets of rows."""
        if self.K is not None:
            return self.K[np.ix_(a, b)]
        if not len(a) or not len(b):
            return np.zeros((len(a), len(b)))
        return self.kernel.block(self.X[a], self.X[b])

    def product(self, rows: Index, coef: Floats, at: Index | None = None) -> Floats:
        """``K[at, rows] @ coef``, for all rows by default."""
        if self.K is not None and at is None:
            return coef @ self.K[rows, : self.n]
        at = np.arange(self.n) if at is None else at
        out = np.zeros(len(at))
        for start in range(0, len(at), costs.EXACT_ROWS):
            part = slice(start, start + costs.EXACT_ROWS)
            out[part] = self.block(at[part], rows) @ coef
        return out

    def update(self, base: Floats) -> None:
        """Change the gradient from that of the multipliers `base` to that of u."""
        moved = np.flatnonzero(self.u[: self.n] != base[: self.n])
        delta = self.u[moved] - base[moved]
        self.g[: self.n] += self.product(moved, delta)
        self.g[moved] += self.ridge[moved] * delta

    def recompute_gradient(self) -> None:
        """Compute the gradient from u alone: rounding errors of many updates add up."""
        support = np.flatnonzero(self.u[: self.n])
        self.g[: self.n] = self.product(support, self.u[support]) - self.y[: self.n]
        self.g[support] += self.ridge[support] * self.u[support]


def _longer(old: NDArray[Any], *shape: int) -> NDArray[Any]:
    new = np.zeros(shape, old.dtype)
    new[tuple(slice(k) for k in old.shape)] = old
    return new
