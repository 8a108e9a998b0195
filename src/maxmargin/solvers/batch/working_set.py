"""The working set of `Batch`: its members, which variables enter, and which leave.

Every group of variables (every class, for the hull problems) has its own part of the set, so that a pair
inside a group is a pair inside one contiguous range.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.intrinsics import INDEX_BITS
from maxmargin._compiled.jit import compiled
from maxmargin._compiled.limits import call, current
from maxmargin._compiled.memory import aligned
from maxmargin._compiled.sums import add_rows
from maxmargin.dual import middles, widest
from maxmargin.solvers import costs
from maxmargin.solvers.batch.block import block_for
from maxmargin.solvers.batch.shrinking import Shrunk
from maxmargin.solvers.pairs import Places, pair_steps
from maxmargin.solvers.state import State

_EMPTY, _BOUND, _FREE = range(3)
LARGEST = 1 << INDEX_BITS


class WorkingSet:
    """The variables under work: where they stand, their block of Q, and the inner solver's buffers."""

    def __init__(self, state: State, size: int | None) -> None:
        problem, gram = state.problem, state.gram
        self.problem, self.gram, self.u = problem, gram, state.u
        m, groups = problem.m, problem.n_groups
        if size is None:
            # A small problem is solved at once, if its whole matrix costs less than a few outer iterations.
            self.whole = m <= LARGEST and m * m * gram.cost <= costs.AT_ONCE
            size = costs.LARGE_WORKING_SET if m >= costs.LARGE_PROBLEM else costs.WORKING_SET
        else:
            self.whole = m <= size
        counts = np.bincount(problem.group, minlength=groups)
        if not self.whole:
            counts = np.minimum(counts, max(2, size // groups))
        # Group k owns the places parts[k]:parts[k + 1].
        self.parts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        q = int(self.parts[-1])
        self.ids = np.full(q, -1, np.intp)
        self.since = np.zeros(q, np.int64)
        self.inside = np.zeros(m, np.bool_)
        self.most_new = max(1, q // costs.NEWCOMERS)
        self.clock = 0
        dtype = gram.dtype
        self.block = block_for(problem, gram, q)
        # A group is one range of places, at which its members are.
        self.places = Places(
            ranges=self.parts, groups=np.arange(groups + 1), diag=self.block.diag,
            up=aligned(q, dtype), down=aligned(q, dtype),
        )  # fmt: skip
        unit = float(np.max(np.abs(problem.diag(gram)), initial=0.0)) or 1.0
        self.tau = dtype.type(unit * (1e-6 if dtype == np.float32 else 1e-12))
        self.big = dtype.type(1e30 if dtype == np.float32 else 1e300)
        if self.whole:
            self.ids = np.argsort(problem.group, kind="stable") if groups > 1 else np.arange(m)
            self.block.enter_all(self.ids)

    def candidates(self, state: State) -> NDArray[np.intp]:
        """The worst violators outside, a limited number of either side."""
        problem = self.problem
        out = np.empty(2 * self.most_new, np.int64)
        found = _select(
            state.g, state.u, problem.lo, problem.hi, problem.group, self.inside,
            state.least, state.most, self.most_new, out,
        )  # fmt: skip
        return out[:found].astype(np.intp)

    def enter(self, new: NDArray[np.intp], g: NDArray[np.float64]) -> int:
        """Bring variables in, in place of members at a bound, then of the oldest; how many came.

        Where a group wants more than half of its places, those with the least and the largest gradients g.
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
                mine = mine[np.argsort(g[mine], kind="stable")]
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

    def _standing(self, places: NDArray[np.intp]) -> NDArray[np.int64]:
        """0 for empty places, 1 for members at a bound, 2 for free ones."""
        ids = self.ids[places]
        free = (self.u[ids] > self.problem.lo[ids]) & (self.u[ids] < self.problem.hi[ids])
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
        g = (state.g[ids] - middle[problem.group[ids]]).astype(self.gram.dtype)
        gap = widest(state.least, state.most)
        # Part of the problem is solved as well as the rest deserves, the whole of it to the end.
        tol = 0.5 * state.target if self.whole else max(0.5 * state.target, costs.INNER * gap)
        tol = max(tol, at_least)
        most_steps = (costs.SLOW if self.whole else costs.MOST_STEPS) * len(ids)
        dtype = self.gram.dtype.type
        steps = call(
            pair_steps, self.block.rows, self.places, u, lo, hi, g, dtype(0.0), dtype(tol),
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
        state.u[members] += delta
        # The sum may round past the bound that the inner solver hit exactly.
        np.clip(state.u, self.problem.lo, self.problem.hi, out=state.u)
        if self.whole:
            change = np.zeros(len(self.ids))
            add_rows(change, self.block.Q, moved, delta, 0, len(self.ids))
            with np.errstate(over="ignore", invalid="ignore"):  # the end of the run looks for overflow
                state.g[self.ids] += change
        elif shrunk is not None:
            shrunk.update(state.g, members, delta, state)
        else:
            self.problem.update(state.g, members, delta, self.gram, self._standing(moved) == _FREE)


@compiled()
def _select(g, u, lo, hi, group, inside, least, most, wanted, out):
    """The `wanted` worst violators of either side outside the working set; how many were found.

    A histogram of the violations finds the threshold in one pass, without sorting. Of those in the
    threshold's bin an evenly spaced choice is taken, so that ties do not favour the first rows.
    """
    bins = 1024
    high, low = np.zeros(bins + 1, np.int64), np.zeros(bins + 1, np.int64)
    widest = 0.0
    for k in range(len(least)):
        widest = max(widest, most[k] - least[k])
    if not widest > 0 or widest == np.inf:
        return 0
    unit = (bins - 0.001) / widest
    m = len(g)
    for t in range(m):
        if not inside[t]:
            k = group[t]
            if u[t] < hi[t] and g[t] < most[k]:
                high[int((most[k] - g[t]) * unit)] += 1
            if u[t] > lo[t] and g[t] > least[k]:
                low[int((g[t] - least[k]) * unit)] += 1
    cut_high = cut_low = bins
    left_high = left_low = wanted
    while cut_high > 0 and high[cut_high] <= left_high:
        left_high -= high[cut_high]
        cut_high -= 1
    while cut_low > 0 and low[cut_low] <= left_low:
        left_low -= low[cut_low]
        cut_low -= 1
    pace_high = left_high / max(1, high[cut_high])
    pace_low = left_low / max(1, low[cut_low])
    due_high = due_low = 0.5
    found = 0
    for t in range(m):
        if inside[t]:
            continue
        k = group[t]
        take = False
        if u[t] < hi[t] and g[t] < most[k]:
            v = int((most[k] - g[t]) * unit)
            if v > cut_high:
                take = True
            elif v == cut_high:
                due_high += pace_high
                if due_high >= 1.0:
                    due_high -= 1.0
                    take = True
        if not take and u[t] > lo[t] and g[t] > least[k]:
            v = int((g[t] - least[k]) * unit)
            if v > cut_low:
                take = True
            elif v == cut_low:
                due_low += pace_low
                if due_low >= 1.0:
                    due_low -= 1.0
                    take = True
        if take and found < len(out):
            out[found] = t
            found += 1
    return found
