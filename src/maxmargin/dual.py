r"""The one dual problem that every machine of the library solves.

.. math::

    \min_u\; f(u) = \tfrac12 u^\top (A \circ (K + c) + \mathrm{diag}(r))\, u - p^\top u
    \quad\text{with}\quad lo \le u \le hi,\quad \sum_{i \in g} u_i = s_g \text{ for each group } g

`K` is the plain kernel matrix, the constant `c` is 1 where the bias is folded into the kernel, and
`A` couples classes only: :math:`A_{ij} = a[class_i, class_j]`. Variable i uses kernel row
``row[i]``, so a problem may have fewer variables than there are rows (a class pair) or more
(regression). What solvers share is the pair (u, gradient); everything here is computed from it
without a kernel call: objective, KKT violation, offsets and a certified duality gap.

===========================  =================  =====================  ==================  ==================
constructor                  A                  p                      box                 groups
===========================  =================  =====================  ==================  ==================
`c_svc`                      1                  y                      [0, C], [-C, 0]     all, sum 0
`squared_c_svc`              1                  y                      [0, ∞), (-∞, 0]     all, sum 0
`reduced_hulls`              y y'               0                      [0, mu]             per class, sum 1
`nearest_points`             y y'               0                      [0, ∞)              per class, sum 1
`minimum_norm`               y y', c = 1        0                      [0, ∞)              all, sum 1
`one_class`                  1                  0                      [0, 1/(nu n)]       all, sum 1
`one_class_l2`               1                  0                      [0, ∞)              all, sum 1
`all_distances`              K-1 / -1           0                      [0, mu]             per class, sum 1
`epsilon_svr`                1                  y - eps, y + eps       [0, C], [-C, 0]     all, sum 0
`squared_epsilon_svr`        1                  y - eps, y + eps       [0, ∞), (-∞, 0]     all, sum 0
`nu_svr`                     1                  y, y                   [0, C], [-C, 0]     halves, sum ±s
===========================  =================  =====================  ==================  ==================

**The gap.** Linearise the kernel part at u and keep the separable part exact. With
:math:`h = (A\circ(K+c))u` convexity gives, for every feasible v,

.. math:: f(u) - f(v) \le h^\top(u - v) + \tfrac12 \textstyle\sum r_i (u_i^2 - v_i^2) - p^\top (u - v),

and the largest value of the right side over v is the gap: a sum of one-dimensional concave
problems joined by one multiplier per group. For `c_svc` it equals primal minus dual value with the
best possible bias. What it is for machines without slacks: `Dual.gap`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin._group import best_multiplier, fill_evenly, gain, quantile, shift_sum
from maxmargin._lazy import lazy
from maxmargin._limits import check
from maxmargin._tube import tube_gap, twin_parts

Array = NDArray[Any]
Floats = NDArray[np.float64]
Index = NDArray[np.intp]

_EPS = 2.0**-52
# Relative error of a sum, and distance from a bound relative to the box, that rounding alone explains.
_SUM_ERROR, _AT_BOUND = 1e-9, 1e-12
# The largest bound that leaves room for sums and products within the range of float64.
_LARGEST_BOUND = 1e150


@dataclass(frozen=True, eq=False)
class Dual:
    """A frozen description of one problem; see the module's text for the formula.

    Parameters
    ----------
    name : str
        The constructor that made it.
    p, lo, hi, ridge : ndarray of shape (m,)
        Linear term, box and the diagonal that squared slacks add.
    group : ndarray of int of shape (m,)
        Group of each variable.
    sums : ndarray of shape (n_groups,)
        What the variables of each group add up to.
    row : ndarray of int of shape (m,)
        Kernel row of each variable.
    label, coupling : ndarray of int of shape (m,), ndarray of shape (k, k)
        Class of each variable and the matrix a.
    shift : float
        The constant added to every kernel value.
    scale : float
        LIBSVM's KKT violation is this times the violation here. If `self_scaled` the scale is
        ``scale / u'Qu`` instead: that of the hyperplane with margin 1 to which u is rescaled.
    """

    name: str
    p: Floats
    lo: Floats
    hi: Floats
    ridge: Floats
    group: Index
    sums: Floats
    row: Index
    label: Index
    coupling: Floats
    shift: float = 0.0
    scale: float = 1.0
    self_scaled: bool = False

    def __post_init__(self) -> None:
        self._check()

    @lazy
    def members(self) -> tuple[Any, ...]:
        """Variables of each group."""
        if self.n_groups == 1:
            return (slice(None),)  # a view, where an index would copy
        order = np.argsort(self.group, kind="stable")
        return tuple(np.split(order, np.cumsum(np.bincount(self.group, minlength=self.n_groups))[:-1]))

    @lazy
    def signs(self) -> Floats | None:
        """S with :math:`A_{ij} = s_i s_j`, if the coupling is of that kind."""
        a = self.coupling
        s = np.sign(a[0])
        if a.shape == (1, 1) and a[0, 0] == 1.0:
            return np.ones(self.m)
        return s[self.label] if np.array_equal(a, np.outer(s, s)) else None

    @lazy
    def plain(self) -> bool:
        """Whether A is 1 and variable i uses kernel row i."""
        if self.signs is None or len(self.row) != self.m or not (self.signs == 1).all():
            return False
        return bool((self.row == np.arange(self.m)).all())

    @lazy
    def twins(self) -> bool:
        """Whether A is 1 and both the variables i and n + i use kernel row i, as in regression."""
        n = self.m // 2
        if n == 0 or self.m != 2 * n or self.row[n] != self.row[0]:
            return False
        if self.coupling.shape != (1, 1) or self.coupling[0, 0] != 1.0 or self.shift:
            return False
        own = np.arange(n)
        return bool((self.row[:n] == own).all() and (self.row[n:] == own).all())

    @lazy
    def boxed(self) -> bool:
        """Whether all bounds are finite and there is no ridge."""
        return bool(not self.ridge.any() and np.isfinite(self.lo).all() and np.isfinite(self.hi).all())

    @lazy
    def open_below(self) -> bool:
        """Whether there is no ridge and variables have an upper bound only."""
        return bool(not self.ridge.any() and np.isneginf(self.lo).all() and np.isfinite(self.hi).all())

    @lazy
    def hull(self) -> bool:
        """Whether it looks for the point of least norm of one hull, or of the difference of two."""
        weights = not self.p.any() and not self.lo.any() and bool(np.isposinf(self.hi).all())
        return weights and bool((self.sums == 1).all()) and self.signs is not None

    def _check(self) -> None:
        if (self.lo > self.hi).any():
            raise ValueError("Every lower bound must be at most its upper bound.")
        if len(self.row) != self.m:
            raise ValueError(f"rows must name one kernel row per variable: {len(self.row)} for {self.m}.")
        bounds = np.concatenate([self.lo, self.hi])
        if (np.abs(bounds[np.isfinite(bounds)]) > _LARGEST_BOUND).any():
            raise ValueError(
                f"C times the largest weight must be at most {_LARGEST_BOUND:g}: use a smaller C, smaller "
                "weights or, for a machine without slacks, C=inf."
            )
        low, high = self._total(self.lo), self._total(self.hi)
        slack = 1e-9 * np.maximum(1.0, np.abs(self.sums))
        for g in np.flatnonzero(~((low - slack <= self.sums) & (self.sums <= high + slack))):
            raise ValueError(
                f"No feasible point: the variables of group {g} can add up to values between "
                f"{low[g]:g} and {high[g]:g}, not to {self.sums[g]:g}."
            )

    def _total(self, values: Floats) -> Floats:
        """The sum over each group."""
        if self.n_groups == 1:
            return np.array([values.sum()])
        return np.asarray(np.bincount(self.group, values, self.n_groups), dtype=np.float64)

    @property
    def m(self) -> int:
        """Number of variables."""
        return len(self.p)

    @property
    def n_groups(self) -> int:
        """Number of equality constraints."""
        return len(self.sums)

    # -- feasible points ---------------------------------------------------------------------

    def start(self) -> Floats:
        """A feasible point with few non-zeros."""
        u = np.clip(np.zeros(self.m), self.lo, self.hi)
        if not u.any() and not self.sums.any():
            return u
        for member, total in zip(self.members, self.sums, strict=True):
            if total > 0:
                u[member] = fill_evenly(u[member], self.hi[member], total)
            elif total < 0:
                u[member] = -fill_evenly(-u[member], -self.lo[member], -total)
        return self.repair(u)

    def repair(self, u: ArrayLike) -> Floats:
        """The given point made feasible: clipped to the box, sums restored, zeros kept if possible."""
        given = np.array(u, dtype=np.float64)
        if given.shape != (self.m,):
            raise ValueError(
                f"A warm start must have shape ({self.m},), one value per variable of the "
                f"problem; got {given.shape}."
            )
        if not np.isfinite(given).all():
            raise ValueError("A warm start must not contain NaN or infinity.")
        out: Floats = np.clip(given, self.lo, self.hi)
        size = self._total(np.abs(out))
        for k in np.flatnonzero(np.abs(self.sums - self._total(out)) > 1e-15 * np.maximum(1.0, size)):
            member = self.members[k]
            out[member] = shift_sum(out[member], self.lo[member], self.hi[member], self.sums[k])
        return out

    def feasible(self, u: Floats) -> bool:
        """Whether u is in its box and has its sums, up to rounding."""
        if not ((u >= self.lo) & (u <= self.hi)).all():
            return False
        size = np.maximum(np.abs(self.sums), self._total(np.abs(u)))
        size = np.maximum(size, 1e-6 * np.max(size))  # a group of next to nothing is rounded like the others
        return bool((np.abs(self._total(u) - self.sums) <= _SUM_ERROR * size).all())

    def snap(self, u: Floats) -> Floats:
        """The same point with variables on the bounds from which only rounding separates them.

        What this takes from a sum goes to the variable of the group with the most room, if there is one; a
        sum of bounds is right up to rounding. A variable that is free by an ulp only would decide about the
        offset where all others are at a bound and the offset has a whole interval (see `offset`). Of the
        two variables of a row of a regression one becomes 0, if nothing but their sum is given: that is what
        a model keeps, and where kernel values are huge the rounding of this sum matters.
        """
        given, u = u, self._one_sided(u)
        with np.errstate(invalid="ignore"):
            near = np.where(np.isfinite(self.hi - self.lo), _AT_BOUND * (self.hi - self.lo), 0.0)
            out = np.where(u - self.lo <= near, self.lo, np.where(self.hi - u <= near, self.hi, u))
        moved = np.flatnonzero(out != given)
        if not len(moved):
            return given
        for k in np.unique(self.group[moved]):
            member = np.arange(self.m)[self.members[k]]
            room = np.minimum(out[member] - self.lo[member], self.hi[member] - out[member])
            best = int(np.argmax(room))
            change = fsum(given[member]) - fsum(out[member])
            if room[best] > 1e3 * abs(change):
                out[member[best]] += change
        return out

    def _one_sided(self, u: Floats) -> Floats:
        """Of u_i >= 0 >= u_{n+i} only their sum, in regressions without a given sum of sizes."""
        n = self.m // 2
        if not self.twins or self.n_groups != 1 or self.lo[:n].any() or self.hi[n:].any():
            return u
        total = u[:n] + u[n:]
        return np.concatenate([np.maximum(total, 0.0), np.minimum(total, 0.0)])

    # -- the matrix --------------------------------------------------------------------------

    def gradient(self, u: Floats, gram: Any) -> Floats:
        """(A∘(K+c) + diag(ridge)) u - p."""
        g = -self.p.copy()
        self.update(g, np.flatnonzero(u), u[u != 0], gram)
        return g

    def update(self, g: Floats, idx: Index, delta: Floats, gram: Any, keep: Any = None) -> None:
        """Change the gradient in place for a change `delta` of the variables `idx`.

        `keep` marks those whose kernel rows will be wanted again, see `maxmargin.gram.Gram.add`.
        """
        if not len(idx):
            return
        if self.plain and len(g) == gram.n:
            gram.add(g, idx, delta, keep=keep)
            if self.shift:
                g += self.shift * delta.sum()
        elif self.twins and 2 * gram.n == self.m:
            self._add_twins(g, idx, delta, gram, keep)
        elif self.signs is not None:
            self._add(g, self.signs, self.row[idx], self.signs[idx] * delta, gram)
        else:
            for c in np.unique(self.label[idx]):
                check()
                of = self.label[idx] == c
                self._add(g, self.coupling[self.label, c], self.row[idx[of]], delta[of], gram)
        g[idx] += self.ridge[idx] * delta

    def _add_twins(self, g: Floats, idx: Index, delta: Floats, gram: Any, keep: Any) -> None:
        """One product with the kernel serves both halves; where both twins move, it is with their sum."""
        n = gram.n
        rows = np.where(idx < n, idx, idx - n)
        order = np.argsort(rows, kind="stable")
        first = np.flatnonzero(np.diff(rows[order], prepend=-1))
        if len(first) < len(rows):
            delta = np.add.reduceat(delta[order], first)
            keep = None if keep is None else np.logical_or.reduceat(keep[order], first)
            rows = rows[order[first]]
            if not delta.all():  # twins that cancel each other
                keep = None if keep is None else keep[delta != 0]
                rows, delta = rows[delta != 0], delta[delta != 0]
        z = np.zeros(n)
        gram.add(z, rows, delta, keep=keep)
        g[:n] += z
        g[n:] += z

    def _add(self, g: Floats, factor: Floats, rows: Index, coef: Floats, gram: Any) -> None:
        z = np.zeros(gram.n)
        gram.add(z, rows, coef)
        if self.shift:
            z += self.shift * coef.sum()
        g += factor * z[self.row]

    def exact_gradient(self, u: Floats, some: Index, gram: Any) -> Floats:
        """The gradient of the variables `some`, from float64 kernel values."""
        support = np.flatnonzero(u)
        g = self.ridge[some] * u[some] - self.p[some]
        for c in np.unique(self.label[support]):
            of = support[self.label[support] == c]
            z = gram.exact(self.row[some], self.row[of], u[of]) + self.shift * u[of].sum()
            g += self.coupling[self.label[some], c] * z
        return g

    def accurate_gradient(self, u: Floats, some: Index, gram: Any) -> Floats:
        """The same with twice the digits: slower, for where float64 itself cancels.

        All classes are in one sum: what hulls far from the origin add to it cancels.
        """
        support = np.flatnonzero(u)
        g = self.ridge[some] * u[some] - self.p[some]
        for c in np.unique(self.label[some]):
            of = np.flatnonzero(self.label[some] == c)
            factor = self.coupling[c, self.label[support]]
            z = gram.accurate(self.row[some[of]], self.row[support], u[support], factor)
            g[of] += z + self.shift * fsum(u[support] * factor)
        return g

    def rounding(self, u: Floats, some: Index, gram: Any, double: bool = False) -> Floats:
        """Bound the rounding errors of the gradient of the variables `some`, computed from the rows.

        With `double` those of `exact_gradient`.
        """
        support = np.flatnonzero(u)
        error = _EPS * (np.abs(self.ridge[some] * u[some]) + np.abs(self.p[some]))
        for c in np.unique(self.label[support]):
            of = support[self.label[support] == c]
            z = gram.bound(self.row[some], self.row[of], u[of], double)
            z = z + _EPS * abs(self.shift) * float(np.abs(u[of]).sum())
            error += np.abs(self.coupling[self.label[some], c]) * z
        return error

    def block(self, idx: Index, others: Index, gram: Any, cached: bool = False) -> Array:
        """The block of A∘(K+c) + diag(ridge) for two sets of variables, in the rows' precision.

        If `cached` it is taken from whole rows, which stay in the cache; otherwise it is computed directly.
        """
        if cached:
            Q = np.ascontiguousarray(gram.rows(self.row[idx])[:, self.row[others]])
            gram.count(calls=len(idx) * (len(others) - gram.n))  # used: only these columns
        else:
            Q = gram.block(self.row[idx], self.row[others])
        if self.shift:
            Q += Q.dtype.type(self.shift)
        if self.signs is None:
            Q *= self.coupling[np.ix_(self.label[idx], self.label[others])].astype(Q.dtype)
        elif self.coupling.shape != (1, 1):
            Q *= self.signs[idx, None].astype(Q.dtype)
            Q *= self.signs[others].astype(Q.dtype)
        # The exact diagonal: rounding must not make a pair of equal points look curved.
        if idx is others:
            np.fill_diagonal(Q, self.diag(gram, idx))
            return Q
        if not len(others):
            return Q
        order = np.argsort(others, kind="stable")
        at = np.minimum(np.searchsorted(others, idx, sorter=order), len(others) - 1)
        at = order[at]
        same = others[at] == idx
        Q[np.flatnonzero(same), at[same]] = self.diag(gram, idx[same])
        return Q

    def diag(self, gram: Any, idx: Any = slice(None)) -> Floats:
        """Diagonal of A∘(K+c) + diag(ridge), of the variables `idx`."""
        label = self.label[idx]
        same = self.coupling[label, label]
        return np.asarray(same * (gram.diag[self.row[idx]] + self.shift) + self.ridge[idx])

    # -- optimality --------------------------------------------------------------------------

    def extremes(self, u: Floats, g: Floats) -> tuple[Floats, Floats]:
        """Per group, the least gradient that may rise and the largest that may fall.

        u is optimal exactly if in every group the first is at least the second.
        """
        from maxmargin import _jit  # compiled: not at import

        least, most = np.empty(self.n_groups), np.empty(self.n_groups)
        _jit.extremes(u, g, self.lo, self.hi, self.group, least, most)
        return least, most

    def violation(self, u: Floats, g: Floats, noise: float | Floats = 0.0) -> float:
        """The largest KKT violation, in LIBSVM's scaling.

        `noise` bounds the error of each gradient entry: the violation is the largest that is possible then.
        """
        least, most = self.extremes(u, g)
        if np.any(noise):
            least, most = self.extremes(u, g - noise)[0], self.extremes(u, g + noise)[1]
        worst = widest(least, most)
        return worst * self.tolerance_scale(u, g) if worst > 0 else 0.0

    def tolerance_scale(self, u: Floats, g: Floats) -> float:
        """What a difference of gradients is multiplied by to be in LIBSVM's scaling."""
        if not self.self_scaled:
            return self.scale
        square = self.square(u, g)
        return self.scale / square if square > 0 else np.inf

    def square(self, u: Floats, g: Floats) -> float:
        """u'Qu, the squared norm of w in the (ridged) feature space."""
        with np.errstate(over="ignore", invalid="ignore"):  # as for the objective
            return float(u @ (g + self.p))

    def objective(self, u: Floats, g: Floats) -> float:
        """f(u)."""
        with np.errstate(over="ignore", invalid="ignore"):  # without a minimum u may grow beyond all bounds
            return 0.5 * float(u @ (g - self.p))

    def offset(self, u: Floats, g: Floats) -> Floats:
        """Per group, the value that the gradient takes on the free variables.

        The decision function of a machine with one group is ``K u - offset``. Without free variables: the
        middle of the interval that the KKT conditions leave, or its end if it has one only. This is the one
        rule of all engines; u is `snap`-ped to its bounds before.
        """
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

        `noise` bounds the error of each gradient entry; the most that it can amount to is added.

        Without slacks w need not be feasible, and min f is not what a finite number bounds. A hard margin is
        rescaled until all margins are 1. A hard tube is widened until it holds all residuals, with the best
        b: the bound is that of the machine with this tube, of which w is a feasible point.
        """
        noise = np.broadcast_to(np.asarray(noise, dtype=np.float64), self.m)
        if not (np.isfinite(g).all() and np.isfinite(noise).all()):
            return float("inf")
        c = self.ridge * u - g  # p - h
        if self.open_below:
            return self._open_gap(u, c, noise)
        total = 0.0
        for member, s in zip(self.members, self.sums, strict=True):
            lo, hi, r, x = self.lo[member], self.hi[member], self.ridge[member], u[member]
            at = self._multiplier(c[member], lo, hi, r, s)
            if at is None:
                return self._hard_margin_gap(u, g, noise)
            # Noise, and the rounding of the differences below.
            error = noise[member] + _EPS * (np.abs(c[member]) + np.abs(g[member]) + abs(at))
            # c - b must not point to infinity whatever the noise: move what nothing bounds.
            unbounded = (r == 0) * (np.isposinf(hi) * 1.0 - np.isneginf(lo))
            if unbounded.any():
                at = self._multiplier(c[member] + 1.000001 * error * unbounded, lo, hi, r, s)
                if at is None:
                    return self._hard_margin_gap(u, g, noise)
            # What v can gain over u by rising or falling: no terms that cancel, so no digits are lost.
            t = -g[member] - at
            rising, falling = gain(t + error, hi - x, r), gain(error - t, x - lo, r)
            total += float(np.maximum(rising, falling).sum()) + at * (s - fsum(x))
        return max(total, 0.0)

    def _multiplier(self, c: Floats, lo: Floats, hi: Floats, r: Floats, s: float) -> float | None:
        return quantile(c, lo, hi, s) if self.boxed else best_multiplier(c, lo, hi, r, s)

    def _open_gap(self, u: Floats, c: Floats, noise: Floats) -> float:
        """The gap where only the sum bounds v from below: everything at its upper bound but one."""
        error = noise + 4.0 * _EPS * np.abs(c)
        at = np.full(self.n_groups, np.inf)
        np.minimum.at(at, self.group, c - 1.000001 * error)
        t = c - at[self.group]
        gains = np.maximum(t + error, 0.0) * (self.hi - u)
        return max(float(gains.sum()) + float(at @ (self.sums - self._total(u))), 0.0)

    def _hard_margin_gap(self, u: Floats, g: Floats, noise: Floats) -> float:
        """The gap without slack: w must be rescaled until every margin is at least 1."""
        if self.n_groups != 1 or self.ridge.any() or self.sums[0] != 0:
            return float("inf")
        if self.name == "epsilon_svr":
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

    def relative_gap(self, u: Floats, g: Floats, noise: float | Floats = 0.0) -> float:
        """(primal - dual) / (1 + |primal|) of the estimator's problem, for stopping.

        Small for small values too, so that it can be reached; what users read is `relative_to_value`.
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

    def infeasible(self, u: Floats, g: Floats, gram: Any) -> bool:
        r"""Whether there is no hard margin, or no hard tube, to working precision.

        No margin: the hulls touch. No tube: a w that holds all residuals has :math:`\|w\| \ge p^\top u /
        \|w(u)\|` for every u, and this bound is beyond all measure.
        """
        if self.name == "epsilon_svr" and np.isinf(self.hi).all(where=self.lo == 0):
            with np.errstate(over="ignore", invalid="ignore"):
                norm = np.sqrt(max(self.square(u, g), 0.0) * float(np.max(np.abs(gram.diag), initial=0.0)))
                return bool(self.p @ u > 1e8 * float(np.max(np.abs(self.p))) * norm)
        if not self.self_scaled or (self.ridge > 0).all():  # slacks always leave a margin
            return False
        return self.square(u, g) <= 1e-12 * float(np.max(np.abs(gram.diag), initial=0.0))


def widest(least: Floats, most: Floats) -> float:
    """The largest of most - least; infinite where overflowed gradients leave the difference undefined."""
    with np.errstate(invalid="ignore"):
        differences = most - least
    return float(np.max(np.where(np.isnan(differences), np.inf, differences), initial=-np.inf))


def relative_to_value(gap: float, objective: float) -> float:
    """(primal - dual) / max(|primal|, |dual|): the gap as a fraction of the optimal value.

    f(u) is the dual value with its sign changed, so the primal value is gap - f(u). Where both have one sign
    the value of u is within this fraction of the optimal value, which lies between them. It does not
    depend on units, nor on multiples of u such as those that make margins 1. 1 or more says nothing.

    Examples
    --------
    >>> from maxmargin.dual import relative_to_value
    >>> relative_to_value(0.5, -49.5)  # the optimal value is between 49.5 and 50
    0.01
    >>> round(relative_to_value(1e-3, -1e-9), 3)  # a gap that is small, but not beside the value
    1.0
    """
    if not np.isfinite(gap):
        return float("inf")
    return gap / max(abs(objective), abs(gap - objective)) if gap > 0 else 0.0


# -- constructors ----------------------------------------------------------------------------


def c_svc(
    y: ArrayLike, C: ArrayLike = 1.0, bounds: ArrayLike | None = None, rows: ArrayLike | None = None
) -> Dual:
    """C-SVC with the hinge loss; u = y alpha. `bounds` (one per sample) take the place of `C`.

    Examples
    --------
    >>> from maxmargin import dual
    >>> problem = dual.c_svc([1, -1, 1], C=2.0)
    >>> problem.lo, problem.hi
    (array([ 0., -2.,  0.]), array([2., 0., 2.]))
    """
    y = _signs(y)
    upper = np.empty(len(y))
    upper[:] = C if bounds is None else bounds
    if not (upper >= 0).all():
        raise ValueError("C and sample bounds must be non-negative numbers.")
    lo, hi = np.where(y > 0, 0.0, -upper), np.where(y > 0, upper, 0.0)
    return _problem("c_svc", p=y, lo=lo, hi=hi, sums=[0.0], rows=rows)


def squared_c_svc(y: ArrayLike, ridge: ArrayLike, rows: ArrayLike | None = None) -> Dual:
    """C-SVC with the squared hinge loss; ``ridge = 1/(2C)`` for the loss C sum xi^2."""
    y = _signs(y)
    lo, hi = np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0)
    return _problem("squared_c_svc", p=y, lo=lo, hi=hi, sums=[0.0], ridge=ridge, rows=rows)


def reduced_hulls(y: ArrayLike, mu: ArrayLike, rows: ArrayLike | None = None) -> Dual:
    """Nearest points of two reduced hulls: the mu-SVM, which is nu-SVC with mu = 2/(nu n)."""
    y = _signs(y)
    mu = _upper(mu, y.shape, "mu")
    return _hulls("reduced_hulls", y, hi=mu, scale=1.0 / float(np.median(mu)), rows=rows)


def nearest_points(y: ArrayLike, ridge: ArrayLike = 0.0, rows: ArrayLike | None = None) -> Dual:
    """Nearest points of two hulls; multiplied by 2/||w||^2 it is the (squared) hinge C-SVC."""
    y = _signs(y)
    return _hulls("nearest_points", y, ridge=ridge, scale=2.0, self_scaled=True, rows=rows)


def minimum_norm(y: ArrayLike, ridge: ArrayLike = 0.0, rows: ArrayLike | None = None) -> Dual:
    """The point of least norm in the hull of y (phi(x), 1): no bias, or rather a penalised one."""
    y = _signs(y)
    return _problem(
        "minimum_norm",
        p=np.zeros(len(y)),
        sums=[1.0],
        ridge=ridge,
        label=(y < 0).astype(np.intp),
        coupling=[[1.0, -1.0], [-1.0, 1.0]],
        shift=1.0,
        scale=1.0,
        self_scaled=True,
        rows=rows,
    )


def one_class(
    n: int, nu: float = 0.5, weights: ArrayLike | None = None, rows: ArrayLike | None = None
) -> Dual:
    """Schölkopf's one-class machine, alpha summing to 1; `weights` scale the bounds."""
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    _unit_interval(nu, "nu")
    total = nu * w.sum()
    return _problem("one_class", p=np.zeros(n), hi=w / total, sums=[1.0], scale=float(total), rows=rows)


def one_class_l2(n: int, ridge: ArrayLike, rows: ArrayLike | None = None) -> Dual:
    """The one-class machine with squared slacks; divided by rho = u'Qu it is the paper's alpha."""
    return _problem("one_class_l2", p=np.zeros(n), sums=[1.0], ridge=ridge, self_scaled=True, rows=rows)


def all_distances(labels: ArrayLike, mu: ArrayLike, rows: ArrayLike | None = None) -> Dual:
    """All-Distances SVM: the hulls of K classes, each drawn to all others."""
    classes, label = np.unique(np.asarray(labels), return_inverse=True)
    k = len(classes)
    if k < 2:
        raise ValueError("The All-Distances SVM needs at least two classes.")
    mu = _upper(mu, label.shape, "mu")
    smallest = np.bincount(label).min()
    if mu.max() * smallest < 1 - 1e-12:
        raise ValueError(
            f"mu = {mu.max():g} is infeasible: the smallest class has {smallest} samples, so the "
            f"smallest feasible mu is {1 / smallest:g}."
        )
    return _problem(
        "all_distances",
        p=np.zeros(len(label)),
        hi=mu,
        sums=np.ones(k),
        group=label,
        label=label,
        coupling=k * np.eye(k) - 1.0,
        scale=1.0 / float(np.median(mu)),
        rows=rows,
    )


def epsilon_svr(
    y: ArrayLike,
    epsilon: float = 0.1,
    C: ArrayLike = 1.0,
    bounds: ArrayLike | None = None,
    rows: ArrayLike | None = None,
) -> Dual:
    r"""Regression with the epsilon-insensitive loss; u = [alpha, -alpha*], `bounds` take the place of `C`.

    Minimises :math:`\tfrac12\|w\|^2 + C\sum_i \max(0, |y_i - \langle w, x_i\rangle - b| - \varepsilon)`. The
    variables i and n + i share kernel row i, whose coefficient is their sum. Infinite C: a hard tube.

    Examples
    --------
    >>> from maxmargin import dual
    >>> problem = dual.epsilon_svr([1.0, 3.0], epsilon=0.5, C=2.0)
    >>> problem.p, problem.lo, problem.hi, problem.row
    (array([0.5, 2.5, 1.5, 3.5]), array([ 0.,  0., -2., -2.]), array([2., 2., 0., 0.]), array([0, 1, 0, 1]))
    """
    parts = twin_parts(y, epsilon, C if bounds is None else bounds, rows)
    return _problem("epsilon_svr", sums=[0.0], **parts)


def squared_epsilon_svr(
    y: ArrayLike, epsilon: float = 0.1, ridge: ArrayLike = 0.5, rows: ArrayLike | None = None
) -> Dual:
    """Regression with the squared epsilon-insensitive loss; ``ridge = 1/(2C)`` for the loss C sum xi^2."""
    parts = twin_parts(y, epsilon, np.inf, rows)
    both = np.tile(np.broadcast_to(np.asarray(ridge, dtype=np.float64), len(parts["p"]) // 2), 2)
    return _problem("squared_epsilon_svr", sums=[0.0], ridge=both, **parts)


def nu_svr(y: ArrayLike, nu: float = 0.5, C: ArrayLike = 1.0, rows: ArrayLike | None = None) -> Dual:
    r"""Regression with a tube as wide as `nu` asks for.

    alpha and alpha* add up to :math:`\nu\sum_i C_i/2` each. On the free variables of the two groups the
    gradient is -b - epsilon and -b + epsilon. `C` may be one number or one bound per sample.
    """
    _unit_interval(nu, "nu")
    parts = twin_parts(y, 0.0, C, rows)
    n = len(parts["p"]) // 2
    half = 0.5 * nu * float(parts["hi"][:n].sum())
    if not np.isfinite(half):
        raise ValueError("C must be finite: without bounds nu says nothing about the width of the tube.")
    return _problem("nu_svr", sums=[half, -half], group=np.repeat([0, 1], n), **parts)


def crammer_singer(labels: ArrayLike, C: ArrayLike, rows: ArrayLike | None = None) -> Dual:
    r"""Crammer and Singer's machine for K classes: K variables per sample, together, that add up to zero.

    Minimises :math:`\tfrac12\sum_r\|w_r\|^2 + \sum_i C_i\xi_i` with
    :math:`\langle w_{y_i} - w_r, x_i\rangle \ge 1 - \xi_i` for all other classes r.
    """
    classes, label = np.unique(np.asarray(labels), return_inverse=True)
    n, k = len(label), len(classes)
    if k < 2:
        raise ValueError("Crammer and Singer's machine needs at least two classes.")
    true = (np.arange(k) == label[:, None]).astype(np.float64)
    sample = np.arange(n) if rows is None else np.asarray(rows, dtype=np.intp)
    return Dual(
        name="crammer_singer",
        p=true.ravel(),
        lo=np.full(n * k, -np.inf),
        hi=(_upper(C, (n,), "C")[:, None] * true).ravel(),
        ridge=np.zeros(n * k),
        group=np.repeat(np.arange(n), k),
        sums=np.zeros(n),
        row=np.repeat(sample, k),
        label=np.tile(np.arange(k), n),
        coupling=np.eye(k),
    )


def _hulls(name: str, y: Floats, **parts: Any) -> Dual:
    """Two groups, one per class, each summing to 1."""
    group = (y < 0).astype(np.intp)
    return _problem(
        name,
        p=np.zeros(len(y)),
        sums=[1.0, 1.0],
        group=group,
        label=group,
        coupling=[[1.0, -1.0], [-1.0, 1.0]],
        **parts,
    )


def _problem(
    name: str,
    *,
    p: Array,
    sums: Sequence[float] | Floats,
    lo: ArrayLike = 0.0,
    hi: ArrayLike = np.inf,
    ridge: ArrayLike = 0.0,
    group: ArrayLike | None = None,
    label: ArrayLike | None = None,
    coupling: ArrayLike = ((1.0,),),
    rows: ArrayLike | None = None,
    shift: float = 0.0,
    scale: float = 1.0,
    self_scaled: bool = False,
) -> Dual:
    m = len(p)

    def floats(values: ArrayLike) -> Floats:
        out = np.empty(m)
        out[:] = values
        return out

    def indices(values: ArrayLike | None) -> Index:
        return np.zeros(m, np.intp) if values is None else np.array(values, dtype=np.intp)

    r = floats(ridge)
    if (r < 0).any() or not np.isfinite(r).all():
        raise ValueError("ridge must be finite and non-negative.")
    return Dual(
        name=name,
        p=floats(p),
        lo=floats(lo),
        hi=floats(hi),
        ridge=r,
        group=indices(group),
        sums=np.asarray(sums, dtype=np.float64),
        row=np.arange(m) if rows is None else np.array(rows, dtype=np.intp),
        label=indices(label),
        coupling=np.asarray(coupling, dtype=np.float64),
        shift=shift,
        scale=scale,
        self_scaled=self_scaled,
    )


def _signs(y: ArrayLike) -> Floats:
    y = np.asarray(y, dtype=np.float64)
    if y.ndim != 1 or not (np.abs(y) == 1.0).all():
        raise ValueError("y must be one-dimensional with values -1 and +1.")
    return y


def _upper(mu: ArrayLike, shape: tuple[int, ...], name: str) -> Floats:
    mu = np.array(np.broadcast_to(np.asarray(mu, dtype=np.float64), shape))
    if not (mu > 0).all() or np.isinf(mu).any():
        raise ValueError(
            f"{name} must be positive and finite; the nearest points of whole hulls have no bound."
        )
    return mu


def _unit_interval(value: float, name: str) -> None:
    if not 0 < value <= 1:
        raise ValueError(f"{name} must be in (0, 1], got {value!r}.")
