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
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.utils import _safe_indexing

from maxmargin import _jit
from maxmargin._columns import compact
from maxmargin._lazy import lazy
from maxmargin._limits import slices
from maxmargin._memory import LINE, aligned, recycled
from maxmargin._threads import Threads
from maxmargin.decision import expand
from maxmargin.kernels import Kernel, Points, resolve_gamma
from maxmargin.panels import Lines
from maxmargin.rounding import Rounding

if TYPE_CHECKING:
    from maxmargin.view import View

Array = NDArray[Any]
Index = NDArray[np.intp]
Runs = list[tuple[int, int, int]]

# Below this many multiplications a second thread costs more than it saves (about half a millisecond of work).
_WORTH_A_THREAD = 20_000_000
# Rows of a streamed tile, which is used once and forgotten.
_STREAM_ROWS = 256
# Kernel values up to which float32 rows have the range for squares and products of them.
_LARGEST_FLOAT32 = 1e12
# Columns of a slice at least, which no tile is wider than.
_SLICE_COLUMNS = 512
# Values of a row from which on its alignment is worth some padding.
_LONG = 1024


class Tally(Protocol):
    """Whoever is charged for kernel values."""

    def count(self, evals: int = 0, calls: int = 0) -> None:
        """Add to the counters."""


class Gram:
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

    @lazy
    def laid_out(self) -> Points:
        """The points in the layout that many rows are computed from."""
        return self.kernel.lay_out(self.points)

    # -- the cache ---------------------------------------------------------------------------

    def _open_cache(self, segments: ArrayLike | None, *, lent: bool = False) -> None:
        n = self.n
        self.lent = lent
        segments = self._asked = self._asked if segments is None else segments
        given = self.kernel.name == "precomputed"
        self._stride = n if given else self._length(n)
        budget = 0 if lent else self.cache_bytes
        self.capacity = n if given else min(n, budget // max(1, self._stride * self.dtype.itemsize))
        self.holds_all = self.capacity >= n
        bounds = [0, n] if segments is None or not self.holds_all else segments
        self.segments: Index = np.asarray(bounds, dtype=np.intp)
        self._table: Array | None = self.points.X if given else None
        self.slot: Index = np.arange(n) if self.holds_all else np.full(n, -1)
        # Which segments of which row are there; with evictions a row is there or not.
        self.valid = np.full((n, len(self.segments) - 1), given)
        self._owner = np.full(self.capacity, -1) if not self.holds_all else self.columns
        self._stamp = np.zeros(self.capacity, dtype=np.int64)
        self._clock = self._used = 0

    def _length(self, n: int) -> int:
        """Values that a row of n takes: long ones begin on cache lines, short ones would waste too much."""
        values = LINE // self.dtype.itemsize
        return n if n < _LONG else -(-n // values) * values

    @property
    def table(self) -> Array:
        """Cached rows: row i, if there, is ``table[slot[i], :n]``."""
        if self._table is None:
            with self._lock:
                if self._table is None:
                    self._table = recycled((self.capacity, self._stride), self.dtype)
        return self._table

    def _place(self, rows: Index) -> Index:
        """Give cache places to as many of the missing `rows` as possible; return those."""
        self._clock += 1
        held = self.slot[rows]
        self._stamp[held[held >= 0]] = self._clock
        missing = np.unique(rows[held < 0])
        used = self._used
        free = np.arange(used, min(self.capacity, used + len(missing)))
        self._used += len(free)
        if len(free) < len(missing):
            # Evict the longest unused, but never a row of this very request: a request larger than
            # the cache keeps what it has instead of driving itself out.
            old = np.flatnonzero(self._stamp[:used] < self._clock)
            old = old[np.argsort(self._stamp[old], kind="stable")[: len(missing) - len(free)]]
            self.valid[self._owner[old]] = False
            self.slot[self._owner[old]] = -1
            free = np.concatenate([old, free])
        placed = missing[: len(free)]
        self.slot[placed] = free
        self._owner[free] = placed
        self._stamp[free] = self._clock
        return placed

    def _compute(self, rows: Index, segment: int, tally: Tally) -> None:
        """Compute one segment of the given rows into their places."""
        if not len(rows):
            return
        c0, c1 = int(self.segments[segment]), int(self.segments[segment + 1])
        A, table, slots = self.points.take(rows), self.table, self.slot[rows]
        self._spread(
            lambda a, b: self.kernel.fill(A, self.laid_out, c0 + a, c0 + b, table, slots),
            c1 - c0,
            len(rows) * self.cost,
        )
        self.valid[rows, segment] = True
        tally.count(evals=len(rows) * (c1 - c0))

    def _spread(self, work: Callable[[int, int], None], n: int, cost: float) -> None:
        """Run `work` on the ranges of ``range(n)``, in threads if ``n * cost`` is worth it.

        Where that takes long it is done in slices, see `maxmargin._limits`.
        """
        if callable(self.kernel.name):
            work(0, n)
            return

        def sliced(a: int, b: int) -> None:
            for s, e in slices(b - a, cost, _SLICE_COLUMNS):
                work(a + s, a + e)

        smallest = int(_WORTH_A_THREAD / max(1.0, cost)) + 1
        self.threads.run(sliced, self.threads.split(n, smallest))

    def count(self, evals: int = 0, calls: int = 0) -> None:
        """Add to the counters."""
        with self._lock:
            self.n_evals += int(evals)
            self.n_calls += int(calls)

    # -- reading -----------------------------------------------------------------------------

    def ensure(
        self, rows: ArrayLike, segments: Sequence[int] | None = None, tally: Tally | None = None
    ) -> None:
        """Make sure that `rows` are in `table` (until the next call that may evict)."""
        rows = np.asarray(rows, dtype=np.intp)
        if not self.holds_all:
            self._place(rows)
            if (self.slot[rows] < 0).any():
                need = len(np.unique(rows)) * self.n * self.dtype.itemsize
                raise ValueError(
                    f"The cache of {self.cache_bytes} bytes cannot hold {len(rows)} kernel rows of "
                    f"{self.n} values at once: give it at least {need} bytes."
                )
        for s in range(len(self.segments) - 1) if segments is None else segments:
            missing = rows[~self.valid[rows, s]]
            if len(missing):
                self._compute(np.unique(missing), s, tally or self)

    def complete(self, row: int, tally: Tally | None = None) -> None:
        """Like `ensure` for one row; what other rows know of it is copied, for the matrix is symmetric.

        It saves kernel values rather than time: worth it where they are counted, or expensive.
        """
        known = np.flatnonzero(self.valid.all(axis=1) & (self.slot >= 0))
        if len(self.segments) > 2 or not len(known) or self.held(np.array([row]))[0]:
            self.ensure([row], tally=tally)
            return
        if not self.holds_all:
            self._place(np.array([row]))
            known = np.flatnonzero(self.valid.all(axis=1) & (self.slot >= 0))
        if self.slot[row] < 0:
            self.ensure([row], tally=tally)
            return
        missing = np.setdiff1d(self.columns, known, assume_unique=True)
        target = self.table[self.slot[row]]
        target[known] = self.table[self.slot[known], row]
        target[missing] = self.block(np.array([row]), missing, tally)[0]
        self.valid[row] = True
        (tally or self).count(calls=-len(missing))  # computed, not yet used

    def held(self, rows: Index) -> NDArray[np.bool_]:
        """Which of `rows` are wholly in `table`."""
        return np.asarray(self.valid[rows].all(axis=1) & (self.slot[rows] >= 0))

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

    def add(
        self,
        out: Array,
        idx: ArrayLike,
        coef: ArrayLike,
        columns: Index | None = None,
        tally: Tally | None = None,
        keep: NDArray[np.bool_] | None = None,
    ) -> None:
        """``out += K[columns, idx] @ coef``, in float64; `columns` are all by default.

        `keep` marks the rows that will be wanted again: where computing a row is as quick as storing it, the
        others are not stored.
        """
        rows: Index = np.asarray(idx, dtype=np.intp)
        if len(rows):
            self._add(out, rows, np.asarray(coef, dtype=np.float64), columns, tally or self, keep)

    def _add(
        self,
        out: Array,
        idx: Index,
        coef: Array,
        columns: Index | None,
        tally: Tally,
        keep: NDArray[np.bool_] | None,
    ) -> None:
        runs = [(0, self.n, 0)] if columns is None else _runs(columns)
        if runs is None:
            assert columns is not None
            whole = np.zeros(self.n)
            self._add(whole, idx, coef, None, tally, keep)
            tally.count(calls=len(idx) * (len(columns) - self.n))  # used: only these columns
            out += whole[columns]
            return
        tally.count(calls=len(idx) * len(out))
        cheap = self.laid_out.panels is not None
        if keep is not None and (cheap or not keep.any()) and len(self.segments) == 2:
            once = ~keep & ~self.valid[idx, 0]
            if once.any():
                self._stream(out, idx[once], coef[once], runs, tally)
                idx, coef = idx[~once], coef[~once]
        if not self.holds_all:
            self._place(idx)
        if self.laid_out.panels is not None and len(self.segments) == 2 and columns is None:
            idx, coef = self._compute_and_add(out, idx, coef, tally)
        elif self.holds_all:
            self.ensure(idx, self._touched(runs), tally)
        else:
            self._compute(np.unique(idx[(self.slot[idx] >= 0) & ~self.valid[idx, 0]]), 0, tally)
        held = self.slot[idx] >= 0
        slots, weights, table = self.slot[idx[held]], coef[held], self.table
        for c0, c1, o in runs:
            target = out[o : o + c1 - c0]
            self._spread(
                lambda a, b, c0=c0, t=target: _jit.add_rows(  # type: ignore[misc]
                    t[a:b], table, slots, weights, c0 + a, c0 + b
                ),
                c1 - c0,
                8.0 * len(slots),  # bound by memory, not by arithmetic
            )
        if not held.all():
            self._stream(out, idx[~held], coef[~held], runs, tally)

    def _compute_and_add(self, out: Array, idx: Index, coef: Array, tally: Tally) -> tuple[Index, Array]:
        """Compute the missing rows that have a place, and use them at once; returns what is left to add."""
        new = (self.slot[idx] >= 0) & ~self.valid[idx, 0]
        if not new.any():
            return idx, coef
        rows, at = np.unique(idx[new], return_inverse=True)
        weights = np.bincount(at, weights=coef[new])
        A, slots, table, panels = self.points.take(rows), self.slot[rows], self.table, self.laid_out.panels
        lines = Lines.of(A.X)
        self._spread(
            lambda a, b: panels.fill_and_add(lines, A.norm, a, b, table, slots, weights, out),
            self.n,
            len(rows) * self.cost,
        )
        self.valid[rows, 0] = True
        tally.count(evals=len(rows) * self.n)
        return idx[~new], coef[~new]

    def _touched(self, runs: Runs) -> list[int]:
        """Segments that the runs of columns reach into."""
        last = np.searchsorted(self.segments, [c1 for _, c1, _ in runs], side="left")
        first = np.searchsorted(self.segments, [c0 for c0, _, _ in runs], side="right") - 1
        return sorted({s for a, b in zip(first, last, strict=True) for s in range(a, b)})

    def square(self, index: Index, tally: Tally) -> Array | None:
        """``K[index][:, index]`` through the cache, where it holds all rows; else None.

        For a subset that needs all of its block, and shares it with others.
        """
        runs = _runs(index)
        if not self.holds_all or runs is None:
            return None
        tally.count(calls=len(index) ** 2)
        self.ensure(index, self._touched(runs), tally)
        out = np.empty((len(index), len(index)), self.dtype)
        for r0, r1, a in runs:
            for c0, c1, b in runs:
                out[a : a + r1 - r0, b : b + c1 - c0] = self.table[r0:r1, c0:c1]
        return out

    def _stream(self, out: Array, idx: Index, coef: Array, runs: Runs, tally: Tally) -> None:
        """Add rows that have no place in the cache: compute a tile, use it, forget it."""
        add = self._panel_stream(out, idx, coef) or self._tile_stream(out, idx, coef)
        for c0, c1, o in runs:
            self._spread(
                lambda a, b, c0=c0, o=o: add(c0 + a, c0 + b, o + a),  # type: ignore[misc]
                c1 - c0,
                len(idx) * self.cost,
            )
            tally.count(evals=len(idx) * (c1 - c0))

    def _panel_stream(self, out: Array, idx: Index, coef: Array) -> Callable[[int, int, int], None] | None:
        panels = self.laid_out.panels
        if panels is None:
            return None
        A = self.points.take(idx)
        lines = Lines.of(A.X)
        return lambda c0, c1, o: panels.add(lines, A.norm, c0, c1, coef, out, c0 - o)

    def _tile_stream(self, out: Array, idx: Index, coef: Array) -> Callable[[int, int, int], None]:
        parts = [
            (self.points.take(idx[s : s + _STREAM_ROWS]), coef[s : s + _STREAM_ROWS])
            for s in range(0, len(idx), _STREAM_ROWS)
        ]

        def add(c0: int, c1: int, o: int) -> None:
            step = 2048
            buffer = aligned(min(len(idx), _STREAM_ROWS) * step, self.dtype)
            for A, weights in parts:
                slots = np.arange(A.n)
                for c in range(c0, c1, step):
                    e = min(c1, c + step)
                    tile = buffer[: A.n * (e - c)].reshape(A.n, e - c)
                    self.kernel.fill(A, self.points, c, e, tile, slots, first=c)
                    target = out[o + c - c0 : o + e - c0]
                    _jit.add_rows(target, tile, slots, weights, 0, e - c)

        return add

    # -- relatives ---------------------------------------------------------------------------

    def view(self, index: ArrayLike, cache_bytes: int | None = None) -> Gram | View:
        """Rows and columns `index` as a Gram of their own.

        Where the whole matrix fits the budget the view shares its rows; otherwise it has a cache of
        its own, in which short rows make better use of the budget. `cache_bytes` is the budget of
        such a cache, where several views are in use at once.
        """
        index = np.asarray(index, dtype=np.intp)
        if self.holds_all:
            from maxmargin.view import View

            return View(self, index)
        return self._relative(self.dtype, index, cache_bytes)

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
            samples = self.X[take(rows)] if hasattr(self.X, "dtype") else _safe_indexing(self.X, take(rows))
            ends = np.array([0, len(columns)])
            out = expand(self.kernel, samples, vectors, coef[None], ends, threads=self.threads)[0, :, 0]
        return out

    def accurate(self, rows: Index, columns: Index, coef: Array, factor: Array) -> Array:
        """``K[rows, columns] @ (coef * factor)`` in twice the digits of float64, where those would not do.

        Slower than `exact`; every entry is rounded once.
        """
        from maxmargin import _accurate

        take = (lambda i: i) if self.index is None else self.index.__getitem__
        if self.kernel.name == "precomputed":
            return _accurate.weighted_sums(self.points.X[np.ix_(rows, columns)], coef, factor)
        if callable(self.kernel.name):
            return _accurate.weighted_sums(self.block(rows, columns, _Nobody()), coef, factor)
        return _accurate.sums(self.kernel, self.X, take(rows), take(columns), coef, factor)

    def bound(self, rows: Index, columns: Index, coef: Array, double: bool = False) -> Array:
        """Bound the rounding errors of ``K[rows, columns] @ coef`` (see `maxmargin.rounding`).

        Those of the rows, or with `double` those of `exact`.
        """
        return (self.double_rounding if double else self.rounding).of_sum(rows, columns, coef)


class _Nobody:
    """Values of the certificate are not counted."""

    def count(self, evals: int = 0, calls: int = 0) -> None:
        """Count nothing."""


def _runs(columns: Index) -> Runs | None:
    """Contiguous runs ``(start, stop, position)`` of `columns`; None if there are too many."""
    if not len(columns):
        return []
    cuts = np.flatnonzero(np.diff(columns) != 1) + 1
    if len(cuts) >= 64:
        return None
    starts = np.concatenate([[0], cuts])
    stops = np.concatenate([cuts, [len(columns)]])
    return [(int(columns[a]), int(columns[b - 1]) + 1, int(a)) for a, b in zip(starts, stops, strict=True)]
