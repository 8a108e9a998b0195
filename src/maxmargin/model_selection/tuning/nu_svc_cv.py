"""Support vector classification with nu that chooses its own parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from maxmargin._types import Floats
from maxmargin.estimators.nu_svc import NuSVC
from maxmargin.model_selection.tuning.base import Units
from maxmargin.model_selection.tuning.class_tuner import ClassTuner
from maxmargin.model_selection.tuning.nu import NuClassSurface, largest_nu
from maxmargin.model_selection.tuning.surface import Split, Surface


class NuSVCCV(ClassTuner):
    r"""Nu-support vector classification that chooses nu and the width of its kernel by cross-validation.

    Works as `SVCCV`, with :math:`\nu = \nu_{\max} / (1 + s)` for s = 0.1, 1, 10, ... in place of C, where
    :math:`\nu_{\max}` is the largest value that the sizes of the classes allow. A fold that allows less than
    that gets the largest value that it allows.

    Parameters
    ----------
    kernel, scale, scoring, cv, calibrate, refine, select, tol, cache_size, max_time, n_jobs, random_state,
    checkpoint, progress, verbose
        See `SVCCV`.

    Attributes
    ----------
    nu_, gamma_, kernel_ : float, float, str
        The parameters that were chosen; gamma is that of the scaled features.
    best_params_, best_score_, best_estimator_, path_, cv_results_, n_rows_, n_features_in_, feature_names_in_
        See `SVCCV`; the final model is a `NuSVC`.
    held_out_rows_, held_out_predictions_, calibrator_, classes_
        See `SVCCV`.
    n_splits_, scorer_, status_, interrupted_, tuning_time_, refit_time_
        See `SVCCV`.

    See Also
    --------
    maxmargin.SVCCV : The same with C; it is faster.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import NuSVCCV
    >>> model = NuSVCCV().fit(*load_iris(return_X_y=True))
    >>> model.best_score_ > 0.94
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**ClassTuner._parameter_constraints}

    def __init__(
        self,
        *,
        kernel: str = "rbf",
        scale: str | None = "standard",
        scoring: Any = None,
        cv: Any = None,
        calibrate: str | None = "sigmoid",
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
        self.calibrate = calibrate
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
        return NuSVC(**{"tol": self.tol, "cache_size": self.cache_size, "n_jobs": self.n_jobs, **params})

    def _surface(self, estimator: Any, X: Any, y: Any, splits: Sequence[Split], **shared: Any) -> Surface:
        return NuClassSurface(estimator, X, y, splits, largest=self._largest, **shared)

    def _units(self, y: Any, weight: Floats | None) -> Units:
        self._largest = largest_nu(np.unique(y, return_inverse=True)[1], weight)
        return Units(C=1.0)
