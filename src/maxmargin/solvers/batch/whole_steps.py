"""One compiled call that solves a whole problem: pair steps, gradient, measured rounding, certificate."""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.exp2 import exp2
from maxmargin._compiled.intrinsics import raised
from maxmargin._compiled.jit import compiled
from maxmargin.dual._certify import certify
from maxmargin.dual._extremes import extremes_of
from maxmargin.solvers.batch.shared_rows import gradient, pool_places, support_of
from maxmargin.solvers.pairs import pair_steps

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


@compiled()
def steps_on_all(shared, touched, samples, u, g, lo, hi, ridge, tol, max_steps, big, tau, buffers, flag):
    """Pair steps on all variables, changing u; returns the steps taken and the kernel values computed."""
    dtype = shared.pool.dtype.type
    rows, places = pool_places(shared, touched, samples, ridge, buffers)
    low, high = extremes_of(u, g, lo, hi)
    middle = 0.5 * (low + high) if abs(low + high) < np.inf else 0.0
    centred = buffers[3, : len(places.variable)]
    for t in range(len(centred)):
        # Only differences matter: centred, they survive the rounding to float32.
        v = places.variable[t]
        centred[t] = dtype(g[v] - middle) if v >= 0 else dtype(0.0)
    return pair_steps(
        rows, places, u, lo, hi, centred, ridge, dtype(0.0), dtype(tol), max_steps, big, tau, flag
    )
