"""Rows with multipliers and a gradient: the variables of one problem over stored samples."""

from __future__ import annotations

import numpy as np

from maxmargin._types import Floats, Index
from maxmargin.solvers import costs
from maxmargin.solvers.incremental.samples import Samples, longer


class StoredRows:
    r"""The rows of a problem, one multiplier each, which can be added and removed.

    Removed rows keep their places until `compact`; vectors have an entry for each place, and unused places
    at the end. The problem: minimise :math:`\tfrac12 u^\top (K + D) u - p^\top u` in a box, with zero sum.

    Parameters
    ----------
    samples : Samples
        The samples; other problems may share them.
    epsilon : float, optional
        Half the width of the tube of a regression; None for classification.

    Attributes
    ----------
    n : int
        Places in use.
    at : ndarray of int
        The place of each row among the samples.
    alive : ndarray of bool
        Whether the row is still held.
    y : ndarray
        Classification: the side (-1 or 1) of each row; regression: its target.
    side : ndarray
        Sign of the multiplier. In regression that of the residual: a row whose multiplier is zero may
        change it.
    p : ndarray
        The linear term: y, in regression ``y - side * epsilon``.
    ridge, bound : ndarray
        1 / (2C) of squared slacks or 0; the largest size of a multiplier, C or infinity.
    u, g : ndarray
        Multipliers, and the gradient (K + D) u - p.
    diag : ndarray
        The diagonal of K + D.
    lo, hi : ndarray
        Bounds of the multipliers; both are 0 for rows that are no longer held.
    """

    _vectors = ("at", "alive", "y", "side", "p", "ridge", "bound", "u", "g", "diag", "lo", "hi")

    def __init__(self, samples: Samples, epsilon: float | None = None) -> None:
        self.samples, self.epsilon = samples, epsilon
        self.n = 0
        self.at, self.alive = np.zeros(0, np.intp), np.zeros(0, np.bool_)
        self.y, self.side, self.p, self.ridge, self.bound = (np.zeros(0) for _ in range(5))
        self.u, self.g, self.diag, self.lo, self.hi = (np.zeros(0) for _ in range(5))

    @property
    def held(self) -> Index:
        """Places of the rows that are held, in the order of arrival."""
        return np.flatnonzero(self.alive[: self.n])

    def rebind(self) -> None:
        """Called after vectors were replaced by longer or shorter ones."""

    def append(self, at: Index, y: Floats, ridge: Floats, bound: Floats) -> Index:
        """Add rows with multiplier zero; return their places."""
        new = np.arange(self.n, self.n + len(at))
        if self.n + len(at) > len(self.u):
            capacity = max(self.n + len(at), len(self.u) * 3 // 2, costs.EXACT_PLACES)
            for name in self._vectors:
                setattr(self, name, longer(getattr(self, name)[: self.n], capacity))
            self.rebind()
        self.n += len(at)
        self.at[new], self.y[new], self.ridge[new], self.bound[new] = at, y, ridge, bound
        self.u[new] = 0.0
        self.diag[new] = self.samples.diag[at] + ridge
        self.alive[new] = True
        self.turn(new, np.ones(len(new)) if self.epsilon is not None else y)
        support = np.flatnonzero(self.u[: self.n])
        self.g[new] = self.product(support, self.u[support], new) - self.p[new]
        return new

    def turn(self, rows: Index, side: Floats) -> None:
        """Set the side of rows, and the parts of the problem that depend on it, but for the gradient."""
        self.side[rows] = side
        self.p[rows] = self.y[rows] - side * (self.epsilon or 0.0)
        room = np.where(self.alive[rows], self.bound[rows], 0.0)
        self.lo[rows], self.hi[rows] = np.where(side > 0, 0.0, -room), np.where(side > 0, room, 0.0)

    def compact(self) -> None:
        """Release the places of rows that are no longer held."""
        kept = self.held
        for name in self._vectors:
            setattr(self, name, getattr(self, name)[kept])
        self.n = len(kept)
        self.rebind()

    def block(self, a: Index, b: Index) -> Floats:
        """K between two sets of rows."""
        return self.samples.block(self.at[a], self.at[b])

    def product(self, rows: Index, coef: Floats, at: Index | None = None) -> Floats:
        """``K[at, rows] @ coef``, for all rows by default."""
        places = self.at[: self.n] if at is None else self.at[at]
        return self.samples.product(self.at[rows], coef, places)

    def update(self, base: Floats) -> None:
        """Change the gradient from that of the multipliers `base` to that of u."""
        moved = np.flatnonzero(self.u[: self.n] != base[: self.n])
        delta = self.u[moved] - base[moved]
        self.g[: self.n] += self.product(moved, delta)
        self.g[moved] += self.ridge[moved] * delta

    def recompute_gradient(self) -> None:
        """Compute the gradient from u alone: rounding errors of many updates add up."""
        support = np.flatnonzero(self.u[: self.n])
        self.g[: self.n] = self.product(support, self.u[support]) - self.p[: self.n]
        self.g[support] += self.ridge[support] * self.u[support]
