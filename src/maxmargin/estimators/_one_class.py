"""Base of the one-class estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin

from maxmargin._types import Floats, Index
from maxmargin.estimators.base import BaseSVM
from maxmargin.solvers.solution import Solution


class BaseOneClass(OutlierMixin, BaseSVM):
    """Scores and predictions of the one-class estimators."""

    def _keep(
        self, X: Any, order: Index, used: Index, coef: Floats, offset: Floats, solution: Solution
    ) -> None:
        """Fitted attributes of the model, and of the course of training but for the gaps."""
        self._publish(self._model_of(X, order[used], n_support=[len(used)], coef=coef, intercept=-offset))
        self.n_iter_ = max(1, solution.n_iter)
        self.trace_ = [solution.trace]

    def _publish_intercept(self, intercept: Floats) -> None:
        self.intercept_, self.offset_ = intercept, -intercept

    def decision_function(self, X: Any) -> Floats:
        """Signed distance to the boundary, positive for inliers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.asarray(self.score_samples(X) - self.offset_)

    def score_samples(self, X: Any) -> Floats:
        """The unshifted scores: ``decision_function(X) + offset_``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if self.kernel == "linear":
            return self._linear_values(X, np.zeros(1)).ravel()
        return self._expand(X)[0].ravel()

    def predict(self, X: Any) -> NDArray[np.intp]:
        """+1 for inliers, -1 for outliers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.where(self.decision_function(X) > 0, 1, -1)
