"""Optimality: the violation, the offset, and the gap that certifies how far a point is from the optimum."""

from __future__ import annotations

import math

import numpy as np

from maxmargin._types import Floats, Rows
from maxmargin.dual._group import best_multiplier, gain, quantile
from maxmargin.dual._regression import tube_gap
from maxmargin.dual.description import Description

_EPS = 2.0**-52
#: Relative error of the differences in the gap, whose terms are c, g and the multiplier.
ROUNDING = 2.0 * _EPS
# By how much the primal point is made longer at least where the gap exceeds this share of the value.
_SHORTEST, _ROUGHLY = 1e-6, 1e-4


class Certificate(Description):
    """Optimality of a point, from its gradient."""

    def extremes(self, u: Floats, g: Floats) -> tuple[Floats, Floats]:
        """Per group, the least gradient that may rise and the largest that may fall.

        u is optimal exactly if in every group the first is at least the second.
        """
        from maxmargin.dual._extremes import extremes  # compiled: not at import

        least, most = np.empty(self.n_groups), np.empty(self.n_groups)
        extremes(u, g, self.lo, self.hi, self.group, least, most)
        return least, most

    def violation(self, u: Floats, g: Floats, noise: float | Floats = 0.0) -> float:
        """The largest KKT violation, in LIBSVM's scaling.

        `noise` bounds the error of each gradient entry: the result is the largest possible violation.
        """
        least, most = self.extremes(u, g)
        if np.any(noise):
            least, most = self.extremes(u, g - noise)[0], self.extremes(u, g + noise)[1]
        worst = widest(least, most)
        return worst * self.tolerance_scale(u, g) if worst > 0 else 0.0

    def tolerance_scale(self, u: Floats, g: Floats) -> float:
        """Factor that converts a difference of gradients to the scaling of LIBSVM."""
        if not self.self_scaled:
            return self.scale
        square = self.square(u, g)
        return self.scale / square if 0 < square < np.inf else np.inf  # infinite: it has overflowed

    def square(self, u: Floats, g: Floats) -> float:
        """u'Qu, the squared norm of w in the (ridged) feature space."""
        with np.errstate(over="ignore", invalid="ignore"):  # as for the objective
            return float(u @ (g + self.p))

    def objective(self, u: Floats, g: Floats) -> float:
        """f(u)."""
        with np.errstate(over="ignore", invalid="ignore"):  # without a minimum u may grow without bound
            return 0.5 * float(u @ (g - self.p))

    def offset(self, u: Floats, g: Floats) -> Floats:
        """Per group, the value that the gradient takes on the free variables.

        The decision function of a problem with one group is ``K u - offset``. Without free variables the
        offset is the middle of the interval that the KKT conditions allow, or its end if it has only one. All
        engines use this rule, after `snap`. A penalised bias is what the variables say, no free choice.
        """
        if self.penalised:
            return np.array([self.ridge[-1] * u[-1]])
        free = (u > self.lo) & (u < self.hi)
        least, most = self.extremes(u, g)
        inside = self._total(free.astype(np.float64))
        mean = self._total(np.where(free, g, 0.0)) / np.maximum(inside, 1.0)
        with np.errstate(invalid="ignore"):
            middle = 0.5 * (least + most)
        known = np.where(np.isfinite(least), least, np.where(np.isfinite(most), most, 0.0))
        return np.where(inside > 0, mean, np.where(np.isfinite(middle), middle, known))

    def gap(self, u: Floats, g: Floats, noise: float | Floats = 0.0) -> float:
        """An upper bound of f(u) - min f.

        `noise` bounds the error of each gradient entry; its largest possible effect is added.

        Without slacks w need not be feasible, and min f may have no finite bound. A hard margin is rescaled
        until all margins are 1. A hard tube is widened until it contains all residuals, with the best b: the
        bound is that of the problem with this tube, of which w is a feasible point.

        A sum that is right to rounding only has a value below that of a feasible point nearby, if the
        multiplier of the sum is large (targets far from 0, say); this does not make the bound smaller.
        """
        noise = np.broadcast_to(np.asarray(noise, dtype=np.float64), self.m)
        if not (np.isfinite(g).all() and np.isfinite(noise).all()):
            return float("inf")
        if self.open_below:
            return self._open_gap(u, g, noise)
        c = self.ridge * u - g  # p - h
        from maxmargin.dual._extremes import missing  # compiled: not at import

        total = lacking = 0.0
        for member, s in zip(self.members, self.sums, strict=True):
            lo, hi, r, x = self.lo[member], self.hi[member], self.ridge[member], u[member]
            at = self._multiplier(c[member], lo, hi, r, s)
            if at is None:
                return self._hard_margin_gap(u, g, noise)
            # Noise, and the rounding of the differences below.
            error = noise[member] + ROUNDING * (np.abs(c[member]) + np.abs(g[member]) + abs(at))
            # The gain of unbounded variables must be finite for every noise: shift their c.
            unbounded = (r == 0) * (np.isposinf(hi) * 1.0 - np.isneginf(lo))
            if unbounded.any():
                at = self._multiplier(c[member] + 1.000001 * error * unbounded, lo, hi, r, s)
                if at is None:
                    return self._hard_margin_gap(u, g, noise)
            # The gain of v over u by rising or falling: without terms that cancel, no digits are lost.
            t = -g[member] - at
            rising, falling = gain(t + error, hi - x, r), gain(error - t, x - lo, r)
            total += float(np.maximum(rising, falling).sum())
            lacking += at * missing(np.ascontiguousarray(x), s)
        return total + max(lacking, 0.0)

    def _multiplier(self, c: Floats, lo: Floats, hi: Floats, r: Floats, s: float) -> float | None:
        return quantile(c, lo, hi, s) if self.boxed else best_multiplier(c, lo, hi, r, s)

    def _open_gap(self, u: Floats, g: Floats, noise: Floats) -> float:
        r"""The gap where only the sum bounds v from below: all but one variable are at their upper bounds.

        For every s, :math:`f(v) \ge s\,v^\top Qu - \tfrac12 s^2 u^\top Qu - p^\top v`: s w is a point of the
        primal problem as w is. Where margins fall just short of 1 and C is large, a larger one is far better.
        """
        best, longer = self._gap_of_multiple(u, g, noise, 0.0), _SHORTEST
        while best > _ROUGHLY * abs(self.objective(u, g)) and longer <= 1.0:
            found = self._gap_of_multiple(u, g, noise, longer)
            if not found < best:  # convex in s: longer ones are worse
                break
            best, longer = found, 2.0 * longer
        return best

    def _gap_of_multiple(self, u: Floats, g: Floats, noise: Floats, longer: float) -> float:
        """The gap at u that the primal point (1 + longer) w shows."""
        more = longer * (g + self.p)
        c = -g - more
        error = (1.0 + longer) * noise + 4.0 * _EPS * (np.abs(g) + np.abs(more))
        low = c - 1.000001 * error
        at, second = np.full(self.n_groups, np.inf), np.full(self.n_groups, np.inf)
        np.minimum.at(at, self.group, low)
        # A variable gains by what it exceeds the least of the others: it cannot exceed itself by noise.
        least = low == at[self.group]
        np.minimum.at(second, self.group[~least], low[~least])
        second = np.where(np.bincount(self.group[least], minlength=self.n_groups) > 1, at, second)
        others = np.where(least, second[self.group], at[self.group])
        gains = np.maximum(c + error - others, 0.0) * (self.hi - u)
        lacking = max(float(at @ (self.sums - self._total(u))), 0.0)
        square = max(0.0, self.square(u, g) + float(np.abs(u) @ noise))
        return float(gains.sum()) + lacking + 0.5 * longer**2 * square

    def _hard_margin_gap(self, u: Floats, g: Floats, noise: Floats) -> float:
        """The gap without slacks: w is rescaled until every margin is at least 1."""
        if self.penalised:
            return self._hard_margin_gap_penalised(u, g, noise)
        if self.n_groups != 1 or self.ridge.any() or self.sums[0] != 0:
            return float("inf")
        if self.tube:
            return tube_gap(u, g, self.p, noise)
        score = g + self.p
        positive = self.p > 0
        if positive.all() or not positive.any():
            return float("inf")
        margin = 0.5 * ((score - noise)[positive].min() - (score + noise)[~positive].max())
        wrong = float(np.abs(u) @ noise)  # of u'Qu
        if margin <= 0:
            return float("inf")
        primal = 0.5 * (self.square(u, g) + wrong) / margin**2
        return max(0.0, primal + self.objective(u, g) + 0.5 * wrong)

    def _hard_margin_gap_penalised(self, u: Floats, g: Floats, noise: Floats) -> float:
        """The same where the bias is rescaled too, as it is one of the weights."""
        if self.ridge[:-1].any() or not self.p[:-1].all():
            return float("inf")
        bias, y = -self.ridge[-1] * u[-1], np.sign(self.p[:-1])
        margin = float((y * (g + self.p)[:-1] + y * bias - noise[:-1] - noise[-1]).min())
        if margin <= 0:
            return float("inf")
        wrong = float(np.abs(u) @ noise)  # of u'Qu
        primal = 0.5 * (self.square(u, g) + wrong) / margin**2
        lacking = abs(bias) * abs(float(u.sum()))
        return max(0.0, primal + self.objective(u, g) + 0.5 * wrong + lacking)

    def relative_gap(self, u: Floats, g: Floats, noise: float | Floats = 0.0) -> float:
        """``(primal - dual) / (1 + |primal|)`` of the problem of the estimator, for stopping.

        The 1 makes it attainable for small values too; users are shown `relative_to_value`.
        """
        gap = self.gap(u, g, noise)
        if not np.isfinite(gap):
            return float("inf")
        if not self.self_scaled:
            unit = 1.0 if self.p.any() else self.scale**2
            primal = unit * abs(gap - self.objective(u, g))
            return unit * gap / (1.0 + primal)
        # Rescaled to margin 1 the value is scale^2 / (2 ||w||^2), and ||w*||^2 >= ||w||^2 - 2 gap.
        square = self.square(u, g)
        if square <= 2.0 * gap:
            return float("inf")
        dual, primal = 0.5 * self.scale**2 / square, 0.5 * self.scale**2 / (square - 2.0 * gap)
        return (primal - dual) / (1.0 + primal)

    def infeasible(self, u: Floats, g: Floats, gram: Rows) -> bool:
        r"""Whether there is no hard margin, or no hard tube, to working precision.

        No margin: the hulls touch. No tube: a w with all residuals in the tube has :math:`\|w\| \ge p^\top
        u / \|w(u)\|` for every u, and this bound is extremely large.
        """
        if self.tube and np.isinf(self.hi).all(where=self.lo == 0):
            with np.errstate(over="ignore", invalid="ignore"):
                norm = np.sqrt(max(self.square(u, g), 0.0) * float(np.max(np.abs(gram.diag), initial=0.0)))
                return bool(self.p @ u > 1e8 * float(np.max(np.abs(self.p))) * norm)
        if not self.self_scaled or (self.ridge > 0).all():  # slacks always leave a margin
            return False
        return self.square(u, g) <= 1e-12 * float(np.max(np.abs(gram.diag), initial=0.0))


def widest(least: Floats, most: Floats) -> float:
    """The largest of most - least; infinite where the difference of overflowed gradients is undefined."""
    with np.errstate(invalid="ignore"):
        differences = most - least
    return float(np.max(np.where(np.isnan(differences), np.inf, differences), initial=-np.inf))


def middles(least: Floats, most: Floats) -> Floats:
    """The middles of the extremes of groups; 0 where one is infinite, because nothing can rise or fall.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.dual import middles
    >>> middles(np.array([1.0, np.inf]), np.array([3.0, -np.inf]))
    array([2., 0.])
    """
    with np.errstate(invalid="ignore"):
        middle = 0.5 * (least + most)
    return np.where(np.isfinite(middle), middle, 0.0)


def relative_to_value(gap: float, objective: float) -> float:
    """``(primal - dual) / max(|primal|, |dual|)``: the gap as a fraction of the optimal value.

    f(u) is the dual value with its sign changed, so the primal value is gap - f(u). If both have the same
    sign, the value of u is within this fraction of the optimal value, which lies between them. It does not
    depend on units, nor on multiples of u such as those that make margins 1. A value of 1 or more carries no
    information.

    Examples
    --------
    >>> from maxmargin.dual import relative_to_value
    >>> relative_to_value(0.5, -49.5)  # the optimal value is between 49.5 and 50
    0.01
    >>> round(relative_to_value(1e-3, -1e-9), 3)  # a gap that is small, but not relative to the value
    1.0
    """
    if not math.isfinite(gap):
        return float("inf")
    return gap / max(abs(objective), abs(gap - objective)) if gap > 0 else 0.0
