"""Rows that a compiled loop asked for, and with them those that it will ask for next."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.solvers.state import State


def fetch(state: State, needed: NDArray[np.intp], there: NDArray[Any], prefetch: int) -> None:
    """Put the rows of the variables `needed` into the table, and `prefetch` further violators' with them.

    `there` marks the variables whose rows are in the table.
    """
    problem, gram, u, g = state.problem, state.gram, state.u, state.g
    more = min(prefetch, max(0, gram.capacity // 4 - len(needed)))
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
