"""The seconds that the optional parts of a report may take."""

from __future__ import annotations

import math
import time
from typing import Any

from sklearn.base import clone

from maxmargin.inspection._fitted import last_step


class Budget:
    """Seconds that remain.

    Parameters
    ----------
    seconds : float
        All that there are.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.perf_counter() + seconds

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._end - time.perf_counter())

    def part(self, share: float) -> Budget:
        """A share of what is left."""
        return Budget(share * self.left)


def untrained(fitted: Any, budget: Budget) -> Any:
    """A clone of a model, whose fits end with the budget where the estimator has a limit of time."""
    copied = clone(fitted)
    last = last_step(copied)
    params = last.get_params(deep=False)
    if "max_time" in params:
        limits = [limit for limit in (params["max_time"], budget.left) if limit is not None]
        least = min(limits)
        last.set_params(max_time=least if least < math.inf else None)
    if "verbose" in params:
        last.set_params(verbose=False)
    return copied
