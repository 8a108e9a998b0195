r"""The second-order finish: Newton's method on the free variables.

Pair steps come close to the solution soon and then crawl, the more so the larger C and the tighter the
tolerance. Once it is nearly known which variables are free, the rest is a linear system. On the free
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

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from maxmargin._group import shift_sum
from maxmargin.solvers.state import State

Floats = NDArray[np.float64]
Index = NDArray[np.intp]

# Fewer free variables than this are no matter for matrices; more take too long, or a larger matrix.
_FEWEST, _MOST, _LARGEST_MATRIX = 16, 8192, 1 << 28
# Share of the free variables that may come or go in an iteration when Newton's method begins to make sense.
_CHANGING = 0.015
# Multiplications that a finish by projection may take.
_PRODUCTS = 4_000_000_000
# Rounds in which variables are taken to their bounds.
_ROUNDS = 6
# Floating point operations per second and thread that a factorisation reaches, roughly.
_SPEED = {4: 5e10, 8: 2.5e10}


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

    def settled(self, state: State) -> bool:
        """Whether it is nearly known which variables are free: few come, go or want to."""
        mask = (state.u > state.problem.lo) & (state.u < state.problem.hi)
        k = int(np.count_nonzero(mask))
        changed = np.count_nonzero(mask ^ self._before) if len(self._before) else k
        self._before = mask
        small = k <= _MOST and k * k * state.gram.dtype.itemsize <= _LARGEST_MATRIX
        if k < _FEWEST or not small or changed > _CHANGING * k:
            return False
        return len(self._movable(state)) - k <= _CHANGING * k

    def pays(self, state: State, expected: float, work: float) -> bool:
        """Whether a step costs clearly less than the pair steps are expected to need still.

        After a failure: whether all that was spent here is small beside the `work` so far.
        """
        cost = self._cost(state, int(np.count_nonzero(self._before)))
        return self.spent + cost < 0.1 * work if self.failed else cost < 0.5 * expected

    @staticmethod
    def _cost(state: State, k: int) -> float:
        """Nominal seconds of a step with k free variables."""
        speed = _SPEED[state.gram.dtype.itemsize] * state.gram.threads.n
        return float(1e-3 + (k**3 / 3 + k**2 * state.gram.cost) / speed)

    @staticmethod
    def _movable(state: State) -> Index:
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
        Q = problem.block(free, free, state.gram)
        dtype = Q.dtype
        k = len(free)
        diagonal = np.diagonal(Q)
        Q[np.arange(k), np.arange(k)] += dtype.type(self.ridge) * np.maximum(
            diagonal, np.abs(diagonal).mean()
        )
        factor = scipy.linalg.cholesky(Q.T, lower=False, overwrite_a=True, check_finite=False)

        def solve(b: NDArray[np.floating]) -> Floats:
            b = np.asarray(b, dtype=dtype, order="F")
            return scipy.linalg.cho_solve((factor, False), b, check_finite=False).astype(np.float64)

        E = (problem.group[free][:, None] == np.unique(problem.group[free])).astype(np.float64)
        base = solve(np.column_stack([state.g[free], E]))
        HE = base[:, 1:]
        d = -base[:, 0] + HE @ np.linalg.lstsq(E.T @ HE, E.T @ base[:, 0], rcond=None)[0]
        below, above = problem.lo[free] - state.u[free], problem.hi[free] - state.u[free]
        fixed = np.zeros(0, np.intp)
        to = np.zeros(0)
        HD = np.zeros((k, 0))
        for _ in range(_ROUNDS):
            out = np.setdiff1d(np.flatnonzero((d < below) | (d > above)), fixed)
            if not len(out):
                break
            if len(fixed) + len(out) > max(_FEWEST, k // 8):
                return None
            unit = np.zeros((k, len(out)))
            unit[out, np.arange(len(out))] = 1.0
            HD = np.column_stack([HD, solve(unit)])
            to = np.concatenate([to, np.where(d < below, below, above)[out]])
            fixed = np.concatenate([fixed, out])
            # d = -H (g - [E, I_D] m) with E'd = 0 and d_D = to
            HA = np.column_stack([HE, HD])
            A = np.vstack([E.T @ HA, HA[fixed]])
            b = np.concatenate([E.T @ base[:, 0], to + base[fixed, 0]])
            d = -base[:, 0] + HA @ np.linalg.solve(A, b)
            d[fixed] = to
        else:
            # Still some beyond: as far as the first of them.
            with np.errstate(divide="ignore", invalid="ignore"):
                reach = np.where(d > above, above / d, np.where(d < below, below / d, 1.0))
            d = d * max(0.0, float(np.min(reach, initial=1.0)))
        # Rounding must not leave the sums: what is missing is spread over those with room.
        for g in np.unique(problem.group[free]):
            of = problem.group[free] == g
            d[of] = shift_sum(np.clip(d[of], below[of], above[of]), below[of], above[of], 0.0)
        return d


class FaceFinish(NewtonFinish):
    """Gradient projection in place of the factorisation, see `maxmargin.solvers.rosen`.

    Parameters
    ----------
    conjugate : bool
        Whether directions are conjugate; otherwise the paper's.
    """

    def __init__(self, conjugate: bool) -> None:
        super().__init__()
        self.conjugate = conjugate

    def _direction(self, state: State, free: Index) -> Floats | None:
        from maxmargin.solvers.rosen import on_face

        Q = state.problem.block(free, free, state.gram).astype(np.float64)
        budget = min(4 * len(free), 1 + _PRODUCTS // len(free) ** 2)
        return on_face(state, free, Q, self.conjugate, 0.1 * state.target, budget)[0] - state.u[free]
