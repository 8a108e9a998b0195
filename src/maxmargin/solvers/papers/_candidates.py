"""A pass of SimpleSVM over the data: outputs of candidates, computed one at a time while S moves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.jit import compiled
from maxmargin._types import Floats, Index, Mask
from maxmargin.solvers import costs
from maxmargin.solvers.state import State


class Candidates(NamedTuple):
    """All variables, for compiled code."""

    u: Floats
    #: The gradient at `base`.
    g: Floats
    base: Floats
    lo: Floats
    hi: Floats
    ridge: Floats
    #: Members of S, which are no candidates.
    member: Mask


class Changes(NamedTuple):
    """Changes of some variables, with their kernel rows in the cache."""

    delta: Floats
    table: NDArray[Any]
    #: Row of the table for each of them, and the column of every variable.
    slot: Index
    column: Index


class CandidatePass:
    """Outputs of candidates while S moves: the gradient of `base` and what has changed since."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.base = state.u.copy()
        self._is_changed = np.zeros(state.problem.m, np.bool_)
        self._changed = np.zeros(0, np.intp)
        self._member = np.zeros(state.problem.m, np.bool_)
        most = int(np.count_nonzero(state.u)) + 2 * costs.CANDIDATES
        self._cached = state.gram.capacity >= min(state.gram.n, most)

    @property
    def span(self) -> int:
        """Candidates that are looked at before the clock is."""
        return max(costs.CANDIDATES_FEWEST, costs.LOOK // (1 + len(self._changed)))

    def mark(self, members: Index) -> None:
        """The members of S, whose excess is rounding; all others are candidates, free ones too."""
        self._member[:] = False
        self._member[members] = True

    def changed(self) -> Index:
        """Variables that have moved."""
        return self._changed

    def moved(self, c: int, members: Index, gone: Index) -> None:
        """Note a step of c."""
        new = np.concatenate([[c], members, gone]).astype(np.intp)
        new = new[~self._is_changed[new]]
        self._is_changed[new] = True
        self._changed = np.concatenate([self._changed, np.unique(new)])
        if self._cached:
            self.state.gram.ensure(self.state.problem.row[self._changed])

    def column(self, members: Index, c: int) -> Floats:
        """H between some variables and c, in float64."""
        problem, gram = self.state.problem, self.state.gram
        if self._cached:
            # One row serves both: K is symmetric, and c's row will be wanted if it joins.
            gram.complete(int(problem.row[c]))
            values = gram.table[gram.slot[problem.row[c]], gram.columns[problem.row[members]]]
        else:
            values = gram.block(problem.row[[c]], problem.row[members])[0]
        gram.count(calls=len(members))
        return np.asarray(values, dtype=np.float64) + problem.shift

    def violator(self, start: int, stop: int, level: float, tol: float) -> tuple[int, float]:
        """The first variable of a range that may move against its excess over the level; -1 if none."""
        state, problem, gram = self.state, self.state.problem, self.state.gram
        idx = self._changed
        delta = state.u[idx] - self.base[idx]
        if self._cached:
            candidates = Candidates(
                state.u, state.g, self.base, problem.lo, problem.hi, problem.ridge, self._member
            )
            changes = Changes(delta, gram.table, gram.slot[problem.row[idx]], gram.columns[problem.row])
            c, excess, calls = _next_violator(candidates, changes, start, stop, level, tol)
            gram.count(calls=calls)
            return int(c), float(excess)
        # Without room for the rows of S: those that violated when all gradients were known.
        for c in start + _violators(state, slice(start, stop), level, tol):
            if self._member[c]:
                continue
            excess = state.g[c] - level + problem.ridge[c] * (state.u[c] - self.base[c])
            if len(idx):
                excess += float(self.column(idx, int(c)) @ delta)
            if _may_move(state.u[c], problem.lo[c], problem.hi[c], excess, tol):
                return int(c), float(excess)
        return -1, 0.0


def _violators(state: State, part: slice, level: float, tol: float) -> Index:
    u, excess = state.u[part], state.g[part] - level
    rises, falls = u < state.problem.hi[part], u > state.problem.lo[part]
    return np.flatnonzero((rises & (excess < -tol)) | (falls & (excess > tol)))


@compiled()
def _may_move(u, lo, hi, excess, tol):
    return (excess < -tol and u < hi) or (excess > tol and u > lo)


@compiled()
def _next_violator(candidates, changes, start, stop, level, tol):
    """See `CandidatePass.violator`; also returns the kernel values used."""
    u, g, base, lo, hi, ridge, member = candidates
    delta, table, slot, column = changes
    calls = 0
    for c in range(start, stop):
        if member[c]:
            continue
        excess = g[c] - level + ridge[c] * (u[c] - base[c])
        for k in range(len(delta)):
            excess += table[slot[k], column[c]] * delta[k]
        calls += len(delta)
        if _may_move(u[c], lo[c], hi[c], excess, tol):
            return c, excess, calls
    return -1, 0.0, calls
