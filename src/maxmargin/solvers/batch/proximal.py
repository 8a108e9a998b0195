r"""Linear kernels with few features: Newton's method for the weights, in proximal steps.

With Q = F F' the problem has few unknowns, the weights w = F'u and one multiplier per group, however many
samples there are. A proximal step moves from a centre c to the minimum of

.. math:: \tfrac12 \|F^\top u\|^2 - p^\top u + \tfrac\epsilon2 \|u - c\|^2
   \quad\text{with } lo \le u \le hi, \; E^\top u = s,

at which :math:`u = clip(c - (F w + E \lambda - p)/\epsilon)`. That is one equation for w and one for
:math:`\lambda`, piecewise linear and the gradient of a convex function: semismooth Newton steps with an exact
line search solve it, each for one matrix of all features over the variables A within their bounds,

.. math:: (I + F_A^\top F_A / \epsilon)\, dw = F^\top u - w \quad\text{(and the same for } \lambda).

A large ε smooths the problem; each proximal step starts where the one before ended, with a smaller ε. This is
the augmented Lagrangian method for the primal problem (Li, Sun and Toh, "A highly efficient semismooth Newton
augmented Lagrangian method", 2018). Its number of steps hardly depends on C, unlike that of pair steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from maxmargin._compiled.limits import check, current
from maxmargin._types import Floats, Index, LinearData, Rows
from maxmargin.dual import Dual, middles, widest
from maxmargin.solvers import _cholesky as cholesky
from maxmargin.solvers import costs

# Errors of the two equations at which a proximal step ends, relative to w and to the box: of the first, and
# at least.
_ROUGH, _FINE = 1e-2, 1e-9
# Rounding errors of a sum, relative to the sum of absolute values; a fraction of the bound.
_ROUNDING = 2.0**-52
# The least smoothing, in units of the violation to reach: proximal steps then converge without a smaller one.
_SMALLEST = 0.1
# Factors of ε after a proximal step, by the Newton steps that it took.
_FALL = ((4, 0.1), (10, 0.25), (np.inf, 0.5))


@dataclass
class _Point:
    """Weights, and F w + E λ - p for all variables."""

    w: Floats
    c: Floats


class ProximalNewton:
    """Solves a problem over few features."""

    def __init__(self, problem: Dual, gram: Rows) -> None:
        assert problem.signs is not None and gram.features is not None
        self.problem, self.n = problem, gram.n
        self.data: LinearData = gram.features
        self.norm = np.sqrt(gram.diag)[problem.row]
        self._signs = None if (problem.signs == 1).all() else problem.signs
        self._plain = problem.plain and problem.m == self.n
        self._all = np.arange(self.n)
        self.width = float(np.mean(problem.hi - problem.lo))

    # -- products -------------------------------------------------------------------------------

    def weights(self, u: Floats) -> Floats:
        """F'u."""
        u = u if self._signs is None else u * self._signs
        if not self._plain:
            u = np.bincount(self.problem.row, weights=u, minlength=self.n).astype(np.float64, copy=False)
        there = np.flatnonzero(u)
        return self.data.weights(there, u[there])

    def values(self, w: Floats) -> Floats:
        """F w."""
        f = self.data.values(w, self._all)
        f = f if self._plain else f[self.problem.row]
        return f if self._signs is None else f * self._signs

    def sums(self, u: Floats) -> Floats:
        """E'u."""
        return np.array([u[of].sum() for of in self.problem.members])

    # -- steps ----------------------------------------------------------------------------------

    def solve(self, u: Floats, target: float, most: int) -> tuple[Floats, int]:
        """A point with a violation below `target` if possible, from u; and the Newton steps taken."""
        problem = self.problem
        w = self.weights(u)
        g = self.values(w) - problem.p
        low, high = problem.extremes(u, g)
        middle = middles(low, high)
        at = _Point(w, g - middle[problem.group])
        # h is what the proximal term adds to a gradient at most.
        first, last = costs.PROXIMAL_START * widest(low, high), _SMALLEST * target
        h, centre, before = first, u, u
        steps = since = 0
        while steps < most and h > 0 and np.isfinite(h) and not current().over:
            free = centre - at.c * (self.width / h)
            u = np.clip(free, problem.lo, problem.hi)
            inside = np.flatnonzero(u == free)
            w = w + self.weights(u - before)
            before = u
            dw, ds = w - at.w, self.sums(u) - problem.sums
            error = max(_FINE, _ROUGH * (h / first) ** 2)
            size = np.abs(u)
            enough = error * float(np.linalg.norm(w)) + _ROUNDING * float(size @ self.norm)
            enough_sum = error * self.width * max(1, len(inside)) + _ROUNDING * float(size.sum())
            if np.linalg.norm(dw) > enough or np.abs(ds).max() > enough_sum:
                at = self._newton(at, centre, h / self.width, inside, dw, ds)
                steps, since = steps + 1, since + 1
                continue
            w = self.weights(u)
            done = widest(*problem.extremes(u, self.values(w) - problem.p)) <= target
            if done or (since == 0 and h == last):  # no further progress in this precision
                break
            fall = next(fall for count, fall in _FALL if since <= count)
            centre, h, since = u, max(last, h * fall), 0
        return u, steps

    def _newton(
        self, at: _Point, centre: Floats, eps: float, inside: Index, dw: Floats, ds: Floats
    ) -> _Point:
        """A Newton step, as far as it improves the concave function whose gradient is (dw, ds)."""
        problem, d = self.problem, self.data.d
        check()
        matrix = self._matrix(inside, eps)
        step = cholesky.solve(cholesky.factor(matrix), np.concatenate([dw, ds]))
        vw, vs = step[:d], step[d:]
        change = self.values(vw) + vs[problem.group]
        slope, linear, square = float(dw @ vw + ds @ vs), float(at.w @ vw + problem.sums @ vs), float(vw @ vw)

        def derivative(t: float) -> float:
            u = np.clip(centre - (at.c + t * change) / eps, problem.lo, problem.hi)
            return float(change @ u) - linear - t * square

        t = _root(derivative, slope)
        return _Point(at.w + t * vw, at.c + t * change)

    def _matrix(self, inside: Index, eps: float) -> Floats:
        """The matrix of a Newton step for weights and multipliers, symmetric."""
        problem, d = self.problem, self.data.d
        k = d + problem.n_groups
        H = np.zeros((k, k))
        H[:d, :d] = self.data.normal(problem.row[inside])
        for group in range(problem.n_groups):
            members = inside if problem.n_groups == 1 else inside[problem.group[inside] == group]
            ones = np.ones(len(members)) if self._signs is None else self._signs[members]
            H[d + group, :d] = self.data.weights(problem.row[members], ones)
            H[d + group, d + group] = max(len(members), 1e-3)
        H /= eps
        H[np.arange(d), np.arange(d)] += 1.0
        H[np.arange(k), np.arange(k)] *= 1.0 + 1e-12  # a group within a subspace of the features
        return np.tril(H) + np.tril(H, -1).T


def _root(derivative: Callable[[float], float], slope: float) -> float:
    """A point where a falling function, `slope` at 0, is small; 1 if it is not negative there."""
    t, y = 1.0, derivative(1.0)
    if y >= -0.1 * slope:
        return t
    a, at_a, b, at_b = 0.0, slope, 1.0, y
    for _ in range(20):
        t = a + (b - a) * min(max(at_a / (at_a - at_b), 0.05), 0.95)
        y = derivative(t)
        if abs(y) <= 0.2 * slope:
            break
        if y > 0:
            a, at_a = t, y
        else:
            b, at_b = t, y
    return t
