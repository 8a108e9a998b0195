"""The working set of `Batch`: its members, which variables enter, and which leave.

Every group of variables (every class, for the hull problems) has its own part of the set, so that a pair
inside a group is a pair inside one contiguous range.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.limits import call, current
from maxmargin._compiled.memory import aligned
from maxmargin._compiled.sums import add_rows
from maxmargin.dual import middles, widest
from maxmargin.solvers import costs
from maxmargin.solvers._pair_cycles import Cycles
from maxmargin.solvers.batch.block import block_for
from maxmargin.solvers.batch.shrinking import Shrunk
from maxmargin.solvers.pairs import LONGEST, Places, pair_steps
from maxmargin.solvers.state import State

_EMPTY, _BOUND, _FREE = range(3)
#: Members at most: their block of kernel values takes 268 MB in float32.
LARGEST = 8192


def default_size(m: int, support: int) -> int:
    """The size of a working set for m variables, `support` of which are not zero.

    In a larger set fewer variables have to come back, but its block of kernel values takes longer to fill:
    it pays where far more variables are needed than have a place.
    """
    return max(
        size
        for least, size in costs.WORKING_SETS
        if m >= least and (size <= LONGEST or support > costs.WORKING_SET_SUPPORT * size)
    )


def _cut(parts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The places of each group as ranges that the pair loop can take, and the first range of each group."""
    ranges, of_groups = [0], [0]
    for start, stop in zip(parts[:-1].tolist(), parts[1:].tolist(), strict=True):
        ranges += [*range(start + LONGEST, stop, LONGEST), stop]
        of_groups.append(len(ranges) - 1)
    return np.array(ranges), np.array(of_groups)


class WorkingSet:
    """The variables under work: where they stand, their block of Q, and the inner solver's buffers."""

    def __init__(self, state: State, size: int | None, cycles: bool = True) -> None:
        problem, gram = state.problem, state.gram
        self.problem, self.gram, self.u = problem, gram, state.u
        m, groups = problem.m, problem.n_groups
        if size is None:
            # A small problem is solved at once, if its whole matrix costs less than a few outer iterations.
            self.whole = m <= LONGEST and m * m * gram.cost <= costs.AT_ONCE
            # Rows that live elsewhere should not be asked for twice.
            size = default_size(m, int(np.count_nonzero(state.u))) if gram.resident else LARGEST
        else:
            self.whole = m <= size
        counts = np.bincount(problem.group, minlength=groups)
        if not self.whole:
            counts = np.minimum(counts, max(2, size // groups))
        # Group k owns the places parts[k]:parts[k + 1].
        self.parts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        q = int(self.parts[-1])
        self.size = size
        self.ids = np.full(q, -1, np.intp)
        self.since = np.zeros(q, np.int64)
        self.inside = np.zeros(m, np.bool_)
        self.most_new = max(1, q // costs.NEWCOMERS)
        self.clock = 0
        dtype = gram.dtype
        self.block = block_for(problem, gram, q)
        ranges, of_groups = _cut(self.parts)
        self.places = Places(
            ranges=ranges,
            groups=of_groups,
            diag=self.block.diag,
            up=aligned(q, dtype),
            down=aligned(q, dtype),
        )
        self.cycles = Cycles.of(q, dtype) if cycles else None
        unit = float(np.max(np.abs(problem.diag(gram)), initial=0.0)) or 1.0
        self.tau = dtype.type(unit * (1e-6 if dtype == np.float32 else 1e-12))
        self.big = dtype.type(1e30 if dtype == np.float32 else 1e300)
        if self.whole:
            self.ids = np.argsort(problem.group, kind="stable") if groups > 1 else np.arange(m)
            self.block.enter_all(self.ids)

    def candidates(self, state: State) -> NDArray[np.intp]:
        """The worst violators outside, a limited number of either side."""
        return state.violators(self.inside, self.most_new)

    def enter(self, new: NDArray[np.intp], state: State) -> int:
        """Bring variables in, in place of members at a bound, then of the oldest; how many came.

        Where a group wants more than half of its places, those with the least and the largest gradients.
        """
        self.clock += 1
        if not len(new):
            return 0
        at: list[NDArray[np.intp]] = []
        who: list[NDArray[np.intp]] = []
        for k in range(len(self.parts) - 1):
            mine = new[self.problem.group[new] == k] if len(self.parts) > 2 else new
            if not len(mine):
                continue
            places = np.arange(self.parts[k], self.parts[k + 1])
            order = np.lexsort((self.since[places], self._standing(places)))
            shared = len(self.parts) > 2 and bool((self.ids[places] >= 0).any())
            most = max(2, len(places) // 2) if shared else len(places)
            if len(mine) > most:
                # Of many groups each has few places: newcomers must not drive out all who could make room.
                mine = mine[np.argsort(state.gradient_at(mine), kind="stable")]
                mine = np.concatenate([mine[: most - most // 2], mine[len(mine) - most // 2 :]])
            at.append(np.sort(places[order[: len(mine)]]))
            who.append(mine)
        places, members = np.concatenate(at), np.concatenate(who)
        left = self.ids[places]
        self.inside[left[left >= 0]] = False
        self.ids[places] = members
        self.inside[members] = True
        self.since[places] = self.clock
        self.block.enter(places, self.ids)
        return len(members)

    def _standing(
        self, places: NDArray[np.intp], delta: float | NDArray[np.float64] = 0.0
    ) -> NDArray[np.int64]:
        """0 for empty places, 1 for members at a bound, 2 for free ones; after a step `delta`."""
        ids = self.ids[places]
        u = self.u[ids] + delta
        free = (u > self.problem.lo[ids]) & (u < self.problem.hi[ids])
        return np.where(ids < 0, _EMPTY, np.where(free, _FREE, _BOUND))

    def solve(self, state: State, at_least: float = 0.0) -> tuple[int, NDArray[np.intp], NDArray[np.float64]]:
        """Solve the inner problem; returns the steps taken, the places that moved and by how much.

        `at_least` is a violation below which it need not go, whatever the target.
        """
        problem, ids = self.problem, self.ids
        u = state.u[ids]
        lo, hi = problem.lo[ids], problem.hi[ids]
        if not self.whole:
            lo[ids < 0] = hi[ids < 0] = u[ids < 0]  # an empty place cannot move
        # Only differences inside a group matter: centred, they survive the rounding to float32.
        middle = middles(state.least, state.most)
        g = (state.gradient_at(ids) - middle[problem.group[ids]]).astype(self.gram.dtype)
        gap = widest(state.least, state.most)
        # Part of the problem is solved as well as the rest deserves, the whole of it to the end.
        tol = 0.5 * state.target if self.whole else max(0.5 * state.target, costs.INNER * gap)
        tol = max(tol, at_least)
        most_steps = (costs.SLOW if self.whole else costs.MOST_STEPS) * len(ids)
        dtype = self.gram.dtype.type
        steps = call(
            pair_steps, self.block.rows, self.places, self.cycles, u, lo, hi, g, dtype(0.0), dtype(tol),
            min(most_steps, state.left), self.big, self.tau, current().flag,
            work=len(ids) * (3.0 * most_steps + len(ids) * self.gram.cost),
        )  # fmt: skip
        delta = u - state.u[ids]
        moved = np.flatnonzero(delta)
        return steps, moved, delta[moved]

    def restrict(self, active: NDArray[np.intp] | None) -> None:
        """Choose new members among these variables only; None for all."""
        self.inside[:] = active is not None
        if active is not None:
            self.inside[active] = False
        self.inside[self.ids[self.ids >= 0]] = True

    def take_step(
        self, state: State, moved: NDArray[np.intp], delta: NDArray[np.float64], shrunk: Shrunk | None
    ) -> None:
        """Move the members and bring the gradient up to date."""
        members = self.ids[moved]
        if not self.whole and shrunk is None:
            state.move(members, delta, self.ids[self.ids >= 0], self._standing(moved, delta) == _FREE)
            return
        state.set_variables(members, delta)
        if self.whole:
            change = np.zeros(len(self.ids))
            add_rows(change, self.block.Q, moved, delta, 0, len(self.ids))
            with np.errstate(over="ignore", invalid="ignore"):  # the end of the run looks for overflow
                state.g[self.ids] += change
        else:
            assert shrunk is not None
            shrunk.update(state.g, members, delta, state)
