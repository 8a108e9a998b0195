"""Base of the one-class estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin

from maxmargin._compiled.threads import Threads
from maxmargin._sklearn import num_samples, safe_indexing
from maxmargin._types import Floats, Index
from maxmargin.estimators._contamination import share_below
from maxmargin.estimators._elsewhere import SamplesElsewhere
from maxmargin.estimators.base import BaseSVM
from maxmargin.kernels.expansion import linear
from maxmargin.solvers.solution import Solution


class BaseOneClass(OutlierMixin, BaseSVM):
    """Scores and predictions of the one-class estimators."""

    contamination: str | float

    def _keep(
        self, X: Any, order: Index, used: Index, coef: Floats, offset: Floats, solution: Solution
    ) -> None:
        """Fitted attributes of the model, and of the course of training but for the gaps."""
        self._publish(self._model_of(X, order[used], n_support=[len(used)], coef=coef, intercept=-offset))
        self.n_iter_ = max(1, solution.n_iter)
        self.trace_ = [solution.trace]

    def _publish_intercept(self, intercept: Floats) -> None:
        self.intercept_, self.offset_ = intercept, -intercept

    def _cut(self, X: Any, order: Index, weight: Floats, scores: Floats) -> None:
        """Set the offset so that the share `contamination` of the weight of the rows `order` is below it.

        `scores` are theirs by the gradient, which suffice where samples are elsewhere; others are computed as
        predictions are, so that equal rows have equal scores.
        """
        model, itemsize = self._model, 4
        if not isinstance(X, SamplesElsewhere):
            own = X if len(order) == num_samples(X) else safe_indexing(X, order)
            if model.kernel.name == "linear":
                scores = linear(own, model.combine(model.coef), np.zeros(1)).ravel()
            else:
                scores = model.expand(own, threads=Threads(self.n_jobs))[0].ravel()
            itemsize = getattr(own, "dtype", np.dtype(np.float64)).itemsize
        offset = np.array([share_below(scores, weight, float(self.contamination), itemsize)])
        self._publish(model.updated(intercept=-offset))

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
