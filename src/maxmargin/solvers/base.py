"""What all solvers share: when to stop, what is reported, and the loop around the steps.

A solver supplies `Solver.advance`, a bounded amount of work between two checkpoints. Timing, records,
callbacks, Ctrl-C, the check of rounding errors and the final certificate stand here, once.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin._compiled.limits import Limit, Stopped, under
from maxmargin._types import Floats
from maxmargin.dual import Dual, widest
from maxmargin.solvers.finalise import finalised
from maxmargin.solvers.interrupt import watch_interrupt
from maxmargin.solvers.precision import Precision
from maxmargin.solvers.registry import accepting
from maxmargin.solvers.solution import Callback, Record, Solution, Status, Trace, ended, not_begun
from maxmargin.solvers.state import State, Stop

# Advances without an iteration after which nothing is expected to come of another.
_IDLE = 100
# An objective below this has no minimum.
_BOTTOM = -1e100


class Solver(ABC):
    """Base of all solvers: `solve` runs the loop, a subclass supplies `advance`."""

    name: ClassVar[str] = ""
    #: The paper or the idea, in one line.
    about: ClassVar[str] = ""

    def accepts(self, problem: Dual) -> bool:
        """Whether this solver can take `problem`."""
        return True

    def start(self, problem: Dual, warm: ArrayLike | None) -> tuple[Floats, dict[str, Any]]:
        """Where a run starts, and what `state.memory` holds then."""
        return problem.start() if warm is None else problem.repair(warm), {}

    def begin(self, state: State) -> None:  # noqa: B027  (a solver may have nothing to prepare)
        """Prepare `state.memory`; called at the start and whenever rows or gradient were replaced."""

    @abstractmethod
    def advance(self, state: State) -> None:
        """Improve ``state.u`` for a while, update ``state.g`` and ``state.n_iter``."""

    def small_machines(
        self, gram: Any, bounds: NDArray[np.intp], problems: Sequence[Dual], stop: Stop, many: bool = False
    ) -> Any:
        """A quicker way to solve small problems over segments of `gram`, or None.

        `problems` are all of them or, if there are `many`, some that the others can be judged by. See
        `maxmargin.solvers.batch.whole.SmallMachines`.
        """
        return None

    def settle(self, state: State) -> bool:
        """Bring ``state.g`` up to date for all variables; whether anything had been put off."""
        return False

    def details(self, state: State) -> dict[str, float]:
        """What else a solver has to tell about a run, see `Solution.details`."""
        return {}

    def abandon(self, state: State) -> None:  # noqa: B027  (a solver may have nothing to give back)
        """Give back what was borrowed, when an exception ends the run."""

    def paper_rule(self, state: State) -> float:
        """The solver's own stopping measure, compared with ``stop.tol``."""
        raise TypeError(
            f"{type(self).__name__} has no stopping rule of its own: use criterion 'kkt' or 'gap'."
        )

    def solve(
        self,
        problem: Dual,
        gram: Any,
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
        gram : Gram or View
            The kernel rows.
        warm : array of shape (m,), optional
            Where to start; repaired if infeasible, never modified.
        stop : Stop, optional
            When to stop.
        callback : callable, optional
            Called with a `Record` at each checkpoint; a true answer ends the run.
        interrupt : Limit, optional
            A deadline and a switch shared by several runs, which somebody else watches; by default the
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
            return self._run(problem, gram, warm, stop, callback, _Run(gram, limit, began))

    def _run(
        self,
        problem: Dual,
        gram: Any,
        warm: ArrayLike | None,
        stop: Stop,
        callback: Callback | None,
        run: _Run,
    ) -> Solution:
        u, memory = self.start(problem, warm)
        try:
            g = problem.gradient(u, gram)
        except Stopped:
            if warm is not None:  # without it the start may be a point of which the gradient is known
                return self._run(problem, gram, None, Stop(), None, run)
            return not_begun(u, problem.ridge * u - problem.p, run.limit, problem.n_groups)
        state = State(problem, gram, u, g, stop, memory=memory)
        state.left = stop.iterations(problem.m)
        try:
            return self._loop(state, callback, run)
        except BaseException:
            self.abandon(state)
            raise

    def _loop(self, state: State, callback: Callback | None, run: _Run) -> Solution:
        problem = state.problem
        precision = Precision(state)
        trace = Trace()
        begun = False
        try:
            if run.limit.over:
                raise Stopped
            self.begin(state)
            begun = True
            status = self._advance_to_the_end(state, precision, trace, callback, run)
        except Stopped:  # in the middle of something: u and g need not belong together
            self.abandon(state)
            state.go_back()
            trace.end(self._look(state, run)[0])
            status = ended(run.limit)
        status = finalised(state, status, precision)
        return Solution(
            u=state.u,
            offset=problem.offset(state.u, state.g),
            status=status,
            gap=float(problem.gap(state.u, state.g, state.noise)),
            violation=problem.violation(state.u, state.g, state.noise),
            objective=problem.objective(state.u, state.g),
            n_iter=state.n_iter,
            n_kernel_calls=run.calls(state.gram),
            n_kernel_evals=run.evals(state.gram),
            seconds=run.seconds,
            trace=trace.records(),
            gradient=state.g,
            noise=state.noise,
            details=self.details(state) if begun else {},
        )

    def _advance_to_the_end(
        self, state: State, precision: Precision, trace: Trace, callback: Callback | None, run: _Run
    ) -> Status:
        """How it ended."""
        problem, stop, limit = state.problem, state.stop, run.limit
        unbounded = not (np.isfinite(problem.lo).all() and np.isfinite(problem.hi).all())
        asked, idle = False, 0  # by a callback, to end; advances without an iteration
        while True:
            record, scale = self._look(state, run)
            if unbounded and not record.objective > _BOTTOM:
                # With an indefinite kernel there may be no minimum.
                state.go_back()
                trace.add(self._look(state, run)[0])
                return Status.STALLED
            with_noise = record.violation
            if np.any(state.noise):
                with_noise = problem.violation(state.u, state.g, state.noise)
            # Without a scale (||W|| is 0, or not even positive) there is no finite violation to aim at.
            lost = with_noise - record.violation if np.isfinite(record.violation) else 0.0
            state.target = (state.tol - lost) / scale
            reached = self._reached(state, scale, with_noise)
            ending = asked or limit.over or self._used_up(state, record) is not None
            if (reached or ending or state.stuck) and self.settle(state):
                state.stuck = False
                continue  # look again, with nothing put off
            state.keep()
            status = self._status(state, record, scale, precision, reached)
            if callback is not None and not asked:
                asked = bool(callback(record))
            if status is None and (asked or limit.over):
                if self.settle(state):
                    continue
                status = Status.INTERRUPTED if asked else ended(run.limit)
            trace.add(record)
            if status is not None:
                return status
            if precision.replaced:
                precision.replaced = False
                state.least, state.most = problem.extremes(state.u, state.g)
                self.begin(state)
            state.left = stop.iterations(problem.m) - state.n_iter
            before = state.n_iter
            self.advance(state)
            idle = idle + 1 if state.n_iter == before else 0
            # What did not move may have had no time to.
            state.stuck = (state.stuck or idle >= _IDLE) and not limit.over

    @staticmethod
    def _look(state: State, run: _Run) -> tuple[Record, float]:
        """A record of the state, and the scale of its violation; sets the extremes."""
        problem = state.problem
        state.least, state.most = problem.extremes(state.u, state.g)
        scale = problem.tolerance_scale(state.u, state.g)
        worst = widest(state.least, state.most)
        record = Record(
            n_iter=state.n_iter,
            seconds=run.seconds,
            violation=worst * scale if worst > 0 else 0.0,
            objective=state.objective(),
            n_support=int(np.count_nonzero(state.u)),
            n_kernel_evals=run.evals(state.gram),
            n_kernel_calls=run.calls(state.gram),
        )
        return record, scale

    def _status(
        self, state: State, record: Record, scale: float, precision: Precision, reached: bool
    ) -> Status | None:
        """Whether to end here, and how."""
        problem = state.problem
        if reached:
            if precision.confirmed(self._reached, scale):
                return Status.SOLVED
            if precision.hopeless:
                return Status.STALLED
            state.stuck = False
        elif problem.infeasible(state.u, state.g, state.gram):
            return Status.INFEASIBLE
        elif state.stuck:
            # Nothing moves in this precision: float64 rows, or the end.
            if not precision.raise_():
                return Status.STALLED
            state.stuck = False
        return self._used_up(state, record)

    @staticmethod
    def _used_up(state: State, record: Record) -> Status | None:
        """Which budget is used up."""
        stop = state.stop
        if record.n_iter >= stop.iterations(state.problem.m):
            return Status.MAX_ITER
        if stop.max_time is not None and record.seconds >= stop.max_time:
            return Status.MAX_TIME
        return None

    def _reached(self, state: State, scale: float, violation: float | None = None) -> bool:
        """Whether the tolerance is reached; `violation` is that with noise, if it is known."""
        problem, stop = state.problem, state.stop
        if stop.criterion == "paper":
            return self.paper_rule(state) <= stop.tol
        if violation is None:
            violation = problem.violation(state.u, state.g, state.noise)
        if stop.criterion == "kkt":
            return bool(np.isfinite(scale)) and violation <= state.tol
        if problem.relative_gap(state.u, state.g, state.noise) <= state.tol:
            return True
        # The gap asks for a smaller violation than the present one, how small shows only later.
        state.target = min(state.target, 0.1 * violation / scale)
        return False


class _Run:
    """What one run is counted from, and when it has to end."""

    def __init__(self, gram: Any, limit: Limit, began: float) -> None:
        self.limit, self._began = limit, began
        self._evals, self._calls = gram.n_evals, gram.n_calls

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    def evals(self, gram: Any) -> int:
        return int(gram.n_evals - self._evals)

    def calls(self, gram: Any) -> int:
        return int(gram.n_calls - self._calls)
