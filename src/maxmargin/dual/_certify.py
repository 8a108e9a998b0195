"""The certificate of a problem with one group in compiled code, for problems solved in one call.

The same numbers as `maxmargin.dual.certificate` computes with NumPy; a test compares the two.
"""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.jit import compiled
from maxmargin.dual._extremes import extremes_of
from maxmargin.dual.feasible import AT_BOUND, SUM_ERROR

#: Entries of the report of `certify`.
VIOLATION, OBJECTIVE, OFFSET, GAP, NOISE, RIGHT, NEAR_BOUND = range(7)


@compiled()
def gap_for(u, g, lo, hi, ridge, total, at, noise):
    """`Dual.gap` of one group for the multiplier `at`: every multiplier gives a bound."""
    gap, residual = 0.0, total
    for i in range(len(u)):
        residual -= u[i]
        t = -g[i] - at
        error = noise + 4.5e-16 * (abs(g[i]) + abs(at))
        best = 0.0
        for direction in range(2):
            slope = t + error if direction == 0 else error - t
            if slope > 0.0:
                d = hi[i] - u[i] if direction == 0 else u[i] - lo[i]
                if ridge[i] > 0.0:
                    d = min(d, slope / ridge[i])
                best = max(best, (slope - 0.5 * ridge[i] * d) * d)
        gap += best
    return max(gap + at * residual, 0.0)


@compiled()
def certify(u, g, lo, hi, p, ridge, total, noise, report):
    """Report the certificate of u, and whether its sum and its box are right."""
    low, high = extremes_of(u, g, lo, hi)
    mean, value, free = 0.0, 0.0, 0
    inside, near_bound = True, False
    added, size = 0.0, abs(total)
    for t in range(len(u)):
        added += u[t]
        size = max(size, abs(u[t]))
        value += 0.5 * u[t] * (g[t] - p[t])
        inside = inside and lo[t] <= u[t] <= hi[t]
        if lo[t] < u[t] < hi[t]:
            mean += g[t]
            free += 1
            near = AT_BOUND * (hi[t] - lo[t])
            near_bound = near_bound or (near < np.inf and min(u[t] - lo[t], hi[t] - u[t]) <= near)
    report[OFFSET] = mean / free if free else 0.5 * (low + high)
    report[VIOLATION] = max(high - low, 0.0)
    report[OBJECTIVE] = value
    report[NOISE] = noise
    report[GAP] = gap_for(u, g, lo, hi, ridge, total, -report[OFFSET], noise)
    report[NEAR_BOUND] = 1.0 if near_bound else 0.0
    right = inside and abs(added - total) <= SUM_ERROR * size
    report[RIGHT] = 1.0 if right and np.isfinite(report[OFFSET]) else 0.0
