r"""Crammer and Singer's multiclass SVM: one sample's K variables at a time, in working sets.

K. Crammer, Y. Singer, "On the Algorithmic Implementation of Multiclass Kernel-based Vector Machines". The
dual has a row :math:`\tau_i` of K variables per sample, which add up to zero and of which only that of the
true class may be positive, up to C. With the gradient :math:`g_{ir} = \sum_j k_{ij}\tau_{jr} -
\delta_{ry_i}` the problem of one sample is

.. math:: \min_\tau \tfrac{A}{2}\|\tau\|^2 + B^\top\tau,\quad \tau_r \le C\delta_{ry_i},\ \sum_r\tau_r = 0,
          \qquad A = k_{ii},\ B = g_i - A\tau_i,

solved exactly: :math:`\tau_r = (\min(\beta, D_r) - B_r)/A` with :math:`D_r = B_r + AC\delta_{ry_i}` and the
:math:`\beta` for which they add up to zero, found by sorting D.

The samples that violate their conditions most form a working set; in it the sample whose worst pair of
variables gains most is solved for, again and again, with the kernel values between its members; then the
gradient of all samples is brought up to date by one matrix product of the rows of those that moved. Where
single samples make no headway (large C, wide kernels), conjugate projection takes a face at a time instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin._compiled.intrinsics import fmax, fmin, raised
from maxmargin._compiled.jit import IN_ORDER, compiled
from maxmargin._compiled.limits import current
from maxmargin._types import Index
from maxmargin.dual import Dual
from maxmargin.solvers import costs
from maxmargin.solvers.base import Solver
from maxmargin.solvers.papers.rosen import Faces, Rosen
from maxmargin.solvers.state import State

# A gradient that nothing exceeds; the least curvature of a sample.
_NEVER, _FLAT = 1e300, 1e-12


@dataclass
class SampleWork:
    """The classes of the samples, and the projection that takes turns with them."""

    #: Class of each sample.
    true: Index
    faces: Faces
    #: Steps of single samples since the last projection.
    since: int = 0


class CrammerSinger(Solver[SampleWork]):
    """Decomposition for `maxmargin.dual.crammer_singer`.

    Parameters
    ----------
    working_set : int
        Samples in a working set; 1 is the paper's algorithm.

    Examples
    --------
    >>> from maxmargin import dual
    >>> from maxmargin.gram import Gram
    >>> from maxmargin.solvers import CrammerSinger
    >>> gram = Gram([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], kernel="rbf", gamma=1.0, dtype="float64")
    >>> solution = CrammerSinger().solve(dual.crammer_singer([0, 1, 2], C=10.0), gram)
    >>> solution.status, bool(abs(solution.u.reshape(3, 3).sum(axis=1)).max() < 1e-12)
    (<Status.SOLVED: 'solved'>, True)
    """

    name = "crammer-singer"
    about = "Crammer, Singer 2001: exact sub-problems of single samples, in working sets"

    def __init__(self, working_set: int = costs.SAMPLES) -> None:
        if working_set < 1:
            raise ValueError(f"working_set must be at least 1, got {working_set!r}.")
        self.working_set = int(working_set)
        self._faces = Rosen("conjugate")

    def __repr__(self) -> str:
        return f"CrammerSinger(working_set={self.working_set})"

    def accepts(self, problem: Dual) -> bool:
        """Only the dual of Crammer and Singer."""
        return problem.per_sample

    def begin(self, state: State) -> SampleWork:
        """The variables of a sample, one per class, are adjacent."""
        k = len(state.problem.coupling)
        true = np.argmax(state.problem.hi.reshape(-1, k) > 0, axis=1)
        return SampleWork(true, self._faces.begin(state))

    def advance(self, state: State, work: SampleWork) -> None:
        """One working set; or a face by conjugate projection, where single samples make no headway."""
        problem, gram = state.problem, state.gram
        k = len(problem.coupling)
        if work.since > costs.SAMPLES_SLOW * np.count_nonzero(state.u) and self.working_set > 1:
            work.since = 0
            self._faces.advance(state, work.faces)
            return
        tau, g = state.u.reshape(-1, k), state.g.reshape(-1, k)
        rows = problem.row[::k]
        true = work.true
        hi = problem.hi.reshape(-1, k)
        violation = state.most - state.least
        size = min(self.working_set, len(tau))
        some = np.argpartition(-violation, size - 1)[:size]
        some = np.sort(some[violation[some] > 0.5 * max(state.target, 0.0)])
        if not len(some):
            state.stuck = True
            return
        K = gram.rows(rows[some])
        old = tau[some]
        new, inner = old.copy(), g[some]
        tol = max(0.5 * state.target, costs.SAMPLES_ENOUGH * float(violation.max()))
        steps = _inner(
            np.ascontiguousarray(K[:, rows[some]], dtype=np.float64), new, inner, hi[some], true[some], tol,
            min(costs.SAMPLES_STEPS * len(some), state.left), current().flag,
        )  # fmt: skip
        change = new - old
        tau[some] = new
        moved = np.flatnonzero(change.any(axis=1))
        part = K[moved] if len(moved) < len(some) else K
        with gram.threads.blas():
            z = part.T @ change[moved].astype(K.dtype)
        g += z if len(z) == len(g) else z[rows]
        state.n_iter += max(1, int(steps))
        work.since += int(steps)
        state.stuck = not len(moved)


@compiled()
def _best(A, B, true, C, out):
    """The exact solution of one sample's problem."""
    k = len(B)
    D = B.copy()
    D[true] += A * C
    order = np.argsort(D)
    left = B.sum()
    beta = 0.0
    for t in range(k):
        beta = left / (k - t)
        if beta <= D[order[t]]:
            break
        left -= D[order[t]]
    total = 0.0
    for r in range(k):
        out[r] = (min(beta, D[r]) - B[r]) / A
        # On its bound exactly, where it belongs there.
        if D[r] <= beta:
            out[r] = C if r == true else 0.0
        total += out[r]
    # What rounding left of the sum goes to the largest that is not on a bound.
    free = -1
    for r in range(k):
        if D[r] > beta and (free < 0 or abs(out[r]) > abs(out[free])):
            free = r
    if free >= 0:
        out[free] -= total


@compiled(fastmath=IN_ORDER)
def _range(g, wall):
    """The least gradient that may rise, the wall being where it may not, and the largest of all."""
    least, most = _NEVER, -_NEVER
    for r in range(len(g)):
        least = fmin(least, g[r] + wall[r])
        most = fmax(most, g[r])
    return least, most


@compiled(fastmath=IN_ORDER)
def _add(g, x, change):
    for r in range(len(g)):
        g[r] += x * change[r]


@compiled()
def _gain(least, most, g, t, hi, wall, A, tol):
    """Gain of a step of a sample's worst pair; 0 if it violates its conditions by no more than `tol`."""
    v = most - least
    if not v > tol:
        return 0.0
    room = 0.0
    for r in range(len(g)):
        if wall[r] == 0.0 and g[r] == least:
            room = max(room, hi[r] - t[r])
    step = min(v / (2.0 * A), room)
    return step * (v - A * step)


@compiled()
def _inner(K, tau, g, hi, true, tol, most_steps, flag):
    """Solve for the sample that gains most until none violates by more than `tol`; the steps."""
    q, k = tau.shape
    gain, wall = np.empty(q), np.empty((q, k))
    new, change = np.empty(k), np.empty(k)
    for i in range(q):
        for r in range(k):
            wall[i, r] = 0.0 if tau[i, r] < hi[i, r] else _NEVER
        least, most = _range(g[i], wall[i])
        gain[i] = _gain(least, most, g[i], tau[i], hi[i], wall[i], max(K[i, i], _FLAT), tol)
    steps = 0
    while steps < most_steps and not raised(flag):
        i = int(np.argmax(gain))
        if not gain[i] > 0:
            break
        A = max(K[i, i], _FLAT)
        _best(A, g[i] - A * tau[i], true[i], hi[i, true[i]], new)
        moved = False
        for r in range(k):
            change[r] = new[r] - tau[i, r]
            moved = moved or change[r] != 0.0
            tau[i, r] = new[r]
            wall[i, r] = 0.0 if new[r] < hi[i, r] else _NEVER
        steps += 1
        if not moved:
            gain[i] = 0.0  # as good as rounding allows
            continue
        for j in range(q):
            _add(g[j], K[i, j], change)
            least, most = _range(g[j], wall[j])
            gain[j] = _gain(least, most, g[j], tau[j], hi[j], wall[j], max(K[j, j], _FLAT), tol)
    return steps
