"""The base of all solvers: the calls that a solver supplies, and `Solver.solve`."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from contextlib import ExitStack
from typing import ClassVar, Generic, TypeVar, cast

from numpy.typing import ArrayLike

from maxmargin._compiled.limits import Limit, Stopped, under
from maxmargin._types import Floats, Rows
from maxmargin.dual import Dual
from maxmargin.solvers.interrupt import watch_interrupt
from maxmargin.solvers.loop import Loop, Meter
from maxmargin.solvers.many import Subproblem, Subproblems, solve_each
from maxmargin.solvers.registry import accepting
from maxmargin.solvers.remote_state import state_of
from maxmargin.solvers.solution import Callback, Observer, Solution, not_begun
from maxmargin.solvers.solutions import Solutions
from maxmargin.solvers.state import State, Stop

#: The dataclass in which a solver keeps its own working data during a run.
W = TypeVar("W")


class Solver(ABC, Generic[W]):
    """Base of all solvers: `solve` runs the loop, a subclass supplies the steps.

    A solver object holds parameters only. What it keeps during a run is a dataclass of its own, here
    called `work`, made by `begin` and passed to every later call. The order of calls, and what each sets:

    1. `accepts`: whether the solver can take the problem.
    2. `start`: a feasible point; the loop computes its gradient and makes the `State`.
    3. `begin`: makes `work` from the state.
    4. Until the loop ends: a checkpoint, at which the loop sets ``state.least``, ``state.most``,
       ``state.target`` and ``state.left``, then `advance`, which changes ``state.u``, ``state.g``,
       ``state.n_iter`` and ``state.stuck``.

       - `rows_replaced` comes before an `advance` if ``state.gram`` or ``state.g`` has been replaced by a
         more precise one; it returns the `work` that goes with them.
       - `reconstruct` comes before anything is claimed about all variables: a solver that shrinks brings
         ``state.g`` up to date.
       - `paper_rule` is asked at checkpoints if ``stop.criterion`` is "paper".
    5. `details`: counts for the `Solution`. If an exception or a limit ends the run inside `advance`,
       `abandon` comes first.
    """

    name: ClassVar[str] = ""
    #: The paper or the idea, in one line.
    about: ClassVar[str] = ""

    def accepts(self, problem: Dual) -> bool:
        """Whether this solver can take `problem`."""
        return True

    def start(self, problem: Dual, warm: ArrayLike | None) -> Floats:
        """The feasible point at which a run starts."""
        return problem.start() if warm is None else problem.repair(warm)

    def begin(self, state: State) -> W:
        """The working data of a run; by default none."""
        return cast(W, None)

    def rows_replaced(self, state: State, work: W) -> W:
        """The working data after rows or gradient were replaced by more precise ones; by default new ones."""
        return self.begin(state)

    @abstractmethod
    def advance(self, state: State, work: W) -> None:
        """Improve ``state.u`` for a while, update ``state.g`` and ``state.n_iter``."""

    def reconstruct(self, state: State, work: W) -> bool:
        """Bring ``state.g`` up to date for all variables; whether an update had been postponed."""
        return False

    def details(self, state: State, work: W) -> dict[str, float]:
        """Counts that only this solver has, see `Solution.details`."""
        return {}

    def abandon(self, state: State, work: W) -> None:
        """Release what the solver holds, when an exception or a limit ends the run."""

    def paper_rule(self, state: State, work: W) -> float:
        """The solver's own stopping measure, compared with ``stop.tol``."""
        raise TypeError(
            f"{type(self).__name__} has no stopping rule of its own: use criterion 'kkt' or 'gap'."
        )

    def solve(
        self,
        problem: Dual,
        gram: Rows,
        *,
        warm: ArrayLike | None = None,
        stop: Stop | None = None,
        callback: Callback | None = None,
        interrupt: Limit | None = None,
    ) -> Solution:
        """Minimise the dual `problem` over the kernel rows of `gram`.

        Parameters
        ----------
        problem : Dual
            See `maxmargin.dual`.
        gram : Rows
            The kernel rows.
        warm : array of shape (m,), optional
            Where to start; repaired if infeasible, never modified.
        stop : Stop, optional
            When to stop.
        callback : callable, optional
            Called with a `Record` at each checkpoint; a true answer ends the run.
        interrupt : Limit, optional
            A deadline and a switch shared by several runs, which the caller sets; by default the
            ``max_time`` of `stop` and Ctrl-C during this run only, see `maxmargin.solvers.interrupt`.

        Returns
        -------
        Solution
            With a status; budgets, Ctrl-C and stalls end the run but lose nothing.
        """
        began = time.perf_counter()
        stop = stop or Stop()
        if not self.accepts(problem):
            raise TypeError(
                f"{type(self).__name__} cannot take the problem {problem.name!r}; these solvers "
                f"can: {', '.join(accepting(problem))}."
            )
        with ExitStack() as stack:
            if interrupt is None:
                stack.enter_context(gram.threads)
                limit = stack.enter_context(watch_interrupt(Limit(stop.max_time)))
                stack.enter_context(limit)
            else:
                limit = interrupt
                stack.enter_context(under(limit))
            return self._run(problem, gram, warm, stop, callback, Meter(gram, limit, began))

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
        """Solve problems over rows of one Gram matrix, by whatever engine suits them.

        Parameters
        ----------
        problems : Subproblems
            The problems.
        gram : Rows
            The kernel rows of all of them.
        stop : Stop
            When to stop, for each.
        interrupt : Limit
            A deadline and a switch shared by all.
        observe : callable, optional
            ``observe(name)`` returns the callback of the problem with this name.
        n_jobs : int, optional
            Threads.

        Returns
        -------
        Solutions
            Those by index; problems that had not begun when the time was up are missing.
        """

        def solve(k: int, team: int) -> Solution:
            sub: Subproblem = problems[k]
            rows = gram
            if not problems.whole:
                rows = gram.view(sub.rows, cache_bytes=gram.cache_bytes // team)
            callback = None if observe is None else observe(sub.name)
            return self.solve(
                sub.problem, rows, warm=sub.warm, stop=stop, callback=callback, interrupt=interrupt
            )

        work = float(problems.sizes.max() ** 2) * gram.cost
        return Solutions(solve_each(solve, problems, gram, work, n_jobs, interrupt, in_order=True))

    def _run(
        self,
        problem: Dual,
        gram: Rows,
        warm: ArrayLike | None,
        stop: Stop,
        callback: Callback | None,
        meter: Meter,
    ) -> Solution:
        u = self.start(problem, warm)
        try:
            g = problem.gradient(u, gram)
        except Stopped:
            if warm is not None:  # without it the start may be a point of which the gradient is known
                return self._run(problem, gram, None, Stop(), None, meter)
            return not_begun(u, problem.ridge * u - problem.p, meter.limit, problem.n_groups)
        state = state_of(problem, gram, u, g, stop, warm)
        state.left = stop.iterations(problem.m)
        loop = Loop(self, state, callback, meter)
        try:
            outcome = loop.run()
        except BaseException:
            loop.abandon()
            raise
        return Solution.of(
            problem,
            state.u,
            state.g,
            state.noise,
            outcome.status,
            engine="loop",
            n_iter=state.n_iter,
            n_kernel_calls=meter.calls(state.gram),
            n_kernel_evals=meter.evals(state.gram),
            seconds=meter.seconds,
            trace=outcome.trace,
            details=outcome.details,
        )
