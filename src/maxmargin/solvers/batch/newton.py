r"""The second-order finish: Newton's method on the free variables.

Pair steps come close to the solution soon and then converge slowly, the more so the larger C and the tighter
the tolerance. Once it is nearly known which variables are free, the rest is a linear system. On the free
variables F, with one multiplier per group,

.. math:: d_F = -Q_{FF}^{-1} (g_F - E \lambda), \qquad E^\top d_F = 0.

Variables at a bound that should leave it are counted among F. Variables that the step would carry past a
bound are taken to that bound exactly and the others solved for again, with the factor that is there:
:math:`d_D = c` adds one multiplier per variable of D, and the system for them is the block of
:math:`Q_{FF}^{-1}` that belongs to D. The step is then taken as far as it lowers the objective. Back in the
pair steps, new violators are let in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.sums import gather
from maxmargin._types import Floats, Index
from maxmargin.dual._group import shift_sum
from maxmargin.solvers import _cholesky as cholesky
from maxmargin.solvers import costs
from maxmargin.solvers._face import on_face
from maxmargin.solvers.state import State


class NewtonFinish:
    """Decides when a Newton step pays, and takes it.

    Parameters
    ----------
    ridge : float
        What is added to the diagonal, relative to it, so that the factorisation succeeds.
    """

    def __init__(self, ridge: float = 1e-6) -> None:
        self.ridge = ridge
        self._before = np.zeros(0, np.bool_)
        self.spent = 0.0
        self.failed = 0

    def free_set_stable(self, state: State) -> bool:
        """Whether it is nearly known which variables are free: few come, go or want to."""
        mask = (state.u > state.problem.lo) & (state.u < state.problem.hi)
        k = int(np.count_nonzero(mask))
        changed = np.count_nonzero(mask ^ self._before) if len(self._before) else k
        self._before = mask
        small = k <= costs.NEWTON_MOST and k * k * state.gram.dtype.itemsize <= costs.NEWTON_BYTES
        if k < costs.NEWTON_FEWEST or not small or changed > costs.NEWTON_CHANGING * k:
            return False
        return len(self._movable(state)) - k <= costs.NEWTON_CHANGING * k

    def pays(self, state: State, expected: float, work: float) -> bool:
        """Whether a step costs clearly less than the pair steps are expected to need still.

        After a failure: whether all that was spent here is small beside the `work` so far.
        """
        cost = self._cost(state, int(np.count_nonzero(self._before)))
        if self.failed:
            return self.spent + cost < costs.NEWTON_RETRY * work
        return cost < costs.NEWTON_PAYS * expected

    @staticmethod
    def _cost(state: State, k: int) -> float:
        """Nominal seconds of a step with k free variables."""
        speed = costs.CHOLESKY_SPEED[state.gram.dtype.itemsize] * state.gram.threads.n
        return float(costs.NEWTON_STEP + (k**3 / 3 + k**2 * state.gram.cost) / speed)

    def _movable(self, state: State) -> Index:
        """The free variables, and those at a bound that should leave it."""
        problem, u, g = state.problem, state.u, state.g
        level = problem.offset(u, g)[problem.group]
        rising, falling = u < problem.hi, u > problem.lo
        slack = 0.5 * state.target
        violators = (rising & (g < level - slack)) | (falling & (g > level + slack))
        return np.flatnonzero((rising & falling) | violators)

    def step(self, state: State, product: Callable[[Index, Floats], Floats]) -> bool:
        """Take a step, if it lowers the objective; ``product(idx, d)`` gives Q d for all variables."""
        free = self._movable(state)
        try:
            with state.gram.threads.blas():
                d = self._direction(state, free)
        except np.linalg.LinAlgError:  # not positive definite, or nearly so
            d = None
        better = d is not None and float(state.g[free] @ d) < 0
        if better and d is not None:
            change = product(free, d)
            # Along d the objective is a parabola: to its lowest point, if that comes before the end.
            slope, curvature = float(state.g[free] @ d), float(d @ change[free])
            length = min(1.0, -slope / curvature) if curvature > 0 else 1.0
            lo, hi = state.problem.lo[free], state.problem.hi[free]
            state.u[free] = np.clip(state.u[free] + length * d, lo, hi)
            state.g += length * change
        self.failed += not better
        self.spent += self._cost(state, len(free))
        return better

    def _direction(self, state: State, free: Index) -> Floats | None:
        problem = state.problem
        E = (problem.group[free][:, None] == np.unique(problem.group[free])).astype(np.float64)
        below, above = problem.lo[free] - state.u[free], problem.hi[free] - state.u[free]
        d = self._bounded(state, free, E, below, above)
        if d is None:
            return None
        # Rounding must not leave the sums: what is missing is spread over those with room.
        for of in E.T > 0:
            d[of] = shift_sum(np.clip(d[of], below[of], above[of]), below[of], above[of], 0.0)
        return d

    def _bounded(self, state: State, free: Index, E: Floats, below: Floats, above: Floats) -> Floats | None:
        """The Newton step in a box; None where more than a few variables meet their bounds."""
        Q = state.problem.block(free, free, state.gram)
        d, beyond = _newton(
            self._ridged(Q), state.g[free], E, np.zeros(E.shape[1]), below, above, costs.NEWTON_SHARE
        )
        return None if len(beyond) else d

    def _ridged(self, Q: NDArray[Any]) -> NDArray[Any]:
        """Q with the ridge that makes it definite, in place."""
        diagonal = np.diagonal(Q)
        ridge = Q.dtype.type(self.ridge) * np.maximum(diagonal, np.abs(diagonal).mean(dtype=np.float64))
        Q[np.arange(len(Q)), np.arange(len(Q))] += ridge
        return Q


def _newton(
    Q: NDArray[Any], g: Floats, E: Floats, sums: Floats, below: Floats, above: Floats, share: int
) -> tuple[Floats, Index]:
    """``-Q^-1 (g - E m)`` with ``E'd = sums``, a few variables on the bounds that they would pass.

    Where more than one in `share` would pass theirs, these are returned: they need another matrix. Q is lost.
    """
    k, dtype = len(g), Q.dtype
    factor = cholesky.factor(Q)

    def solve(b: NDArray[np.floating]) -> Floats:
        return cholesky.solve(factor, np.asarray(b, dtype=dtype, order="F")).astype(np.float64)

    base = solve(np.column_stack([g, E]))
    if not np.isfinite(base).all():
        raise np.linalg.LinAlgError("The Newton step is not finite.")
    HE = base[:, 1:]
    d = -base[:, 0] + HE @ np.linalg.lstsq(E.T @ HE, sums + E.T @ base[:, 0], rcond=None)[0]
    fixed = np.zeros(0, np.intp)
    to = np.zeros(0)
    HD = np.zeros((k, 0))
    for _ in range(costs.NEWTON_ROUNDS):
        out = np.setdiff1d(np.flatnonzero((d < below) | (d > above)), fixed)
        if not len(out):
            break
        if len(fixed) + len(out) > max(costs.NEWTON_FEWEST, k // share):
            return d, out
        unit = np.zeros((k, len(out)))
        unit[out, np.arange(len(out))] = 1.0
        HD = np.column_stack([HD, solve(unit)])
        to = np.concatenate([to, np.where(d < below, below, above)[out]])
        fixed = np.concatenate([fixed, out])
        # d = -H (g - [E, I_D] m) with E'd = sums and d_D = to
        HA = np.column_stack([HE, HD])
        A = np.vstack([E.T @ HA, HA[fixed]])
        b = np.concatenate([sums + E.T @ base[:, 0], to + base[fixed, 0]])
        d = -base[:, 0] + HA @ np.linalg.solve(A, b)
        d[fixed] = to
    else:
        # Still some beyond: as far as the first of them.
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(d > above, above / d, np.where(d < below, below / d, 1.0))
        d = d * max(0.0, float(np.min(reach, initial=1.0)))
    return d, np.zeros(0, np.intp)


class BlockStep(NewtonFinish):
    """Newton steps from the beginning: S and the worst violators, at most as many as S has members.

    Many variables may meet their bounds: they are put there, and the others solved for again.
    """

    #: Whether the last step took all violators.
    all_in = False

    def take(self, state: State) -> bool:
        """One step; False if it does not lower the objective."""

        def product(idx: Index, d: Floats) -> Floats:
            change = np.zeros(state.problem.m)
            state.problem.update(change, idx, d, state.gram)
            return change

        return self.step(state, product)

    def _movable(self, state: State) -> Index:
        problem, u, g = state.problem, state.u, state.g
        rises, falls = u < problem.hi, u > problem.lo
        free = rises & falls
        level = problem.offset(u, g)[problem.group]
        excess = np.where(rises, level - g, -np.inf)
        excess = np.where(falls, np.maximum(excess, g - level), excess)
        violators = np.flatnonzero(~free & (excess > 0.25 * state.target))
        most = max(costs.BLOCK_FIRST, int(np.count_nonzero(free)))
        self.all_in = len(violators) <= most
        if not self.all_in:
            violators = violators[np.argpartition(-excess[violators], most)[:most]]
        return np.sort(np.concatenate([np.flatnonzero(free), violators]))

    def _matrix(self, state: State, some: Index, others: Index | None = None) -> NDArray[Any]:
        """The block of Q for these variables; most will be members of S, whose whole rows are wanted."""
        problem, gram = state.problem, state.gram
        # A rough direction will do: the gradient is exact, so that the next step corrects it.
        dtype = np.float32 if state.tol >= costs.ROUGH else np.float64
        same = others is None
        others = some if others is None else others
        if not gram.holds_all:
            return problem.block(some, some if same else others, gram).astype(dtype, copy=False)
        gram.ensure(problem.row[some])
        gram.count(calls=len(some) * len(others))
        Q = np.empty((len(some), len(others)), dtype)
        slots, columns = gram.slot[problem.row[some]], gram.columns[problem.row[others]]
        gram.threads.run(
            lambda a, b: gather(gram.table, slots[a:b], columns, problem.shift, Q[a:b]),
            gram.threads.split(len(some), 256),
        )
        if same:
            Q[np.arange(len(some)), np.arange(len(some))] = problem.diag(gram, some)
        return Q

    def _bounded(self, state: State, free: Index, E: Floats, below: Floats, above: Floats) -> Floats | None:
        d, rest = np.zeros(len(free)), np.arange(len(free))
        for attempt in range(costs.BLOCK_FACTORS):
            others = np.setdiff1d(np.arange(len(free)), rest)
            moved = others[d[others] != 0]
            right = state.g[free[rest]]
            if len(moved):
                right = right + self._matrix(state, free[rest], free[moved]) @ d[moved]
            Q = self._ridged(self._matrix(state, free[rest]))
            sums = -E[others].T @ d[others]
            d[rest], beyond = _newton(Q, right, E[rest], sums, below[rest], above[rest], costs.BLOCK_SHARE)
            d = np.clip(d, below, above)
            # While more violators wait than can be let in, any descent is good enough.
            descends = float(state.g[free] @ d) < 0
            if not len(beyond) or (descends and (attempt > 0 or not self.all_in)):
                break
            rest = np.delete(rest, beyond)
            if not len(rest):
                break
        return d


class FaceFinish(NewtonFinish):
    """Gradient projection in place of the factorisation, see `maxmargin.solvers.papers.rosen`.

    Parameters
    ----------
    conjugate : bool
        Whether directions are conjugate; otherwise the paper's.
    """

    def __init__(self, conjugate: bool) -> None:
        super().__init__()
        self.conjugate = conjugate

    def _direction(self, state: State, free: Index) -> Floats | None:

        Q = state.problem.block(free, free, state.gram).astype(np.float64)
        budget = min(costs.PROJECTION_STEPS * len(free), 1 + costs.PROJECTION_MOST // len(free) ** 2)
        return on_face(state, free, Q, self.conjugate, 0.1 * state.target, budget)[0] - state.u[free]
