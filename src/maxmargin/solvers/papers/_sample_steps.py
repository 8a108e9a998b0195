"""Crammer and Singer's exact solution for single samples, again and again within a working set.

Variables and gradients have a row per class, so that a step changes a few whole rows: those of the classes
whose variables it moves.
"""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.intrinsics import raised
from maxmargin._compiled.jit import IN_ORDER, compiled

# Share of the largest violation in one pass below which samples are passed over in the next.
_WORTH = 0.1
# The least curvature of a sample; a gradient that nothing exceeds.
_FLAT, _NEVER = 1e-12, 1e300


@compiled()
def solve_sample(A, B, true, C, out, D, order):
    """The exact solution of one sample's problem; D and order are overwritten."""
    k = len(B)
    left = 0.0
    for r in range(k):
        D[r] = B[r] + (A * C if r == true else 0.0)
        left += B[r]
        # Sorted by insertion: there are few classes.
        at = r
        while at > 0 and D[order[at - 1]] > D[r]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = r
    beta = 0.0
    for t in range(k):
        beta = left / (k - t)
        if beta <= D[order[t]]:
            break
        left -= D[order[t]]
    total = 0.0
    free = -1
    for r in range(k):
        out[r] = (min(beta, D[r]) - B[r]) / A
        # On its bound exactly, where it belongs there.
        if D[r] <= beta:
            out[r] = C if r == true else 0.0
        elif free < 0 or abs(out[r]) > abs(out[free]):
            free = r
        total += out[r]
    # What rounding left of the sum goes to the largest that is not on a bound.
    if free >= 0:
        out[free] -= total


@compiled(fastmath=IN_ORDER)
def _add(g, x, row):
    for t in range(len(g)):
        g[t] += x * row[t]


@compiled()
def add_changes(K, samples, ranges, change, g):
    """Add to g the effect of changes of variables, those of class r being ``ranges[r] : ranges[r + 1]``."""
    for r in range(len(g)):
        for t in range(ranges[r], ranges[r + 1]):
            if change[t] != 0.0:
                _add(g[r], change[t], K[samples[t]])


@compiled()
def violation(i, tau, g, true, C):
    """By how much sample i violates its conditions."""
    least, most = _NEVER, -_NEVER
    for r in range(len(g)):
        most = max(most, g[r, i])
        if tau[r, i] < (C if r == true else 0.0):
            least = min(least, g[r, i])
    return most - least


@compiled()
def sample_steps(K, tau, g, C, true, tol, passes, most_steps, flag):
    """Solve for each sample that violates its conditions by more than `tol`, in `passes` passes at most.

    In a random order, since neighbours may be alike. Changes tau and its gradient g in place; returns the
    steps and the largest violation that the last pass has met.
    """
    k, q = g.shape
    order, by_gradient = np.arange(q), np.empty(k, np.int64)
    new, B, D = np.empty(k), np.empty(k), np.empty(k)
    steps, worst, random = 0, 0.0, 1
    for p in range(passes):
        worth, worst = max(tol, _WORTH * worst if p else 0.0), 0.0
        for a in range(q - 1, 0, -1):
            random = (random * 1103515245 + 12345) & 0x7FFFFFFF
            b = (random >> 8) % (a + 1)
            order[a], order[b] = order[b], order[a]
        for i in order:
            c = true[i]
            v = violation(i, tau, g, c, C[i])
            worst = max(worst, v)
            if not v > worth:
                continue
            if steps >= most_steps or raised(flag):
                return steps, worst
            A = max(np.float64(K[i, i]), _FLAT)
            for r in range(k):
                B[r] = g[r, i] - A * tau[r, i]
            solve_sample(A, B, c, C[i], new, D, by_gradient)
            steps += 1
            for r in range(k):
                change = new[r] - tau[r, i]
                if change != 0.0:
                    tau[r, i] = new[r]
                    _add(g[r], change, K[i])
        if worst <= tol:
            break
    return steps, worst
