"""One compiled call that solves a whole problem: pair steps, gradient, measured rounding, certificate."""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.exp2 import exp2
from maxmargin._compiled.intrinsics import acquire, fmax, index_in, raised, with_index
from maxmargin._compiled.jit import REORDER, compiled
from maxmargin.dual._certify import certify
from maxmargin.dual._extremes import extremes_of
from maxmargin.solvers.batch.shared_rows import gradient, need, support_of
from maxmargin.solvers.pairs import move_pair

# Entries of the gradient that are recomputed to measure its error, and the factor for the others.
SAMPLE, SAFETY = 48, 2.0
#: Entries of the report beyond those of `maxmargin.dual._certify`.
STEPS, EVALS, STOPPED = range(7, 10)


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


@compiled()
def _squared_norms(rows):
    out = np.zeros(len(rows))
    for r in range(len(rows)):
        for c in range(rows.shape[1]):
            out[r] += rows[r, c] * rows[r, c]
    return out


@compiled()
def _measured_error(u, g, lo, hi, p, ridge, samples, pad, exact):
    """The largest error of the gradient among entries near the boundary, from exact kernel values."""
    low, high = extremes_of(u, g, lo, hi)
    low, high = min(low, high) - pad, max(low, high) + pad
    mark = np.zeros(len(u))
    for t in range(len(u)):
        if low <= g[t] <= high or lo[t] < u[t] < hi[t]:
            mark[t] = 1.0
    near, support = support_of(mark), support_of(u)
    near = near[:: max(1, len(near) // SAMPLE)][:SAMPLE]
    some, vectors = _gather(exact, samples[near]), _gather(exact, samples[support])
    dots = np.dot(some, vectors.T)
    near_norms, norms = _squared_norms(some), _squared_norms(vectors)
    worst = 0.0
    for r in range(len(near)):
        t = near[r]
        total = ridge[t] * u[t] - p[t]
        for k in range(len(support)):
            exponent = exact.slope * (dots[r, k] - 0.5 * near_norms[r] - 0.5 * norms[k])
            total += u[support[k]] * exp2(min(exponent, 0.0))
        worst = max(worst, abs(total - g[t]))
    return worst


@compiled()
def solve_whole(
    rows, touched, samples, u, g, p, lo, hi, ridge, total, tol, error, rounding, exact, max_steps, big, tau,
    buffers, flag, report,
):  # fmt: skip
    """Pair steps, then the gradient anew, until the tolerance holds with what rounding may do."""
    computed = gradient(rows, touched, samples, u, p, ridge, g, flag)
    if computed < 0:
        return
    report[EVALS] = computed
    allowed = 0.25 * tol
    noise = 0.0
    for _ in range(5):
        low, high = extremes_of(u, g, lo, hi)
        if high - low <= tol - 2.0 * noise:
            size = 0.0
            for t in range(len(u)):
                size += abs(u[t])
            bound = error * size
            if bound > allowed:
                measured = _measured_error(u, g, lo, hi, p, ridge, samples, 2.0 * allowed, exact)
                bound = min(bound, SAFETY * measured + rounding * size)
            noise = max(noise, bound)
            if noise > allowed:
                return
            if high - low <= tol - 2.0 * noise:
                certify(u, g, lo, hi, p, ridge, total, noise, report)
                return
        target = 0.5 * (tol - 2.0 * noise)
        steps, computed = steps_on_all(
            rows, touched, samples, u, g, lo, hi, ridge, target, max_steps, big, tau, buffers, flag
        )
        report[STEPS] += steps
        report[EVALS] += computed
        stopped = raised(flag)
        if steps == 0 or (steps == max_steps and not stopped):
            report[STOPPED] = 1.0 if stopped else 0.0
            return
        if gradient(rows, touched, samples, u, p, ridge, g, flag) < 0:
            return
        if stopped:
            report[STOPPED] = 1.0
            return


@compiled(fastmath=REORDER)
def steps_on_all(rows, touched, samples, u, g, lo, hi, ridge, tol, max_steps, big, tau, buffers, flag):
    """Second-order SMO on all variables, changing u: the steps of `maxmargin.solvers.pairs` over shared rows.

    A loop of its own: through the common one the first fit of a process compiles 8 s longer (15.5 s become
    23.7, one-off measurement).

    up / down hold the gradient, or +-big where a variable cannot rise / fall, at the places of the table;
    places without a sample can do neither. Returns the steps taken and the kernel values computed.
    """
    pool, starts, where = rows.pool, rows.starts, rows.where
    zero, one, two = pool.dtype.type(0.0), pool.dtype.type(1.0), pool.dtype.type(2.0)
    n_places = 0
    for s in touched:
        n_places += starts[s + 1] - starts[s]
    up, down, diag = buffers[0, :n_places], buffers[1, :n_places], buffers[2, :n_places]
    up[:] = big
    down[:] = -big
    diag[:] = one
    variable = np.zeros(n_places, np.int64)
    low, high = extremes_of(u, g, lo, hi)
    middle = 0.5 * (low + high) if abs(low + high) < np.inf else 0.0
    most, low = -big, big
    i = at = t = 0
    for s in touched:
        for k in range(at, at + rows.bounds[s + 1] - rows.bounds[s]):
            variable[k] = t
            # Only differences matter: centred, they survive the rounding to float32.
            centred = pool.dtype.type(g[t] - middle)
            if u[t] < hi[t]:
                up[k] = centred
                if centred < low:
                    low = centred
                    i = k
            if u[t] > lo[t]:
                down[k] = centred
                most = max(most, centred)
            diag[k] += pool.dtype.type(ridge[t])
            t += 1
        at += starts[s + 1] - starts[s]
    steps = computed = 0
    while steps < max_steps and most - low >= pool.dtype.type(tol) and not raised(flag):
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
        best, j, at = -big, -1, 0
        for s in touched:
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
        ref, most, low, at = most, -big, big, 0
        for s in touched:
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
                most = max(most, largest)
                k = index_in(best)
                if k < size and some_up[k] < ref and some_up[k] < low:
                    low = some_up[k]
                    i = at + k
                at += size
        if low >= ref:  # nothing below ref: scan exactly
            for t in range(n_places):
                if up[t] < low:
                    low = up[t]
                    i = t
    return steps, computed
