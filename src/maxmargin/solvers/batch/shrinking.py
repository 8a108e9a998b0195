"""Shrinking: work on the variables that matter, and put off what the others must be told.

As a run goes on, most variables sit at a bound and are content with it by a margin. The gradient of those is
not kept up to date: kernel rows then have a column for each of the others only, a fraction of the whole, in
a Gram matrix of their own. What was put off is made good in one go (`Focus.settle`) before anything is
claimed, and whenever the violation has fallen far enough that the choice should be made anew.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.jit import compiled
from maxmargin.dual import widest
from maxmargin.gram.gram import Gram
from maxmargin.solvers.state import Anchor, State

# Below this number of variables there is nothing to gain.
_SMALLEST = 4096
# Share of the variables up to which the others are left behind, and iterations that must be expected then.
_SHARE, _WORTH = 0.4, 20.0
# A gradient at which a variable stays where it is.
_CONTENT = 1e30
# How far beyond the range of the violators, in units of its width, a variable is still watched.
_MARGIN = 0.5
# What the violation must have fallen by before the choice is made anew.
_FALL = 0.1


class Focus:
    """The watched variables, their Gram matrix, and where everything stood when the others were left."""

    def __init__(self, state: State, watched: NDArray[np.intp], gram: Gram) -> None:
        self.watched, self.gram = watched, gram
        self.position = np.full(state.problem.m, -1)
        self.position[watched] = np.arange(len(watched))
        self.began = widest(state.least, state.most)
        self.until = _FALL * self.began
        state.anchor = Anchor(state.u.copy(), state.g.copy(), state.objective())
        # Until they are told, the others are content: no one looks at a number that no longer holds.
        others = self.position < 0
        state.g[others] = np.where(state.u[others] < state.problem.hi[others], _CONTENT, -_CONTENT)

    @staticmethod
    def on(state: State, expected: float) -> Focus | None:
        """A focus on what matters now, if that is little enough for the iterations still expected."""
        problem, gram = state.problem, state.gram
        simple = problem.plain and not problem.shift and not problem.self_scaled and type(gram) is Gram
        if expected < _WORTH or problem.m < _SMALLEST or not simple or gram.kernel.name == "precomputed":
            return None
        # The gap needs all gradients at every checkpoint.
        if state.stop.criterion == "gap" or not np.isfinite(state.most - state.least).all():
            return None
        watched = _watched(
            state.g, state.u, problem.lo, problem.hi, problem.group, state.least, state.most, _MARGIN
        )
        if len(watched) > _SHARE * problem.m:
            return None
        return Focus(state, watched, gram.part(watched))

    def update(
        self, g: NDArray[np.float64], idx: NDArray[np.intp], delta: NDArray[np.float64], state: State
    ) -> None:
        """Change the gradient of the watched variables for a change of some of them."""
        change = np.zeros(len(self.watched))
        self.gram.add(change, self.position[idx], delta, tally=state.gram)
        g[self.watched] += change
        g[idx] += state.problem.ridge[idx] * delta

    @staticmethod
    def settle(state: State) -> None:
        """Bring the gradient of all variables up to date."""
        anchor = state.anchor
        assert anchor is not None
        delta = state.u - anchor.u
        moved = np.flatnonzero(delta)
        state.g = anchor.g.copy()
        # The part's cache is still there: keep nothing.
        nothing = np.zeros(len(moved), np.bool_)
        state.problem.update(state.g, moved, delta[moved], state.gram, nothing)
        state.gram.reopen()
        state.anchor = None
        state.keep()


@compiled()
def _watched(g, u, lo, hi, group, least, most, margin):  # type: ignore[no-untyped-def]
    """Variables that are free, or whose gradient is not clearly on the right side of the others'."""
    out = np.empty(len(u), np.intp)
    n = 0
    for t in range(len(u)):
        k = group[t]
        pad = margin * (most[k] - least[k])
        if (u[t] < hi[t] and g[t] < most[k] + pad) or (u[t] > lo[t] and g[t] > least[k] - pad):
            out[n] = t
            n += 1
    return out[:n]
