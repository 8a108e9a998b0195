r"""Paths of solutions along C: the engine of a search over C, the kernel's width and folds.

With :math:`u_i = y_i\alpha_i` the dual of the hinge-loss machine with bias is

.. math:: \min_u \tfrac12 u^\top K u - y^\top u,\qquad e^\top u = 0,\quad lo \le u \le hi,

with :math:`hi_i = C w_i` for :math:`y_i = 1`, :math:`lo_i = -C w_i` for :math:`y_i = -1`, zero otherwise.
Rows held out have :math:`lo_i = hi_i = 0`: nothing ever chooses them, and the gradient :math:`g = K u - y`,
which is kept for all rows, holds their decision values :math:`g + y - offset`.

Where a node of the grid starts:

* from the solution at the smaller C of the same fold, with all multipliers scaled by the ratio of the two;
  as it is where few are at their bound; and with nothing at the bound it is the solution for every larger C;
* from the fold before, at the same C: rows in both folds keep their multipliers, rows that come in are at the
  bound if the other fold's machine puts them inside the margin. With most support vectors at the bound, far
  fewer rows change their state this way than from one C to the next.

From there two kinds of steps, until the largest violation of the optimality conditions is small enough:
pair steps (second-order SMO) on a gathered block of K, and Newton steps on the free variables with the
violators that are to become free, in which variables beyond their bounds are put there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._jit import (
    IN_ORDER,
    INDEX_BITS,
    REORDER,
    add_rows,
    compiled,
    exp2,
    fmax,
    fmin,
    index_in,
    with_index,
)

Floats = NDArray[np.float64]

_BIG = 1e30
# Largest block that pair steps gather, and violators at a bound that it takes in, besides half as many as
# there are free variables.
_BLOCK, _FEWEST_VIOLATORS = 2048, 256
# Largest number of variables of a Newton step; up to how many free ones it takes place among many violators.
_NEWTON, _SMALL = 3000, 1000
# Fewest pair steps that a round may take.
_FEWEST_STEPS = 300
# Variables at a bound per free one below which the multipliers are kept when C grows, and above which the
# fold before is the better start.
_KEEP, _FROM_FOLD = 0.1, 30.0
# Rounds per node.
_ROUNDS = 1000


class PathResult(NamedTuple):
    """Solutions along a path of C.

    Attributes
    ----------
    decision : ndarray of shape (n_C, n)
        Decision values of all rows, held-out ones too.
    u : ndarray of shape (n_C, n)
        y * alpha, zero on held-out rows.
    offset : ndarray of shape (n_C,)
        What is subtracted from K u.
    violation : ndarray of shape (n_C,)
        Largest violation of the optimality conditions, as LIBSVM defines it.
    steps : ndarray of shape (n_C,)
        Pair steps taken.
    solved : ndarray of shape (n_C,) of bool
        Whether the violation is at most the tolerance.
    """

    decision: Floats
    u: Floats
    offset: Floats
    violation: Floats
    steps: NDArray[np.int64]
    solved: NDArray[np.bool_]


@compiled()
def _fetch(K, slots, block, valid, size, i):  # type: ignore[no-untyped-def]
    """Fill row i of the block: its variable's kernel values with the others."""
    row, line = K[slots[i]], block[i]
    for k in range(size):
        line[k] = row[slots[k]]
    valid[i] = True


@compiled(fastmath=REORDER)
def _pair_steps(K, slots, Q, valid, diag, size, u, lo, hi, g, tol, max_steps, up, down, tau):  # type: ignore[no-untyped-def]
    """Second-order SMO on Q[:size, :size], changing u; returns the number of steps.

    up / down hold the gradient, or +-big where the variable cannot rise / fall. The index of a maximum
    rides in the low mantissa bits of its value, so that each step is two vectorised passes, by chunks of
    2**INDEX_BITS. Rows of Q that are not yet valid are fetched from K when they are asked for.
    """
    big = g.dtype.type(_BIG)
    zero, two = g.dtype.type(0.0), g.dtype.type(2.0)
    chunk = 1 << INDEX_BITS
    low, high = big, -big
    i = 0
    for t in range(size):
        up[t] = g[t] if u[t] < hi[t] else big
        down[t] = g[t] if u[t] > lo[t] else -big
        high = max(high, down[t])
        if up[t] < low:
            low = up[t]
            i = t
    steps = 0
    while steps < max_steps and high - low >= tol:
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
        room_i, room_j = hi[i] - u[i], u[j] - lo[j]
        d = min(np.float64(g_j - low) / curvature, min(room_i, room_j))
        before_i, before_j = u[i], u[j]
        u[i] = hi[i] if d == room_i else u[i] + d
        u[j] = lo[j] if d == room_j else u[j] - d
        if i == j or (u[i] == before_i and u[j] == before_j):
            break  # the pair cannot move in this precision
        steps += 1
        up[i] = low if u[i] < hi[i] else big
        down[i] = low if u[i] > lo[i] else -big
        up[j] = g_j if u[j] < hi[j] else big
        down[j] = g_j if u[j] > lo[j] else -big
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


@compiled(fastmath=REORDER)
def _solve_rows(R, size, X, start, count):  # type: ignore[no-untyped-def]
    """Each of `count` rows x of X, an even number, becomes ``(R R')^-1 x``; R is lower triangular."""
    zero, one = R.dtype.type(0.0), R.dtype.type(1.0)
    for i in range(size):
        row = R[i]
        inverse = one / row[i]
        for r in range(start, start + count, 2):
            x, z = X[r], X[r + 1]
            s, t = zero, zero
            for k in range(i):
                s += row[k] * x[k]
                t += row[k] * z[k]
            x[i] = (x[i] - s) * inverse
            z[i] = (z[i] - t) * inverse
    for i in range(size - 1, -1, -1):
        row = R[i]
        inverse = one / row[i]
        for r in range(start, start + count, 2):
            x, z = X[r], X[r + 1]
            s, t = x[i] * inverse, z[i] * inverse
            x[i], z[i] = s, t
            for k in range(i):
                x[k] -= s * row[k]
                z[k] -= t * row[k]


@compiled()
def _factor(A, ridge):  # type: ignore[no-untyped-def]
    """Cholesky factor of A with a ridge, raised until there is one; the ridge, or -1. A is changed."""
    m = len(A)
    diagonal, mean = np.empty(m), 0.0
    for i in range(m):
        diagonal[i] = A[i, i]
        mean += abs(diagonal[i]) / m
    R = A
    for _ in range(14):
        for i in range(m):
            A[i, i] = diagonal[i] + ridge * mean
        try:
            R = np.linalg.cholesky(A)
            return R, ridge
        except Exception:
            ridge *= 4.0
    return R, -1.0


@compiled(fastmath=REORDER)
def _direction(R, size, g, below, above, d, small):  # type: ignore[no-untyped-def]
    r"""The minimum d in the box, with sum zero, of the quadratic with gradient g and matrix A = R R'.

    With :math:`w = A^{-1}g` and :math:`v = A^{-1}e` the step is :math:`\lambda v - w`. It is taken as far as
    the first bound; that variable is fixed there and taken out of the inverse, which is kept in product form:
    :math:`A^{-1} - \sum_p c_p c_p^\top`. Columns of the inverse are solved for some at a time, for those
    variables that are going to meet their bounds next. One at a time, for what lies beyond its bound in the
    first step need not do so in the last. It ends early where a pivot gets too `small`.
    """
    batch, most = 16, min(size, 512)
    w, v, p, reach = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    column = np.empty(size, R.dtype)
    active = np.ones(size)
    where = np.full(size, -1)
    columns = np.empty((most + batch, size), R.dtype)
    for i in range(size):
        columns[0, i], columns[1, i] = g[i], 1
        d[i] = 0.0
    _solve_rows(R, size, columns, 0, 2)
    for i in range(size):
        w[i], v[i] = columns[0, i], columns[1, i]
    parts = np.empty((most, size), R.dtype)
    known = 0
    for removed in range(size - 1):
        sum_w, sum_v, total = 0.0, 0.0, 0.0
        for i in range(size):
            sum_w += w[i]
            sum_v += v[i]
            total += d[i]
        level = (sum_w - total) / sum_v  # total is zero but for rounding
        length = 1.0
        for i in range(size):
            x = (level * v[i] - w[i]) * active[i]
            p[i] = x
            room = (above[i] if x > 0 else below[i]) - d[i]
            reach[i] = room / x if x != 0 else _BIG
            length = fmin(length, reach[i])
        length = max(length, 0.0)
        first = -1
        for i in range(size):
            if reach[i] <= length and length < 1.0:
                first = i
                break
        for i in range(size):
            x = fmin(fmax(d[i] + length * p[i], below[i]), above[i])
            w[i] += (x - d[i]) * active[i]
            d[i] = x
        if first < 0:
            break
        end = above[first] if p[first] > 0 else below[first]
        w[first] += end - d[first]
        d[first] = end
        if removed >= most:
            break
        if where[first] < 0:
            if known + batch > len(columns):
                break
            for r in range(known, known + batch):
                line = columns[r]
                for i in range(size):
                    line[i] = 0
            k = first
            for r in range(known, known + batch):
                columns[r, k] = 1
                where[k] = r
                k = -1
                nearest = 0.5 * _BIG
                for i in range(size):
                    if where[i] < 0 and reach[i] < nearest:
                        nearest, k = reach[i], i
                if k < 0:
                    break
            _solve_rows(R, size, columns, known, batch)
            known += batch
        source = columns[where[first]]
        for i in range(size):
            column[i] = source[i]
        for k in range(removed):
            part = parts[k]
            y = part[first]
            for i in range(size):
                column[i] -= y * part[i]
        pivot = np.float64(column[first])
        if not pivot > small:
            break
        part = parts[removed]
        scale = R.dtype.type(1.0 / np.sqrt(pivot))
        x, z = w[first] / pivot, v[first] / pivot
        for i in range(size):
            part[i] = column[i] * scale
            w[i] -= x * column[i]
            v[i] -= z * column[i]
        active[first], w[first], v[first] = 0.0, 0.0, 0.0


@compiled(fastmath=REORDER)
def _lowest(A, g, d):  # type: ignore[no-untyped-def]
    """Where on the way from 0 to d the objective is lowest, as a share of d; 0 if d does not descend."""
    slope, curvature = 0.0, 0.0
    for i in range(len(d)):
        slope += g[i] * d[i]
        row, s = A[i], 0.0
        for k in range(len(d)):
            s += row[k] * d[k]
        curvature += s * d[i]
    if not slope < 0:
        return 0.0
    return min(1.0, -slope / curvature) if curvature > 0 else 1.0


@compiled()
def _restore_sum(d, below, above):  # type: ignore[no-untyped-def]
    """Bring the sum of d to zero with those inside the box: near-singular matrices have much to cancel."""
    for _ in range(3):
        total, room = 0.0, 0.0
        for i in range(len(d)):
            total += d[i]
        for i in range(len(d)):
            if below[i] < d[i] < above[i]:
                room += d[i] - below[i] if total > 0 else above[i] - d[i]
        if total == 0 or room == 0:
            return
        share = min(1.0, abs(total) / room)
        for i in range(len(d)):
            if below[i] < d[i] < above[i]:
                d[i] -= share * (d[i] - below[i] if total > 0 else d[i] - above[i])


@compiled()
def _newton(K, u, g, lo, hi, members, scale, ridge):  # type: ignore[no-untyped-def]
    """A Newton step on some variables; returns whether there was one, and the ridge."""
    size = len(members)
    A = np.empty((size, size), K.dtype)
    gradient, below, above, d = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    for i in range(size):
        k = members[i]
        row, line = K[k], A[i]
        for j in range(size):
            line[j] = row[members[j]]
        gradient[i], below[i], above[i] = g[k], lo[k] - u[k], hi[k] - u[k]
    R, found = _factor(A, ridge)
    if found < 0:
        return False, ridge
    _direction(R, size, gradient, below, above, d, (1e-6 if K.itemsize == 4 else 1e-12) / scale)
    _restore_sum(d, below, above)
    length = _lowest(A, gradient, d)
    if length == 0:
        return False, found
    for i in range(size):
        k = members[i]
        d[i] *= length
        u[k] = lo[k] if d[i] <= below[i] else (hi[k] if d[i] >= above[i] else u[k] + d[i])
    add_rows(g, K, members, d, 0, K.shape[1])
    return True, found


@compiled(fastmath=REORDER)
def _survey(u, g, lo, hi):  # type: ignore[no-untyped-def]
    """Extremes of the gradient, and sum and number of the free ones."""
    low, high, total, free = _BIG, -_BIG, 0.0, 0
    for t in range(len(u)):
        rises, falls = u[t] < hi[t], u[t] > lo[t]
        low = fmin(low, g[t] if rises else _BIG)
        high = fmax(high, g[t] if falls else -_BIG)
        total += g[t] if rises and falls else 0.0
        free += 1 if rises and falls else 0
    return low, high, total, free


@compiled()
def _snap(u, lo, hi):  # type: ignore[no-untyped-def]
    """Put what rounding has left beside a bound on it: it must not pass for free, and set the offset."""
    for t in range(len(u)):
        near = 1e-13 * (hi[t] - lo[t])
        if hi[t] - u[t] <= near:
            u[t] = hi[t]
        elif u[t] - lo[t] <= near:
            u[t] = lo[t]


@compiled()
def _select(u, g, lo, hi, low, high, most, members):  # type: ignore[no-untyped-def]
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
        code[t] = -1
        if rises and falls:
            code[t] = 0
            if size < most:
                members[size] = t
                size += 1
        elif rises and g[t] < high:
            b = min(int((g[t] - low) * scale), bins - 1)
            counts[0, b] += 1
            code[t] = 1 + b
        elif falls and g[t] > low:
            b = min(int((high - g[t]) * scale), bins - 1)
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
def _gather(K, block, valid, place, slots, size, members, wanted):  # type: ignore[no-untyped-def]
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


@compiled()
def _balance(u, g, lo, hi, level, change):  # type: ignore[no-untyped-def]
    """Bring the sum of u to zero with the rows nearest to the margin; their changes are added to `change`."""
    n = len(u)
    excess, largest = 0.0, 0.0
    for t in range(n):
        excess += u[t]
        largest = max(largest, max(hi[t], -lo[t]))
    width = 0.05
    while abs(excess) > 1e-13 * largest * n:
        for t in range(n):
            room = min(excess, u[t] - lo[t]) if excess > 0 else max(excess, u[t] - hi[t])
            if room != 0 and abs(g[t] - level) <= width:
                u[t] -= room
                change[t] -= room
                excess -= room
                if excess == 0:
                    break
        if width > _BIG:
            break
        width *= 4.0
    return abs(excess) <= 1e-13 * largest * n


@compiled(fastmath=REORDER)
def _apply(K, g, change, slots, coef):  # type: ignore[no-untyped-def]
    """``g += K change``, for a change with many zeros."""
    moved = 0
    for t in range(len(change)):
        if change[t] != 0:
            slots[moved], coef[moved] = t, change[t]
            moved += 1
    if moved:
        add_rows(g, K, slots[:moved], coef[:moved], 0, K.shape[1])


@compiled()
def _newton_cost(free, n):  # type: ignore[no-untyped-def]
    """Nominal microseconds of a Newton step; those of a pair step are in `_step_cost`."""
    return free**3 / 3e4 + free**2 * 5e-3 + 0.1 * n


@compiled()
def _step_cost(size):  # type: ignore[no-untyped-def]
    return 0.4e-3 * size + 0.1


@compiled()
def _movable(u, g, lo, hi, middle, slack, free, members):  # type: ignore[no-untyped-def]
    """The free variables and a few violators that a Newton step is to make free; 0 where it is too early.

    Where it is still open for many variables whether they are free, a large matrix is not worth its while;
    a small one is, with the worst of the violators.
    """
    most = int(1.2 * free) + 10
    for _ in range(12 if free < _SMALL else 1):
        size = 0
        for t in range(len(u)):
            rises, falls = u[t] < hi[t], u[t] > lo[t]
            if (rises and (falls or g[t] < middle - slack)) or (falls and g[t] > middle + slack):
                members[size] = t
                size += 1
        if size <= most:
            return size if 2 <= size <= _NEWTON else 0
        slack *= 2.0
    return 0


@compiled()
def _solve_node(  # type: ignore[no-untyped-def]
    K, diag, scale, y, u, g, lo, hi, tol, budget, block, valid, place, slots, held, ridge
):
    """Bring (u, g) to a violation of at most tol; returns offset, violation and the number of pair steps.

    held[0] is the size of the block, ridge[0] the last ridge with which a factor was found.
    """
    n = len(u)
    members = np.empty(n, np.int64)
    x, x0, lo_w, hi_w = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    g_w, diag_w = np.empty(n, K.dtype), np.empty(n, K.dtype)
    up, down = np.empty(n, K.dtype), np.empty(n, K.dtype)
    change, moved = np.empty(n), np.empty(n, np.int64)
    always = np.ones(n, np.bool_)
    tau = K.dtype.type((1e-6 if K.itemsize == 4 else 1e-12) * scale)
    steps, spent, stalled = 0, 0.0, 0
    want_newton, exact = False, False
    last = np.inf
    _snap(u, lo, hi)
    for _ in range(_ROUNDS):
        low, high, total, free = _survey(u, g, lo, hi)
        if steps >= budget or stalled > 3:
            break
        if high - low <= tol:
            rounding = 0.0
            for t in range(n):
                rounding += 1e-14 * scale * abs(u[t])
            if exact or rounding < 0.1 * tol:
                break
            # What the updates have lost might matter: the gradient anew.
            for t in range(n):
                g[t] = -y[t]
            _apply(K, g, u, moved, change)
            exact = True
            continue
        exact = False
        middle = total / free if free > 0 else 0.5 * (low + high)
        if want_newton:
            want_newton = False
            size = _movable(u, g, lo, hi, middle, 0.25 * tol, free, members)
            if size > 0:
                done, ridge[0] = _newton(K, u, g, lo, hi, members[:size], scale, ridge[0])
                spent = 0.0
                if done:
                    want_newton = high - low < 0.7 * last
                    last = high - low
                    continue
        last = high - low
        wanted = _select(u, g, lo, hi, low, high, len(slots), members) if free < 0.9 * _BLOCK else n
        direct = wanted > 0.65 * n
        size = n if direct else _gather(K, block, valid, place, slots, held[0], members, wanted)
        if not direct:
            held[0] = size
        for i in range(size):  # most rows matter: on the matrix itself; else on the block
            t = i if direct else slots[i]
            x[i], x0[i], lo_w[i], hi_w[i] = u[t], u[t], lo[t], hi[t]
            g_w[i], diag_w[i] = g[t] - middle, diag[t]  # float32 has no digits to spare for the offset
        # As many pair steps as two Newton steps would cost
        most = max(2.0 * _newton_cost(free, n) / _step_cost(size), _FEWEST_STEPS)
        most = int(min(most, 4.0 * size, budget - steps))
        inner = K.dtype.type(max(0.5 * tol, 0.1 * (high - low)))
        taken = _pair_steps(
            K,
            slots,
            K if direct else block,
            always if direct else valid,
            diag_w,
            size,
            x,
            lo_w,
            hi_w,
            g_w,
            inner,
            most,
            up,
            down,
            tau,
        )
        steps += taken
        spent += taken * _step_cost(size)
        count, free = 0, 0
        for i in range(size):
            t = i if direct else slots[i]
            if x[i] != x0[i]:
                change[count], moved[count] = x[i] - x0[i], t
                count += 1
                u[t] = x[i]
            free += x[i] > lo_w[i] and x[i] < hi_w[i]
        add_rows(g, K, moved[:count], change[:count], 0, n)
        stalled = stalled + 1 if count == 0 else 0
        want_newton = count == 0 or spent > 0.3 * _newton_cost(free, n)
    _snap(u, lo, hi)
    low, high, total, free = _survey(u, g, lo, hi)
    if low >= _BIG or high <= -_BIG:  # one class only: nothing can move
        return (low if low < _BIG else (high if high > -_BIG else 0.0)), 0.0, steps
    return (total / free if free > 0 else 0.5 * (low + high)), high - low, steps


@compiled()
def _count(u, C, weight):  # type: ignore[no-untyped-def]
    """Numbers of variables at their bound C * weight and of free ones."""
    bounded, free = 0, 0
    for t in range(len(u)):
        if u[t] != 0:
            full = abs(u[t]) == C * weight[t]
            bounded += full
            free += not full
    return bounded, free


@compiled()
def _start_from(  # type: ignore[no-untyped-def]
    K, y, u, g, lo, hi, train, before, train_before, scores, level, change, rows, coef
):
    """Start (u, g) from another fold's solution `before` at the same C, with its decision values `scores`."""
    for t in range(len(u)):
        g[t] = scores[t] + level - y[t]
        u[t] = before[t]
        if train[t] != train_before[t]:
            inside = train[t] and y[t] * scores[t] < 1
            u[t] = lo[t] + hi[t] if inside else 0.0  # one of the two is zero
        change[t] = u[t] - before[t]
    if _balance(u, g, lo, hi, level, change):
        _apply(K, g, change, rows, coef)
    else:
        for t in range(len(u)):
            u[t], g[t] = 0.0, -y[t]


@compiled()
def _paths(  # type: ignore[no-untyped-def]
    K, diag, y, trains, Cs, weight, tol, max_steps, start, decision, us, offset, violation, steps, solved
):
    """All C of all folds, one after the other. `start` is that of the first fold at the least C."""
    n = len(y)
    limit = min(n, _BLOCK)
    block, valid = np.empty((limit, limit), K.dtype), np.zeros(limit, np.bool_)
    place, slots = np.full(n, -1), np.full(limit, -1)
    held, ridge = np.zeros(1, np.int64), np.full(1, 1e-7 if K.itemsize == 4 else 1e-15)
    u, g, lo, hi = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    change, coef, rows = np.zeros(n), np.empty(n), np.empty(n, np.int64)
    scale = 0.0
    for t in range(n):
        scale += abs(diag[t]) / n
    scale = max(scale, 1e-30)
    for f in range(len(trains)):
        train = trains[f]
        budget = max_steps
        for c in range(len(Cs)):
            C = Cs[c]
            bounded, free = _count(u, Cs[c - 1], weight) if c > 0 else (0, 0)
            same = c > 0 and bounded == 0 and solved[f, c - 1]
            from_fold = f > 0 and c == 0
            if f > 0 and not same:
                bounded_there, free_there = _count(us[f - 1, c], C, weight)
                from_fold |= bounded_there > _FROM_FOLD * free_there
            scaled = c > 0 and not from_fold and bounded >= _KEEP * free and bounded > 0
            ratio = C / Cs[c - 1] if c > 0 else 1.0
            for t in range(n):
                at_hi, at_lo = u[t] == hi[t], u[t] == lo[t]
                hi[t] = C * weight[t] if train[t] and y[t] > 0 else 0.0
                lo[t] = -C * weight[t] if train[t] and y[t] < 0 else 0.0
                if scaled:
                    g[t] = ratio * (g[t] + y[t]) - y[t]
                    u[t] = hi[t] if at_hi else (lo[t] if at_lo else ratio * u[t])
            if from_fold:
                _start_from(
                    K,
                    y,
                    u,
                    g,
                    lo,
                    hi,
                    train,
                    us[f - 1, c],
                    trains[f - 1],
                    decision[f - 1, c],
                    offset[f - 1, c],
                    change,
                    rows,
                    coef,
                )
            elif c == 0:
                for t in range(n):
                    u[t] = min(max(start[t], lo[t]), hi[t])
                    g[t] = -y[t]
                if not _balance(u, g, lo, hi, 0.0, change):
                    for t in range(n):
                        u[t] = 0.0
                _apply(K, g, u, rows, coef)
            if same:
                offset[f, c], violation[f, c], steps[f, c] = offset[f, c - 1], violation[f, c - 1], 0
            else:
                offset[f, c], violation[f, c], steps[f, c] = _solve_node(
                    K, diag, scale, y, u, g, lo, hi, tol, budget, block, valid, place, slots, held, ridge
                )
                budget -= steps[f, c]
            solved[f, c] = violation[f, c] <= tol
            level = offset[f, c]
            out_u, out = us[f, c], decision[f, c]
            for t in range(n):
                out_u[t] = u[t]
                out[t] = g[t] + y[t] - level


def solve_folds(
    K: NDArray[Any],
    y: Floats,
    trains: NDArray[np.bool_],
    Cs: Sequence[float] | Floats,
    *,
    tol: float = 1e-3,
    weight: Floats | None = None,
    warm: Floats | None = None,
    max_steps: int = 10_000_000,
) -> list[PathResult]:
    """Solve a path of C for each of several folds, each with what the one before has found.

    The parameters are those of `solve_c_path`, but for `trains`, whose rows are the masks of the folds, and
    `max_steps`, which holds for each fold. `warm` is the start of the first.
    """
    if K.dtype not in (np.float32, np.float64) or not K.flags.c_contiguous or K.shape != (len(y), len(y)):
        raise ValueError("K must be a square matrix of float32 or float64 in C order, one row per label")
    path = np.ascontiguousarray(Cs, dtype=np.float64)
    if not (np.all(path > 0) and np.all(np.diff(path) > 0)):
        raise ValueError("Cs must be positive and ascending")
    n = len(y)
    masks = np.ascontiguousarray(np.atleast_2d(trains), dtype=np.bool_)
    shape = (len(masks), len(path))
    decision, us = np.empty((*shape, n)), np.empty((*shape, n))
    offset, violation = np.empty(shape), np.empty(shape)
    steps, solved = np.empty(shape, np.int64), np.empty(shape, np.bool_)
    factors = np.ones(n) if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
    start = np.zeros(n) if warm is None else np.ascontiguousarray(warm, dtype=np.float64)
    labels = np.ascontiguousarray(y, dtype=np.float64)
    _paths(
        K, K.diagonal().copy(), labels, masks, path, factors, float(tol), max_steps, start,
        decision, us, offset, violation, steps, solved,
    )  # fmt: skip
    return [PathResult(*one) for one in zip(decision, us, offset, violation, steps, solved, strict=True)]


def solve_c_path(
    K: NDArray[Any],
    y: Floats,
    train: NDArray[np.bool_],
    Cs: Sequence[float] | Floats,
    *,
    tol: float = 1e-3,
    weight: Floats | None = None,
    warm: Floats | None = None,
    max_steps: int = 10_000_000,
) -> PathResult:
    r"""Solve the machine of some rows for each of several C.

    K counts as exact: `violation` is that of the problem with the values given, in float64 arithmetic.
    Those of a float32 matrix are rounded, which shifts a gradient by up to 6e-8 times the sum of \|u\|.
    Threads may solve at once, on one K; BLAS should then be limited to one thread each.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel values of all rows, symmetric, float32 or float64, in C order.
    y : ndarray of shape (n,)
        Labels, -1 or +1.
    train : ndarray of shape (n,) of bool
        Rows to train on. The others get decision values only.
    Cs : sequence of float
        Ascending values of C.
    tol : float
        Largest violation of the optimality conditions allowed, as LIBSVM defines it.
    weight : ndarray of shape (n,), optional
        Factors of C.
    warm : ndarray of shape (n,), optional
        Where to start at the least C, y * alpha of a similar problem; it is made feasible.
    max_steps : int
        Pair steps that the path may take.

    Returns
    -------
    PathResult
        The solutions, whether or not they are within the tolerance.
    """
    masks = np.asarray(train)[None]
    return solve_folds(K, y, masks, Cs, tol=tol, weight=weight, warm=warm, max_steps=max_steps)[0]


def squared_distances(X: NDArray[Any]) -> NDArray[np.float32]:
    """Squared Euclidean distances between all rows, rounded to float32 only at the end."""
    X = np.asarray(X, dtype=np.float64) - np.mean(X, axis=0, dtype=np.float64)
    norms = np.einsum("ij,ij->i", X, X)
    distances = np.empty((len(X), len(X)), np.float32)
    for start in range(0, len(X), 256):
        rows = slice(start, start + 256)
        part = X[rows] @ X.T
        part *= -2
        part += norms[rows, None]
        part += norms
        distances[rows] = np.maximum(part, 0, out=part)
    np.fill_diagonal(distances, 0)
    return distances


def kernel_of_width(
    distances: NDArray[np.float32], gamma: float, out: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """``exp(-gamma * distances)``, for the kernel of one width after the other from the same distances."""
    out = np.empty_like(distances) if out is None else out
    _exp_rows(distances, np.float32(-gamma / np.log(2)), out)
    return out


@compiled(fastmath=IN_ORDER)
def _exp_rows(distances, factor, out):  # type: ignore[no-untyped-def]
    for i in range(len(distances)):
        source, line = distances[i], out[i]
        for k in range(len(source)):
            line[k] = exp2(factor * source[k])
