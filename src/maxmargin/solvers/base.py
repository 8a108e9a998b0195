"""What all solvers share: when to stop, what is reported, and the loop around the steps.

A solver supplies `Solver.advance`, a bounded amount of work between two checkpoints. Timing, records,
callbacks, Ctrl-C, the check of rounding errors and the final certificate stand here, once.
"""

from __future__ import annotations

import enum
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.dual import Dual
from maxmargin.solvers.interrupt import Interrupt, watch_interrupt
from maxmargin.solvers.precision import Precision
from maxmargin.solvers.state import State, Stop

Floats = NDArray[np.float64]

# An objective below this has no minimum.
_BOTTOM = -1e100


class Status(enum.StrEnum):
    """How a solution ended."""

    SOLVED = "solved"
    MAX_ITER = "max_iter"
    MAX_TIME = "max_time"
    STALLED = "stalled"
    INFEASIBLE = "infeasible"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Record:
    """The state at one checkpoint; what callbacks receive."""

    n_iter: int
    seconds: float
    violation: float
    objective: float
    n_support: int
    n_kernel_evals: int
    n_kernel_calls: int


@dataclass(frozen=True)
class Solution:
    """A solution and how it was reached.

    Attributes
    ----------
    u : ndarray of shape (m,)
        The variables; always feasible.
    offset : ndarray of shape (n_groups,)
        See `maxmargin.dual.Dual.offset`.
    status : Status
        How it ended.
    gap : float
        A bound of the distance to the optimal value, from the gradient, with an allowance for its `noise`.
    violation, objective : float
        Largest KKT violation (LIBSVM's scaling) and f(u).
    n_iter, n_kernel_calls, n_kernel_evals : int
        Iterations, kernel values used (the papers' kernel operations) and computed. The gradient
        of the start counts.
    seconds : float
        Wall time.
    trace : tuple of Record
        At most a few hundred records.
    gradient : ndarray of shape (m,)
        (A∘K + diag(ridge)) u - p.
    noise : float or ndarray of shape (m,)
        Bounds of the errors of the entries of `gradient`.
    details : dict
        Counts that only this solver has.
    """

    u: Floats
    offset: Floats
    status: Status
    gap: float
    violation: float
    objective: float
    n_iter: int
    n_kernel_calls: int
    n_kernel_evals: int
    seconds: float
    trace: tuple[Record, ...] = field(repr=False)
    gradient: Floats = field(repr=False)
    noise: float | Floats = field(default=0.0, repr=False)
    details: dict[str, float] = field(default_factory=dict, repr=False)


Callback = Callable[[Record], Any]


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
        self, gram: Any, bounds: NDArray[np.intp], problems: Sequence[Dual], stop: Stop
    ) -> Any:
        """A quicker way to solve small problems over segments of `gram`, or None.

        See `maxmargin.solvers.small.SmallMachines`.
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
        interrupt: Interrupt | None = None,
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
        interrupt : Interrupt, optional
            A switch shared by several runs; by default Ctrl-C during this run only.

        Returns
        -------
        Solution
            With a status; budgets, Ctrl-C and stalls end the run but lose nothing.
        """
        stop = stop or Stop()
        if not self.accepts(problem):
            from maxmargin.solvers import accepting

            raise TypeError(
                f"{type(self).__name__} cannot take the problem {problem.name!r}; these solvers "
                f"can: {', '.join(accepting(problem))}."
            )
        if interrupt is None:
            with gram.threads, watch_interrupt() as interrupt:
                return self._run(problem, gram, warm, stop, callback, interrupt)
        return self._run(problem, gram, warm, stop, callback, interrupt)

    def _run(
        self,
        problem: Dual,
        gram: Any,
        warm: ArrayLike | None,
        stop: Stop,
        callback: Callback | None,
        interrupt: Interrupt,
    ) -> Solution:
        began = time.perf_counter()
        evals, calls = gram.n_evals, gram.n_calls
        u, memory = self.start(problem, warm)
        state = State(problem, gram, u, problem.gradient(u, gram), stop, memory=memory)
        state.left = stop.iterations(problem.m)
        try:
            return self._loop(state, callback, interrupt, began, (evals, calls))
        except BaseException:
            self.abandon(state)
            raise

    def _loop(
        self,
        state: State,
        callback: Callback | None,
        interrupt: Interrupt,
        began: float,
        counted: tuple[int, int],
    ) -> Solution:
        problem, stop = state.problem, state.stop
        evals, calls = counted
        self.begin(state)
        precision = Precision(state)
        bounded = _Bounded(state)
        trace = _Trace()
        asked = False  # by a callback, to end
        while True:
            state.least, state.most = problem.extremes(state.u, state.g)
            scale = problem.tolerance_scale(state.u, state.g)
            worst = float(np.max(state.most - state.least))
            violation = worst * scale if worst > 0 else 0.0
            record = Record(
                n_iter=state.n_iter,
                seconds=time.perf_counter() - began,
                violation=violation,
                objective=state.objective(),
                n_support=int(np.count_nonzero(state.u)),
                n_kernel_evals=state.gram.n_evals - evals,
                n_kernel_calls=state.gram.n_calls - calls,
            )
            with_noise = violation
            if np.any(state.noise):
                with_noise = problem.violation(state.u, state.g, state.noise)
            state.target = (state.tol - (with_noise - violation)) / scale
            reached = self._reached(state, scale, with_noise)
            ending = asked or interrupt.pulled or self._used_up(state, record) is not None
            if (reached or ending or state.stuck) and self.settle(state):
                state.stuck = False
                continue  # look again, with nothing put off
            status = self._status(state, record, scale, precision, reached)
            if bounded.fell(record.objective):
                status, violation, record = Status.STALLED, bounded.violation, bounded.record
            else:
                bounded.keep(record, violation)
            if callback is not None and not asked:
                asked = bool(callback(record))
            if status is None and (asked or interrupt.pulled):
                if self.settle(state):
                    continue
                status = Status.INTERRUPTED
            trace.add(record)
            if status is not None:
                break
            if precision.replaced:
                precision.replaced = False
                state.least, state.most = problem.extremes(state.u, state.g)
                self.begin(state)
            state.left = stop.iterations(problem.m) - state.n_iter
            self.advance(state)
        status = _finalised(state, status, precision)
        return Solution(
            u=state.u,
            offset=problem.offset(state.u, state.g),
            status=status,
            gap=float(problem.gap(state.u, state.g, state.noise)),
            violation=problem.violation(state.u, state.g, state.noise),
            objective=problem.objective(state.u, state.g),
            n_iter=state.n_iter,
            n_kernel_calls=state.gram.n_calls - calls,
            n_kernel_evals=state.gram.n_evals - evals,
            seconds=time.perf_counter() - began,
            trace=trace.records(),
            gradient=state.g,
            noise=state.noise,
            details=self.details(state),
        )

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


def _worse_than_nothing(state: State) -> bool:
    """Whether u = 0 is feasible and has a lower objective."""
    problem = state.problem
    zero = not problem.sums.any() and bool((problem.lo <= 0).all() and (problem.hi >= 0).all())
    return zero and problem.objective(state.u, state.g) > 0


def _finalised(state: State, status: Status, precision: Precision) -> Status:
    """Bring a run to its end: variables on their bounds, a gradient whose errors are known, u checked."""
    problem = state.problem
    overflow = not (np.isfinite(state.u).all() and np.isfinite(state.g).all())
    if overflow or (status is not Status.SOLVED and _worse_than_nothing(state)):
        # Rounding led away from the solution: where it started is better.
        state.u = problem.start()
        state.g = problem.gradient(state.u, state.gram)
        status = Status.STALLED if overflow else status
    if status is not Status.SOLVED:
        precision.measure(quickly=status in (Status.MAX_TIME, Status.INTERRUPTED))
    snapped = problem.snap(state.u)
    moved = np.flatnonzero(snapped != state.u)
    if len(moved):
        g = state.g.copy()
        problem.update(g, moved, (snapped - state.u)[moved], state.gram)
        if status is not Status.SOLVED or problem.violation(snapped, g, state.noise) <= state.stop.tol:
            state.u, state.g = snapped, g
    if not problem.feasible(state.u):
        # No engine may do this; if one does, its point is not passed on.
        state.u = problem.repair(state.u)
        state.g = problem.gradient(state.u, state.gram)
        precision.measure(quickly=False)
        return Status.STALLED if status is Status.SOLVED else status
    return status


class _Bounded:
    """Keeps the last point of an unbounded box: with an indefinite kernel there may be no minimum."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._open = not (np.isfinite(state.problem.lo).all() and np.isfinite(state.problem.hi).all())
        self.violation = np.inf

    def keep(self, record: Record, violation: float) -> None:
        if self._open:
            self.record, self.violation = record, violation
            self._u, self._g = self._state.u.copy(), self._state.g.copy()

    def fell(self, objective: float) -> bool:
        """Whether the objective has fallen to where no minimum can be; the last point is put back."""
        if not self._open or objective > _BOTTOM:
            return False
        self._state.u, self._state.g = self._u, self._g
        return True


class _Trace:
    """Keeps every record at first, then every second, every fourth...; the last one always."""

    def __init__(self, most: int = 256) -> None:
        self._kept: list[Record] = []
        self._most, self._stride, self._count = most, 1, 0
        self._last: Record | None = None

    def add(self, record: Record) -> None:
        if self._count % self._stride == 0:
            self._kept.append(record)
            if len(self._kept) > self._most:
                self._kept = self._kept[::2]
                self._stride *= 2
        self._count += 1
        self._last = record

    def records(self) -> tuple[Record, ...]:
        if self._last is not None and self._kept[-1] is not self._last:
            return (*self._kept, self._last)
        return tuple(self._kept)


def with_time_left(stop: Stop, deadline: float | None) -> Stop:
    """The same rule with what is left of a common time budget."""
    if deadline is None:
        return stop
    return replace(stop, max_time=max(0.0, deadline - time.perf_counter()))
