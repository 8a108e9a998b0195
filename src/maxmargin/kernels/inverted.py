"""Wide sparse samples as an inverted index, and kernel rows computed from it.

Text has thousands of columns, most of which occur in few rows: a panel of all of them would be mostly zeros
and larger than any cache. The columns that occur in many rows, the *head*, are laid out in dense panels (see
`maxmargin.kernels.panels`). Each of the others has a *list* of its entries, tile by tile of samples: a row
adds the lists of its own columns, so that only products of two non-zeros are computed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin import _costs as costs
from maxmargin._compiled.jit import REORDER, compiled
from maxmargin._compiled.memory import aligned
from maxmargin._compiled.sums import add_tile
from maxmargin.kernels._strip import PANEL_BYTES, rbf_strip
from maxmargin.kernels.panels import NOWHERE, Lines, padded, width_of

Array = NDArray[Any]


class IndexData(NamedTuple):
    """Arrays of an index for compiled code."""

    #: Number of each column: head, then lists; larger for a column without entries.
    number: Array
    #: Panels of the head, feature by feature, and the norms of all places.
    values: Array
    norm: Array
    #: Number of columns in the head.
    head: int
    #: ``starts[t, f]``: begin of the list of column ``head + f`` in tile t, of so many samples.
    starts: Array
    tile: int
    #: Entries of the lists: place in the tile, and value times -slope.
    places: Array
    entries: Array


class InvertedIndex:
    """Sparse samples by column; computes the same as `maxmargin.kernels.panels.Panels`.

    Parameters
    ----------
    lines : Lines
        The data, sparse.
    d : int
        Number of columns.
    norm : ndarray
        Scaled squared norms, see `maxmargin.kernels.Points`.
    slope : float
        Factor of the products.
    """

    def __init__(self, lines: Lines, d: int, norm: Array, slope: float) -> None:
        dtype, n = norm.dtype, len(norm)
        places = padded(n, dtype)
        count = np.bincount(lines.indices, minlength=d)
        most = costs.PANELS_BYTES // max(1, places * dtype.itemsize)
        rare = costs.FREQUENT * places  # so that panels take at most twenty times the memory of their entries
        if most < np.count_nonzero(count > rare):
            rare = np.partition(count, d - most - 1)[d - most - 1]
        frequent = count > rare
        lists = np.flatnonzero((count > 0) & ~frequent)
        head = int(np.count_nonzero(frequent))
        number = np.full(d, head + len(lists), np.int32)
        number[frequent], number[lists] = np.arange(head), np.arange(head, head + len(lists))
        # Not many more offsets than entries, and places of 16 bits.
        tile = max(costs.INDEX_TILE, len(lists) * n // max(1, len(lines.indices)))
        tile = min(-(-tile // width_of(dtype)) * width_of(dtype), 1 << 16)
        tiles = -(-n // tile)
        values = aligned(places * head, dtype, zero=True)
        norms = aligned(tiles * tile, dtype)
        norms[:n], norms[n:] = norm, NOWHERE
        starts = np.zeros((tiles, len(lists) + 1), lines.indptr.dtype)
        size = _count(lines, number, head, tile, starts)
        self.data = IndexData(
            number, values, norms, head, starts, tile, np.empty(size, np.uint16), np.empty(size, dtype)
        )
        _distribute(lines, self.data, dtype.type(slope), width_of(dtype))

    def split(self, lines: Lines) -> tuple[Lines, Lines]:
        """The entries of the lines in columns of the head, and those in columns with lists, by number."""
        common, features, values, listed, lists, weights = _split(lines, self.data)
        return Lines(common, features, values, False), Lines(listed, lists, weights, False)

    def fill(
        self, lines: Lines, norm: Array, c0: int, c1: int, out: Array, slots: Array, first: int = 0
    ) -> None:
        """``out[slots, c0 - first : c1 - first]`` = kernel values of the lines with the samples c0:c1."""
        nothing = np.empty(0)
        index_rows(lines, norm, self.data, c0, c1, out, slots, first, nothing, nothing)

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
        index_rows(lines, norm, self.data, c0, c1, table, slots, first, coef, target)

    def add(
        self, lines: Lines, norm: Array, c0: int, c1: int, coef: Array, target: Array, first: int
    ) -> None:
        """``target[c0 - first : c1 - first] += coef @ rows``, for rows that are not kept."""
        none = np.empty((0, 0), norm.dtype)
        index_rows(lines, norm, self.data, c0, c1, none, np.empty(0, np.intp), first, coef, target)


@compiled()
def _count(lines, number, head, tile, starts):
    """Begins of all lists, tile after tile; returns the number of their entries."""
    lists = starts.shape[1] - 1
    n = len(lines.indptr) - 1
    total = 0
    for t in range(len(starts)):
        begin = starts[t]
        for k in range(lines.indptr[t * tile], lines.indptr[min(n, (t + 1) * tile)]):
            f = number[lines.indices[k]] - head
            if f >= 0:
                begin[f] += 1
        for f in range(lists + 1):
            total, begin[f] = total + begin[f], total
    return total


@compiled()
def _distribute(lines, index, slope, width):
    """Write each entry to its place in the head or a list."""
    number, values, _, head, starts, tile, places, entries = index
    n = len(lines.indptr) - 1
    for t in range(len(starts)):
        at = starts[t].copy()
        for i in range(t * tile, min(n, (t + 1) * tile)):
            base = i // width * (width * head) + i % width
            for k in range(lines.indptr[i], lines.indptr[i + 1]):
                f = number[lines.indices[k]]
                if f < head:
                    values[base + f * width] += slope * lines.data[k]
                else:
                    places[at[f - head]] = i - t * tile
                    entries[at[f - head]] = -slope * lines.data[k]
                    at[f - head] += 1


@compiled()
def lists_of(lines, samples, slope, starts):
    """The lists of some samples (-1: none), see `IndexData`; `starts` gets their begins."""
    starts[:] = 0
    for i in samples:
        if i >= 0:
            for k in range(lines.indptr[i], lines.indptr[i + 1]):
                starts[lines.indices[k] + 1] += 1
    for f in range(1, len(starts)):
        starts[f] += starts[f - 1]
    places, entries = np.empty(starts[-1], np.uint16), np.empty(starts[-1], lines.data.dtype)
    at = starts.copy()
    for p in range(len(samples)):
        i = samples[p]
        if i >= 0:
            for k in range(lines.indptr[i], lines.indptr[i + 1]):
                f = lines.indices[k]
                places[at[f]], entries[at[f]] = p, -slope * lines.data[k]
                at[f] += 1
    return places, entries


@compiled()
def _split(lines, index):
    """The entries of the head and those that have a list, by their numbers: two sets of CSR arrays."""
    n, head, known = len(lines.indptr) - 1, index.head, index.head + index.starts.shape[1] - 1
    common, listed = np.zeros(n + 1, lines.indptr.dtype), np.zeros(n + 1, lines.indptr.dtype)
    for i in range(n):
        a = b = 0
        for k in range(lines.indptr[i], lines.indptr[i + 1]):
            f = index.number[lines.indices[k]]
            a += f < head
            b += head <= f < known
        common[i + 1], listed[i + 1] = common[i] + a, listed[i] + b
    features, values = np.empty(common[n], np.int32), np.empty(common[n], lines.data.dtype)
    lists, factors = np.empty(listed[n], np.int32), np.empty(listed[n], lines.data.dtype)
    a = b = 0
    for k in range(lines.indptr[0], lines.indptr[n]):
        f = index.number[lines.indices[k]]
        if f < head:
            features[a], values[a] = f, lines.data[k]
            a += 1
        elif f < known:
            lists[b], factors[b] = f - head, lines.data[k]
            b += 1
    return common, features, values, listed, lists, factors


@compiled(fastmath=REORDER)
def index_rows(lines, norm, index, c0, c1, out, slots, first, coef, target):
    """``out[slots[r], c - first]`` = kernel values of all lines r with the samples c0 <= c < c1.

    With `coef` also ``target[c - first] += sum_r coef[r] k(line r, sample c)``; without slots only that.
    """
    common, features, factors, listed, lists, weights = _split(lines, index)
    _, values, norms, head, starts, tile, places, entries = index
    width = PANEL_BYTES // norm.itemsize
    height = max(1, min(len(norm), costs.INDEX_BUFFER // tile))
    buffer = np.empty(height * tile + 16, norm.dtype)
    buffer = buffer[-(buffer.ctypes.data // norm.itemsize) % 16 :]  # on a cache line
    flat, stride = out.reshape(-1), out.shape[1]
    acc = np.empty(width, np.float64)
    for t in range(c0 // tile, (c1 + tile - 1) // tile):
        t0 = t * tile
        a, e = max(t0, c0), min(t0 + tile, c1)
        for r0 in range(0, len(norm), height):
            r1 = min(len(norm), r0 + height)
            for r in range(r0, r1):
                sums = buffer[(r - r0) * tile : (r - r0 + 1) * tile]
                sums[:] = norms[t0 : t0 + tile]
                k0, k1 = listed[r], listed[r + 1]
                add_lists(lists, weights, k0, k1, starts[t], places, entries, sums, a - t0, e - t0)
            for c in range(a // width * width, e, width):  # a panel of the head serves all rows at once
                s, q = max(c, a), min(c + width, e)
                begins = np.arange(r1 - r0) * tile + (c - t0)
                if len(slots) and q - s == width:
                    targets, values_at = slots[r0:r1] * stride + (c - first), flat
                else:
                    targets, values_at = begins, buffer
                for r in range(r0, r1):
                    k0, k1 = np.int64(common[r]), np.int64(common[r + 1])
                    rbf_strip(
                        features, k0, factors, k0, k1 - k0, values, c * head, buffer, begins[r - r0], norm[r],
                        values_at, targets[r - r0],
                    )  # fmt: skip
                if len(slots) and q - s < width:
                    for r in range(r0, r1):
                        row, line = out[slots[r], s - first : q - first], buffer[begins[r - r0] + (s - c) :]
                        for j in range(q - s):
                            row[j] = line[j]
                if len(coef):
                    add_tile(acc, values_at, targets + (s - c), coef[r0:r1], q - s)
                    part = target[s - first : q - first]
                    for j in range(q - s):
                        part[j] += acc[j]


@compiled(fastmath=REORDER)
def add_lists(lists, weights, k0, k1, starts, places, entries, sums, low, high):
    """Add the lists k0:k1 of a row, times their weights, to the sums of the places low:high."""
    one = np.uint64(1)  # unsigned throughout: support for negative indices would take a third of the time
    part = low > 0 or high < len(sums)
    for k in range(k0, k1):
        weight, f = weights[k], np.uint32(lists[k])
        p, stop = np.uint64(starts[f]), np.uint64(starts[f + np.uint32(1)])
        if part:
            while p < stop and places[p] < low:
                p += one
            while p < stop and places[stop - one] >= high:
                stop -= one
        while p < stop:
            sums[places[p]] += weight * entries[p]
            p += one
