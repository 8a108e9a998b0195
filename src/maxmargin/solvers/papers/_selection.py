r"""Which pair SMO moves: the rules of Keerthi et al., of Fan, Chen and Lin, and of Candel et al.

- `most_violating`: :math:`i = \arg\min g` over what may rise, :math:`j = \arg\max g` over what may fall, in
  the group where they differ most.
- `second_order`: the same i, and the j with which the objective falls most; the best pair of all groups.
- `staged`, for K classes (D. Candel, R. Nanculef, C. Concha, H. Allende, "A Sequential Minimal Optimization
  Algorithm for the All-Distances Support Vector Machine", Algorithm 1.1 and section 3.5): in each class r
  that violates its condition, :math:`i = \arg\min F` over what may rise is paired with the t of largest
  :math:`b_{it}^2/a_{it}`, :math:`b_{it} = F_t - F_i`, :math:`a_{it} = q_{ii} - 2q_{it} + q_{tt}`, over what
  may fall; mirrored, :math:`\arg\max F` over what may fall is paired over what may rise. The best pair of
  all classes is moved. As long as the free variables of some class violate the condition among themselves,
  only they are candidates.
- The same as printed in Algorithm 1.1, `SMO(selection="paper")`: without the mirror image, which the paper
  mentions after (8) only.

The first stage is cooled: at first it ends at a share of the violation that the last selection among all
variables found, and at the tolerance only when that has become small. To solve for the free variables exactly
again and again takes 2 to 20 times the steps (docs/papers/all_distances.md).

A rule returns the pair and the kernel values that it used. The pair is (-1, -1) at the target, and where
kernel rows are missing: their variables are in `need` then.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from maxmargin._compiled.jit import compiled
from maxmargin._types import Floats, Index
from maxmargin.solvers._pair_rows import is_kind
from maxmargin.solvers.papers import _cycles as cy
from maxmargin.solvers.papers._fetch import NEEDED


class Variables(NamedTuple):
    """The problem and its kernel rows, for compiled code.

    The row of variable i, if ``there[i]``, is ``table[slot[i]]``; its value for variable j stands in
    ``column[j]``.
    """

    lo: Floats
    hi: Floats
    ridge: Floats
    group: Index
    n_groups: int
    label: Index
    coupling: Floats
    shift: float
    diag: Floats
    table: NDArray[Any]
    slot: Index
    there: NDArray[np.bool_]
    column: Index


@compiled(inline="always")
def entry(v, i, j):
    """Q_ij without the ridge, from the row of i."""
    return v.coupling[v.label[i], v.label[j]] * (v.table[v.slot[i], v.column[j]] + v.shift)


@overload(cy.value, inline="always")
def _value(rows, i, j):
    if is_kind(rows, Variables):
        return lambda rows, i, j: entry(rows, i, j)
    return None


@compiled(inline="always")
def curvature(v, i, j):
    """Q_ii + Q_jj - 2 Q_ij, from the row of i."""
    return v.diag[i] + v.diag[j] - 2.0 * entry(v, i, j)


@compiled()
def extremes(u, g, lo, hi, group, free_only, first, last):
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
def most_violating(v, u, g, first, last, target):
    """The most violating pair."""
    if not extremes(u, g, v.lo, v.hi, v.group, False, first, last) > target:
        return -1, -1, 0
    worst, widest = -1, -np.inf
    for k in range(v.n_groups):
        if first[k] >= 0 and last[k] >= 0 and g[last[k]] - g[first[k]] > widest:
            worst, widest = k, g[last[k]] - g[first[k]]
    return first[worst], last[worst], 0


@compiled()
def second_order(v, u, g, first, last, target, tau, need, report):
    """The pair of largest decrease among those with the first of a group."""
    if not extremes(u, g, v.lo, v.hi, v.group, False, first, last) > target:
        return -1, -1, 0
    for k in range(v.n_groups):
        if first[k] < 0 or last[k] < 0 or not g[last[k]] - g[first[k]] > target:
            first[k] = -1
        elif not v.there[first[k]]:
            need[report[NEEDED]] = first[k]
            report[NEEDED] += 1
    if report[NEEDED] > 0:
        return -1, -1, 0
    best, i, j = -1.0, -1, -1
    for t in range(len(u)):
        s = first[v.group[t]]
        if s >= 0 and u[t] > v.lo[t]:
            b = g[t] - g[s]
            if b > 0:
                gain = b * b / max(curvature(v, s, t), tau)
                if gain > best:
                    best, i, j = gain, s, t
    return i, j, len(u)


@compiled()
def _request(first, last, mirrored, need, report):
    """Ask for the rows that lead the selection in a class."""
    need[report[NEEDED]] = first
    report[NEEDED] += 1
    if mirrored:
        need[report[NEEDED]] = last
        report[NEEDED] += 1


@compiled()
def staged(v, u, g, first, last, target, tau, cooling, mirrored, found, need, report):
    """The best pair with the first or the last of a class, among its free variables while these violate.

    Unless `mirrored`, with the first only. `found[0]` is the violation at the last selection among all
    variables, kept between calls.
    """
    widest = extremes(u, g, v.lo, v.hi, v.group, True, first, last)
    free_only = widest > max(target, cooling * found[0])
    if not free_only:
        found[0] = extremes(u, g, v.lo, v.hi, v.group, False, first, last)
        if not found[0] > target:
            return -1, -1, 0
    missing = False
    for k in range(v.n_groups):
        if first[k] < 0 or last[k] < 0 or not g[last[k]] - g[first[k]] > target:
            first[k] = last[k] = -1
            continue
        missing = missing or not v.there[first[k]] or (mirrored and not v.there[last[k]])
        _request(first[k], last[k], mirrored, need, report)
    if missing:
        return -1, -1, 0
    report[NEEDED] = 0
    best, i, j, looked = -1.0, -1, -1, 0
    for t in range(len(u)):
        k = v.group[t]
        if first[k] < 0:
            continue
        rises, falls = u[t] < v.hi[t], u[t] > v.lo[t]
        if free_only and not (rises and falls):
            continue
        s = first[k]
        if falls and g[t] > g[s]:
            gain = (g[t] - g[s]) ** 2 / max(curvature(v, s, t), tau)
            looked += 1
            if gain > best:
                best, i, j = gain, s, t
        s = last[k]
        if mirrored and rises and g[t] < g[s]:
            gain = (g[t] - g[s]) ** 2 / max(curvature(v, s, t), tau)
            looked += 1
            if gain > best:
                best, i, j = gain, t, s
    if not v.there[i] or not v.there[j]:
        # Together with the rows that led here: otherwise one of those might make room for it.
        need[0] = j if v.there[i] else i
        report[NEEDED] = 1
        for k in range(v.n_groups):
            if first[k] >= 0:
                _request(first[k], last[k], mirrored, need, report)
        return -1, -1, 0
    return i, j, looked
