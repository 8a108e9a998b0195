"""Rows of one Gram matrix: computed in batches, cached within a byte budget, shared by subsets.

Solvers do not see a matrix Q with labels baked in. They see plain kernel rows in the order of the
data, so the same rows serve every class pair, fold, C and solver. The work is done in three ways:

- `Gram.add` adds a combination of rows to a vector. This is the gradient update of every solver.
  Rows that find a place in the cache are kept, the others are computed and used tile by tile.
- `Gram.block` computes a small block directly; gathering it from cached rows would be slower.
- `Gram.ensure` puts rows into `Gram.table` for compiled loops that read them one at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray

from maxmargin._compiled.lazy import lazy
from maxmargin._compiled.threads import Threads
from maxmargin._sklearn import safe_indexing
from maxmargin._types import Index
from maxmargin.gram.cache import Tally
from maxmargin.gram.sums import SummedRows
from maxmargin.kernels._columns import compact
from maxmargin.kernels.expansion import expand
from maxmargin.kernels.gamma import resolve_gamma
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.rounding import Rounding

if TYPE_CHECKING:
    from maxmargin.gram.view import View

Array = NDArray[Any]

# Kernel values up to which float32 rows have the range for squares and products of them.
_LARGEST_FLOAT32 = 1e12


class Gram(SummedRows):
    """Rows of the kernel matrix of one data set.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The data; for ``kernel="precomputed"`` the matrix itself, for a callable anything that can be
        indexed. A reference is kept.
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
        if not callable(getattr(kernel, "name", kernel)) and not hasattr(X, "shape"):
            X = np.asarray(X, dtype=np.float64)
        if not isinstance(kernel, Kernel):
            plain = callable(kernel) or kernel in ("precomputed", "linear")
            number = 1.0 if plain else resolve_gamma(gamma, X)
            kernel = Kernel(kernel, gamma=number, degree=degree, coef0=coef0)
        self.index: Index | None = None if index is None else np.asarray(index, dtype=np.intp)
        if sp.issparse(X) and not callable(kernel.name):
            X = compact(sp.csr_array(X), self.index)
        self.X, self.kernel, self.cache_bytes = X, kernel, int(cache_bytes)
        # A given matrix is read where it lies: converting it would cost what the cache should save.
        self.dtype = np.dtype(np.float64 if kernel.name == "precomputed" else dtype)
        if self.dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, got {self.dtype}.")
        self.points = kernel.prepare(X, self.dtype, index=self.index)
        self.n = self.points.n
        self.columns: Index = np.arange(self.n)
        self.diag: Array = kernel.diag(self.points)
        large = not np.max(np.abs(self.diag), initial=0.0) <= _LARGEST_FLOAT32
        if self.dtype == np.float32 and (large or not kernel.float32_suffices(self.points)):
            self.dtype = np.dtype(np.float64)
            self.points = kernel.prepare(X, self.dtype, index=self.index)
            self.diag = kernel.diag(self.points)
        if not np.isfinite(self.diag).all():
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

    @lazy
    def rounding(self) -> Rounding:
        """Bounds of the rounding errors of the rows."""
        return self.kernel.rounding(self.points, self.dtype, self.diag)

    @lazy
    def double_rounding(self) -> Rounding:
        """The same for float64 values of the data as they were given."""
        return self.kernel.rounding(self.points, np.float64, self.diag)

    def rows(self, idx: ArrayLike, tally: Tally | None = None) -> Array:
        """Rows `idx` of the matrix: a read-only array of shape (len(idx), n)."""
        idx = np.asarray(idx, dtype=np.intp)
        tally = tally or self
        tally.count(calls=len(idx) * self.n)
        if self.holds_all:
            self.ensure(idx, tally=tally)
            out = self.table[self.slot[idx], : self.n]
        else:
            out = np.empty((len(idx), self.n), self.dtype)
            self._place(idx)
            self._compute(np.unique(idx[(self.slot[idx] >= 0) & ~self.valid[idx, 0]]), 0, tally)
            held = self.slot[idx] >= 0
            out[held] = self.table[self.slot[idx[held]], : self.n]
            rest = np.flatnonzero(~held)
            if not len(rest):
                out.flags.writeable = False
                return out
            A = self.points.take(idx[rest])
            self._spread(
                lambda a, b: self.kernel.fill(A, self.laid_out, a, b, out, rest),
                self.n,
                len(rest) * self.cost,
            )
            tally.count(evals=len(rest) * self.n)
        out.flags.writeable = False
        return out

    def block(self, rows: ArrayLike, columns: ArrayLike, tally: Tally | None = None) -> Array:
        """The block ``K[rows][:, columns]``, computed directly."""
        tally = tally or self
        rows, columns = np.asarray(rows, dtype=np.intp), np.asarray(columns, dtype=np.intp)
        tally.count(calls=len(rows) * len(columns))
        if self.kernel.name == "precomputed":
            return np.asarray(self.points.X[np.ix_(rows, columns)])
        out = np.empty((len(rows), len(columns)), self.dtype)
        A, B = self.points.take(rows), self.points.take(columns)
        slots = np.arange(len(rows))
        self._spread(
            lambda a, b: self.kernel.fill(A, B, a, b, out, slots),
            len(columns),
            len(rows) * self.cost,
        )
        tally.count(evals=out.size)
        return out

    # -- relatives ---------------------------------------------------------------------------

    def view(self, index: ArrayLike, cache_bytes: int | None = None) -> Gram | View:
        """Rows and columns `index` as a Gram of their own.

        Where the whole matrix fits the budget the view shares its rows; otherwise it has a cache of
        its own, in which short rows make better use of the budget. `cache_bytes` is the budget of
        such a cache, where several views are in use at once.
        """
        index = np.asarray(index, dtype=np.intp)
        if self.holds_all:
            from maxmargin.gram.view import View

            return View(self, index)
        return self._relative(self.dtype, index, cache_bytes)

    @property
    def releases_gil(self) -> bool:
        """Whether rows are computed outside the interpreter: not by a callable."""
        return not callable(self.kernel.name)

    @property
    def can_part(self) -> bool:
        """Whether `part` is worth while: not for a matrix that is read where it lies."""
        return self.kernel.name != "precomputed"

    def part(self, index: Index) -> Gram:
        """Rows and columns `index` with a cache of their own, in what this one's budget leaves free.

        If that is not enough for all of them, this cache is emptied and its budget lent, until `reopen`;
        if it is, nothing new should be kept here while the part lives.
        """
        row = self._stride * self.dtype.itemsize
        held = np.count_nonzero(self.valid.any(axis=1))
        spare = self.cache_bytes - int(held) * row
        need = len(index) * self._length(len(index)) * self.dtype.itemsize
        if spare < need:
            self.lend()
            spare = self.cache_bytes
        return self._relative(self.dtype, index, min(spare, need))

    def lend(self) -> None:
        """Empty the cache and do without it, while something else uses its budget; until `reopen`."""
        self._open_cache(None, lent=True)

    def reopen(self) -> None:
        """Take back a budget that was lent."""
        if self.lent:
            self._open_cache(None)

    def double(self, cache_bytes: int | None = None) -> Gram:
        """The same matrix with float64 rows.

        Without a budget of its own the twin takes over that of this cache, which is emptied.
        """
        if cache_bytes is not None:
            return self._relative(np.float64, self.columns, cache_bytes)
        if self.dtype == np.float64:
            return self
        self._open_cache(None, lent=self.lent)
        twin = self._relative(np.float64, self.columns)
        twin.n_evals, twin.n_calls = self.n_evals, self.n_calls
        return twin

    def _relative(self, dtype: DTypeLike, index: Index, cache_bytes: int | None = None) -> Gram:
        """A Gram of the rows `index` with a cache of its own and the same threads."""
        whole = index is self.columns
        own = index if self.index is None else self.index[index]
        relative = Gram(
            self.X,
            self.kernel,
            cache_bytes=self.cache_bytes if cache_bytes is None else cache_bytes,
            dtype=dtype,
            index=self.index if whole else own,
            segments=self.segments if whole else None,
        )
        relative.threads = self.threads
        return relative

    def exact(self, rows: Index, columns: Index, coef: Array) -> Array:
        """``K[rows, columns] @ coef`` in float64 throughout, whatever `dtype` is.

        Nothing is kept, and nothing counted: this is the certificate's work, not the algorithm's.
        """
        take = (lambda i: i) if self.index is None else self.index.__getitem__
        if self.kernel.name == "precomputed":
            out = np.zeros(len(rows))
            for s in range(0, len(columns), 4096):
                part = slice(s, s + 4096)
                out += self.points.X[np.ix_(rows, columns[part])] @ coef[part]
        else:
            vectors = self.kernel.prepare(self.X, np.float64, index=take(columns), like=self.points)
            samples = self.X[take(rows)] if hasattr(self.X, "dtype") else safe_indexing(self.X, take(rows))
            ends = np.array([0, len(columns)])
            out = expand(self.kernel, samples, vectors, coef[None], ends, threads=self.threads)[0, :, 0]
        return out

    def accurate(self, rows: Index, columns: Index, coef: Array, factor: Array) -> Array:
        """``K[rows, columns] @ (coef * factor)`` in twice the digits of float64, where those would not do.

        Slower than `exact`; every entry is rounded once.
        """
        from maxmargin.kernels import _accurate

        take = (lambda i: i) if self.index is None else self.index.__getitem__
        if self.kernel.name == "precomputed":
            return _accurate.weighted_sums(self.points.X[np.ix_(rows, columns)], coef, factor)
        if callable(self.kernel.name):
            return _accurate.weighted_sums(self.block(rows, columns, _Nobody()), coef, factor)
        return _accurate.sums(self.kernel, self.X, take(rows), take(columns), coef, factor)

    def bound(self, rows: Index, columns: Index, coef: Array, double: bool = False) -> Array:
        """Bound the rounding errors of ``K[rows, columns] @ coef`` (see `maxmargin.kernels.rounding`).

        Those of the rows, or with `double` those of `exact`.
        """
        return (self.double_rounding if double else self.rounding).of_sum(rows, columns, coef)


class _Nobody:
    """Values of the certificate are not counted."""

    def count(self, evals: int = 0, calls: int = 0) -> None:
        """Count nothing."""
