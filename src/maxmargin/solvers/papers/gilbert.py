r"""Gilbert's algorithm, alias Gilbert-Schlesinger-Kozinec, for the point of least norm.

E. G. Gilbert, "Minimizing the quadratic form on a convex set", SIAM J. Control 4, 1966; for classification
V. Franc, V. Hlaváč, "An iterative algorithm learning the maximal margin classifier", Pattern Recognition
36, 2003.

W lies in the hull; the vertex z of least margin is where W should go, and W moves to the point of the segment
[W, z] that is nearest to the origin:

.. math::

    W \leftarrow W + \lambda (z - W),\qquad
    \lambda = \min\left(1, \frac{\|W\|^2 - \langle W, z\rangle}{\|z - W\|^2}\right).

With two hulls z is the difference of their vertices of least margin. It costs one kernel row per hull and
step, and it is slow: all other weights shrink by the factor :math:`1 - \lambda` but none ever becomes zero,
so that what was chosen wrongly stays. Its own measure is :math:`\|W\|^2 - \langle W, z\rangle \le
\gamma\|W\|^2`, an upper bound of the distance to the optimum. As optimality of the dual asks that what
stays is right, `sweep` takes away between two checkpoints what is wrong, where that lowers the norm.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin._compiled.intrinsics import raised
from maxmargin._compiled.jit import compiled
from maxmargin.dual import Dual
from maxmargin.solvers import costs
from maxmargin.solvers.papers._hull import (
    BAR,
    CALLS,
    ITERATIONS,
    NEEDED,
    STUCK,
    HullSolver,
    HullWork,
    add_vertices,
    barred,
    missing,
    no_extremes,
    product,
    select,
)
from maxmargin.solvers.state import State


class Gilbert(HullSolver[HullWork]):
    """Moves towards one vertex at a time; simple, cheap steps, a great many of them.

    Parameters
    ----------
    sweep : bool
        Whether vertices of too large a margin are removed between checkpoints. Without it this is Gilbert's
        algorithm to the letter, whose measure (``Stop(criterion="paper")``) is reached but the KKT conditions
        are not.

    Examples
    --------
    >>> from maxmargin import dual
    >>> from maxmargin.gram import Gram
    >>> from maxmargin.solvers import Gilbert
    >>> gram = Gram([[0.0], [1.0], [3.0]], kernel="linear", dtype="float64")
    >>> solution = Gilbert().solve(dual.nearest_points([-1, -1, 1]), gram)
    >>> solution.status, solution.u.round(3)
    (<Status.SOLVED: 'solved'>, array([0., 1., 1.]))
    """

    name = "gilbert"
    about = "Gilbert 1966, Franc and Hlaváč 2003: towards the vertex of least margin"

    def __init__(self, sweep: bool = True) -> None:
        self.sweep = bool(sweep)

    def __repr__(self) -> str:
        return f"Gilbert(sweep={self.sweep})"

    def begin(self, state: State) -> HullWork:
        """The hulls."""
        return self._hulls(state)

    def advance(self, state: State, work: HullWork) -> None:
        """Steps, then the sweep."""
        super().advance(state, work)
        if self.sweep and self._sweep(state, work):
            state.stuck = False

    def _steps(self, state: State, work: HullWork, hulls: Any, u: Any, g: Any, *rest: Any) -> None:
        square, relative, turn = rest
        by_gap = state.stop.criterion == "paper"
        # The sweep decides about the other measure; leave it something to do now and then.
        if not by_gap:
            turn = turn._replace(budget=min(turn.budget, costs.SWEEP_STEPS * len(u)))
        _gilbert_steps(hulls, u, g, square, relative, by_gap, turn)

    def _rows_at_once(self, problem: Dual) -> int:
        return problem.n_groups

    def paper_rule(self, state: State, work: HullWork) -> float:
        """(||W||^2 - <W, z>) / ||W||^2."""
        square = state.problem.square(state.u, state.g)
        return (square - float(state.least.sum())) / square if square > 0 else np.inf

    def _sweep(self, state: State, work: HullWork) -> bool:
        """Move the weight of wrong vertices to the best one of their hull, the smallest weights first.

        Wrong is what one exact step would remove. Halved until the norm falls; returns whether it did.
        """
        problem, gram, u, g = state.problem, state.gram, state.u, state.g
        least, _ = problem.extremes(u, g)
        everyone = np.arange(problem.m)
        best = np.array([everyone[member][np.argmin(g[member])] for member in problem.members])
        excess = g - least[problem.group]
        wrong = np.flatnonzero((u > 0) & (excess > state.target))
        wrong = wrong[~np.isin(wrong, best)]
        wrong = wrong[u[wrong] * (work.tau + problem.diag(gram, wrong)) < 4.0 * excess[wrong]]
        wrong = wrong[np.argsort(u[wrong], kind="stable")]
        before = problem.objective(u, g)
        while len(wrong):
            change = np.zeros(problem.m)
            change[wrong] = -u[wrong]
            np.add.at(change, best[problem.group[wrong]], u[wrong])
            idx = np.flatnonzero(change)
            trial = g.copy()
            problem.update(trial, idx, change[idx], gram)
            after = u + change
            after[wrong] = 0.0
            if problem.objective(after, trial) < before:
                state.u[:], state.g[:] = after, trial
                return True
            wrong = wrong[: len(wrong) // 2]
        return False


@compiled()
def _gilbert_steps(hulls, u, g, square, relative, by_gap, turn):
    """Up to `budget` steps; stops early at the tolerance or when the rows in `need` are missing."""
    m, n_hulls = len(u), len(hulls.starts) - 1
    budget, need, report, flag = turn
    bar, extremes = barred(u), no_extremes(n_hulls)
    while report[ITERATIONS] < budget and not raised(flag):
        select(hulls, g, bar, extremes)
        widest, towards, own = 0.0, 0.0, 0.0
        for k in range(n_hulls):
            first = extremes.first[k]
            widest = max(widest, extremes.most[k] - extremes.least[k])
            towards += extremes.least[k]
            own += hulls.diag[first]
            missing(hulls, first, need, report)
        measure = square - towards if by_gap else widest
        if not measure > relative * square:
            report[NEEDED] = 0
            return
        if report[NEEDED] > 0:
            return
        for k in range(n_hulls):
            for other in range(k):
                own += 2.0 * product(hulls, extremes.first[k], extremes.first[other])
        distance = own - 2.0 * towards + square  # ||z - W||^2
        step = min((square - towards) / distance, 1.0) if distance > 0.0 else 0.0
        if not step > 1e-17:
            report[STUCK] = 1
            return
        for t in range(m):
            u[t] *= 1.0 - step
            g[t] *= 1.0 - step
            bar[t] = 0.0 if u[t] > 0.0 else BAR
        for k in range(n_hulls):
            first = extremes.first[k]
            u[first] += step
            bar[first] = 0.0
            add_vertices(hulls, g, first, first, step, 0.0)
        square += -2.0 * step * (square - towards) + step * step * distance
        report[ITERATIONS] += 1
        report[CALLS] += n_hulls * m
