"""The row cache: a budget of bytes, rows computed when they are missing, the least recently used evicted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin import _costs as costs
from maxmargin._compiled.lazy import lazy
from maxmargin._compiled.limits import check, slices
from maxmargin._compiled.memory import LINE, recycled
from maxmargin._compiled.threads import Threads
from maxmargin._types import Floats, Index, Mask, Tally
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.points import Points

Array = NDArray[Any]


class CachedRows:
    """The cache of a `Gram`: the table of rows, and which row of K is in which row of the table."""

    n: int
    kernel: Kernel
    points: Points
    dtype: np.dtype[Any]
    diag: Floats
    cache_bytes: int
    cost: float
    threads: Threads
    columns: Index
    n_evals: int
    n_calls: int
    _lock: threading.Lock
    _asked: ArrayLike
    #: Whether the samples are in this process.
    resident = True

    @lazy
    def laid_out(self) -> Points:
        """The points in the layout for computing many rows."""
        return self.kernel.lay_out(self.points)

    def _open_cache(self, segments: ArrayLike | None, *, lent: bool = False) -> None:
        n = self.n
        self.lent, self.borrower = lent, None
        segments = self._asked = self._asked if segments is None else segments
        matrix = self.matrix
        given = matrix is not None
        self._stride = n if given else self._length(n)
        budget = 0 if lent else self.cache_bytes
        self.capacity = n if given else min(n, budget // max(1, self._stride * self.dtype.itemsize))
        self.holds_all = self.capacity >= n
        bounds = [0, n] if segments is None or not self.holds_all else segments
        self.segments: Index = np.asarray(bounds, dtype=np.intp)
        self._table: Array | None = matrix
        # In a large table rows are packed in the order of their first use: rows here and there would each
        # touch a huge page, which the operating system clears as a whole.
        small = n * self._stride * self.dtype.itemsize <= costs.UNPACKED_BYTES
        all_read = self.kernel.name == "precomputed" or len(self.segments) > 2
        self.fixed = self.holds_all and (small or all_read)
        self.slot: Index = np.arange(n) if self.fixed else np.full(n, -1)
        # Which segments of which row are cached; without room for all rows there is one segment.
        self.valid = np.full((n, len(self.segments) - 1), given)
        self._owner = self.columns if self.fixed else np.full(self.capacity, -1)
        self._stamp = np.zeros(self.capacity, dtype=np.int64)
        self._clock = self._used = 0

    @property
    def matrix(self) -> Array | None:
        """The matrix that was given, if its rows are used as they are."""
        return self.points.X.table(self.dtype) if self.kernel.name == "precomputed" else None

    @property
    def given(self) -> bool:
        """Whether the values were given, and `ensure` has at most to copy them."""
        return self.kernel.name == "precomputed" and self.holds_all

    def _length(self, n: int) -> int:
        """Length of a row of n values with padding: long rows begin on cache lines, short ones need not."""
        values = LINE // self.dtype.itemsize
        return n if n < costs.ALIGNED_FROM else -(-n // values) * values

    @property
    def table(self) -> Array:
        """Cached rows: row i, if cached, is ``table[slot[i], :n]``."""
        if self._table is None:
            with self._lock:
                if self._table is None:
                    self._table = recycled((self.capacity, self._stride), self.dtype)
        return self._table

    def _place(self, rows: Index) -> Index:
        """Assign slots to as many of the missing `rows` as possible; return those."""
        with self._lock:  # problems that are solved side by side may share the table
            self._clock += 1
            held = self.slot[rows]
            self._stamp[held[held >= 0]] = self._clock
            missing = np.unique(rows[held < 0])
            used = self._used
            free = np.arange(used, min(self.capacity, used + len(missing)))
            self._used += len(free)
            if len(free) < len(missing):
                # Evict the least recently used, but never a row of the present request: a request larger than
                # the cache keeps the rows that are cached instead of evicting its own.
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

    def _compute(self, rows: Index, first: int, end: int, tally: Tally) -> None:
        """Compute the segments ``first:end`` of the given rows into their slots."""
        if not len(rows):
            return
        c0, c1 = int(self.segments[first]), int(self.segments[end])
        A, table, slots = self.points.take(rows), self.table, self.slot[rows]
        self._spread(
            lambda a, b: self.kernel.fill(A, self.laid_out, c0 + a, c0 + b, table, slots),
            c1 - c0,
            len(rows) * self.cost,
        )
        self.valid[rows, first:end] = True
        tally.count(evals=0 if self.given else len(rows) * (c1 - c0))

    def _spread(self, work: Callable[[int, int], None], n: int, cost: float) -> None:
        """Run `work` on ranges of ``range(n)``, in threads if ``n * cost`` is worth it.

        Long work is done in slices, see `maxmargin._compiled.limits`.
        """
        if not self.releases_gil:
            work(0, n)
            return

        def sliced(a: int, b: int) -> None:
            for s, e in slices(b - a, cost, costs.INDEX_TILE if self.points.sparse else costs.SLICE_COLUMNS):
                work(a + s, a + e)

        smallest = int(costs.WORTH_A_THREAD / max(1.0, cost)) + 1
        self.threads.run(sliced, self.threads.split(n, smallest))

    @property
    def releases_gil(self) -> bool:
        """Whether rows are computed outside the interpreter: not by a callable."""
        return not self.kernel.opaque

    def use_one_thread(self) -> None:
        """Compute rows in the thread that asks for them."""
        self.threads = Threads(1)

    def count(self, evals: int = 0, calls: int = 0) -> None:
        """Add to the counters."""
        with self._lock:
            self.n_evals += int(evals)
            self.n_calls += int(calls)

    def ensure(
        self, rows: ArrayLike, segments: Sequence[int] | None = None, tally: Tally | None = None
    ) -> None:
        """Make sure that `rows` are in `table`, until the next call that may evict."""
        rows = np.asarray(rows, dtype=np.intp)
        if not self.fixed:
            self._place(rows)
            if (self.slot[rows] < 0).any():
                need = len(np.unique(rows)) * self.n * self.dtype.itemsize
                raise ValueError(
                    f"The cache of {self.cache_bytes} bytes cannot hold {len(rows)} kernel rows of "
                    f"{self.n} values at once: give it at least {need} bytes."
                )
        asked = range(len(self.segments) - 1) if segments is None else segments
        for k, (missing, first, end) in enumerate(self._missing(rows, asked)):
            if k:
                check()
            self._compute(missing, first, end, tally or self)

    def _missing(self, rows: Index, segments: Sequence[int]) -> list[tuple[Index, int, int]]:
        """Which of `rows` lack the segments ``first:end``, for ranges of `segments` that lack the same ones.

        Decided at once for all: other threads may add segments in the meantime.
        """
        lacking = ~self.valid[rows][:, list(segments)]
        cuts: list[int] = []
        if len(segments) > 1:
            same = np.diff(segments) == 1
            same &= (lacking[:, 1:] == lacking[:, :-1]).all(axis=0)
            cuts = (np.flatnonzero(~same) + 1).tolist()
        return [
            (np.unique(rows[lacking[:, a]]), segments[a], segments[b - 1] + 1)
            for a, b in pairwise([0, *cuts, len(segments)])
            if b > a and lacking[:, a].any()
        ]

    def complete(self, row: int, tally: Tally | None = None) -> None:
        """Like `ensure` for one row; values that other cached rows contain are copied, by symmetry.

        This saves kernel values rather than time: useful where they are counted, or expensive.
        """
        known = np.flatnonzero(self.valid.all(axis=1) & (self.slot >= 0))
        if len(self.segments) > 2 or not len(known) or self.held(np.array([row]))[0]:
            self.ensure([row], tally=tally)
            return
        if not self.fixed:
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

    def held(self, rows: Index, segments: Sequence[int] | None = None) -> Mask:
        """Return which of `rows` are in `table`: complete, or at least these segments."""
        valid = self.valid[rows] if segments is None else self.valid[rows][:, list(segments)]
        return np.asarray(valid.all(axis=1) & (self.slot[rows] >= 0))

    def rows(self, idx: ArrayLike, tally: Tally | None = None) -> Array:
        """Return the rows `idx`: a read-only array of shape (len(idx), n)."""
        idx = np.asarray(idx, dtype=np.intp)
        tally = tally or self
        tally.count(calls=len(idx) * self.n)
        if self.holds_all:
            self.ensure(idx, tally=tally)
            out = self.table[self.slot[idx], : self.n]
        else:
            out = np.empty((len(idx), self.n), self.dtype)
            self._place(idx)
            self._compute(np.unique(idx[(self.slot[idx] >= 0) & ~self.valid[idx, 0]]), 0, 1, tally)
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
        """Return the block ``K[rows][:, columns]``, computed directly."""
        tally = tally or self
        rows, columns = np.asarray(rows, dtype=np.intp), np.asarray(columns, dtype=np.intp)
        tally.count(calls=len(rows) * len(columns))
        out = np.empty((len(rows), len(columns)), self.dtype)
        A, B = self.points.take(rows), self.points.take(columns)
        B = self.kernel.lay_out(B) if B.sparse else B
        slots = np.arange(len(rows))
        self._spread(
            lambda a, b: self.kernel.fill(A, B, a, b, out, slots),
            len(columns),
            len(rows) * self.cost,
        )
        tally.count(evals=0 if self.given else out.size)
        return out
