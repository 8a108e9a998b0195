"""Samples laid out in panels, and kernel rows computed from them.

A panel holds 128 samples (64 in float64) feature by feature: ``values[feature, sample]``. A kernel row is one
sample, dense or sparse, times one panel after the other, see `_strip`. A panel of some dozen features
stays in the first-level cache while it is multiplied by hundreds of rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin import _costs as costs
from maxmargin._compiled.jit import REORDER, compiled
from maxmargin._compiled.memory import aligned, writable
from maxmargin._compiled.sums import add_tile
from maxmargin.kernels._strip import PANEL_BYTES, rbf_strip

Array = NDArray[Any]

# The norm of a place without a sample, whose kernel values are 0.
NOWHERE = 1e6


class Lines(NamedTuple):
    """The rows of a data set, sparse or dense, as lists of (feature, value)."""

    indptr: Array
    indices: Array
    data: Array
    dense: bool

    @staticmethod
    def of(X: Any) -> Lines:
        """The rows of a CSR matrix, or of a dense array, whose values are not copied.

        Places are int32 wherever they fit, so that loops are compiled for one type.
        """
        if isinstance(X, np.ndarray):
            n, d = X.shape
            indptr, indices = np.arange(n + 1, dtype=np.int32) * np.int32(d), np.arange(d, dtype=np.int32)
            if n * d >= 2**31:
                indptr, indices = np.arange(n + 1, dtype=np.int64) * d, np.arange(d, dtype=np.int64)
            return Lines(indptr, indices, writable(X.reshape(-1)), True)
        kind = np.int32 if max(len(X.indices), X.shape[1]) < 2**31 else np.int64
        indptr, indices = X.indptr.astype(kind, copy=False), X.indices.astype(kind, copy=False)
        return Lines(writable(indptr), writable(indices), writable(X.data), False)


class PanelData(NamedTuple):
    """Arrays of panels for compiled code."""

    values: Array
    norm: Array
    #: Number of features.
    d: int


class Panels:
    """Samples in panels.

    Parameters
    ----------
    lines : Lines
        The data.
    d : int
        Number of features.
    norm : ndarray
        Scaled squared norms, see `maxmargin.kernels.Points`.
    slope : float
        Factor of the products.
    order : ndarray of int
        Sample at each place, -1 for none; the last panel is padded with places without a sample.
    """

    def __init__(self, lines: Lines, d: int, norm: Array, slope: float, order: Array) -> None:
        dtype = norm.dtype
        self.width = width_of(dtype)
        self.d = d
        count = padded(len(order), dtype) // self.width
        self.values = aligned(count * d * self.width, dtype, zero=True)
        self.norm = aligned(count * self.width, dtype)
        self.norm[:] = NOWHERE
        self.data = PanelData(self.values, self.norm, d)
        self.slope = dtype.type(slope)
        self.put(lines, norm, np.arange(len(order)), order)

    def put(self, lines: Lines, norm: Array, places: Array, samples: Array) -> None:
        """Store samples (-1: none) at places that are empty or were cleared."""
        there = samples >= 0
        places, samples = places[there], samples[there]
        _scatter(*lines, samples, self.values, places, self.width, self.d, self.slope)
        self.norm[places] = norm[samples]

    def clear(self, lines: Lines, places: Array, samples: Array) -> None:
        """Remove the given samples from their places."""
        there = samples >= 0
        _scatter(
            *lines, samples[there], self.values, places[there], self.width, self.d, self.slope.dtype.type(0)
        )
        self.norm[places[there]] = NOWHERE

    def fill(
        self, lines: Lines, norm: Array, c0: int, c1: int, out: Array, slots: Array, first: int = 0
    ) -> None:
        """``out[slots, c0 - first : c1 - first]`` = kernel values of the lines with the places c0:c1."""
        nothing = np.empty(0)
        fill_rows(lines, norm, self.data, c0, c1, out, slots, first, nothing, nothing)

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
        first: int = 0,
    ) -> None:
        """`fill` rows of a table and, while they are in the cache, `add` them."""
        fill_rows(lines, norm, self.data, c0, c1, table, slots, first, coef, target)

    def add(
        self, lines: Lines, norm: Array, c0: int, c1: int, coef: Array, target: Array, first: int
    ) -> None:
        """``target[c0 - first : c1 - first] += coef @ rows``, for rows that are not kept."""
        add_rows(lines, norm, self.data, c0, c1, coef, target, first)


def width_of(dtype: Any) -> int:
    """Number of samples in a panel."""
    return PANEL_BYTES // int(np.dtype(dtype).itemsize)


def padded(n: int, dtype: Any) -> int:
    """Number of places in the panels of n samples."""
    width = width_of(dtype)
    return -(-n // width) * width


@compiled()
def _scatter(indptr, indices, data, dense, samples, values, places, width, d, slope):
    for s in range(len(samples)):
        start, end = indptr[samples[s]], indptr[samples[s] + 1]
        base = places[s] // width * (width * d) + places[s] % width
        for k in range(start, end):
            feature = indices[k - start] if dense else indices[k]
            values[base + feature * width] = slope * data[k]


@compiled(fastmath=REORDER)
def fill_rows(lines, norm, panels, c0, c1, out, slots, first, coef, target):
    """Kernel values of all lines with the places c0:c1.

    With `coef` also ``target[c0 - first : c1 - first] += coef @ values``, panel by panel.
    """
    indptr, indices, data, dense = lines
    values, norms, d = panels
    width = PANEL_BYTES // norm.itemsize
    stride = out.shape[1]
    flat = out.reshape(-1)
    scratch = np.empty(width, norm.dtype)
    acc = np.empty(width, np.float64)
    for r0 in range(0, len(norm), costs.PANEL_ROWS):
        r1 = min(len(norm), r0 + costs.PANEL_ROWS)
        for panel in range(c0 // width, (c1 + width - 1) // width):
            c = panel * width
            a, e = max(c, c0), min(c + width, c1)
            if e - a == width:
                for r in range(r0, r1):
                    start, end = np.int64(indptr[r]), np.int64(indptr[r + 1])
                    i = np.int64(0) if dense else start
                    at = slots[r] * stride + c - first
                    rbf_strip(
                        indices, i, data, start, end - start, values, c * d, norms, c, norm[r], flat, at
                    )
            else:
                for r in range(r0, r1):
                    start, end = np.int64(indptr[r]), np.int64(indptr[r + 1])
                    i = np.int64(0) if dense else start
                    rbf_strip(
                        indices, i, data, start, end - start, values, c * d, norms, c, norm[r], scratch, 0
                    )
                    row = out[slots[r], a - first : e - first]
                    for t in range(e - a):
                        row[t] = scratch[a - c + t]
            if len(coef):
                add_tile(acc, flat, slots[r0:r1] * stride + (a - first), coef[r0:r1], e - a)
                part = target[a - first : e - first]
                for t in range(e - a):
                    part[t] += acc[t]


@compiled(fastmath=REORDER)
def add_rows(lines, norm, panels, c0, c1, coef, target, first):
    """``target[c - first] += sum_r coef[r] k(line r, place c)`` for c0 <= c < c1; no value is kept."""
    indptr, indices, data, dense = lines
    values, norms, d = panels
    width = PANEL_BYTES // norm.itemsize
    tile = np.empty(costs.PANEL_ROWS * width + 16, norm.dtype)
    tile = tile[-(tile.ctypes.data // norm.itemsize) % 16 :]  # on a cache line
    starts = np.arange(costs.PANEL_ROWS) * width
    acc = np.empty(width, np.float64)
    for r0 in range(0, len(norm), costs.PANEL_ROWS):
        r1 = min(len(norm), r0 + costs.PANEL_ROWS)
        for panel in range(c0 // width, (c1 + width - 1) // width):
            c = panel * width
            for r in range(r0, r1):
                start, end = np.int64(indptr[r]), np.int64(indptr[r + 1])
                i = np.int64(0) if dense else start
                at = (r - r0) * width
                rbf_strip(indices, i, data, start, end - start, values, c * d, norms, c, norm[r], tile, at)
            add_tile(acc, tile, starts[: r1 - r0], coef[r0:r1], width)
            a, e = max(c, c0), min(c + width, c1)
            part = target[a - first : e - first]
            for t in range(e - a):
                part[t] += acc[a - c + t]
