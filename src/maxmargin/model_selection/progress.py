"""The progress bar of a search."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from maxmargin.model_selection.jobs import Key, Result


class ProgressBar:
    """Shows the nodes that are done, the best score so far and the time left.

    Parameters
    ----------
    wanted : bool or None
        Whether to show it; None: if the search takes long and runs in a terminal.
    n_candidates, n_splits : int
        Size of the search.
    """

    # Seconds after which a search is long.
    patience = 3.0

    def __init__(self, wanted: bool | None, n_candidates: int, n_splits: int) -> None:
        self._wanted, self._n_splits = wanted, n_splits
        self._total = n_candidates * n_splits
        self._began = time.monotonic()
        self._bar: Any = None
        self._line: Any = None

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, found: dict[Key, Result]) -> None:
        """Show how far the search has come."""
        if self._wanted is False or (self._wanted is None and time.monotonic() - self._began < self.patience):
            return
        if self._bar is None and not self._open():
            return
        self._bar.update(self._line, completed=len(found), best=self._best(found))

    def _open(self) -> bool:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        if not console.is_terminal and not self._wanted:
            self._wanted = False
            return False
        self._bar = Progress(
            TextColumn("search"), BarColumn(), MofNCompleteColumn(), TextColumn("best {task.fields[best]}"),
            TimeRemainingColumn(), console=console,
        )  # fmt: skip
        self._bar.start()
        self._line = self._bar.add_task("search", total=self._total, best="")
        return True

    def _best(self, found: dict[Key, Result]) -> str:
        sums: dict[int, list[float]] = {}
        for (_, node), result in list(found.items()):
            score = result.get("test_scores")
            if isinstance(score, dict):
                score = next(iter(score.values()))
            if isinstance(score, float | int):
                sums.setdefault(node, []).append(float(score))
        whole = [np.mean(v) for v in sums.values() if len(v) == self._n_splits]
        return f"{max(whole):.4f}" if whole else "-"
