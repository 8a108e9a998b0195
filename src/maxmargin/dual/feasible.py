"""Feasible points: starting points, projections of given points, and variables put on their bounds."""

from __future__ import annotations

from math import fsum

import numpy as np
from numpy.typing import ArrayLike

from maxmargin._types import Floats
from maxmargin.dual._group import fill_evenly, shift_sum
from maxmargin.dual.description import Description

# Largest relative error of a sum, and distance from a bound relative to the box, that count as rounding.
SUM_ERROR, AT_BOUND = 1e-9, 1e-12


class FeasiblePoints(Description):
    """Points that satisfy box and sums."""

    def start(self) -> Floats:
        """A feasible point with few non-zeros."""
        u = np.minimum(np.maximum(self.lo, 0.0), self.hi)
        if not u.any() and not self.sums.any():
            return u
        for member, total in zip(self.members, self.sums, strict=True):
            if total > 0:
                u[member] = fill_evenly(u[member], self.hi[member], total)
            elif total < 0:
                u[member] = -fill_evenly(-u[member], -self.lo[member], -total)
        return self.repair(u)

    def repair(self, u: ArrayLike) -> Floats:
        """Make a point feasible: clip it to the box and restore the sums; zeros are kept if possible."""
        given = np.array(u, dtype=np.float64)
        if given.shape != (self.m,):
            raise ValueError(
                f"A warm start must have shape ({self.m},), one value per variable of the "
                f"problem; got {given.shape}."
            )
        if not np.isfinite(given).all():
            raise ValueError("A warm start must not contain NaN or infinity.")
        out: Floats = np.clip(given, self.lo, self.hi)
        if self.penalised:
            out[-1] = -fsum(out[:-1])
            return out
        size = np.maximum(np.abs(self.sums), self._total(np.abs(out)))
        for k in np.flatnonzero(np.abs(self.sums - self._total(out)) > 1e-15 * size):
            member = self.members[k]
            out[member] = shift_sum(out[member], self.lo[member], self.hi[member], self.sums[k])
        return out

    def feasible(self, u: Floats) -> bool:
        """Whether u is in its box and has its sums, up to rounding."""
        if not ((u >= self.lo) & (u <= self.hi)).all():
            return False
        size = np.maximum(np.abs(self.sums), self._total(np.abs(u)))
        size = np.maximum(size, 1e-6 * np.max(size))  # tiny groups have the rounding errors of the others
        return bool((np.abs(self._total(u) - self.sums) <= SUM_ERROR * size).all())

    def snap(self, u: Floats) -> Floats:
        """Put variables on the bounds from which only rounding separates them.

        The change of a sum is added to the variable of the group with the most room, if there is one;
        otherwise the sum is right up to rounding. A variable that is free by one ulp would determine the
        offset where all others are at a bound and the offset can be anywhere in an interval (see `offset`).
        Of the two variables of a row of a regression one becomes 0 if only their sum matters; otherwise their
        sum becomes a number that float64 has. The model stores this sum, and with huge kernel values its
        rounding matters.
        """
        given, u = u, self._one_sided(u)
        with np.errstate(invalid="ignore"):
            width = self.hi - self.lo
            near = np.where(np.isfinite(width), AT_BOUND * width, 0.0)
            out = np.where(u - self.lo <= near, self.lo, np.where(self.hi - u <= near, self.hi, u))
        moved = np.flatnonzero(out != given)
        if not len(moved):
            return self.with_exact_pairs(given)  # the same object if nothing changes: callers rely on it
        for k in np.unique(self.group[moved]):
            member = np.arange(self.m)[self.members[k]]
            room = np.minimum(out[member] - self.lo[member], self.hi[member] - out[member])
            best = int(np.argmax(room))
            change = fsum(given[member]) - fsum(out[member])
            if room[best] > 1e3 * abs(change):
                out[member[best]] += change
        return self.with_exact_pairs(out)

    def _one_sided(self, u: Floats) -> Floats:
        """Replace u_i >= 0 >= u_{n+i} by their sum, in regressions without a constraint on both sums."""
        n = self.m // 2
        if not self.paired or self.n_groups != 1 or self.lo[:n].any() or self.hi[n:].any():
            return u
        total = u[:n] + u[n:]
        return np.concatenate([np.maximum(total, 0.0), np.minimum(total, 0.0)])

    def net_change(self, old: Floats, new: Floats) -> Floats:
        """`new` less `old` for products with the kernel, which has one row for both variables of a pair.

        Their part is the change of the sum, as float64 stores it, and not what they only exchange: with huge
        kernel values the rounding of large changes that cancel would matter.
        """
        change = new - old
        if self.paired:
            n = self.m // 2
            moved = np.flatnonzero((change[:n] != 0) | (change[n:] != 0) | (new[:n] * new[n:] != 0))
            before, lost = _two_sum(old[moved], old[n + moved])
            total, error = _two_sum(new[moved] + new[n + moved], -before)
            total += error - lost  # the last rounding, if one of the two errors is 0
            for k in np.flatnonzero((lost != 0) & (error != 0)).tolist():  # rare
                i = moved[k]
                total[k] = fsum((new[i] + new[n + i], -old[i], -old[n + i]))
            change[moved], change[n + moved] = total, 0.0
        return change

    def with_exact_pairs(self, u: Floats) -> Floats:
        """Take the rounding error of u_i + u_{n+i} off the smaller one, where both are not 0."""
        n = self.m // 2
        if not self.paired or not (u[:n] * u[n:]).any():
            return u
        a, b = u[:n], u[n:]
        _, error = _two_sum(a, b)
        if not error.any():
            return u
        first = np.abs(a) < np.abs(b)
        out = np.concatenate([np.where(first, a - error, a), np.where(first, b, b - error)])
        return np.clip(out, self.lo, self.hi)


def _two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """A + b and its rounding error, exactly (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
