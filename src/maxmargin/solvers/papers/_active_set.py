r"""Learning and unlearning one variable of an active set, exactly.

Paper: S. V. N. Vishwanathan, M. N. Murty, "SSVM: A Simple SVM Algorithm", sections II-B and II-C, after
G. Cauwenberghs, T. Poggio, "Incremental and Decremental Support Vector Machine Learning".

Problems with one sum and no coupling: minimise :math:`\tfrac12 u^\top H u - p^\top u` in a box. S holds
the free variables; their gradients have one common value, the level :math:`\lambda` (the paper's -b). When
a variable c outside S moves by t, those of S follow so that their gradients stay common and the sum stays,
equations (4) to (7):

.. math:: \Delta u_S = \beta t,\quad \Delta\lambda = \kappa t,\quad
          \kappa = \frac{h^\top a - 1}{h^\top h},\quad L^\top\beta = \kappa h - a,\quad a = L^{-1}H_{Sc}

with the factor L and h of `maxmargin.solvers.papers._factor`. The excess of c, its gradient above the level,
changes by :math:`\gamma_c t`, :math:`\gamma_c = H_{cc} - a^\top a + (h^\top a - 1)^2/h^\top h` (8). So c
moves until

* its excess is zero: it joins S, and the factor grows (9);
* or it meets a bound of its own: it stays there (the error set E of the hinge);
* or a member of S meets a bound, which *blocks* c: that member is pruned from S, and c goes on from there.

Unlearning a variable is the same with c leaving S and moving to zero.
"""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.jit import compiled
from maxmargin._types import Floats, Index
from maxmargin.solvers.papers import _factor as factor
from maxmargin.solvers.papers._factor import TINY, append, backward, delete, forward

# How a variable's way ends: in S, at a bound or at its goal, without members that could follow, never.
JOINED, STOPPED, ALONE, ENDLESS = range(4)
# Pivots up to this, relative to the diagonal, count as those of dependent columns.
_INDEPENDENT = 1e-11


class ActiveSet:
    """The free variables, their factor and their level.

    Parameters
    ----------
    u, lo, hi : ndarray of shape (m,)
        Variables, changed in place, and their box.
    sigma : float
        What is added to the matrix; the size of its diagonal is a good choice.
    most_bytes : int
        Memory that the factor may take.
    """

    def __init__(self, u: Floats, lo: Floats, hi: Floats, sigma: float, most_bytes: int) -> None:
        self.u, self.lo, self.hi, self.sigma = u, lo, hi, float(sigma)
        self.most_bytes = int(most_bytes)
        self.size = 0
        self.level = 0.0
        self._packed = np.empty(0)
        self._members = np.empty(0, np.intp)
        self._work = np.empty((3, 0))  # h, a, beta

    @property
    def members(self) -> Index:
        """The variables of S, in the order of the factor."""
        return self._members[: self.size]

    def has_room(self, more: int = 1) -> bool:
        """Whether the factor of S with `more` variables fits its memory."""
        return factor.bytes_for(self.size + more) <= self.most_bytes

    def _grow(self, more: int) -> None:
        size = self.size + more
        if not self.has_room(more):
            raise MemoryError(
                f"The factor of {size} support vectors takes {factor.bytes_for(size) / 1e6:.0f} MB, more "
                f"than the {self.most_bytes / 1e6:.0f} MB allowed."
            )
        self._packed = factor.room_for(self._packed, size)
        if size > len(self._members):
            capacity = max(size, 64, len(self._members) * 3 // 2)
            members, work = np.empty(capacity, np.intp), np.empty((3, capacity))
            members[: self.size] = self.members
            work[0, : self.size] = self._work[0, : self.size]
            self._members, self._work = members, work

    def load(self, members: Index, matrix: Floats) -> None:
        """S anew, with its `matrix` H; raises `LinAlgError` if H is not definite where the sum is kept."""
        self.size = 0
        self._grow(len(members))
        shifted = np.array(matrix, dtype=np.float64, order="F")
        shifted += self.sigma
        factor.factorise(shifted, self._packed)
        self.size = len(members)
        self._members[: self.size] = members
        h = self._work[0, : self.size]
        h[:] = 1.0
        forward(self._packed, self.size, h)

    def load_independent(self, members: Index, matrix: Floats) -> None:
        """S anew from those of `members` whose columns of H are independent where the sum is kept."""
        self.size = 0
        self._grow(len(members))
        kept: list[int] = []
        for k, (c, diag) in enumerate(zip(members, np.diag(matrix), strict=True)):
            size = self.size
            a = matrix[k, kept] + self.sigma
            forward(self._packed, size, a)
            pivot = float(diag + self.sigma - a @ a)
            if pivot > _INDEPENDENT * (diag + self.sigma):
                append(self._packed, size, a, pivot)
                self._work[0, size] = (1.0 - self._work[0, :size] @ a) / np.sqrt(pivot)
                self._members[size] = c
                self.size += 1
                kept.append(k)

    def rename(self, to: Index) -> None:
        """Variable j is now called ``to[j]``."""
        self._members[: self.size] = to[self.members]

    def copy(self) -> ActiveSet:
        """The same set over the same variables."""
        other = ActiveSet(self.u, self.lo, self.hi, self.sigma, self.most_bytes)
        other.size, other.level = self.size, self.level
        other._packed, other._members = self._packed.copy(), self._members.copy()
        other._work = self._work.copy()
        return other

    def relax(self, gradient: Floats) -> Index:
        """Give S one common gradient, given the present one on S; members that meet a bound are pruned."""
        gone = np.empty(self.size, np.intp)
        self._work[1, : self.size] = gradient
        self.size, self.level, n_gone = _relax(
            self._packed, self.size, self._members, self._work, self.u, self.lo, self.hi, gone, self.level
        )
        return gone[:n_gone]

    def seed(self, j: int, diag: float, level: float) -> None:
        """Begin S with one variable, whatever its value."""
        self.size = 0
        self._grow(1)
        self._members[0], self.level = j, level
        self._packed[0] = np.sqrt(diag + self.sigma)
        self._work[0, 0] = 1.0 / self._packed[0]
        self.size = 1

    def learn(self, c: int, column: Floats, diag: float, excess: float) -> tuple[int, Index, float]:
        """Move c until it fits.

        Parameters
        ----------
        c : int
            A variable outside S that may move against its excess.
        column : ndarray of shape (size,)
            H between S and c.
        diag : float
            H_cc.
        excess : float
            Its gradient above the level.

        Returns
        -------
        (int, ndarray, float)
            How it ended, the members that were pruned, and the excess that is left.
        """
        self._grow(1)
        return self._move(c, column, diag, excess, np.nan)

    def unlearn(self, c: int, column: Floats, diag: float) -> tuple[int, Index, float]:
        """Take the member c out of S and move it to zero; `column` is H between the rest of S and c."""
        self.drop(c)
        return self._move(c, column, diag, 0.0, -float(self.u[c]))

    def clear(self, c: int, column: Floats, diag: float) -> int:
        """Move c, outside S, to zero as far as S can follow; how it ended."""
        goal = -float(self.u[c])
        outcome, _, _ = self._move(c, column, diag, 0.0, goal, alone=False)
        return outcome

    def drop(self, c: int) -> None:
        """Take the member c out of S, as it is."""
        p = int(np.flatnonzero(self.members == c)[0])
        delete(self._packed, self.size, p, self._work[:1])
        self._members[p : self.size - 1] = self._members[p + 1 : self.size].copy()
        self.size -= 1

    def _move(
        self, c: int, column: Floats, diag: float, excess: float, goal: float, alone: bool = True
    ) -> tuple[int, Index, float]:
        a = self._work[1, : self.size]
        a[:] = column
        a += self.sigma
        gone = np.empty(self.size, np.intp)
        outcome, self.size, change, n_gone, excess = _move(
            self._packed, self.size, self._members, self._work, self.u, self.lo, self.hi, c,
            diag + self.sigma, excess, goal, gone,
        )  # fmt: skip
        self.level += change
        if alone and outcome == ALONE and self.lo[c] < self.u[c] < self.hi[c]:
            # Nobody is left to follow: the level is where c is.
            self.seed(c, diag, self.level + excess)
            outcome = JOINED
        return int(outcome), gone[:n_gone], float(excess)


@compiled()
def _first_bound(size, members, u, lo, hi, d, sign):
    """The member that is first to meet a bound along sign * d, and after which length."""
    block, way = -1, np.inf
    for k in range(size):
        j, step = members[k], d[k] * sign
        reach = np.inf
        if step > 0.0:
            reach = (hi[j] - u[j]) / step
        elif step < 0.0:
            reach = (lo[j] - u[j]) / step
        if reach < way:
            block, way = k, reach
    return block, max(way, 0.0)


@compiled()
def _prune(packed, size, members, work, u, lo, hi, block, rises):
    """Put a member on the bound that it met and take it out; which variable it was."""
    j = members[block]
    u[j] = hi[j] if rises else lo[j]
    delete(packed, size, block, work[:2])
    for k in range(block, size - 1):
        members[k] = members[k + 1]
    return j


@compiled()
def _relax(packed, size, members, work, u, lo, hi, gone, level):
    """See `ActiveSet.relax`; work[1] holds the gradient."""
    y, d = work[1], work[2]
    forward(packed, size, y)
    n_gone = 0
    while size > 0:
        hy = hh = 0.0
        for k in range(size):
            hy += work[0, k] * y[k]
            hh += work[0, k] * work[0, k]
        level = hy / hh
        for k in range(size):
            d[k] = level * work[0, k] - y[k]
        backward(packed, size, d)
        block, way = _first_bound(size, members, u, lo, hi, d, 1.0)
        step = min(1.0, way)
        for k in range(size):
            u[members[k]] += step * d[k]
            # What is left of the gradient's differences; its mean does not matter.
            y[k] += step * (level * work[0, k] - y[k])
        if step == 1.0:
            break
        gone[n_gone] = _prune(packed, size, members, work, u, lo, hi, block, d[block] > 0.0)
        n_gone += 1
        size -= 1
    return size, level, n_gone


@compiled()
def _move(packed, size, members, work, u, lo, hi, c, diag, excess, goal, gone):
    """See `ActiveSet.learn`; work[1] holds the column of c. With a `goal`, c moves by that much in all."""
    a, beta = work[1], work[2]
    forward(packed, size, a)
    change, n_gone, moved = 0.0, 0, 0.0
    unlearn = not np.isnan(goal)
    while True:
        if size == 0:
            return ALONE, size, change, n_gone, excess
        ha = hh = aa = 0.0
        for k in range(size):
            ha += work[0, k] * a[k]
            hh += work[0, k] * work[0, k]
            aa += a[k] * a[k]
        kappa = (ha - 1.0) / hh
        for k in range(size):
            beta[k] = kappa * work[0, k] - a[k]
        backward(packed, size, beta)
        pivot = diag - aa
        gamma = pivot + (ha - 1.0) * (ha - 1.0) / hh
        if unlearn:
            left = goal - moved
            sign, length = (1.0, left) if left > 0.0 else (-1.0, -left)
            room = np.inf
        else:
            sign = -1.0 if excess > 0.0 else 1.0
            length = abs(excess) / gamma if gamma > TINY * diag else np.inf
            room = hi[c] - u[c] if sign > 0.0 else u[c] - lo[c]
        block, way = _first_bound(size, members, u, lo, hi, beta, sign)
        step = min(length, min(room, way))
        if step == np.inf:
            return ENDLESS, size, change, n_gone, excess
        for k in range(size):
            u[members[k]] += beta[k] * sign * step
        u[c] += sign * step
        moved += sign * step
        change += kappa * sign * step
        excess += gamma * sign * step
        if step == length:
            if unlearn:
                u[c] = 0.0
                return STOPPED, size, change, n_gone, excess
            append(packed, size, a, max(pivot, TINY * diag))
            work[0, size] = (1.0 - ha) / np.sqrt(max(pivot, TINY * diag))
            members[size] = c
            return JOINED, size + 1, change, n_gone, 0.0
        if step == room:
            u[c] = hi[c] if sign > 0.0 else lo[c]
            return STOPPED, size, change, n_gone, excess
        gone[n_gone] = _prune(packed, size, members, work, u, lo, hi, block, beta[block] * sign > 0.0)
        n_gone += 1
        size -= 1
