"""The loop around compiled pair steps: they run until a row is missing, which is fetched, then on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.limits import current
from maxmargin._types import Rows
from maxmargin.solvers import costs
from maxmargin.solvers.state import State

# What compiled steps report.
ITERATIONS, NEEDED, CALLS, STUCK = range(4)
# Rounds of fetching rows without a step after which a run gives up.
_PATIENCE = 64


class Turn(NamedTuple):
    """One call of compiled steps: the iterations up to which it may go, and what it leaves behind."""

    budget: int
    #: Variables whose rows are missing, as many as the report says.
    need: NDArray[np.int64]
    #: See above.
    report: NDArray[np.int64]
    #: Not zero when the time is up, see `maxmargin._compiled.limits.Limit`.
    flag: NDArray[np.int64]


def check_room(gram: Rows, rows: int, who: str) -> None:
    """Refuse a cache that cannot hold the rows without which no step can be made."""
    if gram.capacity < rows:
        raise ValueError(
            f"The cache of {gram.cache_bytes} bytes cannot hold the {rows} kernel rows that {who} needs at "
            f"once: give it at least {rows * gram.n * gram.dtype.itemsize} bytes."
        )


def least_curvature(diag: NDArray[np.float64], gram: Rows) -> float:
    """Replacement for a curvature that is not positive."""
    unit = float(np.max(np.abs(diag), initial=0.0)) or 1.0
    return unit * (1e-6 if gram.dtype == np.float32 else 1e-12)


def run(state: State, steps: Callable[[NDArray[Any], Turn], None], most_needed: int, prefetch: int) -> None:
    """A slice of the budget of iterations, with the rows that it takes.

    ``steps(there, turn)`` changes u and g; where rows are missing it puts their variables into ``turn.need``
    and ends. `there` marks the variables whose rows are in the table.
    """
    problem, gram = state.problem, state.gram
    budget = min(state.left, max(costs.FETCH_FEWEST, costs.FETCH_VALUES // max(1, problem.m)))
    limit = current()
    need, report = np.empty(most_needed, np.int64), np.zeros(4, np.int64)
    idle = 0
    while report[ITERATIONS] < budget:
        there = gram.held(problem.row)
        before = int(report[ITERATIONS])
        report[NEEDED] = 0
        steps(there, Turn(budget, need, report, limit.flag))
        idle = idle + 1 if report[ITERATIONS] == before else 0
        if report[NEEDED] == 0 or idle > _PATIENCE or limit.over:
            report[STUCK] |= idle > _PATIENCE
            break
        fetch(state, need[: report[NEEDED]], there, prefetch)
    gram.count(calls=int(report[CALLS]))
    state.n_iter += int(report[ITERATIONS])
    state.stuck = bool(report[STUCK])


def fetch(state: State, needed: NDArray[np.intp], there: NDArray[Any], prefetch: int) -> None:
    """Put the rows of the variables `needed` into the table, and `prefetch` further violators' with them.

    `there` marks the variables whose rows are in the table.
    """
    problem, gram, u, g = state.problem, state.gram, state.u, state.g
    more = min(prefetch, max(0, gram.capacity // costs.PREFETCH_PART - len(needed)))
    rows = [problem.row[needed]]
    if more:
        for score in (
            np.where((u < problem.hi) & ~there, state.most[problem.group] - g, -np.inf),
            np.where((u > problem.lo) & ~there, g - state.least[problem.group], -np.inf),
        ):
            k = min(more // 2, len(score) - 1)
            best = np.argpartition(-score, k)[:k]
            rows.append(problem.row[best[score[best] > 0]])
    gram.ensure(np.concatenate(rows))
