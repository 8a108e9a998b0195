"""The inner solver of `Batch`: second-order SMO on the block of the working set.

Each step is two vectorised passes over the block's columns; the index of a maximum rides in the low
mantissa bits of its value, which makes an argmax a plain reduction.
"""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.intrinsics import fmax, index_in, raised, with_index
from maxmargin._compiled.jit import REORDER, compiled
from maxmargin.solvers.batch.block import need
from maxmargin.solvers.pairs import move_pair


@compiled(fastmath=REORDER)
def pair_steps(  # type: ignore[no-untyped-def]
    Q, diag, rows, u, lo, hi, g, parts, tol, max_steps, up, down, big, tau, flag
):
    """Second-order SMO on the block Q, changing u; group k is the range parts[k]:parts[k + 1].

    up / down hold the gradient, or +-big where the variable cannot rise / fall.
    """
    zero, two = g.dtype.type(0.0), g.dtype.type(2.0)
    n_groups = len(parts) - 1
    least, most = np.empty(n_groups, up.dtype), np.empty(n_groups, up.dtype)
    first = np.zeros(n_groups, np.int64)
    for k in range(n_groups):
        low, high = big, -big
        for t in range(parts[k], parts[k + 1]):
            up[t] = g[t] if u[t] < hi[t] else big
            down[t] = g[t] if u[t] > lo[t] else -big
            high = max(high, down[t])
            if up[t] < low:
                low = up[t]
                first[k] = t
        least[k], most[k] = low, high
    steps = 0
    while steps < max_steps and not raised(flag):
        worst = 0
        for k in range(1, n_groups):
            if most[k] - least[k] > most[worst] - least[worst]:
                worst = k
        low = least[worst]
        if not most[worst] - low >= tol:
            break
        # j: the largest decrease (g_j - g_i)^2 / (Q_ii + Q_jj - 2 Q_ij). Loops run over slices from 0:
        # an index that might be negative would not vectorise.
        i = first[worst]
        if not rows.valid[i]:  # asked here: a call costs as much as a quarter of a step
            need(rows, Q, diag, i)
        row_i = Q[i]
        diag_i = diag[i]
        start, end = parts[worst], parts[worst + 1]
        some_row, some_down, some_diag = row_i[start:end], down[start:end], diag[start:end]
        best = zero
        for t in range(end - start):
            b = fmax(some_down[t] - low, zero)
            gain = b * b / fmax(diag_i + some_diag[t] - two * some_row[t], tau)
            best = fmax(best, with_index(gain, t))
        j = start + index_in(best)
        if not rows.valid[j]:
            need(rows, Q, diag, j)
        row_j = Q[j]
        g_j = down[j]
        curvature = max(np.float64(diag_i) + np.float64(diag[j]) - 2.0 * np.float64(row_i[j]), tau)
        d, moved = move_pair(u, i, j, np.float64(g_j - low) / curvature, hi[i], lo[j])
        if not moved:
            break
        steps += 1
        up[i] = low if u[i] < hi[i] else big
        down[i] = low if u[i] > lo[i] else -big
        up[j] = g_j if u[j] < hi[j] else big
        down[j] = g_j if u[j] > lo[j] else -big
        # update, and find the next i and the extremes of every group
        step = g.dtype.type(d)
        for k in range(n_groups):
            start, end = parts[k], parts[k + 1]
            ref = most[k]
            high = -big
            best = zero
            some_up, some_down = up[start:end], down[start:end]
            some_i, some_j = row_i[start:end], row_j[start:end]
            for t in range(end - start):
                x = step * (some_i[t] - some_j[t])
                a = some_up[t] + x
                b = some_down[t] + x
                some_up[t] = a
                some_down[t] = b
                high = fmax(high, b)
                best = fmax(best, with_index(fmax(ref - a, zero), t))
            most[k] = high
            i = start + index_in(best)
            if i >= end or not up[i] < ref:  # nothing below ref: scan exactly
                low = big
                i = start
                for t in range(end - start):
                    if some_up[t] < low:
                        low = some_up[t]
                        i = start + t
            first[k] = i
            least[k] = up[i] if end > start else big
    return steps
