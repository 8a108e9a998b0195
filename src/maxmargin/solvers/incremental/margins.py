"""Exact steps until every margin is right: learn the worst violator, unlearn rows that are removed."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin import dual
from maxmargin._types import Floats, Index, Mask
from maxmargin.dual import Dual
from maxmargin.gram.gram import Gram
from maxmargin.kernels.kernel import Kernel
from maxmargin.solvers import costs
from maxmargin.solvers.batch.batch import Batch
from maxmargin.solvers.incremental.exactness import ROUNDING, SUM, InexactError, sizes
from maxmargin.solvers.incremental.rows import StoredRows
from maxmargin.solvers.incremental.samples import Samples
from maxmargin.solvers.papers._active_set import ENDLESS, ActiveSet
from maxmargin.solvers.solution import Solution, Status
from maxmargin.solvers.state import Stop

# Violation of a margin that counts as none, besides the part that grows with the terms of the margin.
_TOL = 1e-10
# Tolerance of the solver before exact steps.
APPROACHED = 1e-6
# Distance from a bound that counts as none, relative to the bound.
AT_BOUND = 1e-12


class Margins(StoredRows):
    """Rows whose margin is exactly 1, or that are on the tube, if the multiplier is between its bounds.

    Attributes
    ----------
    active : ActiveSet
        The rows S between their bounds with their factor; empty where there are none, or no factor was found.
    sound : bool
        False during a change, and after an interrupt.
    """

    def __init__(self, samples: Samples, *, factor_bytes: int, epsilon: float | None = None) -> None:
        super().__init__(samples, epsilon)
        self.active = ActiveSet(self.u, self.lo, self.hi, 1.0, factor_bytes)
        self.sound = True

    @property
    def level(self) -> float:
        """The decision function is ``K u - level``."""
        if self.single:
            held = self.held
            return -float(self.y[held[0]]) if len(held) else 0.0  # of one class: w = 0, b = its side
        return self.active.level

    @property
    def single(self) -> bool:
        """Whether there are rows of one class only, or none."""
        y = self.y[: self.n][self.alive[: self.n]]
        return not len(y) or (self.epsilon is None and bool((y == y[0]).all()))

    @property
    def boxed(self) -> bool:
        """Whether multipliers have upper bounds: S may be empty, and its matrix singular."""
        return bool(np.isfinite(self.bound[: self.n]).any())

    @property
    def tol(self) -> Floats:
        """For each row the violation of its margin that counts as none."""
        tol = ROUNDING * sizes(self.diag[: self.n], self.u[: self.n])
        if self.epsilon is None:
            return _TOL + tol
        y = self.y[self.held]
        return _TOL * (float(np.ptp(y)) or 1.0) + tol + ROUNDING * float(np.abs(y).max())

    def rebind(self) -> None:
        """Let the active set use the present vectors."""
        self.active.u, self.active.lo, self.active.hi = self.u, self.lo, self.hi

    def compact(self) -> None:
        """Release the places of rows that are no longer held."""
        self.active.rename(np.cumsum(self.alive) - 1)
        super().compact()

    # -- unlearning ------------------------------------------------------------------------------------

    def remove(self, k: int) -> None:
        """Move the multiplier of a row to zero, with the margins of S kept; the row is no longer held."""
        if k in self.active.members:
            self.active.drop(k)
        for _ in range(self.n + 1):
            if not self.u[k]:
                break
            base = self.u.copy()
            if not self.active.size and not self._seed_partner(k):
                break
            S = self.active.members
            self.active.clear(k, self.block(S, np.array([k]))[:, 0], float(self.diag[k]))
            self.update(base)
        if self.u[k]:  # nobody could follow
            base = self.u.copy()
            self.u[k] = 0.0
            self.update(base)
        self.alive[k] = False
        self.lo[k] = self.hi[k] = 0.0

    def _seed_partner(self, k: int) -> bool:
        """Begin S with the row that is best to take over the multiplier of k; False if there is none."""
        up = self.u[k] > 0
        g, can = self._rising() if up else self._falling()
        can[k] = False
        if not can.any():
            return False
        j = int(np.argmin(np.where(can, g, np.inf)) if up else np.argmax(np.where(can, g, -np.inf)))
        self._orient(j, up)
        self.active.sigma = self._typical()
        self.active.seed(j, float(self.diag[j]), float(self.g[j]))
        return True

    # -- learning --------------------------------------------------------------------------------------

    def learn_violators(self) -> None:
        """Learn the worst violator until every margin is right."""
        if self.single:
            self.active.size = 0
            self.u[:] = 0.0
            self.g[: self.n] = -self.p[: self.n]
            self.sound = True
            return
        lost = not self.active.size and len(self._free())
        if lost or np.count_nonzero(self._excess()[0] > self.tol) > costs.EXACT_FEW:
            self.approach()
            self.load_free()
        for _ in range(5 * len(self.held) + 200):
            if self.active.size:
                self._repair_sum()
                self._relax()
            if not self.active.size and not self._begin():
                self.sound = True
                return
            excess, up = self._excess()
            ratio = excess / self.tol
            c = int(np.argmax(ratio))
            if not ratio[c] > 1.0:
                if self._leave_bounds():
                    self.sound = True
                    return
                continue
            self._orient(c, bool(up[c]))
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
        """Factor the matrix of S; of variables with a bound only as many as are independent."""
        H = self.block(S, S)
        H[np.arange(len(S)), np.arange(len(S))] += self.ridge[S]
        if self.boxed:
            self.active.load_independent(S, H)
        else:
            self.active.load(S, H)

    def load_free(self) -> None:
        """S from all rows between their bounds."""
        self.load(self._free())

    def _free(self) -> Index:
        u = self.u[: self.n]
        return np.flatnonzero((u > self.lo[: self.n]) & (u < self.hi[: self.n]))

    def problem(self) -> Dual:
        """The dual problem of the rows that are held."""
        held = self.held
        y, ridge, bound = self.y[held], self.ridge[held], self.bound[held]
        if self.epsilon is None:
            return dual.c_svc(y, bounds=bound) if self.boxed else dual.squared_c_svc(y, ridge)
        if self.boxed:
            return dual.epsilon_svr(y, self.epsilon, bounds=bound)
        return dual.squared_epsilon_svr(y, self.epsilon, ridge=ridge)

    def approach(self, tol: float = APPROACHED) -> Solution:
        """Set the multipliers to a solution of `Batch`, which starts from the present ones; S is empty."""
        held, samples = self.held, self.samples
        places = self.at[held]
        if samples.K is not None:
            K = samples.K[np.ix_(places, places)]
            gram = Gram(K, Kernel("precomputed"), n_jobs=samples.n_jobs)
        else:
            gram = Gram(
                samples.X,
                samples.kernel,
                index=places,
                dtype=np.float64,
                n_jobs=samples.n_jobs,
                cache_bytes=samples.most_bytes,
            )
        stop = Stop(tol * self._unit(), max_iter=costs.EXACT_APPROACH * len(held))
        solution = Batch().solve(self.problem(), gram, warm=self.paired(self.u[held]), stop=stop)
        if solution.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        self.adopt(solution)
        return solution

    def adopt(self, solution: Solution) -> None:
        """Set the multipliers to a solution of `problem`; S is empty."""
        held = self.held
        u = solution.u if self.epsilon is None else solution.u.reshape(2, -1).sum(axis=0)
        self.u[:] = 0.0
        self.u[held] = u
        if self.epsilon is not None:
            self.turn(held, np.where(u < 0, -1.0, 1.0))
        self.recompute_gradient()
        self.active.sigma = self._typical()
        self.active.size, self.active.level = 0, float(solution.offset.mean())

    def paired(self, u: Floats) -> Floats:
        """Multipliers as the variables of `problem`: in regression the positive parts, then the negative."""
        return u if self.epsilon is None else np.concatenate([np.maximum(u, 0.0), np.minimum(u, 0.0)])

    def _unit(self) -> float:
        """The scale of the values: 1, in regression that of the targets."""
        return 1.0 if self.epsilon is None else min(1.0, float(np.ptp(self.y[self.held])) or 1.0)

    def _begin(self) -> bool:
        """Start S with the most violating pair; False if there is none, and then set the level."""
        rising, rises = self._rising()
        falling, falls = self._falling()
        rising, falling = np.where(rises, rising, np.inf), np.where(falls, falling, -np.inf)
        i, j = int(np.argmin(rising)), int(np.argmax(falling))
        least, most = float(rising[i]), float(falling[j])
        if not (np.isfinite(least) or np.isfinite(most)):
            raise InexactError
        if not most - least > self.tol[i] + self.tol[j]:
            # The middle of the interval that the KKT conditions allow, or its end if it has only one.
            ends = [end for end in (least, most) if np.isfinite(end)]
            self.active.level = float(np.mean(ends))
            return False
        self.active.sigma = self._typical()
        self._orient(i, True)
        self._orient(j, False)
        base, g = self.u.copy(), self.g
        self.active.seed(j, float(self.diag[j]), float(g[j]))
        column = self.block(np.array([j]), np.array([i]))[:, 0]
        outcome, _, _ = self.active.learn(i, column, float(self.diag[i]), float(g[i] - g[j]))
        self.update(base)
        if outcome == ENDLESS:
            raise InexactError
        return True

    def _typical(self) -> float:
        """A typical kernel value to shift the matrix by, insensitive to a few distant rows."""
        return float(np.median(np.abs(self.diag[self.held]))) or 1.0

    def _rising(self) -> tuple[Floats, Mask]:
        """The gradient of each row where its multiplier rises, and which ones may."""
        n = self.n
        g, may = self.g[:n], self.alive[:n] & (self.u[:n] < self.hi[:n])
        if self.epsilon is not None:
            turned = (self.u[:n] == 0) & (self.side[:n] < 0) & self.alive[:n]
            g, may = g + np.where(turned, 2.0 * self.epsilon, 0.0), may | turned
        return g, may

    def _falling(self) -> tuple[Floats, Mask]:
        """The gradient of each row where its multiplier falls, and which ones may."""
        n = self.n
        g, may = self.g[:n], self.alive[:n] & (self.u[:n] > self.lo[:n])
        if self.epsilon is not None:
            turned = (self.u[:n] == 0) & (self.side[:n] > 0) & self.alive[:n]
            g, may = g - np.where(turned, 2.0 * self.epsilon, 0.0), may | turned
        return g, may

    def _orient(self, k: int, up: bool) -> None:
        """Let the multiplier of k rise, or fall: in regression a zero may change its side."""
        if self.epsilon is None or self.u[k] or (self.side[k] > 0) == up:
            return
        before = float(self.p[k])
        self.turn(np.array([k]), np.array([1.0 if up else -1.0]))
        self.g[k] -= self.p[k] - before

    def _excess(self) -> tuple[Floats, Mask]:
        """By how much each row outside S violates its margin, and whether its multiplier should rise."""
        level = self.active.level
        (rising, rises), (falling, falls) = self._rising(), self._falling()
        short, over = np.where(rises, level - rising, -np.inf), np.where(falls, falling - level, -np.inf)
        excess = np.maximum(short, over)
        excess[self.active.members] = -np.inf
        return excess, short > over

    def violation(self) -> float:
        """By how much the KKT conditions are violated, S included."""
        (rising, rises), (falling, falls) = self._rising(), self._falling()
        level = self.level
        short, over = np.where(rises, level - rising, 0.0), np.where(falls, falling - level, 0.0)
        return float(max(short.max(initial=0.0), over.max(initial=0.0)))

    def limits_level(self) -> Mask:
        """The rows at an end of the interval of possible levels; none where S determines the level."""
        if self.active.size or self.single:
            return np.zeros(self.n, np.bool_)
        (rising, rises), (falling, falls) = self._rising(), self._falling()
        rising, falling = np.where(rises, rising, np.inf), np.where(falls, falling, -np.inf)
        tol = self.tol
        return (rising <= rising.min() + tol) | (falling >= falling.max() - tol)

    def _leave_bounds(self) -> bool:
        """Take members out of S that are at a bound but for rounding; whether there were none."""
        S = self.active.members
        room = AT_BOUND * self.bound[S]
        low = self.boxed & (self.u[S] - self.lo[S] <= room)
        high = self.boxed & (self.hi[S] - self.u[S] <= room)
        at = S[low | high]
        if not len(at):
            return True
        base = self.u.copy()
        self.u[S[low]], self.u[S[high]] = self.lo[S[low]], self.hi[S[high]]
        for k in at:
            self.active.drop(int(k))
        self.update(base)
        return False

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
        """Subtract the sum of all multipliers, which should be zero, from one of S.

        Rounding errors remain from a time when multipliers were larger.
        """
        total, S = float(self.u.sum()), self.active.members
        if not len(S) or abs(total) <= SUM * float(np.abs(self.u).sum()):
            return
        room = np.minimum(self.hi[S] - self.u[S], self.u[S] - self.lo[S])
        k = S[np.argmax(room)]
        if abs(total) > 0.5 * float(room.max()):
            if not (sizes(self.diag[: self.n], self.u[: self.n]) <= 0.01 * self.tol).all():
                raise InexactError
            # Nothing but rounding errors: all targets are in the tube.
            self.u[:] = 0.0
            self.active.size = 0
            self.recompute_gradient()
            return
        base = self.u.copy()
        self.u[k] -= total
        self.update(base)

    def _common(self, S: Index) -> bool:
        """Set the level to the common gradient of S; return whether it is common up to rounding."""
        g, tol = self.g[S], self.tol[S]
        sure = g[tol <= 2.0 * tol.min()]  # the rows with the smallest rounding errors
        self.active.level = 0.5 * float(sure.min() + sure.max()) if len(sure) else np.nan
        return bool((np.abs(g - self.active.level) <= 0.05 * tol).all())

    # -- the state before a change ---------------------------------------------------------------------

    def snapshot(self) -> tuple[Any, ...]:
        """The state, for `restore`, as long as no rows are added."""
        names = ("alive", "u", "g", "side", "p", "lo", "hi")
        return {k: getattr(self, k).copy() for k in names}, self.active.copy(), self.sound

    def restore(self, state: tuple[Any, ...]) -> None:
        """Return to the state of `snapshot`."""
        vectors, self.active, self.sound = state
        self.__dict__.update(vectors)
        self.rebind()
