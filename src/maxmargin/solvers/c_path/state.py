"""The state of a machine on a path: its box, its sum, its gradient's extremes and its offset."""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.intrinsics import fmax, fmin
from maxmargin._compiled.jit import REORDER, compiled
from maxmargin.solvers.c_path.steps import BIG

# Distance to a bound, relative to the box and to the largest variable, that counts as rounding.
AT_BOUND = 1e-12
# Sum of the variables, relative to that of their absolute values, that counts as rounding.
_SUM = 1e-9


@compiled(fastmath=REORDER)
def survey(u, g, lo, hi, kink):  # type: ignore[no-untyped-def]
    """Extremes of the gradient, and sum and number of the free ones; at a kink nothing is free."""
    low, high, total, free = BIG, -BIG, 0.0, 0
    for t in range(len(u)):
        rises, falls = u[t] < hi[t], u[t] > lo[t]
        up = g[t] + (kink if u[t] >= 0 else -kink)
        low = fmin(low, up if rises else BIG)
        high = fmax(high, g[t] + (kink if u[t] > 0 else -kink) if falls else -BIG)
        inside = rises and falls and (kink == 0 or u[t] != 0)
        total += up if inside else 0.0
        free += 1 if inside else 0
    return low, high, total, free


@compiled()
def snap(u, lo, hi, near):  # type: ignore[no-untyped-def]
    """Put variables that are within rounding of a bound, or of zero, on it.

    They must not count as free: one of them would decide the offset of a machine that has no other. `near` is
    relative to the box and to the largest variable, as a box may be much wider than any variable is large.
    """
    largest = 0.0
    for t in range(len(u)):
        largest = max(largest, abs(u[t]))
    for t in range(len(u)):
        distance = near * min(hi[t] - lo[t], largest)
        if hi[t] - u[t] <= distance:
            u[t] = hi[t]
        elif u[t] - lo[t] <= distance:
            u[t] = lo[t]
        elif abs(u[t]) <= distance:
            u[t] = 0.0


@compiled()
def offset_of(u, g, lo, hi, kink):  # type: ignore[no-untyped-def]
    """The offset of a machine and its violation; variables at a bound must be exactly there (see `snap`).

    The mean gradient of the free variables. Without any, the optimality conditions leave an interval, from
    the largest gradient of those that may fall to the smallest of those that may rise, and it is the middle
    of that. With one class nothing can move: the end that there is.
    """
    low, high, total, free = survey(u, g, lo, hi, kink)
    if low >= BIG or high <= -BIG:
        return (low if low < BIG else (high if high > -BIG else 0.0)), 0.0
    return (total / free if free > 0 else 0.5 * (low + high)), high - low


@compiled()
def is_feasible(u, lo, hi):  # type: ignore[no-untyped-def]
    """Whether the variables are in the box and their sum is zero within rounding; no for NaN."""
    total, size, inside = 0.0, 0.0, True
    for t in range(len(u)):
        total += u[t]
        size += abs(u[t])
        inside &= lo[t] <= u[t] and u[t] <= hi[t]
    return inside and abs(total) <= _SUM * size


@compiled()
def balance(u, g, lo, hi, level, change):  # type: ignore[no-untyped-def]
    """Bring the sum of u to zero with the rows nearest to the margin; their changes are added to `change`."""
    n = len(u)
    excess, size = 0.0, 0.0
    for t in range(n):
        excess += u[t]
        size += abs(u[t])
    enough = 1e-3 * _SUM * size
    width = 0.05
    while abs(excess) > enough:
        for t in range(n):
            room = min(excess, u[t] - lo[t]) if excess > 0 else max(excess, u[t] - hi[t])
            if room != 0 and abs(g[t] - level) <= width:
                u[t] -= room
                change[t] -= room
                excess -= room
                if excess == 0:
                    break
        if width > BIG:
            break
        width *= 4.0
    return abs(excess) <= enough


@compiled()
def make_feasible(u, g, lo, hi, level):  # type: ignore[no-untyped-def]
    """Clip u to the box and bring its sum to zero, or set it to zero; the gradient is not updated."""
    for t in range(len(u)):
        u[t] = min(max(u[t], lo[t]), hi[t]) if u[t] == u[t] else 0.0
    if not balance(u, g, lo, hi, level, np.zeros(len(u))):
        u[:] = 0.0
