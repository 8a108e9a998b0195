"""What the estimators share: validation, the Gram matrix, running machines, decision values."""

from __future__ import annotations

import warnings
from abc import ABCMeta
from collections.abc import Sequence
from contextlib import suppress
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from maxmargin import solvers
from maxmargin._compiled.limits import Limit, Stopped
from maxmargin._compiled.threads import Threads, effective_n_jobs
from maxmargin._sklearn import CallbackSupportMixin, Interval, StrOptions, num_samples
from maxmargin._types import Floats, Index
from maxmargin.dual import Dual
from maxmargin.estimators._observers import Observers
from maxmargin.estimators._plan import Plan
from maxmargin.estimators._scales import UnscaledDataWarning, disparity
from maxmargin.estimators._weights import checked_weights
from maxmargin.estimators.search_axes import Axis
from maxmargin.kernels._columns import product
from maxmargin.kernels.expansion import expand, linear
from maxmargin.kernels.gamma import resolve_gamma
from maxmargin.kernels.kernel import NAMES, Kernel
from maxmargin.kernels.points import Points
from maxmargin.solvers.base import Solver
from maxmargin.solvers.interrupt import watch_interrupt
from maxmargin.solvers.many import Subproblems
from maxmargin.solvers.solution import Solution, Status, not_begun

# Sum of coefficients up to which float32 kernel values predict to four digits.
_LARGEST_SUM = 1000.0

_UNSCALED = (
    "Some features vary more than a thousand times as much as others, which the machine will hardly see and "
    "which makes training slow: scale them, for example with make_pipeline(StandardScaler(), ...)."
)
_ADVICE = {
    Status.MAX_ITER: "the budget of iterations (max_iter) was used up; scale the features (for "
    "example with StandardScaler), lower C or raise max_iter",
    Status.MAX_TIME: "the time budget (max_time) was used up; raise it, loosen tol or lower C",
    Status.STALLED: "no step improves the solution any more at this tolerance; scale the features, "
    "loosen tol, or check that the kernel is positive definite",
    Status.INFEASIBLE: "the classes cannot be separated under this kernel, so there is no hard "
    "margin; use a finite C",
    Status.INTERRUPTED: "it was interrupted; the best solution so far is kept (press again within three "
    "seconds to stop what follows too)",
}


class BaseSVM(CallbackSupportMixin, BaseEstimator, metaclass=ABCMeta):
    """Base of the support vector machines."""

    _advice: ClassVar[dict[Status, str]] = _ADVICE
    # Along which parameters a search trains: along the second the nodes without a neighbour along the first.
    # The first nodes along these start from each other along the spine, where there is one.
    _search_axes: ClassVar[tuple[Axis, ...]] = ()
    _search_spine: ClassVar[Axis | None] = None
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions(set(NAMES)), callable],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "shrinking": ["boolean"],
        "cache_size": [Interval(Real, 0, None, closed="neither")],
        "verbose": ["verbose"],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "solver": [str, Solver],
        "max_time": [Interval(Real, 0, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "warm_start": ["boolean"],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        return {**state, "_prepared": {}} if "_prepared" in state else state

    # -- input -------------------------------------------------------------------------------

    def _validate(self, X: Any, y: Any = None) -> tuple[Any, Any]:
        """Check the training data; remember what `predict` has to know of it."""
        if sp.issparse(X) and self.kernel == "precomputed":
            raise TypeError("Sparse precomputed kernels are not supported: pass a dense matrix.")
        solvers.get(self.solver)  # an unknown name fails before any work is done
        effective_n_jobs(self.n_jobs)
        self._sparse = sp.issparse(X) and not callable(self.kernel)
        if callable(self.kernel):
            check_consistent_length(X, y)
        elif y is None:
            X = validate_data(self, X, **self._checks())
        else:
            X, y = validate_data(self, X, y, **self._checks())
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} matrix."
            )
        if self.kernel != "precomputed" and not callable(self.kernel) and disparity(X) is not None:
            warnings.warn(_UNSCALED, UnscaledDataWarning, stacklevel=5)
        self._prepared: dict[str, Any] = {}
        self.shape_fit_ = X.shape if hasattr(X, "shape") else (num_samples(X),)
        return X, y

    @staticmethod
    def _checks() -> dict[str, Any]:
        return {
            "dtype": [np.float64, np.float32],
            "order": "C",
            "accept_sparse": "csr",
            "accept_large_sparse": True,
        }

    def _weights(self, X: Any, sample_weight: Any) -> Floats:
        if callable(self.kernel):
            X = np.empty((num_samples(X), 0))
        weight = checked_weights(sample_weight, X)
        if not (weight > 0).any():
            raise ValueError("Invalid input - all samples have zero or negative weights.")
        return weight

    def _kernel_for(self, X: Any, kept: Index) -> Kernel:
        """The kernel with its numbers; what is estimated from X is so from the rows that count."""
        plain = callable(self.kernel) or self.kernel == "precomputed"
        if self.gamma == "scale" and not plain and len(kept) < X.shape[0]:
            X = X[kept]
        self._gamma = 0.0 if plain else resolve_gamma(self.gamma, X)
        return Kernel(self.kernel, gamma=self._gamma, degree=self.degree, coef0=self.coef0)

    # -- training ----------------------------------------------------------------------------

    def _solve(
        self,
        X: Any,
        kernel: Kernel,
        order: Index,
        problems: Subproblems,
        limit: Limit,
        *,
        double: bool = False,
    ) -> list[Solution]:
        """Solve the problems over one Gram matrix of the rows `order` of X.

        The solution of a problem that was not begun when the time was up has no variables.
        """
        plan = Plan.of(self, problems, double=double)
        found: dict[int, Solution] = {}
        with watch_interrupt(limit), limit, suppress(Stopped):  # before there was a Gram matrix
            gram = plan.gram(X, kernel, order, problems)
            with Observers(self, len(problems)) as observers:
                found = plan.solver.solve_many(
                    problems,
                    gram,
                    stop=plan.stop,
                    interrupt=limit,
                    observe=observers.callback if observers.active else None,
                    n_jobs=plan.n_jobs,
                )
                observers.end(problems, found)
        nothing = not_begun(np.zeros(0), np.zeros(0), limit)
        return [found.get(k, nothing) for k in range(len(problems))]

    def _solve_one(self, X: Any, order: Index, problem: Dual, warm: Floats | None, limit: Limit) -> Solution:
        """The solution of the only problem of an estimator, over the rows `order` of X."""
        kernel = self._kernel_for(X, np.sort(order))
        problems = Subproblems.one(problem, len(order), warm)
        solution = self._solve(X, kernel, order, problems, limit)[0]
        if not len(solution.u):
            u = problem.start()
            solution = not_begun(u, problem.ridge * u - problem.p, limit, problem.n_groups)
        return solution

    def _report(self, solutions: Sequence[Solution]) -> None:
        """Fitted attributes that tell how training went, and a warning where it fell short."""
        statuses = [s.status for s in solutions]
        worst = next((s for s in _WORST_FIRST if s in statuses), Status.SOLVED)
        self.status_ = str(worst)
        self.fit_status_ = int(worst is not Status.SOLVED)
        self.n_kernel_evals_ = sum(s.n_kernel_evals for s in solutions)
        self.n_kernel_calls_ = sum(s.n_kernel_calls for s in solutions)
        if worst is not Status.SOLVED:
            short = sum(s is not Status.SOLVED for s in statuses)
            which = f"{short} of {len(statuses)} machines" if len(statuses) > 1 else "The solver"
            violation = max(s.violation for s in solutions)
            warnings.warn(
                f"{which} ended with status {str(worst)!r} (violation {violation:.2g}, tol "
                f"{self.tol:g}): {self._advice[worst]}.",
                ConvergenceWarning,
                stacklevel=5,  # past the wrappers of fit
            )

    def _start_from(self, order: Index, *width: int) -> Floats | None:
        """The last solution of a single machine, for the rows `order`, where `warm_start` asks for it.

        `width` is the number of variables of a row, where there is not just one.
        """
        kept = getattr(self, "_solved", None) if self.warm_start else None
        if kept is None or kept[0] != self.shape_fit_ or kept[2].shape[1:] != width:
            return None
        full = np.zeros((self.shape_fit_[0], *width))
        full[kept[1]] = kept[2]
        return full[order].ravel()

    @property
    def n_support_(self) -> NDArray[np.int32]:
        """Number of support vectors, of each class where there are classes."""
        check_is_fitted(self)
        return self._n_support

    # -- decision values ---------------------------------------------------------------------

    def _check_for_predict(self, X: Any) -> Any:
        check_is_fitted(self)
        if not callable(self.kernel):
            X = validate_data(self, X, reset=False, **self._checks())
            if sp.issparse(X) and not self._sparse:
                raise ValueError(f"cannot use sparse input in {type(self).__name__!r} trained on dense data")
            if self._sparse and not sp.issparse(X):
                X = sp.csr_array(X)
        if self.kernel == "precomputed" and X.shape[1] != self.shape_fit_[0]:
            raise ValueError(
                f"X.shape[1] = {X.shape[1]} should be equal to {self.shape_fit_[0]}, "
                "the number of samples at training time"
            )
        if self.n_support_.sum() != len(self.support_):
            raise ValueError(f"The internal representation of {type(self).__name__} was altered")
        return X

    def _expand(self, X: Any, coef: Floats, n_support: Any) -> Floats:
        """Kernel expansions per class of support vectors, see `maxmargin.kernels.expansion.expand`."""
        X = self._check_for_predict(X)
        kernel = Kernel(self.kernel, gamma=self._gamma, degree=self.degree, coef0=self.coef0)
        if self.kernel == "precomputed":
            X = X[:, self.support_]
            vectors = Points(np.empty((0, 0), X.dtype), len(self.support_))
        else:
            vectors = self._vectors(kernel, X, coef)
        offsets = np.concatenate([[0], np.cumsum(n_support)])
        return expand(kernel, X, vectors, coef, offsets, threads=Threads(self.n_jobs))

    def _vectors(self, kernel: Kernel, X: Any, coef: Floats) -> Points:
        """Support vectors made ready for the kernel; kept, so that small predictions are quick."""
        if callable(self.kernel):
            return kernel.prepare(self._fit_support)
        source, dtype = self.support_vectors_, X.dtype
        if dtype == np.float32 and np.abs(coef).sum(axis=1).max(initial=0.0) > _LARGEST_SUM:
            dtype = np.dtype(np.float64)
        kept = self._prepared.get("vectors")
        if kept is None or kept[0] is not source or kept[1] != (kernel, dtype):
            points = kernel.prepare(source, dtype)
            if dtype == np.float32 and not kernel.float32_suffices(points):
                points = kernel.prepare(source, np.float64)
            kept = (source, (kernel, dtype), kernel.lay_out(points))
            self._prepared["vectors"] = kept
        return kept[2]

    def _keep_support(self, X: Any, support: Index) -> None:
        """`support_`, `support_vectors_` as scikit-learn has them."""
        from maxmargin._sklearn import safe_indexing

        self.support_ = support.astype(np.int32)
        if self.kernel == "precomputed" or callable(self.kernel):
            self.support_vectors_ = np.empty((0, 0))
            if callable(self.kernel):
                self._fit_support = safe_indexing(X, support)
        else:
            self.support_vectors_ = _align(X[support])

    @property
    def coef_(self) -> Any:
        """Weights of the features, for the linear kernel only."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        coef = self._linear_coef()
        (coef.data if sp.issparse(coef) else coef).flags.writeable = False
        return coef

    def _linear_coef(self) -> Any:
        return self._combine(self.dual_coef_)

    def _combine(self, coef: Any) -> Any:
        """``coef @ support_vectors_``, sparse where these are."""
        vectors = self.support_vectors_
        return _align(product(coef, vectors)) if self._sparse else np.asarray(coef @ vectors)

    def _linear_values(self, X: Any, coef: Any, intercept: Floats) -> Floats:
        return linear(self._check_for_predict(X), coef, intercept)


_WORST_FIRST = (
    Status.INTERRUPTED,
    Status.INFEASIBLE,
    Status.MAX_TIME,
    Status.MAX_ITER,
    Status.STALLED,
)


def box(problem: Dual) -> float:
    """The largest width of the box, by which a start is known to be of another C."""
    return float(np.max(problem.hi - problem.lo, initial=0.0))


def rescaled(start: Floats, u: Floats, before: float, now: float) -> Floats:
    """The values `start` of a solution u, for a machine with another box.

    Most multipliers sit at their bound and move with it, if they do at all.
    """
    bounded = np.count_nonzero(np.abs(u) >= before) > 0.5 * np.count_nonzero(u)
    if np.isfinite(before) and np.isfinite(now) and (bounded or now < before):
        return start * (now / before)
    return start


def check_finite(coef: Floats, intercept: Floats) -> None:
    """Refuse a machine that overflowed."""
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError(
            "The dual coefficients or intercepts are not finite. The input data may contain "
            "large values and need to be preprocessed."
        )


def _align(matrix: Any) -> Any:
    """A sparse result in the interface (matrix or array) that scikit-learn is configured for."""
    if not sp.issparse(matrix):
        return matrix
    from sklearn import get_config

    arrays = get_config().get("sparse_interface", "spmatrix") == "sparray"
    return sp.csr_array(matrix) if arrays else sp.csr_matrix(matrix)
