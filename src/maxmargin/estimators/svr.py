"""Support vector regression: SVR and NuSVR."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from maxmargin import dual
from maxmargin._sklearn import Interval, StrOptions
from maxmargin._types import Floats, Index
from maxmargin.dual import Dual
from maxmargin.estimators._regressor import BaseSVR
from maxmargin.estimators.base import BaseSVM
from maxmargin.estimators.search_axes import Axis
from maxmargin.solvers.solution import Solution


class SVR(BaseSVR):
    r"""Epsilon-support vector regression; takes the place of `sklearn.svm.SVR`.

    Minimises :math:`\tfrac12\|w\|^2 + C\sum_i \xi_i`, or :math:`\tfrac12\|w\|^2 + C\sum_i \xi_i^2`, with
    :math:`\xi_i = \max(0, |y_i - \langle w, \phi(x_i)\rangle - b| - \varepsilon)`. The dual, the solver's
    guarantee and the gap are described in `maxmargin.dual`. Tolerance and gap are in the units of y, as in
    LIBSVM: for targets of the order of 10^6 scale y, or raise `tol`.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed"} or callable
        Kernel; a callable gets two data sets and returns the matrix between them. Objects of
        `maxmargin.kernels` are sums, products and compiled functions.
    degree, gamma, coef0, tol
        See `maxmargin.SVC`.
    C : float, default=1.0
        Penalty of the slacks; infinity trains a hard tube, which all residuals must fit into. `dual_gap_` is
        then that of the problem whose tube is as wide as the largest residual.
    epsilon : float, default=0.1
        Half the width of the tube in which a residual costs nothing.
    shrinking, cache_size, verbose, max_iter
        See `maxmargin.SVC`.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        Penalty of a residual outside the tube.
    solver, max_time, n_jobs, warm_start
        See `maxmargin.SVC`.

    Attributes
    ----------
    support_, support_vectors_, coef_
        See `maxmargin.SVC`.
    n_support_ : ndarray of shape (1,)
        Number of support vectors: of samples that are one for any target.
    dual_coef_ : ndarray or sparse matrix of shape (n_targets, n_SV)
        Coefficients of the support vectors; one row unless y has several columns.
    intercept_ : ndarray of shape (n_targets,)
        The constant of the regression function of each target.
    n_iter_ : int or ndarray of shape (n_targets,)
        Pair steps; an array if y has several columns.
    dual_gap_ : float or ndarray of shape (n_targets,)
        Certified bound of the distance to the optimal value, of each target.
    relative_gap_ : float or ndarray of shape (n_targets,)
        The same as a fraction of the optimal value, see `maxmargin.SVC`.
    status_, fit_status_, n_kernel_evals_, n_kernel_calls_, trace_
        See `maxmargin.SVC`: the worst status of all targets, sums over them, and a trace for each.
    n_features_in_, feature_names_in_, shape_fit_
        As in scikit-learn.

    See Also
    --------
    NuSVR : The same regression with nu in place of epsilon.

    References
    ----------
    A. J. Smola, B. Schölkopf, "A Tutorial on Support Vector Regression", Statistics and Computing 14, 2004.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from maxmargin import SVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> reg = SVR(C=1000.0, epsilon=10.0).fit(X, y)
    >>> reg.status_, round(reg.score(X, y), 2)
    ('solved', 0.83)

    Several targets share the kernel rows:

    >>> import numpy as np
    >>> SVR(C=1000.0, epsilon=10.0).fit(X, np.column_stack([y, -y])).predict(X).shape
    (442, 2)
    """

    _search_axes: ClassVar[tuple[Axis, ...]] = (Axis("C", ascending=True), Axis("epsilon", ascending=False))
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSVM._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
        "loss": [StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"})],
    }

    def __init__(
        self,
        *,
        kernel: str | Callable[..., Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: bool = False,
        max_iter: int = -1,
        loss: str = "epsilon_insensitive",
        solver: Any = "auto",
        max_time: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.loss = loss
        self.solver = solver
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.warm_start = warm_start

    def _problem(self, y: Floats, weight: Floats) -> Dual:
        if self.loss == "epsilon_insensitive" or np.isinf(self.C):
            return dual.epsilon_svr(y, self.epsilon, bounds=self.C * weight)
        return dual.squared_epsilon_svr(y, self.epsilon, ridge=0.5 / (self.C * weight))


class NuSVR(BaseSVR):
    r"""Nu-support vector regression; takes the place of `sklearn.svm.NuSVR`.

    Minimises :math:`\tfrac12\|w\|^2 + C(\nu n\varepsilon + \sum_i \xi_i)` over the width of the tube too: nu
    bounds the share of residuals outside from above and that of support vectors from below.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1].
    C : float, default=1.0
        Penalty of the slacks; finite.
    kernel, degree, gamma, coef0, shrinking, tol, cache_size, verbose, max_iter
        See `maxmargin.SVC`.
    solver, max_time, n_jobs, warm_start
        See `maxmargin.SVC`.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, n_iter_, dual_gap_, relative_gap_
        See `SVR`.
    epsilon_ : float or ndarray of shape (n_targets,)
        Half the width of the tube that was found, of each target.
    status_, fit_status_, n_kernel_evals_, n_kernel_calls_, trace_
        See `maxmargin.SVC`.
    n_features_in_, feature_names_in_, shape_fit_
        As in scikit-learn.

    See Also
    --------
    SVR : The same regression with epsilon in place of nu.

    References
    ----------
    B. Schölkopf, A. Smola, R. C. Williamson, P. L. Bartlett, "New Support Vector Algorithms", Neural
    Computation 12, 2000.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from maxmargin import NuSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> reg = NuSVR(nu=0.5, C=1000.0).fit(X, y)
    >>> outside = abs(y - reg.predict(X)) > reg.epsilon_ + 0.01
    >>> bool(outside.mean() <= 0.5 <= len(reg.support_) / len(y))
    True
    """

    _search_axes: ClassVar[tuple[Axis, ...]] = (Axis("nu", ascending=False), Axis("C", ascending=True))
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSVM._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
        "C": [Interval(Real, 0.0, None, closed="right")],
    }

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: str | Callable[..., Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float = 200,
        verbose: bool = False,
        max_iter: int = -1,
        solver: Any = "auto",
        max_time: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
    ) -> None:
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.solver = solver
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.warm_start = warm_start

    def _problem(self, y: Floats, weight: Floats) -> Dual:
        if np.isinf(self.C):
            raise ValueError("C must be finite for NuSVR: a hard tube is SVR with C=inf and its epsilon.")
        return dual.nu_svr(y, self.nu, self.C * weight)

    def _assemble(self, X: Any, order: Index, solutions: list[Solution]) -> None:
        super()._assemble(X, order, solutions)
        widths = [0.5 * float(solution.offset[1] - solution.offset[0]) for solution in solutions]
        self.epsilon_ = widths[0] if len(widths) == 1 else np.array(widths)
