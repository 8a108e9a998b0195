"""Outlier detection: the one-class SVM of Schölkopf et al."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from maxmargin import dual
from maxmargin._compiled.limits import Limit
from maxmargin._sklearn import Interval, StrOptions, fit_context, with_callbacks
from maxmargin.estimators._contamination import SHARE
from maxmargin.estimators._one_class import BaseOneClass
from maxmargin.estimators._outcome import report
from maxmargin.estimators._rescaled import as_stored
from maxmargin.estimators._validation import check_training_data, check_weights
from maxmargin.estimators._warm_start import Start
from maxmargin.estimators.search_axes import Axis
from maxmargin.solvers.solutions import Solutions


class OneClassSVM(BaseOneClass):
    r"""One-class SVM; takes the place of `sklearn.svm.OneClassSVM`.

    Minimises :math:`\tfrac12\|\sum_i \alpha_i \phi(x_i)\|^2` with :math:`\sum_i \alpha_i = 1`,
    :math:`0 \le \alpha_i \le 1/(\nu n)`; coefficients and offset are reported in LIBSVM's scaling,
    :math:`\nu n` times that.

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol
        See `maxmargin.SVC`.
    nu : float, default=0.5
        In (0, 1]: bounds the share of outliers from above and that of support vectors from below.
    contamination : "auto" or float, default="auto"
        The share of training rows that are outliers. With "auto", as in scikit-learn and LIBSVM, nu decides:
        the boundary is that of the optimum. A number in (0, 0.5] moves the boundary along the scores until
        this share of the training rows (of their weights) is outside, or as much of it as rows with equal
        scores allow. The coefficients are the same, and so is their certificate, which is about the optimum
        and not about the offset.
    shrinking, cache_size, verbose, max_iter, solver, max_time, n_jobs, warm_start
        See `maxmargin.SVC`.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_
        See `maxmargin.SVC`.
    offset_ : ndarray of shape (1,)
        ``decision_function = score_samples - offset_``; set by `contamination`.
    n_iter_ : int
        Pair steps.
    dual_gap_ : float
        Certified bound of the distance to the optimal value.
    relative_gap_ : float
        The same as a fraction of the optimal value, see `maxmargin.SVC`.
    status_, fit_status_, n_kernel_evals_, n_kernel_calls_, trace_
        See `maxmargin.SVC`.
    n_features_in_, feature_names_in_, shape_fit_
        As in scikit-learn.

    Examples
    --------
    >>> from maxmargin import OneClassSVM
    >>> X = [[0], [0.44], [0.45], [0.46], [1]]
    >>> clf = OneClassSVM(gamma="auto").fit(X)
    >>> clf.predict([[0.45], [3.0]])
    array([ 1, -1])
    >>> clf.score_samples([[0.45], [3.0]]).round(1)
    array([2.1, 0. ])
    >>> OneClassSVM(gamma="auto", contamination=0.2).fit_predict(X)
    array([ 1,  1,  1,  1, -1])
    """

    _search_axes: ClassVar[tuple[Axis, ...]] = (Axis("nu", ascending=False),)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseOneClass._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
        "contamination": [StrOptions({"auto"}), SHARE],
    }

    def __init__(
        self,
        *,
        kernel: str | Callable[..., Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        nu: float = 0.5,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: bool = False,
        max_iter: int = -1,
        solver: Any = "auto",
        max_time: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        contamination: str | float = "auto",
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.nu = nu
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.solver = solver
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.contamination = contamination

    @fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OneClassSVM:
        """Find the region that holds most of the samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training data; for ``kernel="precomputed"`` the square kernel matrix.
        y : Ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of the bounds per sample; 0 is the same as leaving the row out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        limit = Limit(self.max_time)
        X, _ = check_training_data(self, X)
        weight = check_weights(self, X, sample_weight)
        order = np.flatnonzero(weight > 0)
        problem = dual.one_class(len(order), self.nu, weight[order])
        solution, lengths = self._solve_one(X, order, problem, self._start("all", order), limit)

        used = np.flatnonzero(solution.u)
        coef, offset = problem.scale * solution.u[None, used], problem.scale * solution.offset
        self._keep(X, order, used, coef, offset, solution)
        if self.contamination != "auto":
            self._cut(X, order, weight[order], problem.scale * solution.gradient)
        solution = as_stored(problem, solution, lengths, self.tol)
        self.dual_gap_, self.relative_gap_ = solution.gap * problem.scale**2, solution.relative_gap
        self._keep_starts([("all", Start(order, solution.u))])
        report(self, Solutions({0: solution}))
        return self
