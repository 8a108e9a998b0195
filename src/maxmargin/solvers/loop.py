"""The loop around a solver's steps: checkpoints, budgets, callbacks, Ctrl-C and rounding, in one place."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from maxmargin._compiled.limits import Limit, Stopped
from maxmargin._types import Rows
from maxmargin.dual import relative_to_value, widest
from maxmargin.solvers import costs
from maxmargin.solvers.finalise import finalised
from maxmargin.solvers.precision import Precision
from maxmargin.solvers.solution import Callback, Record, Status, Trace, ended
from maxmargin.solvers.state import State

# Advances without an iteration after which no further progress is expected.
_IDLE = 100
# An objective below this has no minimum.
_BOTTOM = -1e100
# The relative gap that is small enough, whatever the tolerance, where both measures have to be reached.
_GAP = 1e-3
# Share of the values at hand that an objective may be wrong by.
_WRONG = 1e-3


class Steps(Protocol):
    """The calls of a solver that the loop makes; `maxmargin.solvers.base.Solver` documents them."""

    def begin(self, state: State) -> Any:
        """Make the working data."""

    def rows_replaced(self, state: State, work: Any) -> Any:
        """Make the working data for more precise rows or gradients."""

    def advance(self, state: State, work: Any) -> None:
        """Improve the state for a while."""

    def reconstruct(self, state: State, work: Any) -> bool:
        """Bring the gradient of all variables up to date."""

    def details(self, state: State, work: Any) -> dict[str, float]:
        """Counts of the solver's own."""

    def abandon(self, state: State, work: Any) -> None:
        """Release what the solver holds."""

    def paper_rule(self, state: State, work: Any) -> float:
        """The solver's own stopping measure."""


@dataclass(frozen=True)
class Outcome:
    """How the loop ended.

    Attributes
    ----------
    status : Status
        Why it ended.
    trace : tuple of Record
        Checkpoints.
    details : dict
        Counts that only this solver has.
    """

    status: Status
    trace: tuple[Record, ...]
    details: dict[str, float]


class _Checkpoint(NamedTuple):
    """The state as seen between two advances."""

    record: Record
    #: Factor from differences of gradients to the violation in LIBSVM's scaling.
    scale: float
    #: The violation with the errors of the gradient allowed for.
    violation: float


class Meter:
    """Time and kernel values since the start of one run, and the limit on its time."""

    def __init__(self, gram: Rows, limit: Limit, began: float) -> None:
        self.limit, self._began = limit, began
        self._evals, self._calls = gram.n_evals, gram.n_calls

    @property
    def seconds(self) -> float:
        """Wall time so far."""
        return time.perf_counter() - self._began

    def evals(self, gram: Rows) -> int:
        """Kernel values computed so far."""
        return int(gram.n_evals - self._evals)

    def calls(self, gram: Rows) -> int:
        """Kernel values used so far."""
        return int(gram.n_calls - self._calls)


class Loop:
    """One run of a solver over a state; see `Solver` for the order of calls.

    Parameters
    ----------
    solver : Solver
        Supplies the steps.
    state : State
        The variables and their gradient, changed in place.
    callback : callable, optional
        Called with a `Record` at each checkpoint; a true answer ends the run.
    meter : Meter
        Counts and limits.
    """

    def __init__(self, solver: Steps, state: State, callback: Callback | None, meter: Meter) -> None:
        self.solver, self.state, self.callback, self.meter = solver, state, callback, meter
        self._precision = Precision(state)
        self._trace = Trace()
        self._asked = False  # by the callback, to end
        self._idle = 0  # advances without an iteration
        self._bottom = _bottom(state)
        self._begun = False
        self._work: Any = None

    def run(self) -> Outcome:
        """Advance until there is a reason to end; the state is then final."""
        try:
            if self.meter.limit.over:
                raise Stopped
            self.meter.limit.reserve(self._time_to_finish())
            self._work = self.solver.begin(self.state)
            self._begun = True
            while (status := self._checkpoint()) is None:
                self._advance()
        except Stopped:  # in the middle of an advance: u and g need not belong together
            self.abandon()
            self.state.go_back()
            self._trace.end(self._look().record)
            status = ended(self.meter.limit)
        status = finalised(self.state, status, self._precision)
        details = self.solver.details(self.state, self._work) if self._begun else {}
        self._work = None  # a working set may take 268 MB, and the certificate needs memory too
        return Outcome(status, self._trace.records(), details)

    def abandon(self) -> None:
        """Let the solver release what it holds, when an exception ends the run."""
        if self._begun:
            self.solver.abandon(self.state, self._work)

    def _time_to_finish(self) -> float:
        """Nominal seconds of a last gradient, the certificate and a copy of the data."""
        gram, m = self.state.gram, self.state.problem.m
        data = gram.features
        passes = gram.n * data.width * costs.LAST_PASSES if data is not None else 0.0
        return float(passes + m * costs.LAST_VARIABLE)

    def _checkpoint(self) -> Status | None:
        """Look at the state, with nothing postponed if it ends here; why to end, or None to go on."""
        state, limit = self.state, self.meter.limit
        while True:
            seen = self._look()
            if self._bottom is not None and not seen.record.objective > self._bottom:
                # With a kernel that is indefinite, if only by rounding, there may be no minimum.
                state.go_back()
                self._trace.add(self._look().record)
                return Status.STALLED
            reached = self._reached(state, seen.scale, seen.violation)
            ending = self._asked or limit.over or self._used_up(seen.record) is not None
            if (reached or ending or state.stuck) and self._reconstruct():
                state.stuck = False
                continue
            state.keep()
            status = self._status(seen, reached)
            if self.callback is not None and not self._asked:
                self._asked = bool(self.callback(seen.record))
            if status is None and (self._asked or limit.over):
                if self._reconstruct():
                    continue
                status = Status.INTERRUPTED if self._asked else ended(limit)
            self._trace.add(seen.record)
            return status

    def _advance(self) -> None:
        """Let the solver work until the next checkpoint."""
        state, problem = self.state, self.state.problem
        if self._precision.replaced:
            self._precision.replaced = False
            state.look()
            self._work = self.solver.rows_replaced(state, self._work)
        state.left = state.stop.iterations(problem.m) - state.n_iter
        before = state.n_iter
        self.solver.advance(state, self._work)
        self._idle = self._idle + 1 if state.n_iter == before else 0
        # A run that is out of time may have had no time to move.
        state.stuck = (state.stuck or self._idle >= _IDLE) and not self.meter.limit.over

    def _reconstruct(self) -> bool:
        return self._begun and self.solver.reconstruct(self.state, self._work)

    def _look(self) -> _Checkpoint:
        """A record of the state; sets its extremes and target."""
        state, problem, meter = self.state, self.state.problem, self.meter
        state.look()
        scale = state.scale()
        worst = widest(state.least, state.most)
        record = Record(
            n_iter=state.n_iter,
            seconds=meter.seconds,
            violation=worst * scale if worst > 0 else 0.0,
            objective=state.objective(),
            n_support=state.n_support,
            n_kernel_evals=meter.evals(state.gram),
            n_kernel_calls=meter.calls(state.gram),
        )
        violation = record.violation
        if np.any(state.noise):
            violation = problem.violation(state.u, state.g, state.noise)
        # Without a scale (||W|| is 0, or not even positive) there is no finite violation to aim at.
        lost = violation - record.violation if np.isfinite(record.violation) else 0.0
        state.target = (state.tol - lost) / scale
        return _Checkpoint(record, scale, violation)

    def _status(self, seen: _Checkpoint, reached: bool) -> Status | None:
        """Whether to end here, and how."""
        state = self.state
        if reached:
            if self._precision.confirmed(self._reached, seen.scale):
                return Status.SOLVED
            if self._precision.hopeless:
                return Status.STALLED
            state.stuck = False
        elif state.infeasible():
            return Status.INFEASIBLE
        elif state.stuck:
            # No step is possible in this precision: float64 rows, or the end.
            if not self._precision.raise_():
                return Status.STALLED
            state.stuck = False
        return self._used_up(seen.record)

    def _used_up(self, record: Record) -> Status | None:
        """The status of a budget that is used up."""
        stop = self.state.stop
        if record.n_iter >= stop.iterations(self.state.problem.m):
            return Status.MAX_ITER
        if stop.max_time is not None and record.seconds >= stop.max_time:
            return Status.MAX_TIME
        return None

    def _reached(self, state: State, scale: float, violation: float | None = None) -> bool:
        """Whether the tolerance is reached; `violation` allows for noise, if it is known."""
        problem, stop = state.problem, state.stop
        if stop.criterion == "paper":
            return self.solver.paper_rule(state, self._work) <= stop.tol
        if violation is None:
            violation = problem.violation(state.u, state.g, state.noise)
        if stop.criterion in ("kkt", "both"):
            small = bool(np.isfinite(scale)) and violation <= state.tol
            if not small or stop.criterion == "kkt":
                return small
            gap = problem.gap(state.u, state.g, state.noise)
            if relative_to_value(gap, state.objective()) <= max(state.tol, _GAP):
                return True
        elif problem.relative_gap(state.u, state.g, state.noise) <= state.tol:
            return True
        # The gap needs a smaller violation than the present one; how small shows only later.
        state.target = min(state.target, 0.1 * violation / scale)
        return False


def _bottom(state: State) -> float | None:
    """A value that the objective cannot have, by weak duality at u = 0; None with bounds on all variables."""
    problem = state.problem
    if np.isfinite(problem.lo).all() and np.isfinite(problem.hi).all():
        return None
    if problem.sums.any() or not (problem.ridge > 0).all():  # 0 is not feasible, or w = 0 need not be
        return _BOTTOM
    least = -problem.gap(np.zeros(problem.m), -problem.p)
    return max(_BOTTOM, least - _WRONG * (abs(least) + abs(state.objective())))
