"""Shrinking: keep the gradient of the active variables only, and reconstruct the others' before it ends.

As a run goes on, most variables are at a bound, with a gradient that keeps them there by a margin. The
gradient of those is not updated: kernel rows then have a column for each active variable only, a fraction of
the whole, in a Gram matrix of their own. The gradient of the others is reconstructed in one pass
(`Shrunk.reconstruct`) before anything is claimed, and whenever the violation has fallen so far that the
active variables should be chosen again.
"""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.jit import compiled
from maxmargin._types import Floats, Index, Rows
from maxmargin.dual import widest
from maxmargin.solvers import costs
from maxmargin.solvers.state import Anchor, State

# A gradient at which a variable stays at its bound.
_AT_REST = 1e30


class Shrunk:
    """The active variables, their Gram matrix, and the point at which the others were left."""

    def __init__(self, state: State, active: Index, gram: Rows) -> None:
        self.active, self.gram = active, gram
        self.position = np.full(state.problem.m, -1)
        self.position[active] = np.arange(len(active))
        self.began = widest(state.least, state.most)
        self.until = costs.SHRINK_FALL * self.began
        state.anchor = Anchor(state.u.copy(), state.g.copy(), state.objective())
        # Their old gradients no longer hold; these keep them from being selected.
        others = self.position < 0
        state.g[others] = np.where(state.u[others] < state.problem.hi[others], _AT_REST, -_AT_REST)

    @staticmethod
    def of(state: State, expected: float) -> Shrunk | None:
        """The active variables, if they are few enough for the iterations still expected."""
        problem, gram = state.problem, state.gram
        simple = problem.plain and not problem.shift and not problem.self_scaled
        if expected < costs.SHRINK_WORTH or problem.m < costs.SHRINK_FROM or not simple:
            return None
        # The gap needs all gradients at every checkpoint.
        if state.stop.criterion in ("gap", "both") or not np.isfinite(state.most - state.least).all():
            return None
        active = _active(
            state.g,
            state.u,
            problem.lo,
            problem.hi,
            problem.group,
            state.least,
            state.most,
            costs.SHRINK_MARGIN,
        )
        if len(active) > costs.SHRINK_SHARE * problem.m:
            return None
        part = gram.part(active)
        return None if part is None else Shrunk(state, active, part)

    def update(self, g: Floats, idx: Index, delta: Floats, state: State) -> None:
        """Update the gradient of the active variables for a change of some of them."""
        change = np.zeros(len(self.active))
        self.gram.add(change, self.position[idx], delta, tally=state.gram)
        g[self.active] += change
        g[idx] += state.problem.ridge[idx] * delta

    @staticmethod
    def reconstruct(state: State) -> None:
        """Bring the gradient of all variables up to date."""
        anchor = state.anchor
        assert anchor is not None
        delta = state.u - anchor.u
        moved = np.flatnonzero(delta)
        state.g = anchor.g.copy()
        # The part's cache is still there: keep no rows.
        nothing = np.zeros(len(moved), np.bool_)
        state.problem.update(state.g, moved, delta[moved], state.gram, nothing)
        state.gram.reopen()
        state.anchor = None
        state.keep()


@compiled()
def _active(g, u, lo, hi, group, least, most, margin):
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
