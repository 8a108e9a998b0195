"""Whether a solution holds in float64, and what to do if it does not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from maxmargin.solvers.state import State

# Entries of the gradient that are recomputed to measure its error.
_SAMPLE = 48


class Precision:
    """Guards a solution against rounding: of float32 rows above all, of long sums in float64 too.

    The gradient is a sum of many rounded values. When a run believes that it has arrived, entries of
    the gradient are recomputed from float64 kernel values. If they differ too much for the tolerance,
    the entries near the boundary are replaced by exact ones (later changes are small, and so are their
    errors); if that does not last, the rows themselves become float64; then the tolerance is too small.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.replaced = self.hopeless = False
        self._refreshed = 0

    def confirmed(self, reached: Callable[[State, float, float], bool], scale: float) -> bool:
        """Whether the solution holds in float64; if not, better numbers are put in place."""
        state = self.state
        allowed = 0.25 * state.stop.tol / scale
        noise = state.gram.value_error * float(np.abs(state.u).sum())
        if noise <= 1e-6 * allowed:
            return True  # float64 rows at an ordinary tolerance
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
            near = self._near(8.0 * noise)
            state.g[near] = state.problem.exact_gradient(state.u, near, state.gram)
            state.noise = 0.0
            self.replaced = True
        elif not self.raise_():
            self.hopeless = True
        return False

    def measure(self) -> None:
        """Allow for the present error of the gradient, for a run that ends without its tolerance."""
        state = self.state
        noise = state.gram.value_error * float(np.abs(state.u).sum())
        if not noise <= 1e-6 * abs(
            state.target
        ):  # long sums of steps drift beyond the rounding of their rows
            near = self._near(2.0 * noise)
            noise = self._error(near[:: max(1, len(near) // _SAMPLE)][:_SAMPLE])
            state.noise = max(noise, state.noise)

    def raise_(self) -> bool:
        """Go over to float64 rows; False if they are float64 already."""
        state = self.state
        if state.gram.dtype == np.float64:
            return False
        state.gram = state.gram.double()
        state.g = state.problem.gradient(state.u, state.gram)
        state.noise = 0.0
        self._refreshed = 0
        self.replaced = True
        return True

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
