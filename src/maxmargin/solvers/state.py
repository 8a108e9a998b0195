"""When a solver stops, and the variables it works on between two checkpoints."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from maxmargin._types import Floats, Index, Mask, Rows
from maxmargin.dual import Dual


@dataclass(frozen=True)
class Stop:
    """When a solver stops.

    Parameters
    ----------
    tol : float
        Tolerance of the criterion.
    criterion : {"kkt", "gap", "both", "paper"}
        "kkt": the largest KKT violation in LIBSVM's scaling. "gap": ``(primal - dual)/(1 + |primal|)``.
        "both": the violation, and a gap of at most the tolerance or a thousandth of the value, whichever is
        larger (`maxmargin.dual.relative_to_value`). "paper": the solver's own rule.
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
        if self.criterion not in ("kkt", "gap", "both", "paper"):
            raise ValueError(f"criterion must be 'kkt', 'gap', 'both' or 'paper', got {self.criterion!r}.")
        for name in ("max_iter", "max_time"):
            if (value := getattr(self, name)) is not None and not value >= 0:
                raise ValueError(f"{name} must be None or non-negative, got {value!r}.")

    def iterations(self, m: int) -> int:
        """The budget of iterations for m variables; always finite."""
        return max(10_000_000, 100 * m) if self.max_iter is None else self.max_iter


@dataclass(frozen=True)
class Anchor:
    """A point whose gradient is known for all variables."""

    u: Floats
    g: Floats
    objective: float


@dataclass
class State:
    """State of a run, shared by the loop and the solver; see `Solver` for who sets what."""

    problem: Dual
    #: Kernel rows; the loop may replace them by float64 ones.
    gram: Rows
    #: The variables, feasible at every moment (compiled loops change pairs as a whole).
    u: Floats
    #: The gradient at u; between checkpoints a solver may be ahead of it.
    g: Floats
    stop: Stop
    #: The warm start as it was given.
    warm: ArrayLike | None = None
    n_iter: int = 0
    #: Bounds of the errors of the entries of g, as far as they were measured.
    noise: float | Floats = 0.0
    #: The tolerance pursued at present, see `Precision`.
    tol: float = 0.0
    #: The violation to reach for it, in the problem's own scaling.
    target: float = 0.0
    #: Iterations that remain of the budget.
    left: int = 0
    #: Extremes of the groups at the last checkpoint, see `Dual.extremes`.
    least: Floats = field(default_factory=lambda: np.empty(0))
    most: Floats = field(default_factory=lambda: np.empty(0))
    #: Variables that are not zero, at the last checkpoint.
    n_support: int = 0
    #: Set by a solver that cannot improve u in the precision of its rows.
    stuck: bool = False
    #: While it is set, g holds for the active variables only, among them all that have moved since then; the
    #: others are at a bound, with a gradient that keeps them there.
    anchor: Anchor | None = None

    def __post_init__(self) -> None:
        self.tol = self.tol or self.stop.tol
        self._kept_u, self._kept_g = np.empty_like(self.u), np.empty_like(self.g)
        self.keep()

    def keep(self) -> None:
        """Remember this point, if its gradient is known for all variables."""
        if self.anchor is None:
            np.copyto(self._kept_u, self.u)
            np.copyto(self._kept_g, self.g)
            self._kept_rows, self._kept_noise = self.gram, self.noise

    def go_back(self) -> None:
        """End at the point that was last remembered, where what came after cannot be completed."""
        self.u, self.g, self.anchor = self._kept_u, self._kept_g, None
        self.gram, self.noise = self._kept_rows, self._kept_noise  # in whose precision the gradient is

    # -- the point and its gradient, which need not be in this process: see `remote_state` ----------

    def look(self) -> None:
        """Find the extremes of the groups, and count the variables that are not zero."""
        self.least, self.most = self.problem.extremes(self.u, self.g)
        self.n_support = int(np.count_nonzero(self.u))

    def scale(self) -> float:
        """See `Dual.tolerance_scale`."""
        return self.problem.tolerance_scale(self.u, self.g)

    def infeasible(self) -> bool:
        """See `Dual.infeasible`."""
        return self.problem.infeasible(self.u, self.g, self.gram)

    def gradient_at(self, some: Index) -> Floats:
        """The gradient of variables that `violators` has returned, or that are members of a working set."""
        return self.g[some]

    def violators(self, inside: Mask, wanted: int) -> Index:
        """The `wanted` worst violators of either side that are not `inside`."""
        from maxmargin.solvers.violators import worst_violators  # compiled: not at import

        problem = self.problem
        out = np.empty(2 * wanted, np.int64)
        found = worst_violators(
            self.g, self.u, problem.lo, problem.hi, problem.group, inside, self.least, self.most, wanted, out
        )
        return out[:found].astype(np.intp)

    def move(self, idx: Index, delta: Floats, members: Index, keep: Mask) -> None:
        """Move variables and bring the gradient up to date.

        `members` are those whose gradient the solver will ask for, and `keep` marks the moved ones whose
        kernel rows will be needed again.
        """
        self.set_variables(idx, delta)
        self.problem.update(self.g, idx, delta, self.gram, keep)

    def set_variables(self, idx: Index, delta: Floats) -> None:
        """Add `delta` to variables; the gradient is then out of date."""
        # The sum may round past the bound that the inner solver hit exactly.
        self.u[idx] = np.clip(self.u[idx] + delta, self.problem.lo[idx], self.problem.hi[idx])

    def objective(self) -> float:
        """f(u)."""
        if self.anchor is None:
            return self.problem.objective(self.u, self.g)
        # f is quadratic: its change is the step times the mean of the two gradients.
        return self.anchor.objective + 0.5 * float((self.u - self.anchor.u) @ (self.g + self.anchor.g))
