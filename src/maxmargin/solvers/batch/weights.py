"""Steps for the weights of a linear kernel, before or in place of pair steps: which, and when they pay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin._types import Floats, LinearData
from maxmargin.dual import Dual
from maxmargin.dual._extremes import missing
from maxmargin.dual._group import shift_sum
from maxmargin.dual.penalised import of_samples
from maxmargin.solvers import costs
from maxmargin.solvers.batch.coordinates import descend
from maxmargin.solvers.batch.progress import Progress
from maxmargin.solvers.batch.proximal import ProximalNewton
from maxmargin.solvers.state import State


@dataclass
class WeightSteps:
    """Decides about steps for weights, and takes each kind once.

    With few features Newton steps come first (`maxmargin.solvers.batch.proximal`); with many, of which each
    sample has few, coordinate descent (`maxmargin.solvers.batch.coordinates`). In between pair steps do,
    and Newton steps if those are slow.
    """

    #: Whether each kind has been tried, or is out of the question.
    descended: bool = False
    solved: bool = False

    def take(self, state: State, progress: Progress, whole: bool, slow: bool) -> bool:
        """Take steps, if it is time for some; False if the state is left as it is."""
        data = state.gram.features if suits(state) else None
        if data is None:
            self.descended = self.solved = True
            return False
        few = data.d <= min(costs.PROXIMAL_AT_ONCE, state.problem.m // costs.PROXIMAL_ROWS)
        if not self.solved and self._newton_pays(state, data, progress, slow, at_once=few and not whole):
            self.solved = self.descended = True
            return _newton(state)
        if not (self.descended or few or whole) and data.width <= costs.DESCENT_DENSITY * data.d:
            self.descended = True
            u, passes = descend(state.problem, state.gram, state.u, 0.5 * state.target, state.left)
            return _accepted(state, u, passes)
        return False

    @staticmethod
    def _newton_pays(state: State, data: LinearData, progress: Progress, slow: bool, at_once: bool) -> bool:
        cost = newton_cost(state, data)
        expected = progress.left(state.target) * progress.pace
        return np.isfinite(cost) and (at_once or slow or cost < costs.NEWTON_PAYS * expected)


def suits(state: State) -> bool:
    """Whether the matrix of the problem is F F', perhaps with a ridge, and violations have a fixed scale."""
    problem = state.problem
    simple = problem.signs is not None and not problem.shift and not problem.self_scaled
    return simple and state.stop.criterion == "kkt"


def newton_cost(state: State, data: LinearData) -> float:
    """Nominal seconds of all Newton steps; infinite where they cannot be taken."""
    problem = state.problem
    ridge = of_samples(problem, problem.ridge)
    box = np.isfinite(of_samples(problem, problem.hi - problem.lo)).all() and not ridge.any()
    same = bool(len(ridge) and ridge[0] > 0 and (ridge == ridge[0]).all())
    if not (box or same) or data.d > costs.PROXIMAL_FEATURES:
        return np.inf
    products = problem.m * (data.width + costs.PROXIMAL_PASSES) * costs.PROXIMAL_PRODUCT
    factor = data.d**3 / (3.0 * costs.CHOLESKY_SPEED[8]) + data.d**2 * costs.PROXIMAL_MATRIX
    steps = costs.PRIMAL_TYPICAL if same else costs.PROXIMAL_TYPICAL
    return float(steps * (costs.NEWTON_STEP + products + factor))


def _newton(state: State) -> bool:
    most = min(costs.PROXIMAL_MOST, state.left)
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            solver = ProximalNewton(state.problem, state.gram)
            u, steps = solver.solve(state.u, 0.5 * state.target, most)
    except np.linalg.LinAlgError:  # features of very different scales
        return False
    return _accepted(state, u, steps)


def _accepted(state: State, u: Floats, steps: int) -> bool:
    """Go to u, made feasible, if its objective is lower; False if u is not finite."""
    problem = state.problem
    if not np.isfinite(u).all():
        return False
    u = _with_sums(problem, u)
    g = problem.gradient(u, state.gram)
    state.n_iter += max(1, steps)
    if problem.objective(u, g) <= state.objective():  # not if it is not a number
        state.u[:], state.g[:] = u, g
    return True


def _with_sums(problem: Dual, u: Floats) -> Floats:
    """The sums restored by the variables within their bounds alone, if possible: the others stay there."""
    if problem.penalised:
        return problem.repair(u)
    for k, of in enumerate(problem.members):
        part, lo, hi = u[of], problem.lo[of], problem.hi[of]
        inside = (part > lo) & (part < hi)
        total = missing(part[~inside], problem.sums[k])
        if inside.any() and lo[inside].sum() < total < hi[inside].sum():
            part[inside] = shift_sum(part[inside], lo[inside], hi[inside], total)
            u[of] = part
    return u if problem.feasible(u) else problem.repair(u)
