"""Outlier detection: the one-class SVM with squared slacks."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from maxmargin import dual
from maxmargin._compiled.limits import Limit
from maxmargin._sklearn import Interval, StrOptions, fit_context, with_callbacks
from maxmargin.dual import Dual, relative_to_value
from maxmargin.estimators._contamination import SHARE, three_sigma
from maxmargin.estimators._one_class import BaseOneClass
from maxmargin.estimators._outcome import report
from maxmargin.estimators._rescaled import as_stored
from maxmargin.estimators._validation import check_training_data, check_weights
from maxmargin.estimators._warm_start import Start
from maxmargin.estimators.search_axes import Axis
from maxmargin.solvers.solution import Solution
from maxmargin.solvers.solutions import Solutions


class L2OneClassSVM(BaseOneClass):
    r"""One-class SVM with squared slacks, the problem of OneClassMaxMinOver.

    By default the outliers are the rows whose score is more than three standard deviations below the mean of
    the training scores: at most a tenth of the training rows on any data, and hardly any on clean data. The
    paper's boundary, ``contamination="margin"``, calls every support vector an outlier: with the default C
    that is from a tenth of the rows to all of them, even on clean data.

    .. math::

        \min_{w, \xi}\; \tfrac12\|w\|^2 + \tfrac C2 \sum_i \xi_i^2
        \quad\text{with}\quad \langle w, \phi(x_i)\rangle \ge 1 - \xi_i.

    In the dual the slacks become a ridge: with :math:`K^* = K + I/C` it asks for the point of least norm
    :math:`u^\top K^* u`, :math:`\sum_i u_i = 1`, :math:`u \ge 0`; then :math:`\alpha = u/\rho` with
    :math:`\rho = u^\top K^* u`, and

    .. math::

        w = \sum_i \alpha_i \phi(x_i),\qquad \xi_i = \alpha_i / C,\qquad
        f(x) = \sum_i \alpha_i k(x_i, x) - 1.

    **Outliers.** `score_samples` ranks the rows; `contamination` chooses where the line is drawn.

    - "margin", the paper's: f(x) < 0. Every support vector has a positive slack,
      :math:`f(x_i) = -\alpha_i/C < 0`, and all other training samples have :math:`f(x_i) \ge 0`: the outliers
      among the training samples are just the support vectors (up to `tol`). C sets their number only
      indirectly: as a rule, the smaller C, the more there are, and below some C all samples are outliers,
      whether at the edge of the data or far off.
    - "auto": three standard deviations below the mean score of the training rows, or at the margin if that is
      lower. By Cantelli's inequality at most 10 % of the training rows are outside, and on clean data
      some 0 % to 3 %. Where more than some 5 % are outliers, they widen the spread and hide each other:
      give their share.
    - a share of the training rows, as for `sklearn.ensemble.IsolationForest`.

    The kernel should have the data on one side of the origin, as rbf and laplacian kernels do; otherwise
    nothing but the slacks makes the problem feasible.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the squared slacks, positive and finite: the paper's C, twice that of
        `maxmargin.SVC` with ``loss="squared_hinge"``, which minimises C times the sum of squares.
    kernel, degree, gamma, coef0, tol, cache_size, verbose, max_iter
        See `maxmargin.SVC`. The violation that `tol` bounds is that of the solution scaled to margin 1.
    solver : str or Solver, default="auto"
        "auto" (the same as "batch"), "maxminover", the paper's, "maxminover-doubling", the same in far fewer
        steps, "mdm-accelerated", or any other that takes `maxmargin.dual.one_class_l2`. All find the same
        solution; "maxminover" is the slowest at small `tol`.
    max_time, n_jobs, warm_start
        See `maxmargin.SVC`. With ``solver="maxminover"`` a warm start continues from the counters.
    contamination : {"auto", "margin"} or float, default="auto"
        Where the boundary is, see above; a number in (0, 0.5] is the share of the training rows (of their
        weights) outside, or as much of it as rows with equal scores allow. The coefficients are the same, and
        so is their certificate.

    Attributes
    ----------
    support_, support_vectors_, n_support_, coef_
        See `maxmargin.SVC`.
    dual_coef_ : ndarray of shape (1, n_SV)
        alpha.
    offset_, intercept_ : ndarray of shape (1,)
        ``decision_function = score_samples - offset_``, and the intercept is ``-offset_``; the offset is 1
        for ``contamination="margin"``.
    n_iter_ : int
        Steps of the solver.
    dual_gap_ : float
        Certified bound of the distance to the optimal value.
    relative_gap_ : float
        The same as a fraction of the optimal value, see `maxmargin.SVC`.
    status_, fit_status_, n_kernel_evals_, n_kernel_calls_, trace_
        See `maxmargin.SVC`.
    n_features_in_, feature_names_in_, shape_fit_
        As in scikit-learn.

    References
    ----------
    F. Timm, S. Klement, T. Martinetz, "Fast Model Selection for MaxMinOver-based Training of Support Vector
    Machines".

    Examples
    --------
    >>> from maxmargin import L2OneClassSVM
    >>> X = [[0], [0.44], [0.45], [0.46], [1]]
    >>> clf = L2OneClassSVM(C=1000.0, gamma="auto").fit(X)
    >>> clf.predict(X), clf.predict([[0.45], [3.0]])
    (array([1, 1, 1, 1, 1]), array([ 1, -1]))
    >>> clf = L2OneClassSVM(C=1000.0, gamma="auto", contamination="margin").fit(X)
    >>> clf.support_, clf.predict(X)
    (array([0, 4], dtype=int32), array([-1,  1,  1,  1, -1]))
    """

    _search_axes: ClassVar[tuple[Axis, ...]] = (Axis("C", ascending=False),)
    # The heuristic of the paper on MaxMinOver: from the widest kernel to the narrowest.
    _search_spine: ClassVar[Axis | None] = Axis("gamma", ascending=True)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseOneClass._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "contamination": [StrOptions({"auto", "margin"}), SHARE],
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
        solver: Any = "auto",
        max_time: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        contamination: str | float = "auto",
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
        self.contamination = contamination

    @fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> L2OneClassSVM:
        """Find the region that holds the samples, but for squared slacks.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training data; for ``kernel="precomputed"`` the square kernel matrix.
        y : Ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of C per sample; 0 is the same as leaving the row out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        limit = Limit(self.max_time)
        X, _ = check_training_data(self, X)
        weight = check_weights(self, X, sample_weight)
        order = np.flatnonzero(weight > 0)
        with np.errstate(over="ignore", divide="ignore"):
            ridge = 1.0 / (self.C * weight[order])
        if not np.isfinite(ridge).all():
            raise ValueError(
                "C, or C times the smallest positive sample weight, is too small: its reciprocal overflows."
            )
        problem = dual.one_class_l2(len(order), ridge)
        solution, lengths = self._solve_one(X, order, problem, self._start("all", order), limit)

        used = np.flatnonzero(solution.u)
        rho = np.float64(problem.square(solution.u, solution.gradient))  # its square may overflow
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            coef = solution.u[None, used] / rho
        if not (rho > 0 and np.isfinite(coef).all()):
            raise ValueError(
                "The dual coefficients are not finite: under this kernel no hyperplane has the samples on "
                "one side. Lower C, or use the rbf kernel."
            )
        scores, offset = (solution.gradient - problem.ridge * solution.u) / rho, 1.0
        if self.contamination == "auto":
            offset = three_sigma(scores, weight[order], offset)
        self._keep(X, order, used, coef, np.array([offset]), solution)
        if not isinstance(self.contamination, str):
            self._cut(X, order, weight[order], scores)
        # The model stores u / rho, rounded once more.
        solution = as_stored(problem, solution, lengths, self.tol)
        self.dual_gap_, self.relative_gap_ = _gaps(problem, solution, rho)
        # Whole counters, where the solver has them.
        kept = np.rint(solution.u * solution.details["total"]) if "total" in solution.details else solution.u
        self._keep_starts([("all", Start(order, kept))])
        report(self, Solutions({0: solution}))
        return self


def _gaps(problem: Dual, solution: Solution, rho: float) -> tuple[float, float]:
    """Primal less dual value of w = W / rho, from the gradient and bounds of its errors; absolute, relative.

    The primal value is ||w||^2 / 2 + sum xi_i^2 / (2 r_i) with r = 1/C, the dual one that of u / rho.
    """
    u, noise = solution.u, np.broadcast_to(solution.noise, len(solution.u))
    margins = solution.gradient - problem.ridge * u
    lost = float(u @ noise)
    with np.errstate(over="ignore", invalid="ignore"):
        slack = np.maximum(0.0, 1.0 - (margins - noise) / rho)
        primal = 0.5 * (float(u @ margins) + lost) / rho**2 + 0.5 * float((slack**2 / problem.ridge).sum())
        dual_value = float(u.sum()) / rho - 0.5 * (rho + lost) / rho**2
        gap = max(0.0, primal - dual_value)
    if not np.isfinite(gap):
        return float("inf"), float("inf")
    return gap, relative_to_value(gap, -dual_value)
