"""Variables that violate the optimality conditions: the worst of all, or the extreme ones of a part."""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.jit import compiled


@compiled()
def worst_violators(g, u, lo, hi, group, inside, least, most, wanted, out):
    """The `wanted` worst violators of either side outside the working set; how many were found.

    A histogram of the violations finds the threshold in one pass, without sorting. Of those in the
    threshold's bin an evenly spaced choice is taken, so that ties do not favour the first rows.
    """
    bins = 1024
    high, low = np.zeros(bins + 1, np.int64), np.zeros(bins + 1, np.int64)
    widest = 0.0
    for k in range(len(least)):
        widest = max(widest, most[k] - least[k])
    if not widest > 0 or widest == np.inf:
        return 0
    unit = (bins - 0.001) / widest
    m = len(g)
    for t in range(m):
        if not inside[t]:
            k = group[t]
            if u[t] < hi[t] and g[t] < most[k]:
                high[int((most[k] - g[t]) * unit)] += 1
            if u[t] > lo[t] and g[t] > least[k]:
                low[int((g[t] - least[k]) * unit)] += 1
    cut_high = cut_low = bins
    left_high = left_low = wanted
    while cut_high > 0 and high[cut_high] <= left_high:
        left_high -= high[cut_high]
        cut_high -= 1
    while cut_low > 0 and low[cut_low] <= left_low:
        left_low -= low[cut_low]
        cut_low -= 1
    pace_high = left_high / max(1, high[cut_high])
    pace_low = left_low / max(1, low[cut_low])
    due_high = due_low = 0.5
    found = 0
    for t in range(m):
        if inside[t]:
            continue
        k = group[t]
        take = False
        if u[t] < hi[t] and g[t] < most[k]:
            v = int((most[k] - g[t]) * unit)
            if v > cut_high:
                take = True
            elif v == cut_high:
                due_high += pace_high
                if due_high >= 1.0:
                    due_high -= 1.0
                    take = True
        if not take and u[t] > lo[t] and g[t] > least[k]:
            v = int((g[t] - least[k]) * unit)
            if v > cut_low:
                take = True
            elif v == cut_low:
                due_low += pace_low
                if due_low >= 1.0:
                    due_low -= 1.0
                    take = True
        if take and found < len(out):
            out[found] = t
            found += 1
    return found


@compiled()
def extreme_ends(g, u, lo, hi, group, inside, k, wanted, low, high, out):
    """Up to `wanted` variables of group k that may rise, of least gradient, then as many that may fall.

    For a part of all variables, whose rivals are elsewhere: only gradients between `low` and `high` count,
    an interval outside of which nothing violates a condition. Found in two passes, as in `worst_violators`.
    Returns how many are in each part of `out`.
    """
    bins = 1024
    least, most = np.inf, -np.inf
    for t in range(len(g)):
        if not inside[t] and group[t] == k:
            if u[t] < hi[t] and g[t] < high:
                least = min(least, g[t])
            if u[t] > lo[t] and g[t] > low:
                most = max(most, g[t])
    rising, falling = np.zeros(bins, np.int64), np.zeros(bins, np.int64)
    unit_rising = (bins - 0.001) / (high - least) if high > least else 0.0
    unit_falling = (bins - 0.001) / (most - low) if most > low else 0.0
    for t in range(len(g)):
        if not inside[t] and group[t] == k:
            if u[t] < hi[t] and g[t] < high:
                rising[int((g[t] - least) * unit_rising)] += 1
            if u[t] > lo[t] and g[t] > low:
                falling[int((most - g[t]) * unit_falling)] += 1
    cut_rising, cut_falling, left_rising, left_falling = 0, 0, wanted, wanted
    while cut_rising < bins - 1 and rising[cut_rising] <= left_rising:
        left_rising -= rising[cut_rising]
        cut_rising += 1
    while cut_falling < bins - 1 and falling[cut_falling] <= left_falling:
        left_falling -= falling[cut_falling]
        cut_falling += 1
    pace_rising = left_rising / max(1, rising[cut_rising])
    pace_falling = left_falling / max(1, falling[cut_falling])
    due_rising = due_falling = 0.5
    n_rising = n_falling = 0
    for t in range(len(g)):
        if inside[t] or group[t] != k:
            continue
        if u[t] < hi[t] and g[t] < high and n_rising < wanted:
            v = int((g[t] - least) * unit_rising)
            if v == cut_rising:
                due_rising += pace_rising
            if v < cut_rising or (v == cut_rising and due_rising >= 1.0):
                due_rising -= 1.0 if v == cut_rising else 0.0
                out[n_rising] = t
                n_rising += 1
        if u[t] > lo[t] and g[t] > low and n_falling < wanted:
            v = int((most - g[t]) * unit_falling)
            if v == cut_falling:
                due_falling += pace_falling
            if v < cut_falling or (v == cut_falling and due_falling >= 1.0):
                due_falling -= 1.0 if v == cut_falling else 0.0
                out[wanted + n_falling] = t
                n_falling += 1
    return n_rising, n_falling
