"""The steps of SMO over cached kernel rows, for any rule of selection, with or without cycles."""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.jit import compiled
from maxmargin.solvers.pairs import move_pair
from maxmargin.solvers.papers import _cycles as cy
from maxmargin.solvers.papers._fetch import CALLS, ITERATIONS, NEEDED, STUCK
from maxmargin.solvers.papers._selection import curvature, entry, most_violating, second_order, staged

#: Rules of selection, see `maxmargin.solvers.papers._selection`.
FIRST_ORDER, SECOND_ORDER, STAGED = range(3)


@compiled()
def pair_steps(
    v, u, g, rule, budget, target, tau, cooling, found, accelerate, cycles, capacity, need, report
):
    """Up to `budget` pair steps; stops early at the target or when the rows in `need` are missing."""
    m = len(u)
    first, last = np.empty(v.n_groups, np.int64), np.empty(v.n_groups, np.int64)
    while report[ITERATIONS] < budget:
        if rule == STAGED:
            i, j, looked = staged(v, u, g, first, last, target, tau, cooling, found, need, report)
        elif rule == SECOND_ORDER:
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
            k = cy.closed(cycles, i, j)
            if k > 0 and report[ITERATIONS] + 2 <= budget:
                size = cy.collapse(cycles, k, i, j, d)
                slope = 0.0
                for h in range(size):
                    t = cycles.members[h]
                    to_i = entry(v, i, t) if h != 0 else v.diag[t]
                    to_j = entry(v, j, t) if h != 1 else v.diag[t]
                    slope -= cycles.mu[h] * (g[t] + d * (to_i - to_j))
                report[CALLS] += 2 * size
                reserved = v.n_groups if rule == SECOND_ORDER else 0  # rows that the selection needs too
                along, _, report[NEEDED] = cy.plan(
                    cycles, k, size, slope, gain, u, v.lo, v.hi, v.there, capacity - reserved, need
                )
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
