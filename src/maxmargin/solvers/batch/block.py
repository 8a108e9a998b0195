"""The block of Q that belongs to a working set, whose rows the pair loop reads.

Four ways to have it. `PanelBlock` lays the members out in panels and computes a row when the pair loop asks
for it: most rows are never asked for, and one takes about as long as a pair step. `CachedBlock` gathers it
from whole kernel rows, for a matrix that was given and for wide sparse samples, whose values take longer to
compute; if these rows do not all fit the cache, `IndexBlock` computes it, with the frequent columns of the
members in panels. `FullBlock` works for any kernel and any coupling: the rows of new members are computed at
once and mirrored.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from maxmargin._compiled.jit import compiled
from maxmargin._compiled.memory import aligned
from maxmargin._types import Index, RowData, Rows
from maxmargin.dual import Dual
from maxmargin.kernels._strip import PANEL_BYTES, rbf_strip
from maxmargin.kernels.inverted import add_lists, lists_of
from maxmargin.kernels.panels import Lines, Panels, padded
from maxmargin.solvers._pair_rows import begin, fetch, has, is_kind


class BlockRows(NamedTuple):
    """The rows of a block, and the data from which compiled code computes those that are missing."""

    flat: NDArray[Any]
    #: Distance between the beginnings of two rows.
    stride: int
    diag: NDArray[Any]
    valid: NDArray[np.bool_]
    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]
    dense: bool
    samples: Index
    norm: NDArray[Any]
    values: NDArray[Any]
    norms: NDArray[Any]
    d: int
    #: Whole kernel rows and where those of the members are, or nothing.
    table: NDArray[Any]
    slots: Index
    #: Entries of the samples in columns that have lists, and the lists of the members; or nothing.
    rare: Lines
    starts: NDArray[Any]
    places: NDArray[np.uint16]
    entries: NDArray[Any]


def block_for(problem: Dual, gram: Rows, size: int) -> Block:
    """A block for a working set of `size` places, of the quicker kind that can hold it."""
    plain = problem.coupling.shape == (1, 1) and problem.coupling[0, 0] == 1.0 and not problem.shift
    if plain and gram.panelled:
        return (PanelBlock if gram.on_demand is not None else GatheredBlock)(problem, gram, size)
    if plain and (gram.given or (gram.by_frequency is not None and gram.capacity >= gram.n)):
        return CachedBlock(problem, gram, size)
    return (IndexBlock if plain and gram.by_frequency is not None else FullBlock)(problem, gram, size)


class Block:
    """Rows of Q between the places of a working set."""

    #: Whether it reads rows of the cache, which must not be emptied meanwhile.
    needs_cache = False

    def __init__(self, problem: Dual, gram: Rows, width: int, size: int, zero: bool = True) -> None:
        self.problem, self.gram = problem, gram
        # Rows a power of two apart would fall into the same cache lines when columns are written.
        self.Q = aligned((size, width + 16), gram.dtype, zero=zero)
        self.diag = np.zeros(size, gram.dtype)
        self._diag = problem.diag(gram)

    def enter(self, places: Index, ids: Index) -> None:
        """Put the variables ``ids[places]`` at their places."""
        self.diag[places] = self._diag[ids[places]]

    def enter_all(self, ids: Index) -> None:
        """The whole problem at once."""
        self.enter(np.arange(len(ids)), ids)

    @property
    def rows(self) -> BlockRows:
        """For the pair loop."""
        raise NotImplementedError


class PanelBlock(Block):
    """Members in panels of their own; rows on demand."""

    def __init__(self, problem: Dual, gram: Rows, size: int) -> None:
        data = gram.on_demand
        assert data is not None  # otherwise it is a `GatheredBlock`
        self._lines, d = self._panelled(data, gram)
        self._norm = data.norm
        empty = np.full(size, -1)
        self._panels = Panels(self._lines, d, data.norm, data.slope, empty)
        super().__init__(problem, gram, len(self._panels.norm), size)
        self._samples = empty
        self._valid = np.zeros(size, np.bool_)
        self._lists = _no_lists(gram.dtype)

    def _panelled(self, data: RowData, gram: Rows) -> tuple[Lines, int]:
        """The samples in panels, and the number of their features."""
        return data.lines, data.d

    def enter(self, places: Index, ids: Index) -> None:
        """The members that leave are wiped out of the panels; no row is complete any more."""
        super().enter(places, ids)
        self._panels.clear(self._lines, places, self._samples[places])
        self._samples[places] = self.gram.columns[self.problem.row[ids[places]]]
        self._panels.put(self._lines, self._norm, places, self._samples[places])
        self._valid[:] = False

    @property
    def rows(self) -> BlockRows:
        """For the pair loop."""
        panels = self._panels
        return BlockRows(
            self.Q.reshape(-1), self.Q.shape[1], self.diag, self._valid, *self._lines, self._samples,
            self._norm, panels.values, panels.norm, panels.d, *_no_table(self.Q.dtype), *self._lists,
        )  # fmt: skip


class GatheredBlock(Block):
    """Copies of the members in panels, rows on demand, where the samples are not laid out in memory."""

    def __init__(self, problem: Dual, gram: Rows, size: int) -> None:
        width = padded(size, gram.dtype)
        super().__init__(problem, gram, width, size)
        self._valid = np.zeros(size, np.bool_)
        self._lists = _no_lists(gram.dtype)

    def enter(self, places: Index, ids: Index) -> None:
        """All members are gathered: that takes as long as some dozens of rows."""
        super().enter(places, ids)
        there = np.flatnonzero(ids >= 0)
        data = self.gram.gather(self.problem.row[ids[there]])
        order = np.full(len(ids), -1)
        order[there] = np.arange(len(there))
        self._data, self._samples = data, np.maximum(order, 0)
        self._panels = Panels(data.lines, data.d, data.norm, data.slope, order)
        self._valid[:] = False

    @property
    def rows(self) -> BlockRows:
        """For the pair loop."""
        data, panels = self._data, self._panels
        lines: Lines = data.lines
        return BlockRows(
            self.Q.reshape(-1), self.Q.shape[1], self.diag, self._valid, *lines, self._samples,
            data.norm, panels.values, panels.norm, panels.d, *_no_table(self.Q.dtype), *self._lists,
        )  # fmt: skip


class CachedBlock(Block):
    """Rows gathered on demand from whole kernel rows, which are computed when a member enters.

    Nearly all members move, and their rows are then needed for the update of the gradient.
    """

    needs_cache = True

    def __init__(self, problem: Dual, gram: Rows, size: int) -> None:
        super().__init__(problem, gram, size, size, zero=False)
        # An empty place may have any value, but one that is computed: memory may hold anything.
        self._samples = np.full(size, gram.columns[0])
        self._slots = np.zeros(size, np.intp)
        self._valid = np.zeros(size, np.bool_)

    def enter(self, places: Index, ids: Index) -> None:
        """Compute what is missing of the rows of new members; no row of the block is complete any more."""
        super().enter(places, ids)
        rows = self.problem.row[ids[places]]
        self.gram.ensure(rows)
        self._samples[places] = self.gram.columns[rows]
        self._slots[places] = self.gram.slot[rows]
        self._valid[:] = False

    @property
    def rows(self) -> BlockRows:
        """For the pair loop."""
        none, numbers = np.zeros(0, np.int32), np.zeros(0, self.Q.dtype)
        return BlockRows(
            self.Q.reshape(-1), self.Q.shape[1], self.diag, self._valid, none, none, numbers, False,
            self._samples, numbers, numbers, numbers, 0, self.gram.table, self._slots,
            *_no_lists(self.Q.dtype),
        )  # fmt: skip


class IndexBlock(PanelBlock):
    """Frequent columns of the members in panels, the others in lists; rows on demand."""

    def _panelled(self, data: RowData, gram: Rows) -> tuple[Lines, int]:
        head, d, self._rare, lists = gram.by_frequency
        self._slope = gram.dtype.type(data.slope)
        self._starts = np.zeros(lists + 1, self._rare.indptr.dtype)
        return head, d

    def enter(self, places: Index, ids: Index) -> None:
        """The lists are made again, which takes as long as some dozens of rows."""
        super().enter(places, ids)
        lists = lists_of(self._rare, self._samples, self._slope, self._starts)
        self._lists = (self._rare, self._starts, *lists)


class FullBlock(Block):
    """All rows, always."""

    def __init__(self, problem: Dual, gram: Rows, size: int) -> None:
        super().__init__(problem, gram, size, size)
        none, numbers = np.zeros(0, np.int32), np.zeros(0, gram.dtype)
        samples, nothing = np.zeros(0, np.intp), (*_no_table(gram.dtype), *_no_lists(gram.dtype))
        self._data = none, none, numbers, False, samples, numbers, numbers, numbers, 0, *nothing
        self._valid = np.ones(size, np.bool_)

    def enter(self, places: Index, ids: Index) -> None:
        """Compute the rows of the new members and mirror them."""
        super().enter(places, ids)
        there = np.flatnonzero(ids >= 0)
        block = self.problem.block(ids[places], ids[there], self.gram)
        # A value between two new members is computed, and written, twice. Rounding may make the two differ,
        # and which thread is the last to write is left to chance: the upper triangle counts.
        new = np.searchsorted(there, places)
        square = block[:, new]
        block[:, new] = np.triu(square) + np.triu(square, 1).T
        threads = self.gram.threads
        threads.run(lambda a, b: _mirror(self.Q, block, places, there, a, b), threads.split(len(there), 512))

    def enter_all(self, ids: Index) -> None:
        """The whole problem, whose block needs no mirror."""
        super().enter(np.arange(len(ids)), ids)
        self.Q = self.problem.block(ids, ids, self.gram)

    @property
    def rows(self) -> BlockRows:
        """For the pair loop; no row is missing."""
        return BlockRows(self.Q.reshape(-1), self.Q.shape[1], self.diag, self._valid, *self._data)


def _no_table(dtype: Any) -> tuple[NDArray[Any], Index]:
    return np.zeros((0, 0), dtype), np.zeros(0, np.intp)


def _no_lists(dtype: Any) -> tuple[Any, ...]:
    none, numbers = np.zeros(0, np.int32), np.zeros(0, dtype)
    return Lines(none, none, numbers, False), none, np.zeros(0, np.uint16), numbers


@compiled()
def compute_row(rows, i):
    """Compute row i of the block, or gather it."""
    rows.valid[i] = True
    sample = rows.samples[i]
    if len(rows.table):
        values = rows.table[rows.slots[i]]
        line = rows.flat[i * rows.stride : i * rows.stride + len(rows.samples)]
        for c in range(len(line)):
            line[c] = values[rows.samples[c]]
        line[i] = rows.diag[i]
        return
    start, end = np.int64(rows.indptr[sample]), np.int64(rows.indptr[sample + 1])
    first = np.int64(0) if rows.dense else start
    width = PANEL_BYTES // rows.flat.itemsize
    if len(rows.starts):
        _compute_from_lists(rows, i)
        return
    for c in range(0, len(rows.norms), width):
        rbf_strip(
            rows.indices, first, rows.data, start, end - start, rows.values, c * rows.d, rows.norms, c,
            rows.norm[sample], rows.flat, i * rows.stride + c,
        )  # fmt: skip
    rows.flat[i * rows.stride + i] = rows.diag[i]  # exact: rounding must not make equal points look curved


@compiled()
def _compute_from_lists(rows, i):
    """Compute row i of an `IndexBlock`: first the sums over lists, then the panels."""
    sample, rare, size = rows.samples[i], rows.rare, len(rows.norms)
    start, end = np.int64(rows.indptr[sample]), np.int64(rows.indptr[sample + 1])
    line = rows.flat[i * rows.stride : i * rows.stride + size]
    for c in range(size):
        line[c] = rows.norms[c]
    k0, k1 = rare.indptr[sample], rare.indptr[sample + 1]
    add_lists(rare.indices, rare.data, k0, k1, rows.starts, rows.places, rows.entries, line, 0, size)
    for c in range(0, size, PANEL_BYTES // rows.flat.itemsize):
        at = i * rows.stride + c
        rbf_strip(
            rows.indices, start, rows.data, start, end - start, rows.values, c * rows.d, rows.flat, at,
            rows.norm[sample], rows.flat, at,
        )  # fmt: skip
    line[i] = rows.diag[i]


@overload(has, inline="always")
def _has(rows, i):
    if is_kind(rows, BlockRows):
        return lambda rows, i: rows.valid[i]
    return None


@overload(fetch, inline="always")
def _fetch(rows, i):
    if is_kind(rows, BlockRows):
        return lambda rows, i: compute_row(rows, i)
    return None


@overload(begin, inline="always")
def _begin(rows, i):
    if is_kind(rows, BlockRows):
        return lambda rows, i: i * rows.stride
    return None


@compiled()
def _mirror(Q, block, places, there, start, end):
    """``Q[places, there] = block`` and its transpose, for the columns start:end of the block."""
    for r in range(len(places)):
        row, line = Q[places[r]], block[r]
        for c in range(start, end):
            row[there[c]] = line[c]
    strip = 16  # rows whose lines stay in the cache while the columns are written
    for c0 in range(start, end, strip):
        c1 = min(end, c0 + strip)
        for r in range(len(places)):
            p, line = places[r], block[r]
            for c in range(c0, c1):
                Q[there[c], p] = line[c]
