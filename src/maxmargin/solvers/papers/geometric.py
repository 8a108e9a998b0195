r"""DirectSVM and Geometric SVM: SimpleSVM without a way back.

D. Roobaert's DirectSVM and S. V. N. Vishwanathan and M. N. Murty's Geometric SVM, as their SimpleSVM paper
describes them: begin with the closest pair of opposite classes; turn the plane until the *worst* violator
has the margin of the others too; never drop a point. If, when no violator is left, some multipliers have
the wrong sign, the plane is not the solution: begin again with the next closest pair.

Both find the same planes. DirectSVM keeps nothing: to find the worst violator it computes |S| kernel values
for each of the other points, in every step. Geometric SVM keeps the rows of S. Rivals for comparisons: where
C is large some multipliers end with the wrong sign, and no pair leads further.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin._compiled.limits import current
from maxmargin._types import Floats
from maxmargin.dual import Dual
from maxmargin.solvers import costs
from maxmargin.solvers.base import Solver
from maxmargin.solvers.papers._active_set import ENDLESS, ActiveSet
from maxmargin.solvers.papers._closest import closest_pairs
from maxmargin.solvers.state import State


@dataclass
class Plane:
    """The plane that is being turned."""

    diag: Floats
    #: Pairs of opposite points from which to begin again.
    pairs: list[tuple[int, int]]
    active: ActiveSet
    #: Multipliers without bounds, and their gradient.
    v: Floats
    gradient: Floats
    restarts: int = -1
    #: Multipliers of the wrong sign at the end of the last plane.
    wrong: int = 0


class GeometricSVM(Solver[Plane]):
    """Adds the worst violator by the closed form, and never drops one.

    Parameters
    ----------
    restarts : int
        Further pairs that are tried where multipliers of the wrong sign are left.
    factor_bytes : int
        Memory that the factor may take.

    Examples
    --------
    >>> from maxmargin import dual
    >>> from maxmargin.gram import Gram
    >>> from maxmargin.solvers import GeometricSVM
    >>> gram = Gram([[0.0], [1.0], [3.0], [4.0]], kernel="linear", dtype="float64")
    >>> solution = GeometricSVM().solve(dual.squared_c_svc([-1, -1, 1, 1], ridge=0.5), gram)
    >>> solution.status, solution.u.round(3)
    (<Status.SOLVED: 'solved'>, array([ 0. , -0.4,  0.4,  0. ]))
    """

    name = "geometric"
    about = "Vishwanathan, Murty 2002: adds the worst violator, never drops one"
    _keeps_rows = True

    def __init__(self, restarts: int = 4, factor_bytes: int = 4 << 30) -> None:
        self.restarts, self.factor_bytes = int(restarts), int(factor_bytes)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(restarts={self.restarts})"

    def accepts(self, problem: Dual) -> bool:
        """The squared-hinge dual: one sum of zero, variables with one bound, at zero, none of them paired."""
        one = problem.n_groups == 1 and problem.coupling.shape == (1, 1) and not problem.self_scaled
        half = (np.isinf(problem.hi) & (problem.lo == 0)) | (np.isinf(problem.lo) & (problem.hi == 0))
        return one and not problem.sums.any() and bool(half.all()) and not problem.paired

    def begin(self, state: State) -> Plane:
        """The closest pairs, in order; the first plane."""
        pairs = closest_pairs(state.problem, state.gram, self.restarts + 1)
        work = Plane(state.problem.diag(state.gram), pairs, *self._empty(state))
        self._restart(state, work)
        return work

    def rows_replaced(self, state: State, work: Plane) -> Plane:
        """The next plane, from the new rows."""
        work.diag = state.problem.diag(state.gram)
        self._restart(state, work)
        return work

    def details(self, state: State, work: Plane) -> dict[str, float]:
        """Restarts, and multipliers of the wrong sign in the last plane."""
        return {"restarts": work.restarts, "wrong": work.wrong}

    def _empty(self, state: State) -> tuple[ActiveSet, Floats, Floats]:
        """No members, v = 0 and its gradient."""
        problem = state.problem
        v, open_box = np.zeros(problem.m), np.full(problem.m, np.inf)
        unit = float(np.mean(np.abs(problem.diag(state.gram)))) or 1.0
        return ActiveSet(v, -open_box, open_box, unit, self.factor_bytes), v, -problem.p.copy()

    def _restart(self, state: State, work: Plane) -> None:
        if not work.pairs:
            state.stuck = True
            return
        i, j = work.pairs.pop(0)
        work.active, work.v, work.gradient = self._empty(state)
        work.active.seed(j, float(work.diag[j]), float(work.gradient[j]))
        work.restarts += 1
        self._learn(state, work, i)

    def _learn(self, state: State, work: Plane, c: int) -> bool:
        problem, active, v, g = state.problem, work.active, work.v, work.gradient
        members = active.members.copy()
        before = v.copy()
        column = problem.block(np.array([c]), members, state.gram)[0].astype(np.float64)
        outcome, _, _ = active.learn(c, column, float(work.diag[c]), float(g[c] - active.level))
        moved = np.flatnonzero(v != before)
        if self._keeps_rows:
            problem.update(g, moved, v[moved] - before[moved], state.gram)
        else:
            self._compute_all(state, work)
        return outcome != ENDLESS

    def _compute_all(self, state: State, work: Plane) -> None:
        """The gradient from kernel values that are computed for this step alone."""
        problem, v, g = state.problem, work.v, work.gradient
        support = np.flatnonzero(v)
        for start in range(0, problem.m, costs.PLANE_ROWS):
            part = np.arange(start, min(start + costs.PLANE_ROWS, problem.m))
            g[part] = problem.block(part, support, state.gram) @ v[support] - problem.p[part]

    def advance(self, state: State, work: Plane) -> None:
        """Some steps; at the end of a plane its multipliers are checked."""
        problem = state.problem
        if state.stuck:
            return
        limit = current()
        for _ in range(min(costs.PLANE_STEPS, max(1, state.left))):
            if limit.over:
                return
            active, v, g = work.active, work.v, work.gradient
            short = np.where(problem.hi > 0, active.level - g, g - active.level)
            short[active.members] = -np.inf
            c = int(np.argmax(short))
            if short[c] > 0.5 * state.target:
                state.n_iter += 1
                if active.has_room() and self._learn(state, work, c):
                    continue
            work.wrong = int(np.count_nonzero((v < problem.lo) | (v > problem.hi)))
            arrived = not work.wrong and not short[c] > 0.5 * state.target
            if arrived or not work.pairs:
                state.u[:] = v if arrived else problem.repair(v)
                state.g[:] = g if arrived else problem.gradient(state.u, state.gram)
                state.stuck = not arrived
                state.n_iter += 1
                return
            self._restart(state, work)


class DirectSVM(GeometricSVM):
    """The same planes, with every kernel value computed when it is needed and not kept.

    Parameters
    ----------
    restarts, factor_bytes
        See `GeometricSVM`.
    """

    name = "direct"
    about = "Roobaert 2000: turns the plane to the worst violator, keeps no kernel value"
    _keeps_rows = False
