"""Samples that come and go, and the kernel values between them: shared by the problems over them."""

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


class Samples:
    """Samples that can be added and removed.

    Removed samples keep their places until `compact`; buffers have unused places at the end.

    Attributes
    ----------
    n : int
        Places in use.
    X : array or CSR matrix
        The data.
    diag : ndarray
        The diagonal of K.
    K : ndarray or None
        The kernel matrix of all places, or None where it does not fit `most_bytes`.
    """

    def __init__(self, kernel: Kernel, *, most_bytes: int, n_jobs: int | None) -> None:
        self.kernel, self.most_bytes = kernel, int(most_bytes)
        self.threads, self.n_jobs = Threads(n_jobs), n_jobs
        self.n = 0
        self.X: Any = None
        self.diag = np.zeros(0)
        self.K: Floats | None = np.zeros((0, 0))

    def append(self, X: Any) -> Index:
        """Add samples and compute their kernel values; return their places."""
        diag = self.kernel.diag(self.kernel.prepare(X))
        if not np.isfinite(diag).all():
            raise InexactError("Kernel values overflow")
        new = np.arange(self.n, self.n + X.shape[0])
        self._store(X)
        self.diag[new] = diag
        if self.K is not None:
            for some in np.array_split(new, -(-len(new) // costs.EXACT_ROWS)):
                part = self.kernel.block(self.X[some], self.X[np.arange(self.n)])
                self.K[some, : self.n], self.K[: self.n, some] = part, part.T
        return new

    def _store(self, X: Any) -> None:
        """Append rows to the data; buffers grow by half of their size."""
        needed = self.n + X.shape[0]
        capacity = len(self.diag)
        if needed > capacity:
            capacity = max(needed, capacity * 3 // 2, costs.EXACT_PLACES)
            self.diag = longer(self.diag[: self.n], capacity)
            if self.K is not None:
                fits = 8 * capacity**2 <= self.most_bytes
                self.K = longer(self.K[: self.n, : self.n], capacity, capacity) if fits else None
        if sp.issparse(X):
            self.X = sp.csr_array(X) if self.X is None else sp.csr_array(sp.vstack([self.X, X]))
        else:
            if self.X is None:
                self.X = np.zeros((0, X.shape[1]), X.dtype)
            dtype = np.result_type(self.X, X)
            if needed > len(self.X) or dtype != self.X.dtype:
                self.X = longer(self.X[: self.n].astype(dtype), capacity, X.shape[1])
            self.X[self.n : needed] = X
        self.n = needed

    def truncate(self, n: int) -> None:
        """Remove the samples behind the first n places."""
        if sp.issparse(self.X):
            self.X = self.X[:n]
        self.n = n

    def compact(self, kept: Index) -> None:
        """Keep these places only, in this order."""
        if self.K is not None:
            self.K = self.K[np.ix_(kept, kept)]
        self.X, self.diag = self.X[kept], self.diag[kept]
        self.n = len(kept)

    def block(self, a: Index, b: Index) -> Floats:
        """K between two sets of places."""
        if self.K is not None:
            return self.K[np.ix_(a, b)]
        if not len(a) or not len(b):
            return np.zeros((len(a), len(b)))
        return self.kernel.block(self.X[a], self.X[b])

    def product(self, rows: Index, coef: Floats, at: Index) -> Floats:
        """``K[at, rows] @ coef``."""
        if self.K is not None and len(at) == self.n and len(at) and at[-1] == self.n - 1:
            return coef @ self.K[rows, : self.n]  # of all places: whole rows
        out = np.zeros(len(at))
        for start in range(0, len(at), costs.EXACT_ROWS):
            part = slice(start, start + costs.EXACT_ROWS)
            out[part] = self.block(at[part], rows) @ coef
        return out


def longer(old: NDArray[Any], *shape: int) -> NDArray[Any]:
    """An array of this shape that begins with `old`, and zeros behind."""
    new = np.zeros(shape, old.dtype)
    new[tuple(slice(k) for k in old.shape)] = old
    return new
