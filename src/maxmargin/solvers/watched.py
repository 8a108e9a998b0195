"""A recording wrapper: another solver with more checkpoints, so that its trace can be drawn as a curve."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from maxmargin import solvers
from maxmargin._types import Floats
from maxmargin.dual import Dual
from maxmargin.solvers.base import Solver
from maxmargin.solvers.state import State


class Watched(Solver[Any]):
    """Another solver, with checkpoints that are evenly spaced in the logarithm of iterations.

    Solvers choose their checkpoints so rarely that these cost nothing: a short run may have one or two
    records, too few for `TraceDisplay`. This wrapper records a run more often: it sets a checkpoint whenever
    the number of iterations has grown by the fraction `pace`. Checkpoints take some time, which `seconds`
    include. MDM and first-order SMO take the same steps as without it; other solvers may choose slightly
    different ones after a checkpoint.

    Parameters
    ----------
    solver : str or Solver
        The solver whose run is recorded.
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

    def __init__(self, solver: str | Solver[Any], pace: float = 0.2) -> None:
        if not pace > 0:
            raise ValueError(f"pace must be positive, got {pace!r}.")
        self.solver, self.pace = solvers.get(solver), pace

    def __repr__(self) -> str:
        return f"Watched({self.solver!r})"

    def accepts(self, problem: Dual) -> bool:
        """See `Solver.accepts`."""
        return self.solver.accepts(problem)

    def start(self, problem: Dual, warm: ArrayLike | None) -> Floats:
        """See `Solver.start`."""
        return self.solver.start(problem, warm)

    def begin(self, state: State) -> Any:
        """See `Solver.begin`."""
        return self.solver.begin(state)

    def rows_replaced(self, state: State, work: Any) -> Any:
        """See `Solver.rows_replaced`."""
        return self.solver.rows_replaced(state, work)

    def advance(self, state: State, work: Any) -> None:
        """A share of the iterations so far."""
        state.left = min(state.left, max(1, int(self.pace * state.n_iter)))
        self.solver.advance(state, work)

    def reconstruct(self, state: State, work: Any) -> bool:
        """See `Solver.reconstruct`."""
        return self.solver.reconstruct(state, work)

    def details(self, state: State, work: Any) -> dict[str, float]:
        """See `Solver.details`."""
        return self.solver.details(state, work)

    def abandon(self, state: State, work: Any) -> None:
        """See `Solver.abandon`."""
        self.solver.abandon(state, work)

    def paper_rule(self, state: State, work: Any) -> float:
        """See `Solver.paper_rule`."""
        return self.solver.paper_rule(state, work)
