r"""The nearest point algorithm (NPA) of Keerthi et al.

S. S. Keerthi, S. K. Shevade, C. Bhattacharyya, K. R. K. Murthy, "A fast iterative nearest point algorithm for
support vector machine classifier design", IEEE Trans. Neural Networks 11, 2000.

Like MDM it takes the hull where :math:`d_U - d_L` is largest, but instead of moving along :math:`z_L - z_U`
alone it looks at the triangle of three points of that hull: where it stands (x), the point of MDM that
takes all weight from U to L, and the vertex L itself, the target of Gilbert's step:

.. math::

    x + a\,\alpha_U (z_L - z_U) + b\,(z_L - x),\qquad a, b \ge 0,\; a + b \le 1.

The best point of the triangle (inside, or on one of its three sides) is found from inner products that are
all kept current. A step costs two kernel rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._compiled.intrinsics import raised
from maxmargin._compiled.jit import compiled
from maxmargin._types import Floats
from maxmargin.solvers.papers._hull import (
    BAR,
    CALLS,
    ITERATIONS,
    NEEDED,
    STUCK,
    HullSolver,
    HullWork,
    add_vertices,
    barred,
    missing,
    no_extremes,
    product,
    select,
)
from maxmargin.solvers.state import State


@dataclass
class NPAWork(HullWork):
    """Also: of several hulls, the products of all vertices with the point of each."""

    parts: Floats | None


class NPA(HullSolver[NPAWork]):
    """Best point of a triangle in one hull at a time.

    Examples
    --------
    >>> from maxmargin import dual
    >>> from maxmargin.gram import Gram
    >>> from maxmargin.solvers import NPA
    >>> gram = Gram([[0.0], [1.0], [3.0]], kernel="linear", dtype="float64")
    >>> solution = NPA().solve(dual.nearest_points([-1, -1, 1]), gram)
    >>> solution.status, solution.u.round(3)
    (<Status.SOLVED: 'solved'>, array([0., 1., 1.]))
    """

    name = "npa"
    about = "Keerthi, Shevade, Bhattacharyya, Murthy 2000: best point of a triangle"

    def __repr__(self) -> str:
        return "NPA()"

    def _steps(self, state: State, work: NPAWork, hulls: Any, u: Any, g: Any, *rest: Any) -> None:
        square, relative, turn = rest
        _triangle_steps(hulls, u, g, self._parts(state, work, g), square, relative, work.tau, turn)

    def begin(self, state: State) -> NPAWork:
        """The hulls and the products with their points; here, as it may move rows in the cache."""
        problem, hulls = state.problem, self._hulls(state)
        parts = None
        if problem.n_groups > 1:
            parts = np.zeros((problem.n_groups, problem.m))
            for k in range(problem.n_groups - 1):
                one = np.where(problem.group == k, state.u, 0.0)
                parts[k] = problem.gradient(one, state.gram)[hulls.order]
        return NPAWork(**vars(hulls), parts=parts)

    @staticmethod
    def _parts(state: State, work: NPAWork, g: Any) -> Any:
        """Row k: the products <x_k, z_j> with the point of hull k; they add up to g."""
        if work.parts is None:
            return g[None, :]
        work.parts[-1] = g - work.parts[:-1].sum(axis=0)
        return work.parts


@compiled()
def _line(slope, curvature):
    """The t in [0, 1] that minimises ``slope t + curvature t^2 / 2``."""
    if slope >= 0.0:
        return 0.0
    return min(1.0, -slope / curvature) if curvature > 0.0 else 1.0


@compiled()
def best_of_triangle(p, q, pp, qq, pq):
    """Minimises ``a p + b q + (a^2 pp + 2 a b pq + b^2 qq) / 2`` over a, b >= 0, a + b <= 1."""
    best_a, best_b, best = 0.0, 0.0, 0.0
    det = pp * qq - pq * pq
    if det > 1e-14 * pp * qq:
        a, b = (pq * q - qq * p) / det, (pq * p - pp * q) / det
        if a >= 0.0 and b >= 0.0 and a + b <= 1.0:
            return a, b
    for side in range(3):
        if side == 0:
            a, b = _line(p, pp), 0.0
        elif side == 1:
            a, b = 0.0, _line(q, qq)
        else:  # from (1, 0) to (0, 1)
            b = _line(q - p + pq - pp, pp + qq - 2.0 * pq)
            a = 1.0 - b
        value = a * p + b * q + 0.5 * (a * a * pp + b * b * qq) + a * b * pq
        if value < best:
            best_a, best_b, best = a, b, value
    return best_a, best_b


@compiled()
def _triangle_steps(hulls, u, g, parts, square, relative, tau, turn):
    """Up to `budget` steps; stops early at the tolerance or when the rows in `need` are missing."""
    m, n_hulls = len(u), len(hulls.starts) - 1
    budget, need, report, flag = turn
    bar, extremes = barred(u), no_extremes(n_hulls)
    while report[ITERATIONS] < budget and not raised(flag):
        select(hulls, g, bar, extremes)
        k = 0
        for other in range(1, n_hulls):
            if extremes.most[other] - extremes.least[other] > extremes.most[k] - extremes.least[k]:
                k = other
        lower, upper = extremes.first[k], extremes.last[k]
        if not extremes.most[k] - extremes.least[k] > relative * square:
            return
        missing(hulls, lower, need, report)
        missing(hulls, upper, need, report)
        if report[NEEDED] > 0:
            return
        start, end = hulls.starts[k], hulls.starts[k + 1]
        own = parts[k]
        to_w, to_x = 0.0, 0.0  # <x, W>, <x, x>
        for t in range(start, end):
            to_w += u[t] * g[t]
            to_x += u[t] * own[t]
        weight = u[upper]
        both = product(hulls, lower, upper)
        p = weight * (g[lower] - g[upper])
        pp = weight * weight * max(hulls.diag[lower] + hulls.diag[upper] - 2.0 * both, tau)
        q = g[lower] - to_w
        qq = max(hulls.diag[lower] - 2.0 * own[lower] + to_x, 0.0)
        pq = weight * (hulls.diag[lower] - both - own[lower] + own[upper])
        a, b = best_of_triangle(p, q, pp, qq, pq)
        gain = -(a * p + b * q + 0.5 * (a * a * pp + b * b * qq) + a * b * pq)
        if not gain > 0.0:
            report[STUCK] = 1
            return
        if b > 0.0:
            for t in range(start, end):
                u[t] *= 1.0 - b
                bar[t] = 0.0 if u[t] > 0.0 else BAR
            for t in range(m):
                if n_hulls > 1:
                    g[t] -= b * own[t]
                own[t] *= 1.0 - b
        # x moves by (b + a weight) z_L - a weight z_U, on top of the shrinking.
        enter, leave = b + a * weight, a * weight
        u[lower] += enter
        u[upper] = 0.0 if a == 1.0 else u[upper] - leave
        bar[lower] = 0.0
        if u[upper] <= 0.0:
            u[upper] = 0.0
            bar[upper] = BAR
        add_vertices(hulls, own, lower, upper, enter, -leave)
        if n_hulls > 1:
            add_vertices(hulls, g, lower, upper, enter, -leave)
        square -= 2.0 * gain
        report[ITERATIONS] += 1
        report[CALLS] += 2 * m
