r"""MaxMinOver: counters that grow for the vertex of least margin and shrink for that of largest margin.

Papers: F. Timm, S. Klement, T. Martinetz, "Fast Model Selection for MaxMinOver-based Training of Support
Vector Machines" (one class: OneClassMaxMinOver); T. Martinetz, "MaxMinOver: A Simple Incremental Learning
Procedure for Support Vector Classification", IJCNN 2004 (two classes).

Every vertex has a counter :math:`a_j`, a whole number, and a margin :math:`s_j = (Qa)_j`, Q with the ridge. A
step needs no step length:

.. math::

    a_{\arg\min_j s_j} \mathrel{+}= 2,\qquad a_{\arg\max_{a_j > 0} s_j} \mathrel{-}= 1.

The counters of a hull thus add up to one more in every step, and :math:`u = a / \sum a` moves by ever smaller
amounts, with an error of :math:`O(1/\sqrt t)` after t steps. With two hulls the step is made in both at once.
(Adding and taking 1 would keep the sum, and with it the lattice on which u moves: it could not converge.) The
start is one vertex with the count 1, as without any there is nothing to take away.

**The feasibility gap.** Let :math:`s = Qu` for the weights u, :math:`S = u^\top s`, G the number of hulls,
:math:`m_k` the least margin of hull k and :math:`\rho = \frac1G \sum_k m_k`. Scaled to :math:`\alpha =
u/\rho`, with the offset (if there are two hulls) half-way between their least margins, the primal constraints
ask for the slacks

.. math:: \xi_i = e_i / \rho,\qquad e_i = \max(0,\; m_k - (s_i - r_i u_i)) \le r_i u_i,

where :math:`s_i - r_i u_i` is the margin without the ridge :math:`r_i = 1/C_i`. Where :math:`r_i = 0` the
slack is 0, as it must be. (With K hulls W has a part for each, and the offsets add up to 0: the same.) So

.. math::

    P = \frac{S - \sum_i r_i u_i^2 + \sum_i e_i^2 / r_i}{2\rho^2},\qquad
    D = \frac G\rho - \frac S{2\rho^2},\qquad
    \rho^2 (P - D) = S - \sum_k m_k - \tfrac12 \sum_i (r_i u_i^2 - e_i^2 / r_i).

P is the value of a feasible point and D that of a feasible dual one, so the measure :math:`(P - D)/(1 + P)`
is a true bound whatever u is. (The paper's denominators are not P + 1, nor twice that, and the slacks of its
section 1.1 have the wrong sign before :math:`\alpha/C`.) :math:`\rho^2 (P - D)` is the certificate of
`maxmargin.dual.Dual.gap` with the multipliers :math:`m_k` in place of the best ones, and so bounds
:math:`f(u) - \min f` too.

**Doubling** (not in the papers). The counters are a lattice: a step moves u by :math:`d/(T+1)`, T the sum of
the counters of a hull and :math:`d = \sum_k 2e_{i_k} - e_{j_k} - u_k`. While T is small steps are too long
and u goes around the solution; when it is large they are short. Twice the counters are the same u on a
lattice twice as fine. So the counters are doubled before a step that would be longer than the best one along
d, that is while

.. math:: T + 1 < \frac{d^\top Q d}{-d^\top s} \qquad (s = Qu).

Every step then lowers the error :math:`\delta = f(u) - \min f`, which is at most :math:`-d^\top s`, by at
least :math:`\delta/(2T+2)`. T is at most t plus a constant over :math:`\delta`, so these shares have an
infinite sum and the error falls to 0; steps that shrink geometrically could end short of the solution. At a
warm start the counters are scaled down to the right-hand side, if they add up to more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from maxmargin._compiled.intrinsics import raised
from maxmargin._compiled.jit import compiled
from maxmargin._types import Floats
from maxmargin.dual import Dual
from maxmargin.solvers.papers._hull import (
    BAR,
    CALLS,
    ITERATIONS,
    NEEDED,
    HullSolver,
    HullWork,
    Turn,
    add_vertices,
    barred,
    missing,
    no_extremes,
    product,
    select,
)
from maxmargin.solvers.state import State

# What `counter_steps` keeps between calls: the sum of the counters of each hull, steps since the margins were
# last recomputed, whether that was put off.
TOTAL, SINCE, STALE = range(3)
# Counts per vertex up to which weights are resolved that come without counters.
_FINEST = 1000
# Largest total to which counters are doubled: as float64 they stay whole numbers for 2^12 times as many.
_MOST = 2.0**40


@dataclass
class CounterWork(HullWork):
    """Also: whole numbers in place of weights."""

    counts: Floats
    #: The total of a hull's counters, steps since the margins were recomputed, whether they must be.
    progress: Floats


class CounterRule(NamedTuple):
    """When steps look up from counting, and when they end."""

    #: Steps after which the margins are computed `anew`, if they are, and the gap is looked at.
    refresh: int
    anew: bool
    #: Whether `tol` is that of the feasibility gap, or of the margins' difference.
    by_gap: bool
    tol: float
    #: Largest error of a margin.
    noise: float
    #: Whether counters are doubled where a step would be too long.
    doubling: bool


class MaxMinOver(HullSolver[CounterWork]):
    """Counts up the vertex of least margin and down that of largest margin; no step length.

    The simplest of the solvers, and slow where a small tolerance is asked for: the error falls as
    O(1/sqrt(t)).

    Parameters
    ----------
    refresh : int
        The paper's t_re: after so many steps the margins are computed anew, and the feasibility gap is looked
        at (``Stop(criterion="paper")``).
    inertia : int, optional
        What the counters of a warm start may add up to in each hull at most: above that they are scaled down,
        rounded. By default they are taken as they are.
    doubling : bool
        Double the counters before a step that would be longer than the best one in its direction, and scale
        those of a warm start down where steps would be too short: far fewer steps, and no `inertia` to
        choose.

    Notes
    -----
    ``Solution.details["total"]`` is what the counters of each hull add up to, so that ``total * u`` are the
    counters. A warm start may be counters (whole numbers) or weights; from counters a run goes on as if it
    had never stopped (without `doubling`), while weights are rounded to a lattice as fine as their smallest
    entry, within limits. Counters are inert: where a problem has changed, moving a share of the weight takes
    that share of their total in steps, so that counters which have added up over many runs can be a worse
    start than none. And they are a lattice: where they are few, many must be added before a small error can
    be had. A good total is about twice that with which a cold run ends on a similar problem: it is given as
    `inertia`, together with counters that are multiplied by a whole number if they are too few. With
    `doubling` the solver does both.

    Examples
    --------
    >>> from maxmargin import dual
    >>> from maxmargin.gram import Gram
    >>> from maxmargin.solvers import MaxMinOver, Stop
    >>> gram = Gram([[1.0], [2.0], [4.0]], kernel="linear", dtype="float64")
    >>> solution = MaxMinOver().solve(dual.one_class_l2(3, ridge=1.0), gram, stop=Stop(1e-2))
    >>> solution.status, solution.u.round(2)
    (<Status.SOLVED: 'solved'>, array([1., 0., 0.]))
    >>> problem, stop = dual.one_class_l2(3, ridge=10.0), Stop(1e-5)
    >>> plain, doubled = (MaxMinOver(doubling=d).solve(problem, gram, stop=stop) for d in (False, True))
    >>> plain.status == doubled.status == "solved", doubled.n_iter < 0.1 * plain.n_iter
    (True, True)
    """

    name = "maxminover"
    about = "Martinetz 2004, Timm, Klement, Martinetz 2009: counters up and down"

    def __init__(self, refresh: int = 1000, inertia: int | None = None, *, doubling: bool = False) -> None:
        for name, value in (("refresh", refresh), ("inertia", 1 if inertia is None else inertia)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{name} must be a positive whole number, got {value!r}.")
        self.refresh = int(refresh)
        self.inertia = None if inertia is None else int(inertia)
        self.doubling = bool(doubling)

    def __repr__(self) -> str:
        capped = "" if self.inertia is None else f", inertia={self.inertia}"
        doubled = ", doubling=True" if self.doubling else ""
        return f"MaxMinOver(refresh={self.refresh}{capped}{doubled})"

    def start(self, problem: Dual, warm: ArrayLike | None) -> Floats:
        """Counters from the warm start; without one, a single count in each hull."""
        return self._counted(problem, warm)[0]

    def _counted(self, problem: Dual, warm: ArrayLike | None) -> tuple[Floats, float]:
        """The start as counters divided by their total in each hull, and this total."""
        u = super().start(problem, warm)
        if warm is None:
            return u, 1.0
        given = np.array(warm, dtype=np.float64)
        sums = np.array([given[member].sum() for member in problem.members])
        if (given >= 0).all() and (given == np.rint(given)).all() and (sums >= 1).all():
            u, total = given, float(sums.max())
        else:
            used = int(np.count_nonzero(u))
            total = float(np.clip(np.rint(1.0 / u[u > 0].min()), used, _FINEST * used))
        if self.inertia is not None:
            total = min(total, float(self.inertia))
        for member in problem.members:
            u[member] = apportion(u[member], total) / total
        return u, total

    def begin(self, state: State) -> CounterWork:
        """The hulls and the counters."""
        hulls, total = self._hulls(state), self._counted(state.problem, state.warm)[1]
        if self.doubling and state.warm is not None:
            total = min(total, self._fitting_total(state, hulls))
            for member in state.problem.members:
                state.u[member] = apportion(state.u[member], total) / total
            state.g[:] = state.problem.gradient(state.u, state.gram)
        counts = np.rint(state.u[hulls.order] * total)
        return CounterWork(**vars(hulls), counts=counts, progress=np.array([total, 0.0, 0.0]))

    @staticmethod
    def _fitting_total(state: State, work: HullWork) -> float:
        """See `fitting_total`; the kernel rows that it reads are fetched."""
        problem, gram, order = state.problem, state.gram, work.order
        u, s, row = state.u[order], state.g[order], problem.row[order]
        hulls = zip(work.starts[:-1], work.starts[1:], strict=True)
        high = np.where(u > 0, s, -np.inf)
        ends = [(a + np.argmin(s[a:b]), a + np.argmax(high[a:b])) for a, b in hulls]
        gram.ensure(row[np.ravel(ends)])
        return float(fitting_total(work.vertices(state, gram.held(row)), u, s))

    def rows_replaced(self, state: State, work: CounterWork) -> CounterWork:
        """The counters stay."""
        return CounterWork(**vars(self._hulls(state)), counts=work.counts, progress=work.progress)

    def advance(self, state: State, work: CounterWork) -> None:
        """Steps; then the margins, where the cache could not hold the rows to recompute them."""
        super().advance(state, work)
        if work.progress[STALE]:
            state.g[:] = state.problem.gradient(state.u, state.gram)
            work.progress[STALE] = 0.0

    def details(self, state: State, work: CounterWork) -> dict[str, float]:
        """The sum of the counters of each hull."""
        return {"total": float(work.progress[TOTAL])}

    def paper_rule(self, state: State, work: CounterWork) -> float:
        """(P - D) / (1 + P), see the module's text."""
        order = work.order
        return float(
            feasibility_gap(
                work.starts,
                work.ridge,
                state.u[order],
                state.g[order],
                1.0,
                float(np.max(state.noise)),
            )
        )

    def _steps(self, state: State, work: CounterWork, hulls: Any, u: Any, g: Any, *rest: Any) -> None:
        turn: Turn = rest[-1]
        by_gap = state.stop.criterion == "paper"
        a, progress = work.counts, work.progress
        # A slice is to take the same time however often the margins are recomputed.
        fewer = 1 + int(turn.budget / (1.0 + 0.5 * np.count_nonzero(a) / self.refresh))
        turn = turn._replace(budget=min(turn.budget, fewer))
        s = g * progress[TOTAL]
        # Rounding drifts far less than what computing anew from float32 rows would bring in.
        anew = state.gram.dtype == np.float64
        tol = state.stop.tol if by_gap else state.target
        rule = CounterRule(self.refresh, anew, by_gap, tol, float(np.max(state.noise)), self.doubling)
        counter_steps(hulls, a, s, progress, rule, turn)
        u[:] = a / progress[TOTAL]
        g[:] = s / progress[TOTAL]

    def _rows_at_once(self, problem: Dual) -> int:
        return 2 * problem.n_groups

    def _most_needed(self, problem: Dual) -> int:
        return 2 * problem.n_groups


def apportion(weights: Floats, total: float) -> Floats:
    """Whole numbers in proportion to `weights` that add up to `total` exactly."""
    exact = weights * (total / float(weights.sum()))
    counts = np.rint(exact)
    missing = int(total - counts.sum())
    if missing:
        wish = np.where(counts + np.sign(missing) >= 0, (exact - counts) * np.sign(missing), -np.inf)
        some = np.argsort(-wish, kind="stable")[: abs(missing)]
        counts[some] += np.sign(missing)
    return counts


@compiled()
def feasibility_gap(starts, ridge, a, s, total, noise):
    """(P - D) / (1 + P) for the weights ``a / total`` with margins ``s / total``.

    `noise` bounds the error of every one of these margins; what it can amount to is added.
    """
    square, own, slack, lowest = 0.0, 0.0, 0.0, 0.0
    n_hulls = len(starts) - 1
    for k in range(n_hulls):
        least = np.inf
        for t in range(starts[k], starts[k + 1]):
            least = min(least, s[t])
        lowest += least
        for t in range(starts[k], starts[k + 1]):
            square += a[t] * s[t]
            r = ridge[t]
            if r > 0.0 and a[t] > 0.0:
                own += r * a[t] * a[t]
                e = r * a[t] - (s[t] - least)
                if e > 0.0:
                    slack += e * (e / r)
    noise *= total
    rho = lowest / n_hulls - noise
    if not rho > 0.0:
        return np.inf
    # Everything times (rho total)^2.
    square += n_hulls * noise * total
    gap = square - total * n_hulls * rho - 0.5 * (own - slack)
    primal = 0.5 * (square - own + slack)
    return max(gap, 0.0) / (rho * rho + primal)


@compiled()
def _recompute(hulls, a, s):
    """``s = Q a`` from the rows in the table; False if some are missing there."""
    for t in range(len(a)):
        if a[t] > 0.0 and not hulls.there[t]:
            return False
    for t in range(len(a)):
        s[t] = 0.0
    before = np.int64(-1)  # a literal would be a type of its own
    for t in range(len(a)):
        if a[t] > 0.0:
            if before < 0:
                before = t
            else:
                add_vertices(hulls, s, before, t, a[before], a[t])
                before = np.int64(-1)
    if before >= 0:
        add_vertices(hulls, s, before, before, a[before], 0.0)
    return True


@compiled()
def weighted(a, s):
    """The sum of a_t s_t."""
    out = 0.0
    for t in range(len(a)):
        out += a[t] * s[t]
    return out


@compiled()
def _bend(hulls, extremes):
    """Q of the vector that a step adds to the counters."""
    n_hulls = len(hulls.starts) - 1
    bend = 0.0
    for k in range(n_hulls):
        i, j = extremes.first[k], extremes.last[k]
        if i == j:
            bend += hulls.diag[i]
        else:
            bend += 4.0 * hulls.diag[i] + hulls.diag[j] - 4.0 * product(hulls, i, j)
        for other in range(k):
            c, d = extremes.first[other], extremes.last[other]
            bend += 8.0 * product(hulls, i, c) - 4.0 * product(hulls, i, d)
            bend += 2.0 * product(hulls, j, d) - 4.0 * product(hulls, j, c)
    return bend


@compiled()
def _best_total(bend, along, square, total):
    """The total with which a step is as long as the best one in its direction; see the module's text.

    `along` and `square` are products of the margins of counters with this total, with what a step adds to the
    counters and with the counters themselves.
    """
    descent = square / total - along
    if not descent > 0.0:
        return 1.0
    return min((bend * total - 2.0 * along + square / total) / descent, _MOST)


@compiled()
def fitting_total(hulls, u, s):
    """The whole total with which the next step from the weights u is as long as the best one."""
    extremes = no_extremes(len(hulls.starts) - 1)
    select(hulls, s, barred(u), extremes)
    along = 0.0
    for k in range(len(hulls.starts) - 1):
        along += 2.0 * extremes.least[k] - extremes.most[k]
    return max(1.0, np.ceil(_best_total(_bend(hulls, extremes), along, weighted(u, s), 1.0)))


@compiled()
def _double(hulls, a, s, square, progress, extremes):
    """Double the counters while a step is longer than the best one; the square of the counters' point."""
    along = 0.0
    for k in range(len(hulls.starts) - 1):
        along += 2.0 * extremes.least[k] - extremes.most[k]
    total = progress[TOTAL]
    best = _best_total(_bend(hulls, extremes), along, square, total)
    factor = 1.0
    while factor * total + 1.0 < best and factor * total < _MOST:
        factor *= 2.0
    if factor > 1.0:
        for t in range(len(a)):
            a[t] *= factor
            s[t] *= factor
        for k in range(len(hulls.starts) - 1):
            extremes.least[k] *= factor
            extremes.most[k] *= factor
        progress[TOTAL] *= factor
    return square * factor * factor


@compiled()
def counter_steps(hulls, a, s, progress, rule, turn):
    """Up to `budget` steps; stops early at the tolerance or when the rows in `need` are missing."""
    m, n_hulls = len(a), len(hulls.starts) - 1
    refresh, anew, by_gap, tol, noise, doubling = rule
    budget, need, report, flag = turn
    bar, extremes = barred(a), no_extremes(n_hulls)
    square = weighted(a, s)
    while True:
        if progress[SINCE] >= refresh:
            progress[SINCE] = 0.0
            if anew:
                if _recompute(hulls, a, s):
                    progress[STALE] = 0.0
                    square = weighted(a, s)
                    used = 0
                    for t in range(m):
                        used += a[t] > 0.0
                    report[CALLS] += used * m
                else:
                    progress[STALE] = 1.0
            if by_gap and feasibility_gap(hulls.starts, hulls.ridge, a, s, progress[TOTAL], noise) <= tol:
                return
        if report[ITERATIONS] >= budget or raised(flag):
            return
        select(hulls, s, bar, extremes)
        widest = 0.0
        for k in range(n_hulls):
            widest = max(widest, extremes.most[k] - extremes.least[k])
            missing(hulls, extremes.first[k], need, report)
            if extremes.last[k] != extremes.first[k]:
                missing(hulls, extremes.last[k], need, report)
        if not by_gap and not widest > tol * progress[TOTAL]:
            report[NEEDED] = 0
            return
        if report[NEEDED] > 0:
            return
        if doubling:
            square = _double(hulls, a, s, square, progress, extremes)
        for k in range(n_hulls):
            square += 2.0 * extremes.least[k] - extremes.most[k]
        for k in range(n_hulls):
            i, j = extremes.first[k], extremes.last[k]
            a[i] += 2.0
            a[j] -= 1.0
            bar[i] = 0.0
            bar[j] = 0.0 if a[j] > 0.0 else BAR
            add_vertices(hulls, s, i, j, 2.0, -1.0)
        for k in range(n_hulls):
            square += 2.0 * s[extremes.first[k]] - s[extremes.last[k]]
        progress[TOTAL] += 1.0
        progress[SINCE] += 1.0
        report[ITERATIONS] += 1
        report[CALLS] += 2 * n_hulls * m
