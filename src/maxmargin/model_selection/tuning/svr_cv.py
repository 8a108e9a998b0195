"""Support vector regression that chooses its own parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.model_selection import KFold

from maxmargin._types import Floats
from maxmargin.estimators.svr import SVR
from maxmargin.model_selection.tuning.base import BaseTuner, Units
from maxmargin.model_selection.tuning.recipe import Climb, ascend
from maxmargin.model_selection.tuning.regression import TargetSurface
from maxmargin.model_selection.tuning.surface import Split, Surface

# Widths of the tube that are tried, in standard deviations of the targets; the first is that of the
# exploration.
_TUBES = (0.1, 0.01, 0.3)
# Steps to better neighbours after the refinement at most.
_ROUNDS = 3


class SVRCV(RegressorMixin, BaseTuner):
    r"""Support vector regression that chooses C, gamma and epsilon by cross-validation.

    Works as `SVCCV`, with C and epsilon counted in standard deviations of the targets. C and gamma are
    explored and refined with a tube of 0.1 standard deviations. Scores of a regression hardly fluctuate, so
    up to three steps to better neighbours follow; then tubes of 0.01 and 0.3 are tried at the best.

    Parameters
    ----------
    kernel, scale, cv, refine, select, cache_size, max_time, n_jobs, random_state, checkpoint, progress,
    verbose
        See `SVCCV`; the default of `cv` is five shuffled folds.
    scoring : str or callable, default=None
        The score to maximise; None for :math:`R^2`.
    tol : float, default=1e-3
        Tolerance, in standard deviations of the targets.

    Attributes
    ----------
    C_, gamma_, epsilon_, kernel_ : float, float, float, str
        The parameters that were chosen; gamma is that of the scaled features.
    best_params_, best_score_, best_estimator_, path_, cv_results_, n_rows_, n_features_in_, feature_names_in_
        See `SVCCV`; the final model is an `SVR`.
    held_out_rows_, held_out_predictions_ : ndarray
        See `SVCCV`.
    n_splits_, scorer_, status_, interrupted_, tuning_time_, refit_time_
        See `SVCCV`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from maxmargin import SVRCV
    >>> model = SVRCV().fit(*load_diabetes(return_X_y=True))
    >>> round(model.best_score_, 1)
    0.5
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**BaseTuner._parameter_constraints}

    def __init__(
        self,
        *,
        kernel: str = "rbf",
        scale: str | None = "standard",
        scoring: Any = None,
        cv: Any = None,
        refine: int = 1,
        select: str = "best",
        tol: float = 1e-3,
        cache_size: float = 200,
        max_time: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        checkpoint: Any = None,
        progress: bool | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.scale = scale
        self.scoring = scoring
        self.cv = cv
        self.refine = refine
        self.select = select
        self.tol = tol
        self.cache_size = cache_size
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.progress = progress
        self.verbose = verbose

    def _untrained(self, **params: Any) -> Any:
        return SVR(**{"tol": self.tol, "cache_size": self.cache_size, "n_jobs": self.n_jobs, **params})

    def _surface(self, estimator: Any, X: Any, y: Any, splits: Sequence[Split], **shared: Any) -> Surface:
        return TargetSurface(estimator, X, y, splits, **shared)

    # scikit-learn's mixin, which has to come first, has a score that knows nothing of `scoring`.
    score = BaseTuner.score

    def _checked_targets(self, y: Any, weight: Floats | None) -> Any:
        return np.asarray(y, dtype=np.float64)

    def _default_cv(self, y: Any) -> Any:
        return KFold(5, shuffle=True, random_state=0)

    def _units(self, y: Any, weight: Floats | None) -> Units:
        """C, tolerance and tube in units of the targets' spread; C also in those of the mean weight."""
        mean = np.average(y, weights=weight)
        spread = float(np.sqrt(np.average((y - mean) ** 2, weights=weight))) or 1.0
        of_weight = 1.0 if weight is None else float(weight[weight > 0].mean())
        return Units(C=spread / of_weight, tol=spread, epsilon=_TUBES[0] * spread)

    def _explore_more(self, climb: Climb, units: Units) -> None:
        if self.refine == 0:
            self._try_tubes(climb, units)

    def _refine_more(self, climb: Climb, units: Units) -> None:
        ascend(climb, _ROUNDS, units.C)
        before = climb.best
        self._try_tubes(climb, units)
        if climb.best is not before:
            ascend(climb, 1, units.C)

    @staticmethod
    def _try_tubes(climb: Climb, units: Units) -> None:
        """Other widths of the tube at the best C and gamma."""
        best = climb.best
        for tube in _TUBES[1:]:
            climb.walk(best.setting._replace(epsilon=tube * units.tol), [best.C])
