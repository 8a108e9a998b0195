"""Rounding of coefficients that a model stores in another scaling than they were solved in.

With huge kernel values (sentinels, high degrees) one more rounding of the coefficients moves the decision
function by more than everything else, so gaps and statuses allow for it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from maxmargin._types import Floats
from maxmargin.dual import Dual
from maxmargin.solvers.solution import Solution, Status


def rounding_of_coefficients(u: Floats, lengths: Floats) -> Floats:
    """Bound the changes of K u if each u is rounded once more, given the samples' lengths in feature space.

    |k(x, z)| is at most the product of the lengths of x and z.
    """
    return 2.0**-52 * lengths * float(np.abs(u) @ lengths)


def as_stored(problem: Dual, solution: Solution, lengths: Floats, tol: float) -> Solution:
    """The solution of a problem whose multipliers are rounded once more when they are stored.

    It is "stalled" if the tolerance `tol` of the estimator does not hold for the stored ones.
    """
    u, g = solution.u, solution.gradient
    noise = solution.noise + rounding_of_coefficients(u, lengths)
    violation = problem.violation(u, g, noise)
    failed = solution.status is Status.SOLVED and violation > tol * problem.tolerance_share
    return replace(
        solution,
        noise=noise,
        gap=problem.gap(u, g, noise) if np.isfinite(solution.gap) else np.inf,
        violation=violation,
        status=Status.STALLED if failed else solution.status,
    )
