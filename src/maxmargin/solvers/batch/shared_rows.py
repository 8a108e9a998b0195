"""Kernel rows that problems over the same classes share: computed on demand by compiled code, or a table."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.intrinsics import acquire, raised, release, take
from maxmargin._compiled.jit import compiled
from maxmargin._compiled.limits import Stopped
from maxmargin._compiled.memory import recycled, writable
from maxmargin._compiled.sums import add_tile
from maxmargin._types import Index, RowData, Rows
from maxmargin.kernels._form import POLY, RBF, Form
from maxmargin.kernels._strip import PANEL_BYTES, dot_strip, rbf_strip
from maxmargin.kernels.panels import Lines, Panels, padded
from maxmargin.solvers import costs


class SharedRows(NamedTuple):
    """Kernel rows of all samples, by segments (classes), and the data from which compiled code fills them in.

    The part of row i that belongs to segment s begins at ``pool[where[i, s]]``, if that is not negative: the
    samples ``bounds[s] : bounds[s + 1]`` and places without a sample, up to the next full panel; the
    segment's panels begin at the place ``starts[s]``. Parts follow each other in the order in which they
    were asked for: only what is used of the pool is ever touched. `used` is its length so far.

    Kernels that compiled code cannot compute have a complete table in place of the pool, without places that
    have no sample, and no data.
    """

    bounds: Index
    starts: Index
    pool: NDArray[Any]
    where: NDArray[np.int64]
    used: NDArray[np.int64]
    #: k(x, x) of all samples.
    diag: NDArray[Any]
    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]
    dense: bool
    norm: NDArray[Any]
    values: NDArray[Any]
    norms: NDArray[Any]
    d: int
    form: Form

    @property
    def holds_all(self) -> bool:
        """Whether there is a place for every value."""
        return len(self.where) * int(self.starts[-1]) <= len(self.pool)

    @staticmethod
    def of(gram: Rows, data: RowData, bounds: Index) -> SharedRows | None:
        """Rows of `gram`, computed from its `data`; None where they would not fit."""
        ends = bounds.tolist()
        places = [0]
        for begin, end in pairwise(ends):
            places.append(places[-1] + padded(end - begin, gram.dtype))
        if places[-1] * data.d > costs.WHOLE_MOST_VALUES:
            return None
        order = np.full(places[-1], -1)
        for at, (begin, end) in zip(places, pairwise(ends), strict=False):
            order[at : at + end - begin] = np.arange(begin, end)
        lines: Lines = data.lines
        panels = Panels(lines, data.d, data.norm, data.slope, order)
        norms = panels.norm if data.form.kind == RBF else np.zeros_like(panels.norm)
        pool = recycled(min(gram.n * places[-1], gram.cache_bytes // gram.dtype.itemsize), gram.dtype)
        return SharedRows(
            np.asarray(bounds, dtype=np.intp), np.array(places, dtype=np.intp), pool,
            np.full((gram.n, len(bounds) - 1), -1), np.zeros(1, np.int64), gram.diag.astype(gram.dtype),
            *lines, data.norm, panels.values, norms, panels.d, data.form,
        )  # fmt: skip

    @staticmethod
    def again(earlier: Any, bounds: Index) -> SharedRows | None:
        """Rows of earlier problems over the same segments, emptied if not all of them find a place."""
        if not isinstance(earlier, SharedRows) or not np.array_equal(earlier.bounds, bounds):
            return None
        if not earlier.holds_all:
            earlier.where[:], earlier.used[0] = -1, 0
        return earlier

    @staticmethod
    def complete(gram: Rows, bounds: Index) -> SharedRows | None:
        """The table of `gram`, computed at once; None where it does not hold all rows, or time is up."""
        if not gram.in_place:
            return None
        try:
            with gram.threads:
                gram.ensure(gram.columns)
        except Stopped:
            return None
        table, bounds = writable(gram.table), np.asarray(bounds, dtype=np.intp)
        where = gram.slot[:, None] * table.shape[1] + bounds[None, :-1]
        whole, none = np.empty(0, np.int32), np.empty(0, gram.dtype)
        return SharedRows(
            bounds, bounds, table.reshape(-1), where, np.zeros(1, np.int64), gram.diag.astype(gram.dtype),
            whole, whole, none, True, none, none, none, 0, Form.none(gram.dtype),
        )  # fmt: skip


@compiled()
def need(rows, i, touched, flag):
    """Compute what is missing of row i; returns the number of values, -1 if there is no room or no time."""
    computed = 0
    width = PANEL_BYTES // rows.pool.itemsize
    for s in touched:
        if rows.where[i, s] >= 0:
            continue
        if raised(flag):
            return -1
        size = rows.starts[s + 1] - rows.starts[s]
        at = take(rows.used, size)
        if at + size > len(rows.pool):
            return -1
        start, end = np.int64(rows.indptr[i]), np.int64(rows.indptr[i + 1])
        first = np.int64(0) if rows.dense else start
        for k in range(0, size, width):
            c = rows.starts[s] + k
            if rows.form.kind == RBF:
                rbf_strip(
                    rows.indices, first, rows.data, start, end - start, rows.values, c * rows.d,
                    rows.norms, c, rows.norm[i], rows.pool, at + k,
                )  # fmt: skip
            else:
                dot_strip(
                    rows.indices, first, rows.data, start, end - start, rows.values, c * rows.d,
                    rows.norms, c, rows.norm[i], rows.pool, at + k,
                )  # fmt: skip
        if rows.form.kind == POLY:
            _raise_to_power(rows.pool[at : at + size], rows.form.shift, rows.form.degree)
        release()  # another thread that sees where the values are must see the values
        rows.where[i, s] = at
        computed += rows.bounds[s + 1] - rows.bounds[s]
    return computed


@compiled()
def _raise_to_power(line, shift, degree):
    """``line = (line + shift) ** degree``, in few instructions: every caller compiles them again."""
    base = line + shift
    line[:] = line.dtype.type(1.0)
    for _ in range(degree):
        for t in range(len(line)):
            line[t] *= base[t]


@compiled()
def gradient(rows, problem, u, g, near, flag):
    """``g = (K + diag(ridge)) u - p``, summed in float64; returns the kernel values computed, or -1.

    If `near` is not empty, g is the gradient at that point, which becomes u: only the difference is added.
    """
    touched, samples, p, ridge = problem.touched, problem.samples, problem.p, problem.ridge
    change = u - near if len(near) else u
    support = support_of(change)
    total = 0
    for t in support:
        computed = need(rows, samples[t], touched, flag)
        if computed < 0:
            return -1
        total += computed
    acquire()
    coef = change[support]
    acc = np.empty(len(u), np.float64)
    start, before = 0, -1
    for s in touched:
        size = rows.bounds[s + 1] - rows.bounds[s]
        if s != before:  # paired variables have the same sums
            parts = np.empty(len(support), np.int64)
            for k in range(len(support)):
                parts[k] = rows.where[samples[support[k]], s]
            add_tile(acc, rows.pool, parts, coef, size)
            before = s
        for k in range(start, start + size):
            known = g[k] if len(near) else -p[k]
            g[k] = known + acc[k - start] + ridge[k] * change[k]
        start += size
    near[:] = u[: len(near)]
    return total


@compiled()
def support_of(u):
    """`np.flatnonzero`, which takes longer to compile."""
    count = 0
    for t in range(len(u)):
        count += u[t] != 0.0
    found, k = np.empty(count, np.int64), 0
    for t in range(len(u)):
        if u[t] != 0.0:
            found[k] = t
            k += 1
    return found
