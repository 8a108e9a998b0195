"""The default solver: two-level decomposition, in batches of kernel rows.

Outer iteration: choose the variables that violate the KKT conditions most and bring them into a working
set of 1,024 to 8,192 variables (`working_set`), solve the problem on that set alone (`pairs`) with the kernel
values between its members (`block`). Then update the gradient of all variables with the kernel rows of those
that moved: rows come in batches, and are used in batches.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from numbers import Integral

import numpy as np

from maxmargin._compiled.limits import Limit, Stopped
from maxmargin._compiled.threads import Threads
from maxmargin._types import Floats, Index, Rows
from maxmargin.dual import Dual, widest
from maxmargin.solvers import costs
from maxmargin.solvers._face import on_face
from maxmargin.solvers.base import Solver
from maxmargin.solvers.batch.class_pairs import Together, solve_together
from maxmargin.solvers.batch.newton import FaceFinish, NewtonFinish
from maxmargin.solvers.batch.progress import Progress
from maxmargin.solvers.batch.shrinking import Shrunk
from maxmargin.solvers.batch.weights import WeightSteps
from maxmargin.solvers.batch.whole import WholeProblems
from maxmargin.solvers.batch.whole_regression import WholeRegression
from maxmargin.solvers.batch.working_set import LARGEST, WorkingSet, default_size
from maxmargin.solvers.many import Subproblem, Subproblems, solve_each
from maxmargin.solvers.pairs import LONGEST
from maxmargin.solvers.solution import Observer, Solution
from maxmargin.solvers.solutions import Solutions
from maxmargin.solvers.state import State, Stop


@dataclass
class BatchWork:
    """The working set, and the decisions that depend on the course of a run."""

    set: WorkingSet
    progress: Progress
    #: Steps for the end of a run, see `maxmargin.solvers.batch.newton`.
    finish: NewtonFinish
    #: Finishes of a whole problem that are left, and the iteration after the last one.
    finishes: int
    finished_at: int = -1
    #: Pair steps of the last iteration on a whole problem, if they were very many.
    slow: int = 0
    #: The active variables, while others are left out.
    shrunk: Shrunk | None = None
    #: Steps for the weights of a linear kernel.
    weights: WeightSteps = field(default_factory=WeightSteps)
    #: Whether shrinking has been of no use.
    no_shrinking: bool = False


class Batch(Solver[BatchWork]):
    """Two-level decomposition for any problem of the core.

    Parameters
    ----------
    working_set : int, optional
        Size of the working set, at most 8,192; by default 1,024, for 10,000 variables and more 2,048. With
        40,000 variables it grows to 4,096, with 100,000 to 8,192, once twice as many are not zero.
    finish : {"auto", "newton", "rosen", "conjugate", None}
        What is done once it is nearly known which variables are free, see `maxmargin.solvers.batch.newton`:
        Newton steps when they pay ("auto"), or always; gradient projection along steepest or conjugate
        directions (`maxmargin.solvers.papers.rosen`); or nothing.
    cycles : bool, default=True
        Whether the pair steps in a working set are followed by steps along their cycles, where these gain
        more in the same time. Problems that are solved in one compiled call take pair steps only.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import dual
    >>> from maxmargin.gram import Gram
    >>> from maxmargin.solvers import Batch
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    >>> solution = Batch().solve(dual.c_svc(y, C=10.0), Gram(X, gamma=1.0))
    >>> solution.status, bool(solution.violation <= 1e-3)
    (<Status.SOLVED: 'solved'>, True)
    """

    name = "batch"
    about = "two-level decomposition, second-order SMO inside (the default)"

    def __init__(
        self, working_set: int | None = None, finish: str | None = "auto", cycles: bool = True
    ) -> None:
        integer = isinstance(working_set, Integral) and not isinstance(working_set, bool)
        if working_set is not None and not (integer and 2 <= working_set <= LARGEST):
            raise ValueError(f"working_set must be an integer between 2 and {LARGEST}, got {working_set!r}.")
        if finish not in ("auto", "newton", "rosen", "conjugate", None):
            raise ValueError(
                f"finish must be 'auto', 'newton', 'rosen', 'conjugate' or None, got {finish!r}."
            )
        if not isinstance(cycles, bool | np.bool_):
            raise ValueError(f"cycles must be True or False, got {cycles!r}.")
        self.working_set, self.finish, self.cycles = working_set, finish, bool(cycles)

    def __repr__(self) -> str:
        cycles = "" if self.cycles else ", cycles=False"
        return f"Batch(working_set={self.working_set}, finish={self.finish!r}{cycles})"

    def accepts(self, problem: Dual) -> bool:
        """Any problem whose groups find a place in the working set."""
        return problem.n_groups <= LONGEST // 2

    def begin(self, state: State) -> BatchWork:
        """An empty working set and its buffers, in the precision of the rows."""
        projected = self.finish in ("rosen", "conjugate")
        return BatchWork(
            set=WorkingSet(state, self.working_set, self.cycles),
            progress=Progress(),
            no_shrinking=not state.gram.resident,
            finish=FaceFinish(self.finish == "conjugate") if projected else NewtonFinish(),
            finishes=0 if self.finish is None else costs.FINISHES,
        )

    def rows_replaced(self, state: State, work: BatchWork) -> BatchWork:
        """The same members in a new working set."""
        self._replace_set(state, work)
        work.progress = Progress()
        return work

    def _replace_set(self, state: State, work: BatchWork) -> None:
        """The same members in a new working set, of the size that suits the present support."""
        old, work.set = work.set, WorkingSet(state, self.working_set, self.cycles)
        if not work.set.whole:
            work.set.enter(old.ids[old.ids >= 0], state)

    def solve_many(
        self,
        problems: Subproblems,
        gram: Rows,
        *,
        stop: Stop,
        interrupt: Limit,
        observe: Observer | None = None,
        n_jobs: int | None = None,
    ) -> Solutions:
        """See `Solver.solve_many`; small problems are first tried in one compiled call each."""
        engine = self._engine(problems, gram, stop)
        if engine is None:
            return super().solve_many(
                problems, gram, stop=stop, interrupt=interrupt, observe=observe, n_jobs=n_jobs
            )

        together: Together | None = None
        work = float(problems.sizes.sum() * costs.VALUES_PER_VARIABLE) * gram.cost
        pairs = problems.pairs if observe is None else None
        if pairs is not None and isinstance(engine, WholeProblems) and engine.takes_pairs:
            with Threads(n_jobs if work > costs.WORTH_A_TEAM else 1) as threads:
                together = solve_together(engine, pairs, problems.typical[0].problem.scale, threads)
            if len(together.solutions) == len(problems):
                return Solutions({}, together.solutions)
        done = set() if together is None else set(together.solutions.index.tolist())
        points = {} if together is None else together.points

        def solve(k: int, team: int) -> Solution:
            sub: Subproblem = problems[k]
            warm, solution = points.get(k, sub.warm), None
            callback = None if observe is None else observe(sub.name)
            if not interrupt.over:
                with suppress(Stopped):
                    warm, solution = engine.attempt(sub.problem, sub.samples, sub.segments, warm)
            if solution is not None:
                if callback is not None:
                    callback(solution.trace[-1])
                return solution
            chosen = gram.columns if problems.whole else sub.rows
            rows = gram.view(chosen, cache_bytes=max(0, gram.cache_bytes - engine.bytes_used) // team)
            return self.solve(sub.problem, rows, warm=warm, stop=stop, callback=callback, interrupt=interrupt)

        rest = solve_each(solve, problems, gram, work, n_jobs, interrupt, done)
        return Solutions(rest, None if together is None else together.solutions)

    def _engine(
        self, problems: Subproblems, gram: Rows, stop: Stop
    ) -> WholeProblems | WholeRegression | None:
        """The engine for small problems in one call; a single hard one is better left to the loop.

        Hard is one with a tight tolerance, or one large enough for float32 that was given float64 rows.
        """
        if self.working_set is not None or not gram.resident:
            return None
        if any(sub.problem.n_groups not in (1, len(sub.segments)) for sub in problems.typical):
            return None
        many, typical = len(problems) > 1, [sub.problem for sub in problems.typical]
        if problems.whole and self.finish in ("auto", "newton"):
            regression = WholeRegression.over(gram, problems.bounds, typical, stop, several=many)
            if regression is not None:
                return regression
        alone = not many and costs.FINISH_FROM <= typical[0].m <= LONGEST
        double = gram.dtype == np.float64 and not gram.given  # by choice: the user's matrix is as it is
        hard = stop.tol <= costs.FINISH_TOL or (double and gram.n > costs.DOUBLE_ELSE_UP_TO)
        if alone and hard and self.finish is not None:
            return None
        return WholeProblems.over(gram, problems.bounds, typical, stop)

    def advance(self, state: State, work: BatchWork) -> None:
        """One outer iteration."""
        working, progress = work.set, work.progress
        fresh = 0
        whole, slow = working.whole, work.slow > 0
        if self.finish == "auto" and not work.shrunk and work.weights.take(state, progress, whole, slow):
            return
        if self._finish_whole(state, work) if working.whole else self._finish(state, work):
            return
        if not working.whole:
            self._shrink(state, work)
            if self.working_set is None and default_size(state.problem.m, state.n_support) > working.size:
                self._replace_set(state, work)
                working = work.set
                working.restrict(work.shrunk.active if work.shrunk else None)
            fresh = working.enter(working.candidates(state), state)
        steps, moved, delta = working.solve(state, self._stage(state, work))
        work.slow = steps if working.whole and steps >= costs.SLOW * len(working.ids) else 0
        working.take_step(state, moved, delta, work.shrunk)
        state.n_iter += max(steps, 1)
        columns = state.problem.m if work.shrunk is None else len(work.shrunk.active)
        sums = state.gram.sum_cost(columns, len(moved))
        values = steps * len(working.ids) * costs.STEP + sums * costs.UPDATE
        progress.worked(costs.ITERATION + values * state.gram.dtype.itemsize)
        state.stuck = progress.stuck(state, steps, fresh)

    # -- the end of a run -----------------------------------------------------------------------

    @staticmethod
    def _stage(state: State, work: BatchWork) -> float:
        """The violation at which pair steps on a whole problem give way to a finish; 0 for none."""
        if not work.set.whole or work.finishes == 0:
            return 0.0
        if state.problem.m < costs.FINISH_FROM or state.stop.tol > costs.FINISH_TOL:
            return 0.0
        scale = state.problem.tolerance_scale(state.u, state.g)
        worst = widest(state.least, state.most)
        return min(costs.STAGE / scale, costs.STAGE_FALL * worst) if np.isfinite(scale) else 0.0

    def _finish_whole(self, state: State, work: BatchWork) -> bool:
        """A finish on a problem that is in the working set as a whole, once pair steps have come near."""
        if self._project(state, work):
            return True
        stage = self._stage(state, work)
        if stage == 0.0 or state.n_iter == 0 or work.finished_at == state.n_iter:
            return False
        work.finishes -= 1
        if not self._finish_step(state, work):
            return False
        work.finished_at = state.n_iter
        return True

    def _project(self, state: State, work: BatchWork) -> bool:
        """Gradient projection after slow pair steps, with as much work as they had."""
        pairs, work.slow = work.slow, 0
        if not pairs or self.finish is None:
            return False

        problem = state.problem
        free = int(np.count_nonzero((state.u > problem.lo) & (state.u < problem.hi)))
        per_free = costs.PROJECTION_PER_PAIR * pairs // max(1, free)
        budget = min(state.left, costs.PROJECTION_FEWEST + per_free)
        own = np.arange(problem.m)
        Q = problem.block(own, own, state.gram).astype(np.float64, copy=False)
        state.u[:], state.g[:], steps, _ = on_face(state, own, Q, True, 0.1 * state.target, budget)
        state.n_iter += max(1, steps)
        return True

    def _finish(self, state: State, work: BatchWork) -> bool:
        """A Newton step, if it is time for one."""
        progress, finish = work.progress, work.finish
        if self.finish is None or not state.gram.resident:
            return False
        if not finish.free_set_stable(state) or progress.since_finish < costs.FINISH_EVERY:
            return False
        expected = progress.left(state.target) * progress.pace
        if self.finish == "auto" and not finish.pays(state, expected, progress.work):
            return False
        progress.since_finish = 0
        return self._finish_step(state, work)

    @staticmethod
    def _finish_step(state: State, work: BatchWork) -> bool:
        def product(idx: Index, d: Floats) -> Floats:
            change = np.zeros(state.problem.m)
            if work.shrunk is None:
                state.problem.update(change, idx, d, state.gram)
            else:
                work.shrunk.update(change, idx, d, state)
            return change

        if state.left < 1 or not work.finish.step(state, product):
            return False
        state.n_iter += 1
        return True

    # -- shrinking ------------------------------------------------------------------------------

    def reconstruct(self, state: State, work: BatchWork) -> bool:
        """Update the gradients of the variables that were left out."""
        shrunk, work.shrunk = work.shrunk, None
        if shrunk is None:
            return False
        Shrunk.reconstruct(state)
        work.set.restrict(None)
        work.progress.look_again()
        # Where nothing moved, or those left out came back, shrinking again would do no better.
        least, most = state.problem.extremes(state.u, state.g)
        came_back = float(np.max(most - least)) > costs.SHRINK_BACK * shrunk.began
        work.no_shrinking = work.no_shrinking or state.stuck or came_back
        return True

    def abandon(self, state: State, work: BatchWork) -> None:
        """Return the budget of the cache that was lent to the active variables."""
        shrunk, work.shrunk = work.shrunk, None
        if shrunk is not None:
            state.gram.reopen()

    def _shrink(self, state: State, work: BatchWork) -> None:
        if work.shrunk is not None:
            if np.max(state.most - state.least) > work.shrunk.until:
                return
            self.reconstruct(state, work)
            state.least, state.most = state.problem.extremes(state.u, state.g)
        if work.no_shrinking or work.set.block.needs_cache:
            return
        work.shrunk = Shrunk.of(state, work.progress.left(state.target))
        if work.shrunk is not None:
            work.set.restrict(work.shrunk.active)
