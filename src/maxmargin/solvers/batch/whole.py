"""Small problems over one data set, each in one compiled call.

A class pair of a few thousand samples has few support vectors, and each of its pair steps takes less than a
microsecond: most of the time would go into everything around them. So one call does it all: second-order SMO,
the kernel rows that it needs, the gradient in float64, the check against exact kernel values and the
certificate. It does not hold the GIL, so problems run side by side.

A problem has one sum, or as the hulls of `NuSVC` one for each segment of its samples. Signs are left out
(`Dual.without_signs`), so that products with the kernel are the same for all.

Rows are kept class by class (`SharedRows`): the part of a row that belongs to its own class serves every
problem of that class. Rows of kernels that compiled code does not compute, and given ones, are a complete
table. A problem that is not solved so goes on in the loop of `Batch`, from where it is.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.limits import Stopped, call, current
from maxmargin._compiled.memory import aligned
from maxmargin._types import Floats, Index, Rows
from maxmargin.dual import Dual
from maxmargin.dual._certify import (
    GAP,
    MOST_GROUPS,
    NEAR_BOUND,
    NOISE,
    OBJECTIVE,
    OFFSET,
    RIGHT,
    VIOLATION,
    WORST,
    certify,
)
from maxmargin.dual._extremes import widest_of
from maxmargin.kernels.panels import width_of
from maxmargin.solvers import costs
from maxmargin.solvers.batch.shared_rows import SharedRows
from maxmargin.solvers.batch.whole_steps import (
    EVALS,
    ROUGH,
    STEPS,
    STOPPED,
    Accuracy,
    Loop,
    Whole,
    solve_whole,
    steps_on_all,
)
from maxmargin.solvers.precision import finer
from maxmargin.solvers.solution import Record, Solution, ended
from maxmargin.solvers.state import Stop


class Attempt(NamedTuple):
    """The end of an attempt to solve a problem in one call."""

    #: The point that was reached, from which the loop can go on.
    u: Floats
    #: None if the tolerance was not reached.
    solution: Solution | None = None


class WholeProblems:
    """Solves problems over the rows of one matrix, each in one compiled call."""

    def __init__(self, gram: Rows, rows: SharedRows, exact: tuple[Any, ...], stop: Stop) -> None:
        self.gram, self.rows, self.stop = gram, rows, stop
        self.patience = costs.WHOLE_PATIENCE
        self._exact = exact
        # Of an entry of the gradient, per unit of the sum of |u|: from rows, and from float64 values.
        self._error, self._rounding = gram.largest_bound(), gram.largest_bound(double=True)
        unit = float(np.abs(gram.diag).max(initial=0.0))
        self._unit = unit if 0.0 < unit < np.inf else 1.0
        self._own = threading.local()
        # Kernel values that no problem has counted yet.
        self._computed: list[int] = []

    @staticmethod
    def over(gram: Rows, bounds: Index, problems: Sequence[Dual], stop: Stop) -> WholeProblems | None:
        """For `problems` over the segments `bounds` of `gram`, whose cache lends its budget.

        None if this engine cannot take all of them.
        """
        if stop.criterion != "kkt" or stop.max_iter is not None or not all(map(_suits, problems)):
            return None
        exact = gram.exact_data
        if exact is None:
            return None
        data = gram.on_demand
        if data is None:
            return WholeProblems._over_table(gram, bounds, exact, problems, stop)
        if not data.definite and not all(problem.boxed for problem in problems):
            return None  # pair steps may lead to infinity
        rows = SharedRows.again(gram.borrower, bounds)
        if rows is None:
            rows = SharedRows.of(gram, data, bounds)
            if rows is None:
                return None
            gram.lend(rows)
        return WholeProblems(gram, rows, exact, stop)

    @staticmethod
    def _over_table(
        gram: Rows, bounds: Index, exact: tuple[Any, ...], problems: Sequence[Dual], stop: Stop
    ) -> WholeProblems | None:
        """The same for rows that are computed at once, as the loop would: its working set has all of them.

        Not without bounds: kernels may be indefinite, and pair steps would lead to infinity.
        """
        before = gram.n_evals
        largest = max(problem.m // (2 if problem.paired else 1) for problem in problems)
        small = largest <= costs.WHOLE_TABLE_MOST_ROWS and all(problem.boxed for problem in problems)
        rows = SharedRows.complete(gram, bounds) if small else None
        if rows is None:
            return None
        engine = WholeProblems(gram, rows, exact, stop)
        engine._computed.append(gram.n_evals - before)
        return engine

    @property
    def bytes_used(self) -> int:
        """Bytes of the budget in use, besides those of the table of the rows."""
        return min(int(self.rows.used[0]), len(self.rows.pool)) * self.gram.dtype.itemsize

    @property
    def takes_pairs(self) -> bool:
        """Whether the tolerance can be reached with the rows as they are, without refinement."""
        return self.gram.dtype == np.float64 or self.stop.tol >= costs.ROUGH

    def accuracy(self, tol: float) -> Accuracy:
        """The tolerance of pair steps and of the certificate, and what rounding may do to the gradient."""
        return Accuracy(tol, self._error, self._rounding, self._exact)

    def limits_of_steps(self) -> tuple[Any, Any]:
        """A gradient that nothing exceeds, and the least curvature, in the precision of the rows."""
        dtype = self.gram.dtype
        float32 = dtype == np.float32
        return dtype.type(1e30 if float32 else 1e300), dtype.type(self._unit * (1e-6 if float32 else 1e-12))

    def uncounted(self) -> int:
        """Kernel values that were computed for all problems; once."""
        try:
            return self._computed.pop()
        except IndexError:
            return 0

    def attempt(self, problem: Dual, samples: Index, touched: Index, warm: Floats | None) -> Attempt:
        """Solve `problem`, whose variables are the samples of the segments `touched`, in their order."""
        if problem.coupling.shape == (1, 1):
            return self._attempt(problem, samples, touched, warm)
        plain, signs = problem.without_signs, problem.signs
        assert plain is not None and signs is not None, "see `_suits`"
        u, solution = self._attempt(plain, samples, touched, None if warm is None else signs * warm)
        u = signs * u + 0.0  # no negative zeros
        if solution is not None:
            offset = np.sign(problem.coupling[0]) * solution.offset
            gradient = signs * solution.gradient
            solution = replace(solution, u=u, offset=offset, gradient=gradient)
        return Attempt(u, solution)

    def _attempt(self, problem: Dual, samples: Index, touched: Index, warm: Floats | None) -> Attempt:
        """The same for a problem without signs."""
        began = time.perf_counter()
        u = problem.start() if warm is None else problem.repair(warm)
        g = np.empty(problem.m)
        report = np.zeros(ROUGH + 1)
        float32 = self.gram.dtype == np.float32
        tol = max(self.stop.tol, costs.ROUGH) if float32 else self.stop.tol
        big, tau = self.limits_of_steps()
        loop = Loop(
            max_steps=max(costs.WHOLE_FEWEST_STEPS, self.patience * problem.m),
            big=big,
            tau=tau,
            buffers=self._buffers(problem.m, len(touched)),
            flag=current().flag,
        )
        ranges, sums = _groups(problem)
        whole = Whole(touched, samples, problem.p, problem.lo, problem.hi, problem.ridge, ranges, sums)
        accuracy = self.accuracy(tol / problem.scale)
        if tol > self.stop.tol:
            # A rougher solution need not hold in spite of rounding: refinement begins with exact gradients.
            accuracy = accuracy._replace(error=0.0)
        work = problem.m * (15.0 * loop.max_steps + problem.m * self.gram.cost)
        call(solve_whole, self.rows, whole, u, g, np.empty(0), accuracy, loop, report, work=work)
        report[EVALS] += self.uncounted()
        if report[ROUGH] or (report[RIGHT] and tol > self.stop.tol):
            rough = u.copy(), g.copy(), report.copy()
            try:
                self._refine(problem, whole, u, g, loop, report)
            except Stopped:
                report[STOPPED] = 1.0
            if report[STOPPED]:  # the gradient is that of the rougher solution
                u, g, report = rough
                report[STOPPED] = 1.0
        if report[STOPPED]:
            return Attempt(u, self._stopped(problem, u, g, report, began))
        if not report[RIGHT]:
            return Attempt(u if np.isfinite(u).all() else problem.start())
        if (report[NEAR_BOUND] or problem.paired) and not current().over:
            u = self._snap(problem, whole, u, g, report)
        if not math.isfinite(report[GAP]):
            report[GAP] = problem.gap(u, g, float(report[NOISE]))
        numbers, scale = report.tolist(), problem.scale
        last = _record(u, numbers, time.perf_counter() - began, scale)
        offset = report[OFFSET : OFFSET + problem.n_groups].copy()
        if problem.n_groups > 1:
            offset = offset[np.argsort(problem.group[ranges[:-1]])]
        return Attempt(
            u,
            Solution.in_one_call(u, g, offset, numbers[GAP], numbers[WORST] * scale, numbers[NOISE], last),
        )

    def _stopped(self, problem: Dual, u: Floats, g: Floats, report: Floats, began: float) -> Solution:
        """The point that was reached when the time was up."""
        report[VIOLATION] = problem.violation(u, g) / problem.scale
        report[OBJECTIVE] = problem.objective(u, g)
        last = _record(u, report.tolist(), time.perf_counter() - began, problem.scale)
        return Solution.of(
            problem,
            u,
            g,
            _noise(problem, u, self._error),
            ended(current()),
            engine="whole",
            n_iter=last.n_iter,
            n_kernel_calls=last.n_kernel_calls,
            n_kernel_evals=last.n_kernel_evals,
            seconds=last.seconds,
            trace=(last,),
        )

    def _snap(self, problem: Dual, whole: Whole, u: Floats, g: Floats, report: Floats) -> Floats:
        """The solution with variables on bounds from which rounding separates them; see `Dual.snap`."""
        snapped = problem.snap(u)
        if snapped is u:
            return u
        exact = self._gradient(problem, whole.samples, snapped)
        noise = _noise(problem, snapped, self._rounding)
        if not problem.violation(snapped, exact, noise) <= self.stop.tol:
            return u
        g[:] = exact
        _certify(whole, snapped, g, noise, report)
        return snapped

    def _gradient(self, problem: Dual, samples: Index, u: Floats) -> Floats:
        """The gradient from float64 kernel values."""
        support = np.flatnonzero(u)
        product = self.gram.exact(samples, samples[support], u[support])
        return np.asarray(problem.ridge * u - problem.p + product)

    def _refine(self, problem: Dual, whole: Whole, u: Floats, g: Floats, loop: Loop, report: Floats) -> None:
        """Pair steps from exact gradients until the tolerance holds, see `maxmargin.solvers.precision`."""
        tol = self.stop.tol / problem.scale
        report[RIGHT] = 0.0
        before = np.inf
        while True:
            g[:] = self._gradient(problem, whole.samples, u)
            report[EVALS] += problem.m * np.count_nonzero(u)
            violation = widest_of(u, g, problem.lo, problem.hi, whole.ranges)
            noise = _noise(problem, u, self._rounding)
            if violation <= tol - 2.0 * noise:
                _certify(whole, u, g, noise, report)
                return
            if not (violation <= 0.25 * before and violation < np.inf and noise <= 0.25 * tol):
                return
            before = violation
            target = 0.5 * finer(before, tol)
            steps, computed = steps_on_all(self.rows, whole, u, g, target, loop)
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


def _certify(whole: Whole, u: Floats, g: Floats, noise: float, report: Floats) -> None:
    box = whole.lo, whole.hi, whole.p, whole.ridge, whole.ranges, whole.sums
    certify(u, g, *box, noise, noise, report)


def _groups(problem: Dual) -> tuple[Index, Floats]:
    """The ranges of the groups, and their sums in the same order."""
    ranges = problem.ranges
    assert ranges is not None, "see `_suits`"
    return ranges, problem.sums if problem.n_groups == 1 else problem.sums[problem.group[ranges[:-1]]]


def _record(u: Floats, report: Sequence[float], seconds: float, scale: float) -> Record:
    """The end of a run, from the report of the compiled call, as numbers of Python."""
    steps = int(report[STEPS])
    return Record(
        n_iter=steps, seconds=seconds, violation=report[VIOLATION] * scale,
        objective=report[OBJECTIVE], n_support=int(np.count_nonzero(u)),
        n_kernel_evals=int(report[EVALS]), n_kernel_calls=3 * steps * len(u),
    )  # fmt: skip


def _noise(problem: Dual, u: Floats, error: float) -> float:
    """Bound the errors of the gradient; `error` is that of sums of kernel values (`Rows.largest_bound`)."""
    added = np.abs(problem.ridge * u) + np.abs(problem.p)
    return error * float(np.abs(u).sum()) + 2.0**-52 * float(added.max())


def _suits(problem: Dual) -> bool:
    if problem.shift or problem.self_scaled or problem.m > costs.WHOLE_MOST_VARIABLES:
        return False
    if problem.n_groups == 1:
        return problem.coupling.shape == (1, 1) and (problem.plain or problem.paired)
    plain = problem.without_signs if problem.n_groups <= MOST_GROUPS else None
    return plain is not None and plain.plain and plain.ranges is not None
