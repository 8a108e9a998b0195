r"""Rosen's gradient projection: whole faces of the box at a time.

Paper: J. López, J. R. Dorronsoro, "Rosen's Projection Method for SVM Training".

With the free variables J (those strictly inside their bounds) the projection of the negative gradient on
the face that the others span is known in closed form: each group's mean over its free variables is
subtracted,

.. math:: d_i = -g_i + \frac{1}{|J_k|}\sum_{j \in J_k} g_j,\quad i \in J_k,\qquad d_i = 0 \text{ otherwise}.

An exact line search goes along d, at most to the first bound, where that variable leaves J. Where d = 0 the
face is optimal, and the same mean gives the multipliers of the bounds: the variable with the most negative
one is released, with the direction for :math:`J \cup \{p\}`. A group without free variables has no mean:
its most violating pair is released.

**What is kept.** A step on a face needs the gradient on that face only: a block of the matrix, which
changes by a row and a column when the face does. The other entries of the gradient are brought up to date
when the face is optimal, one kernel row per variable that has moved; the paper's form reads N |J| kernel
values in every step. This is Platt's alternation (the paper's suggestion): the free variables until nothing
moves, then all.

**Conjugate directions** (the paper's further work): on one face steps are conjugate (Polak-Ribière) and end
after at most |J| of them; a step that would pass several bounds is bent onto all of them where that lowers
the objective more than stopping at the first; and many variables are released at once, the worst violators
first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.intrinsics import raised
from maxmargin._compiled.jit import REORDER, compiled
from maxmargin._compiled.limits import call, current
from maxmargin._types import Floats, Index, Rows
from maxmargin.dual import Dual, widest
from maxmargin.solvers.base import Solver
from maxmargin.solvers.state import State

# Variables of a block at most; steps between two looks at the clock; variables released at first.
_MOST, _STEPS, _FIRST = 2048, 20_000, 1024
# Multiplications between two looks at the clock, where directions are conjugate.
_SLICE = 50_000_000
# Problems of this size are one block, where directions are conjugate.
_WHOLE = 1024
# Ten times the gradient with which a face counts as optimal, in LIBSVM's scaling.
_FLAT = 1e-6
# Lengths of a bent step that are tried.
_BENDS = 3


@dataclass
class Faces:
    """The kernel values of the present face, and how the next one is chosen."""

    block: Block
    #: Violators at a bound that are released at once, on each side.
    release: int = _FIRST
    #: Whether the present face has been brought to its end.
    finished: bool = True


class Rosen(Solver[Faces]):
    """Gradient projection on faces; ends at any tolerance that the precision allows.

    Parameters
    ----------
    directions : {"steepest", "conjugate"}
        "steepest" is the paper's algorithm; "conjugate" needs far fewer steps.

    Examples
    --------
    >>> from maxmargin import dual
    >>> from maxmargin.gram import Gram
    >>> from maxmargin.solvers import Rosen
    >>> gram = Gram([[0.0], [1.0], [3.0]], kernel="linear", dtype="float64")
    >>> solution = Rosen().solve(dual.c_svc([-1, -1, 1], C=10.0), gram)
    >>> solution.status, solution.u.round(3)
    (<Status.SOLVED: 'solved'>, array([ 0. , -0.5,  0.5]))
    """

    name = "rosen"
    about = "López, Dorronsoro 2009: gradient projection in closed form"

    def __init__(self, directions: str = "steepest") -> None:
        if directions not in ("steepest", "conjugate"):
            raise ValueError(f"directions must be 'steepest' or 'conjugate', got {directions!r}.")
        self.directions = directions

    def __repr__(self) -> str:
        return f"Rosen(directions={self.directions!r})"

    def begin(self, state: State) -> Faces:
        """No block is known, and few variables are released at first."""
        return Faces(Block(state.problem, state.gram))

    def advance(self, state: State, work: Faces) -> None:
        """The steps on one face, or as many as a slice of the budget allows; then the whole gradient."""
        problem, u, g = state.problem, state.u, state.g
        conjugate = self.directions == "conjugate"
        own = self._several(state, work) if conjugate else self._one(state, work)
        worst = widest(state.least, state.most)
        # The paper's face is optimal where its gradient vanishes, whatever the tolerance of the whole.
        flat = _FLAT / problem.tolerance_scale(u, g) if np.isfinite(problem.tolerance_scale(u, g)) else 0.0
        whole = len(own) == problem.m
        rough = 0.0 if whole else 0.1 * worst
        flat = 0.1 * (max(state.target, rough) if conjugate else min(state.target, flat))
        Q = work.block.of(own)
        budget = min(state.left, _STEPS, max(64, _SLICE // len(own) ** 2) if conjugate else _STEPS)
        reads = np.zeros(1, np.int64)
        new, gradient, steps, finished = on_face(state, own, Q, conjugate, flat, budget, reads)
        state.gram.count(calls=int(reads[0]))
        change = new - u[own]
        moved = np.flatnonzero(change)
        u[own] = new
        if whole:
            g[own] = gradient
        else:
            problem.update(g, own[moved], change[moved], state.gram)
        work.finished = bool(finished)
        work.release = min(2 * work.release, _MOST)
        state.n_iter += max(steps, 1)
        state.stuck = not len(moved)

    @staticmethod
    def _one(state: State, work: Faces) -> Index:
        """The free variables and that with the most negative multiplier, or a pair where none is free."""
        problem, u, g = state.problem, state.u, state.g
        rises, falls = u < problem.hi, u > problem.lo
        chosen = rises & falls
        if work.finished:
            level = _means(problem, g, chosen)
            paired = np.isnan(level)
            low = np.where(paired, state.most, level) - state.least
            high = state.most - np.where(paired, state.least, level)
            k = int(np.argmax(np.maximum(low, high)))
            of = problem.group == k
            if paired[k] or low[k] >= high[k]:
                chosen[np.argmax(of & rises & (g == state.least[k]))] = True
            if paired[k] or high[k] > low[k]:
                chosen[np.argmax(of & falls & (g == state.most[k]))] = True
        return _at_most(_MOST, np.flatnonzero(chosen), state)

    @staticmethod
    def _several(state: State, work: Faces) -> Index:
        """The free variables and, of each group and on each side, the worst violators; or all."""
        problem, u, g = state.problem, state.u, state.g
        if problem.m <= _WHOLE:
            return np.arange(problem.m)
        rises, falls = u < problem.hi, u > problem.lo
        chosen = rises & falls
        level = _means(problem, g, chosen)
        level = np.where(np.isnan(level), 0.5 * (state.least + state.most), level)[problem.group]
        for side, excess in ((rises & ~falls, level - g), (falls & ~rises, g - level)):
            wrong = np.flatnonzero(side & (excess > 0))
            wrong = wrong[np.lexsort((-excess[wrong], problem.group[wrong]))]
            chosen[wrong[_rank(problem.group[wrong]) < work.release]] = True
        return _at_most(_MOST, np.flatnonzero(chosen), state)


def on_face(
    state: State,
    own: Index,
    Q: Floats,
    conjugate: bool,
    flat: float,
    budget: int,
    reads: NDArray[np.int64] | None = None,
) -> tuple[Floats, Floats, int, bool]:
    """What `minimise` makes of the variables `own` and their gradient; its steps; if it ended.

    The values of the block that its steps read are added to `reads`.
    """
    problem = state.problem
    u, g = state.u[own], state.g[own]
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
        work=float(budget) * len(own) ** 2,
    )
    return u, g, int(steps), bool(finished)


def _means(problem: Dual, g: Floats, free: NDArray[np.bool_]) -> Floats:
    """Each group's mean gradient over its free variables, NaN where there are none."""
    count = np.bincount(problem.group[free], minlength=problem.n_groups)
    total = np.bincount(problem.group[free], weights=g[free], minlength=problem.n_groups)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _rank(group: Index) -> Index:
    """The place of each entry among those of its group; groups stand together."""
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    return np.asarray(np.arange(len(group)) - np.repeat(starts, np.diff(np.append(starts, len(group)))))


def _at_most(most: int, chosen: Index, state: State) -> Index:
    """As many of the chosen as a block may hold: the worst groups', from both ends of their gradients."""
    if len(chosen) <= most:
        return chosen
    group, g = state.problem.group[chosen], state.g[chosen]
    upwards, downwards = np.lexsort((g, group)), np.lexsort((-g, group))
    rank = np.empty(len(chosen), np.intp)
    rank[upwards] = _rank(group[upwards])
    other = np.empty_like(rank)
    other[downwards] = _rank(group[downwards])
    order = np.lexsort((np.minimum(rank, other), -(state.most - state.least)[group]))
    return np.sort(chosen[order[:most]])


class Block:
    """The matrix on some of the variables; what was known before is not computed again.

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
        cached = len(own) < self._problem.m and bool(getattr(self._gram, "holds_all", False))
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


@compiled()
def _levels(g, u, lo, hi, free, group, level):  # type: ignore[no-untyped-def]
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
def _release(g, u, lo, hi, free, group, level, flat):  # type: ignore[no-untyped-def]
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
def _project(d, g, free, group, drift):  # type: ignore[no-untyped-def]
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
def _product(Q, d, z):  # type: ignore[no-untyped-def]
    """``z = Q d`` from the rows where d is not zero, four at a time; returns how many values that reads."""
    n = len(d)
    chosen, size = np.empty(n + 3, np.int64), 0
    for t in range(n):
        if d[t] != 0.0:
            chosen[size] = t
            size += 1
    chosen[size : size + 3] = 0
    z[:] = 0.0
    for s in range(0, size, 4):
        i, j, k, h = chosen[s], chosen[s + 1], chosen[s + 2], chosen[s + 3]
        a, b, c, e = d[i], d[j], d[k], d[h]
        b, c, e = b if s + 1 < size else 0.0, c if s + 2 < size else 0.0, e if s + 3 < size else 0.0
        p, q, r, x = Q[i], Q[j], Q[k], Q[h]
        for t in range(n):
            z[t] += (a * p[t] + b * q[t]) + (c * r[t] + e * x[t])
    return size * n


@compiled()
def _bend(u, lo, hi, d, step, group, n_groups, change):  # type: ignore[no-untyped-def]
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
def minimise(  # type: ignore[no-untyped-def]
    Q, g, u, lo, hi, group, n_groups, conjugate, flat, budget, reads, flag
):
    """Rosen's method on a block; changes u and its gradient g in place.

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
