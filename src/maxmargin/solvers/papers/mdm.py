r"""The Mitchell-Demyanov-Malozemov algorithm, plain and accelerated by cycles.

Paper: Á. Barbero, J. López, J. R. Dorronsoro, "An Accelerated MDM Algorithm for SVM Training".

W is a point of the hull of the vertices :math:`z_j`, with margins :math:`d_j = \langle W, z_j\rangle`. A step
moves weight from the worst vertex that has any to the best one,

.. math::

    L = \arg\min_j d_j,\quad U = \arg\max_{\alpha_j > 0} d_j,\quad
    \lambda = \min\left(\alpha_U, \frac{d_U - d_L}{\|z_L - z_U\|^2}\right),\quad
    W \leftarrow W + \lambda(z_L - z_U),

and training stops at :math:`d_U - d_L \le \gamma\|W\|^2`. With two hulls, or K, the step is made in the one
where :math:`d_U - d_L` is largest.

**Relatives.** The margins are the gradient of the dual, so L and U are the pair that violates its
optimality most: MDM is SMO with Keerthi's modification 2 on the minimum-norm dual (the paper's section 2),
and with one hull per class on the dual of the nearest points. Joachims' SVMlight with working sets of q = 2
chooses the feasible direction with two non-zero entries along which the dual falls fastest: that is the
same pair again. The paper's rule for U before it drops the denominator, :math:`\arg\max_j (d_j -
d_L)^2/\|z_L - z_j\|^2`, is the second-order selection of Fan, Chen and Lin.

**Acceleration.** See `maxmargin.solvers.papers._cycles`, for ours (``accelerate=True``) and for the published
form (``accelerate="paper"``). Kernel calls are counted as in the paper: 2N for a plain step (3N with
second-order selection), M N for a step along a cycle of M vectors, which in our form includes the last plain
step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from maxmargin._compiled.intrinsics import fmax, raised
from maxmargin._compiled.jit import REORDER, compiled
from maxmargin._types import Floats
from maxmargin.dual import Dual
from maxmargin.solvers.pairs import move_pair
from maxmargin.solvers.papers import _cycles as cy
from maxmargin.solvers.papers._cycles import Cycles
from maxmargin.solvers.papers._hull import (
    BAR,
    CALLS,
    ITERATIONS,
    NEEDED,
    STUCK,
    HullSolver,
    HullWork,
    add_vertices,
    barred,
    missing,
    no_extremes,
    product,
    select,
)
from maxmargin.solvers.state import State


@dataclass
class MDMWork(HullWork):
    """Also: the recent steps, in which cycles are looked for."""

    cycles: Cycles


class Rule(NamedTuple):
    """How vertices are selected, and until when."""

    second_order: bool
    #: Difference of margins at which the steps end, relative to ||W||^2.
    relative: float
    #: Least curvature of a step.
    tau: float


class Box(NamedTuple):
    """Bounds of the weights."""

    lo: Floats
    hi: Floats


class MDM(HullSolver[MDMWork]):
    """Moves weight between two vertices of a hull at a time; removes what was chosen wrongly.

    Parameters
    ----------
    accelerate : bool or "paper"
        Whether to step along the cycles in which plain steps repeat themselves. With "paper" exactly as
        published: whenever the same pair comes again, and instead of that step.
    selection : {"margin", "second-order"}
        How the vertex that loses weight is chosen.
    by_pair : bool
        A cycle closes when the same pair comes again, as in the paper, not already when the same vector
        enters again. With ``accelerate="paper"`` it always does.

    Examples
    --------
    >>> from maxmargin import dual
    >>> from maxmargin.gram import Gram
    >>> from maxmargin.solvers import MDM
    >>> gram = Gram([[0.0], [1.0], [3.0]], kernel="linear", dtype="float64")
    >>> solution = MDM(accelerate=True).solve(dual.nearest_points([-1, -1, 1]), gram)
    >>> solution.status, solution.u
    (<Status.SOLVED: 'solved'>, array([0., 1., 1.]))
    """

    name = "mdm"
    about = "Barbero, López, Dorronsoro 2008: minimum-norm point, with cycles collapsed"

    def __init__(
        self, accelerate: bool | str = False, selection: str = "margin", *, by_pair: bool = False
    ) -> None:
        if isinstance(accelerate, str) and accelerate != "paper":
            raise ValueError(f"accelerate must be True, False or 'paper', got {accelerate!r}.")
        if selection not in ("margin", "second-order"):
            raise ValueError(f"selection must be 'margin' or 'second-order', got {selection!r}.")
        self.accelerate = accelerate if isinstance(accelerate, str) else bool(accelerate)
        self.selection, self.by_pair = selection, bool(by_pair)

    def __repr__(self) -> str:
        return f"MDM(accelerate={self.accelerate!r}, selection={self.selection!r})"

    def begin(self, state: State) -> MDMWork:
        """The hulls, and no steps yet of which a cycle could be made."""
        m = state.problem.m if self.accelerate else 0
        cycles = Cycles.of(m, by_pair=self.by_pair, published=self.accelerate == "paper")
        return MDMWork(**vars(self._hulls(state)), cycles=cycles)

    def _rows_at_once(self, problem: Dual) -> int:
        return 2 if self.selection == "margin" else 1 + problem.n_groups

    def _most_needed(self, problem: Dual) -> int:
        return 1024

    def _steps(self, state: State, work: MDMWork, hulls: Any, u: Any, g: Any, *rest: Any) -> None:
        square, relative, turn = rest
        problem, second_order = state.problem, self.selection == "second-order"
        rule = Rule(second_order, relative, work.tau)
        box = Box(problem.lo[work.order], problem.hi[work.order])
        reserved = problem.n_groups if second_order else 0  # rows that the selection needs too
        most_rows = state.gram.capacity - reserved
        _pair_steps(hulls, box, u, g, square, rule, work.cycles, most_rows, turn)


@compiled(fastmath=REORDER)
def _second_order(hulls, g, bar, start, end, lower, tau, gains):
    """The vertex U of largest decrease for a given L, and that decrease (twice)."""
    own = hulls.hull[lower]
    low, diag, twice = g[lower], hulls.diag[lower], 2.0 * hulls.sign[lower] * hulls.coupling[own, own]
    row = hulls.table[hulls.slot[lower]]
    some, allowed, sign = g[start:end], bar[start:end], hulls.sign[start:end]
    others, column = hulls.diag[start:end], hulls.column[start:end]
    if hulls.direct:
        line = row[start:end]
        for t in range(len(some)):
            gains[t] = line[t]
    else:
        for t in range(len(some)):
            gains[t] = row[column[t]]
    best = 0.0
    for t in range(len(some)):
        b = fmax(some[t] - low + allowed[t], 0.0)
        a = diag + others[t] - twice * sign[t] * (gains[t] + hulls.shift)
        gains[t] = b * b / fmax(a, tau)
        best = fmax(best, gains[t])
    upper = len(some) - 1
    for t in range(len(some)):  # without a jump, so that it is vectorised
        upper = min(upper, t if gains[t] == best else len(some))
    return start + upper, best


@compiled()
def _pair_steps(hulls, box, u, g, square, rule, cycles, most_rows, turn):
    """Up to `budget` steps; stops early at the tolerance or when the rows in `need` are missing.

    Cycles without room for any variable are not used. A step along one may read `most_rows` rows.
    """
    m, n_hulls, accelerate = len(u), len(hulls.starts) - 1, len(cycles.latest) > 0
    second_order, relative, tau = rule
    budget, need, report, flag = turn
    bar, extremes = barred(u), no_extremes(n_hulls)
    gains = np.empty(m if second_order else 0)
    while report[ITERATIONS] < budget and not raised(flag):
        select(hulls, g, bar, extremes)
        widest, largest = -1.0, -1.0
        lower = upper = np.int64(0)  # of a literal 0 Numba would make further versions of all that is called
        for k in range(n_hulls):
            width = extremes.most[k] - extremes.least[k]
            if width > widest:
                widest = width
                if not second_order:
                    lower, upper = extremes.first[k], extremes.last[k]
            if second_order and width > relative * square:
                first = extremes.first[k]
                missing(hulls, first, need, report)
                if hulls.there[first]:
                    start, end = hulls.starts[k], hulls.starts[k + 1]
                    last, gain = _second_order(hulls, g, bar, start, end, first, tau, gains)
                    if gain > largest:
                        largest, lower, upper = gain, first, last
        if not widest > relative * square:
            return
        if report[NEEDED] == 0:
            missing(hulls, lower, need, report)
            missing(hulls, upper, need, report)
        if report[NEEDED] > 0:
            return

        step, gain, size, along, more = 0.0, 0.0, 0, 0.0, 0.0
        if cycles.published:  # instead of the step
            size, along, more = cy.look_published(
                hulls, cycles, lower, upper, u, g, box.lo, box.hi, most_rows, turn
            )
            if report[NEEDED] > 0:  # once they are there, the same step is found again
                return
        if along == 0.0:
            delta = g[upper] - g[lower]
            curvature = max(hulls.diag[lower] + hulls.diag[upper] - 2.0 * product(hulls, lower, upper), tau)
            before_lower, before_upper = u[lower], u[upper]
            step, moved = move_pair(u, lower, upper, delta / curvature, np.inf, 0.0)
            if not moved:
                report[STUCK] = 1
                return
            gain = step * (delta - 0.5 * step * curvature)
            if accelerate and not cycles.published:  # after the step
                size, along, more = cy.look(
                    hulls, cycles, lower, upper, step, gain, u, g, box.lo, box.hi, most_rows, turn
                )
                if report[NEEDED] > 0:  # as above
                    u[lower], u[upper] = before_lower, before_upper
                    return
                report[ITERATIONS] += 1 if along > 0.0 else 0
        if along > 0.0:
            cy.move(cycles, size, along, u, box.lo, box.hi)
            cycles.mu[0] += step
            cycles.mu[1] -= step
            for h in range(0, size - 1, 2):
                i, j = cycles.members[h], cycles.members[h + 1]
                add_vertices(hulls, g, i, j, cycles.mu[h], cycles.mu[h + 1])
            if size % 2:
                i = cycles.members[size - 1]
                add_vertices(hulls, g, i, i, cycles.mu[size - 1], 0.0)
            for h in range(size):
                t = cycles.members[h]
                bar[t] = 0.0 if u[t] > 0.0 else BAR
            cy.forget(cycles)
            report[CALLS] += (size + (1 if second_order else 0)) * m
            square -= 2.0 * more
        else:
            bar[lower] = 0.0
            bar[upper] = 0.0 if u[upper] > 0.0 else BAR
            add_vertices(hulls, g, lower, upper, step, -step)
            if accelerate:
                cy.remember(cycles, lower, upper, step, gain)
            report[CALLS] += (3 if second_order else 2) * m
        report[ITERATIONS] += 1
        square -= 2.0 * gain
