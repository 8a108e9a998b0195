"""One node of a path: pair steps and Newton steps until the violation is small enough."""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.intrinsics import raised
from maxmargin._compiled.jit import compiled
from maxmargin._compiled.sums import add_rows
from maxmargin.dual.feasible import AT_BOUND
from maxmargin.solvers import costs
from maxmargin.solvers.c_path.block import empty_block, gather, select
from maxmargin.solvers.c_path.newton import newton
from maxmargin.solvers.c_path.state import (
    BIG,
    Point,
    is_feasible,
    make_feasible,
    matrix_of,
    offset_of,
    recompute_gradient,
    snap,
    survey,
)
from maxmargin.solvers.c_path.steps import MatrixRows, block_places
from maxmargin.solvers.pairs import pair_steps

# Rounds per node, and how often one with a wrong sum is repaired and trained further.
_ROUNDS, _REPAIRS = 1000, 2


@compiled()
def _newton_cost(free, n):
    """Nominal microseconds of a Newton step."""
    return free**3 / costs.PATH_CUBES + free**2 * costs.PATH_SQUARE + costs.PATH_ROW * n


@compiled()
def _step_cost(size):
    """Nominal microseconds of a pair step."""
    return costs.PATH_STEP_ROW * size + costs.PATH_STEP


@compiled()
def _repair(K, y, point, slots, coef):
    """Make the point feasible again, with the gradient computed from u."""
    u, g, lo, hi, _ = point
    middle, _ = offset_of(Point(u, g, lo, hi, 0.0))
    make_feasible(point, middle)
    recompute_gradient(K, y, u, g, slots, coef)


@compiled()
def _movable(point, middle, slack, free, members):
    """Fill `members` with the free variables and a few violators for a Newton step; 0 if it is too early.

    While it is open for many variables whether they are free, a large matrix is not worth its cost; a small
    one is, with the worst violators.
    """
    u, g, lo, hi, kink = point
    most = int(1.2 * free) + 10
    for _ in range(12 if free < costs.PATH_NEWTON_FEW else 1):
        size = 0
        for t in range(len(u)):
            rises, falls = u[t] < hi[t], u[t] > lo[t]
            up = g[t] + (kink if u[t] >= 0 else -kink)
            down = g[t] + (kink if u[t] > 0 else -kink)
            free_one = rises and falls and (kink == 0 or u[t] != 0)
            if free_one or (rises and up < middle - slack) or (falls and down > middle + slack):
                members[size] = t
                size += 1
        if size <= most:
            return size if 2 <= size <= costs.PATH_NEWTON_MOST else 0
        slack *= 2.0
    return 0


@compiled()
def solve_node(matrix, y, point, block, ridge, tol, budget, flag):
    """Bring a point to a violation of at most tol; returns offset, violation and the number of pair steps.

    ridge[0] is the last ridge with which a factor was found, and `budget` the largest number of pair steps.
    The loop ends early when the flag is raised; the gradient is then that of the point reached.
    """
    K, diag, scale = matrix
    u, g, lo, hi, kink = point
    slots = block.slots
    n = len(u)
    # Not in float64, for fine tolerances: Newton steps, which come with the rounds, are more exact.
    small = n <= costs.PATH_SMALL and K.itemsize == 4
    members = np.empty(n, np.int64)
    x, x0, lo_w, hi_w = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    g_w, diag_w = np.empty(n, K.dtype), np.empty(n, K.dtype)
    up, down = np.empty(n, K.dtype), np.empty(n, K.dtype)
    change, moved = np.empty(n), np.empty(n, np.int64)
    always = np.ones(n, np.bool_)
    big = K.dtype.type(BIG)
    tau = K.dtype.type((1e-6 if K.itemsize == 4 else 1e-12) * scale)
    steps, spent, stalled = 0, 0.0, 0
    want_newton, exact = False, False
    last = np.inf
    repairs = 0
    snap(u, lo, hi, AT_BOUND)
    if not is_feasible(u, lo, hi):
        _repair(K, y, point, moved, change)
    for _ in range(_ROUNDS):
        low, high, total, free = survey(point)
        if steps >= budget or stalled > 3 or raised(flag):
            break
        if high - low <= tol:
            # Pair steps and Newton steps keep the sum: a wrong one is detected only here.
            if repairs < _REPAIRS and not is_feasible(u, lo, hi):
                _repair(K, y, point, moved, change)
                repairs += 1
                continue
            rounding = 0.0
            for t in range(n):
                rounding += 1e-14 * scale * abs(u[t])
            if exact or rounding < 0.1 * tol:
                break
            # The rounding errors of the updates might matter: recompute the gradient.
            recompute_gradient(K, y, u, g, moved, change)
            exact = True
            continue
        exact = False
        middle = total / free if free > 0 else 0.5 * (low + high)
        if want_newton:
            want_newton = False
            size = _movable(point, middle, 0.25 * tol, free, members)
            if size > 0:
                done, ridge[0] = newton(matrix, point, middle, members[:size], ridge[0], flag)
                spent = 0.0
                if done:
                    want_newton = high - low < costs.PATH_NEWTON_AGAIN * last
                    last = high - low
                    continue
        last = high - low
        few_free = free < costs.PATH_BLOCK_FREE * costs.PATH_BLOCK
        wanted = select(point, low, high, len(slots), members) if few_free and not small else n
        # If most rows matter, or all are few, on the matrix itself; otherwise on the block.
        direct = wanted > costs.PATH_DIRECT * n
        size = n if direct else gather(K, block, members, wanted)
        for i in range(size):
            t = i if direct else slots[i]
            x[i], x0[i], lo_w[i], hi_w[i] = u[t], u[t], lo[t], hi[t]
            g_w[i], diag_w[i] = g[t] - middle, diag[t]  # without the offset float32 has more digits
        # In proportion to the time of a Newton step
        most = costs.PATH_NEWTON_STEPS * _newton_cost(free, n) / _step_cost(size)
        most = max(most, costs.PATH_FEWEST_STEPS)
        most = int(min(most, costs.PATH_MOST_STEPS * size, budget - steps))
        # Another round costs as much as some hundred pair steps on few rows.
        inner = K.dtype.type(max(0.5 * tol, 0.0 if small else costs.INNER * (high - low)))
        flat = K.reshape(-1) if direct else block.Q.reshape(-1)
        stride, valid = (K.shape[1], always) if direct else (block.Q.shape[1], block.valid)
        rows = MatrixRows(flat, stride, valid, K, slots, size)
        taken = pair_steps(
            rows, block_places(size, diag_w, up, down), None, x, lo_w, hi_w, g_w,
            K.dtype.type(kink), inner, most, big, tau, flag,
        )  # fmt: skip
        steps += taken
        spent += taken * _step_cost(size)
        count, free = 0, 0
        for i in range(size):
            t = i if direct else slots[i]
            if x[i] != x0[i]:
                change[count], moved[count] = x[i] - x0[i], t
                count += 1
                u[t] = x[i]
            free += x[i] > lo_w[i] and x[i] < hi_w[i] and (kink == 0 or x[i] != 0)
        add_rows(g, K, moved[:count], change[:count], 0, n)
        stalled = stalled + 1 if count == 0 else 0
        want_newton = count == 0 or spent > costs.PATH_SPENT * _newton_cost(free, n)
    snap(u, lo, hi, AT_BOUND)
    offset, violation = offset_of(point)
    return offset, violation if is_feasible(u, lo, hi) else np.inf, steps


@compiled()
def solve_one(K, diag, y, point, tol, max_steps, flag):
    """Solve one node from the feasible point.u; fills its gradient, and returns the number of pair steps."""
    n = len(point.u)
    matrix, block = matrix_of(K, diag), empty_block(K, n)
    # A ridge with which a singular matrix does not amplify rounding errors: a fit must be repeatable.
    ridge = np.full(1, 1e-6 if K.itemsize == 4 else 1e-8)
    recompute_gradient(K, y, point.u, point.g, np.empty(n, np.int64), np.empty(n))
    _, _, steps = solve_node(matrix, y, point, block, ridge, tol, max_steps, flag)
    return steps
