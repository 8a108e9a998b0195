"""The closest points of opposite sides, from which active-set methods begin."""

from __future__ import annotations

import numpy as np

from maxmargin._types import Floats, Index, Rows
from maxmargin.dual import Dual
from maxmargin.solvers import costs


def closest_pair(problem: Dual, gram: Rows) -> tuple[int, int] | None:
    """Variables i that can rise and j that can fall from zero whose points are closest; None without both."""
    rising, nearest, distance = nearest_opponents(problem, gram)
    if not len(rising):
        return None
    i = int(np.argmin(distance))
    return int(rising[i]), int(nearest[i])


def nearest_opponents(problem: Dual, gram: Rows) -> tuple[Index, Index, Floats]:
    """Variables that can rise from zero, for each the closest that can fall, and their distance.

    Kernels that fall with the distance need no kernel value for it. For others, and for more points than are
    worth the time, among some of them only: any pair is a valid start.
    """
    rising = np.flatnonzero((problem.lo >= 0) & (problem.hi > 0))
    falling = np.flatnonzero((problem.hi <= 0) & (problem.lo < 0))
    if not len(rising) or not len(falling):
        return rising[:0], falling[:0], np.zeros(0)
    most = costs.CLOSEST if gram.by_distance else costs.CLOSEST_BY_KERNEL
    rising, falling = (some[:: max(1, -(-len(some) // most))] for some in (rising, falling))
    nearest, distance = gram.nearest(problem.row[rising], problem.row[falling])
    return rising, falling[nearest], distance


def closest_pairs(problem: Dual, gram: Rows, count: int) -> list[tuple[int, int]]:
    """The closest pairs of opposite sides with different first points, see `closest_pair`."""
    rising, nearest, distance = nearest_opponents(problem, gram)
    best = np.argsort(distance, kind="stable")[:count]
    return [(int(rising[i]), int(nearest[i])) for i in best]
