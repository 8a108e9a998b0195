"""How training went: fitted attributes, and a warning where the tolerance was not reached."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from maxmargin._compiled.limits import Limit
from maxmargin.solvers.solution import Status, ended
from maxmargin.solvers.solutions import Solutions

ADVICE = {
    Status.MAX_ITER: "the budget of iterations (max_iter) was used up; scale the features (for "
    "example with StandardScaler), lower C or raise max_iter",
    Status.MAX_TIME: "the time budget (max_time) was used up; raise it, loosen tol or lower C",
    Status.STALLED: "no step improves the solution any more at this tolerance; scale the features, "
    "loosen tol, or check that the kernel is positive definite",
    Status.INFEASIBLE: "the classes cannot be separated under this kernel, so there is no hard "
    "margin; use a finite C",
    Status.INTERRUPTED: "it was interrupted; the best solution so far is kept (press again within three "
    "seconds to stop the following fits too)",
}
_WORST_FIRST = (
    Status.INTERRUPTED,
    Status.INFEASIBLE,
    Status.MAX_TIME,
    Status.MAX_ITER,
    Status.STALLED,
)


def report(estimator: Any, solutions: Solutions, not_begun: int = 0, limit: Limit | None = None) -> None:
    """Set the attributes that describe the course of training; warn if a problem was not solved.

    `not_begun` further problems have no solution, as the time was up; `limit` is what ended them. The advice
    of the warning is the estimator's attribute `_advice`.
    """
    estimator.n_kernel_evals_ = int(solutions.column("n_kernel_evals").sum())
    estimator.n_kernel_calls_ = int(solutions.column("n_kernel_calls").sum())
    estimator.status_, estimator.fit_status_ = str(Status.SOLVED), 0
    statuses = solutions.statuses()
    if not not_begun and set(statuses) <= {Status.SOLVED}:
        return
    if not_begun and limit is not None:
        statuses[ended(limit)] += not_begun
    worst = next((s for s in _WORST_FIRST if s in statuses), Status.SOLVED)
    estimator.status_, estimator.fit_status_ = str(worst), int(worst is not Status.SOLVED)
    if worst is not Status.SOLVED:
        total = statuses.total()
        parts = f"{total - statuses[Status.SOLVED]} of {total} {estimator._problems_are}"
        which = parts if total > 1 else "The solver"
        violation = np.inf if not_begun else solutions.column("violation").max()
        warnings.warn(
            f"{which} ended with status {str(worst)!r} (violation {violation:.2g}, tol "
            f"{estimator.tol:g}): {estimator._advice[worst]}.",
            ConvergenceWarning,
            stacklevel=5,  # past the wrappers of fit
        )


def report_folds(estimator: Any, folds: Any, limit: Limit) -> None:
    """Count the kernel values of the folds of probabilities; warn if a limit ended them.

    Folds that used up their iterations do not count, as in scikit-learn: they have values all the same.
    """
    estimator.n_kernel_evals_ += folds.n_kernel_evals
    estimator.n_kernel_calls_ += folds.n_kernel_calls
    short = folds.wanted - folds.solved + folds.ended
    if not short or estimator.fit_status_:  # or the pairs themselves were ended, which was reported
        return
    estimator.status_, estimator.fit_status_ = str(ended(limit)), 1
    warnings.warn(
        f"Training ended with status {estimator.status_!r} before {short} of {folds.wanted} folds for the "
        "probabilities were solved, and these are less accurate: raise max_time, or use probability=False.",
        ConvergenceWarning,
        stacklevel=5,  # past the wrappers of fit
    )
