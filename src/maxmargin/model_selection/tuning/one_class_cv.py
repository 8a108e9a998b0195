"""Outlier detection that chooses its own parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from maxmargin._sklearn import StrOptions
from maxmargin._types import Floats, Index
from maxmargin.estimators.one_class import OneClassSVM
from maxmargin.model_selection.tuning.base import ROWS, BaseTuner, Units
from maxmargin.model_selection.tuning.nu import OneClassSurface
from maxmargin.model_selection.tuning.surface import Split, Surface


class OneClassSVMCV(OutlierMixin, BaseTuner):
    r"""One-class SVM that chooses nu and the width of its kernel by cross-validation.

    Works as `SVCCV`, with :math:`\nu = 1 / (1 + s)` for s = 0.1, 1, 10, ... in place of C. Which rows are
    outliers is not known to the model, so it needs a score: one of labels (1 for inliers, -1 for outliers,
    given as y), such as "roc_auc" or "balanced_accuracy"; or a function ``score(estimator, X)``.

    Parameters
    ----------
    scoring : str or callable
        The score to maximise; needed.
    train_on : {"all", "inliers"}, default="all"
        Rows that train: all of them, as in `GridSearchCV`, or those with the label 1, to find what is new.
        All rows are used for scores, where they are held out.
    contamination : "auto" or float, default="auto"
        See `OneClassSVM`: the share of the rows that train, of each fold and in the end, that are outside.
        Scores of labels, such as "balanced_accuracy", are those of this boundary.
    kernel, scale, refine, select, tol, cache_size, max_time, n_jobs, random_state, checkpoint, progress,
    verbose
        See `SVCCV`.
    cv : int, splitter or iterable, default=None
        Folds, as in scikit-learn; None for five shuffled ones, stratified where there are labels.

    Attributes
    ----------
    nu_, gamma_, kernel_ : float, float, str
        The parameters that were chosen; gamma is that of the scaled features.
    best_params_, best_score_, best_estimator_, path_, cv_results_, n_rows_, n_features_in_, feature_names_in_
        See `SVCCV`; the final model is a `OneClassSVM`.
    offset_ : ndarray of shape (1,)
        ``decision_function = score_samples - offset_``.
    held_out_rows_, held_out_predictions_ : ndarray
        See `SVCCV`.
    n_splits_, scorer_, status_, interrupted_, tuning_time_, refit_time_
        See `SVCCV`.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import OneClassSVMCV
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(size=(200, 2)), rng.uniform(-8, 8, size=(20, 2))])
    >>> y = np.repeat([1, -1], [200, 20])
    >>> OneClassSVMCV(scoring="roc_auc").fit(X, y).best_score_ > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseTuner._parameter_constraints,
        "train_on": [StrOptions({"all", "inliers"})],
        "contamination": OneClassSVM._parameter_constraints["contamination"],
    }

    def __init__(
        self,
        *,
        kernel: str = "rbf",
        scale: str | None = "standard",
        scoring: Any = None,
        cv: Any = None,
        train_on: str = "all",
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
        contamination: str | float = "auto",
    ) -> None:
        self.kernel = kernel
        self.scale = scale
        self.scoring = scoring
        self.cv = cv
        self.train_on = train_on
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
        self.contamination = contamination

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Any:
        """Choose the parameters, then fit with them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,), default=None
            1 for inliers, -1 for outliers; None if the score needs no labels. A function gets them
            unchanged.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of the bounds per sample.
        groups : array-like of shape (n_samples,), default=None
            Groups for a splitter that needs them.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return super().fit(X, y, sample_weight, groups)

    def _validated(self, X: Any, y: Any) -> tuple[Any, Any]:
        if self.scoring is None:
            raise ValueError(
                "OneClassSVMCV needs a score to choose by: scoring='roc_auc' or 'balanced_accuracy' with "
                "labels 1 and -1 as y, or a function score(estimator, X)."
            )
        X = validate_data(self, X, **ROWS)
        if y is None:
            if self.train_on == "inliers":
                raise ValueError(
                    "train_on='inliers' needs labels: give y, 1 for inliers and -1 for outliers."
                )
            if isinstance(self.scoring, str):
                raise ValueError(
                    f"scoring={self.scoring!r} compares with labels: give y, 1 for inliers and -1 for "
                    "outliers, or use a function score(estimator, X)."
                )
            return X, None
        y = column_or_1d(y)
        check_consistent_length(X, y)
        # What a function of the user makes of labels is its own matter.
        if (isinstance(self.scoring, str) or self.train_on == "inliers") and not _has_signs(y):
            raise ValueError(
                f"Labels must be 1 for inliers and -1 for outliers, got {np.unique(y)[:5].tolist()}: "
                "use y = np.where(is_outlier, -1, 1)."
            )
        return X, y

    def _checked_targets(self, y: Any, weight: Floats | None) -> Any:
        return y

    def _targets(self, y: Any) -> Index | None:
        return np.unique(y, return_inverse=True)[1] if _has_signs(y) else None

    def _default_cv(self, y: Any) -> Any:
        return (StratifiedKFold if _has_signs(y) else KFold)(5, shuffle=True, random_state=0)

    def _untrained(self, **params: Any) -> Any:
        given = {"tol": self.tol, "cache_size": self.cache_size, "n_jobs": self.n_jobs}
        return OneClassSVM(**{**given, "contamination": self.contamination, **params})

    def _surface(self, estimator: Any, X: Any, y: Any, splits: Sequence[Split], **shared: Any) -> Surface:
        only = self.train_on == "inliers"
        return OneClassSurface(estimator, X, y, splits, only_inliers=only, **shared)

    def _units(self, y: Any, weight: Floats | None) -> Units:
        return Units(C=1.0)

    def _final_rows(self, X: Any, y: Any, weight: Floats | None) -> tuple[Any, Any, Floats | None]:
        if self.train_on == "all":
            return X, y, weight
        rows = np.flatnonzero(y > 0)
        return X[rows], y[rows], None if weight is None else weight[rows]

    def _equip(self, model: Any) -> None:
        self.offset_ = model.offset_

    # -- prediction --------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """Evaluate the decision function of the final model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Positive for inliers.
        """
        check_is_fitted(self, "best_estimator_")
        return np.asarray(self.best_estimator_.decision_function(X))

    def score_samples(self, X: Any) -> Floats:
        """The decision function without its offset.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            The larger, the less of an outlier.
        """
        check_is_fitted(self, "best_estimator_")
        return np.asarray(self.best_estimator_.score_samples(X))


def _has_signs(y: Any) -> bool:
    """Whether there are labels, 1 and -1."""
    return y is not None and set(np.unique(y).tolist()) <= {-1, 1}
