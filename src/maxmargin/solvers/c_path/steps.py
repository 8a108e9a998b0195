"""Pair steps on a block of the kernel matrix that is gathered as it is asked for."""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.intrinsics import INDEX_BITS, fmax, index_in, raised, with_index
from maxmargin._compiled.jit import REORDER, compiled
from maxmargin.solvers.pairs import move_pair

# A gradient that nothing exceeds.
BIG = 1e30
# Violators at a bound that a block takes in, besides half as many as there are free variables.
_FEWEST_VIOLATORS = 256


@compiled()
def _fetch(K, slots, block, valid, size, i):  # type: ignore[no-untyped-def]
    """Fill row i of the block: its variable's kernel values with the others."""
    row, line = K[slots[i]], block[i]
    for k in range(size):
        line[k] = row[slots[k]]
    valid[i] = True


@compiled(fastmath=REORDER)
def pair_steps(  # type: ignore[no-untyped-def]
    K, slots, Q, valid, diag, size, u, lo, hi, g, kink, tol, max_steps, up, down, tau, flag
):
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
        d, moved = move_pair(u, i, j, np.float64(g_j - low) / curvature, end_i, end_j)
        if i == j or not moved:
            break
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


@compiled()
def select(u, g, lo, hi, kink, low, high, most, members):  # type: ignore[no-untyped-def]
    """The free variables and the worst violators at a bound, at most about `most`; returns their number.

    Among too many violators a histogram of the violations finds the worst, on either side apart.
    """
    n, bins = len(u), 128
    counts = np.zeros((2, bins), np.int64)
    scale = bins / (high - low) * 0.999999
    code = np.empty(n, np.int16)  # -1: no, 0: free, else 1 + side * bins + bin
    size = 0
    for t in range(n):
        rises, falls = u[t] < hi[t], u[t] > lo[t]
        up = g[t] + (kink if u[t] >= 0 else -kink)
        down = g[t] + (kink if u[t] > 0 else -kink)
        code[t] = -1
        if rises and falls and (kink == 0 or u[t] != 0):
            code[t] = 0
            if size < most:
                members[size] = t
                size += 1
        elif rises and up < high and (not falls or high - up >= down - low):
            b = min(int((up - low) * scale), bins - 1)
            counts[0, b] += 1
            code[t] = 1 + b
        elif falls and down > low:
            b = min(int((high - down) * scale), bins - 1)
            counts[1, b] += 1
            code[t] = 1 + bins + b
    room = min(most - size, _FEWEST_VIOLATORS + size // 2)
    total, share = np.zeros(2, np.int64), np.empty(2, np.int64)
    for b in range(bins):
        total[0] += counts[0, b]
        total[1] += counts[1, b]
    share[0] = min(total[0], max(room // 2, room - total[1]))
    share[1] = min(total[1], room - share[0])
    last = np.full(2, bins)
    for side in range(2):
        s = 0
        for b in range(bins):
            s += counts[side, b]
            if s > share[side]:
                last[side] = b
                break
        share[side] -= s - counts[side, min(last[side], bins - 1)] if last[side] < bins else s
    for t in range(n):
        if code[t] > 0:
            side = 1 if code[t] > bins else 0
            b = code[t] - 1 - side * bins
            if b == last[side]:  # as many of the last bin as there is room for
                share[side] -= 1
            if b < last[side] or (b == last[side] and share[side] >= 0):
                members[size] = t
                size += 1
    return size


@compiled()
def gather(K, block, valid, place, slots, size, members, wanted):  # type: ignore[no-untyped-def]
    """Let slots[:size] hold the members, block their kernel values; returns the new size.

    Others stay where they are, unless they are many or in the way: only rows of newcomers are read.
    """
    keep = np.zeros(size, np.bool_)
    kept, n_new = 0, 0
    fresh = np.empty(wanted, np.int64)
    for i in range(wanted):
        s = place[members[i]]
        if s >= 0:
            keep[s] = True
            kept += 1
        else:
            fresh[n_new] = members[i]
            n_new += 1
    if 2 * (size - kept) > wanted:  # close up
        top = 0
        stay = np.empty(kept, np.int64)
        for s in range(size):
            if keep[s]:
                stay[top] = s
                top += 1
            else:
                place[slots[s]] = -1
        for a in range(top):
            valid[a] = valid[stay[a]]
            if valid[a]:
                source, line = block[stay[a]], block[a]
                for b in range(top):
                    line[b] = source[stay[b]]
            slots[a] = slots[stay[a]]
            place[slots[a]] = a
        size = top
        keep = np.ones(size, np.bool_)
    at = np.empty(n_new, np.int64)
    hole = 0
    limit = min(len(block), len(slots))
    for i in range(n_new):
        if size < limit:
            s = size
            size += 1
        else:
            while keep[hole]:
                hole += 1
            s = hole
            hole += 1
            place[slots[s]] = -1
        slots[s] = fresh[i]
        place[fresh[i]] = s
        at[i] = s
    for i in range(n_new):
        valid[at[i]] = False
    if n_new > 0:
        for b in range(size):
            if valid[b]:
                row, line = K[slots[b]], block[b]
                for i in range(n_new):
                    line[at[i]] = row[fresh[i]]
    return size
