"""Gradient projection on one face of the box: the block of the matrix, directions, and line searches."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.intrinsics import raised
from maxmargin._compiled.jit import REORDER, compiled
from maxmargin._compiled.limits import call, current
from maxmargin._types import Floats, Index, Rows
from maxmargin.dual import Dual
from maxmargin.solvers.state import State

# Lengths of a bent step that are tried.
_BENDS = 3


class Diagonal(NamedTuple):
    """A matrix of square blocks on its diagonal, and zeros elsewhere."""

    #: The blocks, one after the other, row by row.
    values: NDArray[Any]
    #: Block b has the rows and columns ``ranges[b] : ranges[b + 1]``.
    ranges: Index


def one_block(Q: Floats) -> Diagonal:
    """A dense matrix as a `Diagonal`."""
    return Diagonal(Q.reshape(-1), np.array([0, len(Q)]))


class Block:
    """The matrix on some of the variables; values that are known are not computed again.

    Its values count as used when a step reads them, not here.
    """

    def __init__(self, problem: Dual, gram: Rows) -> None:
        self._problem, self._gram = problem, gram
        self._own = np.zeros(0, np.intp)
        self._Q = np.zeros((0, 0))

    def of(self, own: Index) -> Floats:
        """The block for the variables `own`, in ascending order."""
        if np.array_equal(own, self._own):
            return self._Q
        # The rows of what moves are wanted again, for the whole gradient.
        cached = len(own) < self._problem.m and self._gram.holds_all
        if not len(self._own):
            self._own, self._Q = own, self._values(own, own, cached)
            return self._Q
        at = np.searchsorted(self._own, own)
        known = at < len(self._own)
        known[known] = self._own[at[known]] == own[known]
        new = np.flatnonzero(~known)
        Q = np.empty((len(own), len(own)))
        old = np.flatnonzero(known)
        Q[np.ix_(old, old)] = self._Q[np.ix_(at[old], at[old])]
        if len(new):
            Q[new] = self._values(own[new], own, cached)
            Q[:, new] = Q[new].T
        self._own, self._Q = own, Q
        return Q

    def _values(self, rows: Index, columns: Index, cached: bool) -> Floats:
        values: Floats = self._problem.block(rows, columns, self._gram, cached)
        self._gram.count(calls=-len(rows) * len(columns))
        return values.astype(np.float64, copy=False)


def on_face(
    state: State,
    own: Index,
    Q: Floats | Diagonal,
    conjugate: bool,
    flat: float,
    budget: int,
    reads: NDArray[np.int64] | None = None,
) -> tuple[Floats, Floats, int, bool]:
    """Minimise over the variables `own`: their values, their gradient, the steps, whether it came to its end.

    The values of the block that its steps read are added to `reads`.
    """
    problem = state.problem
    u, g = state.u[own], state.g[own]
    Q = Q if isinstance(Q, Diagonal) else one_block(Q)
    groups, group = np.unique(problem.group[own], return_inverse=True)
    steps, finished = call(
        minimise,
        Q,
        g,
        u,
        problem.lo[own],
        problem.hi[own],
        group,
        max(1, len(groups)),
        conjugate,
        max(flat, 0.0),
        budget,
        np.zeros(1, np.int64) if reads is None else reads,
        current().flag,
        work=float(budget) * len(Q.values),
    )
    return u, g, int(steps), bool(finished)


@compiled()
def _levels(g, u, lo, hi, free, group, level):
    """Each group's mean gradient over its free variables; without any, the middle of what violates most."""
    n_groups = len(level)
    count = np.zeros(n_groups)
    low, high = np.full(n_groups, np.inf), np.full(n_groups, -np.inf)
    level[:] = 0.0
    for t in range(len(g)):
        k = group[t]
        if free[t]:
            level[k] += g[t]
            count[k] += 1.0
        if u[t] < hi[t]:
            low[k] = min(low[k], g[t])
        if u[t] > lo[t]:
            high[k] = max(high[k], g[t])
    for k in range(n_groups):
        if count[k] > 0.0:
            level[k] /= count[k]
        elif low[k] < np.inf and high[k] > -np.inf:
            level[k] = 0.5 * (low[k] + high[k])
        else:
            level[k] = low[k] if low[k] < np.inf else high[k]


@compiled()
def _release(g, u, lo, hi, free, group, level, flat):
    """Free what violates its multiplier by more than `flat`; whether there was anything.

    Many freed at once shift the mean: those that would then leave the box are put back.
    """
    _levels(g, u, lo, hi, free, group, level)
    fresh = np.zeros(len(g), np.bool_)
    found = False
    for t in range(len(g)):
        if not free[t]:
            wish = level[group[t]] - g[t]
            if (wish > flat and u[t] < hi[t]) or (wish < -flat and u[t] > lo[t]):
                free[t] = fresh[t] = found = True
    while found:
        _levels(g, u, lo, hi, free, group, level)
        back = False
        for t in range(len(g)):
            if fresh[t]:
                wish = level[group[t]] - g[t]
                if (wish <= 0.0 and u[t] <= lo[t]) or (wish >= 0.0 and u[t] >= hi[t]):
                    free[t] = fresh[t] = False
                    back = True
        if not back:
            break
    return found


@compiled()
def _project(d, g, free, group, drift):
    """Take from d what rounding added to its sums, which conjugate steps would magnify; returns -<g, d>."""
    drift[:] = 0.0
    for t in range(len(d)):
        if free[t]:
            drift[0, group[t]] += d[t]
            drift[1, group[t]] += 1.0
    slope = 0.0
    for t in range(len(d)):
        if free[t]:
            d[t] -= drift[0, group[t]] / drift[1, group[t]]
            slope -= g[t] * d[t]
    return slope


@compiled(fastmath=REORDER)
def _product(Q, d, z):
    """``z = Q d`` from the rows where d is not zero, four at a time; returns how many values that reads."""
    chosen, first, read = np.empty(len(d) + 3, np.int64), 0, 0
    z[:] = 0.0
    for block in range(len(Q.ranges) - 1):
        start, n = Q.ranges[block], Q.ranges[block + 1] - Q.ranges[block]
        own, size = d[start : start + n], 0
        for t in range(n):
            if own[t] != 0.0:
                chosen[size] = t
                size += 1
        chosen[size : size + 3] = 0
        values, out = Q.values[first : first + n * n].reshape(n, n), z[start : start + n]
        for s in range(0, size, 4):
            i, j, k, h = chosen[s], chosen[s + 1], chosen[s + 2], chosen[s + 3]
            a, b, c, e = own[i], own[j], own[k], own[h]
            b, c, e = b if s + 1 < size else 0.0, c if s + 2 < size else 0.0, e if s + 3 < size else 0.0
            p, q, r, x = values[i], values[j], values[k], values[h]
            for t in range(n):
                out[t] += (a * p[t] + b * q[t]) + (c * r[t] + e * x[t])
        first += n * n
        read += size * n
    return read


@compiled()
def _bend(u, lo, hi, d, step, group, n_groups, change):
    """The change from u to the projection of u + step d, d's variables alone, on the box and the sums.

    Each group is shifted by the root of a piecewise linear, monotone function: Newton's method in a bracket.
    Returns False where rounding leaves no root.
    """
    n = len(u)
    shift = np.zeros(n_groups)
    below, above = np.full(n_groups, -np.inf), np.full(n_groups, np.inf)
    for _ in range(100):
        over, inside, size = np.zeros(n_groups), np.zeros(n_groups), np.zeros(n_groups)
        for t in range(n):
            if d[t] != 0.0:
                to = u[t] + step * d[t] - shift[group[t]]
                inside[group[t]] += lo[t] < to < hi[t]
                change[t] = min(max(to, lo[t]), hi[t]) - u[t]
                over[group[t]] += change[t]
                size[group[t]] += abs(change[t])
            else:
                change[t] = 0.0
        done = True
        for k in range(n_groups):
            if abs(over[k]) > 1e-14 * size[k]:
                done = False
                if over[k] > 0.0:
                    below[k] = shift[k]
                else:
                    above[k] = shift[k]
                to = shift[k] + over[k] / max(inside[k], 0.5)
                if not below[k] < to < above[k]:
                    to = 0.5 * (below[k] + above[k])
                    if not below[k] < to < above[k]:
                        return False
                shift[k] = to
        if done:
            return True
    return False


@compiled()
def minimise(Q, g, u, lo, hi, group, n_groups, conjugate, flat, budget, reads, flag):
    """Rosen's method for a `Diagonal` Q; changes u and its gradient g in place.

    Begins by releasing what may be; with steepest directions it ends when the face is optimal after that,
    with conjugate ones it goes on until there is nothing to release. Returns the steps and whether it came
    to that end; the values of Q that were read are added to ``reads[0]``.
    """
    n = len(u)
    free = np.empty(n, np.bool_)
    for t in range(n):
        free[t] = lo[t] < u[t] < hi[t]
    level, drift = np.zeros(n_groups), np.zeros((2, n_groups))
    d, r, z = np.zeros(n), np.zeros(n), np.zeros(n)
    change, more = np.zeros(n), np.zeros(n)
    before = 0.0  # the squared length of the last projected gradient; 0: begin with the steepest direction
    steps, rounds = 0, 0
    while steps < budget and not raised(flag):
        _levels(g, u, lo, hi, free, group, level)
        worst, square, mixed = 0.0, 0.0, 0.0
        for t in range(n):
            wish = level[group[t]] - g[t] if free[t] else 0.0
            worst = max(worst, abs(wish))
            square += wish * wish
            mixed += wish * r[t]
            r[t] = wish
        if not worst > flat:
            if (rounds > 0 and not conjugate) or not _release(g, u, lo, hi, free, group, level, flat):
                return steps, True
            rounds += 1
            before = 0.0
            r[:] = 0.0
            if rounds > 10 * n + 100:
                return steps, False
            continue
        share = max(0.0, (square - mixed) / before) if conjugate and before > 0.0 else 0.0
        for t in range(n):
            d[t] = r[t] + share * d[t] if free[t] else 0.0
        slope = _project(d, g, free, group, drift)
        if not slope > 0.0:
            for t in range(n):
                d[t] = r[t]
            slope = _project(d, g, free, group, drift)
        before = square
        reads[0] += _product(Q, d, z)
        curvature = np.dot(z, d)
        room = np.inf
        for t in range(n):
            if d[t] > 0.0:
                room = min(room, (hi[t] - u[t]) / d[t])
            elif d[t] < 0.0:
                room = min(room, (lo[t] - u[t]) / d[t])
        step = slope / curvature if curvature > 0.0 else np.inf
        steps += 1
        if step < room:
            for t in range(n):
                u[t] += step * d[t]
                g[t] += step * z[t]
                if free[t] and not lo[t] < u[t] < hi[t]:  # by rounding
                    free[t] = False
                    before = 0.0
            continue
        if room == np.inf:
            return steps, False  # no minimum in this direction
        to_the_first = -room * (slope - 0.5 * room * curvature)
        bent = np.inf
        # Shorter ones are tried where the whole step, bent onto the bounds, gains less than the first bound.
        for _ in range(_BENDS if conjugate else 0):
            if not room < step < np.inf or not _bend(u, lo, hi, d, step, group, n_groups, change):
                break
            reads[0] += _product(Q, change, more)
            bent = np.dot(g, change) + 0.5 * np.dot(more, change)
            if bent < to_the_first:
                break
            step *= 0.25
        if bent < to_the_first:
            for t in range(n):
                u[t] = min(max(u[t] + change[t], lo[t]), hi[t])
                g[t] += more[t]
        else:
            for t in range(n):
                # What sets the limit is put on its bound exactly.
                if d[t] > 0.0 and hi[t] - u[t] <= room * d[t] * (1.0 + 1e-15):
                    u[t] = hi[t]
                elif d[t] < 0.0 and lo[t] - u[t] >= room * d[t] * (1.0 + 1e-15):
                    u[t] = lo[t]
                else:
                    u[t] += room * d[t]
                g[t] += room * z[t]
        for t in range(n):
            free[t] = free[t] and lo[t] < u[t] < hi[t]
        before = 0.0
    return steps, False
