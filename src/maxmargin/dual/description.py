"""The parts of a dual problem, and the properties that follow from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from maxmargin._compiled.lazy import lazy
from maxmargin._types import Floats, Index

# Largest bound whose sums and products stay within the range of float64.
_LARGEST_BOUND = 1e150


@dataclass(frozen=True, eq=False)
class Description:
    """A frozen description of one problem; see `maxmargin.dual.problem` for the formula.

    Parameters
    ----------
    name : str
        Name of the constructor.
    p, lo, hi, ridge : ndarray of shape (m,)
        Linear term, box and the diagonal that squared slacks add.
    group : ndarray of int of shape (m,)
        Group of each variable.
    sums : ndarray of shape (n_groups,)
        Sum of the variables of each group.
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
        """The vector s with :math:`A_{ij} = s_i s_j`, or None if the coupling has another form.

        An entry is 0 where a variable has no kernel values, see `penalised`.
        """
        if self._uncoupled:
            return np.ones(self.m)
        a = self.coupling
        s = np.sign(a[0])
        return s[self.label] if np.array_equal(a, np.outer(s, s)) else None

    @lazy
    def without_signs(self) -> Self | None:
        """The same problem in the variables s_i u_i, whose A is 1; None where there are no `signs`.

        Nor where groups are not classes: where signs differ within a group its sum would be another one.
        """
        if self._uncoupled:
            return self
        s = self.signs
        if s is None or self.n_groups != len(self.coupling) or not np.array_equal(self.group, self.label):
            return None
        return replace(
            self,
            p=s * self.p,
            lo=np.where(s > 0, self.lo, -self.hi),
            hi=np.where(s > 0, self.hi, -self.lo),
            sums=np.sign(self.coupling[0]) * self.sums,
            label=np.zeros(self.m, np.intp),
            coupling=np.ones((1, 1)),
        )

    @lazy
    def ranges(self) -> Index | None:
        """Where groups begin, and the last one ends, if each is a range of variables; otherwise None."""
        if self.n_groups == 1:
            return np.array([0, self.m])
        ends = np.concatenate([[0], np.flatnonzero(np.diff(self.group)) + 1, [self.m]])
        return ends if len(ends) == self.n_groups + 1 else None

    @property
    def _uncoupled(self) -> bool:
        """Whether there is one class, so that A is 1."""
        return self.coupling.shape == (1, 1) and bool(self.coupling[0, 0] == 1.0)

    @lazy
    def plain(self) -> bool:
        """Whether A is 1 and variable i uses kernel row i."""
        one = self._uncoupled or (self.signs is not None and bool((self.signs == 1).all()))
        return one and np.array_equal(self.row, np.arange(self.m))

    @lazy
    def paired(self) -> bool:
        """Whether A is 1 and both the variables i and n + i use kernel row i, as in regression."""
        n = self.m // 2
        if n == 0 or self.m != 2 * n or self.row[n] != self.row[0]:
            return False
        if not self._uncoupled or self.shift:
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
        """Whether it looks for the point of least norm of one hull, of two, or for points of K hulls."""
        weights = not self.p.any() and not self.lo.any() and bool(np.isposinf(self.hi).all())
        return weights and bool((self.sums == 1).all()) and (self.signs is not None or self.class_hulls)

    @lazy
    def tube(self) -> bool:
        """Whether it is a regression with a tube of given width and linear slacks, or none."""
        n = self.m // 2
        if self.n_groups != 1 or self.m != 2 * n or self.sums[0] != 0 or self.ridge.any():
            return False
        paired = np.array_equal(self.row[:n], self.row[n:]) and self.coupling.shape == (1, 1)
        return bool(paired and not self.shift and not self.lo[:n].any() and not self.hi[n:].any())

    @lazy
    def penalised(self) -> bool:
        """Whether the bias is penalised: the last variable is the sum of the others, with the sign changed.

        See `maxmargin.dual.penalised`.
        """
        coupled = self.coupling.shape == (2, 2) and np.array_equal(self.coupling, np.diag([1.0, 0.0]))
        return coupled and not self.label[:-1].any() and bool(self.label[-1] == 1)

    @lazy
    def class_hulls(self) -> bool:
        """Whether it has one hull for each of more than two classes, each coupled with all others."""
        return self.n_groups > 2 and np.array_equal(self.group, self.label)

    @lazy
    def per_sample(self) -> bool:
        """Whether each group is a sample, with one variable per class, coupled within the classes only."""
        k = len(self.coupling)
        if k < 2 or self.m != k * self.n_groups or not np.array_equal(self.coupling, np.eye(k)):
            return False
        adjacent = np.array_equal(self.group, np.repeat(np.arange(self.n_groups), k))
        return adjacent and np.array_equal(self.label, np.tile(np.arange(k), self.n_groups))

    @lazy
    def two_hulls(self) -> bool:
        """Whether it looks for the nearest points of two hulls, whose multiple is a C-SVC."""
        return self.hull and self.self_scaled and self.n_groups == 2

    @lazy
    def one_hull(self) -> bool:
        """Whether it looks for the point of least norm of one hull, whose multiple is a C-SVC."""
        return self.hull and self.self_scaled and self.n_groups == 1 and self.coupling.shape == (2, 2)

    @property
    def tolerance_share(self) -> float:
        """Share of an estimator's tolerance that the margins of a hull may take.

        Two hulls share it; of one hull, margins may differ from 1 by it in both directions.
        """
        return 0.5 if self.two_hulls or self.one_hull else 1.0

    def _check(self) -> None:
        if (self.lo > self.hi).any():
            raise ValueError("Every lower bound must be at most its upper bound.")
        if len(self.row) != self.m:
            raise ValueError(f"rows must have one entry per variable: got {len(self.row)} for {self.m}.")
        # Nearly always within the limits at both ends, and so are all others.
        ends = self.m == 0 or (self.lo.min() >= -_LARGEST_BOUND and self.hi.max() <= _LARGEST_BOUND)
        bounds = np.empty(0) if ends else np.concatenate([self.lo, self.hi])
        if (np.abs(bounds[np.isfinite(bounds)]) > _LARGEST_BOUND).any():
            raise ValueError(
                f"C times the largest weight must be at most {_LARGEST_BOUND:g}: use a smaller C, smaller "
                "weights or, for a hard margin, C=inf."
            )
        if self.n_groups == 1 and self.lo.sum() <= self.sums[0] <= self.hi.sum():
            return
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
