"""Held-out decision values of all rows, for probabilities: five folds of each pair of classes.

LIBSVM trains folds from zero. Here a fold is the pair's own dual problem with the bounds of held-out rows set
to zero. It starts from the solution of all rows, over the same kernel rows, and its gradient K u - p contains
the decision values of the rows that are held out.
"""

from __future__ import annotations

from dataclasses import replace
from math import fsum
from typing import Any

import numpy as np

from maxmargin._compiled.limits import Limit
from maxmargin._types import Floats, Index, Mask, Rows
from maxmargin.dual import Dual
from maxmargin.dual.penalised import of_samples, with_bias
from maxmargin.estimators._plan import Plan
from maxmargin.estimators.calibration import SigmoidCalibrator
from maxmargin.solvers import costs
from maxmargin.solvers.many import ClassPairs, Subproblem, Subproblems, solve_each
from maxmargin.solvers.solution import Solution, Status
from maxmargin.solvers.solutions import Solutions
from maxmargin.solvers.state import Stop

N_FOLDS = 5
# The least tolerance of a fold, whose values are used for two numbers per pair only. Probabilities differ by
# at most 5e-4 from those with 1e-5 (seven sets, C=1). Pair steps with 1e-3: german 2,443 in place of 1,600.
LEAST_TOL = 1e-2


def folds_of(segments: Index, random_state: Any = None) -> Index:
    """The fold of each sample, class by class: as many of each class in every fold as possible.

    `random_state` chooses the permutation; without one it is always the same.
    """
    seed = random_state.randint(2**31 - 1) if hasattr(random_state, "randint") else random_state
    rng = np.random.default_rng(0 if seed is None else seed)
    out = np.empty(segments[-1], np.intp)
    for start, end in zip(segments[:-1].tolist(), segments[1:].tolist(), strict=True):
        out[start + rng.permutation(end - start)] = np.arange(start, end) % N_FOLDS
    return out


class CrossFit:
    """Solves the folds of all pairs, once the pairs themselves are solved.

    Parameters
    ----------
    estimator : BaseSVC
        Has the problems of pairs, and of folds.
    problems : Subproblems
        Those of the pairs.
    weight : ndarray of shape (n,)
        Weights of the samples, class by class.
    random_state : int, RandomState or None
        See `folds_of`.
    """

    def __init__(self, estimator: Any, problems: Subproblems, weight: Floats, random_state: Any) -> None:
        self.estimator, self.problems, self.weight = estimator, problems, weight
        self.folds = folds_of(problems.bounds, random_state)
        k = len(problems.bounds) - 1
        self.first, self.second = np.triu_indices(k, 1)
        # The label of the first class of a pair, which its values are positive for.
        self.sign = -1.0 if k == 2 else 1.0
        self._left = np.zeros((k, N_FOLDS), np.intp)  # rows of each class outside each fold
        for c, (start, end) in enumerate(zip(problems.bounds[:-1], problems.bounds[1:], strict=True)):
            self._left[c] = end - start - np.bincount(self.folds[start:end], minlength=N_FOLDS)
        self._folds: dict[int, Index] = {}
        #: Values of each pair's rows, positive for its first class; NaN where there are none.
        self._starts = np.append(0, np.cumsum(problems.sizes))
        self._values = np.full(self._starts[-1], np.nan)
        self.values = np.split(self._values, self._starts[1:-1])
        #: Folds that were to be solved, that have a solution, and that a limit has ended.
        self.wanted = self.solved = self.ended = 0
        self.n_kernel_evals = self.n_kernel_calls = 0

    def run(self, plan: Plan, gram: Rows, found: Solutions, limit: Limit) -> None:
        """Solve the folds, from the solutions `found` of the pairs."""
        tasks = self._tasks()
        self.wanted = len(tasks)
        tasks = tasks[np.isin(tasks[:, 0], list(found))]
        stop = replace(plan.stop, tol=max(plan.stop.tol, LEAST_TOL))
        boxes = self.estimator._boxes(self.weight)
        few = self.problems.sizes.max() <= costs.WHOLE_MOST_VARIABLES and stop.max_iter is None
        if not len(tasks):
            return
        if boxes is not None and few and plan.solver.name == "batch":
            self._together(plan, gram, found, tasks, stop, limit, boxes)
        else:
            self._by_pair(plan, gram, found, tasks, stop, limit)

    def calibrator(self) -> SigmoidCalibrator:
        """The sigmoids of all pairs; those without values say 1/2."""
        known = [~np.isnan(values) for values in self.values]
        sizes = np.diff(self.problems.bounds)
        first = [np.arange(len(v)) < sizes[a] for v, a in zip(self.values, self.first, strict=True)]
        return SigmoidCalibrator.of_pairs(
            len(sizes),
            [v[rows] for v, rows in zip(self.values, known, strict=True)],
            [is_first[rows] for is_first, rows in zip(first, known, strict=True)],
        )

    # -- folds ---------------------------------------------------------------------------------

    def _tasks(self) -> Index:
        """The folds to be solved as rows (pair, fold); those with one class left, or none, need no solution.

        As in LIBSVM their values are 1, -1 or 0.
        """
        first, second = self._left[self.first] > 0, self._left[self.second] > 0
        pairs, folds = np.nonzero(~(first & second))
        for pair, fold in zip(pairs.tolist(), folds.tolist(), strict=True):
            held = self._held(pair) == fold
            self.values[pair][held] = float(first[pair, fold]) - float(second[pair, fold])
        return np.argwhere(first & second)

    def _held(self, pair: int) -> Index:
        """The folds of a pair's samples."""
        found = self._folds.get(pair)
        if found is None:
            bounds = self.problems.bounds
            a, b = self.first[pair], self.second[pair]
            found = np.concatenate([self.folds[bounds[c] : bounds[c + 1]] for c in (a, b)])
            self._folds[pair] = found
        return found

    def _keep(self, pair: int, held: Mask, values: Floats, solution: Solution) -> None:
        """The values of held-out rows, positive for label 1."""
        self.values[pair][held] = self.sign * values
        self.solved += 1
        self.ended += solution.status in (Status.MAX_TIME, Status.INTERRUPTED)
        self.n_kernel_evals += solution.n_kernel_evals
        self.n_kernel_calls += solution.n_kernel_calls

    def _together(
        self,
        plan: Plan,
        gram: Rows,
        found: Solutions,
        tasks: Index,
        stop: Stop,
        limit: Limit,
        boxes: tuple[Floats, Floats],
    ) -> None:
        """All folds as problems over shared rows, in one compiled call as far as possible."""
        from maxmargin.estimators._fold_starts import fold_starts, held_values  # compiled: not at import

        upper, ridge = boxes
        classes = (self.first, self.second, self.problems.bounds, self.sign, self.folds)
        pair, fold = tasks.T.copy()
        known = np.unique(pair)
        place = np.zeros(len(self.problems), np.intp)
        place[known] = np.arange(len(known))
        u, gradient, offset, starts = found.joined(known)
        begin = fold_starts(tasks, place, u, gradient, offset, starts, upper, *classes)
        ends = np.append(0, np.cumsum(self.problems.sizes[pair]))

        def make(t: int) -> Subproblem:
            sub: Subproblem = self.problems[int(pair[t])]
            problem = self.estimator._fold_problem(sub.problem, self._held(int(pair[t])) == fold[t])
            return replace(sub, problem=problem, warm=begin[ends[t] : ends[t + 1]])

        sizes = self.problems.sizes[pair]
        rows = np.arange(ends[-1]) + np.repeat(starts[place[pair]] - ends[:-1], sizes)
        pairs = ClassPairs(
            self.first[pair], self.second[pair], self.sign, upper, ridge, self.folds, fold, begin, u[rows],
            gradient[rows],
        )  # fmt: skip
        problems = Subproblems(self.problems.bounds, sizes, make, int(np.argmax(sizes)), pairs)
        solutions = plan.solver.solve_many(problems, gram, stop=stop, interrupt=limit, n_jobs=plan.n_jobs)
        if solutions.together is not None:
            many = solutions.together
            held_values(
                tasks[many.index],
                many.starts,
                many.gradient,
                many.offset,
                *classes,
                self._values,
                self._starts,
            )
            self.solved += len(many)
            self.n_kernel_evals += int(many.n_kernel_evals.sum())
            self.n_kernel_calls += int(many.n_kernel_calls.sum())
        for t, solution in solutions.apart.items():
            p = int(pair[t])
            held = self._held(p) == fold[t]
            values = _values(problems[t].problem, solution)
            self._keep(p, held, values[held], solution)

    def _by_pair(
        self, plan: Plan, gram: Rows, found: Solutions, tasks: Index, stop: Stop, limit: Limit
    ) -> None:
        """The folds of a pair one after another, over rows that they share."""
        folds = {p: tasks[tasks[:, 0] == p, 1].tolist() for p in found}

        def solve(pair: int, team: int) -> Solution:
            sub: Subproblem = self.problems[pair]
            alone = len(self.problems) == 1
            rows = gram if alone else gram.view(sub.samples, cache_bytes=gram.cache_bytes // team)
            for fold in folds[pair]:
                if limit.late:
                    break
                self._solve_fold(plan, rows, pair, fold, found[pair], stop, limit)
            return found[pair]

        work = float(self.problems.sizes.max() ** 2) * gram.cost
        missing = set(range(len(self.problems))) - {p for p in folds if folds[p]}
        solve_each(solve, self.problems, gram, work, plan.n_jobs, limit, missing)

    def _solve_fold(
        self, plan: Plan, rows: Rows, pair: int, fold: int, full: Solution, stop: Stop, limit: Limit
    ) -> None:
        sub: Subproblem = self.problems[pair]
        held = self._held(pair) == fold
        kept = np.flatnonzero(~held)
        if plan.solver.name == "batch" and not sub.problem.hull:
            problem = self.estimator._fold_problem(sub.problem, held)
            with np.errstate(invalid="ignore", divide="ignore"):  # bounds that are zero or infinite
                ratio = np.nan_to_num(problem.hi / sub.problem.hi, nan=1.0, posinf=1.0)
            warm = np.clip(ratio * full.u, problem.lo, problem.hi)
            solution = plan.solver.solve(problem, rows, warm=warm, stop=stop, interrupt=limit)
            values = _values(problem, solution)[held]
        else:  # a solver, or a problem, without bounds of zero: the rows that are left
            y = np.full(len(held), self.sign)
            y[self.problems.bounds[self.first[pair] + 1] - self.problems.bounds[self.first[pair]] :] *= -1.0
            problem = self.estimator._pair_problem(y[kept], self.weight[sub.samples][kept])
            start = with_bias(problem, full.u[kept])
            solution = plan.solver.solve(problem, rows.view(kept), warm=start, stop=stop, interrupt=limit)
            weights, constant = hyperplane(problem, solution)
            out, used = np.zeros(rows.n), np.flatnonzero(weights)
            rows.add(out, kept[used], weights[used])
            values = out[held] + constant
        self._keep(pair, held, values, solution)


def hyperplane(problem: Dual, solution: Solution) -> tuple[Floats, float]:
    """Coefficients and intercept of the decision function from a solution."""
    u, offset = solution.u, solution.offset
    if problem.one_hull:
        signs, square = _of_one_hull(problem, solution)
        coef = signs * u / square
        return coef, problem.shift * fsum(coef)
    if problem.n_groups == 1:
        return of_samples(problem, u), -float(offset[0])
    signs, margin, shift = _scaling(problem, solution)
    return signs * u / margin, -shift / margin


def _values(problem: Dual, solution: Solution) -> Floats:
    """The decision values of all rows, from the gradient."""
    g, ridge = solution.gradient, problem.ridge * solution.u
    if problem.one_hull:
        signs, square = _of_one_hull(problem, solution)
        return np.asarray(signs * (g - ridge) / square)
    if problem.n_groups == 1:
        return of_samples(problem, np.asarray(g - ridge + problem.p - solution.offset[0]))
    signs, margin, shift = _scaling(problem, solution)
    return np.asarray((signs * (g - ridge) - shift) / margin)


def _of_one_hull(problem: Dual, solution: Solution) -> tuple[Floats, float]:
    """Labels and squared norm of the point of least norm, by which it is divided for margins of 1."""
    assert problem.signs is not None
    square = problem.square(solution.u, solution.gradient)
    if not square > 0 or solution.status is Status.INFEASIBLE:
        square = 1.0  # the hull contains the origin: nothing to scale to, but the direction is kept
    return problem.signs, square


def _scaling(problem: Dual, solution: Solution) -> tuple[Floats, float, float]:
    """Labels, margin and constant of two hulls: scaled so that the margin becomes 1."""
    offset = solution.offset
    margin, shift = 0.5 * float(offset[0] + offset[1]), 0.5 * float(offset[0] - offset[1])
    if not margin > 0 or solution.status is Status.INFEASIBLE:
        margin = 1.0  # touching hulls: nothing to scale to, but the direction is kept
    return np.where(problem.group == 0, 1.0, -1.0), margin, shift
