"""What all solvers share: when to stop, what is reported, and the loop around the steps.

A solver supplies `Solver.advance`, a bounded amount of work between two checkpoints. Timing, records,
callbacks, Ctrl-C, the check of rounding errors and the final certificate stand here, once.
"""

from __future__ import annotations

import enum
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.dual import Dual

Floats = NDArray[np.float64]


class Status(enum.StrEnum):
    """How a solution ended."""

    SOLVED = "solved"
    MAX_ITER = "max_iter"
    MAX_TIME = "max_time"
    STALLED = "stalled"
    INFEASIBLE = "infeasible"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Stop:
    """When a solver stops.

    Parameters
    ----------
    tol : float
        Tolerance of the criterion.
    criterion : {"kkt", "gap", "paper"}
        "kkt": the largest KKT violation in LIBSVM's scaling. "gap": (primal - dual)/(1 + |primal|).
        "paper": the solver's own rule.
    max_iter : int, optional
        Budget of iterations; by default ``max(10**7, 100 m)`` for m variables.
    max_time : float, optional
        Budget in seconds.

    Examples
    --------
    >>> from maxmargin.solvers import Stop
    >>> Stop(tol=1e-6, criterion="gap")
    Stop(tol=1e-06, criterion='gap', max_iter=None, max_time=None)
    """

    tol: float = 1e-3
    criterion: str = "kkt"
    max_iter: int | None = None
    max_time: float | None = None

    def __post_init__(self) -> None:
        if not self.tol > 0:
            raise ValueError(f"tol must be positive, got {self.tol!r}.")
        if self.criterion not in ("kkt", "gap", "paper"):
            raise ValueError(f"criterion must be 'kkt', 'gap' or 'paper', got {self.criterion!r}.")
        for name in ("max_iter", "max_time"):
            if (value := getattr(self, name)) is not None and not value >= 0:
                raise ValueError(f"{name} must be None or non-negative, got {value!r}.")

    def iterations(self, m: int) -> int:
        """The budget of iterations for m variables; always finite."""
        return max(10_000_000, 100 * m) if self.max_iter is None else self.max_iter


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
        A bound of the distance to the optimal value, from the gradient, with an allowance for the
        rounding of kernel values that was measured in float64.
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


Callback = Callable[[Record], Any]


@dataclass
class State:
    """What a solver works on between checkpoints.

    `u` is feasible at every moment (compiled loops change pairs as a whole), `g` its gradient at
    checkpoints; `least` and `most` are the groups' extremes there (see `Dual.extremes`). `noise` is
    the measured error of the entries of `g`, `target` the violation to reach in the problem's own
    scaling, `left` what remains of the budget of iterations. A solver keeps what else it needs in
    `memory` and sets `stuck` when it cannot improve u in the precision of its rows.
    """

    problem: Dual
    gram: Any
    u: Floats
    g: Floats
    stop: Stop
    n_iter: int = 0
    noise: float = 0.0
    target: float = 0.0
    left: int = 0
    least: Floats = field(default_factory=lambda: np.empty(0))
    most: Floats = field(default_factory=lambda: np.empty(0))
    stuck: bool = False
    memory: dict[str, Any] = field(default_factory=dict)


class Solver(ABC):
    """Base of all solvers: `solve` runs the loop, a subclass supplies `advance`."""

    name: ClassVar[str] = ""
    #: What `maxmargin.solvers.describe` shows: the paper or the idea in one line.
    about: ClassVar[str] = ""

    def accepts(self, problem: Dual) -> bool:
        """Whether this solver can take `problem`."""
        return True

    def begin(self, state: State) -> None:  # noqa: B027  (a solver may have nothing to prepare)
        """Prepare `state.memory`; called at the start and whenever rows or gradient were replaced."""

    @abstractmethod
    def advance(self, state: State) -> None:
        """Improve ``state.u`` for a while, update ``state.g`` and ``state.n_iter``."""

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
        u = problem.start() if warm is None else problem.repair(warm)
        state = State(problem, gram, u, problem.gradient(u, gram), stop)
        state.left = stop.iterations(problem.m)
        self.begin(state)
        precision = _Precision(state)
        trace = _Trace()
        while True:
            state.least, state.most = problem.extremes(state.u, state.g)
            scale = problem.tolerance_scale(state.u, state.g)
            worst = float(np.max(state.most - state.least))
            violation = worst * scale if worst > 0 else 0.0
            record = Record(
                n_iter=state.n_iter,
                seconds=time.perf_counter() - began,
                violation=violation,
                objective=problem.objective(state.u, state.g),
                n_support=int(np.count_nonzero(state.u)),
                n_kernel_evals=state.gram.n_evals - evals,
                n_kernel_calls=state.gram.n_calls - calls,
            )
            trace.add(record)
            status = self._status(state, record, scale, precision)
            if callback is not None and callback(record) and status is None:
                status = Status.INTERRUPTED
            if status is None and interrupt.pulled:
                status = Status.INTERRUPTED
            if status is not None:
                break
            if precision.replaced:
                precision.replaced = False
                state.least, state.most = problem.extremes(state.u, state.g)
                self.begin(state)
            state.left = stop.iterations(problem.m) - state.n_iter
            self.advance(state)
        return Solution(
            u=state.u,
            offset=problem.offset(state.u, state.g),
            status=status,
            gap=float(problem.gap(state.u, state.g, state.noise)),
            violation=violation + (2 * state.noise * scale if state.noise else 0.0),
            objective=record.objective,
            n_iter=state.n_iter,
            n_kernel_calls=state.gram.n_calls - calls,
            n_kernel_evals=state.gram.n_evals - evals,
            seconds=time.perf_counter() - began,
            trace=trace.records(),
            gradient=state.g,
        )

    def _status(self, state: State, record: Record, scale: float, precision: _Precision) -> Status | None:
        """Whether to end here, and how."""
        problem, stop = state.problem, state.stop
        state.target = stop.tol / scale - 2 * state.noise
        if self._reached(state, record.violation, scale):
            if precision.confirmed(self, scale):
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
        if record.n_iter >= stop.iterations(problem.m):
            return Status.MAX_ITER
        if stop.max_time is not None and record.seconds >= stop.max_time:
            return Status.MAX_TIME
        return None

    def _reached(self, state: State, violation: float, scale: float) -> bool:
        problem, stop = state.problem, state.stop
        if stop.criterion == "kkt":
            return bool(np.isfinite(scale)) and violation <= stop.tol - 2 * state.noise * scale
        if stop.criterion == "gap":
            if problem.relative_gap(state.u, state.g, state.noise) <= stop.tol:
                return True
            # The gap asks for a smaller violation than the present one, how small shows only later.
            state.target = min(state.target, 0.1 * violation / scale)
            return False
        return self.paper_rule(state) <= stop.tol


# Entries of the gradient that are recomputed to measure its error.
_SAMPLE = 48


class _Precision:
    """Guards a solution against rounding: of float32 rows above all, of long sums in float64 too.

    The gradient is a sum of many rounded values. When a run believes that it has arrived, entries of
    the gradient are recomputed from float64 kernel values. If they differ too much for the tolerance,
    the entries near the boundary are replaced by exact ones (later changes are small, and so are their
    errors); if that does not last, the rows themselves become float64; then the tolerance is too small.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.replaced = self.hopeless = False
        self._refreshed = 0

    def confirmed(self, solver: Solver, scale: float) -> bool:
        """Whether the solution holds in float64; if not, better numbers are put in place."""
        state = self.state
        allowed = 0.25 * state.stop.tol / scale
        noise = state.gram.value_error * float(np.abs(state.u).sum())
        if noise <= 1e-6 * allowed:
            return True  # float64 rows at an ordinary tolerance
        if noise > allowed:  # what rounding can do at worst; see what it did
            near = self._near(2.0 * allowed)
            noise = self._error(near[:: max(1, len(near) // _SAMPLE)][:_SAMPLE])
        if noise <= allowed:
            state.noise = max(noise, state.noise)
            violation = state.problem.violation(state.u, state.g)
            state.target = state.stop.tol / scale - 2 * state.noise
            return solver._reached(state, violation, scale)
        if self._refreshed < 2:
            self._refreshed += 1
            near = self._near(8.0 * noise)
            state.g[near] = state.problem.exact_gradient(state.u, near, state.gram)
            state.noise = 0.0
            self.replaced = True
        elif not self.raise_():
            self.hopeless = True
        return False

    def raise_(self) -> bool:
        """Go over to float64 rows; False if they are float64 already."""
        state = self.state
        if state.gram.dtype == np.float64:
            return False
        state.gram = state.gram.double()
        state.g = state.problem.gradient(state.u, state.gram)
        state.noise = 0.0
        self._refreshed = 0
        self.replaced = True
        return True

    def _near(self, pad: float) -> NDArray[np.intp]:
        """Variables whose gradient, give or take `pad`, decides about optimality."""
        state, problem = self.state, self.state.problem
        least, most = problem.extremes(state.u, state.g)
        low, high = np.minimum(least, most) - pad, np.maximum(least, most) + pad
        near = (state.g >= low[problem.group]) & (state.g <= high[problem.group])
        return np.flatnonzero(near | ((state.u > problem.lo) & (state.u < problem.hi)))

    def _error(self, some: NDArray[np.intp]) -> float:
        state = self.state
        exact = state.problem.exact_gradient(state.u, some, state.gram)
        return float(np.max(np.abs(exact - state.g[some]), initial=0.0))


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


class Interrupt:
    """A switch that Ctrl-C pulls; shared by all runs of one fit."""

    def __init__(self) -> None:
        self.pulled = False


@contextmanager
def watch_interrupt() -> Iterator[Interrupt]:
    """Turn the first Ctrl-C into a pulled switch; a second one raises KeyboardInterrupt as usual.

    Only the main thread receives signals, and a handler that somebody else installed is respected.
    """
    switch = Interrupt()
    previous = signal.getsignal(signal.SIGINT)
    mine = threading.current_thread() is threading.main_thread() and previous is signal.default_int_handler
    if not mine:
        yield switch
        return

    def pull(number: int, frame: Any) -> None:
        switch.pulled = True
        signal.signal(signal.SIGINT, previous)

    signal.signal(signal.SIGINT, pull)
    try:
        yield switch
    finally:
        signal.signal(signal.SIGINT, previous)


def with_time_left(stop: Stop, deadline: float | None) -> Stop:
    """The same rule with what is left of a common time budget."""
    if deadline is None:
        return stop
    return replace(stop, max_time=max(0.0, deadline - time.perf_counter()))
