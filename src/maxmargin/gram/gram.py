"""Rows of one Gram matrix: computed in batches, cached within a byte budget, shared by subsets.

Solvers do not see a matrix Q that contains the labels. They see plain kernel rows in the order of the
data, so that the same rows serve every class pair, fold, C and solver; `maxmargin._types.Rows` is the
interface. The work is done in three ways:

- `Gram.add` adds a combination of rows to a vector. This is the gradient update of every solver.
  Rows that fit the cache are kept, the others are computed and used tile by tile.
- `Gram.block` computes a small block directly; gathering it from cached rows would be slower.
- `Gram.ensure` puts rows into `Gram.table` for compiled loops that read them one at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike

from maxmargin._compiled.threads import Threads
from maxmargin._types import Floats, Index, Rows
from maxmargin.gram.on_demand import DataRows
from maxmargin.gram.view import View
from maxmargin.kernels._columns import compact
from maxmargin.kernels.functions import opaque
from maxmargin.kernels.gamma import resolve_gamma
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.layout import prefers_sparse, without_duplicates
from maxmargin.kernels.points import Points
from maxmargin.kernels.streamed import streams

# Largest kernel value whose squares and products are within the range of float32.
_LARGEST_FLOAT32 = 1e12


class Gram(DataRows):
    """Rows of the kernel matrix of one data set.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The data; for ``kernel="precomputed"`` the matrix itself, for a callable anything that can be
        indexed. A reference is kept. A matrix is read in place, and should be symmetric: rows are used, or
        columns if it is in Fortran order and symmetric but for rounding.
    kernel : str, callable or Kernel
        See `maxmargin.kernels`.
    gamma : {"scale", "auto"} or float
        Kernel coefficient.
    degree, coef0
        Parameters of the poly and sigmoid kernels.
    cache_bytes : int
        Budget of the row cache; never exceeded.
    dtype : {float32, float64}
        Precision of the rows. Sums over rows are always float64.
    index : array of int, optional
        Use only these rows of `X`, in this order.
    segments : array of int, optional
        Column offsets ``[0, ..., n]`` (class by class, say). Where the whole matrix fits the budget a
        row is then computed segment by segment, as subsets ask for it.
    n_jobs : int, optional
        Threads; None for all cores.

    Attributes
    ----------
    n : int
        Number of rows.
    diag : ndarray of shape (n,)
        k(x, x), float64.
    n_evals, n_calls : int
        Kernel values computed, and kernel values used (cached or not).

    Examples
    --------
    >>> from maxmargin.gram import Gram
    >>> gram = Gram([[0.0], [1.0], [2.0]], kernel="linear", dtype="float64")
    >>> gram.rows([1, 2])
    array([[0., 1., 2.],
           [0., 2., 4.]])
    >>> gram.n_evals, gram.n_calls
    (6, 6)
    """

    def __init__(
        self,
        X: Any,
        kernel: str | Callable[..., Any] | Kernel = "rbf",
        *,
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        cache_bytes: int = 200 << 20,
        dtype: DTypeLike = np.float32,
        index: ArrayLike | None = None,
        segments: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> None:
        if not opaque(getattr(kernel, "name", kernel)) and not hasattr(X, "shape"):
            X = np.asarray(X, dtype=np.float64)
        if not isinstance(kernel, Kernel):
            plain = callable(kernel) or kernel in ("precomputed", "linear")
            number = 1.0 if plain else resolve_gamma(gamma, X)
            kernel = Kernel(kernel, gamma=number, degree=degree, coef0=coef0)
        self.index = None if index is None else np.asarray(index, dtype=np.intp)
        if sp.issparse(X) and not kernel.opaque and not kernel.n_features:
            X = compact(sp.csr_array(X), self.index)
        self.X, self.kernel, self.cache_bytes = X, kernel, int(cache_bytes)
        # Given values are not rounded: only a float32 matrix has float32 rows.
        rounded = kernel.name == "precomputed" and X.dtype != np.float32
        self.dtype = np.dtype(np.float64 if rounded else dtype)
        if self.dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, got {self.dtype}.")
        self.points = self._prepared()
        self.n = self.points.n
        self.columns: Index = np.arange(self.n)
        self.diag: Floats = kernel.diag(self.points)
        large = not np.abs(self.diag).max(initial=0.0) <= _LARGEST_FLOAT32  # or not a number
        if self.dtype == np.float32 and (large or not kernel.float32_suffices(self.points)):
            self.dtype = np.dtype(np.float64)
            self.points = self._prepared()
            self.diag = kernel.diag(self.points)
        if large and not np.isfinite(self.diag).all():
            raise ValueError(
                "Kernel values of these data are too large for float64: scale the features, for example with "
                "StandardScaler, or use a smaller gamma or degree."
            )
        self.threads = Threads(n_jobs)
        self.n_evals = self.n_calls = 0
        self.cost = kernel.cost(self.points)
        self._lock = threading.Lock()
        self._asked: ArrayLike = [0, self.n]
        self._open_cache(segments)

    def _prepared(self) -> Points:
        """The points; large data are not copied."""
        stream = False
        if self.kernel.name in ("rbf", "laplacian", "poly", "sigmoid"):
            n = self.X.shape[0] if self.index is None else len(self.index)
            stream = streams(self.X, self.dtype, n, prefers_sparse(self.X))
            if stream and sp.issparse(self.X):
                self.X = without_duplicates(self.X)  # once
        return self.kernel.prepare(self.X, self.dtype, index=self.index, stream=stream)

    # -- relatives ---------------------------------------------------------------------------

    def remote_gradient(self, problem: Any) -> None:
        """None: the rows are in this process."""

    def view(self, index: ArrayLike, cache_bytes: int | None = None) -> Rows:
        """Return rows and columns `index` as an object with the same interface.

        If the whole matrix fits the budget, the view shares its rows. Otherwise it has a cache of its own,
        of `cache_bytes`, in which shorter rows make better use of the budget.
        """
        index = np.asarray(index, dtype=np.intp)
        if self.holds_all:
            return View(self, index)
        return self.relative(self.dtype, index, cache_bytes)

    @property
    def in_place(self) -> bool:
        """Whether compiled code can use `table` as the matrix; a given one may have another layout."""
        usable = self._table is None or self._table.flags.carray
        return bool(self.fixed and self.releases_gil and usable)

    def part(self, index: Index) -> Gram | None:
        """Return rows and columns `index` with a cache of their own, in the unused part of this budget.

        If that is not enough for all of them, this cache is emptied and its budget lent, until `reopen`;
        if it is enough, nothing new should be kept here while the part is in use. None for a given matrix,
        whose rows need no cache.
        """
        if self.given:
            return None
        row = self._stride * self.dtype.itemsize
        held = np.count_nonzero(self.valid.any(axis=1))
        spare = self.cache_bytes - int(held) * row
        need = len(index) * self._length(len(index)) * self.dtype.itemsize
        if spare < need:
            self.lend()
            spare = self.cache_bytes
        return self.relative(self.dtype, index, min(spare, need))

    def lend(self, borrower: Any = None) -> None:
        """Empty the cache and use none until `reopen`, so that its budget is free for other data.

        The attribute `borrower` has these until then, for further problems over the same rows.
        """
        self._open_cache(None, lent=True)
        self.borrower = borrower

    def reopen(self) -> None:
        """Take back a budget that was lent."""
        if self.lent:
            self._open_cache(None)

    def double(self, cache_bytes: int | None = None) -> Gram:
        """Return the same matrix with float64 rows.

        Without a budget of its own the result takes over that of this cache, which is emptied.
        """
        if cache_bytes is not None:
            return self.relative(np.float64, self.columns, cache_bytes)
        if self.dtype == np.float64:
            return self
        self._open_cache(None, lent=self.lent)
        precise = self.relative(np.float64, self.columns)
        precise.count(evals=self.n_evals, calls=self.n_calls)
        return precise

    def relative(self, dtype: DTypeLike, index: Index, cache_bytes: int | None = None) -> Gram:
        """Return a Gram of the rows `index` with a cache of its own and the same threads."""
        whole = index is self.columns
        relative = Gram(
            self.X,
            self.kernel,
            cache_bytes=self.cache_bytes if cache_bytes is None else cache_bytes,
            dtype=dtype,
            index=self.index if whole else self._samples(index),
            segments=self.segments if whole else None,
        )
        relative.threads = self.threads
        return relative
