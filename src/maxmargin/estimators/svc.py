"""Support vector classification with the penalty C."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from maxmargin import dual, solvers
from maxmargin._sklearn import Interval, StrOptions
from maxmargin._types import Floats, Index
from maxmargin.dual import Dual
from maxmargin.dual.penalised import with_bias
from maxmargin.estimators._rescaled import rounding_of_coefficients
from maxmargin.estimators.one_vs_one import BaseSVC, Reported
from maxmargin.estimators.search_axes import Axis
from maxmargin.solvers.solution import Solution, Status


class SVC(BaseSVC):
    r"""C-support vector classification; takes the place of `sklearn.svm.SVC`.

    Minimises :math:`\tfrac12\|w\|^2 + C\sum_i \xi_i` (hinge) or :math:`\tfrac12\|w\|^2 + C\sum_i
    \xi_i^2` (squared hinge) with :math:`y_i(\langle w, \phi(x_i)\rangle + b) \ge 1 - \xi_i`, for
    every pair of classes; with ``bias="penalised"`` the same plus :math:`\tfrac12 b^2`. The dual, the
    solver's guarantee and the gap are described in `maxmargin.dual`.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of the slacks; infinity trains a hard margin.
    kernel : {"linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed"} or callable
        Kernel; a callable gets two data sets and returns the matrix between them. Objects of
        `maxmargin.kernels` are sums, products and compiled functions.
    degree : int, default=3
        Degree of the poly kernel.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient: 1 / (n_features X.var()), 1 / n_features, or a number.
    coef0 : float, default=0.0
        Constant of the poly and sigmoid kernels.
    shrinking : bool, default=True
        Accepted for compatibility; the solver decides by itself.
    probability : bool, default="deprecated"
        Whether to have `predict_proba`; deprecated, as in scikit-learn. Five folds of every pair of classes
        are trained from the solution of all rows, and Platt's sigmoids fitted to the values of held-out rows.
        The class with the largest probability can be another than that of `predict`: sigmoids need not cross
        1/2 at the decision value 0, and with more than two classes votes and coupling differ.
    tol : float, default=1e-3
        Largest violation of the KKT conditions, as in LIBSVM.
    cache_size : float, default=200
        Budget of the kernel cache in MB; never exceeded.
    class_weight : dict or "balanced", default=None
        Factors of C per class.
    verbose : bool, default=False
        Show a live table of the solver's progress.
    max_iter : int, default=-1
        Budget of pair steps per pair of classes; -1 stands for ``max(10**7, 100 n_samples)``.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Shape of the decision function for more than two classes.
    break_ties : bool, default=False
        Whether `predict` breaks ties by the values of the decision function.
    random_state : int, RandomState or None
        Chooses the folds of ``probability=True``, always the same if None; training is deterministic.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        Penalty of the slacks; the squared one as in `sklearn.svm.LinearSVC`.
    bias : {"free", "penalised"}, default="free"
        Whether the intercept b costs nothing, or :math:`\tfrac12 b^2`, as in `sklearn.svm.LinearSVC` with
        ``intercept_scaling=1``. The second is the model of the kernel :math:`k + 1` without an intercept:
        of squared hinge losses and hard margins it is a multiple of the point of least norm of one hull,
        which MDM, NPA, MaxMinOver and Gilbert's algorithm look for. Its solution is unique, and depends on
        where the origin of the features is.
    solver : str or Solver, default="auto"
        A name of `maxmargin.solvers.names` or a solver.
    max_time : float, default=None
        Budget in seconds for the whole fit.
    n_jobs : int, default=None
        Threads for training and prediction; None for all cores.
    warm_start : bool, default=False
        Start from the solution of the previous fit where the data have the same shape.

    Attributes
    ----------
    support_ : ndarray of shape (n_SV,)
        Indices of the support vectors, class by class.
    support_vectors_ : ndarray or sparse matrix of shape (n_SV, n_features)
        The support vectors; empty for precomputed and callable kernels.
    n_support_ : ndarray of shape (n_classes,)
        Number of support vectors of each class.
    dual_coef_ : ndarray or sparse matrix of shape (n_classes - 1, n_SV)
        Coefficients of the support vectors, in LIBSVM's layout.
    intercept_ : ndarray of shape (n_pairs,)
        Constants of the decision functions.
    coef_ : ndarray or sparse matrix of shape (n_pairs, n_features)
        Weights of the features; linear kernel only.
    classes_, class_weight_ : ndarray of shape (n_classes,)
        Labels and their weights.
    n_iter_ : ndarray of shape (n_pairs,)
        Pair steps for each pair of classes.
    status_ : str
        "solved", or why training ended, for the pair of classes with the worst status: "max_iter",
        "max_time", "stalled", "infeasible", "interrupted".
    fit_status_ : int
        0 if solved, 1 otherwise.
    dual_gap_ : ndarray of shape (n_pairs,)
        Certified bound of the distance to the optimal value, for each pair of classes.
    relative_gap_ : ndarray of shape (n_pairs,)
        The same as a fraction of the optimal value, ``(primal - dual) / max(|primal|, |dual|)``.
    n_kernel_evals_, n_kernel_calls_ : int
        Kernel values computed, and used.
    probA_, probB_ : ndarray of shape (n_pairs,)
        The sigmoids P = 1 / (1 + exp(A f + B)) of the first class of each pair, in LIBSVM's signs; empty
        without ``probability=True``. Deprecated, as in scikit-learn.
    trace_ : sequence of tuple of Record
        The records of training, for each pair of classes.
    n_features_in_, feature_names_in_, shape_fit_
        As in scikit-learn.

    See Also
    --------
    NuSVC : The same classifier with nu in place of C.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = SVC().fit(X, y)
    >>> clf.status_, clf.n_support_
    ('solved', array([ 7, 29, 24], dtype=int32))
    >>> clf.predict([[5.0, 3.5, 1.5, 0.2]])
    array([0])
    """

    _search_axes: ClassVar[tuple[Axis, ...]] = (Axis("C", ascending=True),)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSVC._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "bias": [StrOptions({"free", "penalised"})],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str | Callable[..., Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = "deprecated",
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Any = None,
        verbose: bool = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        loss: str = "hinge",
        bias: str = "free",
        solver: Any = "auto",
        max_time: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.loss = loss
        self.bias = bias
        self.solver = solver
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.warm_start = warm_start

    def _sample_weight_of_class(self, label: Index) -> Floats:
        return np.asarray(self.class_weight_[label])

    def _check_classes(self, size: Floats) -> None:
        if self.loss == "squared_hinge" and np.isfinite(self.C) and not size.all():
            raise ValueError(
                "A class_weight of 0 is not possible with loss='squared_hinge': leave the class out instead."
            )

    def _pair_problem(self, y: Floats, weight: Floats) -> Dual:
        penalised = self.bias == "penalised"
        hulls = dual.minimum_norm if penalised else dual.nearest_points
        if np.isinf(self.C):
            return hulls(y)
        if self.loss == "hinge":
            problem = dual.c_svc(y, bounds=self.C * weight)
            problem = dual.penalised_bias(problem) if penalised else problem
            if not solvers.get(self.solver).accepts(problem):
                raise ValueError(
                    f"The solver {self.solver!r} cannot train with loss='hinge': use "
                    f"loss='squared_hinge', or one of the solvers {', '.join(solvers.accepting(problem))}."
                )
            return problem
        ridge = 0.5 / (self.C * weight)
        problem = dual.squared_c_svc(y, ridge)
        problem = dual.penalised_bias(problem) if penalised else problem
        if not solvers.get(self.solver).accepts(problem):
            return hulls(y, ridge)  # the same model, up to a factor
        return problem

    def _boxes(self, weight: Floats) -> tuple[Floats, Floats] | None:
        if self.bias == "penalised":
            return None
        with np.errstate(over="ignore", divide="ignore"):
            upper = self.C * weight
            ridge = np.zeros(len(weight)) if self.loss == "hinge" else 0.5 / upper
        if not (np.isfinite(upper).all() and np.isfinite(ridge).all()):
            return None
        return (upper if self.loss == "hinge" else np.full(len(weight), np.inf)), ridge

    def _as_reported(self, problem: Dual, solution: Solution, lengths: Floats) -> Reported:
        if problem.one_hull:
            return _as_penalised_c_svc(problem, solution, lengths)
        return _as_c_svc(problem, solution, lengths) if problem.two_hulls else (problem, solution)


def _as_c_svc(problem: Dual, solution: Solution, lengths: Floats) -> Reported:
    """The nearest points of two hulls as the C-SVC solution that they are a multiple of.

    Of all multiples the one with the factor 2 / ||w||^2 has the least dual value, w between the points.
    """
    square = problem.square(solution.u, solution.gradient)
    if solution.status is Status.INFEASIBLE or not square > 0:
        return problem, replace(solution, gap=np.inf)  # no multiple of it is a bound
    y = np.where(problem.group == 0, 1.0, -1.0)
    svm = dual.squared_c_svc(y, problem.ridge)
    u, g = 2.0 / square * y * solution.u, 2.0 / square * y * solution.gradient - y
    noise = 2.0 / square * solution.noise  # a gradient of the hulls is multiplied by the same factor
    return _reported(svm, solution, u, g, noise + rounding_of_coefficients(u, lengths))


def _as_penalised_c_svc(problem: Dual, solution: Solution, lengths: Floats) -> Reported:
    """The point of least norm W, times 1 / ||W||^2, as the C-SVC with a penalised bias."""
    square, y = problem.square(solution.u, solution.gradient), problem.signs
    if solution.status is Status.INFEASIBLE or not square > 0:
        return problem, replace(solution, gap=np.inf)  # no multiple of it is a bound
    assert y is not None
    svm = dual.penalised_bias(dual.squared_c_svc(y, problem.ridge), float(np.sqrt(problem.shift)))
    u = with_bias(svm, y * solution.u / square)
    # Decision values of the hull include the bias, whose part is the gradient of the last variable here.
    values, last = y * solution.gradient / square, svm.ridge[-1] * u[-1]
    g = np.append(values + last - y, last)
    rounding = np.abs(values) + 2.0 * abs(last) + 1.0 + problem.shift * float(np.abs(u[:-1]).sum())
    noise = solution.noise / square + 2.0**-52 * rounding + rounding_of_coefficients(u[:-1], lengths)
    return _reported(svm, solution, u, g, np.append(noise, 2.0**-51 * abs(last)))


def _reported(svm: Dual, solution: Solution, u: Floats, g: Floats, noise: Floats) -> Reported:
    """The solution `u` of `svm` with its certificate; the course of training is that of `solution`."""
    return svm, replace(
        solution,
        u=u,
        gradient=g,
        offset=svm.offset(u, g),
        gap=float(svm.gap(u, g, noise)),
        violation=svm.violation(u, g, noise),
        noise=noise,
        objective=svm.objective(u, g),
    )
