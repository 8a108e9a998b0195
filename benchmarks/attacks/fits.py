"""The part "certificates": one random fit, judged in long double."""

from __future__ import annotations

from typing import Any

import numpy as np

from attacks.judge import Verdict, judge
from attacks.outcome import Outcome, generator, recorded, refused
from attacks.problems import Problem, random_problem

EXACT = 1e-6  # the relative gap up to which the incremental estimators count as exact

#: Seconds of a fit at most: one that converges slowly states its gap then, one that does not end is a fault.
LONGEST = 30.0


def run(seed: int, most: int = 2600) -> Outcome:
    """Fit a random problem and judge it."""
    problem = random_problem(generator("certificates", seed), most)
    outcome = Outcome(problem.difficulty, problem.describe())
    with recorded(outcome) as caught:
        try:
            model, X, y, weight, matrix = fitted(problem, generator("steps", seed))
        except Exception as error:
            refused(outcome, error)
            return outcome
    outcome.answer = getattr(model, "status_", "exact")
    if problem.certified:
        verdicts = check(outcome, model, X, y, weight, matrix)
        meet = type(model).__name__ == "NuSVC" and model.kernel in ("rbf", "laplacian")
        if meet and not caught and any(2 * v.primal <= 1e-15 for v in verdicts):
            outcome.faults.append("the hulls meet (w = 0), and there was no warning")
    return outcome


def fitted(problem: Problem, rng: Any) -> tuple[Any, Any, Any, Any, Any]:
    """The model, and the rows that it has learnt; incremental estimators learn and forget in steps."""
    model = problem.model
    X, y, weight, matrix = problem.X, problem.y, problem.weight, problem.matrix
    if not problem.kind.startswith("Incremental"):
        model.set_params(max_time=LONGEST)
        model.fit(X, y, weight) if y is not None else model.fit(X, sample_weight=weight)
        return model, X, y, weight, matrix
    n = len(y)
    first = int(rng.integers(2, n + 1)) if rng.random() < 0.6 else n
    given = [None if weight is None else weight[:first], None if weight is None else weight[first:]]
    model.fit(X[:first], y[:first], sample_weight=given[0])
    if first < n:
        model.partial_fit(X[first:], y[first:], sample_weight=given[1])
    held = np.arange(n) if weight is None else np.flatnonzero(weight > 0)
    if rng.random() < 0.4 and len(held) > 4:
        gone = np.unique(rng.integers(len(held), size=int(rng.integers(1, len(held) // 2))))
        left = np.delete(held, gone)
        if problem.kind.startswith("IncrementalSVR") or len(np.unique(y[left])) == 2:
            model.forget(gone)
            held = left
    part = None if matrix is None else matrix[np.ix_(held, held)]
    return model, X[held], y[held], None if weight is None else weight[held], part


def check(outcome: Outcome, model: Any, X: Any, y: Any, weight: Any, matrix: Any) -> list[Verdict]:
    """Judge a fitted model."""
    try:
        verdicts = judge(model, X, y, weight, matrix=matrix)
    except AssertionError as error:
        outcome.faults.append(str(error))
        return []
    outcome.checks += len(verdicts)
    for verdict in verdicts:
        outcome.faults += verdict.faults
        outcome.ratio = max(outcome.ratio, verdict.ratio())
        if not hasattr(model, "dual_gap_") and not verdict.faults:
            relative = (verdict.gap - verdict.error) / (1 + abs(verdict.primal))
            if not relative <= EXACT:
                outcome.faults.append(
                    f"not exact: relative gap {relative:.3g} (primal {verdict.primal:.6g}, dual "
                    f"{verdict.dual:.6g}, violation {verdict.violation:.3g})"
                )
    return verdicts
