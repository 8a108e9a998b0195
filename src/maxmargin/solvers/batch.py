"""The default solver: two-level decomposition, in batches of kernel rows.

Outer iteration: choose the variables that violate the KKT conditions most and bring them into a working
set of up to 2,048 variables (`working_set`), solve the problem on that set alone (`inner`) with the kernel
values between its members (`block`). Then update the gradient of all variables with the kernel rows of those
that moved: rows come in batches, and are used in batches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.dual import Dual
from maxmargin.solvers.base import Solver, State, Stop
from maxmargin.solvers.small import SmallMachines
from maxmargin.solvers.working_set import LARGEST, WorkingSet


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
        if working_set is not None and not 2 <= working_set <= LARGEST:
            raise ValueError(f"working_set must be between 2 and {LARGEST}, got {working_set!r}.")
        self.working_set = working_set

    def __repr__(self) -> str:
        return f"Batch(working_set={self.working_set})"

    def accepts(self, problem: Dual) -> bool:
        """Any problem whose groups find a place in the working set."""
        return problem.n_groups <= LARGEST // 2

    def begin(self, state: State) -> None:
        """An empty working set and its buffers, in the precision of the rows."""
        old = state.memory.get("set")
        new = state.memory["set"] = WorkingSet(state, self.working_set)
        if old is not None and not new.whole:
            new.enter(old.ids[old.ids >= 0])
        state.memory["progress"] = _Progress()

    def small_machines(self, gram: Any, bounds: NDArray[np.intp], stop: Stop) -> SmallMachines | None:
        """Small machines, each in one compiled call."""
        return SmallMachines.over(gram, bounds, stop) if self.working_set is None else None

    def advance(self, state: State) -> None:
        """One outer iteration."""
        working: WorkingSet = state.memory["set"]
        fresh = 0
        if not working.whole:
            fresh = working.enter(working.candidates(state))
        steps, moved, delta = working.solve(state)
        working.update_gradient(state, moved, delta)
        state.n_iter += max(steps, 1)
        state.stuck = state.memory["progress"].stuck(state, steps, fresh)


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
