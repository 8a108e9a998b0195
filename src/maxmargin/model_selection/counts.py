"""Nodes that the running jobs of a search have finished, for its progress bar."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray


class JobCounts:
    """The nodes that a job has finished on its folds.

    Parameters
    ----------
    total : int
        Nodes times folds.

    Attributes
    ----------
    training : bool
        Whether the job has the kernel values that it begins with.
    """

    def __init__(self, total: int) -> None:
        self._total, self._single = total, 0
        self._arrays: list[tuple[NDArray[np.int64], float]] = []
        self.training = False

    def add(self) -> None:
        """Count a node that is finished on a fold."""
        self._single += 1

    def follow(self, steps: NDArray[np.int64], weight: float = 1.0) -> None:
        """Count each entry of an array, with a weight, from when a compiled loop sets it to zero or more."""
        self._arrays.append((steps, weight))

    @property
    def finished(self) -> float:
        """Nodes finished so far; those that a second trainer has trained again do not count twice."""
        within = sum(weight * np.count_nonzero(steps >= 0) for steps, weight in list(self._arrays))
        return min(float(self._total), self._single + within)


class Counts:
    """The counts of all jobs that run in this process.

    A pickled object is empty: nodes that are trained in another process are counted with the results of
    their job.
    """

    def __init__(self) -> None:
        self._running: dict[Hashable, JobCounts] = {}

    def __reduce__(self) -> tuple[type[Counts], tuple[()]]:
        return Counts, ()

    def begin(self, job: Hashable, total: int) -> JobCounts:
        """The counts of a job that begins."""
        counts = self._running[job] = JobCounts(total)
        return counts

    def end(self, job: Hashable) -> None:
        """Forget a job, whose results are counted from now on."""
        self._running.pop(job, None)

    @property
    def finished(self) -> float:
        """Nodes that the running jobs have finished."""
        return sum(counts.finished for counts in list(self._running.values()))

    @property
    def preparing(self) -> bool:
        """Whether all running jobs still wait for kernel values."""
        running = list(self._running.values())
        return bool(running) and not any(counts.training for counts in running)
