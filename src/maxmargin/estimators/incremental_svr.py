"""A regression that learns and forgets rows, exactly."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from maxmargin._sklearn import Interval, StrOptions, fit_context
from maxmargin._types import Floats, Index
from maxmargin.estimators._incremental import BaseIncremental
from maxmargin.estimators.targets import regression_targets


class IncrementalSVR(RegressorMixin, BaseIncremental):
    r"""SVR with the epsilon-insensitive loss, or its square, that learns and forgets rows, exactly.

    After any sequence of `fit`, `partial_fit` and `forget` the model is that of a training from scratch on
    the rows that are held, and it knows its leave-one-out predictions. It minimises

    .. math:: \tfrac12\|w\|^2 + C\sum_i\xi_i \quad\text{or}\quad \tfrac12\|w\|^2 + C\sum_i\xi_i^2,\qquad
              \xi_i = \max(0, |y_i - \langle w, \phi(x_i)\rangle - b| - \varepsilon).

    The first, the default, is that of `sklearn.svm.SVR`. The steps are described in
    `maxmargin.solvers.incremental`.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of the slacks.
    kernel, degree, gamma, coef0
        See `maxmargin.IncrementalSVC`.
    epsilon : float, default=0.1
        Half the width of the tube in which a residual costs nothing.
    cache_size, max_factor, n_jobs
        See `maxmargin.IncrementalSVC`.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        Penalty of a residual outside the tube.

    Attributes
    ----------
    support_ : ndarray of shape (n_SV,)
        Positions of the support vectors among the rows that are held, in the order of their arrival.
    support_vectors_, dual_coef_, intercept_, n_support_
        As `sklearn.svm.SVR` has them.
    n_held_ : int
        Rows that are held.
    gamma_ : float
        The kernel coefficient in use.
    status_, dual_gap_, relative_gap_
        As `maxmargin.SVR` has them; the gaps are computed when they are read, and the status is "solved".

    See Also
    --------
    IncrementalSVC : The same for classification.
    maxmargin.model_selection.leave_one_out : Leave-one-out values of other estimators.

    References
    ----------
    J. Ma, J. Theiler, S. Perkins, "Accurate On-line Support Vector Regression", Neural Computation 15, 2003.

    Examples
    --------
    >>> from maxmargin import IncrementalSVR
    >>> reg = IncrementalSVR(kernel="linear", C=10.0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> reg.partial_fit([[3.0]], [9.0]).forget([3]).predict([[4.0]]).round(2)  # as if 9 had not been
    array([3.7])
    >>> reg.leave_one_out().round(2)
    array([0.3, 1. , 1.7])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseIncremental._parameter_constraints,
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
        "loss": [StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"})],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str | Callable[..., Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        epsilon: float = 0.1,
        cache_size: float = 1000,
        max_factor: float = 4000,
        n_jobs: int | None = None,
        loss: str = "epsilon_insensitive",
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.epsilon = epsilon
        self.cache_size = cache_size
        self.max_factor = max_factor
        self.n_jobs = n_jobs
        self.loss = loss

    def _options(self) -> dict[str, Any]:
        return {"squared": self.loss == "squared_epsilon_insensitive", "epsilon": float(self.epsilon)}

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> IncrementalSVR:
        """Learn from these rows alone.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of C per sample; rows with 0 are not held.

        Returns
        -------
        self : object
        """
        return self._learn(X, y, sample_weight, first=True, alone=True)

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> IncrementalSVR:
        """Learn more rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; from one on.
        y : array-like of shape (n_samples,)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of C per sample; rows with 0 are not held.

        Returns
        -------
        self : object
        """
        return self._learn(X, y, sample_weight, first=not hasattr(self, "_svm"))

    def leave_one_out(self) -> Floats:
        """The prediction for each held row by the model that is trained on all others.

        Returns
        -------
        ndarray of shape (`n_held_`,)
            In the order of arrival.
        """
        check_is_fitted(self)
        return np.asarray(self._svm.leave_one_out()[:, 0])

    def _learn(
        self, X: Any, y: Any, sample_weight: Any, *, first: bool, alone: bool = False
    ) -> IncrementalSVR:
        X, y = self._checked(X, y, first, y_numeric=True)
        y = regression_targets(y)
        weight, kept = self._kept(X, sample_weight, alone)
        if not len(kept):
            return self
        if len(kept) < len(y):
            X, y, weight = X[kept], y[kept], weight[kept]
        self._add(X, y, weight, first, np.zeros(0))
        return self

    def _publish_solution(
        self, X: Any, at: Index, y: Floats, u: Floats, intercept: Floats, labels: NDArray[Any]
    ) -> None:
        used = np.flatnonzero(u[0])
        self._constants = intercept
        self._publish_model(X, at, used, u[:, used], intercept + 0.0, [len(used)])

    def _published(self, gaps: Floats) -> float:
        return float(gaps[0])

    def predict(self, X: Any) -> Floats:
        """Predict targets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.asarray(self._expand(X)[0].ravel() + self.intercept_[0])
