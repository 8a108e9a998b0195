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

A ridge r of squared slacks is such a term by itself, around 0: with ε = r and c = 0 there is a single step,
and it is Newton's method for the primal problem (Keerthi and DeCoste, "A modified finite Newton method for
fast solution of large scale linear SVMs", 2005). A penalised bias of scale s (see `maxmargin.dual`) adds
:math:`-\lambda^2 / (2 s^2)` to the function of λ, whose equation becomes :math:`E^\top u = \lambda / s^2`,
without its variable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from maxmargin._compiled.limits import check, current
from maxmargin._types import Floats, Index, LinearData, Rows
from maxmargin.dual import Dual, middles, widest
from maxmargin.dual.penalised import of_samples, with_bias
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
    """Weights, multipliers, and F w + E λ - p for all variables of samples."""

    w: Floats
    multiplier: Floats
    c: Floats


class ProximalNewton:
    """Solves a problem over few features."""

    def __init__(self, problem: Dual, gram: Rows) -> None:
        assert problem.signs is not None and gram.features is not None
        self.problem, self.n = problem, gram.n
        self.data: LinearData = gram.features
        #: Of the samples: a penalised bias has no variable here.
        self.p, self.lo, self.hi, ridge, signs = (
            of_samples(problem, of)
            for of in (problem.p, problem.lo, problem.hi, problem.ridge, problem.signs)
        )
        self.row, self.group = problem.row[: len(self.p)], problem.group[: len(self.p)]
        self.ridge = float(ridge[0])
        #: By how much a multiplier changes the sum of its group.
        self.give = 1.0 / float(problem.ridge[-1]) if problem.penalised else 0.0
        self.norm = np.sqrt(gram.diag)[self.row]
        self._signs = None if (signs == 1).all() else signs
        self._plain = self._signs is None and np.array_equal(self.row, np.arange(self.n))
        self._all = np.arange(self.n)
        self.width = float(np.mean(self.hi - self.lo))

    # -- products -------------------------------------------------------------------------------

    def weights(self, u: Floats) -> Floats:
        """F'u."""
        u = u if self._signs is None else u * self._signs
        if not self._plain:
            u = np.bincount(self.row, weights=u, minlength=self.n).astype(np.float64, copy=False)
        there = np.flatnonzero(u)
        return self.data.weights(there, u[there])

    def values(self, w: Floats) -> Floats:
        """F w."""
        f = self.data.values(w, self._all)
        f = f if self._plain else f[self.row]
        return f if self._signs is None else f * self._signs

    def sums(self, u: Floats) -> Floats:
        """E'u."""
        return np.array([u[of].sum() for of in self.problem.members])

    # -- steps ----------------------------------------------------------------------------------

    def solve(self, u: Floats, target: float, most: int) -> tuple[Floats, int]:
        """A point with a violation below `target` if possible, from u; and the Newton steps taken."""
        u = of_samples(self.problem, u)
        w = self.weights(u)
        low, high = self._extremes(u, w)
        multiplier = -middles(low, high)
        at = _Point(w, multiplier, self.values(w) - self.p + multiplier[self.group])
        # h is what the proximal term adds to a gradient at most; with a ridge only errors depend on it.
        first, last = costs.PROXIMAL_START * widest(low, high), _SMALLEST * target
        h, centre, before = first, np.zeros_like(u) if self.ridge else u, u
        steps = since = 0
        while steps < most and h > 0 and np.isfinite(h) and not current().over:
            free = centre - (at.c / self.ridge if self.ridge else at.c * (self.width / h))
            u = np.clip(free, self.lo, self.hi)
            inside = np.flatnonzero(u == free)
            w = w + self.weights(u - before)
            before = u
            dw, ds = w - at.w, self.sums(u) - self.problem.sums - self.give * at.multiplier
            error = max(_FINE, _ROUGH * (h / first) ** 2)
            size = np.abs(u)
            width = float(size.mean()) if self.ridge else self.width
            enough = error * float(np.linalg.norm(w)) + _ROUNDING * float(size @ self.norm)
            enough_sum = error * width * max(1, len(inside)) + _ROUNDING * float(size.sum())
            if np.linalg.norm(dw) > enough or np.abs(ds).max() > enough_sum:
                at = self._newton(at, centre, self.ridge or h / width, inside, dw, ds)
                steps, since = steps + 1, since + 1
                continue
            w = self.weights(u)
            done = widest(*self._extremes(u, w)) <= target
            if done or (since == 0 and h == last):  # no further progress in this precision
                break
            fall = next(fall for count, fall in _FALL if since <= count)
            h, since = max(last, h * fall), 0
            centre = centre if self.ridge else u
        return with_bias(self.problem, u), steps

    def _extremes(self, u: Floats, w: Floats) -> tuple[Floats, Floats]:
        """Those of the problem at u, whose weights are w."""
        g, problem = self.values(w) - self.p + self.ridge * u, self.problem
        full = with_bias(problem, u)
        return problem.extremes(full, np.append(g, problem.ridge[-1] * full[-1]) if problem.penalised else g)

    def _newton(
        self, at: _Point, centre: Floats, eps: float, inside: Index, dw: Floats, ds: Floats
    ) -> _Point:
        """A Newton step, as far as it improves the concave function whose gradient is (dw, ds)."""
        d = self.data.d
        check()
        matrix = self._matrix(inside, eps)
        step = cholesky.solve(cholesky.factor(matrix), np.concatenate([dw, ds]))
        vw, vs = step[:d], step[d:]
        change = self.values(vw) + vs[self.group]
        slope = float(dw @ vw + ds @ vs)
        linear = float(at.w @ vw + (self.problem.sums + self.give * at.multiplier) @ vs)
        square = float(vw @ vw + self.give * (vs @ vs))

        def derivative(t: float) -> float:
            u = np.clip(centre - (at.c + t * change) / eps, self.lo, self.hi)
            return float(change @ u) - linear - t * square

        t = _root(derivative, slope)
        return _Point(at.w + t * vw, at.multiplier + t * vs, at.c + t * change)

    def _matrix(self, inside: Index, eps: float) -> Floats:
        """The matrix of a Newton step for weights and multipliers, symmetric."""
        problem, d = self.problem, self.data.d
        k = d + problem.n_groups
        H = np.zeros((k, k))
        H[:d, :d] = self.data.normal(self.row[inside])
        for group in range(problem.n_groups):
            members = inside if problem.n_groups == 1 else inside[self.group[inside] == group]
            ones = np.ones(len(members)) if self._signs is None else self._signs[members]
            H[d + group, :d] = self.data.weights(self.row[members], ones)
            H[d + group, d + group] = max(len(members), 1e-3)
        H /= eps
        H[np.arange(d), np.arange(d)] += 1.0
        H[np.arange(d, k), np.arange(d, k)] += self.give
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
