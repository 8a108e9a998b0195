"""One compiled call that solves a whole problem: pair steps, gradient, measured rounding, certificate."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.exp2 import exp2
from maxmargin._compiled.intrinsics import acquire, fmax, index_in, raised, with_index
from maxmargin._compiled.jit import REORDER, compiled
from maxmargin._types import Floats, Index
from maxmargin.dual._certify import ENTRIES, certify
from maxmargin.dual._extremes import extremes_of, widest_of
from maxmargin.solvers.batch.shared_rows import gradient, need, support_of
from maxmargin.solvers.pairs import move_pair
from maxmargin.solvers.precision import SAFETY, SAMPLE

#: Entries of the report beyond those of `maxmargin.dual._certify`. ROUGH: the tolerance was reached, but the
#: rows' rounding errors are too large for it.
STEPS, EVALS, STOPPED, ROUGH = range(ENTRIES, ENTRIES + 4)


class Whole(NamedTuple):
    """A problem over shared rows, with one sum or one for each segment."""

    #: Segments of the rows, and the sample of each variable, segment by segment.
    touched: Index
    samples: Index
    #: Linear term, box and ridge, see `maxmargin.dual.Dual`.
    p: Floats
    lo: Floats
    hi: Floats
    ridge: Floats
    #: Group k is the variables ``ranges[k] : ranges[k + 1]``, and ``sums[k]`` their sum.
    ranges: Index
    sums: Floats


class Accuracy(NamedTuple):
    """The tolerance, and what rounding may do to the gradient."""

    #: Largest violation.
    tol: float
    #: Largest errors of a gradient entry, per unit of the sum of |u|: with the rows, and with float64 values.
    error: float
    rounding: float
    #: The data for such values; none where they are not computed here.
    exact: Any


class Loop(NamedTuple):
    """The settings and buffers of pair steps."""

    max_steps: int
    #: A gradient that nothing exceeds, and the least curvature.
    big: Any
    tau: Any
    #: Three vectors with a value for each place.
    buffers: NDArray[Any]
    #: Ends the steps when it is raised.
    flag: NDArray[np.int64]


@compiled()
def _gather(exact, samples):
    """Some samples as a dense matrix in float64, centred."""
    out = np.zeros((len(samples), len(exact.centre)))
    for r in range(len(samples)):
        i = exact.order[samples[r]]
        start, end = exact.indptr[i], exact.indptr[i + 1]
        for k in range(start, end):
            out[r, exact.indices[k - start] if exact.dense else exact.indices[k]] += exact.data[k]
        for c in range(len(exact.centre)):  # as one statement it takes two seconds to compile
            out[r, c] -= exact.centre[c]
    return out


@compiled(fastmath=REORDER)
def _squared_norms(rows):
    out = np.zeros(len(rows))
    for r in range(len(rows)):
        for c in range(rows.shape[1]):
            out[r] += rows[r, c] * rows[r, c]
    return out


@compiled()
def near_boundary(u, g, lo, hi, ranges, pad):
    """`maxmargin.solvers.precision.near_boundary`, and the others; groups are ranges of variables."""
    mark, rest = np.zeros(len(u)), np.ones(len(u))
    for k in range(len(ranges) - 1):
        part = slice(ranges[k], ranges[k + 1])
        low, high = extremes_of(u[part], g[part], lo[part], hi[part])
        low, high = min(low, high), max(low, high)
        for t in range(ranges[k], ranges[k + 1]):
            if (g[t] + pad >= low and g[t] - pad <= high) or lo[t] < u[t] < hi[t]:
                mark[t], rest[t] = 1.0, 0.0
    return support_of(mark), support_of(rest)


@compiled()
def sampled(near, of, doubt):
    """`maxmargin.solvers.precision.sampled`."""
    m = len(of)
    mark = np.zeros(len(doubt))
    count = min(len(near), SAMPLE)
    for k in range(count):
        mark[near[k * (len(near) - 1) // max(count - 1, 1)]] = 1.0
    count = min(m, SAMPLE // 4)
    for k in range(count):
        mark[of[k * (m - 1) // max(count - 1, 1)]] = 1.0
    # The most doubtful so far, and the last of those that are least so.
    kept, count, least = np.empty(SAMPLE // 2, np.int64), 0, 0
    for t in of:
        if count < len(kept):
            kept[count] = t
            count += 1
        elif doubt[t] > doubt[kept[least]]:
            kept[least] = t
        else:
            continue
        least = 0
        for k in range(1, count):
            if doubt[kept[k]] <= doubt[kept[least]]:
                least = k
    for k in range(count):
        mark[kept[k]] = 1.0
    return support_of(mark)


@compiled()
def largest_errors(problem, u, g, near, rest, exact):
    """The largest errors of the entries `near` and `rest` of the gradient, from exact kernel values."""
    samples, p, ridge = problem.samples, problem.p, problem.ridge
    support = support_of(u)
    some = np.concatenate((near, rest))
    rows, vectors = _gather(exact, samples[some]), _gather(exact, samples[support])
    dots = np.dot(rows, vectors.T)
    row_norms, norms = _squared_norms(rows), _squared_norms(vectors)
    for r in range(len(some)):
        for k in range(len(support)):
            exponent = exact.slope * (dots[r, k] - 0.5 * row_norms[r] - 0.5 * norms[k])
            dots[r, k] = exp2(min(exponent, 0.0))
    sums = np.dot(dots, u[support])
    worst = np.zeros(2)
    for r in range(len(some)):
        t, kind = some[r], 0 if r < len(near) else 1
        worst[kind] = max(worst[kind], abs(sums[r] + ridge[t] * u[t] - p[t] - g[t]))
    return worst[0], worst[1]


@compiled()
def solve_whole(rows, problem, u, g, near, accuracy, loop, report):
    """Pair steps, then a new gradient, until the tolerance holds with what rounding may do.

    With `near`, a point whose gradient is in g, only changes are added to it; `near` becomes u.
    """
    p, lo, hi, ridge, ranges = problem.p, problem.lo, problem.hi, problem.ridge, problem.ranges
    tol, flag = accuracy.tol, loop.flag
    computed = gradient(rows, problem, u, g, near, flag)
    if computed < 0:
        return
    report[EVALS] = computed
    # Of the entries that decide about optimality, and of the others, which that leaves without a say.
    allowed, pad = 0.25 * tol, tol
    noise = 0.0
    for _ in range(5):
        violation = widest_of(u, g, lo, hi, ranges)
        if violation <= tol - 2.0 * noise:
            size, added = 0.0, 0.0
            for t in range(len(u)):
                size += abs(u[t])
                added = max(added, abs(ridge[t] * u[t]) + abs(p[t]))
            added *= 2.0**-52
            bound = far = accuracy.error * size + added
            if bound > allowed and len(accuracy.exact.order) == 0:
                report[ROUGH] = 1.0
                return
            if bound > allowed:
                members, rest = near_boundary(u, g, lo, hi, ranges, pad)
                doubt = rows.norm[problem.samples]  # a value's error grows with the norms
                least = accuracy.rounding * size + added
                # The others have no say: those whose errors are likely to be largest stand for them.
                some, others = sampled(members, members, doubt), sampled(rest[:0], rest, doubt)
                found, found_far = largest_errors(problem, u, g, some, others, accuracy.exact)
                bound = min(bound, SAFETY * (found + least))
                far = max(bound, min(far, SAFETY * (found_far + least)))
            noise = max(noise, bound)
            if noise > allowed or far > pad:
                report[ROUGH] = 1.0
                return
            if violation <= tol - 2.0 * noise:
                certify(u, g, lo, hi, p, ridge, ranges, problem.sums, noise, max(noise, far), report)
                return
        target = 0.5 * (tol - 2.0 * noise)
        steps, computed = steps_on_all(rows, problem, u, g, target, loop)
        report[STEPS] += steps
        report[EVALS] += computed
        stopped = raised(flag)
        if steps == 0 or (steps == loop.max_steps and not stopped):
            report[STOPPED] = 1.0 if stopped else 0.0
            return
        if gradient(rows, problem, u, g, near, flag) < 0:
            return
        if stopped:
            report[STOPPED] = 1.0
            return


@compiled(fastmath=REORDER)
def steps_on_all(rows, problem, u, g, tol, loop):
    """Second-order SMO on all variables, changing u: the steps of `maxmargin.solvers.pairs` over shared rows.

    A loop of its own, which is kept for its compile time alone. One-off measurement on a busy computer, the
    common loop (commit 89182a0) against this one (4916270):

    ==================================== =========== ============
    ..                                   common loop separate one
    ==================================== =========== ============
    step with 512 rows (microseconds)    1.127       1.115
    step with 1,024 rows (microseconds)  0.960       0.951
    step with 2,048 rows (microseconds)  1.944       1.950
    fit of digits (milliseconds)         23.3        22.0
    first fit, with compilation (s)      24.6        18.0
    ==================================== =========== ============

    Steps take the same time within the noise, so that by them alone the common loop would be right: a change
    to the algorithm has to be made twice. But 6.6 s more are added to the first fit in every new environment,
    and to the code that a wheel with compiled functions would contain. Once Numba compiles the common loop in
    the same time, this one should go.

    The loop over groups takes some nanoseconds of a step of problems with one group: 164 -> 169 ns with 569
    rows in float32 (one-off, quickest of 1,500 solutions).

    up / down hold the gradient, or +-big where a variable cannot rise / fall, at the places of the table;
    places without a sample can do neither. A pair is of one group: that with the largest violation. Returns
    the steps taken and the kernel values computed.
    """
    pool, starts, where = rows.pool, rows.starts, rows.where
    touched, samples, lo, hi, ridge = problem.touched, problem.samples, problem.lo, problem.hi, problem.ridge
    max_steps, big, tau, buffers, flag = loop
    zero, one, two = pool.dtype.type(0.0), pool.dtype.type(1.0), pool.dtype.type(2.0)
    n_places = 0
    for s in touched:
        n_places += starts[s + 1] - starts[s]
    up, down, diag = buffers[0, :n_places], buffers[1, :n_places], buffers[2, :n_places]
    up[:] = big
    down[:] = -big
    diag[:] = one  # where there is no sample
    variable = np.zeros(n_places, np.int64)
    n_groups = len(problem.sums)
    parts = len(touched) // n_groups  # of each group
    most, begin = np.empty(n_groups, pool.dtype), np.zeros(n_groups + 1, np.int64)
    # The group with the largest violation, which that is, and i with its gradient.
    worst, span, i, low = 0, -big, 0, big
    at = t = 0
    for k in range(n_groups):
        group = slice(problem.ranges[k], problem.ranges[k + 1])
        smallest, largest = extremes_of(u[group], g[group], lo[group], hi[group])
        middle = 0.5 * (smallest + largest) if abs(smallest + largest) < np.inf else 0.0
        first, least, high = 0, big, -big
        for s in touched[k * parts : (k + 1) * parts]:
            for c in range(at, at + rows.bounds[s + 1] - rows.bounds[s]):
                variable[c] = t
                # Only differences matter: centred, they survive the rounding to float32.
                centred = pool.dtype.type(g[t] - middle)
                if u[t] < hi[t]:
                    up[c] = centred
                    if centred < least:
                        least = centred
                        first = c
                if u[t] > lo[t]:
                    down[c] = centred
                    high = max(high, centred)
                diag[c] = rows.diag[samples[t]] + pool.dtype.type(ridge[t])
                t += 1
            at += starts[s + 1] - starts[s]
        begin[k + 1], most[k] = at, high
        if high - least > span:
            worst, span, i, low = k, high - least, first, least
    steps = computed = 0
    while steps < max_steps and span >= pool.dtype.type(tol) and not raised(flag):
        vi = variable[i]
        si = samples[vi]
        for s in touched:
            if where[si, s] < 0:  # asked here: a call costs as much as a quarter of a step
                new = need(rows, si, touched, flag)
                if new < 0:
                    return steps, computed
                computed += new
        acquire()
        diag_i = diag[i]
        best, j, at = -big, -1, begin[worst]
        for q in range(worst * parts, (worst + 1) * parts):
            s = touched[q]
            length = starts[s + 1] - starts[s]
            for c in range(0, length, 2048):  # an index has 11 bits
                size = min(2048, length - c)
                row = pool[where[si, s] + c :]
                some_down, some_diag = down[at : at + size], diag[at : at + size]
                part = zero
                for t in range(size):
                    b = fmax(some_down[t] - low, zero)
                    gain = b * b / fmax(diag_i + some_diag[t] - two * row[t], tau)
                    part = fmax(part, with_index(gain, t))
                if part > best:
                    best = part
                    j = at + index_in(part)
                at += size
        vj = variable[j]
        sj = samples[vj]
        for s in touched:
            if where[sj, s] < 0:
                new = need(rows, sj, touched, flag)
                if new < 0:
                    return steps, computed
                computed += new
        acquire()
        g_j = down[j]
        k_ij, at = zero, 0
        for s in touched:  # the column of j in the row of i
            length = starts[s + 1] - starts[s]
            if at <= j < at + length:
                k_ij = pool[where[si, s] + j - at]
            at += length
        curvature = np.float64(diag_i) + np.float64(diag[j]) - 2.0 * np.float64(k_ij)
        newton = np.float64(g_j - low) / max(curvature, np.float64(tau))
        d, moved = move_pair(u, vi, vj, newton, hi[vi], lo[vj])
        if not moved:
            break
        steps += 1
        step = pool.dtype.type(d)
        new_i = low + pool.dtype.type(ridge[vi]) * step
        new_j = g_j - pool.dtype.type(ridge[vj]) * step
        up[i] = new_i if u[vi] < hi[vi] else big
        down[i] = new_i if u[vi] > lo[vi] else -big
        up[j] = new_j if u[vj] < hi[vj] else big
        down[j] = new_j if u[vj] > lo[vj] else -big
        span, at = -big, 0
        for k in range(n_groups):
            ref, high, least, first = most[k], -big, big, 0
            for q in range(k * parts, (k + 1) * parts):
                s = touched[q]
                length = starts[s + 1] - starts[s]
                for c in range(0, length, 2048):
                    size = min(2048, length - c)
                    row_i, row_j = pool[where[si, s] + c :], pool[where[sj, s] + c :]
                    some_up, some_down = up[at : at + size], down[at : at + size]
                    largest, best = -big, zero
                    for t in range(size):
                        x = step * (row_i[t] - row_j[t])
                        a = some_up[t] + x
                        b = some_down[t] + x
                        some_up[t] = a
                        some_down[t] = b
                        largest = fmax(largest, b)
                        best = fmax(best, with_index(fmax(ref - a, zero), t))
                    high = max(high, largest)
                    t = index_in(best)
                    if t < size and some_up[t] < ref and some_up[t] < least:
                        least = some_up[t]
                        first = at + t
                    at += size
            if least >= ref:  # nothing below ref: scan exactly
                for t in range(begin[k], begin[k + 1]):
                    if up[t] < least:
                        least = up[t]
                        first = t
            most[k] = high
            if high - least > span:
                worst, span, i, low = k, high - least, first, least
    return steps, computed
