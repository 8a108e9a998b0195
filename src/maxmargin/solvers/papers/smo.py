r"""Sequential minimal optimisation: two variables of one group at a time.

Paper (selection): S. S. Keerthi, S. K. Shevade, C. Bhattacharyya, K. R. K. Murthy, "Improvements to
Platt's SMO algorithm for SVM classifier design", modification 2 (first order); R.-E. Fan, P.-H. Chen,
C.-J. Lin, "Working set selection using second order information" (second order).

With the gradient :math:`g = Qu - p` a step moves :math:`\delta` from j to i of the same group:

.. math:: \delta = \min\left(\frac{g_j - g_i}{Q_{ii} + Q_{jj} - 2Q_{ij}},\; hi_i - u_i,\; u_j - lo_j\right).

First order takes i = argmin g over what may rise and j = argmax g over what may fall, in the group
where they differ most. Second order keeps i, takes the j of largest decrease
:math:`(g_j - g_i)^2 / (Q_{ii} + Q_{jj} - 2Q_{ij})`, and compares the groups by that decrease. A
curvature that is not positive (equal points, indefinite kernels) becomes a small positive number.

The second order on the All-Distances dual is Algorithm 1.1 of its paper with what its text adds, see
`_selection`; `selection="paper"` is Algorithm 1.1 as printed.

Kernel calls per iteration: 2m (first order), 3m (second order), as the papers count; a step along a cycle
of M variables (see `maxmargin.solvers.papers._cycles`) takes M m and includes the last pair step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._types import Floats, Index
from maxmargin.dual import Dual
from maxmargin.solvers import costs
from maxmargin.solvers.base import Solver
from maxmargin.solvers.papers._cycles import Cycles
from maxmargin.solvers.papers._fetch import Turn, check_room, least_curvature, run
from maxmargin.solvers.papers._selection import Variables
from maxmargin.solvers.papers._smo_steps import FIRST_ORDER, PRINTED, SECOND_ORDER, STAGED, Rule, pair_steps
from maxmargin.solvers.state import State

_RULES = {"first-order": FIRST_ORDER, "second-order": SECOND_ORDER, "staged": STAGED, "paper": PRINTED}


@dataclass
class SMOWork:
    """Constants of a run, for compiled code."""

    diag: Floats
    #: The least curvature of a step.
    tau: float
    #: Columns of the variables in kernel rows.
    columns: Index
    #: The largest decrease found so far by the staged selection.
    found: Floats
    #: Recent steps, in which cycles are looked for.
    cycles: Cycles


class SMO(Solver[SMOWork]):
    """Pair steps on cached kernel rows; the reference that other solvers are compared with.

    Parameters
    ----------
    selection : {"second-order", "first-order", "staged", "paper"}
        How the pair is chosen. "staged" is the second order of the All-Distances dual for any other; "paper"
        is the selection (8) of its paper with the argmin only, as printed in Algorithm 1.1, without cooling.
    prefetch : int
        When a row is missing, rows of this many further violators are computed with it. 0 computes
        no row that is not used.
    accelerate : bool
        Whether to step along the cycles in which pair steps repeat themselves.
    cooling : float
        For the second order on the All-Distances dual, in [0, 1]: the share of the violation of all variables
        at which the free ones are left. 0 is the paper's algorithm; with 1 all are looked at in every step.

    Examples
    --------
    >>> from maxmargin import dual
    >>> from maxmargin.gram import Gram
    >>> from maxmargin.solvers import SMO, Stop
    >>> gram = Gram([[0.0], [1.0], [3.0]], kernel="linear", dtype="float64")
    >>> solution = SMO("first-order").solve(dual.c_svc([-1, -1, 1], C=10.0), gram)
    >>> solution.status, solution.u.round(3)
    (<Status.SOLVED: 'solved'>, array([ 0. , -0.5,  0.5]))
    """

    name = "smo"
    about = "Keerthi et al. 2001 (most violating pair), Fan et al. 2005 (second order)"

    def __init__(
        self,
        selection: str = "second-order",
        prefetch: int = costs.PREFETCH,
        accelerate: bool = False,
        cooling: float = 0.5,
    ) -> None:
        if selection not in _RULES:
            raise ValueError(
                f"selection must be 'first-order', 'second-order', 'staged' or 'paper', got {selection!r}."
            )
        if not 0 <= cooling <= 1:
            raise ValueError(f"cooling must be between 0 and 1, got {cooling!r}.")
        self.selection, self.prefetch, self.accelerate = selection, prefetch, bool(accelerate)
        self.cooling = 0.0 if selection == "paper" else float(cooling)

    def __repr__(self) -> str:
        more = ", accelerate=True" if self.accelerate else ""
        return f"SMO(selection={self.selection!r}{more})"

    def begin(self, state: State) -> SMOWork:
        """Diagonal, curvature floor and columns of the variables."""
        problem, gram = state.problem, state.gram
        diag = problem.diag(gram)
        rule = self._rule(problem)
        rows = 2 if rule == FIRST_ORDER else 1 + problem.n_groups * (2 if rule == STAGED else 1)
        rows = min(rows, len(np.unique(problem.row)))
        check_room(gram, rows, "SMO")
        return SMOWork(
            diag=diag,
            tau=least_curvature(diag, gram),
            columns=gram.columns[problem.row],
            found=np.full(1, np.inf),
            cycles=Cycles.of(problem.m if self.accelerate else 0),
        )

    def advance(self, state: State, work: SMOWork) -> None:
        """Pair steps until a row is missing (fetched, then on) or a slice of the budget is used."""
        problem, gram = state.problem, state.gram

        kind = self._rule(problem)
        rule = Rule(kind, self._target(state), work.tau, self.cooling, work.found)
        reserved = problem.n_groups if kind == SECOND_ORDER else 0  # rows that the selection needs too

        def steps(there: Any, turn: Turn) -> None:
            variables = Variables(
                problem.lo, problem.hi, problem.ridge, problem.group, problem.n_groups, problem.label,
                problem.coupling, problem.shift, work.diag, gram.table, gram.slot[problem.row], there,
                work.columns,
            )  # fmt: skip
            pair_steps(variables, state.u, state.g, rule, work.cycles, gram.capacity - reserved, turn)

        run(state, steps, 2 * problem.n_groups + (1024 if self.accelerate else 1), self.prefetch)

    def _rule(self, problem: Dual) -> int:
        """The rule of selection; the second order of more than two coupled classes is the staged one."""
        if self.selection == "second-order" and problem.class_hulls and not self.accelerate:
            return STAGED
        return _RULES[self.selection]

    def _target(self, state: State) -> float:
        return 2.0 * state.stop.tol if state.stop.criterion == "paper" else state.target

    def paper_rule(self, state: State, work: SMOWork) -> float:
        """Half of the widest range of gradients, which is to be at most tau."""
        return 0.5 * float(np.max(state.most - state.least, initial=0.0))
