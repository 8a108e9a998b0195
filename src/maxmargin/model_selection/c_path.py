r"""Paths of solutions along C: the engine of a search over C, the kernel's width and folds.

With :math:`u_i = y_i\alpha_i` the dual of the hinge-loss machine with bias is

.. math:: \min_u \tfrac12 u^\top K u - y^\top u,\qquad e^\top u = 0,\quad lo \le u \le hi,

with :math:`hi_i = C w_i` for :math:`y_i = 1`, :math:`lo_i = -C w_i` for :math:`y_i = -1`, zero otherwise. Rows
held out have :math:`lo_i = hi_i = 0`: nothing ever chooses them, and the gradient :math:`g = K u - y`, which is
kept for all rows, holds their decision values :math:`g + y - offset`.

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

from maxmargin._jit import INDEX_BITS, IN_ORDER, REORDER, add_rows, compiled, exp2, fmax, fmin, index_in, with_index

Floats = NDArray[np.float64]

_BIG = 1e30
# Largest block that pair steps gather.
_BLOCK = 2048
# Largest number of variables of a Newton step.
_NEWTON = 3000
# Rounds of a Newton step in which variables beyond their bounds are put there.
_CLIPS = 6
# Pair steps of a round per variable of the block, and at least.
_STEPS_PER_VARIABLE, _FEWEST_STEPS = 3, 1000
# Share of the free variables that may be at a bound for the multipliers to be kept when C grows.
_KEEP = 0.1
OPTS = np.array([0.2, 1, 1, 0.3, 3.0, 1.0, 10, 0.1, 0.1, 0.65, 0.5, 256, 1000, 300])
# Rounds per node.
_ROUNDS = 2000


from numba.extending import intrinsic  # PROFILE
from numba import types  # PROFILE
from llvmlite import ir  # PROFILE


@intrinsic  # PROFILE
def tick(typingctx):  # PROFILE
    def codegen(context, builder, signature, args):  # PROFILE
        fn = builder.module.declare_intrinsic("llvm.readcyclecounter", [], ir.FunctionType(ir.IntType(64), []))  # PROFILE
        return builder.call(fn, [])  # PROFILE
    return types.int64(), codegen  # PROFILE


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
def _pair_steps(K, slots, Q, valid, diag, size, u, lo, hi, g, tol, max_steps, up, down):  # type: ignore[no-untyped-def]
    """Second-order SMO on Q[:size, :size], changing u; returns the number of steps.

    up / down hold the gradient, or +-big where the variable cannot rise / fall. The index of a maximum rides in
    the low mantissa bits of its value, so that each step is two vectorised passes, by chunks of 2**INDEX_BITS.
    """
    big = g.dtype.type(_BIG)
    zero, two = g.dtype.type(0.0), g.dtype.type(2.0)
    tau = g.dtype.type(1e-6 if g.itemsize == 4 else 1e-12)
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
        curvature = max(np.float64(diag_i) + np.float64(diag[j]) - 2.0 * np.float64(row_i[j]), np.float64(tau))
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
def _solve_rows(R, size, X, count):  # type: ignore[no-untyped-def]
    """Every row x of X[:count], an even number, becomes ``(R R')^-1 x``, for lower triangular R by rows."""
    zero, one = R.dtype.type(0.0), R.dtype.type(1.0)
    for i in range(size):
        row = R[i]
        inverse = one / row[i]
        for r in range(0, count, 2):
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
        for r in range(0, count, 2):
            x, z = X[r], X[r + 1]
            s, t = x[i] * inverse, z[i] * inverse
            x[i], z[i] = s, t
            for k in range(i):
                x[k] -= s * row[k]
                z[k] -= t * row[k]


@compiled()
def _factor(A, ridge):  # type: ignore[no-untyped-def]
    """Cholesky factor of A with a ridge, which is raised until there is one; the ridge, or -1. A is changed."""
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
def _direction(A, R, size, g, below, above, d, widen):  # type: ignore[no-untyped-def]
    r"""The minimum in the box of the quadratic with gradient g and matrix A = R R', as far as it can be had.

    With :math:`w = A^{-1}g` and :math:`v = A^{-1}e` the step is :math:`\lambda v - w`. It is taken a little
    beyond the first bound; the variables that meet theirs are fixed there and taken out of the inverse, which
    is kept in product form: :math:`A^{-1} - \sum_p c_p c_p^\top`. Columns of the inverse are solved for some
    at a time, for those variables that will meet their bounds next.
    """
    batch, most = 16, min(size, 512)
    w, v, p, reach, column = np.empty(size), np.empty(size), np.empty(size), np.empty(size), np.empty(size, R.dtype)
    active = np.ones(size)
    X = np.empty((2, size), R.dtype)
    for i in range(size):
        X[0, i], X[1, i] = g[i], 1
        d[i] = 0.0
    _solve_rows(R, size, X, 2)
    for i in range(size):
        w[i], v[i] = X[0, i], X[1, i]
    where = np.full(size, -1)
    columns = np.empty((most + batch, size), R.dtype)
    parts = np.empty((most, size), R.dtype)
    group = np.empty(batch, np.int64)
    known, removed, left = 0, 0, size
    while left > 1:
        sum_w, sum_v, total = 0.0, 0.0, 0.0
        for i in range(size):
            sum_w += w[i]
            sum_v += v[i]
            total += d[i]
        level = (sum_w - total) / sum_v
        length = 1.0
        for i in range(size):
            x = (level * v[i] - w[i]) * active[i]
            p[i] = x
            room = (above[i] if x > 0 else below[i]) - d[i]
            t = room / x if x != 0 else _BIG
            reach[i] = t
            length = fmin(length, t)
        length = max(length, 0.0)
        count = 0
        if length < 1.0:
            length = min(1.0, max(length, widen * length))
            for i in range(size):
                if reach[i] <= length and active[i] > 0:
                    if count == batch:  # no further than these
                        worst = 0
                        for k in range(1, batch):
                            if reach[group[k]] > reach[group[worst]]:
                                worst = k
                        if reach[group[worst]] > reach[i]:
                            group[worst] = i
                    else:
                        group[count] = i
                        count += 1
            if count == batch:
                length = 0.0
                for k in range(batch):
                    length = max(length, reach[group[k]])
        for i in range(size):
            x = d[i] + length * p[i]
            x = fmin(fmax(x, below[i]), above[i])
            w[i] += (x - d[i]) * active[i]
            d[i] = x if active[i] > 0 else d[i]
        if count == 0:
            break
        stuck = False
        for member in range(count):
            first = group[member]
            end = above[first] if p[first] > 0 else below[first]
            w[first] += end - d[first]
            d[first] = end
        for member in range(count):
            first = group[member]
            if removed >= most:
                stuck = True
                break
            if where[first] < 0:
                if known + batch > len(columns):
                    stuck = True
                    break
                X = columns[known : known + batch]
                X[:] = 0
                k = first
                for r in range(batch):
                    X[r, k] = 1
                    where[k] = known + r
                    k = -1
                    nearest = 0.5 * _BIG
                    for i in range(size):
                        if where[i] < 0 and reach[i] < nearest and active[i] > 0:
                            nearest, k = reach[i], i
                    if k < 0:
                        break
                _solve_rows(R, size, X, batch)
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
            if not pivot > 1e-6:
                stuck = True
                break
            part = parts[removed]
            scale = R.dtype.type(1.0 / np.sqrt(pivot))
            x, z = w[first] / pivot, v[first] / pivot
            for i in range(size):
                part[i] = column[i] * scale
                w[i] -= x * column[i]
                v[i] -= z * column[i]
            active[first], w[first], v[first] = 0.0, 0.0, 0.0
            removed += 1
            left -= 1
        if stuck:
            break
    return removed


@compiled()
def _newton(K, u, g, lo, hi, members, size, ridge, stats, opts):  # type: ignore[no-untyped-def]
    """A Newton step on some variables; returns how many met their bounds (-1: no step) and the ridge."""
    t0 = tick()  # PROFILE
    A = np.empty((size, size), K.dtype)
    gradient, below, above, d = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    for i in range(size):
        k = members[i]
        row, line = K[k], A[i]
        for j in range(size):
            line[j] = row[members[j]]
        gradient[i], below[i], above[i] = g[k], lo[k] - u[k], hi[k] - u[k]
    t1 = tick()  # PROFILE
    R, found = _factor(A, ridge)
    t2 = tick()  # PROFILE
    if found < 0:
        return -1, ridge
    removed = _direction(A, R, size, gradient, below, above, d, opts[5])
    t3 = tick()  # PROFILE
    moved = 0
    slots = np.empty(size, np.int64)
    for i in range(size):
        k = members[i]
        x = d[i]
        if x != 0:
            u[k] = lo[k] if x <= below[i] else (hi[k] if x >= above[i] else u[k] + x)
            slots[moved], d[moved] = k, x
            moved += 1
    add_rows(g, K, slots[:moved], d[:moved], 0, K.shape[1])
    stats[9] += t1 - t0; stats[10] += t2 - t1; stats[11] += t3 - t2  # PROFILE
    return removed, found


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
def _select(u, g, lo, hi, low, high, most, members, opts):  # type: ignore[no-untyped-def]
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
    room = min(most - size, int(opts[11] + opts[10] * size))
    total = counts.sum(axis=1)
    share = np.empty(2, np.int64)
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
def _solve_node(  # type: ignore[no-untyped-def]
    K, diag, u, g, lo, hi, tol, budget, newton_first, block, valid, place, slots, held, ridge, stats, opts
):
    """Bring (u, g) to a violation of at most tol; returns offset, violation and the number of pair steps.

    held[0] is the size of the block, ridge[0] the last ridge with which a factor was found.
    """
    n = len(u)
    width = n + 16
    members = np.empty(n, np.int64)
    x, x0, lo_w, hi_w = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    g_w, diag_w = np.empty(width, K.dtype), np.zeros(width, K.dtype)
    up, down = np.empty(width, K.dtype), np.empty(width, K.dtype)
    change, moved = np.empty(n), np.empty(n, np.int64)
    always = np.ones(n, np.bool_)
    steps, spent, stalled = 0, 0.0, 0
    want_newton = newton_first
    last = np.inf
    for _ in range(_ROUNDS):
        low, high, total, free = _survey(u, g, lo, hi)
        if high - low <= tol or steps >= budget or stalled > 3:
            break
        middle = total / free if free > 0 else 0.5 * (low + high)
        if want_newton:
            want_newton = False
            slack = 0.25 * tol
            size = n
            while size > (1 + opts[0]) * free + opts[6] and slack < _BIG:
                size = 0
                for t in range(n):
                    rises, falls = u[t] < hi[t], u[t] > lo[t]
                    if (rises and (falls or g[t] < middle - slack)) or (falls and g[t] > middle + slack):
                        members[size] = t
                        size += 1
                slack *= 2.0
            if 2 <= size <= _NEWTON:
                t0 = tick()  # PROFILE
                removed, ridge[0] = _newton(K, u, g, lo, hi, members, size, ridge[0], stats, opts)
                stats[1] += 1
                stats[4] += tick() - t0  # PROFILE
                stats[3] += size  # PROFILE
                spent = 0.0
                if removed >= 0:
                    stats[2] += removed
                    want_newton = opts[1] > 0 and high - low < 0.7 * last
                    last = high - low
                    continue
        last = high - low
        t0 = tick()  # PROFILE
        inner = max(0.5 * tol, opts[7] * (high - low))
        direct = free > 0.9 * _BLOCK
        wanted = 0
        if not direct:
            wanted = _select(u, g, lo, hi, low, high, _BLOCK, members, opts)
            direct = wanted > opts[9] * n
        if direct:  # most rows matter: on the matrix itself
            size = n
            for t in range(n):
                x[t], x0[t], lo_w[t], hi_w[t] = u[t], u[t], lo[t], hi[t]
                g_w[t], diag_w[t] = g[t] - middle, diag[t]
            Q, ready = K, always
        else:
            size = _gather(K, block, valid, place, slots, held[0], members, wanted)
            held[0] = size
            for i in range(size):
                t = slots[i]
                x[i], x0[i], lo_w[i], hi_w[i] = u[t], u[t], lo[t], hi[t]
                g_w[i], diag_w[i] = g[t] - middle, diag[t]
            Q, ready = block, valid
        cost = free**3 / 3e4 + free**2 * 5e-3 + opts[8] * n
        most = int(min(max(opts[4] * cost / (size * 0.4e-3 + 0.1), opts[13]), 4.0 * size, budget - steps))
        t1 = tick()  # PROFILE
        taken = _pair_steps(K, slots, Q, ready, diag_w, size, x, lo_w, hi_w, g_w, K.dtype.type(inner), most, up, down)
        steps += taken
        t2 = tick()  # PROFILE
        stats[0] += 1
        spent += taken * (size * 0.4e-3 + 0.1)
        count, free = 0, 0
        for i in range(size):
            t = i if direct else slots[i]
            if x[i] != x0[i]:
                change[count], moved[count] = x[i] - x0[i], t
                count += 1
                u[t] = x[i]
            if x[i] > lo_w[i] and x[i] < hi_w[i]:
                free += 1
        add_rows(g, K, moved[:count], change[:count], 0, n)
        stats[5] += t1 - t0; stats[6] += t2 - t1; stats[7] += tick() - t2  # PROFILE
        stalled = stalled + 1 if count == 0 else 0
        want_newton = count == 0 or spent > opts[3] * (free**3 / 3e4 + free**2 * 5e-3 + opts[8] * n)
    low, high, total, free = _survey(u, g, lo, hi)
    return 0.5 * (low + high), high - low, steps


@compiled()
def _paths(  # type: ignore[no-untyped-def]
    K, diag, y, trains, Cs, weight, tol, max_steps, start, decision, us, offset, violation, steps, solved, stats, opts
):
    """All C of all folds, one after the other. `start` is that of the first fold at the least C."""
    n, n_C = len(y), len(Cs)
    limit = min(n, _BLOCK)
    block = np.zeros((limit, limit), K.dtype)
    valid = np.zeros(limit, np.bool_)
    place, slots = np.full(n, -1), np.full(limit, -1)
    held, ridge = np.zeros(1, np.int64), np.full(1, 1e-7 if K.itemsize == 4 else 1e-15)
    u, g, lo, hi = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    change, coef, rows = np.zeros(n), np.empty(n), np.empty(n, np.int64)
    for f in range(len(trains)):
        train = trains[f]
        budget = max_steps
        C_before = 0.0
        for c in range(n_C):
            C = Cs[c]
            bounded, free = 0, 0
            if c > 0:
                for t in range(n):
                    if u[t] != 0:
                        at_bound = u[t] == lo[t] or u[t] == hi[t]
                        bounded += at_bound
                        free += not at_bound
            same = c > 0 and bounded == 0 and solved[f, c - 1]
            keep = c > 0 and bounded < _KEEP * free
            from_fold = False
            if f > 0 and not same:
                bounded_there, free_there = 0, 0
                for t in range(n):
                    v = us[f - 1, c, t]
                    if v != 0:
                        full = abs(v) == C * weight[t]
                        bounded_there += full
                        free_there += not full
                from_fold = bounded_there > opts[12] * free_there or c == 0
            ratio = C / C_before if c > 0 else 1.0
            for t in range(n):
                at_hi, at_lo = u[t] == hi[t], u[t] == lo[t]
                hi[t] = C * weight[t] if train[t] and y[t] > 0 else 0.0
                lo[t] = -C * weight[t] if train[t] and y[t] < 0 else 0.0
                if c > 0 and not from_fold and not keep:
                    g[t] = ratio * (g[t] + y[t]) - y[t]
                    u[t] = hi[t] if at_hi else (lo[t] if at_lo else ratio * u[t])
            t0 = tick()  # PROFILE
            if from_fold:
                before, scores, level = us[f - 1, c], decision[f - 1, c], offset[f - 1, c]
                for t in range(n):
                    g[t] = scores[t] + level - y[t]
                    u[t] = before[t]
                    if train[t] != trains[f - 1, t]:
                        inside = train[t] and y[t] * scores[t] < 1
                        u[t] = y[t] * C * weight[t] if inside else 0.0
                    change[t] = u[t] - before[t]
                _balance(u, g, lo, hi, level, change)
                _apply(K, g, change, rows, coef)
            elif c == 0:
                for t in range(n):
                    u[t] = min(max(start[t], lo[t]), hi[t])
                    g[t] = -y[t]
                _balance(u, g, lo, hi, 0.0, change)
                _apply(K, g, u, rows, coef)
            stats[8] += tick() - t0  # PROFILE
            if same:
                offset[f, c], violation[f, c], steps[f, c] = offset[f, c - 1], violation[f, c - 1], 0
            else:
                offset[f, c], violation[f, c], steps[f, c] = _solve_node(
                    K, diag, u, g, lo, hi, tol, budget, opts[2] > 0 and from_fold, block, valid, place, slots, held, ridge, stats, opts
                )
                budget -= steps[f, c]
            solved[f, c] = violation[f, c] <= tol
            level = offset[f, c]
            out_u, out = us[f, c], decision[f, c]
            for t in range(n):
                out_u[t] = u[t]
                out[t] = g[t] + y[t] - level
            C_before = C


def solve_folds(
    K: NDArray[Any], y: Floats, trains: NDArray[np.bool_], Cs: Floats, *, tol: float = 1e-3,
    weight: Floats | None = None, warm: Floats | None = None, max_steps: int = 10_000_000,
) -> list[PathResult]:
    n = len(y)
    trains = np.ascontiguousarray(np.atleast_2d(trains))
    shape = (len(trains), len(Cs))
    decision, us = np.empty((*shape, n)), np.empty((*shape, n))
    offset, violation = np.empty(shape), np.empty(shape)
    steps, solved = np.empty(shape, np.int64), np.empty(shape, np.bool_)
    w = np.ones(n) if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
    start = np.zeros(n) if warm is None else np.ascontiguousarray(warm, dtype=np.float64)
    stats = np.zeros(12, np.int64)
    _paths(K, K.diagonal().copy(), y, trains, np.asarray(Cs, float), w, tol, max_steps, start, decision, us, offset,
           violation, steps, solved, stats, OPTS)
    solve_folds.stats += stats
    return [PathResult(decision[f], us[f], offset[f], violation[f], steps[f], solved[f]) for f in range(len(trains))]
solve_folds.stats = np.zeros(12, np.int64)


@compiled(fastmath=IN_ORDER)
def _exp_rows(distances, factor, out):  # type: ignore[no-untyped-def]
    for i in range(len(distances)):
        source, line = distances[i], out[i]
        for k in range(len(source)):
            line[k] = exp2(factor * source[k])
