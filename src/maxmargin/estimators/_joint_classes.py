"""Base of the classifiers that train all K classes in one problem, with a value per class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from maxmargin._types import Floats, Index
from maxmargin.estimators._outcome import report
from maxmargin.estimators._validation import check_training_data, check_weights
from maxmargin.estimators._warm_start import Start
from maxmargin.estimators.base import BaseSVM
from maxmargin.solvers.solution import Solution
from maxmargin.solvers.solutions import Solutions


class JointSVC(ClassifierMixin, BaseSVM):
    """One problem for all classes, one value per class, the largest wins."""

    def _labelled(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Index, Index, Floats]:
        """X checked, the rows with a positive weight, their classes and weights; sets `classes_`."""
        X, y = check_training_data(self, X, y)
        weight = check_weights(self, X, sample_weight)
        kept = np.flatnonzero(weight > 0)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        self.classes_, label = np.unique(y[kept], return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {len(self.classes_)} class"
            )
        return X, kept, label, weight[kept]

    def _keep(
        self,
        X: Any,
        order: Index,
        label: Index,
        coef: Floats,
        intercept: Floats,
        values: Floats,
        solution: Solution,
    ) -> None:
        """Fitted attributes; `coef` has a column and `values`, the variables, a row per entry of `order`."""
        used = np.flatnonzero(coef.any(axis=0))
        model = self._model_of(
            X,
            order[used],
            n_support=np.bincount(label[used], minlength=len(self.classes_)),
            coef=np.ascontiguousarray(coef[:, used]),
            intercept=intercept,
        )
        self._publish(model)
        self.n_iter_ = max(1, solution.n_iter)
        self.dual_gap_, self.relative_gap_ = solution.gap, solution.relative_gap
        self.trace_ = [solution.trace]
        self._keep_starts([("all", Start(order, values))])
        report(self, Solutions({0: solution}))

    def _scores(self, X: Any) -> Floats:
        raise NotImplementedError

    def decision_function(self, X: Any) -> Floats:
        """Evaluate the value of every class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` of shape (n_samples, n_samples_train).

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            One column per class; for two classes of shape (n_samples,), the second less the first.
        """
        scores = self._scores(X)
        return scores if len(self.classes_) > 2 else np.asarray(scores[:, 1] - scores[:, 0])

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict class labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` of shape (n_samples, n_samples_train).

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        scores = self._scores(X)
        return self.classes_[np.argmax(scores, axis=1)]
