"""The surface of a regressor."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from maxmargin._types import Floats
from maxmargin.model_selection.measures import regression_measure, regression_scores
from maxmargin.model_selection.scoring import TargetAnswers
from maxmargin.model_selection.starts import Start
from maxmargin.model_selection.tuning.surface import Setting, Surface, Trained


class TargetSurface(Surface):
    """The scores of an `SVR`."""

    @cached_property
    def _measure(self) -> str | None:
        return regression_measure(self.scorer, self.estimator)

    def _trained(
        self, K: Any, setting: Setting, Cs: Floats, folds: list[int], start: Start | None
    ) -> Trained:
        from maxmargin.solvers.c_path.path import solve_folds  # compiled: not at import
        from maxmargin.solvers.c_path.starts import carried

        masks = np.zeros((len(folds), self.n_rows), np.bool_)
        for mask, k in zip(masks, folds, strict=True):
            mask[self.splits[k][0]] = True
        weight = np.ones(self.n_rows) if self.weight is None else self.weight
        masks &= weight > 0
        warm = None if start is None else carried(start.u[0], start.C, float(Cs[0]), weight)
        # A row without weight trains nowhere; its bound must be positive all the same.
        bounds = np.where(weight > 0, weight, 1.0)
        found = solve_folds(
            K, self.y, masks, Cs, tol=self.estimator.tol, weight=bounds, warm=warm, epsilon=setting.epsilon
        )
        values = [path.decision[:, self.splits[k][1]] for k, path in zip(folds, found, strict=True)]
        return Trained(values, [path.solved for path in found], [np.stack([path.u[-1] for path in found])])

    def parameters(self, setting: Setting, C: float) -> dict[str, Any]:
        """Those of an `SVR`."""
        return {**super().parameters(setting, C), "epsilon": float(setting.epsilon)}

    def predictions(self, setting: Setting, C: float) -> Any:
        """Predictions for the held-out rows, fold by fold."""
        return np.concatenate(self.values_of(setting, C))

    def _constant(self, k: int) -> Floats:
        train, test = self.splits[k]
        weight = None if self.weight is None or not self.weight[train].any() else self.weight[train]
        return np.full(len(test), np.average(self.y[train], weights=weight))

    def _scored(self, k: int, values: Floats, setting: Setting, Cs: Sequence[float]) -> Floats:
        targets = self.y[self.splits[k][1]]
        scores = None if self._measure is None else regression_scores(self._measure, values, targets)
        if scores is not None:
            return np.asarray(scores)
        return self._by_scorer(k, [TargetAnswers(part) for part in values], setting, Cs, {})
