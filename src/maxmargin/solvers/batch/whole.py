"""Small problems over one data set, each in one compiled call.

A class pair of a few thousand samples has few support vectors, and each of its pair steps takes less than a
microsecond: most of the time would go into everything around them. So one call does it all: second-order SMO,
the kernel rows that it needs, the gradient in float64, the check against exact kernel values and the
certificate. It does not hold the GIL, so problems run side by side.

Rows are kept class by class (`SharedRows`): the part of a row that belongs to its own class serves every
problem of that class. A problem that is not solved so goes on in the loop of `Batch`, from where it is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.limits import Stopped, call, current
from maxmargin._compiled.memory import aligned
from maxmargin._types import Floats, Index
from maxmargin.dual import Dual
from maxmargin.dual._certify import GAP, NEAR_BOUND, NOISE, OBJECTIVE, OFFSET, RIGHT, VIOLATION, certify
from maxmargin.dual._extremes import extremes_of
from maxmargin.gram.gram import Gram
from maxmargin.gram.on_demand import ExactSamples
from maxmargin.kernels.panels import width_of
from maxmargin.kernels.rounding import Rounding, sum_of
from maxmargin.solvers import costs
from maxmargin.solvers.batch.shared_rows import SharedRows
from maxmargin.solvers.batch.whole_steps import EVALS, STEPS, STOPPED, solve_whole, steps_on_all
from maxmargin.solvers.solution import Record, Solution, Status, ended
from maxmargin.solvers.state import Stop


class Attempt(NamedTuple):
    """The end of an attempt to solve a problem in one call."""

    #: The point that was reached, from which the loop can go on.
    u: Floats
    #: None if the tolerance was not reached.
    solution: Solution | None = None


class WholeProblems:
    """Solves problems over the rows of one Gram, each in one compiled call."""

    def __init__(self, gram: Gram, rows: SharedRows, stop: Stop) -> None:
        self.gram, self.rows, self.stop = gram, rows, stop
        self.patience = costs.WHOLE_PATIENCE
        self._exact = ExactSamples.of(gram)
        self._error = _entry_error(gram.rounding, gram.n)
        self._rounding = _entry_error(gram.double_rounding, gram.n)
        self._own = threading.local()

    @staticmethod
    def over(gram: Gram, bounds: Index, problems: Sequence[Dual], stop: Stop) -> WholeProblems | None:
        """For `problems` over the segments `bounds` of `gram`, whose cache lends its budget.

        None if this engine cannot take all of them.
        """
        if stop.criterion != "kkt" or stop.max_iter is not None or not all(map(_suits, problems)):
            return None
        rows = SharedRows.of(gram, bounds)
        if rows is None:
            return None
        gram.lend()
        return WholeProblems(gram, rows, stop)

    @property
    def bytes_used(self) -> int:
        """Of the budget."""
        return min(int(self.rows.used[0]), len(self.rows.pool)) * self.gram.dtype.itemsize

    def attempt(self, problem: Dual, samples: Index, touched: Index, warm: Floats | None) -> Attempt:
        """Solve `problem`, whose variables are the samples of the segments `touched`, in their order."""
        began = time.perf_counter()
        u = problem.start() if warm is None else problem.repair(warm)
        g = np.empty(problem.m)
        report = np.zeros(10)
        dtype = self.gram.dtype
        float32 = dtype == np.float32
        tol = max(self.stop.tol, costs.ROUGH) if float32 else self.stop.tol
        steps_for = (
            max(1000, self.patience * problem.m), dtype.type(1e30 if float32 else 1e300),
            dtype.type(1e-6 if float32 else 1e-12), self._buffers(problem.m, len(touched)), current().flag,
        )  # fmt: skip
        call(
            solve_whole, self.rows, touched, samples, u, g, problem.p, problem.lo, problem.hi, problem.ridge,
            problem.sums[0], tol / problem.scale, self._error, self._rounding, self._exact, *steps_for,
            report,
            work=problem.m * (15.0 * steps_for[0] + problem.m * self.gram.cost),
        )  # fmt: skip
        if report[RIGHT] and tol > self.stop.tol:
            rough = u.copy(), g.copy(), report.copy()
            try:
                self._refine(problem, samples, touched, u, g, steps_for, report)
            except Stopped:
                report[STOPPED] = 1.0
            if report[STOPPED]:  # the gradient is that of the rougher solution
                u, g, report = rough
                report[STOPPED] = 1.0
        if report[STOPPED]:
            return Attempt(u, self._stopped(problem, u, g, report, began))
        if not report[RIGHT]:
            return Attempt(u)
        if report[NEAR_BOUND] and not current().over:
            u = self._snap(problem, samples, u, g, report)
        record = self._record(problem, u, report, began)
        return Attempt(u, self._solved(problem, u, g, report, record))

    @staticmethod
    def _record(problem: Dual, u: Floats, report: Floats, began: float) -> Record:
        steps = int(report[STEPS])
        return Record(
            n_iter=steps, seconds=time.perf_counter() - began,
            violation=float(report[VIOLATION]) * problem.scale, objective=float(report[OBJECTIVE]),
            n_support=int(np.count_nonzero(u)), n_kernel_evals=int(report[EVALS]),
            n_kernel_calls=3 * steps * problem.m,
        )  # fmt: skip

    @staticmethod
    def _solved(problem: Dual, u: Floats, g: Floats, report: Floats, last: Record) -> Solution:
        """The solution with the certificate that the compiled call has computed."""
        noise = float(report[NOISE])
        return Solution(
            u=u,
            offset=report[OFFSET : OFFSET + 1].copy(),
            status=Status.SOLVED,
            gap=float(report[GAP]),
            violation=last.violation + 2 * noise * problem.scale,
            objective=last.objective,
            noise=noise,
            n_iter=last.n_iter,
            n_kernel_calls=last.n_kernel_calls,
            n_kernel_evals=last.n_kernel_evals,
            seconds=last.seconds,
            trace=(last,),
            gradient=g,
            engine="whole",
        )

    def _stopped(self, problem: Dual, u: Floats, g: Floats, report: Floats, began: float) -> Solution:
        """The point that was reached when the time was up."""
        report[VIOLATION] = problem.violation(u, g) / problem.scale
        report[OBJECTIVE] = problem.objective(u, g)
        last = self._record(problem, u, report, began)
        return Solution.of(
            problem,
            u,
            g,
            self._error * float(np.abs(u).sum()),
            ended(current()),
            engine="whole",
            n_iter=last.n_iter,
            n_kernel_calls=last.n_kernel_calls,
            n_kernel_evals=last.n_kernel_evals,
            seconds=last.seconds,
            trace=(last,),
        )

    def _snap(self, problem: Dual, samples: Index, u: Floats, g: Floats, report: Floats) -> Floats:
        """The solution with variables on bounds from which rounding separates them; see `Dual.snap`."""
        snapped = problem.snap(u)
        exact = self._gradient(problem, samples, snapped)
        noise = float(self._rounding * np.abs(snapped).sum())
        if not problem.violation(snapped, exact, noise) <= self.stop.tol:
            return u
        g[:] = exact
        certify(snapped, g, problem.lo, problem.hi, problem.p, problem.ridge, problem.sums[0], noise, report)
        return snapped

    def _gradient(self, problem: Dual, samples: Index, u: Floats) -> Floats:
        """The gradient from float64 kernel values."""
        support = np.flatnonzero(u)
        product = self.gram.exact(samples, samples[support], u[support])
        return np.asarray(problem.ridge * u - problem.p + product)

    def _refine(
        self,
        problem: Dual,
        samples: Index,
        touched: Index,
        u: Floats,
        g: Floats,
        steps_for: tuple[Any, ...],
        report: Floats,
    ) -> None:
        """Pair steps from exact gradients until the tolerance holds, see `maxmargin.solvers.precision`."""
        tol = self.stop.tol / problem.scale
        report[RIGHT] = 0.0
        before = np.inf
        while True:
            g[:] = self._gradient(problem, samples, u)
            report[EVALS] += problem.m * np.count_nonzero(u)
            low, high = extremes_of(u, g, problem.lo, problem.hi)
            noise = float(self._rounding * np.abs(u).sum())
            if high - low <= tol - 2.0 * noise:
                certify(
                    u, g, problem.lo, problem.hi, problem.p, problem.ridge, problem.sums[0], noise, report
                )
                return
            if high - low > 0.25 * before or noise > 0.25 * tol:
                return
            before = high - low
            target = 0.5 * max(tol, costs.FINER * before)
            steps, computed = steps_on_all(
                self.rows, touched, samples, u, g, problem.lo, problem.hi, problem.ridge, target, *steps_for
            )
            report[STEPS] += steps
            report[EVALS] += computed
            if current().over:
                report[STOPPED] = 1.0
                return

    def _buffers(self, m: int, parts: int) -> NDArray[Any]:
        """Three vectors for one call at a time in each thread."""
        size = m + parts * width_of(self.gram.dtype)
        kept = getattr(self._own, "buffers", None)
        if kept is None or kept.shape[1] < size:
            kept = self._own.buffers = aligned((3, 2 * size), self.gram.dtype)
        return kept


def _entry_error(rounding: Rounding, n: int) -> float:
    """The largest error of a gradient entry, per unit of the coefficients' sum."""
    return rounding.of_value() + 2.0**-53 * sum_of(n)


def _suits(problem: Dual) -> bool:
    simple = problem.n_groups == 1 and problem.coupling.shape == (1, 1) and not problem.shift
    return (
        simple
        and not problem.self_scaled
        and problem.m <= costs.WHOLE_MOST_VARIABLES
        and (problem.plain or problem.twins)
    )
