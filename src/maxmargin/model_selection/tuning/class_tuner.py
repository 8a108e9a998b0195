"""The base of classifiers that choose their own parameters: classes, folds and probabilities."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from maxmargin._sklearn import StrOptions
from maxmargin._types import Floats, Index
from maxmargin.model_selection.calibrated import CalibratedMixin, calibrator_of, equip
from maxmargin.model_selection.tuning.base import BaseTuner, Run


class ClassTuner(CalibratedMixin, ClassifierMixin, BaseTuner):
    """Choose the parameters of a classifier, and calibrate its probabilities."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseTuner._parameter_constraints,
        "calibrate": [StrOptions({"sigmoid", "isotonic", "temperature"}), None],
    }

    def _checked_targets(self, y: Any, weight: Floats | None) -> Any:
        check_classification_targets(y)
        self.classes_, self._label = np.unique(y, return_inverse=True)
        if weight is not None:  # as in SVC, rows without weight have no class
            self.classes_ = np.unique(y[weight > 0])
        if len(self.classes_) < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {len(self.classes_)} class"
            )
        return y

    def _targets(self, y: Any) -> Index | None:
        return self._label

    def _default_cv(self, y: Any) -> Any:
        return StratifiedKFold(5, shuffle=True, random_state=0)

    def _finish(self, run: Run, y: Any, weight: Floats | None) -> None:
        """Fit the calibrator to the values of held-out rows."""
        self.calibrator_ = None
        if self.calibrate is None:
            return
        surface, node = run.climb.surface, run.chosen(self.select)
        tests = [test for _, test in surface.splits]
        self.calibrator_ = calibrator_of(
            self.calibrate,
            surface.values_of(node.setting, node.C),
            [surface.y[test] for test in tests],
            self.classes_,
            None if surface.weight is None else [surface.weight[test] for test in tests],
        )

    def _equip(self, model: Any) -> None:
        equip(model, self.calibrator_)

    # -- prediction --------------------------------------------------------------------------------

    # scikit-learn's mixin, which has to come first, has a score that knows nothing of `scoring`.
    score = BaseTuner.score

    def decision_function(self, X: Any) -> Floats:
        """Evaluate the decision function of the final model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            See `SVC.decision_function`.
        """
        check_is_fitted(self, "best_estimator_")
        return np.asarray(self.best_estimator_.decision_function(X))
