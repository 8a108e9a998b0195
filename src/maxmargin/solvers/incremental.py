r"""One machine, exact at every moment, that learns and forgets rows and knows its leave-one-out values.

Squared hinge: :math:`\min_{w,b,\xi} \tfrac12\|w\|^2 + \sum_i C_i\xi_i^2`, whose dual has a unique solution
and no upper bounds:

.. math:: \min_u \tfrac12 u^\top (K + D) u - y^\top u,\quad D_{ii} = \tfrac{1}{2C_i},\quad
          y_i u_i \ge 0,\ \sum_i u_i = 0.

Rows are learnt and forgotten by the steps of `maxmargin.solvers.papers._active_set`: the support vectors S
keep their margin of 1 exactly while a row comes or goes. Then the other rows are looked at, and those that
have become violators are learnt in turn. Where very many rows come at once, `Batch` solves first, and the
exact steps follow.

**All or nothing.** Margins are exact as far as float64 allows for the sizes of the kernel values
(`maxmargin.solvers._exactness`). Where that may not be enough, with distant rows, the duality gap is
computed from fresh sums. If it is too large, or a factor fails, the machine is retrained; if that does not
help, the change is refused with an error, and the machine is what it was before.

Papers: G. Cauwenberghs, T. Poggio, "Incremental and Decremental Support Vector Machine Learning"; S. V. N.
Vishwanathan, M. N. Murty, "SSVM: A Simple SVM Algorithm".

**Leave-one-out.** A row without a multiplier can go without any change. For the others let S be the support
vectors, N the rest, and T the matrix of all n rows after the unknowns of S have been solved for,

.. math:: T = \begin{pmatrix} M & W \\ -W^\top & V \end{pmatrix},\quad
          h = H_{SS}^{-1}e,\ \tau = e^\top h,\quad M = H_{SS}^{-1} - \tfrac1\tau hh^\top,\quad
          W = MH_{SN} + \tfrac1\tau he^\top,

.. math:: V = H_{NN} - H_{NS}MH_{SN} - le^\top - el^\top + \tfrac1\tau ee^\top,\quad
          l = \tfrac1\tau H_{NS}h,

in which every row stands for its multiplier (in S) or its slack (in N). Without row k the solution has
some rows Z on the other side: k, which is out; others that leave S; and some of N that enter it. Their
values v solve the small system :math:`T_{ZZ}v = q_Z`, and :math:`q - T_{\cdot Z}v` are the values of all
the others, which tell what Z must be: rows of the wrong sign change sides, all of them at once, or, where
that does not reduce their number, one by one (Júdice and Pires' rule, which ends). The held-out value of k
is :math:`y_k - v_k`. So after one matrix inversion each row costs a few products of n by |Z|.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from maxmargin import dual
from maxmargin._compiled.jit import compiled
from maxmargin._compiled.threads import Threads
from maxmargin._types import Floats, Index
from maxmargin.gram.gram import Gram
from maxmargin.kernels.kernel import Kernel
from maxmargin.solvers._exactness import Gap, InexactError, relative_gap, sizes
from maxmargin.solvers.batch.batch import Batch
from maxmargin.solvers.papers._active_set import ENDLESS, ActiveSet
from maxmargin.solvers.solution import Solution, Status
from maxmargin.solvers.state import Stop

# Violation of a margin that counts as none, and its part that grows with the terms of the margin.
_TOL, _ROUNDING = 1e-10, 1e-14
# Uncertainty of a margin from which on the gap is computed.
_DOUBTFUL = 1e-8
# What multipliers may add up to instead of zero, relative to their sizes.
_SUM = 1e-12
# Violators that are learnt one by one; of more a solver makes fewer first.
_FEW = 64
# Pair steps per row after which the exact steps take over from the solver.
_MOST_STEPS = 2000
# Rows of a matrix that are computed at a time.
_ROWS = 512
# Attempts to change many rows of the leave-one-out problem at once before they change one by one.
_TRIES = 8


class ExactMachine:
    """A binary machine over rows that come and go.

    Parameters
    ----------
    kernel : Kernel
        With its numbers.
    most_bytes : int
        Memory for the kernel matrix of all rows, and for T. Where that is not enough kernel values are
        computed when they are needed, and leave-one-out values found one after the other.
    factor_bytes : int
        Memory for the factor of the support vectors; more is an error.
    n_jobs : int, optional
        Threads.
    """

    def __init__(self, kernel: Kernel, *, most_bytes: int, factor_bytes: int, n_jobs: int | None) -> None:
        self.kernel, self.most_bytes, self.threads = kernel, int(most_bytes), Threads(n_jobs)
        self.n_jobs = n_jobs
        self.n = 0  # rows that are stored; those forgotten stay until half of them are
        self.X: Any = None
        self.alive = np.zeros(0, np.bool_)
        self.y, self.ridge, self.u, self.g, self.diag, self.lo, self.hi = (np.zeros(0) for _ in range(7))
        self._K: Floats | None = np.zeros((0, 0))
        self.active = ActiveSet(self.u, self.lo, self.hi, 1.0, factor_bytes)
        self._sound = True  # False while rows come or go, and after an interrupt
        self._waiting: tuple[Any, Floats, Floats, Floats] | None = None

    @property
    def held(self) -> Index:
        """Stored rows that are held, in the order of arrival."""
        self._wake()
        return np.flatnonzero(self.alive[: self.n])

    @property
    def level(self) -> float:
        """The decision function is ``K u - level``."""
        if self.active.size or self.u.any():
            return self.active.level
        sides = np.unique(self.y[self.held])
        return -float(sides[0]) if len(sides) == 1 else 0.0  # of one class: w = 0, b = its side

    def add(self, X: Any, y: Floats, ridge: Floats) -> None:
        """Learn rows with the sides y = -1, +1; all of them or, with a `ValueError`, none."""
        self._begin_change()
        with self._all_or_nothing("learnt"):
            new = self._append(X, y, ridge)
            support = np.flatnonzero(self.u[: self.n])
            self.g[new] += self._product(support, self.u[support], new)
            self._settle_for_sure()

    def rows(self) -> tuple[Any, Floats, Floats, Floats]:
        """What the machine can be made from again: the rows held, their sides, ridges and multipliers."""
        if self._waiting is not None:
            return self._waiting
        if not self._sound:
            raise ValueError("Learning was interrupted: fit again first.")
        held = self.held
        return self.X[held], self.y[held], self.ridge[held], self.u[held]

    def restore(self, X: Any, y: Floats, ridge: Floats, u: Floats) -> None:
        """Take what `rows` gave. Kernel values are computed when rows come or go, not now."""
        self._waiting = (X, y, ridge, u)

    def _wake(self) -> None:
        if self._waiting is None:
            return
        X, y, ridge, u = self._waiting
        twin = ExactMachine(
            self.kernel, most_bytes=self.most_bytes, factor_bytes=self.active.most_bytes, n_jobs=self.n_jobs
        )
        new = twin._append(X, y, ridge)
        twin.u[new] = u
        twin._refresh()
        twin._settle_for_sure()
        self.__dict__.update(twin.__dict__)  # all or nothing: an interrupt leaves the rows waiting

    def _append(self, X: Any, y: Floats, ridge: Floats) -> Index:
        """Rows with multiplier zero, and the kernel values that are kept of them; their places."""
        new = np.arange(self.n, self.n + len(y))
        self._store(X)
        self.y[new], self.ridge[new], self.alive[new] = y, ridge, True
        self.lo[new], self.hi[new] = np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0)
        self.diag[new] = self.kernel.diag(self.kernel.prepare(self.X[new])) + ridge
        if not np.isfinite(self.diag[new]).all():
            raise InexactError("Kernel values overflow")
        if self._K is not None:
            for some in np.array_split(new, -(-len(new) // _ROWS)):
                part = self.kernel.block(self.X[some], self.X[np.arange(self.n)])
                self._K[some, : self.n], self._K[: self.n, some] = part, part.T
        self.g[new] = -y
        return new

    def forget(self, rows: Index) -> None:
        """Unlearn stored rows; all of them or, with a `ValueError`, none."""
        self._begin_change()
        with self._all_or_nothing("forgotten"):
            if np.count_nonzero(self.u[rows]) > _FEW:  # a solver is quicker; it mends the sum
                self.u[rows] = 0.0
                self.active.size = 0
                self._refresh()
            for k in map(int, rows):
                self._unlearn(k)
            self._settle_for_sure()
        if self.n > 64 and np.count_nonzero(self.alive) < self.n // 2:
            self._compact()

    def _unlearn(self, k: int) -> None:
        """Move the multiplier of a row to zero, with the margins of S kept; the row is no longer held."""
        if self.u[k]:
            base = self.u.copy()
            if k in self.active.members:
                others = self.active.members[self.active.members != k]
                self.active.unlearn(k, self._block(others, np.array([k]))[:, 0], float(self.diag[k]))
            self.u[k] = 0.0
            self._update(base)
        self.lo[k] = self.hi[k] = 0.0
        self.alive[k] = False

    @contextmanager
    def _all_or_nothing(self, what: str) -> Iterator[None]:
        """Take back what was changed if it ends with an error."""
        n, u, alive, level = self.n, self.u.copy(), self.alive.copy(), self.level
        try:
            yield
        except Exception as error:
            largest = float(np.max(np.abs(self.diag[: self.n]), initial=0.0))
            self._take_back(n, u, alive, level)
            if isinstance(error, InexactError | np.linalg.LinAlgError):
                raise InexactError(
                    f"The rows cannot be {what}, and nothing was changed: with kernel values up to "
                    f"{largest:.2g} and this C the margins cannot be made exact in double precision"
                ) from error
            raise

    def _take_back(self, n: int, u: Floats, alive: NDArray[np.bool_], level: float) -> None:
        """The machine as it was with n stored rows, their multipliers u and this level."""
        if sp.issparse(self.X):
            self.X = self.X[:n]
        self.n = n
        self.u[:] = 0.0
        self.u[:n] = u[:n]
        self.alive[:] = False
        self.alive[:n] = alive[:n]
        held, positive = self.alive[:n], self.y[:n] > 0
        self.lo[:n] = np.where(held & ~positive, -np.inf, 0.0)
        self.hi[:n] = np.where(held & positive, np.inf, 0.0)
        self._refresh()
        self.active.size = 0
        S = np.flatnonzero(self.u[:n])
        try:
            if len(S):
                self._load(S)
        except np.linalg.LinAlgError:
            self.active.size = 0  # the next change begins by retraining
        self.active.level = level
        self._sound = True

    def _settle_for_sure(self) -> None:
        """Until every margin is right; retrained if that fails, or is not good enough."""
        try:
            self._settle()
            if self._exact_enough():
                return
        except (InexactError, np.linalg.LinAlgError):
            pass
        gap = self._train_anew()
        if not gap.bearable:
            raise InexactError
        left = "" if gap.small else f", which leaves a relative gap of {gap.found:.1g}"
        warnings.warn(
            f"Rows far from the others made the margins inexact: the machine was retrained{left}. Scale "
            "the features, lower C, or leave out rows that are far from all others.",
            ConvergenceWarning,
            stacklevel=6,
        )

    def _train_anew(self) -> Gap:
        """From nothing; the gap. Where exact steps spoil what the solver found, that is kept instead."""
        self.u[:] = 0.0
        solution = self._approach()
        found, gap = solution.u, self._gap()
        try:
            self._load(np.flatnonzero(self.u[: self.n]))
            self._settle()
            exact = self._gap()
        except (InexactError, np.linalg.LinAlgError):
            exact = Gap(np.inf, np.inf)
        if exact.small or exact.most <= gap.most:
            return exact
        self.u[:] = 0.0
        self.u[self.held] = found
        self._refresh()
        self.active.size = 0
        self.active.level = float(solution.offset[0])
        self._sound = True
        return gap

    def _exact_enough(self) -> bool:
        """Whether rounding cannot have spoiled the margins, or has not."""
        held = self.held
        terms = float(np.max(sizes(self.diag[held], self.u[held]), initial=0.0))
        sure = abs(float(self.u.sum())) <= _SUM * float(np.abs(self.u).sum())
        return (sure and _ROUNDING * terms <= _DOUBTFUL) or self._gap().small

    def _gap(self) -> Gap:
        """The relative duality gap, from fresh sums."""
        held = self.held
        if not abs(float(self.u.sum())) <= 1e4 * _SUM * float(np.abs(self.u).sum()):  # or not finite
            return Gap(np.inf, np.inf)
        terms = sizes(self.diag[held], self.u[held])
        support = np.flatnonzero(self.u[: self.n])
        values = self._product(support, self.u[support], held)
        return relative_gap(self.u[held], values, self.y[held], self.ridge[held], self.level, terms)

    def _begin_change(self) -> None:
        """What an interrupt left half done is solved for anew."""
        self._wake()
        if not self._sound:
            self.active.size = 0
            self._refresh()
            self._settle_for_sure()
        self._sound = False

    # -- rows and kernel values ------------------------------------------------------------------------

    _vectors = ("alive", "y", "ridge", "u", "g", "diag", "lo", "hi")

    def _store(self, X: Any) -> None:
        """Append rows; buffers grow by half of their size."""
        needed = self.n + X.shape[0]
        capacity = len(self.u)
        if needed > capacity:
            capacity = max(needed, capacity * 3 // 2, 64)
            for name in self._vectors:
                setattr(self, name, _longer(getattr(self, name)[: self.n], capacity))
            if self._K is not None:
                fits = 8 * capacity**2 <= self.most_bytes
                self._K = _longer(self._K[: self.n, : self.n], capacity, capacity) if fits else None
            self._rebind()
        if sp.issparse(X):
            self.X = sp.csr_array(X) if self.X is None else sp.csr_array(sp.vstack([self.X, X]))
        else:
            if self.X is None:
                self.X = np.zeros((0, X.shape[1]), X.dtype)
            dtype = np.result_type(self.X, X)
            if needed > len(self.X) or dtype != self.X.dtype:
                self.X = _longer(self.X[: self.n].astype(dtype), capacity, X.shape[1])
            self.X[self.n : needed] = X
        self.n = needed

    def _rebind(self) -> None:
        self.active.u, self.active.lo, self.active.hi = self.u, self.lo, self.hi

    def _compact(self) -> None:
        """Give up the places of forgotten rows."""
        kept = self.held
        self.active.rename(np.cumsum(self.alive) - 1)
        if self._K is not None:
            self._K = self._K[np.ix_(kept, kept)]
        self.X = self.X[kept]
        for name in self._vectors:
            setattr(self, name, getattr(self, name)[kept])
        self.n = len(kept)
        self._rebind()

    def _block(self, a: Index, b: Index) -> Floats:
        """K between two sets of rows."""
        if self._K is not None:
            return self._K[np.ix_(a, b)]
        if not len(a) or not len(b):
            return np.zeros((len(a), len(b)))
        return self.kernel.block(self.X[a], self.X[b])

    def _product(self, rows: Index, coef: Floats, at: Index | None = None) -> Floats:
        """``K[at, rows] @ coef``, for all rows by default."""
        if self._K is not None and at is None:
            return coef @ self._K[rows, : self.n]
        at = np.arange(self.n) if at is None else at
        out = np.zeros(len(at))
        for start in range(0, len(at), _ROWS):
            part = slice(start, start + _ROWS)
            out[part] = self._block(at[part], rows) @ coef
        return out

    def _update(self, base: Floats) -> None:
        """The gradient of u, from that of `base`."""
        moved = np.flatnonzero(self.u[: self.n] != base[: self.n])
        delta = self.u[moved] - base[moved]
        self.g[: self.n] += self._product(moved, delta)
        self.g[moved] += self.ridge[moved] * delta

    # -- optimality ------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Until every margin is right: learn the worst violator, again and again."""
        held = self.held
        if len(np.unique(self.y[held])) < 2:
            self.active.size = 0
            self.u[:] = 0.0
            self.g[: self.n] = -self.y[: self.n]
            self._sound = True
            return
        lost = self.u.any() and not self.active.size
        if lost or np.count_nonzero(self._excess() > self._tol) > _FEW:
            self._solve()
        for _ in range(5 * len(held) + 200):
            if not self.active.size:
                self._begin()
            self._mend_sum()
            self._relax()
            excess = self._excess() / self._tol
            c = int(np.argmax(excess))
            if not excess[c] > 1.0:
                self._sound = True
                return
            base = self.u.copy()
            S = self.active.members
            signed = float(self.g[c]) - self.active.level
            column = self._block(S, np.array([c]))[:, 0]
            outcome, _, _ = self.active.learn(c, column, float(self.diag[c]), signed)
            self._update(base)
            if outcome == ENDLESS or not np.isfinite(signed):
                raise InexactError
        raise InexactError

    def _excess(self) -> Floats:
        """By how much each row outside S violates its margin."""
        excess = self.y[: self.n] * (self.level - self.g[: self.n])
        excess[~self.alive[: self.n]] = -np.inf
        excess[self.active.members] = -np.inf
        return excess

    def _relax(self) -> None:
        """Repair what rounding has done to the margins of S, with a new factor if the present one cannot."""
        for attempt in range(4):
            S = self.active.members
            if not len(S) or self._common(S):
                break
            if attempt == 1:
                self._load(S.copy())
            elif attempt > 1:
                self._refresh()
            base = self.u.copy()
            self.active.relax(self.g[self.active.members])
            self._update(base)
        if self.active.size:
            self._common(self.active.members)

    def _mend_sum(self) -> None:
        """Let S carry what rounding, at a time when multipliers were larger, has left of their sum."""
        total, S = float(self.u.sum()), self.active.members
        if not len(S) or abs(total) <= _SUM * float(np.abs(self.u).sum()):
            return
        largest = S[np.argmax(np.abs(self.u[S]))]
        if abs(total) > 0.5 * abs(self.u[largest]):
            raise InexactError
        base = self.u.copy()
        self.u[largest] -= total
        self._update(base)

    def _common(self, S: Index) -> bool:
        """Set the level to the gradient of S, as far as it has one; whether it does."""
        g, tol = self.g[S], self._tol[S]
        sure = g[tol <= 2.0 * tol.min()]  # those that rounding says most of
        self.active.level = 0.5 * float(sure.min() + sure.max()) if len(sure) else np.nan
        return bool((np.abs(g - self.active.level) <= 0.05 * tol).all())

    @property
    def _tol(self) -> Floats:
        """For each row the violation of its margin that counts as none."""
        return _TOL + _ROUNDING * sizes(self.diag[: self.n], self.u[: self.n])

    def _refresh(self) -> None:
        """The gradient from nothing: long sums of changes drift."""
        support = np.flatnonzero(self.u[: self.n])
        self.g[: self.n] = self._product(support, self.u[support]) - self.y[: self.n]
        self.g[support] += self.ridge[support] * self.u[support]

    def _load(self, S: Index) -> None:
        H = self._block(S, S)
        H[np.arange(len(S)), np.arange(len(S))] += self.ridge[S]
        self.active.load(S, H)

    def _begin(self) -> None:
        """S from the most violating pair."""
        self.active.sigma = self._typical()
        g = np.where(self.alive[: self.n], self.g[: self.n], np.nan)
        i = int(np.nanargmin(np.where(self.y[: self.n] > 0, g, np.nan)))
        j = int(np.nanargmax(np.where(self.y[: self.n] < 0, g, np.nan)))
        base = self.u.copy()
        self.active.seed(j, float(self.diag[j]), float(g[j]))
        self.active.learn(
            i, self._block(np.array([j]), np.array([i]))[:, 0], float(self.diag[i]), float(g[i] - g[j])
        )
        self._update(base)

    def _solve(self) -> None:
        """Come near with a solver, then load S."""
        self._approach()
        self._load(np.flatnonzero(self.u[: self.n]))

    def _approach(self) -> Solution:
        """The solution of `Batch`, from where the multipliers are; nothing is loaded."""
        held = self.held
        problem = dual.squared_c_svc(self.y[held], self.ridge[held])
        if self._K is not None:
            gram = Gram(self._K[np.ix_(held, held)], Kernel("precomputed"), n_jobs=self.n_jobs)
        else:
            gram = Gram(
                self.X,
                self.kernel,
                index=held,
                dtype=np.float64,
                n_jobs=self.n_jobs,
                cache_bytes=self.most_bytes,
            )
        stop = Stop(1e-6, max_iter=_MOST_STEPS * len(held))
        solution = Batch().solve(problem, gram, warm=self.u[held], stop=stop)
        if solution.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        self.u[:] = 0.0
        self.u[held] = solution.u
        self._refresh()
        self.active.sigma = self._typical()
        self.active.size, self.active.level = 0, float(solution.offset[0])
        return solution

    def _typical(self) -> float:
        """A kernel value to shift the matrix by, which few distant rows do not set."""
        return float(np.median(np.abs(self.diag[self.held]))) or 1.0

    # -- leave one out ---------------------------------------------------------------------------------

    def leave_one_out(self) -> Floats:
        """The decision value of each held row by a machine that does without it."""
        held = self.held
        values = self.g[held] + self.y[held] - self.ridge[held] * self.u[held] - self.level
        support = np.flatnonzero(self.u[held])
        alone = np.array(
            [np.count_nonzero(self.y[held] == self.y[k]) == 1 for k in held[support]], dtype=bool
        )
        values[support[alone]] = -self.y[held[support[alone]]]  # the machine of the other class alone
        support = support[~alone]
        if not len(support):
            return values
        if self.active.size and 8 * 2 * len(held) ** 2 <= self.most_bytes:
            values[support] = self._all_at_once(held, support)
        else:
            for k in support:
                values[k] = self._without(int(held[k]))
        return values

    def _all_at_once(self, held: Index, out: Index) -> Floats:
        member = np.isin(held, self.active.members)
        S, N = np.flatnonzero(member), np.flatnonzero(~member)
        order = np.concatenate([S, N])
        T, q = self._tableau(held[S], held[N])
        sign = self.y[held[order]]
        where = np.empty(len(held), np.intp)
        where[order] = np.arange(len(held))
        v, tol = np.empty(len(out)), float(np.median(self._tol[held]))
        left = np.zeros(len(out), np.bool_)

        def run(start: int, stop: int) -> None:
            _leave_out(T, q, sign, len(S), where[out[start:stop]], tol, v[start:stop], left[start:stop])

        with self.threads:
            self.threads.run(run, self.threads.split(len(out), 16))
        values = self.y[held[out]] - v
        for t in np.flatnonzero(left):
            values[t] = self._without(int(held[out[t]]))
        return values

    def _tableau(self, S: Index, N: Index) -> tuple[Floats, Floats]:
        """T and q, see the module, for rows S then N."""
        s, n = len(S), len(S) + len(N)
        T = np.empty((n, n))
        H = self._block(S, S)
        H[np.arange(s), np.arange(s)] += self.ridge[S]
        H += self.active.sigma  # changes nothing where the sum is kept, and makes H definite
        with self.threads.blas():
            factor = scipy.linalg.cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
            inverse = scipy.linalg.cho_solve(factor, np.eye(s), overwrite_b=True, check_finite=False)
            h = inverse.sum(axis=1)
            total = float(h.sum())
            T[:s, :s] = inverse - np.outer(h, h / total)
            B = self._block(S, N)
            # e'u = 0 also for what enters: its multiplier is taken from S.
            T[:s, s:] = T[:s, :s] @ B + h[:, None] / total
            T[s:, :s] = -T[:s, s:].T
            level_of = h @ B / total
            V = self._block(N, N)
            V[np.arange(n - s), np.arange(n - s)] += self.ridge[N]
            constant = 1.0 / total - self.active.sigma
            V -= B.T @ (T[:s, :s] @ B) + level_of[:, None] + level_of - constant
            T[s:, s:] = V
        q = np.concatenate([self.u[S], self.level - self.g[N]])
        return T, q

    def _without(self, k: int) -> float:
        """The same for one row: forget it, look, and put everything back."""
        saved = [self.u.copy(), self.g.copy(), self.lo[k], self.hi[k], self.active.copy()]
        try:
            self._unlearn(k)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                self._settle_for_sure()
            return float(self.g[k] + self.y[k] - self.level)
        finally:
            self.u, self.g, self.lo[k], self.hi[k], self.active = saved
            self.alive[k] = True
            self._rebind()


def _longer(old: NDArray[Any], *shape: int) -> NDArray[Any]:
    new = np.zeros(shape, old.dtype)
    new[tuple(slice(k) for k in old.shape)] = old
    return new


@compiled()
def _leave_out(T, q, sign, s, rows, tol, out, left):  # type: ignore[no-untyped-def]
    """For each k of `rows` (positions in S): the value v_k when k has left; `left` marks those not found."""
    n = len(q)
    inside = np.zeros(n, np.bool_)
    y = np.empty(n)
    for t in range(len(rows)):
        k = rows[t]
        Z = np.empty(1, np.int64)
        Z[0] = k
        fewest, tries, found = n + 1, _TRIES, False
        for _ in range(50 + 4 * n):
            small, v = np.empty((len(Z), len(Z))), np.empty(len(Z))
            for a in range(len(Z)):
                inside[Z[a]] = True
                v[a] = q[Z[a]]
                for b in range(len(Z)):
                    small[a, b] = T[Z[a], Z[b]]
            _eliminate(small, v)
            wrong, last = 0, -1
            for i in range(n):
                y[i] = q[i]
            for z in range(len(Z)):
                column = T[Z[z]]  # T is symmetric but for the sign between S and N
                flip = Z[z] < s
                for i in range(s):
                    y[i] -= (column[i] if flip else -column[i]) * v[z]
                for i in range(s, n):
                    y[i] -= (-column[i] if flip else column[i]) * v[z]
            for z in range(len(Z)):
                y[Z[z]] = v[z]
            flips = np.zeros(n, np.bool_)
            for i in range(n):
                if i == k:
                    continue
                # A multiplier must have its row's sign, a slack (as level - gradient) the other.
                multiplier = (i < s) != inside[i]
                value = sign[i] * y[i]
                if (multiplier and value < -tol) or (not multiplier and value > tol):
                    flips[i] = True
                    wrong += 1
                    last = i
            if wrong == 0:
                found = True
            else:
                if wrong < fewest:
                    fewest, tries = wrong, _TRIES
                elif tries > 0:
                    tries -= 1
                if tries == 0:
                    flips[:] = False
                    flips[last] = True
                count = 0
                for i in range(n):
                    count += inside[i] != flips[i]
                new, at = np.empty(count, np.int64), 0
                for i in range(n):
                    if inside[i] != flips[i]:
                        new[at] = i
                        at += 1
            for a in range(len(Z)):
                inside[Z[a]] = False
            if found:
                out[t] = y[k]
                break
            Z = new
        left[t] = not found


@compiled()
def _eliminate(A, b):  # type: ignore[no-untyped-def]
    """``b = A^-1 b`` in place, with row pivoting; `numpy.linalg.solve` takes many seconds to compile."""
    n = len(b)
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[p, k]):
                p = i
        if p != k:
            b[k], b[p] = b[p], b[k]
            for j in range(k, n):
                A[k, j], A[p, j] = A[p, j], A[k, j]
        for i in range(k + 1, n):
            factor = A[i, k] / A[k, k]
            if factor != 0.0:
                b[i] -= factor * b[k]
                for j in range(k + 1, n):
                    A[i, j] -= factor * A[k, j]
    for k in range(n - 1, -1, -1):
        total = b[k]
        for j in range(k + 1, n):
            total -= A[k, j] * b[j]
        b[k] = total / A[k, k]
