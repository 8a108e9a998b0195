"""One problem for K classes: Crammer and Singer's."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from maxmargin import dual
from maxmargin._compiled.limits import Limit
from maxmargin._sklearn import Interval, fit_context, with_callbacks
from maxmargin._types import Floats
from maxmargin.estimators._joint_classes import JointSVC
from maxmargin.estimators.base import BaseSVM
from maxmargin.estimators.search_axes import Axis


class CrammerSingerSVC(JointSVC):
    r"""Crammer and Singer's classifier: one weight vector per class, one slack per sample, no bias.

    .. math:: \min \tfrac12\sum_r\|w_r\|^2 + C\sum_i\xi_i,\qquad
              \langle w_{y_i} - w_r, \phi(x_i)\rangle \ge 1 - \xi_i\ (r \ne y_i),\ \xi_i \ge 0;

    a sample belongs to the class with the largest :math:`\langle w_r, \phi(x)\rangle`. With a linear
    kernel it is ``LinearSVC(multi_class="crammer_singer", fit_intercept=False)``.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of the slacks.
    kernel, degree, gamma, coef0, cache_size, verbose, max_iter, max_time, n_jobs, warm_start
        See `SVC`.
    tol : float, default=1e-3
        Tolerance of the conditions of optimality, as in `SVC`. "solved" means besides that ``relative_gap_``
        is at most `tol`, or 0.001 if that is larger.
    solver : str or Solver, default="crammer-singer"
        A solver that takes this dual; "auto" is the default too. "batch" takes up to 1,024 samples.

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
    n_iter_, status_, fit_status_, dual_gap_, relative_gap_, n_kernel_evals_, n_kernel_calls_, trace_
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

    _search_axes: ClassVar[tuple[Axis, ...]] = (Axis("C", ascending=False),)
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

    @fit_context(prefer_skip_nested_validation=True)
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
        limit = Limit(self.max_time)
        X, order, label, weight = self._labelled(X, y, sample_weight)
        k = len(self.classes_)
        problem = dual.crammer_singer(label, self.C * weight)
        solution, _ = self._solve_one(X, order, problem, self._start("all", order, k), limit)
        tau = solution.u.reshape(-1, k)
        self._keep(X, order, label, tau.T, np.zeros(k), tau, solution)
        return self

    def _publish_intercept(self, intercept: Floats) -> None:
        """There is no bias, so there is no attribute for it."""

    def _scores(self, X: Any) -> Floats:
        self._check_fitted()
        if self.kernel == "linear":
            return self._linear_values(X, np.zeros(len(self.classes_)))
        return np.asarray(self._expand(X)[0])
