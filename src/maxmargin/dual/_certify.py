"""The certificate of a problem with one group, or two, in compiled code, for problems solved in one call.

The same numbers as `maxmargin.dual.certificate` computes with NumPy; a test compares the two. Only the gap
may be larger: every multiplier of a sum gives a bound, and the offset is used in place of the best one, for
which c must be sorted. Near the solution it is nearly the best. And a sum of another group that is too large
does not make up for one that is too small.
"""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.jit import compiled
from maxmargin.dual._extremes import extremes_of, missing
from maxmargin.dual.certificate import ROUNDING
from maxmargin.dual.feasible import AT_BOUND, SUM_ERROR

#: Entries of the report of `certify`. WORST is the largest possible violation, with noise. The offset of the
#: second group follows that of the first.
VIOLATION, WORST, OBJECTIVE, GAP, NOISE, RIGHT, NEAR_BOUND, OFFSET = range(8)
#: Groups at most, and the length of the report.
MOST_GROUPS = 2
ENTRIES = OFFSET + MOST_GROUPS


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
def certify(u, g, lo, hi, p, ridge, ranges, sums, near, noise, report):
    """Report the certificate of u, and whether its sums and its box are right.

    Group k is the variables ``ranges[k] : ranges[k + 1]``. `noise` bounds the error of every gradient entry,
    and `near` that of those that may be extreme.
    """
    worst, value, gap = -np.inf, 0.0, 0.0
    right, finite, near_bound = True, np.isfinite(noise), False
    for k in range(len(sums)):
        part = slice(ranges[k], ranges[k + 1])
        low, high = extremes_of(u[part], g[part], lo[part], hi[part])
        mean, size, free = 0.0, 0.0, 0
        for t in range(ranges[k], ranges[k + 1]):
            size += abs(u[t])
            value += 0.5 * u[t] * (g[t] - p[t])
            right = right and lo[t] <= u[t] <= hi[t]
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
        report[OFFSET + k] = middle
        worst = max(worst, high - low)
        finite = finite and np.isfinite(value) and np.isfinite(middle)  # the gradient too
        if finite:
            gap += gap_for(u[part], g[part], lo[part], hi[part], ridge[part], sums[k], -middle, noise)
        right = right and abs(missing(u[part], sums[k])) <= SUM_ERROR * max(size, abs(sums[k]))
    report[VIOLATION] = max(worst, 0.0)
    report[WORST] = max(worst + 2.0 * near, 0.0)
    report[OBJECTIVE] = value
    report[NOISE] = noise
    report[GAP] = gap if finite else np.inf
    report[NEAR_BOUND] = 1.0 if near_bound else 0.0
    report[RIGHT] = 1.0 if right and finite else 0.0
