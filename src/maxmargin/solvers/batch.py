"""The default solver: two-level decomposition, in batches of kernel rows.

Outer iteration: choose the variables that violate the KKT conditions most (`_select`), bring them
into a working set of up to 2,048 variables, and solve the problem on that set alone. Then update the
gradient of all variables with the kernel rows of those that moved: rows come in batches, one matrix
product and one vectorised transform each, and are used in batches too.

Inner problem (`_inner`): second-order SMO on the dense block of the working set. Each step is two
vectorised passes over the block's columns; the index of a maximum rides in the low mantissa bits of
its value, which makes an argmax a plain reduction.

Every group of variables (every class, for the hull problems) has its own part of the working set, so
that a pair inside a group is a pair inside one contiguous range.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _jit
from maxmargin._jit import REORDER, compiled, fmax, index_in, with_index
from maxmargin.dual import Dual
from maxmargin.solvers import on_demand
from maxmargin.solvers.base import Solver, State

_LARGEST = 1 << _jit.INDEX_BITS
# Multiplications that the whole matrix of a problem may cost to be taken at once (some 3 ms).
_AT_ONCE = 60_000_000


class Batch(Solver):
    """Two-level decomposition for any problem of the core.

    Parameters
    ----------
    working_set : int, optional
        Size of the working set, at most 2,048; by default 1,024, for 30,000 variables and more 2,048.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import dual
    >>> from maxmargin.gram import Gram
    >>> from maxmargin.solvers import Batch
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    >>> solution = Batch().solve(dual.c_svc(y, C=10.0), Gram(X, gamma=1.0))
    >>> solution.status, bool(solution.violation <= 1e-3)
    (<Status.SOLVED: 'solved'>, True)
    """

    name = "batch"
    about = "two-level decomposition, second-order SMO inside (the default)"

    def __init__(self, working_set: int | None = None) -> None:
        if working_set is not None and not 2 <= working_set <= _LARGEST:
            raise ValueError(f"working_set must be between 2 and {_LARGEST}, got {working_set!r}.")
        self.working_set = working_set

    def __repr__(self) -> str:
        return f"Batch(working_set={self.working_set})"

    def accepts(self, problem: Dual) -> bool:
        """Any problem whose groups find a place in the working set."""
        return problem.n_groups <= _LARGEST // 2

    def begin(self, state: State) -> None:
        """An empty working set and its buffers, in the precision of the rows."""
        old = state.memory.get("set")
        if self.working_set is None and on_demand.suits(state.problem, state.gram):
            state.memory["set"] = on_demand.OnDemand(state)
        else:
            new = state.memory["set"] = _WorkingSet(state, self.working_set)
            if isinstance(old, _WorkingSet) and not new.whole:
                new.enter(old.ids[old.ids >= 0])
        state.memory["progress"] = _Progress()

    def advance(self, state: State) -> None:
        """One outer iteration."""
        working: _WorkingSet | on_demand.OnDemand = state.memory["set"]
        fresh = 0
        if isinstance(working, _WorkingSet) and not working.whole:
            fresh = working.enter(self._candidates(state, working))
        steps, moved, delta = working.solve(state)
        working.update_gradient(state, moved, delta)
        state.n_iter += max(steps, 1)
        state.stuck = state.memory["progress"].stuck(state, steps, fresh)

    @staticmethod
    def _candidates(state: State, working: _WorkingSet) -> NDArray[np.intp]:
        problem = state.problem
        out = np.empty(2 * working.most_new, np.int64)
        found = _select(
            state.g, state.u, problem.lo, problem.hi, problem.group, working.inside,
            state.least, state.most, working.most_new, out,
        )  # fmt: skip
        return out[:found].astype(np.intp)


class _WorkingSet:
    """The variables under work: where they stand, their block of Q, and the inner solver's buffers."""

    def __init__(self, state: State, size: int | None) -> None:
        problem, gram = state.problem, state.gram
        self.problem, self.gram, self.u = problem, gram, state.u
        m, groups = problem.m, problem.n_groups
        if size is None:
            # A small problem is solved at once, if its whole matrix costs less than a few outer iterations.
            self.whole = m <= _LARGEST and m * m * gram.cost <= _AT_ONCE
            size = 2048 if m >= 30_000 else 1024
        else:
            self.whole = m <= size
        if self.whole:
            counts = np.bincount(problem.group, minlength=groups)
        else:
            counts = np.minimum(np.bincount(problem.group, minlength=groups), max(2, size // groups))
        # Group k owns the positions parts[k]:parts[k + 1].
        self.parts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        q = int(self.parts[-1])
        self.ids = np.full(q, -1, np.intp)
        self.since = np.zeros(q, np.int64)
        self.inside = np.zeros(m, np.bool_)
        self.most_new = max(1, q // 8)
        dtype = gram.dtype
        # Rows a power of two apart would fall into the same cache lines when columns are written.
        self.Q: NDArray[Any] = np.zeros((0 if self.whole else q, q + 16), dtype)
        self.diag = problem.diag(gram)
        self.up, self.down = np.empty(q, dtype), np.empty(q, dtype)
        unit = float(np.max(np.abs(self.diag), initial=0.0)) or 1.0
        self.tau = dtype.type(unit * (1e-6 if dtype == np.float32 else 1e-12))
        self.big = dtype.type(1e30 if dtype == np.float32 else 1e300)
        self.clock = 0
        if self.whole:
            self.ids = np.argsort(problem.group, kind="stable") if groups > 1 else np.arange(m)
            self.Q = problem.block(self.ids, self.ids, gram)

    def enter(self, new: NDArray[np.intp]) -> int:
        """Bring variables in, in place of members at a bound, then of the oldest; how many came."""
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
            order = np.lexsort((self.since[places], self._keep(places)))
            mine = mine[: len(places)]
            at.append(np.sort(places[order[: len(mine)]]))
            who.append(mine)
        places, members = np.concatenate(at), np.concatenate(who)
        left = self.ids[places]
        self.inside[left[left >= 0]] = False
        self.ids[places] = members
        self.inside[members] = True
        self.since[places] = self.clock
        self._fill(places)
        return len(members)

    def _keep(self, places: NDArray[np.intp]) -> NDArray[np.int64]:
        """0 for empty places, 1 for members at a bound, 2 for free ones."""
        ids = self.ids[places]
        free = (self.u[ids] > self.problem.lo[ids]) & (self.u[ids] < self.problem.hi[ids])
        return np.where(ids < 0, 0, np.where(free, 2, 1))

    def _fill(self, places: NDArray[np.intp]) -> None:
        """Compute the rows of Q for the new members and mirror them."""
        there = np.flatnonzero(self.ids >= 0)
        block = self.problem.block(self.ids[places], self.ids[there], self.gram)
        threads = self.gram.threads
        threads.run(lambda a, b: _mirror(self.Q, block, places, there, a, b), threads.split(len(there), 512))

    def solve(self, state: State) -> tuple[int, NDArray[np.intp], NDArray[np.float64]]:
        """Solve the inner problem; returns the steps taken, the places that moved and by how much."""
        problem, ids = self.problem, self.ids
        u = state.u[ids]
        lo, hi = problem.lo[ids], problem.hi[ids]
        if not self.whole:
            lo[ids < 0] = hi[ids < 0] = u[ids < 0]  # an empty place cannot move
        # Only differences inside a group matter: centred, they survive the rounding to float32.
        middle = 0.5 * (state.least + state.most)
        middle[~np.isfinite(middle)] = 0.0
        g = (state.g[ids] - middle[problem.group[ids]]).astype(self.Q.dtype)
        gap = float(np.max(state.most - state.least))
        # Part of the problem is solved as well as the rest deserves, the whole of it to the end.
        tol = 0.5 * state.target if self.whole else max(0.5 * state.target, 0.1 * gap)
        most_steps = (100 if self.whole else 8) * len(ids)
        diag = self.diag[ids].astype(self.Q.dtype)
        steps = _inner(
            self.Q, diag, u, lo, hi, g, self.parts, self.Q.dtype.type(tol),
            min(most_steps, state.left), self.up, self.down, self.big, self.tau,
        )  # fmt: skip
        delta = u - state.u[ids]
        moved = np.flatnonzero(delta)
        return steps, moved, delta[moved]

    def update_gradient(self, state: State, moved: NDArray[np.intp], delta: NDArray[np.float64]) -> None:
        """Take the step and bring the gradient of all variables up to date."""
        members = self.ids[moved]
        state.u[members] += delta
        # The sum may round past the bound that the inner solver hit exactly.
        np.clip(state.u, self.problem.lo, self.problem.hi, out=state.u)
        if self.whole:
            change = np.zeros(len(self.ids))
            _jit.add_rows(change, self.Q, moved, delta, 0, len(self.ids))
            state.g[self.ids] += change
        else:
            self.problem.update(state.g, members, delta, self.gram)


class _Progress:
    """Notices when outer iterations no longer lead anywhere."""

    patience = 30

    def __init__(self) -> None:
        self.violation = self.objective = np.inf
        self.idle = 0

    def stuck(self, state: State, steps: int, fresh: int) -> bool:
        """Whether nothing moved, or nothing improved for many iterations."""
        if steps == 0 and fresh == 0:
            return True
        violation = float(np.max(state.most - state.least))
        objective = state.problem.objective(state.u, state.g)
        better = objective < self.objective - 1e-13 * abs(self.objective)
        if violation < 0.99 * self.violation or better or not np.isfinite(self.objective):
            self.idle = 0
        else:
            self.idle += 1
        self.violation = min(self.violation, violation)
        self.objective = min(self.objective, objective)
        return self.idle >= self.patience


@compiled(fastmath=REORDER)
def _inner(  # type: ignore[no-untyped-def]
    Q, diag, u, lo, hi, g, parts, tol, max_steps, up, down, big, tau
):
    """Second-order SMO on the block Q, changing u; group k is the range parts[k]:parts[k + 1].

    up / down hold the gradient, or +-big where the variable cannot rise / fall.
    """
    zero, two = g.dtype.type(0.0), g.dtype.type(2.0)
    n_groups = len(parts) - 1
    least, most = np.empty(n_groups, up.dtype), np.empty(n_groups, up.dtype)
    first = np.zeros(n_groups, np.int64)
    for k in range(n_groups):
        low, high = big, -big
        for t in range(parts[k], parts[k + 1]):
            up[t] = g[t] if u[t] < hi[t] else big
            down[t] = g[t] if u[t] > lo[t] else -big
            high = max(high, down[t])
            if up[t] < low:
                low = up[t]
                first[k] = t
        least[k], most[k] = low, high
    steps = 0
    while steps < max_steps:
        worst = 0
        for k in range(1, n_groups):
            if most[k] - least[k] > most[worst] - least[worst]:
                worst = k
        low = least[worst]
        if not most[worst] - low >= tol:
            break
        # j: the largest decrease (g_j - g_i)^2 / (Q_ii + Q_jj - 2 Q_ij). Loops run over slices from 0:
        # an index that might be negative would not vectorise.
        i = first[worst]
        row_i = Q[i]
        diag_i = diag[i]
        start, end = parts[worst], parts[worst + 1]
        some_row, some_down, some_diag = row_i[start:end], down[start:end], diag[start:end]
        best = zero
        for t in range(end - start):
            b = fmax(some_down[t] - low, zero)
            gain = b * b / fmax(diag_i + some_diag[t] - two * some_row[t], tau)
            best = fmax(best, with_index(gain, t))
        j = start + index_in(best)
        row_j = Q[j]
        g_j = down[j]
        curvature = max(np.float64(diag_i) + np.float64(diag[j]) - 2.0 * np.float64(row_i[j]), tau)
        room_i, room_j = hi[i] - u[i], u[j] - lo[j]
        d = min(np.float64(g_j - low) / curvature, min(room_i, room_j))
        before_i, before_j = u[i], u[j]
        u[i] = hi[i] if d == room_i else u[i] + d
        u[j] = lo[j] if d == room_j else u[j] - d
        if u[i] == before_i and u[j] == before_j:
            break  # the pair cannot move in this precision
        steps += 1
        up[i] = low if u[i] < hi[i] else big
        down[i] = low if u[i] > lo[i] else -big
        up[j] = g_j if u[j] < hi[j] else big
        down[j] = g_j if u[j] > lo[j] else -big
        # update, and find the next i and the extremes of every group
        step = g.dtype.type(d)
        for k in range(n_groups):
            start, end = parts[k], parts[k + 1]
            ref = most[k]
            high = -big
            best = zero
            some_up, some_down = up[start:end], down[start:end]
            some_i, some_j = row_i[start:end], row_j[start:end]
            for t in range(end - start):
                x = step * (some_i[t] - some_j[t])
                a = some_up[t] + x
                b = some_down[t] + x
                some_up[t] = a
                some_down[t] = b
                high = fmax(high, b)
                best = fmax(best, with_index(fmax(ref - a, zero), t))
            most[k] = high
            i = start + index_in(best)
            if i >= end or not up[i] < ref:  # nothing below ref: scan exactly
                low = big
                i = start
                for t in range(end - start):
                    if some_up[t] < low:
                        low = some_up[t]
                        i = start + t
            first[k] = i
            least[k] = up[i] if end > start else big
    return steps


@compiled()
def _select(g, u, lo, hi, group, inside, least, most, wanted, out):  # type: ignore[no-untyped-def]
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


@compiled()
def _mirror(Q, block, places, there, start, end):  # type: ignore[no-untyped-def]
    """``Q[places, there] = block`` and its transpose, for the columns start:end of the block."""
    for r in range(len(places)):
        row, line = Q[places[r]], block[r]
        for c in range(start, end):
            row[there[c]] = line[c]
    strip = 16  # rows whose lines stay in the cache while the columns are written
    for c0 in range(start, end, strip):
        c1 = min(end, c0 + strip)
        for r in range(len(places)):
            p, line = places[r], block[r]
            for c in range(c0, c1):
                Q[there[c], p] = line[c]
