"""The live table of progress that ``verbose`` shows, with a bar for the problem under way."""

from __future__ import annotations

import math
import threading
import time
from types import TracebackType
from typing import Any

from maxmargin.estimators._progress import Course, duration
from maxmargin.solvers.solution import Record, Solution

# The gap is computed once a problem is solved: until then its column is empty.
_TITLES = (
    "problem", "iterations", "violation", "objective", "relative gap", "SVs", "kernel values", "seconds",
)  # fmt: skip


class LiveTable:
    """A table with one line per problem, redrawn in a terminal and printed once at the end elsewhere.

    Parameters
    ----------
    title : str
        Its title.
    tol : float
        The violation at which a problem ends.
    pause : float
        Seconds between two redraws at least.
    """

    def __init__(self, title: str, tol: float, pause: float = 0.2) -> None:
        from rich.console import Console

        self._console = Console()
        self._title, self._tol, self._pause = title, tol, pause
        self._courses: dict[str, Course] = {}
        self._rows: dict[str, Record] = {}
        self._gaps: dict[str, float] = {}
        self._lock = threading.Lock()
        self._drawn = 0.0
        self._live: Any = None

    def __enter__(self) -> LiveTable:
        if self._console.is_terminal:
            from rich.live import Live

            self._live = Live(console=self._console, auto_refresh=False)
            self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            if self._live is not None:
                self._live.update(self._table(), refresh=True)
                self._live.__exit__(kind, error, trace)
            else:
                self._console.print(self._table())

    def update(self, problem: str, record: Record) -> None:
        """Show the latest record of a problem."""
        with self._lock:
            self._rows[problem] = record
            self._courses.setdefault(problem, Course(self._tol)).add(record.violation, record.seconds)
            now = time.monotonic()
            if now - self._drawn < self._pause:
                return
            self._drawn = now
            if self._live is not None:
                from rich.console import Group

                self._live.update(Group(self._table(), self._bar(problem)), refresh=True)

    def _bar(self, problem: str) -> Any:
        """The violation of a problem on a logarithmic scale, and below it the time left."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        course, record = self._courses[problem], self._rows[problem]
        so_far = duration(record.seconds)
        known = math.isfinite(course.left)
        left = f"about {duration(course.left)} left after {so_far}" if known else f"{so_far} so far"
        lines = Table.grid()  # a bar does not end its line
        lines.add_row(ProgressBar(total=1.0, completed=course.share, width=60))
        lines.add_row(f"violation {record.violation:.1e}, ends at {self._tol:g}; {left}")
        return lines

    def end(self, problem: str, solution: Solution) -> None:
        """Show the relative gap at the end of a problem's run."""
        with self._lock:
            self._gaps[problem] = solution.relative_gap

    def _table(self) -> Any:
        from rich import box
        from rich.table import Table

        table = Table(title=self._title, box=box.SIMPLE_HEAD, padding=0)  # fits 80 columns
        for title in _TITLES:
            name = title == "problem"
            table.add_column(title, justify="left" if name else "right", overflow="fold")
        for problem, r in list(self._rows.items())[-20:]:
            table.add_row(
                problem,
                f"{r.n_iter:,}",
                f"{r.violation:.1e}",
                f"{r.objective:.6g}",
                f"{self._gaps[problem]:.1e}" if problem in self._gaps else "",
                f"{r.n_support:,}",
                f"{r.n_kernel_evals:,}",
                f"{r.seconds:.2f}",
            )
        return table
