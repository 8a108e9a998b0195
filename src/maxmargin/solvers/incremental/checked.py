"""Margins that are checked: whether they are exact enough, and retraining where they are not."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from maxmargin.solvers.incremental.exactness import ROUNDING, SUM, Gap, InexactError, relative_gap, sizes
from maxmargin.solvers.incremental.margins import Margins

# Uncertainty of a margin from which on the gap is computed.
_DOUBTFUL = 1e-8


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
        left = "" if gap.small else f", which leaves a relative gap of {gap.found:.1g}"
        warnings.warn(
            f"Rows far from the others made the margins inexact: the model was retrained{left}. Scale "
            "the features, lower C, or leave out rows that are far from all others.",
            ConvergenceWarning,
            stacklevel=6,
        )

    def _retrain(self) -> Gap:
        """Train from zero; return the gap. If exact steps increase it, keep the solver's solution."""
        self.u[:] = 0.0
        solution = self.approach()
        found, gap = solution.u, self._gap()
        try:
            self.load(np.flatnonzero(self.u[: self.n]))
            self.learn_violators()
            exact = self._gap()
        except (InexactError, np.linalg.LinAlgError):
            exact = Gap(np.inf, np.inf)
        if exact.small or exact.most <= gap.most:
            return exact
        self.u[:] = 0.0
        self.u[self.held] = found
        self.recompute_gradient()
        self.active.size = 0
        self.active.level = float(solution.offset[0])
        self.sound = True
        return gap

    def _exact_enough(self) -> bool:
        """Whether rounding errors of the margins are small, a priori or measured by the gap."""
        held = self.held
        terms = float(np.max(sizes(self.diag[held], self.u[held]), initial=0.0))
        sure = abs(float(self.u.sum())) <= SUM * float(np.abs(self.u).sum())
        return (sure and ROUNDING * terms <= _DOUBTFUL) or self._gap().small

    def _gap(self) -> Gap:
        """The relative duality gap, from new sums."""
        held = self.held
        if not abs(float(self.u.sum())) <= 1e4 * SUM * float(np.abs(self.u).sum()):  # or not finite
            return Gap(np.inf, np.inf)
        terms = sizes(self.diag[held], self.u[held])
        support = np.flatnonzero(self.u[: self.n])
        values = self.product(support, self.u[support], held)
        return relative_gap(self.u[held], values, self.y[held], self.ridge[held], self.level, terms)
