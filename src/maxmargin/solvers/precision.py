"""Whether a solution holds in spite of rounding, and what to do if it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.limits import affordable, check, current, slices
from maxmargin._types import Floats, Index, Rows
from maxmargin.dual import Dual
from maxmargin.solvers import costs
from maxmargin.solvers.state import State

# Entries of the gradient that are recomputed to measure its error where all would be too many, and the factor
# for entries that are not in the sample. Problems in one call use the same (`maxmargin.solvers.batch.whole`).
SAMPLE, SAFETY = 64, 2.0
# Times that numbers are improved before the rows become float64, and before the tolerance is given up.
_PATIENCE, _MOST = 2, 12


def exact_entries(problem: Dual, u: Floats, some: Index, gram: Rows, allowed: float) -> tuple[Floats, Floats]:
    """Entries of the gradient from float64 kernel values, and bounds of their errors.

    Where such a bound exceeds a hundredth of what is `allowed`, twice the digits are used if that is
    affordable.
    """
    g = problem.exact_gradient(u, some, gram)
    error = problem.rounding(u, some, gram, double=True)
    poor = np.flatnonzero(~(error <= 0.01 * allowed))
    values = gram.sum_cost(len(poor), int(np.count_nonzero(u))) if len(poor) else 0.0
    work = costs.DOUBLE_DOUBLE_TIME * gram.cost * values
    if len(poor) and values * gram.cost <= costs.DOUBLE_DOUBLE_MOST and affordable(work):
        each = work / len(poor)
        with np.errstate(over="ignore", invalid="ignore"):
            # Sums of a linear kernel share their weights, and have slices of their own.
            for start, stop in slices(len(poor), each, len(poor) if gram.features is not None else 1):
                part = poor[start:stop]
                g[part] = problem.accurate_gradient(u, some[part], gram)
            # The rounding of the result, and that of exponentials or of a user's function.
            rest = 2.0**-50 * (np.abs(g[poor]) + np.abs(problem.p[some[poor]]))
            rest += gram.accurate_bound(error[poor], float(np.abs(u).sum()))
        error[poor] = np.minimum(rest, error[poor])
    return g, error


def measured(
    problem: Dual,
    u: Floats,
    g: Floats,
    gram: Rows,
    allowed: float,
    limit: float,
    refreshed: NDArray[np.bool_] | None = None,
) -> Measurement:
    """Measure the rounding errors of the gradient `g`, see `Measurement`.

    `limit` is the number of kernel values that this may take, and `refreshed` marks entries that were made
    exact some steps ago, so that their errors are smaller than those of the others.
    """
    support = int(np.count_nonzero(u))

    if gram.sum_cost(problem.m, support) <= max(costs.RECOMPUTE_ALWAYS, limit):
        return Measurement(*exact_entries(problem, u, np.arange(problem.m), gram, allowed))
    # The errors of entries that are not in the sample are in proportion to what the bounds allow for.
    noise = np.maximum(problem.rounding(u, None, gram), 1e-300)
    near = np.zeros(problem.m, np.bool_)
    near[near_boundary(problem, u, g, 2.0 * allowed)] = True
    kinds = [near, ~near] if refreshed is None else [refreshed, ~refreshed]
    samples: list[tuple[Index, Index]] = []
    for kind in kinds:
        of = np.flatnonzero(kind)
        if len(of):
            # Few enough: all of them.
            few = gram.sum_cost(len(of), support) <= max(costs.RECOMPUTE_ALWAYS, 0.1 * limit)
            samples.append((of, of if few else sampled(of[near[of]], of, noise)))
    together = np.concatenate([some for _, some in samples])  # a linear kernel's weights are computed once
    exact, error = exact_entries(problem, u, together, gram, allowed)
    found = np.abs(exact - g[together]) + error
    for (of, some), own in zip(samples, np.split(found, [len(samples[0][1])]), strict=False):
        noise[of] *= SAFETY * np.max(own / noise[some])
        noise[some] = SAFETY * own
    return Measurement(None, noise)


class Measurement(NamedTuple):
    """An exact gradient, if there was one to be had, and the errors that remain.

    Parameters
    ----------
    exact : ndarray or None
        All entries of the gradient, recomputed; None if only a sample was.
    noise : ndarray
        Bounds of the errors: of `exact`, or those of the gradient that was measured, judged by a sample.
    """

    exact: Floats | None
    noise: Floats


def near_boundary(problem: Dual, u: Floats, g: Floats, pad: float | Floats) -> Index:
    """Variables whose gradient, give or take `pad`, decides about optimality."""
    least, most = problem.extremes(u, g)
    low, high = np.minimum(least, most)[problem.group], np.maximum(least, most)[problem.group]
    near = (g + pad >= low) & (g - pad <= high)
    return np.flatnonzero(near | ((u > problem.lo) & (u < problem.hi)))


def sampled(near: Index, of: Index, doubt: Floats) -> Index:
    """A sample by which the entries `of` are judged, of which those `near` the boundary matter most.

    Evenly spread over both, and where `doubt`, a value for each entry of the gradient, is largest. The
    compiled form is `maxmargin.solvers.batch.whole_steps.sampled`.
    """
    most = SAMPLE // 2
    doubtful = of[np.argpartition(-doubt[of], min(most, len(of) - 1))[:most]]
    spread = np.union1d(near[_spread(len(near), SAMPLE)], of[_spread(len(of), SAMPLE // 4)])
    return np.union1d(spread, doubtful)


def _spread(n: int, most: int) -> Index:
    """At most so many evenly spaced places of n, with the first and the last."""
    count = min(n, most)
    return np.arange(count) * (n - 1) // max(count - 1, 1)


def finer(reached: float, tol: float) -> float:
    """The next tolerance of an iterative refinement that is to end with `tol`."""
    following = costs.FINER * reached
    return following if following > 2.0 * tol else tol


class Precision:
    """Guards a solution against rounding: of float32 rows above all, of long sums in float64 too.

    The gradient is a sum of many rounded values. When a run believes that it has arrived, its gradient is
    recomputed from float64 kernel values (with twice the digits where even these cancel): all entries if that
    is cheap, otherwise a sample. If that does not confirm the tolerance, the run goes on from the better
    numbers (later changes are small, and so are their errors); if they do not last, the rows themselves
    become float64; then the tolerance is too small.

    **Iterative refinement.** Where a tolerance is beyond what float32 rows can deliver at once, they are
    asked for a rougher one, the gradient near the boundary is made exact, and they are asked for a hundredth
    of it: what is rounded now is only what has changed since.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        if state.gram.dtype == np.float32 and state.stop.criterion != "paper":
            state.tol = max(state.stop.tol, costs.ROUGH)
        # Entries that were made exact since the tolerance was last lowered; all, where that is not done.
        self._exact = np.full(state.problem.m, state.tol == state.stop.tol)
        # Entries that were made exact while the others were not: their errors are smaller.
        self._refreshed = np.zeros(state.problem.m, np.bool_)
        self.replaced = self.hopeless = False
        self._failed = 0

    def confirmed(self, reached: Callable[[State, float], bool], scale: float) -> bool:
        """Whether the solution holds in spite of rounding; if not, better numbers are put in place."""
        state, problem = self.state, self.state.problem
        allowed = 0.25 * state.stop.tol / scale
        if state.tol > state.stop.tol:
            if not current().over:  # otherwise no step follows
                self._refine(scale)
            return False
        found = measured(problem, state.u, state.g, state.gram, allowed, self._limit(), self._refreshed)
        if found.exact is None:
            stale = near_boundary(problem, state.u, state.g, 2.0 * (allowed + found.noise))
            stale = stale[~self._exact[stale]]
            if len(stale):  # came near since the others were made exact
                self._refresh(stale)
                return False
        self._take(found)
        if reached(state, scale):
            return True
        self._failed += 1
        lost = problem.violation(state.u, state.g, state.noise) - problem.violation(state.u, state.g)
        if lost <= 0.5 * state.stop.tol and self._failed < _MOST:
            return False  # the run goes on until the tolerance holds with this noise too
        state.noise = 0.0
        if found.exact is not None and reached(state, scale):
            # Only the noise is too much, and no better numbers are to be had.
            state.noise, self.hopeless = found.noise, True
        elif found.exact is None and self._failed <= _PATIENCE:
            self._refresh(near_boundary(problem, state.u, state.g, 4.0 * found.noise))
        elif self._failed > _PATIENCE and not self.raise_():
            state.noise, self.hopeless = found.noise, self._failed >= _MOST
        return False

    def _refine(self, scale: float) -> None:
        """Make the gradient near the boundary exact, and ask for a smaller tolerance."""
        state = self.state
        state.tol = finer(state.tol, state.stop.tol)
        state.target = state.tol / scale
        near = near_boundary(state.problem, state.u, state.g, 0.0)
        some = near[_spread(len(near), SAMPLE)]
        exact = state.problem.exact_gradient(state.u, some, state.gram)
        error = float(np.max(np.abs(exact - state.g[some]), initial=0.0))
        self._exact[:] = self._refreshed[:] = False
        pad = 8.0 * max(error, state.tol / scale)
        self._refresh(near_boundary(state.problem, state.u, state.g, pad))

    def measure(self, quickly: bool) -> None:
        """Allow for the present error of the gradient, for a run that ends without its tolerance."""
        state = self.state
        if state.problem.m > costs.MEASURED_LATE:
            check()
        allowed = 0.25 * state.stop.tol / max(state.problem.tolerance_scale(state.u, state.g), 1e-300)
        limit = 0.0 if quickly else self._limit()
        self._take(measured(state.problem, state.u, state.g, state.gram, allowed, limit))

    def _limit(self) -> float:
        return costs.RECOMPUTE_SHARE * float(self.state.gram.n_evals)

    def _take(self, found: Measurement) -> None:
        """Put the numbers of a measurement in place."""
        state = self.state
        state.noise = found.noise
        if found.exact is not None:
            state.g = found.exact
            self._exact[:] = self._refreshed[:] = True
            self.replaced = True

    def raise_(self) -> bool:
        """Go over to float64 rows; False if they are float64 already."""
        state = self.state
        if state.gram.dtype == np.float64:
            return False
        state.gram = state.gram.double()
        state.tol = state.stop.tol
        self._exact[:], self._refreshed[:] = True, False
        state.g = state.problem.gradient(state.u, state.gram)
        state.noise = 0.0
        self._failed = 0
        self.replaced = True
        return True

    def _refresh(self, some: Index) -> None:
        """Make some entries of the gradient exact."""
        state = self.state
        state.g[some] = state.problem.exact_gradient(state.u, some, state.gram)
        state.gram.count(evals=len(some) * int(np.count_nonzero(state.u)))
        state.noise = 0.0
        self._exact[some] = self._refreshed[some] = True
        self.replaced = True
