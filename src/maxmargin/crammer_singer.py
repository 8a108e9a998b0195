"""One machine for K classes: Crammer and Singer's."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from maxmargin import dual
from maxmargin._estimator import BaseSVM, Machine, _align, with_callbacks

Floats = NDArray[np.float64]
Index = NDArray[np.intp]


class CrammerSingerSVC(ClassifierMixin, BaseSVM):
    r"""Crammer and Singer's machine: one weight vector per class, one slack per sample, no bias.

    .. math:: \min \tfrac12\sum_r\|w_r\|^2 + C\sum_i\xi_i,\qquad
              \langle w_{y_i} - w_r, \phi(x_i)\rangle \ge 1 - \xi_i\ (r \ne y_i),\ \xi_i \ge 0;

    a sample belongs to the class with the largest :math:`\langle w_r, \phi(x)\rangle`. With a linear
    kernel it is ``LinearSVC(multi_class="crammer_singer", fit_intercept=False)``.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of the slacks.
    kernel, degree, gamma, coef0, tol, cache_size, verbose, max_iter, max_time, n_jobs, warm_start
        See `SVC`.
    solver : str or Solver, default="crammer-singer"
        A solver that takes this dual.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    support_, support_vectors_, n_support_
        See `SVC`.
    dual_coef_ : ndarray of shape (n_classes, n_SV)
        :math:`\tau`: the coefficients of each w_r.
    coef_ : ndarray of shape (n_classes, n_features)
        w_r, for the linear kernel.
    n_iter_, status_, fit_status_, dual_gap_, n_kernel_evals_, n_kernel_calls_, trace_
        See `SVC`.

    References
    ----------
    K. Crammer, Y. Singer, "On the Algorithmic Implementation of Multiclass Kernel-based Vector Machines",
    2001.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import CrammerSingerSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = CrammerSingerSVC(C=10.0).fit(X, y)
    >>> clf.decision_function(X).shape, round(clf.score(X, y), 2)
    ((150, 3), 0.99)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSVM._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="neither")],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str | Callable[..., Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        cache_size: float = 200,
        verbose: bool = False,
        max_iter: int = -1,
        solver: Any = "crammer-singer",
        max_time: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.solver = solver
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.warm_start = warm_start

    @_fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CrammerSingerSVC:
        """Train.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training data; for ``kernel="precomputed"`` the square kernel matrix.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of C per sample; 0 is the same as leaving the row out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X, y = self._validate(X, y)
        weight = self._weights(X, sample_weight)
        order = np.flatnonzero(weight > 0)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        self.classes_ = np.unique(y[order])
        k = len(self.classes_)
        if k < 2:
            raise ValueError(f"The number of classes has to be greater than one; got {k} class")
        problem = dual.crammer_singer(y[order], self.C * weight[order])
        start = self._start_from(order, k)
        machine = Machine("all", problem, np.arange(len(order)), np.zeros(1, np.intp), start)
        segments = np.array([0, len(order)])
        solution = self._solve(X, self._kernel_for(X, order), order, segments, [machine], double=False)[0]

        tau = solution.u.reshape(-1, k)
        used = np.flatnonzero(tau.any(axis=1))
        self._keep_support(X, order[used])
        label = np.searchsorted(self.classes_, y[order[used]])
        self._n_support = np.bincount(label, minlength=k).astype(np.int32)
        self._dense_coef = np.ascontiguousarray(tau[used].T)
        self.dual_coef_ = _align(sp.csr_array(self._dense_coef)) if self._sparse else self._dense_coef
        self.n_iter_ = max(1, solution.n_iter)
        self.dual_gap_ = solution.gap
        self.trace_ = [solution.trace]
        self._solved = (self.shape_fit_, order, tau) if self.warm_start else None
        self._report([solution])
        return self

    def _linear_coef(self) -> Any:
        return _align(self.dual_coef_ @ self.support_vectors_)

    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self)
        if self.kernel == "linear":
            return self._linear_values(X, self._linear_coef(), np.zeros(len(self.classes_)))
        return np.asarray(self._expand(X, self._dense_coef, [len(self.support_)])[0])

    def decision_function(self, X: Any) -> Floats:
        """Evaluate <w_r, x>.

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
