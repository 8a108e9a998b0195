r"""Pair steps for K classes in two stages: among the free variables of every class, then among all.

Paper: D. Candel, R. Nanculef, C. Concha, H. Allende, "A Sequential Minimal Optimization Algorithm for the
All-Distances Support Vector Machine", Algorithm 1.1 and section 3.5.

In each class r that violates its condition, :math:`i = \arg\min F` over what may rise is paired with the t of
largest :math:`b_{it}^2/a_{it}`, :math:`b_{it} = F_t - F_i`, :math:`a_{it} = q_{ii} - 2q_{it} + q_{tt}`, over
what may fall; mirrored, :math:`\arg\max F` over what may fall is paired over what may rise. The best pair of
all classes is moved. As long as the free variables of some class violate the condition among themselves only
they are looked at.

The first stage is cooled: at first it ends at a share of the violation that the look at all variables found,
and at the tolerance only when that has become small. To solve for the free variables exactly again and
again takes 2 to 20 times the steps (docs/papers/all_distances.md).

Kernel calls: one per :math:`a_{it}`, and 2m for bringing F up to date.
"""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.jit import compiled
from maxmargin.solvers.papers._fetch import CALLS, ITERATIONS, NEEDED, STUCK


@compiled()
def extremes(u, g, lo, hi, group, free_only, first, last):  # type: ignore[no-untyped-def]
    """Per group argmin g over what may rise and argmax g over what may fall (-1: none); the widest range."""
    first[:] = -1
    last[:] = -1
    for t in range(len(u)):
        k = group[t]
        rises, falls = u[t] < hi[t], u[t] > lo[t]
        if free_only and not (rises and falls):
            continue
        if rises and (first[k] < 0 or g[t] < g[first[k]]):
            first[k] = t
        if falls and (last[k] < 0 or g[t] > g[last[k]]):
            last[k] = t
    widest = -np.inf
    for k in range(len(first)):
        if first[k] >= 0 and last[k] >= 0:
            widest = max(widest, g[last[k]] - g[first[k]])
    return widest


@compiled()
def staged_steps(  # type: ignore[no-untyped-def]
    u, g, lo, hi, ridge, group, n_groups, label, coupling, shift, diag, table, slot, there, column,
    budget, target, tau, cooling, found, need, report,
):  # fmt: skip
    """Up to `budget` pair steps; stops early at the target or when the rows in `need` are missing.

    `found[0]` is the violation at the last look at all variables, kept between calls.
    """
    m = len(u)
    first, last = np.empty(n_groups, np.int64), np.empty(n_groups, np.int64)
    while report[ITERATIONS] < budget:
        free_only = extremes(u, g, lo, hi, group, True, first, last) > max(target, cooling * found[0])
        if not free_only:
            found[0] = extremes(u, g, lo, hi, group, False, first, last)
            if not found[0] > target:
                return
        missing = False
        for k in range(n_groups):
            if first[k] < 0 or last[k] < 0 or not g[last[k]] - g[first[k]] > target:
                first[k] = last[k] = -1
                continue
            missing = missing or not there[first[k]] or not there[last[k]]
            need[report[NEEDED]] = first[k]
            need[report[NEEDED] + 1] = last[k]
            report[NEEDED] += 2
        if missing:
            return
        report[NEEDED] = 0
        best, i, j, looked = -1.0, -1, -1, 0
        for t in range(m):
            k = group[t]
            if first[k] < 0:
                continue
            rises, falls = u[t] < hi[t], u[t] > lo[t]
            if free_only and not (rises and falls):
                continue
            c = label[t]
            s = first[k]
            if falls and g[t] > g[s]:
                a = diag[s] + diag[t] - 2.0 * coupling[label[s], c] * (table[slot[s], column[t]] + shift)
                gain = (g[t] - g[s]) ** 2 / max(a, tau)
                looked += 1
                if gain > best:
                    best, i, j = gain, s, t
            s = last[k]
            if rises and g[t] < g[s]:
                a = diag[s] + diag[t] - 2.0 * coupling[label[s], c] * (table[slot[s], column[t]] + shift)
                gain = (g[t] - g[s]) ** 2 / max(a, tau)
                looked += 1
                if gain > best:
                    best, i, j = gain, t, s
        if not there[i] or not there[j]:
            # Together with the rows that led here, lest one of those make room for it.
            need[0] = j if there[i] else i
            report[NEEDED] = 1
            for k in range(n_groups):
                if first[k] >= 0:
                    need[report[NEEDED]] = first[k]
                    need[report[NEEDED] + 1] = last[k]
                    report[NEEDED] += 2
            return

        row_i, row_j = table[slot[i]], table[slot[j]]
        ci, cj = label[i], label[j]
        a = diag[i] + diag[j] - 2.0 * coupling[ci, cj] * (row_i[column[j]] + shift)
        room_i, room_j = hi[i] - u[i], u[j] - lo[j]
        d = min((g[j] - g[i]) / max(a, tau), min(room_i, room_j))
        before_i, before_j = u[i], u[j]
        u[i] = hi[i] if d == room_i else u[i] + d
        u[j] = lo[j] if d == room_j else u[j] - d
        if u[i] == before_i and u[j] == before_j:
            report[STUCK] = 1
            return
        for t in range(m):
            g[t] += d * (
                coupling[label[t], ci] * (row_i[column[t]] + shift)
                - coupling[label[t], cj] * (row_j[column[t]] + shift)
            )
        g[i] += d * ridge[i]
        g[j] -= d * ridge[j]
        report[ITERATIONS] += 1
        report[CALLS] += looked + 2 * m
