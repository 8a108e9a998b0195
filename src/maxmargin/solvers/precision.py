"""Whether a solution holds in float64, and what to do if it does not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from maxmargin.solvers.state import State

# Entries of the gradient that are recomputed to measure its error.
_SAMPLE = 48
# What float32 rows are asked for at first, and each time after the gradient has been made exact.
ROUGH, FINER = 1e-4, 1e-2


class Precision:
    """Guards a solution against rounding: of float32 rows above all, of long sums in float64 too.

    The gradient is a sum of many rounded values. When a run believes that it has arrived, entries of
    the gradient are recomputed from float64 kernel values. If they differ too much for the tolerance,
    the entries near the boundary are replaced by exact ones (later changes are small, and so are their
    errors); if that does not last, the rows themselves become float64; then the tolerance is too small.

    **Iterative refinement.** Where a tolerance is beyond what float32 rows can deliver at once, they are
    asked for a rougher one, the gradient near the boundary is made exact, and they are asked for a hundredth
    of it: what is rounded now is only what has changed since.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        if state.gram.dtype == np.float32 and state.stop.criterion != "paper":
            state.tol = max(state.stop.tol, ROUGH)
        # Entries that were made exact since the tolerance was last lowered; all, where that is not done.
        self._exact = np.full(state.problem.m, state.tol == state.stop.tol)
        self.replaced = self.hopeless = False
        self._refreshed = 0

    def confirmed(self, reached: Callable[[State, float, float], bool], scale: float) -> bool:
        """Whether the solution holds in float64; if not, better numbers are put in place."""
        state = self.state
        allowed = 0.25 * state.stop.tol / scale
        noise = state.gram.value_error * float(np.abs(state.u).sum())
        if noise <= 1e-6 * allowed:
            # Float64 rows at an ordinary tolerance, or next to nothing to be rounded.
            state.tol, state.target = state.stop.tol, state.stop.tol / scale
            return reached(state, state.problem.violation(state.u, state.g), scale)
        if state.tol > state.stop.tol:
            finer = FINER * state.tol
            state.tol = finer if finer > 2.0 * state.stop.tol else state.stop.tol
            state.target = state.tol / scale
            self._refreshed = 0
            near = self._near(0.0)
            error = self._error(near[:: max(1, len(near) // _SAMPLE)][:_SAMPLE])
            self._exact[:] = False
            self._refresh(self._near(8.0 * max(error, state.tol / scale)))
            return False
        stale = self._near(2.0 * allowed)
        stale = stale[~self._exact[stale]]
        if len(stale):  # came near since the others were made exact
            self._refresh(stale)
            return False
        if noise > allowed:  # what rounding can do at worst; see what it did
            near = self._near(2.0 * allowed)
            noise = self._error(near[:: max(1, len(near) // _SAMPLE)][:_SAMPLE])
        if noise <= allowed:
            state.noise = max(noise, state.noise)
            violation = state.problem.violation(state.u, state.g)
            state.target = state.stop.tol / scale - 2 * state.noise
            return reached(state, violation, scale)
        if self._refreshed < 2:
            self._refreshed += 1
            self._refresh(self._near(8.0 * noise))
        elif not self.raise_():
            self.hopeless = True
        return False

    def measure(self) -> None:
        """Allow for the present error of the gradient, for a run that ends without its tolerance."""
        state = self.state
        noise = state.gram.value_error * float(np.abs(state.u).sum())
        # Long sums of steps drift beyond the rounding of their rows.
        if not noise <= 1e-6 * abs(state.target):
            near = self._near(2.0 * noise)
            noise = self._error(near[:: max(1, len(near) // _SAMPLE)][:_SAMPLE])
            state.noise = max(noise, state.noise)

    def raise_(self) -> bool:
        """Go over to float64 rows; False if they are float64 already."""
        state = self.state
        if state.gram.dtype == np.float64:
            return False
        state.gram = state.gram.double()
        state.tol = state.stop.tol
        self._exact[:] = True
        state.g = state.problem.gradient(state.u, state.gram)
        state.noise = 0.0
        self._refreshed = 0
        self.replaced = True
        return True

    def _refresh(self, some: NDArray[np.intp]) -> None:
        """Make some entries of the gradient exact."""
        state = self.state
        state.g[some] = state.problem.exact_gradient(state.u, some, state.gram)
        state.gram.count(evals=len(some) * int(np.count_nonzero(state.u)))
        state.noise = 0.0
        self._exact[some] = True
        self.replaced = True

    def _near(self, pad: float) -> NDArray[np.intp]:
        """Variables whose gradient, give or take `pad`, decides about optimality."""
        state, problem = self.state, self.state.problem
        least, most = problem.extremes(state.u, state.g)
        low, high = np.minimum(least, most) - pad, np.maximum(least, most) + pad
        near = (state.g >= low[problem.group]) & (state.g <= high[problem.group])
        return np.flatnonzero(near | ((state.u > problem.lo) & (state.u < problem.hi)))

    def _error(self, some: NDArray[np.intp]) -> float:
        state = self.state
        exact = state.problem.exact_gradient(state.u, some, state.gram)
        return float(np.max(np.abs(exact - state.g[some]), initial=0.0))
