"""Pair steps on a block of the kernel matrix whose rows are gathered when they are needed."""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.intrinsics import INDEX_BITS, fmax, index_in, raised, with_index
from maxmargin._compiled.jit import REORDER, compiled

# A gradient that nothing exceeds.
BIG = 1e30


@compiled()
def _fetch(K, slots, block, valid, size, i):
    """Fill row i of the block: its variable's kernel values with the others."""
    row, line = K[slots[i]], block[i]
    for k in range(size):
        line[k] = row[slots[k]]
    valid[i] = True


@compiled(fastmath=REORDER)
def pair_steps(K, slots, Q, valid, diag, size, u, lo, hi, g, kink, tol, max_steps, up, down, tau, flag):
    """Second-order SMO on Q[:size, :size], changing u; returns the number of steps.

    up / down hold the gradient, or +-big where the variable cannot rise / fall. The index of a maximum
    rides in the low mantissa bits of its value, so that each step is two vectorised passes, by chunks of
    2**INDEX_BITS. Rows of Q that are not yet valid are fetched from K when they are asked for. A `kink` adds
    kink * |u| to the objective: up and down differ by twice that at u = 0, and no step goes past it.
    """
    big = g.dtype.type(BIG)
    zero, two = g.dtype.type(0.0), g.dtype.type(2.0)
    chunk = 1 << INDEX_BITS
    low, high = big, -big
    i = 0
    for t in range(size):
        up[t] = g[t] + (kink if u[t] >= 0 else -kink) if u[t] < hi[t] else big
        down[t] = g[t] + (kink if u[t] > 0 else -kink) if u[t] > lo[t] else -big
        high = max(high, down[t])
        if up[t] < low:
            low = up[t]
            i = t
    steps = 0
    while steps < max_steps and high - low >= tol and not raised(flag):
        if not valid[i]:
            _fetch(K, slots, Q, valid, size, i)
        row_i = Q[i]
        diag_i = diag[i]
        best, j = zero, 0
        for start in range(0, size, chunk):
            end = min(size, start + chunk)
            some_row, some_down, some_diag = row_i[start:end], down[start:end], diag[start:end]
            best_here = zero
            for t in range(end - start):
                b = fmax(some_down[t] - low, zero)
                gain = b * b / fmax(diag_i + some_diag[t] - two * some_row[t], tau)
                best_here = fmax(best_here, with_index(gain, t))
            if best_here > best:
                best = best_here
                j = start + index_in(best_here)
        if not valid[j]:
            _fetch(K, slots, Q, valid, size, j)
        row_j = Q[j]
        g_j = down[j]
        curvature = np.float64(diag_i) + np.float64(diag[j]) - 2.0 * np.float64(row_i[j])
        curvature = max(curvature, np.float64(tau))
        before_i, before_j = u[i], u[j]
        end_i = hi[i] if kink == zero or u[i] >= 0 else 0.0
        end_j = lo[j] if kink == zero or u[j] <= 0 else 0.0
        room_i, room_j = end_i - u[i], u[j] - end_j
        d = min(np.float64(g_j - low) / curvature, min(room_i, room_j))
        u[i] = end_i if d == room_i else u[i] + d
        u[j] = end_j if d == room_j else u[j] - d
        if i == j or (u[i] == before_i and u[j] == before_j):
            break  # the pair cannot move in this precision
        steps += 1
        low -= kink if before_i >= 0 else -kink
        g_j -= kink if before_j > 0 else -kink
        up[i] = low + (kink if u[i] >= 0 else -kink) if u[i] < hi[i] else big
        down[i] = low + (kink if u[i] > 0 else -kink) if u[i] > lo[i] else -big
        up[j] = g_j + (kink if u[j] >= 0 else -kink) if u[j] < hi[j] else big
        down[j] = g_j + (kink if u[j] > 0 else -kink) if u[j] > lo[j] else -big
        step = g.dtype.type(d)
        reference = high
        high, best = -big, zero
        i = -1
        for start in range(0, size, chunk):
            end = min(size, start + chunk)
            some_up, some_down = up[start:end], down[start:end]
            some_i, some_j = row_i[start:end], row_j[start:end]
            best_here = zero
            for t in range(end - start):
                x = step * (some_i[t] - some_j[t])
                a = some_up[t] + x
                b = some_down[t] + x
                some_up[t] = a
                some_down[t] = b
                high = fmax(high, b)
                best_here = fmax(best_here, with_index(fmax(reference - a, zero), t))
            if best_here > best:
                best = best_here
                i = start + index_in(best_here)
        if i < 0 or not up[i] < reference:  # nothing below the reference: scan exactly
            low, i = big, 0
            for t in range(size):
                if up[t] < low:
                    low = up[t]
                    i = t
        low = up[i]
    return steps
