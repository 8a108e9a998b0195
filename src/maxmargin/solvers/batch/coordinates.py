r"""Linear kernels with sparse samples of many features: coordinate descent, with the weights at hand.

The gradient of a variable is a product of its sample with the weights w = F'u, and a change of the variable
changes w by a multiple of the sample: a step takes the non-zeros of one sample, and no kernel value (Hsieh,
Chang, Lin, Keerthi and Sundararajan, "A dual coordinate descent method for large-scale linear SVM", 2008).
Single variables cannot move under the constraint :math:`E^\top u = s`, which enters by the method of
multipliers:

.. math:: \tfrac12 \|F^\top u\|^2 - p^\top u + \lambda^\top (E^\top u - s) + \tfrac\rho2 \|E^\top u - s\|^2,

where :math:`\lambda` grows by :math:`\rho (E^\top u - s)` after each pass over the variables. A pass leaves
out variables that have been at a bound with a gradient beyond the extremes of the pass before; the last one
includes all. Samples that share few features, as texts do, need few passes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin._compiled.intrinsics import raised
from maxmargin._compiled.jit import REORDER, compiled
from maxmargin._compiled.limits import call, current
from maxmargin._types import Floats, Index, Rows
from maxmargin.dual import Dual, middles
from maxmargin.solvers import costs


class _Variables(NamedTuple):
    """A problem for the compiled loop."""

    p: Floats
    lo: Floats
    hi: Floats
    ridge: Floats
    group: Index
    row: Index
    signs: Floats
    #: Curvature along each variable, with ridge and penalty.
    curvature: Floats


def descend(problem: Dual, gram: Rows, u: Floats, target: float, most: int) -> tuple[Floats, int]:
    """A point with a violation near `target` if that takes few passes, from u; and the passes taken.

    There are at most `most` passes.
    """
    data = gram.features
    assert problem.signs is not None and data is not None
    size = gram.diag[problem.row]
    rho = costs.DESCENT_PENALTY * float(size.mean())
    lines = data.lines
    these = _Variables(
        problem.p, problem.lo, problem.hi, problem.ridge, problem.group, problem.row, problem.signs,
        np.maximum(size + problem.ridge + rho, 1e-300),
    )  # fmt: skip
    u = u.copy()
    w = data.weights(problem.row, problem.signs * u)
    excess = np.array([u[of].sum() for of in problem.members]) - problem.sums
    g = problem.signs * data.values(w, problem.row) + problem.ridge * u - problem.p
    low, high = problem.extremes(u, g)
    multiplier = -middles(low, high)
    seed = np.ones(1, np.uint64)
    order, active, bounds = np.arange(problem.m), problem.m, (-np.inf, np.inf)
    touched, ranges, passes = 0, [np.inf], 0
    while passes < most and touched < costs.DESCENT_PASSES * problem.m and not current().over:
        kept, low, high = call(
            _one_pass, *lines, these, order[:active], u, w, multiplier, excess, rho, bounds, seed,
            current().flag, work=costs.DESCENT_ENTRY * active * (data.width + 10.0),
        )  # fmt: skip
        change = rho * excess
        multiplier += change
        touched, passes = touched + active, passes + 1
        ranges.append(max(high - low, float(np.abs(change).max())))
        if ranges[-1] <= target:
            if active == problem.m:
                break
            order, active, bounds = np.arange(problem.m), problem.m, (-np.inf, np.inf)
            continue
        if _slow(ranges, target):
            break
        active, bounds = kept, (low if low < 0 else -np.inf, high if high > 0 else np.inf)
    return u, passes


def _slow(ranges: list[float], target: float) -> bool:
    """Whether, at the pace of the last passes, more would be needed than pay."""
    span = costs.DESCENT_SPAN
    if len(ranges) <= 2 * span:
        return False
    before, now = (max(min(some), 1e-300) for some in (ranges[-2 * span : -span], ranges[-span:]))
    pace = np.log(before / now) / span
    left = np.log(max(1.0, ranges[-1] / target))
    return bool(not pace * (costs.DESCENT_PASSES - len(ranges)) > left)


@compiled(fastmath=REORDER)
def _one_pass(
    indptr, indices, data, dense, these, order, u, w, multiplier, excess, rho, bounds, seed, flag
):  # fmt: skip
    """One pass over the variables in `order`, shuffled; those that stay active come first in it.

    Changes u, w and `excess` = E'u - s. Returns the number of active variables, and the extremes of the
    projected gradients.
    """
    n, kept = len(order), 0
    low, high = np.inf, -np.inf
    state = seed[0]
    for s in range(n - 1, 0, -1):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        t = np.int64((state >> np.uint64(33)) % np.uint64(s + 1))
        order[s], order[t] = order[t], order[s]
    seed[0] = state
    for s in range(n):
        if raised(flag):
            break
        i = order[s]
        k, sign, before = these.group[i], these.signs[i], u[i]
        start, end = np.int64(indptr[these.row[i]]), np.int64(indptr[these.row[i] + 1])
        first = np.int64(0) if dense else start
        a = 0.0
        for t in range(end - start):
            a += data[start + t] * w[np.uint32(indices[first + t])]
        g = sign * a + these.ridge[i] * before + multiplier[k] + rho * excess[k] - these.p[i]
        projected = g
        if before <= these.lo[i]:
            if g > bounds[1]:
                continue
            projected = min(g, 0.0)
        if before >= these.hi[i]:
            if g < bounds[0]:
                continue
            projected = max(projected, 0.0)
        order[kept] = i
        kept += 1
        low, high = min(low, projected), max(high, projected)
        after = min(max(before - g / these.curvature[i], these.lo[i]), these.hi[i])
        d = after - before
        if d != 0.0:
            u[i] = after
            excess[k] += d
            d *= sign
            for t in range(end - start):
                w[np.uint32(indices[first + t])] += d * data[start + t]
    return kept, low, high
