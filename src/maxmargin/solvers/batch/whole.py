"""Many small machines over one data set, each in one compiled call.

A class pair of a few thousand samples has few support vectors, and each of its pair steps takes less than a
microsecond: what would cost time is everything around them. So one call does it all: second-order SMO, the
kernel rows that it asks for, the gradient in float64, the check against exact kernel values and the
certificate. It does not hold the GIL, so machines run side by side.

Rows are kept class by class (`SharedRows`): the part of a row that belongs to its own class serves every
machine of that class. What this way cannot bring to its end goes on in the ordinary one, from where it is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.exp2 import exp2
from maxmargin._compiled.intrinsics import acquire, fmax, index_in, raised, release, take, with_index
from maxmargin._compiled.jit import REORDER, compiled
from maxmargin._compiled.limits import Stopped, call, current
from maxmargin._compiled.memory import aligned, recycled
from maxmargin._compiled.sums import add_tile
from maxmargin._types import Floats, Index
from maxmargin.dual import Dual
from maxmargin.dual._extremes import extremes_of
from maxmargin.kernels._strip import PANEL_BYTES, rbf_strip
from maxmargin.kernels.panels import Lines, Panels, padded, width_of
from maxmargin.kernels.rounding import Rounding, sum_of
from maxmargin.solvers.precision import FINER, ROUGH
from maxmargin.solvers.solution import Record, Solution, Status, ended
from maxmargin.solvers.state import Stop

# Values of the laid-out data, and variables of a machine, up to which this way is taken.
_LARGEST_DATA, _LARGEST = 1 << 23, 4096
# Entries of the gradient that are recomputed to measure its error, and the factor for the others.
_SAMPLE, _SAFETY = 48, 2.0
# Steps per variable after which the ordinary way goes on.
_PATIENCE = 16
# What a call reports.
_STEPS, _EVALS, _VIOLATION, _OBJECTIVE, _OFFSET, _GAP, _NOISE, _SOLVED, _NEAR_BOUND, _STOPPED = range(10)
# Relative error of a sum, and distance from a bound relative to the box, that rounding alone explains.
_SUM_ERROR, _AT_BOUND = 1e-9, 1e-12


class SharedRows(NamedTuple):
    """Kernel rows of all samples, by segments (classes); what compiled code needs to fill them in.

    The part of row i that belongs to segment s begins at ``pool[where[i, s]]``, if that is not negative: the
    samples ``bounds[s] : bounds[s + 1]`` and places without a sample, up to the next full panel; the
    segment's panels begin at the place ``starts[s]``. Parts follow each other in the order in which they
    were asked for: only what is used of the pool is ever touched. `used` is its length so far.
    """

    bounds: Index
    starts: Index
    pool: NDArray[Any]
    where: NDArray[np.int64]
    used: NDArray[np.int64]
    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]
    dense: bool
    norm: NDArray[Any]
    values: NDArray[Any]
    norms: NDArray[Any]
    d: int

    @staticmethod
    def of(gram: Any, bounds: Index) -> SharedRows | None:
        """Rows for the data of `gram`; None where they would not fit or are not of the right kind."""
        points = gram.points
        if gram.kernel.name != "rbf" or points.distant is not None:
            return None
        sizes = [padded(int(size), gram.dtype) for size in np.diff(bounds)]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        if starts[-1] * points.X.shape[1] > _LARGEST_DATA:
            return None
        order = np.full(starts[-1], -1)
        for s in range(len(bounds) - 1):
            order[starts[s] : starts[s] + bounds[s + 1] - bounds[s]] = np.arange(bounds[s], bounds[s + 1])
        lines = Lines.of(points.X)
        panels = Panels(lines, points.X.shape[1], points.norm, gram.kernel.slope, order)
        pool = recycled(min(gram.n * int(starts[-1]), gram.cache_bytes // gram.dtype.itemsize), gram.dtype)
        return SharedRows(
            np.asarray(bounds, dtype=np.intp), starts, pool, np.full((gram.n, len(bounds) - 1), -1),
            np.zeros(1, np.int64), *lines, points.norm, panels.values, panels.norm, panels.d,
        )  # fmt: skip


class SmallMachines:
    """Solves machines over the rows of one Gram."""

    def __init__(self, gram: Any, rows: SharedRows, stop: Stop) -> None:
        self.gram, self.rows, self.stop = gram, rows, stop
        self.patience = _PATIENCE
        self._exact = _Exact.of(gram)
        self._error = _entry_error(gram.rounding, gram.n)
        self._rounding = _entry_error(gram.double_rounding, gram.n)
        self._own = threading.local()

    @staticmethod
    def over(gram: Any, bounds: Index, problems: Sequence[Dual], stop: Stop) -> SmallMachines | None:
        """For `problems` over the segments `bounds` of `gram`, whose cache lends its budget.

        None if this way does not suit all of them.
        """
        if stop.criterion != "kkt" or stop.max_iter is not None or not all(map(_suits, problems)):
            return None
        rows = SharedRows.of(gram, bounds)
        if rows is None:
            return None
        gram.lend()
        return SmallMachines(gram, rows, stop)

    @property
    def bytes_used(self) -> int:
        """Of the budget."""
        return min(int(self.rows.used[0]), len(self.rows.pool)) * self.gram.dtype.itemsize

    def solve(self, problem: Dual, samples: Index, touched: Index, warm: Floats | None) -> Solution | Floats:
        """The solution or, if it was not reached, the variables as far as they came.

        The problem's variables are the samples of the segments `touched`, in their order.
        """
        began = time.perf_counter()
        u = problem.start() if warm is None else problem.repair(warm)
        g = np.empty(problem.m)
        report = np.zeros(10)
        dtype = self.gram.dtype
        float32 = dtype == np.float32
        tol = max(self.stop.tol, ROUGH) if float32 else self.stop.tol
        steps_for = (
            max(1000, self.patience * problem.m), dtype.type(1e30 if float32 else 1e300),
            dtype.type(1e-6 if float32 else 1e-12), self._buffers(problem.m, len(touched)), current().flag,
        )  # fmt: skip
        call(
            _solve, self.rows, touched, samples, u, g, problem.p, problem.lo, problem.hi, problem.ridge,
            problem.sums[0], tol / problem.scale, self._error, self._rounding, self._exact, *steps_for,
            report,
            work=problem.m * (15.0 * steps_for[0] + problem.m * self.gram.cost),
        )  # fmt: skip
        if report[_SOLVED] and tol > self.stop.tol:
            rough = u.copy(), g.copy(), report.copy()
            try:
                self._refine(problem, samples, touched, u, g, steps_for, report)
            except Stopped:
                report[_STOPPED] = 1.0
            if report[_STOPPED]:  # the gradient is that of the rougher solution
                u, g, report = rough
                report[_STOPPED] = 1.0
        if report[_STOPPED]:
            return self._stopped(problem, u, g, report, began)
        if not report[_SOLVED]:
            return u
        if report[_NEAR_BOUND] and not current().over:
            u = self._snap(problem, samples, u, g, report)
        noise, evals = float(report[_NOISE]), int(report[_EVALS])
        steps = int(report[_STEPS])
        calls = 3 * steps * problem.m
        last = Record(
            n_iter=steps, seconds=time.perf_counter() - began,
            violation=float(report[_VIOLATION]) * problem.scale, objective=float(report[_OBJECTIVE]),
            n_support=int(np.count_nonzero(u)), n_kernel_evals=evals, n_kernel_calls=calls,
        )  # fmt: skip
        return Solution(
            u=u,
            offset=report[_OFFSET : _OFFSET + 1].copy(),
            status=Status.SOLVED,
            gap=float(report[_GAP]),
            violation=last.violation + 2 * noise * problem.scale,
            objective=last.objective,
            noise=noise,
            n_iter=steps,
            n_kernel_calls=calls,
            n_kernel_evals=evals,
            seconds=last.seconds,
            trace=(last,),
            gradient=g,
        )

    def _snap(self, problem: Dual, samples: Index, u: Floats, g: Floats, report: Floats) -> Floats:
        """The solution with variables on bounds from which rounding separates them; see `Dual.snap`."""
        snapped = problem.snap(u)
        exact = self._gradient(problem, samples, snapped)
        noise = float(self._rounding * np.abs(snapped).sum())
        if not problem.violation(snapped, exact, noise) <= self.stop.tol:
            return u
        g[:] = exact
        _certify(snapped, g, problem.lo, problem.hi, problem.p, problem.ridge, problem.sums[0], noise, report)
        return snapped

    def _gradient(self, problem: Dual, samples: Index, u: Floats) -> Floats:
        """The gradient from float64 kernel values."""
        support = np.flatnonzero(u)
        product = self.gram.exact(samples, samples[support], u[support])
        return np.asarray(problem.ridge * u - problem.p + product)

    def _stopped(self, problem: Dual, u: Floats, g: Floats, report: Floats, began: float) -> Solution:
        """As far as it came in its time."""
        noise = self._error * float(np.abs(u).sum())
        last = Record(
            n_iter=int(report[_STEPS]), seconds=time.perf_counter() - began,
            violation=problem.violation(u, g), objective=problem.objective(u, g),
            n_support=int(np.count_nonzero(u)), n_kernel_evals=int(report[_EVALS]),
            n_kernel_calls=3 * int(report[_STEPS]) * problem.m,
        )  # fmt: skip
        return Solution(
            u=u,
            offset=problem.offset(u, g),
            status=ended(current()),
            gap=problem.gap(u, g, noise),
            violation=problem.violation(u, g, noise),
            noise=noise,
            objective=last.objective,
            n_iter=last.n_iter,
            n_kernel_calls=last.n_kernel_calls,
            n_kernel_evals=last.n_kernel_evals,
            seconds=last.seconds,
            trace=(last,),
            gradient=g,
        )

    def _refine(
        self,
        problem: Dual,
        samples: Index,
        touched: Index,
        u: Floats,
        g: Floats,
        steps_for: tuple[Any, ...],
        report: Floats,
    ) -> None:
        """Pair steps from exact gradients until the tolerance holds, see `maxmargin.solvers.precision`."""
        tol = self.stop.tol / problem.scale
        report[_SOLVED] = 0.0
        before = np.inf
        while True:
            g[:] = self._gradient(problem, samples, u)
            report[_EVALS] += problem.m * np.count_nonzero(u)
            low, high = extremes_of(u, g, problem.lo, problem.hi)
            noise = float(self._rounding * np.abs(u).sum())
            if high - low <= tol - 2.0 * noise:
                _certify(
                    u, g, problem.lo, problem.hi, problem.p, problem.ridge, problem.sums[0], noise, report
                )
                return
            if high - low > 0.25 * before or noise > 0.25 * tol:
                return
            before = high - low
            target = 0.5 * max(tol, FINER * before)
            steps, computed = _pair_steps(
                self.rows, touched, samples, u, g, problem.lo, problem.hi, problem.ridge, target, *steps_for
            )
            report[_STEPS] += steps
            report[_EVALS] += computed
            if current().over:
                report[_STOPPED] = 1.0
                return

    def _buffers(self, m: int, parts: int) -> NDArray[Any]:
        """Three vectors for one call at a time in each thread."""
        size = m + parts * width_of(self.gram.dtype)
        kept = getattr(self._own, "buffers", None)
        if kept is None or kept.shape[1] < size:
            kept = self._own.buffers = aligned((3, 2 * size), self.gram.dtype)
        return kept


def _entry_error(rounding: Rounding, n: int) -> float:
    """What a gradient entry can be wrong by, per unit of the coefficients' sum."""
    return rounding.of_value() + 2.0**-53 * sum_of(n)


def _suits(problem: Dual) -> bool:
    simple = problem.n_groups == 1 and problem.coupling.shape == (1, 1) and not problem.shift
    return simple and not problem.self_scaled and problem.m <= _LARGEST and (problem.plain or problem.twins)


class _Exact(NamedTuple):
    """The data as they were given, for kernel values in float64."""

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]
    dense: bool
    order: Index
    centre: Floats
    slope: float

    @staticmethod
    def of(gram: Any) -> _Exact:
        order = gram.columns if gram.index is None else gram.index
        centre = gram.points.centre
        centre = np.zeros(gram.X.shape[1]) if centre is None else centre
        return _Exact(*Lines.of(gram.X), order, centre, gram.kernel.slope)


@compiled()
def _need(rows, i, touched, flag):  # type: ignore[no-untyped-def]
    """Compute what is missing of row i; returns the number of values, -1 if there is no room or no time."""
    computed = 0
    width = PANEL_BYTES // rows.pool.itemsize
    for s in touched:
        if rows.where[i, s] >= 0:
            continue
        if raised(flag):
            return -1
        size = rows.starts[s + 1] - rows.starts[s]
        at = take(rows.used, size)
        if at + size > len(rows.pool):
            return -1
        start, end = np.int64(rows.indptr[i]), np.int64(rows.indptr[i + 1])
        first = np.int64(0) if rows.dense else start
        for k in range(0, size, width):
            c = rows.starts[s] + k
            rbf_strip(
                rows.indices, first, rows.data, start, end - start, rows.values, c * rows.d,
                rows.norms, c, rows.norm[i], rows.pool, at + k,
            )  # fmt: skip
        release()  # another thread that sees where the values are must see the values
        rows.where[i, s] = at
        computed += rows.bounds[s + 1] - rows.bounds[s]
    return computed


@compiled()
def _gradient(rows, touched, samples, u, p, ridge, g, flag):  # type: ignore[no-untyped-def]
    """``g = (K + diag(ridge)) u - p``, summed in float64; returns the kernel values computed, or -1."""
    support = _support(u)
    total = 0
    for t in support:
        computed = _need(rows, samples[t], touched, flag)
        if computed < 0:
            return -1
        total += computed
    acquire()
    coef = u[support]
    acc = np.empty(len(u), np.float64)
    start = 0
    for s in touched:
        size = rows.bounds[s + 1] - rows.bounds[s]
        parts = np.empty(len(support), np.int64)
        for k in range(len(support)):
            parts[k] = rows.where[samples[support[k]], s]
        add_tile(acc, rows.pool, parts, coef, size)
        for k in range(size):
            g[start + k] = acc[k] + ridge[start + k] * u[start + k] - p[start + k]
        start += size
    return total


@compiled()
def _gap(u, g, lo, hi, ridge, total, at, noise):  # type: ignore[no-untyped-def]
    """`Dual.gap` of one group for the multiplier `at`: every one gives a bound."""
    gap, residual = 0.0, total
    for i in range(len(u)):
        residual -= u[i]
        t = -g[i] - at
        error = noise + 4.5e-16 * (abs(g[i]) + abs(at))
        best = 0.0
        for direction in range(2):
            slope = t + error if direction == 0 else error - t
            if slope > 0.0:
                d = hi[i] - u[i] if direction == 0 else u[i] - lo[i]
                if ridge[i] > 0.0:
                    d = min(d, slope / ridge[i])
                best = max(best, (slope - 0.5 * ridge[i] * d) * d)
        gap += best
    return max(gap + at * residual, 0.0)


@compiled()
def _gather(exact, samples):  # type: ignore[no-untyped-def]
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
def _squared_norms(rows):  # type: ignore[no-untyped-def]
    out = np.zeros(len(rows))
    for r in range(len(rows)):
        for c in range(rows.shape[1]):
            out[r] += rows[r, c] * rows[r, c]
    return out


@compiled()
def _support(u):  # type: ignore[no-untyped-def]
    """`np.flatnonzero`, which takes longer to compile."""
    count = 0
    for t in range(len(u)):
        count += u[t] != 0.0
    found, k = np.empty(count, np.int64), 0
    for t in range(len(u)):
        if u[t] != 0.0:
            found[k] = t
            k += 1
    return found


@compiled()
def _measured_error(u, g, lo, hi, p, ridge, samples, pad, exact):  # type: ignore[no-untyped-def]
    """The largest error of the gradient among entries near the boundary, from exact kernel values."""
    low, high = extremes_of(u, g, lo, hi)
    low, high = min(low, high) - pad, max(low, high) + pad
    mark = np.zeros(len(u))
    for t in range(len(u)):
        if low <= g[t] <= high or lo[t] < u[t] < hi[t]:
            mark[t] = 1.0
    near, support = _support(mark), _support(u)
    near = near[:: max(1, len(near) // _SAMPLE)][:_SAMPLE]
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
def _certify(u, g, lo, hi, p, ridge, total, noise, report):  # type: ignore[no-untyped-def]
    """Report a solution, if its sum and its box are right."""
    low, high = extremes_of(u, g, lo, hi)
    mean, value, free = 0.0, 0.0, 0
    inside, near_bound = True, False
    added, size = 0.0, abs(total)
    for t in range(len(u)):
        added += u[t]
        size = max(size, abs(u[t]))
        value += 0.5 * u[t] * (g[t] - p[t])
        inside = inside and lo[t] <= u[t] <= hi[t]
        if lo[t] < u[t] < hi[t]:
            mean += g[t]
            free += 1
            near = _AT_BOUND * (hi[t] - lo[t])
            near_bound = near_bound or (near < np.inf and min(u[t] - lo[t], hi[t] - u[t]) <= near)
    report[_OFFSET] = mean / free if free else 0.5 * (low + high)
    report[_VIOLATION] = max(high - low, 0.0)
    report[_OBJECTIVE] = value
    report[_NOISE] = noise
    report[_GAP] = _gap(u, g, lo, hi, ridge, total, -report[_OFFSET], noise)
    report[_NEAR_BOUND] = 1.0 if near_bound else 0.0
    right = inside and abs(added - total) <= _SUM_ERROR * size
    report[_SOLVED] = 1.0 if right and np.isfinite(report[_OFFSET]) else 0.0


@compiled()
def _solve(  # type: ignore[no-untyped-def]
    rows, touched, samples, u, g, p, lo, hi, ridge, total, tol, error, rounding, exact, max_steps, big, tau,
    buffers, flag, report,
):  # fmt: skip
    """Pair steps, then the gradient anew, until the tolerance holds with what rounding may do."""
    computed = _gradient(rows, touched, samples, u, p, ridge, g, flag)
    if computed < 0:
        return
    report[_EVALS] = computed
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
                bound = min(bound, _SAFETY * measured + rounding * size)
            noise = max(noise, bound)
            if noise > allowed:
                return
            if high - low <= tol - 2.0 * noise:
                _certify(u, g, lo, hi, p, ridge, total, noise, report)
                return
        target = 0.5 * (tol - 2.0 * noise)
        steps, computed = _pair_steps(
            rows, touched, samples, u, g, lo, hi, ridge, target, max_steps, big, tau, buffers, flag
        )
        report[_STEPS] += steps
        report[_EVALS] += computed
        stopped = raised(flag)
        if steps == 0 or (steps == max_steps and not stopped):
            report[_STOPPED] = 1.0 if stopped else 0.0
            return
        if _gradient(rows, touched, samples, u, p, ridge, g, flag) < 0:
            return
        if stopped:
            report[_STOPPED] = 1.0
            return


@compiled(fastmath=REORDER)
def _pair_steps(  # type: ignore[no-untyped-def]
    rows, touched, samples, u, g, lo, hi, ridge, tol, max_steps, big, tau, buffers, flag
):
    """Second-order SMO on all variables, changing u; see `maxmargin.solvers.batch.inner`.

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
                new = _need(rows, si, touched, flag)
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
                new = _need(rows, sj, touched, flag)
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
        room_i, room_j = hi[vi] - u[vi], u[vj] - lo[vj]
        d = min(np.float64(g_j - low) / max(curvature, np.float64(tau)), min(room_i, room_j))
        before_i, before_j = u[vi], u[vj]
        u[vi] = hi[vi] if d == room_i else u[vi] + d
        u[vj] = lo[vj] if d == room_j else u[vj] - d
        if u[vi] == before_i and u[vj] == before_j:
            break  # the pair cannot move in this precision
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
