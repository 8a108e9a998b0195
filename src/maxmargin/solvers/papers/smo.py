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

The second order on the All-Distances dual is Algorithm 1.1 of its paper, see `_staged`.

Kernel calls per iteration: 2m (first order), 3m (second order), as the papers count; a step along a cycle
of M variables (see `maxmargin.solvers.papers._cycles`) takes M m and includes the last pair step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._compiled.jit import compiled
from maxmargin._types import Floats, Index
from maxmargin.dual import Dual
from maxmargin.solvers.base import Solver
from maxmargin.solvers.papers import _cycles as cy
from maxmargin.solvers.papers._cycles import Cycles
from maxmargin.solvers.papers._fetch import CALLS, ITERATIONS, NEEDED, STUCK, check_room, least_curvature, run
from maxmargin.solvers.papers._staged import staged_steps
from maxmargin.solvers.state import State


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
    selection : {"second-order", "first-order"}
        How the pair is chosen.
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
        prefetch: int = 16,
        accelerate: bool = False,
        cooling: float = 0.5,
    ) -> None:
        if selection not in ("first-order", "second-order"):
            raise ValueError(f"selection must be 'first-order' or 'second-order', got {selection!r}.")
        if not 0 <= cooling <= 1:
            raise ValueError(f"cooling must be between 0 and 1, got {cooling!r}.")
        self.selection, self.prefetch, self.accelerate = selection, prefetch, bool(accelerate)
        self.cooling = float(cooling)

    def __repr__(self) -> str:
        more = ", accelerate=True" if self.accelerate else ""
        return f"SMO(selection={self.selection!r}{more})"

    def begin(self, state: State) -> SMOWork:
        """Diagonal, curvature floor and columns of the variables."""
        problem, gram = state.problem, state.gram
        diag = problem.diag(gram)
        staged = self._staged(problem)
        rows = 2 if self.selection == "first-order" else 1 + problem.n_groups * (2 if staged else 1)
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

        def steps(there: Any, budget: int, need: Any, report: Any) -> None:
            given = (
                state.u, state.g, problem.lo, problem.hi, problem.ridge, problem.group,
                problem.n_groups, problem.label, problem.coupling, problem.shift, work.diag,
                gram.table, gram.slot[problem.row], there, work.columns,
            )  # fmt: skip
            if self._staged(problem):
                staged_steps(
                    *given, budget, self._target(state), work.tau, self.cooling, work.found,
                    need, report,
                )  # fmt: skip
                return
            _pair_steps(
                *given, self.selection == "second-order", budget, self._target(state), work.tau,
                self.accelerate, work.cycles, gram.capacity, need, report,
            )  # fmt: skip

        run(state, steps, 2 * problem.n_groups + (1024 if self.accelerate else 1), self.prefetch)

    def _staged(self, problem: Dual) -> bool:
        return problem.name == "all_distances" and self.selection == "second-order" and not self.accelerate

    def _target(self, state: State) -> float:
        return 2.0 * state.stop.tol if state.stop.criterion == "paper" else state.target

    def paper_rule(self, state: State, work: SMOWork) -> float:
        """Half of the widest range of gradients, which is to be at most tau."""
        return 0.5 * float(np.max(state.most - state.least, initial=0.0))


@compiled()
def _pair_steps(  # type: ignore[no-untyped-def]
    u, g, lo, hi, ridge, group, n_groups, label, coupling, shift, diag, table, slot, there, column,
    second_order, budget, target, tau, accelerate, cycles, capacity, need, report,
):  # fmt: skip
    """Up to `budget` pair steps; stops early at the target or when the rows in `need` are missing."""
    m = len(u)
    least, most = np.empty(n_groups), np.empty(n_groups)
    first, last = np.empty(n_groups, np.int64), np.empty(n_groups, np.int64)
    while report[ITERATIONS] < budget:
        least[:] = np.inf
        most[:] = -np.inf
        first[:] = -1
        last[:] = -1
        for t in range(m):
            k = group[t]
            if u[t] < hi[t] and g[t] < least[k]:
                least[k] = g[t]
                first[k] = t
            if u[t] > lo[t] and g[t] > most[k]:
                most[k] = g[t]
                last[k] = t
        worst = 0
        for k in range(1, n_groups):
            if most[k] - least[k] > most[worst] - least[worst]:
                worst = k
        if not most[worst] - least[worst] > target:
            return
        i, j = first[worst], last[worst]
        if second_order:
            for k in range(n_groups):
                if most[k] - least[k] > target and not there[first[k]]:
                    need[report[NEEDED]] = first[k]
                    report[NEEDED] += 1
            if report[NEEDED] > 0:
                return
            best = -1.0
            for t in range(m):
                k = group[t]
                if most[k] - least[k] > target and u[t] > lo[t]:
                    b = g[t] - least[k]
                    if b > 0:
                        s = first[k]
                        kernel = table[slot[s], column[t]] + shift
                        a = diag[s] + diag[t] - 2.0 * coupling[label[s], label[t]] * kernel
                        gain = b * b / max(a, tau)
                        if gain > best:
                            best = gain
                            i, j = s, t
        if not there[i]:
            need[report[NEEDED]] = i
            report[NEEDED] += 1
        if not there[j]:
            need[report[NEEDED]] = j
            report[NEEDED] += 1
        if report[NEEDED] > 0:
            return

        row_i, row_j = table[slot[i]], table[slot[j]]
        a = diag[i] + diag[j] - 2.0 * coupling[label[i], label[j]] * (row_i[column[j]] + shift)
        d = (g[j] - g[i]) / max(a, tau)
        room_i, room_j = hi[i] - u[i], u[j] - lo[j]
        d = min(d, min(room_i, room_j))
        before_i, before_j = u[i], u[j]
        u[i] = hi[i] if d == room_i else u[i] + d
        u[j] = lo[j] if d == room_j else u[j] - d
        if u[i] == before_i and u[j] == before_j:
            report[STUCK] = 1
            return
        ci, cj = label[i], label[j]
        size, along = 0, 0.0
        if accelerate:
            gain = d * (g[j] - g[i] - 0.5 * d * max(a, tau))
            k = cy.closed(cycles, i, j)
            if k > 0 and report[ITERATIONS] + 2 <= budget:
                size = cy.collapse(cycles, k, i, j, d)
                slope = 0.0
                for h in range(size):
                    t = cycles.members[h]
                    to_i = coupling[label[t], ci] * (row_i[column[t]] + shift) if h != 0 else diag[t]
                    to_j = coupling[label[t], cj] * (row_j[column[t]] + shift) if h != 1 else diag[t]
                    slope -= cycles.mu[h] * (g[t] + d * (to_i - to_j))
                report[CALLS] += 2 * size
                reserved = n_groups if second_order else 0  # rows that the selection needs beside these
                along, _, report[NEEDED] = cy.plan(
                    cycles, k, size, slope, gain, u, lo, hi, there, capacity - reserved, need
                )
                if report[NEEDED] > 0:  # once they are there, the same step is found again
                    u[i], u[j] = before_i, before_j
                    return
            if along == 0.0:
                cy.remember(cycles, i, j, d, gain)
        if along > 0.0:
            cy.move(cycles, size, along, u, lo, hi)
            cycles.mu[0] += d
            cycles.mu[1] -= d
            for h in range(size):
                s, change = cycles.members[h], cycles.mu[h]
                row, c = table[slot[s]], label[s]
                for t in range(m):
                    g[t] += change * coupling[label[t], c] * (row[column[t]] + shift)
                g[s] += change * ridge[s]
            cy.forget(cycles)
            report[ITERATIONS] += 2
            report[CALLS] += (size + (1 if second_order else 0)) * m
            continue
        for t in range(m):
            g[t] += d * (
                coupling[label[t], ci] * (row_i[column[t]] + shift)
                - coupling[label[t], cj] * (row_j[column[t]] + shift)
            )
        g[i] += d * ridge[i]
        g[j] -= d * ridge[j]
        report[ITERATIONS] += 1
        report[CALLS] += (3 if second_order else 2) * m
