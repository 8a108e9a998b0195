"""Kernel rows of data that are not copied: tiles of columns are laid out when they are multiplied."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _costs as costs
from maxmargin.kernels.inverted import InvertedIndex
from maxmargin.kernels.panels import NOWHERE, Lines, Panels
from maxmargin.kernels.streamed import Streamed

Array = NDArray[Any]


class StreamedIndex:
    """Wide sparse samples; an `InvertedIndex` of each tile, with the interface of `Panels`.

    Parameters
    ----------
    X : Streamed
        The samples.
    norm : ndarray
        Scaled squared norms, see `maxmargin.kernels.Points`.
    slope : float
        Factor of the products.
    """

    columns = costs.STREAMED_LISTS

    def __init__(self, X: Streamed, norm: Array, slope: float) -> None:
        self.X, self.norm, self.slope = X, norm, slope

    def _tile(self, start: int, stop: int) -> Panels | InvertedIndex:
        """The samples start:stop."""
        lines = Lines.of(self.X[start:stop])
        return InvertedIndex(lines, self.X.shape[1], self.norm[start:stop], self.slope)

    def _tiles(self, c0: int, c1: int) -> Iterator[tuple[int, int, Any]]:
        for s in range(c0, c1, self.columns):
            e = min(c1, s + self.columns)
            yield s, e, self._tile(s, e)

    def fill(
        self, lines: Lines, norm: Array, c0: int, c1: int, out: Array, slots: Array, first: int = 0
    ) -> None:
        """See `Panels.fill`."""
        for s, e, tile in self._tiles(c0, c1):
            tile.fill(lines, norm, 0, e - s, out, slots, first - s)

    def fill_and_add(
        self,
        lines: Lines,
        norm: Array,
        c0: int,
        c1: int,
        table: Array,
        slots: Array,
        coef: Array,
        target: Array,
    ) -> None:
        """See `Panels.fill_and_add`."""
        for s, e, tile in self._tiles(c0, c1):
            tile.fill_and_add(lines, norm, 0, e - s, table, slots, coef, target, -s)

    def add(
        self, lines: Lines, norm: Array, c0: int, c1: int, coef: Array, target: Array, first: int
    ) -> None:
        """See `Panels.add`."""
        for s, e, tile in self._tiles(c0, c1):
            tile.add(lines, norm, 0, e - s, coef, target, first - s)


class StreamedPanels(StreamedIndex):
    """Samples with few columns; `Panels` of each tile, in a buffer per thread."""

    columns = costs.STREAMED_COLUMNS

    def __init__(self, X: Streamed, norm: Array, slope: float) -> None:
        super().__init__(X, norm, slope)
        self._local = threading.local()

    def _tile(self, start: int, stop: int) -> Panels:
        tile: Panels | None = getattr(self._local, "tile", None)
        if tile is None:
            none, dtype = np.zeros(0, np.int32), self.norm.dtype
            empty = Lines(none, none, np.zeros(0, dtype), False)
            tile = Panels(empty, self.X.shape[1], self.norm[:0], self.slope, np.full(self.columns, -1))
            self._local.tile = tile
        self.X.scatter(start, stop, tile.values, tile.width, tile.slope)
        tile.norm[: stop - start] = self.norm[start:stop]
        tile.norm[stop - start :] = NOWHERE
        return tile
