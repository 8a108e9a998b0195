"""The end of a run: multipliers on their bounds, a gradient whose errors are known, a feasible point."""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.limits import Stopped, current
from maxmargin.solvers.precision import Precision
from maxmargin.solvers.solution import Status
from maxmargin.solvers.state import State


def _worse_than_nothing(state: State) -> bool:
    """Whether u = 0 is feasible and has a lower objective."""
    problem = state.problem
    zero = not problem.sums.any() and bool((problem.lo <= 0).all() and (problem.hi >= 0).all())
    return zero and problem.objective(state.u, state.g) > 0


def finalised(state: State, status: Status, precision: Precision) -> Status:
    """Bring a run to its end: variables on their bounds, a gradient whose errors are known, u checked."""
    problem = state.problem
    overflow = not (np.isfinite(state.u).all() and np.isfinite(state.g).all())
    if overflow or (status is not Status.SOLVED and _worse_than_nothing(state)):
        # Rounding led away from the solution: where it started is better.
        state.u = problem.start()
        state.g = problem.gradient(state.u, state.gram)
        status = Status.STALLED if overflow else status
    snapped = problem.snap(state.u)
    moved = np.flatnonzero(snapped != state.u)
    if len(moved) and not current().late:
        g, change = state.g.copy(), snapped - state.u
        problem.update(g, moved, change[moved], state.gram)
        noise = state.noise + problem.rounding(change, np.arange(problem.m), state.gram)
        if status is not Status.SOLVED or problem.violation(snapped, g, noise) <= state.stop.tol:
            state.u, state.g, state.noise = snapped, g, noise
    if status is not Status.SOLVED:
        _allow_for_rounding(state, precision, quickly=status in (Status.MAX_TIME, Status.INTERRUPTED))
    if not problem.feasible(state.u):
        # No engine may do this; if one does, its point is not passed on.
        state.u = problem.repair(state.u)
        state.g = problem.gradient(state.u, state.gram)
        _allow_for_rounding(state, precision, quickly=True)
        return Status.STALLED if status is Status.SOLVED else status
    return status


def _allow_for_rounding(state: State, precision: Precision, quickly: bool) -> None:
    """Measure the error of the gradient of a run that ends without its tolerance."""
    try:
        precision.measure(quickly)
    except Stopped:  # no time to measure it: what it is at most
        bound = state.problem.rounding(state.u, np.arange(state.problem.m), state.gram)
        state.noise = np.maximum(bound, state.noise)
