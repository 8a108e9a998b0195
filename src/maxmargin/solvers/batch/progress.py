"""The course of the outer iterations of `Batch`: work so far, iterations left, and whether it is stuck."""

from __future__ import annotations

import numpy as np

from maxmargin.dual import widest
from maxmargin.solvers.state import State


class Progress:
    """Detects when outer iterations no longer improve anything, and predicts how many are left.

    Work is counted in nominal seconds, so that decisions do not depend on the clock.
    """

    patience = 30

    def __init__(self) -> None:
        self.idle = 0
        self.recent: list[float] = []
        self.since_finish = 0
        self.pace = self.work = 0.0
        self.look_again()

    def look_again(self) -> None:
        """Forget the best so far: the measure has changed."""
        self.violation = self.objective = np.inf
        self.idle = 0

    def worked(self, seconds: float) -> None:
        """Count the work of an iteration."""
        self.pace = seconds if self.pace == 0 else 0.7 * self.pace + 0.3 * seconds
        self.work += seconds
        self.since_finish += 1

    def left(self, target: float) -> float:
        """Iterations to the target, at the best pace of the last four, eight, sixteen and thirty-two."""
        if len(self.recent) < 9 or not target > 0:
            return 0.0
        spans = [k for k in (4, 8, 16, 32) if k < len(self.recent)]
        pace = max(np.log(self.recent[-1 - k] / self.recent[-1]) / k for k in spans)
        return float(np.log(max(1.0, self.recent[-1] / target)) / max(pace, 0.01))

    def stuck(self, state: State, steps: int, fresh: int) -> bool:
        """Whether nothing moved, or nothing improved for many iterations."""
        if steps == 0 and fresh == 0:
            return True
        violation = widest(state.least, state.most)
        if violation > 0:
            self.recent = [*self.recent[-32:], violation]
        objective = state.objective()
        better = objective < self.objective - 1e-13 * abs(self.objective)
        if violation < 0.99 * self.violation or better or not np.isfinite(self.objective):
            self.idle = 0
        else:
            self.idle += 1
        self.violation = min(self.violation, violation)
        self.objective = min(self.objective, objective)
        return self.idle >= self.patience
