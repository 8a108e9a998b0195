"""The progress bar of a search."""

from __future__ import annotations

import multiprocessing
import sys
import threading
import time
from contextlib import suppress
from typing import Any

import numpy as np

from maxmargin._compiled.limits import Limit
from maxmargin.model_selection.counts import Counts
from maxmargin.model_selection.jobs import Key, Result

# Held by the search whose bar is shown: two bars would draw over each other.
_terminal = threading.Lock()


class ProgressBar:
    """Shows the nodes that are done, the best score so far, the time left and the phase of a search.

    A thread draws it, so that it moves while the search is in compiled code.

    Parameters
    ----------
    wanted : bool or None
        Whether to show it; None: if the search takes half a second or more and runs in a terminal.
    n_candidates, n_splits : int
        Size of the search.
    counts : Counts
        The nodes that running jobs have finished.

    Attributes
    ----------
    limit : Limit or None
        Says whether the user has interrupted the search.
    refitting : bool
        Whether the best estimator is being fitted on all rows.
    """

    # Seconds before it opens, and between two drawings.
    patience, pause = 0.5, 0.2

    def __init__(self, wanted: bool | None, n_candidates: int, n_splits: int, counts: Counts) -> None:
        self._n_splits, self._total, self._counts = n_splits, n_candidates * n_splits, counts
        # A worker process shares the terminal with others.
        here = is_terminal(sys.stderr) and multiprocessing.parent_process() is None
        self._wanted, self._asked = here if wanted is None else wanted, bool(wanted)
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._collected, self._shown, self._best = 0, 0.0, "-"
        self.limit: Limit | None = None
        self.refitting = False

    def __enter__(self) -> ProgressBar:
        if self._wanted:
            self._thread = threading.Thread(target=self._run, name="progress of a search", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:  # no threads available
                self._thread = None
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        if self._thread is not None:
            try:
                self._thread.join()
            except BaseException:  # another Ctrl-C: the thread still has to give the cursor back
                self._thread.join(1.0)
                raise

    def update(self, found: dict[Key, Result]) -> None:
        """Show the results that have been collected."""
        if self._wanted:
            self._best = self._best_of(found)
            self._collected = len(found)

    # -- in the thread -------------------------------------------------------------------------

    def _run(self) -> None:
        began = time.monotonic()
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        ended = self._ended.wait(max(0.0, self.patience - (time.monotonic() - began)))
        if (ended and not self._asked) or not _terminal.acquire(blocking=False):
            return
        try:
            # At most 80 columns. What others print goes above the bar, unless it goes to a file.
            bar = Progress(
                SpinnerColumn("line"), TextColumn("search"), BarColumn(15), MofNCompleteColumn(),
                TextColumn("best {task.fields[best]}"), TimeRemainingColumn(elapsed_when_finished=True),
                TextColumn("{task.fields[phase]}"), console=Console(stderr=True), auto_refresh=False,
                redirect_stdout=is_terminal(sys.stdout), speed_estimate_period=60.0,
            )  # fmt: skip
            with suppress(OSError, ValueError), bar:  # a terminal that was closed does not end the search
                line = bar.add_task("search", total=self._total, best="-", phase="")
                while True:
                    self._draw(bar, line)
                    if ended:
                        return
                    ended = self._ended.wait(self.pause)
        finally:
            _terminal.release()

    def _draw(self, bar: Any, line: Any) -> None:
        # The results of a job are collected a moment after its nodes are counted no more.
        self._shown = max(self._shown, min(self._total, self._collected + self._counts.finished))
        bar.update(line, completed=self._shown, best=self._best, phase=self._phase())
        bar.refresh()

    def _phase(self) -> str:
        interrupted = self.limit is not None and self.limit.pulled
        if self._ended.is_set():
            return "interrupted" if interrupted else ""
        if self.refitting:
            return "refit"
        if interrupted:
            return "stopping"
        if self._shown == self._total:
            return ""
        return "computing distances" if self._counts.preparing else "training"

    def _best_of(self, found: dict[Key, Result]) -> str:
        sums: dict[int, list[float]] = {}
        for (_, node), result in found.items():
            score = result.get("test_scores")
            if isinstance(score, dict):
                score = next(iter(score.values()))
            if isinstance(score, float | int):
                sums.setdefault(node, []).append(float(score))
        whole = [np.mean(v) for v in sums.values() if len(v) == self._n_splits]
        return f"{max(whole):.4f}" if whole else "-"


def is_terminal(stream: Any) -> bool:
    """Whether a stream is a terminal; a program without a console has none."""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # closed
        return False
