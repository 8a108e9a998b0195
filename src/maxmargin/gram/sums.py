"""Sums of rows, cached or streamed: the updates of a gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin import _costs as costs
from maxmargin._compiled.lazy import lazy
from maxmargin._compiled.memory import aligned
from maxmargin._compiled.sums import add_rows
from maxmargin._types import Index, Mask, Tally
from maxmargin.gram.cache import CachedRows
from maxmargin.kernels.features import Features
from maxmargin.kernels.layout import laid_out
from maxmargin.kernels.panels import Lines, Panels
from maxmargin.kernels.streamed_panels import StreamedPanels

Array = NDArray[Any]
Runs = list[tuple[int, int, int]]


class SummedRows(CachedRows):
    """Sums of the rows of a `Gram`."""

    X: Any
    index: Index | None

    def add(
        self,
        out: Array,
        idx: ArrayLike,
        coef: ArrayLike,
        columns: Index | None = None,
        tally: Tally | None = None,
        keep: Mask | None = None,
    ) -> None:
        """Add ``K[columns, idx] @ coef`` to `out`, in float64; `columns` are all by default.

        `keep` marks the rows that will be needed again: where computing a row is as fast as storing it, the
        others are not stored.
        """
        rows: Index = np.asarray(idx, dtype=np.intp)
        if len(rows) and self.features is not None:
            self._add_linear(out, rows, np.asarray(coef, dtype=np.float64), columns, tally or self)
        elif len(rows):
            self._add(out, rows, np.asarray(coef, dtype=np.float64), columns, tally or self, keep)

    @lazy
    def features(self) -> Features | None:
        """The samples in float64, for sums of rows through weights; None if the kernel is not linear."""
        if self.kernel.name != "linear":
            return None
        if self.dtype == np.float64:
            return Features(self.points.X)
        return Features(laid_out(self.X, np.dtype(np.float64), self.index, None, self.points.sparse))

    @property
    def panelled(self) -> bool:
        """Whether rows are computed from panels, so that a single row costs no more than one of many."""
        return isinstance(self.laid_out.panels, Panels | StreamedPanels)

    def _add_linear(self, out: Array, idx: Index, coef: Array, columns: Index | None, tally: Tally) -> None:
        """The linear kernel: weights first, then a value for each column; no row is needed."""
        features = self.features
        assert features is not None
        tally.count(calls=len(idx) * len(out))
        w = features.weights(idx, coef)
        runs = [(0, self.n, 0)] if columns is None else _runs(columns)
        if runs is None:
            assert columns is not None
            out += features.values(w, columns)
            return
        for c0, c1, o in runs:
            self._spread(
                lambda a, b, c0=c0, o=o: features.add(out[o + a : o + b], w, c0 + a, c0 + b),  # type: ignore[misc]
                c1 - c0,
                features.cost,
            )

    def _add(
        self,
        out: Array,
        idx: Index,
        coef: Array,
        columns: Index | None,
        tally: Tally,
        keep: Mask | None,
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
        cheap = self.panelled
        if keep is not None and (cheap or not keep.any()) and len(self.segments) == 2:
            once = ~keep & ~self.valid[idx, 0]
            if once.any():
                self._stream(out, idx[once], coef[once], runs, tally)
                idx, coef = idx[~once], coef[~once]
        if not self.fixed:
            self._place(idx)
        if self.laid_out.panels is not None and len(self.segments) == 2 and columns is None:
            idx, coef = self._compute_and_add(out, idx, coef, tally)
        elif self.holds_all:
            self.ensure(idx, self._touched(runs), tally)
        else:
            self._compute(np.unique(idx[(self.slot[idx] >= 0) & ~self.valid[idx, 0]]), 0, 1, tally)
        held = self.slot[idx] >= 0
        slots, weights, table = self.slot[idx[held]], coef[held], self.table
        for c0, c1, o in runs:
            target = out[o : o + c1 - c0]
            self._spread(
                lambda a, b, c0=c0, t=target: add_rows(  # type: ignore[misc]
                    t[a:b], table, slots, weights, c0 + a, c0 + b
                ),
                c1 - c0,
                8.0 * len(slots),  # bound by memory, not by arithmetic
            )
        if not held.all():
            self._stream(out, idx[~held], coef[~held], runs, tally)

    def _compute_and_add(self, out: Array, idx: Index, coef: Array, tally: Tally) -> tuple[Index, Array]:
        """Compute the missing rows that have a slot, and add them; return the rows left to add."""
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

    def segments_of(self, columns: Index) -> list[int]:
        """Segments that contain the columns."""
        runs = _runs(columns)
        return self._touched([(0, self.n, 0)] if runs is None else runs)

    def _touched(self, runs: Runs) -> list[int]:
        """Segments that the runs of columns overlap."""
        last = np.searchsorted(self.segments, [c1 for _, c1, _ in runs], side="left")
        first = np.searchsorted(self.segments, [c0 for c0, _, _ in runs], side="right") - 1
        return sorted({s for a, b in zip(first, last, strict=True) for s in range(a, b)})

    def square(self, index: Index, tally: Tally) -> Array | None:
        """Return ``K[index][:, index]`` from the cache if that holds all rows; else None.

        For a subset that needs its whole block, and shares it with others.
        """
        runs = _runs(index)
        if not self.holds_all or runs is None:
            return None
        tally.count(calls=len(index) ** 2)
        self.ensure(index, self._touched(runs), tally)
        out = np.empty((len(index), len(index)), self.dtype)
        for r0, r1, a in runs:
            for c0, c1, b in runs:
                out[a : a + r1 - r0, b : b + c1 - c0] = self.table[self.slot[r0:r1], c0:c1]
        return out

    def _stream(self, out: Array, idx: Index, coef: Array, runs: Runs, tally: Tally) -> None:
        """Add rows that have no slot in the cache: compute a tile and use it once."""
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
            (self.points.take(idx[s : s + costs.STREAM_ROWS]), coef[s : s + costs.STREAM_ROWS])
            for s in range(0, len(idx), costs.STREAM_ROWS)
        ]

        def add(c0: int, c1: int, o: int) -> None:
            step = costs.STREAM_COLUMNS
            buffer = aligned(min(len(idx), costs.STREAM_ROWS) * step, self.dtype)
            for c in range(c0, c1, step):
                e = min(c1, c + step)
                target = out[o + c - c0 : o + e - c0]
                B, s = (self.points.take(np.arange(c, e)), c) if self.points.streamed else (self.points, 0)
                for A, weights in parts:
                    slots = np.arange(A.n)
                    tile = buffer[: A.n * (e - c)].reshape(A.n, e - c)
                    self.kernel.fill(A, B, c - s, e - s, tile, slots, first=c - s)
                    add_rows(target, tile, slots, weights, 0, e - c)

        return add


def _runs(columns: Index) -> Runs | None:
    """Contiguous runs ``(start, stop, position)`` of `columns`; None if there are too many."""
    if not len(columns):
        return []
    cuts = np.flatnonzero(np.diff(columns) != 1) + 1
    if len(cuts) >= costs.MOST_RUNS:
        return None
    starts = np.concatenate([[0], cuts])
    stops = np.concatenate([cuts, [len(columns)]])
    return [(int(columns[a]), int(columns[b - 1]) + 1, int(a)) for a, b in zip(starts, stops, strict=True)]
