"""Samples that the client has: those that were in a working set, support vectors among them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._types import Index
from maxmargin.dask.frame import stacked


class Store:
    """Samples by their number, added in blocks.

    Parameters
    ----------
    n : int
        Number of all samples.
    """

    def __init__(self, n: int) -> None:
        # Position of each sample in the blocks, one after the other, or -1.
        self._at: NDArray[np.int32] = np.full(n, -1, np.int32)
        self._blocks: list[Any] = []
        self._count = 0
        # Samples that may be put into the store next, at no cost.
        self._offered: tuple[Index, Any] | None = None

    def missing(self, rows: Index) -> Index:
        """Those of `rows` that are not here, ascending and once each."""
        return np.unique(rows[self._at[rows] < 0])

    def offer(self, rows: Index, samples: Any) -> None:
        """Samples that are at hand, in place of those that were offered before."""
        order = np.argsort(rows, kind="stable")
        self._offered = (rows[order], samples[order]) if len(rows) else None

    def take_offered(self, rows: Index) -> Index:
        """Put those of `rows` (ascending) into the store that were offered; returns the others."""
        if self._offered is None or not len(rows):
            return rows
        numbers, samples = self._offered
        at = np.minimum(np.searchsorted(numbers, rows), len(numbers) - 1)
        there = numbers[at] == rows
        if there.any():
            self.put(rows[there], samples[at[there]])
        return rows[~there]

    def put(self, rows: Index, samples: Any) -> None:
        """Add samples that are not here yet."""
        self._at[rows] = np.arange(self._count, self._count + len(rows), dtype=np.int32)
        self._count += len(rows)
        self._blocks.append(samples)
        # Blocks grow geometrically: each sample is copied a few times, and blocks stay few.
        while len(self._blocks) > 1 and self._blocks[-2].shape[0] < 4 * self._blocks[-1].shape[0]:
            last = self._blocks.pop()
            self._blocks[-1] = stacked([self._blocks[-1], last])

    def get(self, rows: Index) -> Any:
        """Samples that are here, in this order."""
        slots = self._at[rows]
        if not self._blocks:
            raise KeyError("the store is empty")
        if len(self._blocks) == 1 or not len(rows):
            return self._blocks[0][slots]
        order = np.argsort(slots, kind="stable")
        slots = slots[order]
        parts, first = [], 0
        for block in self._blocks:
            a, b = np.searchsorted(slots, [first, first + block.shape[0]])
            if b > a:
                parts.append(block[slots[a:b] - first])
            first += block.shape[0]
        back = np.empty(len(order), np.intp)
        back[order] = np.arange(len(order))
        return stacked(parts)[back]
