"""The pairs of many classes in one compiled call.

With 150 classes there are 11,175 pairs of a few samples each. A pair takes a tenth of a millisecond, and
Python code around it would take several times as long. So one call per thread builds and solves one pair
after another (`maxmargin.solvers.batch.whole_steps`); Python sees what came out. Pairs that are not solved so
go on one by one, from where they are.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from maxmargin._compiled.intrinsics import raised, take
from maxmargin._compiled.jit import compiled
from maxmargin._compiled.limits import call, current
from maxmargin._compiled.memory import aligned
from maxmargin._compiled.threads import Threads
from maxmargin._types import Floats, Index
from maxmargin.dual._certify import GAP, NEAR_BOUND, NOISE, OBJECTIVE, OFFSET, RIGHT, VIOLATION, WORST
from maxmargin.kernels.panels import width_of
from maxmargin.solvers import costs
from maxmargin.solvers.batch.shared_rows import SharedRows
from maxmargin.solvers.batch.whole import WholeProblems
from maxmargin.solvers.batch.whole_steps import EVALS, ROUGH, STEPS, Loop, Whole, solve_whole
from maxmargin.solvers.many import ClassPairs
from maxmargin.solvers.solutions import SolvedTogether

#: One more entry of the report of `solve_whole`.
BEGUN = ROUGH + 1


class Desk(NamedTuple):
    """Buffers of one thread: a pair's problem, and the pairs since its rows were last discarded."""

    samples: Index
    touched: Index
    p: Floats
    lo: Floats
    hi: Floats
    ridge: Floats
    near: Floats
    ranges: Index
    sums: Floats
    since: Index

    @staticmethod
    def of(most: int, n_pairs: int) -> Desk:
        """For problems of at most so many variables."""
        samples, touched, since = (np.empty(size, np.intp) for size in (most, 2, n_pairs))
        p, lo, hi, ridge, near = np.empty((5, most))
        return Desk(samples, touched, p, lo, hi, ridge, near, np.zeros(2, np.intp), np.zeros(1), since)


class Together(NamedTuple):
    """Solutions, and points of the other pairs that were begun."""

    solutions: SolvedTogether
    points: dict[int, Floats]


def solve_together(engine: WholeProblems, pairs: ClassPairs, scale: float, threads: Threads) -> Together:
    """Solve as many of the pairs as possible; see `maxmargin.solvers.batch.whole.WholeProblems`."""
    began = time.perf_counter()
    rows, dtype = engine.rows, engine.gram.dtype
    sizes = np.diff(rows.bounds)[pairs.first] + np.diff(rows.bounds)[pairs.second]
    most = int(sizes.max())
    starts = np.append(0, np.cumsum(sizes))
    u, g, reports = np.zeros(starts[-1]), np.empty(starts[-1]), np.zeros((len(sizes), BEGUN + 1))
    if len(pairs.start):
        u[:], g[:] = pairs.start, pairs.gradient
    accuracy, queue, flag = engine.accuracy(engine.stop.tol / scale), np.zeros(1, np.int64), current().flag
    if len(pairs.near):  # nobody asks for the certificates of folds: rounding need not be measured
        accuracy = accuracy._replace(error=0.0)
    big, tau = engine.limits_of_steps()
    steps = np.maximum(costs.PAIRS_FEWEST_STEPS, engine.patience * sizes)
    most_work = float((sizes * (15.0 * steps + sizes * engine.gram.cost)).sum())

    def work(own: SharedRows) -> None:
        buffers = aligned((3, most + 2 * width_of(dtype)), dtype)
        loop = Loop(costs.PAIRS_FEWEST_STEPS, big, tau, buffers, flag)
        desk = Desk.of(most, len(sizes))
        call(
            _solve_pairs, own, pairs, queue, starts, u, g, accuracy, loop, engine.patience, desk, reports,
            work=most_work,
        )  # fmt: skip

    threads.run(work, [(own,) for own in _shared_or_own(rows, threads.n)])
    seconds = (time.perf_counter() - began) / max(1, int(queue[0]))
    begun = np.flatnonzero(reports[:, BEGUN])
    if len(begun):
        reports[begun[0], EVALS] += engine.uncounted()
    good = (
        (reports[:, BEGUN] > 0)
        & (reports[:, RIGHT] > 0)
        & (reports[:, NEAR_BOUND] == 0)
        & np.isfinite(reports[:, GAP])
    )
    solutions = _solved(np.flatnonzero(good), starts, u, g, reports, seconds, scale)
    others = [(k, u[starts[k] : starts[k + 1]]) for k in begun[~good[begun]].tolist()]
    return Together(solutions, {k: point for k, point in others if np.isfinite(point).all()})


def _solved(
    index: Index, starts: Index, u: Floats, g: Floats, reports: Floats, seconds: float, scale: float
) -> SolvedTogether:
    """The solved pairs, from the reports of all."""
    report, sizes = reports[index], np.diff(starts)[index]
    n_support = np.add.reduceat(u != 0, starts[:-1], dtype=np.intp)[index]
    steps = report[:, STEPS].astype(np.int64)
    return SolvedTogether(
        index, starts[index], starts[index + 1], u, g,
        offset=report[:, OFFSET], gap=report[:, GAP], noise=report[:, NOISE],
        violation=scale * report[:, WORST], measured_violation=scale * report[:, VIOLATION],
        objective=report[:, OBJECTIVE], n_iter=steps, n_support=n_support,
        n_kernel_calls=3 * steps * sizes, n_kernel_evals=report[:, EVALS].astype(np.int64), seconds=seconds,
    )  # fmt: skip


def _shared_or_own(rows: SharedRows, n: int) -> list[SharedRows]:
    """Rows for each of n threads: the same ones where all find a place, otherwise a part of it for each."""
    if rows.holds_all:
        return [rows] * n
    if n == 1 or rows.where.size > costs.PAIRS_MOST_PLACES:  # too large a table to have twice
        return [rows]
    width = width_of(rows.pool.dtype)
    part = len(rows.pool) // (n * width) * width
    return [
        rows._replace(
            pool=rows.pool[k * part : (k + 1) * part],
            where=rows.where.copy(),
            used=np.zeros(1, np.int64),
        )
        for k in range(n)
    ]


@compiled()
def _solve_pairs(rows, pairs, queue, starts, u, g, accuracy, loop, patience, desk, reports):
    """Take pairs from the queue, which threads share, and solve them until no pair or no time is left."""
    bounds, touched, count = rows.bounds, desk.touched, 0
    while not raised(loop.flag):
        k = take(queue, 1)
        if k >= len(pairs.first):
            return
        touched[0], touched[1] = pairs.first[k], pairs.second[k]
        m = starts[k + 1] - starts[k]
        if _lacks_room(rows, touched, m):
            for c in range(count):
                _discard(rows, pairs.first[desk.since[c]], pairs.second[desk.since[c]])
            count = rows.used[0] = 0
        desk.since[count] = k
        count += 1
        t, sign = 0, pairs.sign
        for s in touched:
            for i in range(bounds[s], bounds[s + 1]):
                desk.samples[t] = i
                desk.p[t], desk.ridge[t] = sign, pairs.ridge[i]
                upper = 0.0 if pairs.fold_of[i] == pairs.fold[k] else pairs.upper[i]
                desk.lo[t], desk.hi[t] = (0.0, upper) if sign > 0 else (-upper, 0.0)
                t += 1
            sign = -sign
        desk.ranges[1] = m
        problem = Whole(
            touched, desk.samples[:m], desk.p[:m], desk.lo[:m], desk.hi[:m], desk.ridge[:m], desk.ranges,
            desk.sums,
        )  # fmt: skip
        steps = Loop(max(loop.max_steps, patience * m), loop.big, loop.tau, loop.buffers, loop.flag)
        reports[k, BEGUN] = 1.0
        part = slice(starts[k], starts[k + 1])
        near = desk.near[: m if len(pairs.near) else 0]
        for t in range(len(near)):
            near[t] = pairs.near[starts[k] + t]
        solve_whole(rows, problem, u[part], g[part], near, accuracy, steps, reports[k])


@compiled()
def _lacks_room(rows, touched, m):
    """Whether the rows of a pair may find no place; never where there is place for all."""
    if len(rows.where) * rows.starts[-1] <= len(rows.pool):
        return False
    width = 0
    for s in touched:
        width += rows.starts[s + 1] - rows.starts[s]
    return rows.used[0] > 0 and rows.used[0] + m * width > len(rows.pool)


@compiled()
def _discard(rows, a, b):
    """Forget the rows of a pair."""
    for s in (a, b):
        for i in range(rows.bounds[s], rows.bounds[s + 1]):
            rows.where[i, a] = rows.where[i, b] = -1
