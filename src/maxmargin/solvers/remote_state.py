"""The state of a run whose gradient is kept by other processes, next to the rows that it belongs to.

The variables are here. The gradient is in one of two places: with the rows while the solver takes steps, of
which only extremes, a few violators and the members of the working set come back; or here, while something
needs all entries (a rounding check, the certificate). `RemoteState.g` fetches them, and the next step returns
them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from maxmargin._types import Floats, Index, Mask, RemoteGradient, RemoteReply, Rows
from maxmargin.dual import Dual
from maxmargin.solvers.state import State, Stop


def state_of(problem: Dual, gram: Rows, u: Floats, g: Floats, stop: Stop, warm: ArrayLike | None) -> State:
    """The state of a run over these rows."""
    remote = gram.remote_gradient(problem)
    if remote is None:
        return State(problem, gram, u, g, stop, warm=warm)
    return RemoteState(problem, gram, u, g, stop, warm=warm, remote=remote)


@dataclass
class RemoteState(State):
    """See `State`; entries of the gradient are fetched when all of them are needed."""

    remote: RemoteGradient | None = None

    def __post_init__(self) -> None:
        self._here = True
        self._reply: RemoteReply | None = None
        #: The last step since the point was kept: variables and their values before it.
        self._undo: tuple[Index, Floats] | None = None
        self._wanted, self._rows = 0, self.gram
        super().__post_init__()

    @property  # type: ignore[override, misc]
    def g(self) -> Floats:
        """All entries of the gradient, which are here from now on until the next step."""
        if not self._here:
            assert self.remote is not None
            self._g = self.remote.entries(self.u)
            self._here = True
        return self._g

    @g.setter
    def g(self, entries: Floats) -> None:
        self._g, self._here = entries, True

    def _step(self, idx: Index, delta: Floats, members: Index) -> RemoteReply:
        """Let the other processes move the variables, with all entries of the gradient there."""
        assert self.remote is not None
        if self._here:
            if self._rows is not self.gram:  # replaced by more precise ones
                self.remote, self._rows = self.gram.remote_gradient(self.problem), self.gram
                assert self.remote is not None
            self.remote.put(self.u if not len(idx) else _before(self.u, idx, self._undo), self._g)
            self._here = False
        reply = self.remote.step(self.u, idx, delta, members, self._wanted)
        self._g[reply.ids] = reply.values
        self._reply = reply
        return reply

    def look(self) -> None:
        """See `State.look`."""
        if self._here or self._reply is None:
            super().look()
            return
        self.least, self.most = self._reply.least.copy(), self._reply.most.copy()

    def objective(self) -> float:
        """See `State.objective`."""
        if self._here or self._reply is None:
            return super().objective()
        return 0.5 * (self._reply.product - float(self.u @ self.problem.p))

    def scale(self) -> float:
        """See `State.scale`."""
        return super().scale() if self.problem.self_scaled else self.problem.scale

    def infeasible(self) -> bool:
        """See `State.infeasible`."""
        hard = self.problem.self_scaled or not np.isfinite(self.problem.hi).all()
        return hard and super().infeasible()

    def gradient_at(self, some: Index) -> Floats:
        """See `State.gradient_at`."""
        return self._g[some]

    def violators(self, inside: Mask, wanted: int) -> Index:
        """See `State.violators`."""
        self._wanted = wanted
        if self._here:
            return super().violators(inside, wanted)
        found = self._outside(inside, wanted)
        if not len(found) and np.max(self.most - self.least) > self.target:
            # What was proposed lies outside of the extremes that were known then.
            nothing = np.empty(0, np.intp)
            self._step(nothing, np.empty(0), np.flatnonzero(inside))
            self.look()
            found = self._outside(inside, wanted)
        return found

    def _outside(self, inside: Mask, wanted: int) -> Index:
        """The worst of the violators that came with the last reply."""
        reply, problem = self._reply, self.problem
        assert reply is not None
        out = np.unique(reply.ids[: reply.outside])
        out = out[~inside[out]]
        g, u, group = self._g[out], self.u[out], problem.group[out]
        # The same measure as in `worst_violators`; among so few sorting is quick.
        rising = np.where(u < problem.hi[out], self.most[group] - g, -np.inf)
        falling = np.where(u > problem.lo[out], g - self.least[group], -np.inf)
        chosen = np.zeros(len(out), np.bool_)
        for violation in (rising, falling):
            best = np.argsort(-violation, kind="stable")[:wanted]
            chosen[best[violation[best] > 0]] = True
        return out[chosen]

    def move(self, idx: Index, delta: Floats, members: Index, keep: Mask) -> None:
        """See `State.move`."""
        self._undo = (idx, self.u[idx])
        before = np.count_nonzero(self._undo[1])
        self.set_variables(idx, delta)
        self._step(idx, delta, members)
        self.n_support += int(np.count_nonzero(self.u[idx]) - before)

    def keep(self) -> None:
        """See `State.keep`; without copies while the gradient is elsewhere."""
        if self._here:
            super().keep()
        else:
            assert self.remote is not None
            self.remote.keep()
        self._undo, self._kept_here = None, self._here

    def go_back(self) -> None:
        """See `State.go_back`."""
        if self._kept_here:
            super().go_back()
            return
        if self._undo is not None:
            idx, values = self._undo
            self.u[idx] = values
        assert self.remote is not None
        self.u, self.g = self.remote.undo(self.u)
        self._reply = self._undo = None


def _before(u: Floats, idx: Index, undo: tuple[Index, Floats] | None) -> Floats:
    """The point before the step to u."""
    before = u.copy()
    if undo is not None:
        before[undo[0]] = undo[1]
    return before
