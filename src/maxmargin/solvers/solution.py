"""The result of a run: a point, its certificate, a status, and records of its course."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maxmargin._compiled.limits import Limit
from maxmargin._types import Floats
from maxmargin.dual import Dual, relative_to_value


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
    relative_gap : float
        The same as a fraction of the optimal value, see `maxmargin.dual.relative_to_value`.
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
    engine : str
        How it was computed: "loop" (checkpoints and steps), "whole" (one compiled call, see
        `maxmargin.solvers.batch.whole`), "path" (one compiled call of the C path's engine) or "none".
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
    engine: str = field(default="loop", repr=False)

    @classmethod
    def of(
        cls,
        problem: Dual,
        u: Floats,
        g: Floats,
        noise: float | Floats,
        status: Status,
        *,
        engine: str,
        trace: tuple[Record, ...],
        n_iter: int,
        n_kernel_calls: int,
        n_kernel_evals: int,
        seconds: float,
        details: dict[str, float] | None = None,
    ) -> Solution:
        """The solution with the certificate of `problem` for u and its gradient g, right up to `noise`."""
        return cls(
            u=u,
            offset=problem.offset(u, g),
            status=status,
            gap=float(problem.gap(u, g, noise)),
            violation=problem.violation(u, g, noise),
            objective=problem.objective(u, g),
            n_iter=n_iter,
            n_kernel_calls=n_kernel_calls,
            n_kernel_evals=n_kernel_evals,
            seconds=seconds,
            trace=trace,
            gradient=g,
            noise=noise,
            details=details or {},
            engine=engine,
        )

    @classmethod
    def in_one_call(
        cls, u: Floats, g: Floats, offset: Floats, gap: float, violation: float, noise: float, last: Record
    ) -> Solution:
        """A solution within the tolerance, with the certificate that a compiled call has computed."""
        return cls(
            u=u,
            offset=offset,
            status=Status.SOLVED,
            gap=gap,
            violation=violation,
            objective=last.objective,
            noise=noise,
            n_iter=last.n_iter,
            n_kernel_calls=last.n_kernel_calls,
            n_kernel_evals=last.n_kernel_evals,
            seconds=last.seconds,
            trace=(last,),
            gradient=g,
            engine="whole",
        )

    @property
    def relative_gap(self) -> float:
        """The gap as a fraction of the optimal value."""
        return relative_to_value(self.gap, self.objective)


#: Called with the record of each checkpoint; a true answer ends the run.
Callback = Callable[[Record], Any]
#: Makes the callback of a problem from its name.
Observer = Callable[[str], Callback | None]


def ended(limit: Limit) -> Status:
    """The status of what a limit has ended."""
    return Status.INTERRUPTED if limit.pulled else Status.MAX_TIME


def not_begun(u: Floats, g: Floats, limit: Limit, n_groups: int = 0) -> Solution:
    """A feasible point, for a run whose time was up before the gradient of its start was known.

    `g` is what is known of it: the gradient without the kernel. So nothing bounds the gap.
    """
    return Solution(
        u=u,
        offset=np.zeros(n_groups),
        status=ended(limit),
        gap=np.inf,
        violation=np.inf,
        objective=np.inf,
        n_iter=0,
        n_kernel_calls=0,
        n_kernel_evals=0,
        seconds=0.0,
        trace=(),
        gradient=g,
        engine="none",
    )


class Trace:
    """Keeps every record at first, then every second, every fourth...; the last one always."""

    def __init__(self, most: int = 256) -> None:
        self._kept: list[Record] = []
        self._most, self._stride, self._count = most, 1, 0
        self._last: Record | None = None

    def add(self, record: Record) -> None:
        """One more record."""
        if self._count % self._stride == 0:
            self._kept.append(record)
            if len(self._kept) > self._most:
                self._kept = self._kept[::2]
                self._stride *= 2
        self._count += 1
        self._last = record

    def end(self, record: Record) -> None:
        """The last record of a run that was stopped; one of the same iteration may be there already."""
        if self._last is None or self._last.n_iter != record.n_iter:
            self.add(record)

    def records(self) -> tuple[Record, ...]:
        """Those that were kept."""
        if self._last is not None and self._kept[-1] is not self._last:
            return (*self._kept, self._last)
        return tuple(self._kept)
