"""Base of the estimators: their dual problems are solved over one Gram matrix."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Iterable
from contextlib import suppress
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from maxmargin._compiled.limits import Limit, Stopped
from maxmargin._sklearn import CallbackSupportMixin, Interval, StrOptions
from maxmargin._types import Floats, Index, Rows
from maxmargin.dual import Dual
from maxmargin.estimators._observers import Observers
from maxmargin.estimators._outcome import ADVICE
from maxmargin.estimators._plan import Plan
from maxmargin.estimators._predictor import KernelPredictor
from maxmargin.estimators._warm_start import Start, WarmStart
from maxmargin.estimators.model import KernelModel
from maxmargin.estimators.search_axes import Axis, kernel_of
from maxmargin.kernels.kernel import NAMES, Kernel
from maxmargin.solvers.base import Solver
from maxmargin.solvers.interrupt import watch_interrupt
from maxmargin.solvers.many import Subproblems
from maxmargin.solvers.solution import Solution, Status, not_begun
from maxmargin.solvers.solutions import Solutions


class BaseSVM(CallbackSupportMixin, KernelPredictor, metaclass=ABCMeta):
    """Base of the support vector machines: training."""

    _advice: ClassVar[dict[Status, str]] = ADVICE
    # What its problems are, if there are several, in warnings.
    _problems_are: ClassVar[str] = "class pairs"
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

    # -- training ----------------------------------------------------------------------------

    def _kernel_for(self, X: Any, kept: Index) -> Kernel:
        """The kernel with its numbers; gamma is estimated from the rows `kept`, which have a weight."""
        # For `_model_of`, after the solver has run. It stays: threads may fit the same estimator.
        self._kernel = kernel_of(self, X, kept)
        return self._kernel

    def _solve(
        self,
        X: Any,
        kernel: Kernel,
        order: Index,
        problems: Subproblems,
        limit: Limit,
        *,
        double: bool = False,
        after: Callable[[Plan, Rows, Solutions, Limit], None] | None = None,
    ) -> tuple[Solutions, Floats]:
        """Solve the problems over one Gram matrix of the rows `order` of X.

        `after` may solve further ones over the same matrix, within the same limit. Returns the solutions,
        without those of problems that were not begun when the time was up, and the lengths of the samples in
        feature space.
        """
        plan = Plan.of(self, problems, double=double)
        found = Solutions({})
        lengths = np.zeros(len(order))
        with watch_interrupt(limit), limit, suppress(Stopped):  # before there was a Gram matrix
            gram = plan.gram(X, kernel, order, problems)
            lengths = np.sqrt(np.abs(gram.diag))
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
            if after is not None:
                after(plan, gram, found, limit)
        return found, lengths

    def _solve_one(
        self, X: Any, order: Index, problem: Dual, warm: Floats | None, limit: Limit
    ) -> tuple[Solution, Floats]:
        """`_solve` for an estimator with a single problem; returns its solution, and the lengths."""
        solutions, lengths = self._solve_whole(X, order, Subproblems.one(problem, len(order), warm), limit)
        return solutions[0], lengths

    def _solve_whole(
        self, X: Any, order: Index, problems: Subproblems, limit: Limit
    ) -> tuple[list[Solution], Floats]:
        """`_solve` for problems over all rows `order`; the solutions of those not begun say so."""
        kernel = self._kernel_for(X, np.sort(order))
        found, lengths = self._solve(X, kernel, order, problems, limit)
        solutions = []
        for k in range(len(problems)):
            solution = found.get(k)
            if solution is None:
                problem: Dual = problems[k].problem
                u = problem.start()
                solution = not_begun(u, problem.ridge * u - problem.p, limit, problem.n_groups)
            solutions.append(solution)
        return solutions, lengths

    def _start(self, name: str, rows: Index, *width: int, box: float = np.inf) -> Floats | None:
        """The last solution of a problem for the samples `rows`, where `warm_start` asks for it and it fits.

        `width` is the number of variables of a sample, if it is not one; `box` that of the problem.
        """
        kept: WarmStart | None = getattr(self, "_solutions", None) if self.warm_start else None
        found = None if kept is None else kept.find(name, self.shape_fit_, rows, width, box)
        return None if found is None else found.ravel()

    def _keep_starts(self, starts: Iterable[tuple[str, Start]]) -> None:
        """Keep solutions, by name, for the next fit, where `warm_start` asks for it."""
        self._solutions = WarmStart(self.shape_fit_, dict(starts)) if self.warm_start else None

    def _model_of(
        self, X: Any, support: Index, *, n_support: Any, coef: Floats, intercept: Floats
    ) -> KernelModel:
        """The model of the kernel that was trained with."""
        return KernelModel.from_training(
            self._kernel,
            X,
            support,
            n_support=n_support,
            coef=coef,
            intercept=intercept,
            shape=self.shape_fit_,
        )
