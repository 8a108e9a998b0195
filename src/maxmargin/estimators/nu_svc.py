"""Support vector classification with nu, a bound for the share of margin errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from maxmargin import dual
from maxmargin._sklearn import Interval
from maxmargin._types import Floats, Index, Mask
from maxmargin.dual import Dual
from maxmargin.estimators._rescaled import as_stored
from maxmargin.estimators.one_vs_one import BaseSVC, Reported
from maxmargin.estimators.search_axes import Axis
from maxmargin.solvers.solution import Solution, Status


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
    probA_, probB_, trace_, n_features_in_, feature_names_in_, shape_fit_
        See `SVC`.

    See Also
    --------
    SVC : The same classifier with C in place of nu.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import NuSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = NuSVC(nu=0.1).fit(X, y)
    >>> round(clf.score(X, y), 2)
    0.99
    """

    # Whether the reduced hulls of a pair of classes intersect to working precision.
    _touches: bool = False
    _deprecated_name = "NuSVC"
    _one_class_left = "specified nu is infeasible"
    _search_axes: ClassVar[tuple[Axis, ...]] = (Axis("nu", ascending=False),)
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

    def _fold_problem(self, problem: Dual, held: Mask) -> Dual:
        """Nu of the rows that are left, or the largest that is possible for them.

        LIBSVM would not notice that nu is too large for a fold, and its multipliers would not add up.
        """
        mu = np.where(held, 0.0, problem.hi)
        mu *= problem.hi.sum() / mu.sum()  # a sum of weights that is smaller
        mu /= min(1.0, np.bincount(problem.group, mu).min())
        return replace(problem, hi=mu, scale=1.0 / float(np.median(mu[~held])))

    def _as_reported(self, problem: Dual, solution: Solution, lengths: Floats) -> Reported:
        # The model stores u divided by the margin, rounded: with huge kernel values that matters.
        return problem, as_stored(problem, solution, lengths, self.tol)

    def _check_classes(self, size: Floats) -> None:
        # Of all pairs the smallest and the largest class differ most.
        smallest, largest = float(size.min()), float(size.max())
        if 0.5 * self.nu * (smallest + largest) > smallest * (1 + 1e-12):
            raise ValueError(
                f"specified nu is infeasible: nu = {self.nu:g} exceeds "
                f"{2 * smallest / (smallest + largest):g}, the largest value for the smallest class."
            )

    def _check_solutions(self, solved: list[Reported]) -> None:
        """Warn where w may be 0 within the gap: the sign of a decision value is then arbitrary."""
        within = [bool(p.square(s.u, s.gradient) <= 2.0 * s.gap) for p, s in solved]
        self._touches = any(within)
        # Of a problem that was not solved another warning says so.
        touching = sum(
            touches and s.status is Status.SOLVED for touches, (_, s) in zip(within, solved, strict=True)
        )
        if touching:
            which = "The reduced hulls of the two classes"
            if len(solved) > 1:
                which = f"The reduced hulls of {touching} of {len(solved)} pairs of classes"
            warnings.warn(
                f"{which} intersect to working precision: there may be no margin, and predictions are then "
                "arbitrary. A smaller tol decides it; if the warning stays, raise nu or use SVC.",
                ConvergenceWarning,
                stacklevel=5,  # past the wrappers of fit
            )
