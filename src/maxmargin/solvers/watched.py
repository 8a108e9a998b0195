"""A solver with more checkpoints, whose trace makes a line."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from maxmargin import solvers
from maxmargin.dual import Dual
from maxmargin.solvers.base import Solver
from maxmargin.solvers.solution import Floats
from maxmargin.solvers.state import State


class Watched(Solver):
    """Another solver, with checkpoints that are evenly spaced in the logarithm of iterations.

    A solver looks up from its work only so often that it costs nothing: a short run may have one or two
    records, too few for `TraceDisplay`. This one lets it do a share of the iterations so far at a time.
    Looking takes some time, which `seconds` include. MDM and first-order SMO make the same steps as ever;
    other solvers may choose a little differently after a checkpoint.

    Parameters
    ----------
    solver : str or Solver
        The solver to watch.
    pace : float, default=0.2
        Iterations between two checkpoints, relative to those before.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC
    >>> from maxmargin.inspection import Watched
    >>> X, y = load_iris(return_X_y=True)
    >>> seen = SVC(solver=Watched("smo")).fit(X, y > 1)
    >>> len(seen.trace_[0]) > len(SVC(solver="smo").fit(X, y > 1).trace_[0])
    True
    """

    name = "watched"
    about = "another solver, with records that are evenly spaced in the logarithm of iterations"

    def __init__(self, solver: str | Solver, pace: float = 0.2) -> None:
        if not pace > 0:
            raise ValueError(f"pace must be positive, got {pace!r}.")
        self.solver, self.pace = solvers.get(solver), pace

    def __repr__(self) -> str:
        return f"Watched({self.solver!r})"

    def accepts(self, problem: Dual) -> bool:
        """What the solver accepts."""
        return self.solver.accepts(problem)

    def start(self, problem: Dual, warm: ArrayLike | None) -> tuple[Floats, dict[str, Any]]:
        """Where the solver starts."""
        return self.solver.start(problem, warm)

    def begin(self, state: State) -> None:
        """What the solver prepares."""
        self.solver.begin(state)

    def advance(self, state: State) -> None:
        """A share of the iterations so far."""
        state.left = min(state.left, max(1, int(self.pace * state.n_iter)))
        self.solver.advance(state)

    def settle(self, state: State) -> bool:
        """What the solver has put off."""
        return self.solver.settle(state)

    def details(self, state: State) -> dict[str, float]:
        """What the solver tells."""
        return self.solver.details(state)

    def abandon(self, state: State) -> None:
        """What the solver gives back."""
        self.solver.abandon(state)

    def paper_rule(self, state: State) -> float:
        """The solver's own stopping measure."""
        return self.solver.paper_rule(state)
