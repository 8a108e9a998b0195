"""Small problems, solved at once: second-order SMO that computes the kernel rows it asks for.

A class pair of a few thousand samples has few support vectors, and each of its pair steps takes less
than a microsecond: what would cost time is everything around them. So one compiled call does it all,
kernel rows included. A missing row is one sparse row times a transposed copy of the data, and goes
into the table that all pairs share, class by class: the part of a row that belongs to its own class
serves every pair of that class. The call does not hold the GIL, so pairs run side by side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._jit import IN_ORDER, REORDER, add_rows, compiled, exp2, fmax, fmin, index_in, with_index
from maxmargin.dual import Dual
from maxmargin.solvers.base import State

# Values of the transposed copy, and variables of a problem, up to which this way is taken.
_LARGEST_COPY, LARGEST = 1 << 23, 2048


def suits(problem: Dual, gram: Any) -> bool:
    """Whether the problem is small and simple enough."""
    base = getattr(gram, "base", gram)
    return bool(
        problem.m <= LARGEST
        and problem.n_groups == 1
        and problem.coupling.shape == (1, 1)
        and not problem.shift
        and base.holds_all
        and base.kernel.name == "rbf"
        and base.points.n * base.points.X.shape[1] <= _LARGEST_COPY
        and _segments_of(base, gram.columns[problem.row]) is not None
    )


class OnDemand:
    """The whole problem as a working set that never changes; see `maxmargin.solvers.batch`."""

    def __init__(self, state: State) -> None:
        problem, gram = state.problem, state.gram
        self.problem, self.tally = problem, gram
        self.base = getattr(gram, "base", gram)
        self.rows = gram.columns[problem.row]
        self.touched = np.asarray(_segments_of(self.base, self.rows), dtype=np.int64)
        dtype = self.base.dtype
        diag = problem.diag(gram)
        unit = float(np.max(np.abs(diag), initial=0.0)) or 1.0
        self.tau = dtype.type(unit * (1e-6 if dtype == np.float32 else 1e-12))
        self.big = dtype.type(1e30 if dtype == np.float32 else 1e300)
        self.diag = diag.astype(dtype)
        self.buffers = np.empty((2, problem.m), dtype)
        self.before = state.u.copy()

    def solve(self, state: State) -> tuple[int, NDArray[np.intp], NDArray[np.float64]]:
        """Run to the end; returns the steps taken, the variables that moved and by how much."""
        problem, base = self.problem, self.base
        middle = 0.5 * float(state.least[0] + state.most[0])
        dtype = base.dtype
        g = (state.g - (middle if np.isfinite(middle) else 0.0)).astype(dtype)
        X, transposed = base.transposed()
        counts = np.zeros(1, np.int64)
        self.before[:] = state.u
        steps = _solve(
            state.u, problem.lo, problem.hi, g, problem.ridge, self.diag, self.rows, self.touched,
            base.segments, base.table, base.valid, X, transposed, base.points.norm,
            dtype.type(0.5 * state.target), min(100 * problem.m, state.left), self.buffers[0],
            self.buffers[1], self.big, self.tau, counts,
        )  # fmt: skip
        self.tally.count(evals=int(counts[0]), calls=3 * steps * problem.m)
        moved = np.flatnonzero(state.u != self.before)
        return int(steps), moved, state.u[moved] - self.before[moved]

    def update_gradient(self, state: State, moved: NDArray[np.intp], delta: NDArray[np.float64]) -> None:
        """Bring the gradient up to date; u has moved already."""
        start, bounds = 0, self.base.segments
        for s in self.touched:
            c0, c1 = int(bounds[s]), int(bounds[s + 1])
            part = state.g[start : start + c1 - c0]
            add_rows(part, self.base.table, self.rows[moved], delta, c0, c1)
            start += c1 - c0
        state.g[moved] += self.problem.ridge[moved] * delta


def _segments_of(base: Any, rows: NDArray[np.intp]) -> list[int] | None:
    """The segments that `rows` consist of, whole and in order; None if they do not."""
    bounds = base.segments
    if len(bounds) == 2:
        return [0] if len(rows) == base.n and rows[0] == 0 and rows[-1] == base.n - 1 else None
    found, at = [], 0
    while at < len(rows):
        s = int(np.searchsorted(bounds, rows[at], side="right")) - 1
        size = int(bounds[s + 1] - bounds[s])
        if rows[at] != bounds[s] or at + size > len(rows) or rows[at + size - 1] != bounds[s + 1] - 1:
            return None
        found.append(s)
        at += size
    return found


@compiled(fastmath=IN_ORDER)
def _fetch(i, segment, bounds, table, X, transposed, norm):  # type: ignore[no-untyped-def]
    """One segment of one row: ``2 ** min(0, <x_i, x> - norm_i - norm)`` (X is scaled)."""
    width = 512
    c0, c1 = bounds[segment], bounds[segment + 1]
    zero = norm.dtype.type(0.0)
    x = X[i]
    index = np.empty(len(x), np.int64)
    n = 0
    for k in range(len(x)):
        if x[k] != zero:
            index[n] = k
            n += 1
    acc = np.empty(width, norm.dtype)
    for s in range(c0, c1, width):
        e = min(c1, s + width)
        size = e - s
        b = norm[s:e]
        for t in range(size):
            acc[t] = -norm[i] - b[t]
        k = 0
        while k + 4 <= n:
            v0, v1, v2, v3 = x[index[k]], x[index[k + 1]], x[index[k + 2]], x[index[k + 3]]
            p0 = transposed[index[k], s:e]
            p1 = transposed[index[k + 1], s:e]
            p2 = transposed[index[k + 2], s:e]
            p3 = transposed[index[k + 3], s:e]
            for t in range(size):
                acc[t] = v3 * p3[t] + (v2 * p2[t] + (v1 * p1[t] + (v0 * p0[t] + acc[t])))
            k += 4
        while k < n:
            v0 = x[index[k]]
            p0 = transposed[index[k], s:e]
            for t in range(size):
                acc[t] += v0 * p0[t]
            k += 1
        target = table[i, s:e]
        for t in range(size):
            target[t] = exp2(fmin(acc[t], zero))


@compiled()
def _need(i, touched, bounds, table, valid, X, transposed, norm):  # type: ignore[no-untyped-def]
    """Compute what is missing of row i; returns the number of values."""
    computed = 0
    for s in touched:
        if not valid[i, s]:
            _fetch(i, s, bounds, table, X, transposed, norm)
            valid[i, s] = True
            computed += bounds[s + 1] - bounds[s]
    return computed


@compiled(fastmath=REORDER)
def _solve(  # type: ignore[no-untyped-def]
    u, lo, hi, g, ridge, diag, rows, touched, bounds, table, valid, X, transposed, norm, tol,
    max_steps, up, down, big, tau, counts,
):  # fmt: skip
    """Second-order SMO on all variables; returns the steps taken. See `batch._inner`."""
    zero, two = g.dtype.type(0.0), g.dtype.type(2.0)
    low, most = big, -big
    i = 0
    for t in range(len(u)):
        up[t] = g[t] if u[t] < hi[t] else big
        down[t] = g[t] if u[t] > lo[t] else -big
        most = max(most, down[t])
        if up[t] < low:
            low = up[t]
            i = t
    steps = 0
    while steps < max_steps and most - low >= tol:
        gi = rows[i]
        counts[0] += _need(gi, touched, bounds, table, valid, X, transposed, norm)
        diag_i = diag[i]
        best, j, start = -big, -1, 0
        for s in touched:
            size = bounds[s + 1] - bounds[s]
            row = table[gi, bounds[s] : bounds[s + 1]]
            some_down, some_diag = down[start : start + size], diag[start : start + size]
            here = zero
            for t0 in range(0, size, 2048):  # an index has 11 bits
                part = zero
                end = min(2048, size - t0)
                r, dn, dg = row[t0:], some_down[t0:], some_diag[t0:]
                for t in range(end):
                    b = fmax(dn[t] - low, zero)
                    gain = b * b / fmax(diag_i + dg[t] - two * r[t], tau)
                    part = fmax(part, with_index(gain, t))
                if part > here:
                    here = part
                    if here > best:
                        best = here
                        j = start + t0 + index_in(part)
            start += size
        gj = rows[j]
        counts[0] += _need(gj, touched, bounds, table, valid, X, transposed, norm)
        g_j = down[j]
        # K_ij: column of j in the row of i
        curvature = np.float64(diag_i) + np.float64(diag[j]) - 2.0 * np.float64(table[gi, gj])
        room_i, room_j = hi[i] - u[i], u[j] - lo[j]
        d = min(np.float64(g_j - low) / max(curvature, np.float64(tau)), min(room_i, room_j))
        before_i, before_j = u[i], u[j]
        u[i] = hi[i] if d == room_i else u[i] + d
        u[j] = lo[j] if d == room_j else u[j] - d
        if u[i] == before_i and u[j] == before_j:
            break  # the pair cannot move in this precision
        steps += 1
        step = g.dtype.type(d)
        new_i = low + g.dtype.type(ridge[i]) * step
        new_j = g_j - g.dtype.type(ridge[j]) * step
        up[i] = new_i if u[i] < hi[i] else big
        down[i] = new_i if u[i] > lo[i] else -big
        up[j] = new_j if u[j] < hi[j] else big
        down[j] = new_j if u[j] > lo[j] else -big
        ref, high, low, start = most, -big, big, 0
        for s in touched:
            size = bounds[s + 1] - bounds[s]
            row_i = table[gi, bounds[s] : bounds[s + 1]]
            row_j = table[gj, bounds[s] : bounds[s + 1]]
            some_up, some_down = up[start : start + size], down[start : start + size]
            best = zero
            for t in range(size):
                x = step * (row_i[t] - row_j[t])
                a = some_up[t] + x
                b = some_down[t] + x
                some_up[t] = a
                some_down[t] = b
                high = fmax(high, b)
                best = fmax(best, with_index(fmax(ref - a, zero), t))
            k = index_in(best)
            if k < size and some_up[k] < ref and some_up[k] < low:
                low = some_up[k]
                i = start + k
            start += size
        most = high
        if low >= ref:  # nothing below ref: scan exactly
            for t in range(len(u)):
                if up[t] < low:
                    low = up[t]
                    i = t
    return steps
