"""A point of the problem: its box and sum, the extremes of its gradient, and its offset."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.intrinsics import fmax, fmin
from maxmargin._compiled.jit import REORDER, compiled
from maxmargin._compiled.sums import add_rows
from maxmargin._types import Floats
from maxmargin.dual.feasible import SUM_ERROR

# A gradient that nothing exceeds.
BIG = 1e30


class Matrix(NamedTuple):
    """The kernel matrix."""

    K: NDArray[Any]  # (n, at least n) values, float32 or float64, in C order
    diag: NDArray[Any]  # (n,) its diagonal
    scale: float  # mean of |diag|, or a tiny number


class Point(NamedTuple):
    """Variables with their gradient and bounds; all arrays are changed in place."""

    u: Floats  # (n,) variables
    g: Floats  # (n,) gradient K u - y, without the part of the kink; possibly with padding
    lo: Floats  # (n,) lower bounds
    hi: Floats  # (n,) upper bounds
    kink: float  # epsilon of a regression: kink * |u| is part of the objective; otherwise 0


@compiled()
def matrix_of(K, diag):
    """The matrix with its scale."""
    scale = 0.0
    for t in range(len(diag)):
        scale += abs(diag[t]) / len(diag)
    return Matrix(K, diag, max(scale, 1e-30))


@compiled(fastmath=REORDER)
def add_product(K, g, change, slots, coef):
    """``g += K change``, for a change with many zeros; `slots` and `coef` are buffers of its length."""
    moved = 0
    for t in range(len(change)):
        if change[t] != 0:
            slots[moved], coef[moved] = t, change[t]
            moved += 1
    if moved:
        add_rows(g, K, slots[:moved], coef[:moved], 0, K.shape[1])


@compiled()
def recompute_gradient(K, y, u, g, slots, coef):
    """``g = K u - y``; `slots` and `coef` are buffers of the length of u."""
    for t in range(len(u)):
        g[t] = -y[t]
    add_product(K, g, u, slots, coef)


@compiled(fastmath=REORDER)
def survey(point):
    """Extremes of the gradient, and sum and number of the free ones; at a kink nothing is free."""
    u, g, lo, hi, kink = point
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
def snap(u, lo, hi, near):
    """Put variables that are within rounding of a bound, or of zero, on it.

    They must not count as free: one of them would determine the offset where there is no other free variable.
    `near` is relative to the box and to the largest variable, as a box may be much wider than any variable is
    large.
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
def offset_of(point):
    """The offset and the violation of a point; variables at a bound must be exactly there (see `snap`).

    The mean gradient of the free variables. Without any, the optimality conditions leave an interval, from
    the largest gradient of those that may fall to the smallest of those that may rise, and it is the middle
    of that. With one class nothing can move, and it is the only end of the interval.
    """
    low, high, total, free = survey(point)
    if low >= BIG or high <= -BIG:
        return (low if low < BIG else (high if high > -BIG else 0.0)), 0.0
    return (total / free if free > 0 else 0.5 * (low + high)), high - low


@compiled()
def is_feasible(u, lo, hi):
    """Whether the variables are in the box and their sum is zero within rounding; no for NaN."""
    total, size, inside = 0.0, 0.0, True
    for t in range(len(u)):
        total += u[t]
        size += abs(u[t])
        inside &= lo[t] <= u[t] and u[t] <= hi[t]
    return inside and abs(total) <= SUM_ERROR * size


@compiled()
def balance(point, level, change):
    """Bring the sum of u to zero with the rows nearest to the margin; their changes are added to `change`.

    The gradient is not updated. Returns whether the sum is zero.
    """
    u, g, lo, hi, _ = point
    n = len(u)
    excess, size = 0.0, 0.0
    for t in range(n):
        excess += u[t]
        size += abs(u[t])
    enough = 1e-3 * SUM_ERROR * size
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
def make_feasible(point, level):
    """Clip u to the box and bring its sum to zero, or set it to zero; the gradient is not updated."""
    u, lo, hi = point.u, point.lo, point.hi
    for t in range(len(u)):
        u[t] = min(max(u[t], lo[t]), hi[t]) if u[t] == u[t] else 0.0
    if not balance(point, level, np.zeros(len(u))):
        u[:] = 0.0
