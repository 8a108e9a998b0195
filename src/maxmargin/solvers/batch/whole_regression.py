r"""Epsilon-SVRs of moderate size, each in one compiled call, on their whole kernel matrix.

In :math:`\beta = \alpha - \alpha^*` the dual has n variables in place of 2n, and a kink at zero:
:math:`\tfrac12\beta^\top K\beta - y^\top\beta + \varepsilon\sum_i|\beta_i|`, :math:`|\beta_i| \le C_i`. What
solves it is the engine of C paths (`maxmargin.solvers.c_path`): pair steps, and Newton steps from
early on, which take the place of the many pair steps that large C asks for. A small problem that takes few
pair steps is left to `maxmargin.solvers.batch.whole`, unless several problems share the matrix. A problem
that is not solved so goes on in the loop of `Batch`, from where it is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import numpy as np

from maxmargin._types import Floats, Index, Rows
from maxmargin.dual import Dual
from maxmargin.solvers import costs
from maxmargin.solvers.batch.whole import Attempt, WholeProblems
from maxmargin.solvers.precision import measured
from maxmargin.solvers.solution import Record, Solution, Status
from maxmargin.solvers.state import Stop


class WholeRegression:
    """Solves problems over rows that hold their whole matrix."""

    bytes_used = 0  # beyond the budget of the rows' own cache

    def __init__(self, gram: Rows, stop: Stop, first: WholeProblems | None, evals: int) -> None:
        self.gram, self.stop, self._first = gram, stop, first
        self._evals = evals  # kernel values that had been computed before
        self._lock = threading.Lock()

    @staticmethod
    def over(
        gram: Rows, bounds: Index, problems: Sequence[Dual], stop: Stop, *, several: bool = False
    ) -> WholeRegression | None:
        """For one problem over all rows of `gram`, or several like it; None if this engine cannot take it."""
        problem = problems[0]
        tube = len(problems) == 1 and problem.tube and problem.paired and problem.boxed
        if not tube or stop.criterion != "kkt" or stop.max_iter is not None:
            return None
        n = gram.n
        small = (
            2 <= n <= costs.REGRESSION_MOST_ROWS
            and problem.m == 2 * n
            and n * n * gram.cost <= costs.REGRESSION_MOST_WORK
        )
        if not small or not gram.in_place:
            return None
        evals = gram.n_evals
        few = n <= costs.REGRESSION_FEW_ROWS and not several
        first = WholeProblems.over(gram, bounds, problems, stop) if few else None
        if first is not None:
            first.patience = costs.REGRESSION_FEW_STEPS
        return WholeRegression(gram, stop, first, evals)

    def attempt(self, problem: Dual, samples: Index, touched: Index, warm: Floats | None) -> Attempt:
        """Solve `problem` over all rows."""
        from maxmargin.solvers.c_path.path import solve_regression  # compiled: not at import

        began = time.perf_counter()
        gram, n = self.gram, self.gram.n
        if self._first is not None:
            first = self._first.attempt(problem, samples, touched, warm)
            if first.solution is not None:
                return first
            warm, self._first = first.u, None
            gram.reopen()
        with self._lock:  # or problems that are solved side by side would each compute it
            gram.ensure(gram.columns)
        epsilon = 0.5 * float(problem.p[n] - problem.p[0])
        y = 0.5 * (problem.p[:n] + problem.p[n:])
        start = np.zeros(n)
        if warm is not None:
            u = problem.repair(warm)
            start = u[:n] + u[n:]
        tol = self.stop.tol
        # Half of what is allowed: the rest is for rounding.
        beta, g, steps = solve_regression(
            gram.table,
            y,
            start,
            problem.lo[n:],
            problem.hi[:n],
            epsilon,
            0.5 * tol,
            costs.REGRESSION_PATIENCE * n,
        )
        if not np.isfinite(beta).all():
            return Attempt(problem.start())
        found = np.concatenate([np.maximum(beta, 0.0), np.minimum(beta, 0.0)])
        u = problem.snap(problem.repair(found))
        if not problem.feasible(found):
            return Attempt(u)
        gradient = np.concatenate([g + epsilon, g - epsilon])
        moved = np.flatnonzero(u != found)
        problem.update(gradient, moved, (u - found)[moved], gram)
        check = measured(problem, u, gradient, gram, 0.25 * tol, 0.1 * gram.n_evals)
        gradient = gradient if check.exact is None else check.exact
        violation = problem.violation(u, gradient, check.noise)
        if not violation <= tol:
            return Attempt(u)
        last = Record(
            n_iter=steps,
            seconds=time.perf_counter() - began,
            violation=violation,
            objective=problem.objective(u, gradient),
            n_support=int(np.count_nonzero(u)),
            n_kernel_evals=self._uncounted(),
            n_kernel_calls=3 * steps * n,
        )
        solution = Solution.of(
            problem,
            u,
            gradient,
            check.noise,
            Status.SOLVED,
            engine="path",
            n_iter=steps,
            n_kernel_calls=last.n_kernel_calls,
            n_kernel_evals=last.n_kernel_evals,
            seconds=last.seconds,
            trace=(last,),
        )
        return Attempt(u, solution)

    def _uncounted(self) -> int:
        """Kernel values that were computed and that no problem has counted yet."""
        with self._lock:
            before, self._evals = self._evals, self.gram.n_evals
            return int(self._evals - before)
