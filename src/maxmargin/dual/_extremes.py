"""Passes over all variables: the extreme gradients, which determine the violation, and a sum."""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.jit import compiled


@compiled()
def extremes_of(u, g, lo, hi):
    """The least gradient of a variable that may rise, and the largest of one that may fall."""
    low, high = np.inf, -np.inf
    for t in range(len(u)):
        if u[t] < hi[t]:
            low = min(low, g[t])
        if u[t] > lo[t]:
            high = max(high, g[t])
    return low, high


@compiled()
def extremes(u, g, lo, hi, group, least, most):
    """The same per group, in one pass."""
    least[:] = np.inf
    most[:] = -np.inf
    if len(least) == 1:
        least[0], most[0] = extremes_of(u, g, lo, hi)
        return
    for t in range(len(u)):
        k = group[t]
        if u[t] < hi[t]:
            least[k] = min(least[k], g[t])
        if u[t] > lo[t]:
            most[k] = max(most[k], g[t])


@compiled()
def widest_of(u, g, lo, hi, ranges):
    """The largest violation of groups that are ranges of variables; infinite where it is not a number."""
    worst = -np.inf
    for k in range(len(ranges) - 1):
        part = slice(ranges[k], ranges[k + 1])
        low, high = extremes_of(u[part], g[part], lo[part], hi[part])
        if not high - low <= worst:
            worst = high - low if high - low < np.inf else np.inf
    return worst


@compiled()
def missing(u, total):
    """``total - fsum(u)``: as the sums are nearly equal, with the rounding errors of the additions."""
    left, lost = total, 0.0
    for i in range(len(u)):
        after = left - u[i]
        part = after - left
        lost += (left - (after - part)) + (-u[i] - part)
        left = after
    return left + lost
