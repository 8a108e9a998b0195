"""Newton steps on the free variables and a few violators, in which variables are put on their bounds."""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.intrinsics import fmax, fmin, raised
from maxmargin._compiled.jit import REORDER, compiled
from maxmargin._compiled.sums import add_rows
from maxmargin.solvers import costs
from maxmargin.solvers.c_path.state import BIG

# Values left free at both ends of an array, more than a vectorised loop takes at a time.
_GAP = 64


@compiled()
def _apart(size, like):
    """An empty array of the type of `like`, not next to any other array.

    A vectorised loop over arrays that begin within a few hundred bytes of each other takes one value at a
    time, which rounds in another way: the result would depend on where small arrays happen to be.
    """
    return np.empty(size + 2 * _GAP, like.dtype)[_GAP : _GAP + size]


@compiled(fastmath=REORDER)
def _solve_rows(R, size, X, start, count):
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
def _factor(A, ridge, flag):
    """Cholesky factor of A with a ridge, raised until there is one; the ridge, or -1. A is changed."""
    m = len(A)
    diagonal, mean = np.empty(m), 0.0
    for i in range(m):
        diagonal[i] = A[i, i]
        mean += abs(diagonal[i]) / m
    R = A
    for _ in range(14):
        if raised(flag):
            break
        for i in range(m):
            A[i, i] = diagonal[i] + ridge * mean
        try:
            R = np.linalg.cholesky(A)
            return R, ridge
        except Exception:
            ridge *= 4.0
    return R, -1.0


@compiled(fastmath=REORDER)
def _direction(R, size, g, below, above, d, small, flag):
    r"""The minimum d in the box, with sum zero, of the quadratic with gradient g and matrix A = R R'.

    With :math:`w = A^{-1}g` and :math:`v = A^{-1}e` the step is :math:`\lambda v - w`. It is taken as far as
    the first bound; that variable is fixed there and removed from the inverse, which is kept in product form:
    :math:`A^{-1} - \sum_p c_p c_p^\top`. Columns of the inverse are computed in batches, for the variables
    that are likely to meet their bounds next. Variables are fixed one at a time, because a variable beyond
    its bound in the first step need not be beyond it in the last. The loop ends early where a pivot is too
    `small` or the flag is raised.
    """
    batch, most = costs.PATH_COLUMNS, min(size, costs.PATH_FIXED)
    w, v, p, reach = _apart(size, d), _apart(size, d), _apart(size, d), _apart(size, d)
    column, active = _apart(size, R), _apart(size, d)
    where = np.full(size, -1)
    columns = _apart((most + batch) * size, R).reshape(most + batch, size)
    for i in range(size):
        columns[0, i], columns[1, i] = g[i], 1
        d[i], active[i] = 0.0, 1.0
    # Not literals, for which the function would be compiled again.
    _solve_rows(R, size, columns, np.int64(0), np.int64(2))
    for i in range(size):
        w[i], v[i] = columns[0, i], columns[1, i]
    parts = _apart(most * size, R).reshape(most, size)
    known = np.int64(0)
    for removed in range(size - 1):
        if raised(flag):
            break
        sum_w, sum_v, total = 0.0, 0.0, 0.0
        for i in range(size):
            # Removed variables have rounding errors instead of zeros, large ones with equal rows: they do not
            # move, so that the step would not sum to zero.
            sum_w += w[i] * active[i]
            sum_v += v[i] * active[i]
            total += d[i]
        if not sum_v > small:  # positive, but for rounding, as the matrix is positive definite
            break
        level = (sum_w - total) / sum_v  # total is zero but for rounding
        length = 1.0
        for i in range(size):
            x = (level * v[i] - w[i]) * active[i]
            p[i] = x
            room = (above[i] if x > 0 else below[i]) - d[i]
            reach[i] = room / x if x != 0 else BIG
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
                nearest = 0.5 * BIG
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
def _lowest(A, g, d):
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
def _restore_sum(d, below, above):
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
def _is_balanced(d):
    """Whether the sum of d is zero within rounding; no for NaN."""
    total, size = 0.0, 0.0
    for i in range(len(d)):
        total += d[i]
        size += abs(d[i])
    return abs(total) <= 1e-12 * size


@compiled()
def newton(matrix, point, middle, members, ridge, flag):
    """A Newton step on some variables; returns whether there was one, and the ridge.

    With a kink at zero a variable stays on its side of it; one at zero moves to the side that its gradient,
    compared with `middle`, the gradient of the free ones, determines.
    """
    K, scale = matrix.K, matrix.scale
    u, g, lo, hi, kink = point
    size = len(members)
    A = np.empty((size, size), K.dtype)
    gradient, below, above, d = np.empty(size), np.empty(size), np.empty(size), _apart(size, u)
    for i in range(size):
        k = members[i]
        row, line = K[k], A[i]
        for j in range(size):
            line[j] = row[members[j]]
        rising = u[k] > 0 or (u[k] == 0 and g[k] < middle)
        gradient[i] = g[k] + (kink if rising else -kink)
        below[i] = (0.0 if kink > 0 and rising else lo[k]) - u[k]
        above[i] = (0.0 if kink > 0 and not rising else hi[k]) - u[k]
    R, found = _factor(A, ridge, flag)
    if found < 0:
        return False, ridge
    _direction(R, size, gradient, below, above, d, (1e-6 if K.itemsize == 4 else 1e-12) / scale, flag)
    _restore_sum(d, below, above)
    length = _lowest(A, gradient, d) if _is_balanced(d) else 0.0
    if length == 0:
        return False, found
    for i in range(size):
        k = members[i]
        d[i] *= length
        if d[i] <= below[i]:
            u[k] = 0.0 if kink > 0 and below[i] == -u[k] else lo[k]
        elif d[i] >= above[i]:
            u[k] = 0.0 if kink > 0 and above[i] == -u[k] else hi[k]
        else:
            u[k] += d[i]
    add_rows(g, K, members, d, 0, K.shape[1])
    return True, found
