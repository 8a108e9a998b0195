"""The steps of SMO over cached kernel rows, for any rule of selection, with or without cycles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin._compiled.intrinsics import raised
from maxmargin._compiled.jit import compiled
from maxmargin._types import Floats
from maxmargin.solvers.pairs import move_pair
from maxmargin.solvers.papers import _cycles as cy
from maxmargin.solvers.papers._fetch import CALLS, ITERATIONS, NEEDED, STUCK
from maxmargin.solvers.papers._selection import curvature, most_violating, second_order, staged

#: Rules of selection, see `maxmargin.solvers.papers._selection`.
FIRST_ORDER, SECOND_ORDER, STAGED, PRINTED = range(4)


class Rule(NamedTuple):
    """How pairs are selected, and until when."""

    #: One of the rules above.
    kind: int
    #: Violation at which the steps end.
    target: float
    #: Least curvature of a step.
    tau: float
    #: Parameters of the staged selection, see `maxmargin.solvers.papers._selection.staged`.
    cooling: float
    found: Floats


@compiled()
def pair_steps(v, u, g, rule, cycles, most_rows, turn):
    """Pair steps up to the budget; stops early at the target or when the rows in `need` are missing.

    Cycles without room for any variable are not used. A step along one may read `most_rows` rows.
    """
    m, accelerate = len(u), len(cycles.latest) > 0
    kind, target, tau, cooling, found = rule
    budget, need, report, flag = turn
    first, last = np.empty(v.n_groups, np.int64), np.empty(v.n_groups, np.int64)
    while report[ITERATIONS] < budget and not raised(flag):
        if kind >= STAGED:
            both = kind == STAGED
            i, j, looked = staged(v, u, g, first, last, target, tau, cooling, both, found, need, report)
        elif kind == SECOND_ORDER:
            i, j, looked = second_order(v, u, g, first, last, target, tau, need, report)
        else:
            i, j, looked = most_violating(v, u, g, first, last, target)
        if i < 0:
            return
        if not v.there[i]:
            need[report[NEEDED]] = i
            report[NEEDED] += 1
        if not v.there[j]:
            need[report[NEEDED]] = j
            report[NEEDED] += 1
        if report[NEEDED] > 0:
            return
        a = max(curvature(v, i, j), tau)
        before_i, before_j = u[i], u[j]
        d, moved = move_pair(u, i, j, (g[j] - g[i]) / a, v.hi[i], v.lo[j])
        if not moved:
            report[STUCK] = 1
            return
        size, along = 0, 0.0
        if accelerate:
            gain = d * (g[j] - g[i] - 0.5 * d * a)
            size, along, _ = cy.look(v, cycles, i, j, d, gain, u, g, v.lo, v.hi, most_rows, turn)
            if report[NEEDED] > 0:  # once they are there, the same step is found again
                u[i], u[j] = before_i, before_j
                return
            if along == 0.0:
                cy.remember(cycles, i, j, d, gain)
        if along > 0.0:
            cy.move(cycles, size, along, u, v.lo, v.hi)
            cycles.mu[0] += d
            cycles.mu[1] -= d
            for h in range(size):
                _add_row(v, g, cycles.members[h], cycles.mu[h])
            cy.forget(cycles)
            report[ITERATIONS] += 2
            report[CALLS] += size * m + looked
            continue
        row_i, row_j, ci, cj = v.table[v.slot[i]], v.table[v.slot[j]], v.label[i], v.label[j]
        for t in range(m):
            g[t] += d * (
                v.coupling[v.label[t], ci] * (row_i[v.column[t]] + v.shift)
                - v.coupling[v.label[t], cj] * (row_j[v.column[t]] + v.shift)
            )
        g[i] += d * v.ridge[i]
        g[j] -= d * v.ridge[j]
        report[ITERATIONS] += 1
        report[CALLS] += looked + 2 * m


@compiled()
def _add_row(v, g, s, change):
    """The gradient after u[s] has changed."""
    row, c = v.table[v.slot[s]], v.label[s]
    for t in range(len(g)):
        g[t] += change * v.coupling[v.label[t], c] * (row[v.column[t]] + v.shift)
    g[s] += change * v.ridge[s]
