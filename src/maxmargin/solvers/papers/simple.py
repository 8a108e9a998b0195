r"""SimpleSVM: an active set that learns one violator after the other.

Paper: S. V. N. Vishwanathan, M. N. Murty, "SSVM: A Simple SVM Algorithm", Algorithm 1.

1. The closest pair of points of opposite classes is the first candidate set S (section II-A): where the
   kernel falls with the distance, finding it takes no kernel value.
2. The next violator in the order of the data is learnt: it moves until it joins S, or, with the hinge, meets
   its bound C; members of S that block its way are pruned (`maxmargin.solvers.papers._active_set`).
3. Until a whole pass over the data finds no violator.

Between two steps all of S moves, so that keeping every gradient up to date would cost n |S| operations a
step. As in the paper only the next candidate's output is computed, here from the cached rows of S; all
gradients are brought up to date after a number of steps, in one product.

**The block form** begins with a coarse run of `Batch`, so that S is nearly known: from a small S newcomers by
the hundred are put on their bounds again, for many rounds if C is large. Then it learns many violators at
once: the worst ones, at most as many as S has members already. The step for S and the newcomers together is a
linear system, solved by a Cholesky factorisation; variables that it would carry past a bound are put there
and the others solved for again (`maxmargin.solvers.batch.newton`). Where that does not lower the objective,
single violators are learnt. An S whose factor costs more than `Batch` needs to the end is left to `Batch`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np

from maxmargin._compiled.limits import current
from maxmargin._types import Floats, Index
from maxmargin.dual import Dual, widest
from maxmargin.solvers import costs
from maxmargin.solvers.base import Solver
from maxmargin.solvers.batch.batch import Batch, BatchWork
from maxmargin.solvers.batch.newton import BlockStep
from maxmargin.solvers.papers._active_set import ALONE, ENDLESS, ActiveSet
from maxmargin.solvers.papers._candidates import CandidatePass
from maxmargin.solvers.papers._closest import closest_pair
from maxmargin.solvers.state import State


@dataclass
class SimpleWork:
    """The active set S, and the place in the data from which violators are looked for."""

    diag: Floats
    active: ActiveSet
    #: Learns many violators at once; None in the paper's form.
    block_step: BlockStep | None
    #: The next candidate.
    next: int = 0
    #: The counts of `Solution.details`.
    counts: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("learnt", "backtracked", "pruned", "drift", "repaired"), 0)
    )
    #: Whether it is the turn of single violators after a block step.
    single: bool = False
    #: Block steps that have not lowered the violation, and the least violation so far.
    idle: int = 0
    worst: float = np.inf
    #: The working data of `Batch`, in its coarse run and once the run has been handed over to it.
    batch: BatchWork | None = None
    #: In a coarse run, the difference of gradients at which it ends; otherwise 0.
    coarse: float = 0.0


class SimpleSVM(Solver[SimpleWork]):
    """Active set for the C-SVC duals, with squared or plain slack.

    Parameters
    ----------
    block : bool
        Learn many violators at once; otherwise one by one, the paper's form.
    factor_bytes : int
        Memory that the factor of the support vectors' matrix may take, ``4 |S|^2`` bytes. Where more would be
        needed the run is handed over to `Batch`, with a warning.

    Notes
    -----
    ``Solution.details`` has the steps ("learnt"; the block form counts the pair steps of its coarse run in
    ``n_iter`` too), how many of them had to backtrack ("backtracked"), members
    pruned ("pruned"), the largest drift of S's gradients that was seen ("drift") and how often it was
    repaired ("repaired").

    Examples
    --------
    >>> from maxmargin import dual
    >>> from maxmargin.gram import Gram
    >>> from maxmargin.solvers import SimpleSVM
    >>> gram = Gram([[0.0], [1.0], [3.0], [4.0]], kernel="linear", dtype="float64")
    >>> solution = SimpleSVM().solve(dual.squared_c_svc([-1, -1, 1, 1], ridge=0.5), gram)
    >>> solution.status, solution.u.round(3)
    (<Status.SOLVED: 'solved'>, array([ 0. , -0.4,  0.4,  0. ]))
    """

    name = "simple"
    about = "Vishwanathan, Murty 2002: add-and-prune active set with an exact factor"

    def __init__(self, block: bool = False, factor_bytes: int = 4 << 30) -> None:
        self.block, self.factor_bytes = bool(block), int(factor_bytes)
        self._batch = Batch()

    def __repr__(self) -> str:
        return "SimpleSVM(block=True)" if self.block else "SimpleSVM()"

    def accepts(self, problem: Dual) -> bool:
        """Problems with one sum whose matrix is K, shifted or ridged."""
        return problem.n_groups == 1 and problem.coupling.shape == (1, 1) and not problem.self_scaled

    def begin(self, state: State) -> SimpleWork:
        """S holds the free variables, or the closest pair where all are zero."""
        diag = state.problem.diag(state.gram)
        work = SimpleWork(diag, self._empty(state, diag), BlockStep() if self.block else None)
        if self.block:
            least, most = state.problem.extremes(state.u, state.g)
            work.coarse = costs.BLOCK_COARSE * widest(least, most)
        if work.coarse > 0:
            work.batch = self._batch.begin(state)
        else:
            self._fill(state, work)
        return work

    def rows_replaced(self, state: State, work: SimpleWork) -> SimpleWork:
        """S and its factor from the new rows; the counts stay."""
        if work.batch is not None:
            work.batch = self._batch.rows_replaced(state, work.batch)
            return work
        work.diag = state.problem.diag(state.gram)
        work.active = self._empty(state, work.diag)
        self._fill(state, work)
        return work

    def _empty(self, state: State, diag: Floats) -> ActiveSet:
        unit = float(np.mean(np.abs(diag))) or 1.0
        return ActiveSet(state.u, state.problem.lo, state.problem.hi, unit, self.factor_bytes)

    def _fill(self, state: State, work: SimpleWork) -> None:
        problem = state.problem
        free = np.flatnonzero((state.u > problem.lo) & (state.u < problem.hi))
        if len(free):
            self._load(state, work, free)
        elif not state.u.any():
            pair = closest_pair(problem, state.gram)
            if pair is not None:
                self._learn_pair(state, work, *pair)

    def details(self, state: State, work: SimpleWork) -> dict[str, float]:
        """See the notes of the class."""
        return dict(work.counts)

    def paper_rule(self, state: State, work: SimpleWork) -> float:
        """By how much y f(x) >= 1 is missed, f in the ridged space."""
        level = state.problem.offset(state.u, state.g)[state.problem.group]
        rises, falls = state.u < state.problem.hi, state.u > state.problem.lo
        short = np.where(rises, level - state.g, -np.inf)
        return float(np.max(np.maximum(short, np.where(falls, state.g - level, -np.inf)), initial=0.0))

    def reconstruct(self, state: State, work: SimpleWork) -> bool:
        """See `Solver.reconstruct`; `Batch` may have postponed updates."""
        return work.batch is not None and self._batch.reconstruct(state, work.batch)

    def abandon(self, state: State, work: SimpleWork) -> None:
        """See `Solver.abandon`."""
        if work.batch is not None:
            self._batch.abandon(state, work.batch)

    def advance(self, state: State, work: SimpleWork) -> None:
        """Learn a number of violators, then bring all gradients up to date."""
        if work.batch is not None and work.coarse > 0:
            self._coarse(state, work, work.batch)
            return
        if work.batch is not None:
            self._batch.advance(state, work.batch)
            return
        if work.block_step is not None and self._block_step(state, work, work.block_step):
            return
        self._repair(state, work)
        if work.batch is not None:
            return
        if not work.active.has_room():
            self._hand_over(state, work)
            return
        self._pass(state, work)

    # -- the block form ------------------------------------------------------------------------------

    def _coarse(self, state: State, work: SimpleWork, batch: BatchWork) -> None:
        """An iteration of `Batch`; at its end the block steps begin, unless S is too large for them."""
        target = state.target
        state.target = max(target, work.coarse)
        try:
            self._batch.advance(state, batch)
            least, most = state.problem.extremes(state.u, state.g)
            if not state.stuck and widest(least, most) > state.target:
                return
            self._batch.reconstruct(state, batch)
            least, most = state.problem.extremes(state.u, state.g)
            if not state.stuck and widest(least, most) > state.target:
                return
        finally:
            state.target = target
        work.coarse, state.stuck = 0.0, False
        free = (state.u > state.problem.lo) & (state.u < state.problem.hi)
        if np.count_nonzero(free) <= costs.BLOCK_MOST:
            self._batch.abandon(state, batch)
            work.batch = None

    def _block_step(self, state: State, work: SimpleWork, step: BlockStep) -> bool:
        """Learn many violators; False where that does not pay, and it is the turn of single ones."""
        problem = state.problem
        if work.single:
            work.single = False
            return False
        size = len(step._movable(state))
        if 2 * size**2 * state.gram.dtype.itemsize > self.factor_bytes:
            self._hand_over(state, work)
            return True
        taken = step.take(state)
        if taken:
            least, most = problem.extremes(state.u, state.g)
            worst = float(np.max(most - least))
            # Newcomers may raise the violation at first; from then on it has to fall.
            work.idle = 0 if not step.all_in or worst < costs.BLOCK_FALL * work.worst else work.idle + 1
            work.worst = min(worst, work.worst) if step.all_in else np.inf
            state.n_iter += 1
            work.counts["learnt"] += 1
        if not taken or work.idle >= costs.BLOCK_IDLE:
            work.single, work.idle = taken, 0
            self._load(state, work, np.flatnonzero((state.u > problem.lo) & (state.u < problem.hi)))
        return taken

    # -- the paper's form ----------------------------------------------------------------------------

    def _pass(self, state: State, work: SimpleWork) -> None:
        """Candidates in the order of the data, until a slice is full or each has been seen once."""
        problem, gram, u, active = state.problem, state.gram, state.u, work.active
        run = CandidatePass(state)
        run.mark(active.members)
        tol = 0.5 * max(state.target, 0.0)
        at, seen, learnt = work.next, 0, 0
        limit = current()
        while seen < problem.m and learnt < min(costs.CANDIDATES, state.left) and not limit.over:
            end = min(problem.m, at + problem.m - seen, at + run.span)
            c, excess = run.violator(at, end, active.level, tol)
            if c < 0:
                seen += end - at
                at = end % problem.m
                continue
            seen += c + 1 - at
            at = (c + 1) % problem.m
            if not active.size:
                break  # a partner can only be chosen with all gradients up to date
            if not active.has_room():
                break
            column = run.column(active.members, c)
            outcome, gone, _ = active.learn(c, column, float(work.diag[c]), excess)
            learnt += 1
            work.counts["learnt"] += 1
            work.counts["pruned"] += len(gone)
            work.counts["backtracked"] += bool(len(gone))
            run.moved(c, active.members, gone)
            run.mark(active.members)
            if outcome == ENDLESS:
                state.stuck = True
                break
            if outcome == ALONE:
                break
        work.next = at
        state.n_iter += learnt
        idx = run.changed()
        problem.update(state.g, idx, u[idx] - run.base[idx], gram)
        if not active.size and not state.stuck:
            state.stuck = not self._find_partners(state, work, learnt)
        elif not learnt and active.has_room() and not limit.over:
            # No violator in a whole pass: the end, or nothing more to be had in this precision.
            self._measure(state, work)
            state.stuck = True

    def _find_partners(self, state: State, work: SimpleWork, learnt: int) -> bool:
        """Nothing is free: begin S anew with the most violating pair; whether there is one."""
        least, most = state.problem.extremes(state.u, state.g)
        if not most[0] > least[0]:
            return learnt > 0
        i = int(np.argmin(np.where(state.u < state.problem.hi, state.g, np.inf)))
        j = int(np.argmax(np.where(state.u > state.problem.lo, state.g, -np.inf)))
        self._learn_pair(state, work, i, j)
        return True

    def _learn_pair(self, state: State, work: SimpleWork, i: int, j: int) -> None:
        """S from j, then i learnt."""
        problem, active, diag = state.problem, work.active, work.diag
        run = CandidatePass(state)
        active.seed(j, float(diag[j]), float(state.g[j]))
        outcome, _, _ = active.learn(
            i, run.column(active.members, i), float(diag[i]), float(state.g[i] - state.g[j])
        )
        idx = np.array([i, j])
        problem.update(state.g, idx, state.u[idx] - run.base[idx], state.gram)
        state.stuck = outcome == ENDLESS

    def _load(self, state: State, work: SimpleWork, free: Index) -> None:
        """S from these variables, with one common gradient."""
        active = work.active
        if not active.has_room(len(free)):
            self._hand_over(state, work)
            return
        if not len(free):
            active.size = 0
            return
        base = state.u.copy()
        H = state.problem.block(free, free, state.gram, state.gram.holds_all)
        H = H.astype(np.float64)
        for ridge in (0.0, 1e-12, 1e-9, 1e-6):
            try:
                H[np.arange(len(free)), np.arange(len(free))] += ridge * work.diag[free]
                active.load(free, H)
            except np.linalg.LinAlgError:
                continue
            break
        else:  # far from definite: begin from a single one
            active.seed(int(free[0]), float(work.diag[free[0]]), float(state.g[free[0]]))
            return
        active.relax(state.g[free])
        idx = free[state.u[free] != base[free]]
        state.problem.update(state.g, idx, state.u[idx] - base[idx], state.gram)

    def _measure(self, state: State, work: SimpleWork) -> float:
        """How far the gradients of S are from the level, which is set to their middle."""
        active = work.active
        g = state.g[active.members]
        drift = 0.5 * float(np.ptp(g)) if len(g) else 0.0
        work.counts["drift"] = max(work.counts["drift"], drift)
        if len(g):
            active.level = 0.5 * float(g.min() + g.max())
        return drift

    def _repair(self, state: State, work: SimpleWork) -> None:
        """Recompute a factor that has drifted, or that lacks the changes of another kind of step."""
        active = work.active
        if active.size and self._measure(state, work) > 0.1 * max(state.target, 0.0):
            work.counts["repaired"] += 1
            self._load(state, work, active.members.copy())

    def _hand_over(self, state: State, work: SimpleWork) -> None:
        size = np.count_nonzero(state.u)
        warnings.warn(
            f"SimpleSVM: the factor of {size} support vectors and more takes over "
            f"{self.factor_bytes / 1e6:.0f} MB; Batch goes on from here. Raise factor_bytes to avoid that.",
            RuntimeWarning,
            stacklevel=2,
        )
        work.batch = self._batch.begin(state)
