"""Rows that are kept: within a budget of bytes, computed where they are missing, evicted when old."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin._compiled.lazy import lazy
from maxmargin._compiled.limits import slices
from maxmargin._compiled.memory import LINE, recycled
from maxmargin._compiled.threads import Threads
from maxmargin._types import Index
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.points import Points

Array = NDArray[Any]

# Below this many multiplications a second thread costs more than it saves (about half a millisecond of work).
_WORTH_A_THREAD = 20_000_000
# Columns of a slice at least, which no tile is wider than.
_SLICE_COLUMNS = 512
# Values of a row from which on its alignment is worth some padding.
_LONG = 1024


class Tally(Protocol):
    """Whoever is charged for kernel values."""

    def count(self, evals: int = 0, calls: int = 0) -> None:
        """Add to the counters."""


class CachedRows:
    """The cache of a `Gram`: its table of rows, and who stands where."""

    n: int
    kernel: Kernel
    points: Points
    dtype: np.dtype[Any]
    cache_bytes: int
    cost: float
    threads: Threads
    columns: Index
    n_evals: int
    n_calls: int
    _lock: threading.Lock
    _asked: ArrayLike

    @lazy
    def laid_out(self) -> Points:
        """The points in the layout that many rows are computed from."""
        return self.kernel.lay_out(self.points)

    def block(self, rows: ArrayLike, columns: ArrayLike, tally: Tally | None = None) -> Array:
        """The block ``K[rows][:, columns]``, computed directly."""
        raise NotImplementedError

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

        Where that takes long it is done in slices, see `maxmargin._compiled.limits`.
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
