"""Margins that are checked: whether they are exact enough, and retraining where they are not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from maxmargin._types import Floats, Index, Mask
from maxmargin.dual import relative_to_value
from maxmargin.solvers import costs
from maxmargin.solvers.incremental.exactness import (
    ROUNDING,
    SUM,
    UNKNOWN,
    Gap,
    InexactError,
    relative_gap,
    sizes,
)
from maxmargin.solvers.incremental.margins import APPROACHED, AT_BOUND, Margins

# Uncertainty of a margin from which on the gap is computed.
_DOUBTFUL = 1e-8
# Tolerance of the solver where a model is trained from zero.
_RETRAINED = 1e-9


class CheckedMargins(Margins):
    """Margins that are exact, or an `InexactError`."""

    def make_exact(self) -> None:
        """Make every margin right; retrain if that fails, or is not exact enough."""
        try:
            self.learn_violators()
            if self._exact_enough():
                return
        except (InexactError, np.linalg.LinAlgError):
            pass
        gap = self._retrain()
        if not gap.acceptable:
            raise InexactError
        if self.boxed and gap.small:
            return
        left = "" if gap.small else f", which leaves a relative gap of {gap.found:.1g}"
        warnings.warn(
            f"Rows far from the others made the margins inexact: the model was retrained{left}. Scale "
            "the features, lower C, or leave out rows that are far from all others.",
            ConvergenceWarning,
            stacklevel=6,
        )

    def forget(self, rows: Index) -> None:
        """Unlearn rows and make all margins right."""
        self.sound = False
        if np.count_nonzero(self.u[rows]) > costs.EXACT_FEW:  # a solver is faster, and restores the sum
            self.u[rows] = 0.0
            self.active.size = 0
            self.recompute_gradient()
        for k in map(int, rows):
            self.remove(k)
        self.make_exact()

    def begin_at(self, u: Floats) -> None:
        """Set the multipliers of all rows, which `make_exact` starts from."""
        n = self.n
        self.u[:n] = u
        if self.epsilon is not None:
            self.turn(np.arange(n), np.where(u < 0, -1.0, 1.0))
        bound = np.where(np.isfinite(self.bound[:n]), self.bound[:n], 0.0)
        full = np.abs(u) >= bound * (1.0 - AT_BOUND)  # another arithmetic may miss a bound by rounding
        self.u[:n] = np.where(full & (bound > 0), np.copysign(bound, u), u)
        self.recompute_gradient()

    def state(self) -> tuple[Any, ...]:
        """Return what `undo` needs."""
        return self.n, self.u.copy(), self.alive.copy(), self.active.level

    def undo(self, n: int, u: Floats, alive: Mask, level: float) -> None:
        """Return to the model with n places, the multipliers u and this level."""
        self.n = n
        self.u[:] = 0.0
        self.alive[:] = False
        self.alive[:n] = alive[:n]
        self.turn(np.arange(n), np.where(u[:n] < 0, -1.0, 1.0) if self.epsilon is not None else self.y[:n])
        self.u[:n] = u[:n]
        self.recompute_gradient()
        self.active.size = 0
        try:
            if len(self._free()):
                self.load_free()
        except np.linalg.LinAlgError:
            self.active.size = 0  # the next change begins by retraining
        self.active.level = level
        self.sound = True

    def _retrain(self) -> Gap:
        """Train from zero; return the gap. If exact steps increase it, keep the solver's solution."""
        self.u[:] = 0.0
        solution = self.approach(_RETRAINED if self.boxed else APPROACHED)
        gap = self._gap()
        try:
            self.load_free()
            self.learn_violators()
            exact = self._gap()
        except (InexactError, np.linalg.LinAlgError):
            exact = Gap(np.inf, np.inf)
        if exact.small or exact.most <= gap.most:
            return exact
        self.adopt(solution)
        self.sound = True
        return gap

    def _exact_enough(self) -> bool:
        """Whether rounding errors of the margins are small, a priori or measured by the gap."""
        held = self.held
        terms = float(np.max(sizes(self.diag[held], self.u[held]), initial=0.0))
        sure = abs(float(self.u.sum())) <= SUM * float(np.abs(self.u).sum())
        if self.boxed and not self.violation() <= _DOUBTFUL * self._unit():
            return False
        return (sure and ROUNDING * terms <= _DOUBTFUL * self._unit()) or self._gap().small

    def _gap(self) -> Gap:
        """The relative duality gap, from new sums."""
        if not abs(float(self.u.sum())) <= 1e4 * SUM * float(np.abs(self.u).sum()):  # or not finite
            return Gap(np.inf, np.inf)
        if self.epsilon is None and not self.boxed:
            held, values, terms = self._values()
            u, y, ridge = self.u[held], self.y[held], self.ridge[held]
            return relative_gap(u, values, y, ridge, self.level, terms)
        return Gap(*(relative for _, relative in self._gaps()))

    def certificate(self) -> tuple[float, float]:
        """The gap with the rounding errors of the sums, absolute and as a fraction of the optimal value."""
        if self.single or (self.epsilon is not None and self._constant()):
            return 0.0, 0.0  # w = 0 is the optimum
        return self._gaps()[1]

    def _constant(self) -> bool:
        """Whether all targets are in a tube around one number, and there is no multiplier."""
        return not self.u.any() and bool(np.ptp(self.y[self.held]) <= 2.0 * (self.epsilon or 0.0))

    def _gaps(self) -> list[tuple[float, float]]:
        """Gap and relative gap: from sums in float64, and their largest values given their rounding."""
        held, values, terms = self._values()
        problem, two = self.problem(), 1 if self.epsilon is None else 2
        u = self.u[held]
        pair, gradient = self.paired(u), np.tile(values + self.ridge[held] * u, two)
        gradient -= problem.p
        objective = problem.objective(pair, gradient)
        gaps = [problem.gap(pair, gradient, noise) for noise in (0.0, np.tile(UNKNOWN * terms, two))]
        return [(gap, relative_to_value(gap, objective) if np.isfinite(gap) else np.inf) for gap in gaps]

    def _values(self) -> tuple[Index, Floats, Floats]:
        """The rows that are held, their values K u from new sums, and the sizes of the terms of these."""
        held = self.held
        support = np.flatnonzero(self.u[: self.n])
        return held, self.product(support, self.u[support], held), sizes(self.diag[held], self.u[held])
