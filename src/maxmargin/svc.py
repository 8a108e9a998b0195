"""Support vector classification: SVC and NuSVC, one-vs-one over shared kernel rows."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import column_or_1d, compute_class_weight
from sklearn.utils._param_validation import Hidden, Interval, StrOptions
from sklearn.utils.multiclass import _ovr_decision_function, check_classification_targets
from sklearn.utils.validation import check_is_fitted

from maxmargin import dual, solvers
from maxmargin._estimator import (
    BaseSVM,
    Machine,
    Machines,
    _align,
    box,
    check_finite,
    rescaled,
    with_callbacks,
)
from maxmargin._limits import Limit
from maxmargin.dual import Dual
from maxmargin.kernels import Kernel
from maxmargin.solvers.base import Solution, Status

Floats = NDArray[np.float64]
Index = NDArray[np.intp]


class BaseSVC(ClassifierMixin, BaseSVM):
    """One-vs-one classification; a subclass supplies the dual problem of a pair."""

    # How the message begins that is given where weights leave a single class, as in scikit-learn.
    _one_class_left: ClassVar[str] = "Invalid input"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSVM._parameter_constraints,
        "probability": ["boolean", Hidden(StrOptions({"deprecated"}))],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
        "random_state": ["random_state"],
    }

    @abstractmethod
    def _pair_problem(self, y: Floats, weight: Floats) -> Dual:
        """The dual problem of one pair of classes, labels -1 and +1."""

    @abstractmethod
    def _sample_weight_of_class(self, label: Index) -> Floats:
        """What `class_weight` contributes to the weight of each sample."""

    @_fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

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
        if self.probability not in ("deprecated", False):
            raise ValueError(
                "probability=True is not supported: wrap the estimator as "
                f"CalibratedClassifierCV({type(self).__name__}(), ensemble=False) from "
                "sklearn.calibration to get probabilities."
            )
        X, y = self._validate(X, y)
        weight = self._weights(X, sample_weight)
        kept = np.flatnonzero(weight > 0)
        self.__dict__.pop("_vote_order", None)  # of a model that was read from a file
        label = self._encode(y, kept)
        weight = weight[kept] * self._sample_weight_of_class(label)

        # Class by class, without the rows that weigh nothing: a pair is two contiguous ranges.
        by_class = np.argsort(label, kind="stable")
        order, label, weight = kept[by_class], label[by_class], weight[by_class]
        segments = np.searchsorted(label, np.arange(len(self.classes_) + 1))
        self._check_classes(np.add.reduceat(weight, segments[:-1]))
        kernel = self._kernel_for(X, kept)
        pairs = list(combinations(range(len(self.classes_)), 2))
        machines = self._machines(pairs, order, segments, weight)
        solutions = self._solve(
            X, kernel, order, segments, machines, limit, double=machines.typical[0].problem.self_scaled
        )
        problems, scaled = {}, list(solutions)
        lengths: Floats | None = None
        for k, solution in enumerate(solutions):
            if len(solution.u):  # else it was not begun: the pair keeps coefficients of zero
                problem = machines[k].problem
                if problem.name == "nearest_points":
                    lengths = self._lengths(X, kernel, order) if lengths is None else lengths
                    problem, scaled[k] = _as_c_svc(problem, solution, lengths[machines[k].samples])
                problems[k] = problem
        self._assemble(X, order, segments, pairs, problems, scaled)
        self._keep_start(order, pairs, machines, solutions)
        self._report(scaled)
        self._warn_of_intersecting_hulls([(problem, scaled[k]) for k, problem in problems.items()])
        return self

    @staticmethod
    def _lengths(X: Any, kernel: Kernel, order: Index) -> Floats:
        """Lengths of the samples in feature space."""
        from maxmargin.gram import Gram  # compiled loops: not at import

        return np.sqrt(np.abs(Gram(X, kernel, cache_bytes=0, dtype=np.float64, index=order).diag))

    @staticmethod
    def _warn_of_intersecting_hulls(solved: list[tuple[Dual, Solution]]) -> None:
        """Say so where w may be 0 for all that is known: the sign of a decision value then means nothing."""
        hulls = [pair for pair in solved if pair[0].name == "reduced_hulls"]
        touching = sum(p.square(s.u, s.gradient) <= 2.0 * s.gap for p, s in hulls)
        if touching:
            which = "The reduced hulls of the two classes"
            if len(hulls) > 1:
                which = f"The reduced hulls of {touching} of {len(hulls)} pairs of classes"
            warnings.warn(
                f"{which} intersect to working precision: there is no margin, and predictions are arbitrary. "
                "Raise nu, or use SVC.",
                ConvergenceWarning,
                stacklevel=4,
            )

    @abstractmethod
    def _check_classes(self, size: Floats) -> None:
        """Refuse parameters that do not suit every pair of classes with these sums of weights."""

    def _machines(
        self, pairs: list[tuple[int, int]], order: Index, segments: Index, weight: Floats
    ) -> Machines:
        """One machine per pair."""
        a, b = np.array(pairs).T
        counts = np.diff(segments)
        total = np.add.reduceat(weight, segments[:-1])
        return Machines(
            counts[a] + counts[b],
            lambda k: self._machine(pairs[k], order, segments, weight),
            int(np.argmax(total[a] + total[b])),
        )

    def _encode(self, y: Any, kept: Index) -> Index:
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        n_classes = len(np.unique(y))
        y = y[kept]
        self.classes_, label = np.unique(y, return_inverse=True)
        if n_classes < 2:
            raise ValueError(f"The number of classes has to be greater than one; got {n_classes} class")
        if len(self.classes_) < 2:
            raise ValueError(
                self._one_class_left + " - all samples with positive weights belong to the same class."
            )
        self.class_weight_ = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        if (self.class_weight_ < 0).any():
            raise ValueError("class_weight must not be negative.")
        return np.asarray(label, dtype=np.intp)

    def _machine(self, pair: tuple[int, int], order: Index, segments: Index, weight: Floats) -> Machine:
        first, second = pair
        samples = np.concatenate([np.arange(segments[k], segments[k + 1]) for k in pair])
        # scikit-learn's signs: the second class is positive if there are two, else the first.
        sign = -1.0 if len(self.classes_) == 2 else 1.0
        y = np.full(len(samples), sign)
        y[segments[first + 1] - segments[first] :] = -sign
        problem = self._pair_problem(y, weight[samples])
        name = f"{self.classes_[first]} / {self.classes_[second]}"
        return Machine(name, problem, samples, np.array(pair), self._warm(pair, problem, order[samples]))

    def _warm(self, pair: tuple[int, int], problem: Dual, samples: Index) -> Floats | None:
        """The previous solution of this pair, where `warm_start` asks for it and it fits."""
        kept = getattr(self, "_solved", None) if self.warm_start else None
        if kept is None or kept["shape"] != self.shape_fit_ or str(pair) not in kept["pairs"]:
            return None
        name, upper, rows, u = kept["pairs"][str(pair)]
        if name != problem.name:
            return None
        full = np.zeros(self.shape_fit_[0])
        full[rows] = u
        return rescaled(full[samples], u, upper, box(problem))

    # -- from solutions to scikit-learn's attributes -------------------------------------------

    def _assemble(
        self,
        X: Any,
        order: Index,
        segments: Index,
        pairs: list[tuple[int, int]],
        problems: dict[int, Dual],
        solutions: list[Solution],
    ) -> None:
        k = len(self.classes_)
        coef = np.zeros((k - 1, len(order)))
        intercept = np.zeros(len(pairs))
        for p, problem in problems.items():
            a, b = pairs[p]
            weights, intercept[p] = _hyperplane(problem, solutions[p])
            n_first = segments[a + 1] - segments[a]
            coef[b - 1, segments[a] : segments[a + 1]] = weights[:n_first]
            coef[a, segments[b] : segments[b + 1]] = weights[n_first:]
        used = np.flatnonzero(coef.any(axis=0))
        self._keep_support(X, order[used])
        self._n_support = np.histogram(used, bins=segments)[0].astype(np.int32)
        dual_coef = np.ascontiguousarray(coef[:, used])
        check_finite(dual_coef, intercept)
        self._dense_coef = dual_coef
        self.dual_coef_ = _align(sp.csr_array(dual_coef)) if self._sparse else dual_coef
        self.intercept_ = intercept
        self.n_iter_ = np.array([max(1, s.n_iter) for s in solutions], dtype=np.int32)
        self.dual_gap_ = np.array([s.gap for s in solutions])
        self.relative_gap_ = np.array([s.relative_gap for s in solutions])
        self.trace_ = [s.trace for s in solutions]

    def _keep_start(
        self,
        order: Index,
        pairs: list[tuple[int, int]],
        machines: Machines,
        solutions: list[Solution],
    ) -> None:
        """What the next fit may start from."""
        if not self.warm_start:
            self._solved = None
            return
        begun = [(pairs[k], machines[k], s) for k, s in enumerate(solutions) if len(s.u)]
        self._solved = {
            "shape": self.shape_fit_,
            # by text: files such as those of skops have no other keys
            "pairs": {
                str(pair): (m.problem.name, box(m.problem), order[m.samples], s.u) for pair, m, s in begun
            },
        }

    def _linear_coef(self) -> Any:
        if len(self.classes_) == 2:
            return super()._linear_coef()
        at = np.concatenate([[0], np.cumsum(self._n_support)])
        pairs = list(combinations(range(len(self.classes_)), 2))
        if self._sparse:
            blocks: list[list[Any]] = [[None] * len(self.classes_) for _ in pairs]
            for p, (a, b) in enumerate(pairs):
                blocks[p][a] = sp.csr_array(self._dense_coef[b - 1, None, at[a] : at[a + 1]])
                blocks[p][b] = sp.csr_array(self._dense_coef[a, None, at[b] : at[b + 1]])
            return self._combine(sp.block_array(blocks, format="csr"))
        vectors = self.support_vectors_
        parts = [
            self._dense_coef[b - 1, None, at[a] : at[a + 1]] @ vectors[at[a] : at[a + 1]]
            + self._dense_coef[a, None, at[b] : at[b + 1]] @ vectors[at[b] : at[b + 1]]
            for a, b in pairs
        ]
        return np.vstack(parts)

    # -- prediction ----------------------------------------------------------------------------

    def _pair_values(self, X: Any) -> Floats:
        """One column per pair of classes, positive for the first; two classes: for the second."""
        check_is_fitted(self)
        if self.kernel == "linear":
            return self._linear_values(X, self._linear_coef(), self.intercept_)
        if len(self.classes_) == 2:
            return self._expand(X, self._dense_coef, [len(self.support_)])[0] + self.intercept_
        parts = self._expand(X, self._dense_coef, self._n_support)
        from maxmargin._votes import pair_values  # compiled: not at import

        return np.asarray(pair_values(parts, self.intercept_))

    def decision_function(self, X: Any) -> Floats:
        """Evaluate the decision function.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` of shape (n_samples, n_samples_train).

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            One value for two classes; otherwise one column per class ("ovr") or per pair ("ovo").
        """
        values = self._pair_values(X)
        if len(self.classes_) == 2:
            return values.ravel()
        if self.decision_function_shape == "ovr":
            return np.asarray(_ovr_decision_function(values < 0, -values, len(self.classes_)))
        return values

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
        check_is_fitted(self)
        k = len(self.classes_)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        if self.break_ties and k > 2:
            return self.classes_[np.argmax(self.decision_function(X), axis=1)]
        values = self._pair_values(X)
        order = getattr(self, "_vote_order", None)
        if k == 2:
            second = values.ravel() >= 0 if order is None or order[0] == 0 else values.ravel() > 0
            return self.classes_[second.astype(np.intp)]
        from maxmargin._votes import reordered, winners  # compiled: not at import

        if order is None:
            return self.classes_[winners(np.ascontiguousarray(values), k)]
        return self.classes_[order[winners(reordered(values, order), k)]]


def _as_c_svc(problem: Dual, solution: Solution, lengths: Floats) -> tuple[Dual, Solution]:
    """The nearest points of two hulls as the C-SVC solution that they are a multiple of.

    Of all multiples that with the factor 2 / ||w||^2 has the least dual value, w between the points.
    """
    square = problem.square(solution.u, solution.gradient)
    if solution.status is Status.INFEASIBLE or not square > 0:
        return problem, replace(solution, gap=np.inf)  # no multiple of it says anything about the machine
    y = np.where(problem.group == 0, 1.0, -1.0)
    machine = dual.squared_c_svc(y, problem.ridge)
    u, g = 2.0 / square * y * solution.u, 2.0 / square * y * solution.gradient - y
    noise = 2.0 / square * solution.noise  # a gradient of the hulls is multiplied by the same factor
    # The coefficients are rounded once more, each by half an ulp; |k(x, z)| is at most the lengths' product.
    noise = noise + 2.0**-52 * lengths * float(np.abs(u) @ lengths)
    return machine, replace(
        solution,
        u=u,
        gradient=g,
        offset=machine.offset(u, g),
        gap=float(machine.gap(u, g, noise)),
        violation=machine.violation(u, g, noise),
        noise=noise,
        objective=machine.objective(u, g),
    )


def _hyperplane(problem: Dual, solution: Solution) -> tuple[Floats, float]:
    """Coefficients and intercept of the decision function from a solution."""
    u, offset = solution.u, solution.offset
    if problem.n_groups == 1:
        return u, -float(offset[0])
    # Two hulls: scaled so that the margin, half the sum of the multipliers, becomes 1.
    margin, shift = 0.5 * (offset[0] + offset[1]), 0.5 * (offset[0] - offset[1])
    if not margin > 0 or solution.status is Status.INFEASIBLE:
        margin = 1.0  # touching hulls: nothing to scale to, but the direction is kept
    signs = np.where(problem.group == 0, 1.0, -1.0)
    return signs * u / margin, -float(shift / margin)


class SVC(BaseSVC):
    r"""C-support vector classification; takes the place of `sklearn.svm.SVC`.

    Minimises :math:`\tfrac12\|w\|^2 + C\sum_i \xi_i` (hinge) or :math:`\tfrac12\|w\|^2 + C\sum_i
    \xi_i^2` (squared hinge) with :math:`y_i(\langle w, \phi(x_i)\rangle + b) \ge 1 - \xi_i`, for
    every pair of classes. The dual, the solver's guarantee and the gap are described in
    `maxmargin.dual`.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of the slacks; infinity trains a hard margin.
    kernel : {"linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed"} or callable
        Kernel; a callable gets two data sets and returns the matrix between them.
    degree : int, default=3
        Degree of the poly kernel.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient: 1 / (n_features X.var()), 1 / n_features, or a number.
    coef0 : float, default=0.0
        Constant of the poly and sigmoid kernels.
    shrinking : bool, default=True
        Accepted for compatibility; the solver decides by itself.
    probability : "deprecated" or False
        Probabilities come from `sklearn.calibration.CalibratedClassifierCV`.
    tol : float, default=1e-3
        Largest violation of the KKT conditions, as in LIBSVM.
    cache_size : float, default=200
        Budget of the kernel cache in MB; never exceeded.
    class_weight : dict or "balanced", default=None
        Factors of C per class.
    verbose : bool, default=False
        Show a live table of the solver's progress.
    max_iter : int, default=-1
        Budget of pair steps per machine; -1 stands for ``max(10**7, 100 n_samples)``.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Shape of the decision function for more than two classes.
    break_ties : bool, default=False
        Whether `predict` breaks ties by the values of the decision function.
    random_state : int, RandomState or None
        Accepted for compatibility; training is deterministic.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        Penalty of the slacks; the squared one as in `sklearn.svm.LinearSVC`.
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
        Pair steps of each machine.
    status_ : str
        "solved", or why the worst machine ended: "max_iter", "max_time", "stalled", "infeasible",
        "interrupted".
    fit_status_ : int
        0 if solved, 1 otherwise.
    dual_gap_ : ndarray of shape (n_pairs,)
        Certified bound of the distance to the optimal value of each machine.
    relative_gap_ : ndarray of shape (n_pairs,)
        The same as a fraction of the optimal value, (primal - dual) / max(|primal|, |dual|).
    n_kernel_evals_, n_kernel_calls_ : int
        Kernel values computed, and used.
    trace_ : list of tuple of Record
        The course of each machine.
    n_features_in_, feature_names_in_, shape_fit_
        As in scikit-learn.

    See Also
    --------
    NuSVC : The same machine with nu in place of C.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSVC._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
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
        if np.isinf(self.C):
            return dual.nearest_points(y)
        if self.loss == "hinge":
            problem = dual.c_svc(y, bounds=self.C * weight)
            if not solvers.get(self.solver).accepts(problem):
                raise ValueError(
                    f"The solver {self.solver!r} cannot train with loss='hinge': use "
                    f"loss='squared_hinge', or one of the solvers {', '.join(solvers.accepting(problem))}."
                )
            return problem
        ridge = 0.5 / (self.C * weight)
        problem = dual.squared_c_svc(y, ridge)
        if not solvers.get(self.solver).accepts(problem):
            return dual.nearest_points(y, ridge)  # the same machine, up to a factor
        return problem


class NuSVC(BaseSVC):
    r"""Nu-support vector classification; takes the place of `sklearn.svm.NuSVC`.

    The nearest points of two reduced convex hulls, in which no sample weighs more than
    :math:`2/(\nu n)`: nu bounds the share of margin errors from above and that of support vectors
    from below. As in scikit-learn, `class_weight` is accepted but has no effect.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1]; at most twice the share of the smaller class of each pair.
    kernel, degree, gamma, coef0, shrinking, probability, tol, cache_size, class_weight, verbose
        See `SVC`.
    max_iter, decision_function_shape, break_ties, random_state
        See `SVC`.
    solver, max_time, n_jobs, warm_start
        See `SVC`.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, classes_
        See `SVC`.
    class_weight_, n_iter_, status_, fit_status_, dual_gap_, relative_gap_, n_kernel_evals_, n_kernel_calls_
        See `SVC`.
    trace_, n_features_in_, feature_names_in_, shape_fit_
        See `SVC`.

    See Also
    --------
    SVC : The same machine with C in place of nu.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import NuSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = NuSVC(nu=0.1).fit(X, y)
    >>> round(clf.score(X, y), 2)
    0.99
    """

    _one_class_left = "specified nu is infeasible"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSVC._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def __init__(
        self,
        *,
        nu: float = 0.5,
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
        solver: Any = "auto",
        max_time: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
    ) -> None:
        self.nu = nu
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
        self.solver = solver
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.warm_start = warm_start

    def _sample_weight_of_class(self, label: Index) -> Floats:
        return np.ones(len(label))

    def _pair_problem(self, y: Floats, weight: Floats) -> Dual:
        return dual.reduced_hulls(y, mu=weight / (0.5 * self.nu * weight.sum()))

    def _check_classes(self, size: Floats) -> None:
        # Of all pairs the smallest and the largest class differ most.
        smallest, largest = float(size.min()), float(size.max())
        if 0.5 * self.nu * (smallest + largest) > smallest * (1 + 1e-12):
            raise ValueError(
                f"specified nu is infeasible: nu = {self.nu:g} exceeds "
                f"{2 * smallest / (smallest + largest):g}, the largest value for the smallest class."
            )
