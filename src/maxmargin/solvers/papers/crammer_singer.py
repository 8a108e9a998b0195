r"""Crammer and Singer's multiclass SVM: one sample's K variables at a time, in turn with whole faces.

K. Crammer, Y. Singer, "On the Algorithmic Implementation of Multiclass Kernel-based Vector Machines". The
dual has a row :math:`\tau_i` of K variables per sample, which add up to zero and of which only that of the
true class may be positive, up to C. With the gradient :math:`g_{ir} = \sum_j k_{ij}\tau_{jr} -
\delta_{ry_i}` the problem of one sample is

.. math:: \min_\tau \tfrac{A}{2}\|\tau\|^2 + B^\top\tau,\quad \tau_r \le C\delta_{ry_i},\ \sum_r\tau_r = 0,
          \qquad A = k_{ii},\ B = g_i - A\tau_i,

solved exactly: :math:`\tau_r = (\min(\beta, D_r) - B_r)/A` with :math:`D_r = B_r + AC\delta_{ry_i}` and the
:math:`\beta` for which they add up to zero, found by sorting D.

**Working sets.** The support vectors and the samples that violate their conditions most form a working set,
whose kernel values are kept as a matrix. In it samples are solved for in a random order, again and again;
then the gradient of all samples is brought up to date by matrix products.

**Faces.** Single samples come close to the solution soon, but make no headway where C is large or the kernel
wide. Then conjugate gradients minimise over all variables of the set that are free or should be
(`maxmargin.solvers._face`), each sample's sum being kept by a projection. On such a face the matrix has a
block per class, the kernel values between its samples whose variable of this class is free: for K classes
a product costs about K times less than with a matrix for all variables.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.limits import call, check, current
from maxmargin._compiled.sums import add_rows, gather
from maxmargin._types import Floats, Index, Rows
from maxmargin.dual import Dual
from maxmargin.solvers import costs
from maxmargin.solvers._face import Diagonal, minimise
from maxmargin.solvers.base import Solver
from maxmargin.solvers.papers._sample_steps import add_changes, sample_steps
from maxmargin.solvers.state import State


@dataclass
class SampleWork:
    """The classes of the samples, and the kernel values of the working set."""

    #: Class of each sample.
    true: Index
    #: Members of the last working set, ascending, and the kernel values between them.
    members: Index = field(default_factory=lambda: np.zeros(0, np.intp))
    K: NDArray[Any] = field(default_factory=lambda: np.zeros((0, 0)))
    #: Whether few samples have joined it.
    stable: bool = False


@dataclass
class _Members:
    """The working set: variables and gradients with a row per class, bounds and classes of its samples."""

    K: NDArray[Any]
    tau: Floats
    g: Floats
    C: Floats
    true: Index

    def steps(self, tol: float, passes: int, most: int) -> tuple[int, float]:
        """Steps of single samples, and the largest violation that they met."""
        k, q = self.g.shape
        steps, worst = call(
            sample_steps, self.K, self.tau, self.g, self.C, self.true, tol, passes, most, current().flag,
            work=float(passes) * q * k * q,
        )  # fmt: skip
        return int(steps), float(worst)

    def face(self, tol: float, most: int) -> tuple[int, bool]:
        """Conjugate gradients over all that is free or should be; the steps, and whether any moved."""
        chosen = self._chosen(tol)
        label, sample = np.nonzero(chosen)
        ranges = np.searchsorted(label, np.arange(len(self.g) + 1))
        if not len(sample):
            return 0, False
        before, g = self.tau[chosen], self.g[chosen]
        u = before.copy()
        hi = np.where(label == self.true[sample], self.C[sample], 0.0)
        groups, group = np.unique(sample, return_inverse=True)
        Q = self._blocks(sample, ranges)
        steps, _ = call(
            minimise, Q, g, u, np.full(len(u), -np.inf), hi, group, len(groups), True, tol,
            min(most, costs.SAMPLES_ON_FACE), np.zeros(1, np.int64), current().flag,
            work=float(costs.SAMPLES_ON_FACE) * len(Q.values),
        )  # fmt: skip
        self.tau[chosen] = u
        self._balance(np.unique(sample))
        change = self.tau[chosen] - before
        add_changes(self.K, sample, ranges, change, self.g)
        return int(steps), bool(change.any())

    def _balance(self, samples: Index) -> None:
        """Let sums of the variables of a sample be zero in spite of rounding."""
        tau = self.tau[:, samples]
        free = np.where(tau < 0.0, -tau, 0.0)
        largest = np.argmax(free, axis=0), np.arange(len(samples))
        tau[largest] = np.minimum(tau[largest] - tau.sum(axis=0), 0.0)
        self.tau[:, samples] = tau

    def _chosen(self, tol: float) -> NDArray[np.bool_]:
        """Variables that are free, or at a bound that they should leave, of samples that can move at all."""
        hi = np.zeros_like(self.tau)
        hi[self.true, np.arange(len(self.true))] = self.C
        rises = self.tau < hi
        least = np.where(rises, self.g, np.inf).min(axis=0)
        most = self.g.max(axis=0)
        # At zero the variable of the true class is inside its bounds, but the others of its sample are not.
        free = rises & ((self.tau != 0.0) | (self.g < most - 0.5 * tol))
        chosen = free | (~rises & (self.g > least + 0.5 * tol))
        chosen &= np.count_nonzero(chosen, axis=0) > 1
        # As many samples as the memory of the blocks allows.
        while (size := np.count_nonzero(chosen, axis=1)) @ size > costs.SAMPLES_VALUES:
            some = np.flatnonzero(chosen.any(axis=0))
            chosen[:, some[np.argsort(most[some] - least[some])[: len(some) // 4 + 1]]] = False
        return chosen

    def _blocks(self, sample: Index, ranges: Index) -> Diagonal:
        """The kernel values between the samples of each class."""
        sizes = np.diff(ranges)
        starts = np.concatenate([[0], np.cumsum(sizes**2)])
        values = np.empty(starts[-1], self.K.dtype)
        for r, n in enumerate(sizes):
            of = sample[ranges[r] : ranges[r + 1]]
            gather(self.K, of, of, 0.0, values[starts[r] : starts[r + 1]].reshape(n, n))
        return Diagonal(values, ranges)


class CrammerSinger(Solver[SampleWork]):
    """Decomposition for `maxmargin.dual.crammer_singer`.

    Parameters
    ----------
    working_set : int, optional
        Samples in a working set, the worst violators; 1 is the paper's algorithm. By default all support
        vectors and as many violators, with conjugate gradients where single samples converge slowly.

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
    about = "Crammer, Singer 2001: exact sub-problems of single samples, in turn with faces"

    def __init__(self, working_set: int | None = None) -> None:
        if working_set is not None and working_set < 1:
            raise ValueError(f"working_set must be at least 1, or None, got {working_set!r}.")
        self.working_set = None if working_set is None else int(working_set)

    def __repr__(self) -> str:
        return f"CrammerSinger(working_set={self.working_set})"

    def accepts(self, problem: Dual) -> bool:
        """Only the dual of Crammer and Singer."""
        return problem.per_sample

    def begin(self, state: State) -> SampleWork:
        """The variables of a sample, one per class, are adjacent."""
        k = len(state.problem.coupling)
        return SampleWork(np.argmax(state.problem.hi.reshape(-1, k) > 0, axis=1))

    def advance(self, state: State, work: SampleWork) -> None:
        """One working set, solved to a share of the violation."""
        chosen = self._choose(state, work)
        if not len(chosen):
            state.stuck = True
            return
        k = len(state.problem.coupling)
        tau, g, hi = state.u.reshape(-1, k), state.g.reshape(-1, k), state.problem.hi.reshape(-1, k)
        true = work.true[chosen]
        K = self._values(state, work, chosen)
        members = _Members(
            K,
            np.ascontiguousarray(tau[chosen].T),
            np.ascontiguousarray(g[chosen].T),
            hi[chosen, true],
            true,
        )
        tol = max(0.5 * state.target, costs.SAMPLES_ENOUGH * float((state.most - state.least).max()))
        state.n_iter += max(1, self._solve(members, tol, state.left, work.stable))
        change = members.tau.T - tau[chosen]
        moved = np.flatnonzero(change.any(axis=1))
        tau[chosen] = members.tau.T
        self._update(state, chosen[moved], change[moved])
        g[chosen] = members.g.T  # the same sum, in float64
        state.stuck = not len(moved)

    def _choose(self, state: State, work: SampleWork) -> Index:
        """The samples of the next working set, ascending; says if it is nearly known which these are."""
        violation = state.most - state.least
        wrong = violation > 0.5 * max(state.target, 0.0)
        if self.working_set is not None:
            return _worst(violation, np.flatnonzero(wrong), self.working_set)
        if not wrong.any():
            return np.zeros(0, np.intp)
        used = np.asarray(state.u.reshape(len(wrong), -1).any(axis=1))
        fresh = np.flatnonzero(wrong & ~used)
        count = max(costs.SAMPLES, len(wrong) // costs.SAMPLES_PARTS, int(np.count_nonzero(used)))
        work.stable = len(fresh) <= costs.SAMPLES_STABLE * count
        if not used.any():  # all violate equally
            fresh = fresh[np.linspace(0, len(fresh) - 1, min(len(fresh), count)).astype(np.intp)]
        chosen = used
        chosen[_worst(violation, fresh, count)] = True
        known = np.count_nonzero(chosen[work.members])
        if known == np.count_nonzero(chosen) and known > costs.SAMPLES_KEPT * len(work.members):
            return work.members  # whose kernel values are at hand
        most = int(np.sqrt(costs.SAMPLES_VALUES))
        return _worst(violation, np.flatnonzero(chosen), most)

    @staticmethod
    def _values(state: State, work: SampleWork, chosen: Index) -> NDArray[Any]:
        """The kernel values between the chosen samples; those that are known are not computed again."""
        if np.array_equal(chosen, work.members):
            return work.K
        gram = state.gram
        rows = state.problem.row[:: len(state.problem.coupling)][chosen]
        K = np.empty((len(rows), len(rows)), gram.dtype)
        if gram.holds_all:
            gram.ensure(rows)
            slots, columns = gram.slot[rows], gram.columns[rows]
            gram.threads.run(
                lambda a, b: gather(gram.table, slots[a:b], columns, 0.0, K[a:b]),
                gram.threads.split(len(rows), 256),
            )
        else:
            at = np.searchsorted(work.members, chosen)
            known = at < len(work.members)
            known[known] = work.members[at[known]] == chosen[known]
            old, new = np.flatnonzero(known), np.flatnonzero(~known)
            for line in old:
                K[line, old] = work.K[at[line], at[old]]
            K[new] = gram.block(rows[new], rows)
            K[:, new] = K[new].T
        np.fill_diagonal(K, gram.diag[rows])
        work.members, work.K = chosen, K
        return K

    def _solve(self, members: _Members, tol: float, left: int, stable: bool) -> int:
        """Steps of samples and on faces in turn, until none violates by more than `tol`."""
        total, passes = 0, costs.SAMPLES_PASSES
        for _ in range(costs.SAMPLES_TURNS):
            steps, worst = members.steps(tol, passes, left - total)
            total += steps
            if not steps or worst <= tol or total >= left or current().flag[0]:
                break
            if self.working_set is not None:
                continue
            if not stable:  # more samples are of more use
                break
            on_face, moved = members.face(max(0.3 * tol, 0.1 * worst), left - total)
            total += on_face
            if total >= left or current().flag[0] or not moved:
                break
            passes = costs.SAMPLES_BETWEEN
        return total

    @staticmethod
    def _update(state: State, moved: Index, change: Floats) -> None:
        """Bring the gradient of all samples up to date."""
        gram, k = state.gram, len(state.problem.coupling)
        g, rows = state.g.reshape(-1, k), state.problem.row[::k]
        for start in range(0, len(moved), costs.SAMPLES_ROWS):
            if start:
                check()
            some = slice(start, start + costs.SAMPLES_ROWS)
            z = _product(gram, rows[moved[some]], change[some])
            g += z if len(z) == len(g) else z[rows]


def _product(gram: Rows, rows: Index, change: Floats) -> Floats:
    """The rows times the change of their variables, most of which are zero, summed in float64."""
    K = np.ascontiguousarray(gram.rows(rows))
    z = np.zeros((change.shape[1], K.shape[1]))
    of = [np.flatnonzero(column) for column in change.T]

    def add(start: int, stop: int) -> None:
        for r, lines in enumerate(of):
            add_rows(z[r, start:stop], K, lines, change[lines, r], start, stop)

    gram.threads.run(add, gram.threads.split(K.shape[1], 2048))
    return z.T


def _worst(violation: Floats, some: Index, most: int) -> Index:
    """At most so many of the samples `some`, the worst violators, ascending."""
    if len(some) > most:
        some = np.sort(some[np.argpartition(-violation[some], most - 1)[:most]])
    return some
