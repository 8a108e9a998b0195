"""The end of a run: multipliers on their bounds, a gradient whose errors are known, a feasible point."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from maxmargin._compiled.limits import Stopped, check
from maxmargin._types import Floats
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
    status = _storable(state, status)
    if status is not Status.SOLVED:
        _allow_for_rounding(state, precision, quickly=status in (Status.MAX_TIME, Status.INTERRUPTED))
    if not problem.feasible(state.u):
        # No engine may do this; if one does, its point is not passed on.
        state.u = problem.repair(state.u)
        state.g = problem.gradient(state.u, state.gram)
        _allow_for_rounding(state, precision, quickly=True)
        return Status.STALLED if status is Status.SOLVED else status
    return status


def _storable(state: State, status: Status) -> Status:
    """Move u to where a model can store it: onto bounds, and so that sums of paired variables are exact.

    Variables stay where they are if the tolerance, or what was reached of it, would not hold on the bounds.
    Sums must be exact: models store them, and with huge kernel values an ulp of them matters.
    """
    problem = state.problem
    exact = problem.with_exact_pairs(state.u)
    with suppress(Stopped):
        check()
        return _moved(state, status, exact)
    if exact is not state.u:  # no time for kernel rows: what rounding the sums changes at most
        state.noise = state.noise + problem.rounding(state.u, None, state.gram)
    return status


def _moved(state: State, status: Status, exact: Floats) -> Status:
    """Move u onto its bounds, or to `exact` if the tolerance would not hold there."""
    problem, limit = state.problem, state.stop.tol
    if status is not Status.SOLVED:
        limit = max(limit, problem.violation(state.u, state.g, state.noise))
    for point in (problem.snap(state.u), exact):
        if np.array_equal(point, state.u):
            break
        g, change = state.g.copy(), problem.net_change(state.u, point)
        moved = np.flatnonzero(change)
        problem.update(g, moved, change[moved], state.gram)
        exchanged = problem.ridge * (point - state.u - change)
        g += exchanged
        noise = state.noise + problem.rounding(change, None, state.gram) + 2.0**-51 * np.abs(exchanged)
        holds = problem.violation(point, g, noise) <= limit
        if holds or point is exact:
            state.u, state.g, state.noise = point, g, noise
            return Status.STALLED if status is Status.SOLVED and not holds else status
    return status


def _allow_for_rounding(state: State, precision: Precision, quickly: bool) -> None:
    """Measure the error of the gradient of a run that ends without its tolerance."""
    try:
        precision.measure(quickly)
    except Stopped:  # no time to measure it: what it is at most
        bound = state.problem.rounding(state.u, None, state.gram)
        state.noise = np.maximum(bound, state.noise)
