"""Exact steps until every margin is right: learn the worst violator, unlearn rows that are removed."""

from __future__ import annotations

import numpy as np

from maxmargin import dual
from maxmargin._types import Floats, Index
from maxmargin.gram.gram import Gram
from maxmargin.kernels.kernel import Kernel
from maxmargin.solvers import costs
from maxmargin.solvers.batch.batch import Batch
from maxmargin.solvers.incremental.exactness import ROUNDING, SUM, InexactError, sizes
from maxmargin.solvers.incremental.rows import StoredRows
from maxmargin.solvers.papers._active_set import ENDLESS, ActiveSet
from maxmargin.solvers.solution import Solution, Status
from maxmargin.solvers.state import Stop

# Violation of a margin that counts as none, besides the part that grows with the terms of the margin.
_TOL = 1e-10


class Margins(StoredRows):
    """Rows whose support vectors have a margin of exactly 1, and the others no less.

    Attributes
    ----------
    active : ActiveSet
        The support vectors with their factor; empty where no factor was found.
    sound : bool
        False during a change, and after an interrupt.
    """

    def __init__(self, kernel: Kernel, *, most_bytes: int, factor_bytes: int, n_jobs: int | None) -> None:
        super().__init__(kernel, most_bytes=most_bytes, n_jobs=n_jobs)
        self.active = ActiveSet(self.u, self.lo, self.hi, 1.0, factor_bytes)
        self.sound = True

    @property
    def level(self) -> float:
        """The decision function is ``K u - level``."""
        if self.active.size or self.u.any():
            return self.active.level
        sides = np.unique(self.y[self.held])
        return -float(sides[0]) if len(sides) == 1 else 0.0  # of one class: w = 0, b = its side

    @property
    def tol(self) -> Floats:
        """For each row the violation of its margin that counts as none."""
        return _TOL + ROUNDING * sizes(self.diag[: self.n], self.u[: self.n])

    def rebind(self) -> None:
        """Let the active set use the present vectors."""
        self.active.u, self.active.lo, self.active.hi = self.u, self.lo, self.hi

    def compact(self) -> None:
        """Release the places of rows that are no longer held."""
        self.active.rename(np.cumsum(self.alive) - 1)
        super().compact()

    def unlearn(self, k: int) -> None:
        """Move the multiplier of a row to zero, with the margins of S kept; the row is no longer held."""
        if self.u[k]:
            base = self.u.copy()
            if k in self.active.members:
                others = self.active.members[self.active.members != k]
                self.active.unlearn(k, self.block(others, np.array([k]))[:, 0], float(self.diag[k]))
            self.u[k] = 0.0
            self.update(base)
        self.lo[k] = self.hi[k] = 0.0
        self.alive[k] = False

    def learn_violators(self) -> None:
        """Learn the worst violator until every margin is right."""
        held = self.held
        if len(np.unique(self.y[held])) < 2:
            self.active.size = 0
            self.u[:] = 0.0
            self.g[: self.n] = -self.y[: self.n]
            self.sound = True
            return
        lost = self.u.any() and not self.active.size
        if lost or np.count_nonzero(self._excess() > self.tol) > costs.EXACT_FEW:
            self.approach()
            self.load(np.flatnonzero(self.u[: self.n]))
        for _ in range(5 * len(held) + 200):
            if not self.active.size:
                self._begin()
            self._repair_sum()
            self._relax()
            excess = self._excess() / self.tol
            c = int(np.argmax(excess))
            if not excess[c] > 1.0:
                self.sound = True
                return
            base = self.u.copy()
            S = self.active.members
            signed = float(self.g[c]) - self.active.level
            column = self.block(S, np.array([c]))[:, 0]
            outcome, _, _ = self.active.learn(c, column, float(self.diag[c]), signed)
            self.update(base)
            if outcome == ENDLESS or not np.isfinite(signed):
                raise InexactError
        raise InexactError

    def load(self, S: Index) -> None:
        """Factor the matrix of the support vectors S."""
        H = self.block(S, S)
        H[np.arange(len(S)), np.arange(len(S))] += self.ridge[S]
        self.active.load(S, H)

    def approach(self) -> Solution:
        """Set the multipliers to a solution of `Batch`, which starts from the present ones; S is empty."""
        held = self.held
        problem = dual.squared_c_svc(self.y[held], self.ridge[held])
        if self.K is not None:
            gram = Gram(self.K[np.ix_(held, held)], Kernel("precomputed"), n_jobs=self.n_jobs)
        else:
            gram = Gram(
                self.X,
                self.kernel,
                index=held,
                dtype=np.float64,
                n_jobs=self.n_jobs,
                cache_bytes=self.most_bytes,
            )
        stop = Stop(1e-6, max_iter=costs.EXACT_APPROACH * len(held))
        solution = Batch().solve(problem, gram, warm=self.u[held], stop=stop)
        if solution.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        self.u[:] = 0.0
        self.u[held] = solution.u
        self.recompute_gradient()
        self.active.sigma = self._typical()
        self.active.size, self.active.level = 0, float(solution.offset[0])
        return solution

    def _begin(self) -> None:
        """Start S with the most violating pair."""
        self.active.sigma = self._typical()
        g = np.where(self.alive[: self.n], self.g[: self.n], np.nan)
        i = int(np.nanargmin(np.where(self.y[: self.n] > 0, g, np.nan)))
        j = int(np.nanargmax(np.where(self.y[: self.n] < 0, g, np.nan)))
        base = self.u.copy()
        self.active.seed(j, float(self.diag[j]), float(g[j]))
        self.active.learn(
            i, self.block(np.array([j]), np.array([i]))[:, 0], float(self.diag[i]), float(g[i] - g[j])
        )
        self.update(base)

    def _typical(self) -> float:
        """A typical kernel value to shift the matrix by, insensitive to a few distant rows."""
        return float(np.median(np.abs(self.diag[self.held]))) or 1.0

    def _excess(self) -> Floats:
        """By how much each row outside S violates its margin."""
        excess = self.y[: self.n] * (self.level - self.g[: self.n])
        excess[~self.alive[: self.n]] = -np.inf
        excess[self.active.members] = -np.inf
        return excess

    def _relax(self) -> None:
        """Correct the rounding errors in the margins of S, with a new factor if necessary."""
        for attempt in range(4):
            S = self.active.members
            if not len(S) or self._common(S):
                break
            if attempt == 1:
                self.load(S.copy())
            elif attempt > 1:
                self.recompute_gradient()
            base = self.u.copy()
            self.active.relax(self.g[self.active.members])
            self.update(base)
        if self.active.size:
            self._common(self.active.members)

    def _repair_sum(self) -> None:
        """Subtract the sum of all multipliers, which should be zero, from the largest of S.

        Rounding errors remain from a time when multipliers were larger.
        """
        total, S = float(self.u.sum()), self.active.members
        if not len(S) or abs(total) <= SUM * float(np.abs(self.u).sum()):
            return
        largest = S[np.argmax(np.abs(self.u[S]))]
        if abs(total) > 0.5 * abs(self.u[largest]):
            raise InexactError
        base = self.u.copy()
        self.u[largest] -= total
        self.update(base)

    def _common(self, S: Index) -> bool:
        """Set the level to the common gradient of S; return whether it is common up to rounding."""
        g, tol = self.g[S], self.tol[S]
        sure = g[tol <= 2.0 * tol.min()]  # the rows with the smallest rounding errors
        self.active.level = 0.5 * float(sure.min() + sure.max()) if len(sure) else np.nan
        return bool((np.abs(g - self.active.level) <= 0.05 * tol).all())
