"""How far a fit has come: the violation on a logarithmic scale, and the time that is left at this pace."""

from __future__ import annotations

import math


class Course:
    """The course of one problem, from the violations of its checkpoints.

    Parameters
    ----------
    tol : float
        The violation at which it ends.

    Examples
    --------
    >>> from maxmargin.estimators._progress import Course
    >>> course = Course(tol=1e-3)
    >>> for seconds, violation in enumerate([1.0, 0.1, 0.01]):
    ...     course.add(violation, float(seconds))
    >>> round(course.share, 2), round(course.left, 1)
    (0.67, 1.0)
    """

    def __init__(self, tol: float) -> None:
        self.tol = tol
        self.share = 0.0
        self._first = 0.0
        self._points: list[tuple[float, float]] = []  # share, seconds: whenever the share rose

    def add(self, violation: float, seconds: float) -> None:
        """One more checkpoint."""
        if not math.isfinite(violation):
            return
        self._first = max(self._first, violation)
        if self._first <= self.tol:
            share = 1.0
        else:
            share = math.log(self._first / max(violation, self.tol)) / math.log(self._first / self.tol)
        if share > self.share or not self._points:
            self.share = max(self.share, share)
            self._points.append((self.share, seconds))

    @property
    def left(self) -> float:
        """Seconds that are left at the pace of the second half of what was done; infinite if unknown."""
        if not self._points or self.share <= 0.0:
            return math.inf
        last = self._points[-1]
        half = next(point for point in self._points if point[0] >= 0.5 * last[0])
        begun = half if half[0] < last[0] else (0.0, 0.0)
        return (1.0 - last[0]) * (last[1] - begun[1]) / (last[0] - begun[0])


def duration(seconds: float) -> str:
    """Seconds in words.

    Examples
    --------
    >>> from maxmargin.estimators._progress import duration
    >>> duration(7.2), duration(312.0), duration(float("inf"))
    ('7 s', '5 min 12 s', 'unknown')
    """
    if not math.isfinite(seconds):
        return "unknown"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
