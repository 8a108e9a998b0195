"""The block of Q that belongs to a working set, whose rows the pair loop reads.

Two ways to have it. `PanelBlock` lays the members out in panels and computes a row when the pair loop asks
for it: most rows are never asked for, and one takes about as long as a pair step. `FullBlock` works for any
kernel and any coupling: the rows of new members are computed at once and mirrored.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from maxmargin._compiled.jit import compiled
from maxmargin._compiled.memory import aligned
from maxmargin._types import Index, Rows
from maxmargin.dual import Dual
from maxmargin.kernels._strip import PANEL_BYTES, rbf_strip
from maxmargin.kernels.panels import Lines, Panels
from maxmargin.solvers.pairs import begin, fetch, has, is_kind


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


def block_for(problem: Dual, gram: Rows, size: int) -> Block:
    """A block for a working set of `size` places, of the quicker kind that can hold it."""
    plain = problem.coupling.shape == (1, 1) and problem.coupling[0, 0] == 1.0 and not problem.shift
    return (PanelBlock if plain and gram.panelled else FullBlock)(problem, gram, size)


class Block:
    """Rows of Q between the places of a working set."""

    def __init__(self, problem: Dual, gram: Rows, width: int, size: int) -> None:
        self.problem, self.gram = problem, gram
        # Rows a power of two apart would fall into the same cache lines when columns are written.
        self.Q = aligned((size, width + 16), gram.dtype, zero=True)
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
        assert data is not None  # `block_for` has asked whether rows are panelled
        self._lines: Lines = data.lines
        self._norm = data.norm
        empty = np.full(size, -1)
        self._panels = Panels(data.lines, data.d, data.norm, data.slope, empty)
        super().__init__(problem, gram, len(self._panels.norm), size)
        self._samples = empty
        self._valid = np.zeros(size, np.bool_)

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
            self._norm, panels.values, panels.norm, panels.d,
        )  # fmt: skip


class FullBlock(Block):
    """All rows, always."""

    def __init__(self, problem: Dual, gram: Rows, size: int) -> None:
        super().__init__(problem, gram, size, size)
        none, numbers = np.zeros(0, np.int32), np.zeros(0, gram.dtype)
        self._data = (none, none, numbers, False, np.zeros(0, np.intp), numbers, numbers, numbers, 0)
        self._valid = np.ones(size, np.bool_)

    def enter(self, places: Index, ids: Index) -> None:
        """Compute the rows of the new members and mirror them."""
        super().enter(places, ids)
        there = np.flatnonzero(ids >= 0)
        block = self.problem.block(ids[places], ids[there], self.gram)
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


@compiled()
def compute_row(rows, i):
    """Compute row i of the block."""
    rows.valid[i] = True
    sample = rows.samples[i]
    start, end = np.int64(rows.indptr[sample]), np.int64(rows.indptr[sample + 1])
    first = np.int64(0) if rows.dense else start
    width = PANEL_BYTES // rows.flat.itemsize
    for c in range(0, len(rows.norms), width):
        rbf_strip(
            rows.indices, first, rows.data, start, end - start, rows.values, c * rows.d, rows.norms, c,
            rows.norm[sample], rows.flat, i * rows.stride + c,
        )  # fmt: skip
    rows.flat[i * rows.stride + i] = rows.diag[i]  # exact: rounding must not make equal points look curved


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
