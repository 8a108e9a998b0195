"""The certificate of a problem with one group in compiled code, for problems solved in one call.

The same numbers as `maxmargin.dual.certificate` computes with NumPy; a test compares the two. Only the gap
may be larger: every multiplier of the sum gives a bound, and the offset is used in place of the best one, for
which c must be sorted. Near the solution it is nearly the best.
"""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.jit import compiled
from maxmargin.dual._extremes import extremes_of, missing
from maxmargin.dual.certificate import ROUNDING
from maxmargin.dual.feasible import AT_BOUND, SUM_ERROR

#: Entries of the report of `certify`. WORST is the largest possible violation, with noise.
VIOLATION, WORST, OBJECTIVE, OFFSET, GAP, NOISE, RIGHT, NEAR_BOUND = range(8)


@compiled()
def gap_for(u, g, lo, hi, ridge, total, at, noise):
    """`Dual.gap` of one group for the multiplier `at`; infinite where bounds and ridge leave it so."""
    gap = 0.0
    for i in range(len(u)):
        t = -g[i] - at
        error = noise + ROUNDING * (abs(ridge[i] * u[i] - g[i]) + abs(g[i]) + abs(at))
        best = 0.0
        for direction in range(2):
            slope = t + error if direction == 0 else error - t
            if slope > 0.0:
                d = hi[i] - u[i] if direction == 0 else u[i] - lo[i]
                if ridge[i] > 0.0:
                    d = min(d, slope / ridge[i])
                best = max(best, (slope - 0.5 * ridge[i] * d) * d)
        gap += best
    return gap + max(at * missing(u, total), 0.0)


@compiled()
def certify(u, g, lo, hi, p, ridge, total, near, noise, report):
    """Report the certificate of u, and whether its sum and its box are right.

    `noise` bounds the error of every gradient entry, and `near` that of those that may be extreme.
    """
    low, high = extremes_of(u, g, lo, hi)
    mean, value, free = 0.0, 0.0, 0
    inside, near_bound = True, False
    size = 0.0
    for t in range(len(u)):
        size += abs(u[t])
        value += 0.5 * u[t] * (g[t] - p[t])
        inside = inside and lo[t] <= u[t] <= hi[t]
        if lo[t] < u[t] < hi[t]:
            mean += g[t]
            free += 1
            distance = AT_BOUND * (hi[t] - lo[t])
            near_bound = near_bound or (distance < np.inf and min(u[t] - lo[t], hi[t] - u[t]) <= distance)
    middle = 0.5 * (low + high)
    if free:
        middle = mean / free
    elif not np.isfinite(middle):  # one end only, or none
        middle = low if np.isfinite(low) else (high if np.isfinite(high) else 0.0)
    report[OFFSET] = middle
    report[VIOLATION] = max(high - low, 0.0)
    report[WORST] = max(high - low + 2.0 * near, 0.0)
    report[OBJECTIVE] = value
    report[NOISE] = noise
    finite = np.isfinite(value) and np.isfinite(middle) and np.isfinite(noise)  # the gradient too
    report[GAP] = gap_for(u, g, lo, hi, ridge, total, -middle, noise) if finite else np.inf
    report[NEAR_BOUND] = 1.0 if near_bound else 0.0
    right = inside and abs(missing(u, total)) <= SUM_ERROR * max(size, abs(total))
    report[RIGHT] = 1.0 if right and finite else 0.0
