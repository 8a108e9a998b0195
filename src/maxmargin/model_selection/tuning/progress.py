"""The progress line of a tuner."""

from __future__ import annotations

import multiprocessing
import sys
import threading
from contextlib import suppress
from typing import Any

from maxmargin._compiled.limits import Limit
from maxmargin.model_selection.progress import is_terminal


class TunerProgress:
    """Shows the stage, the combinations tried, and the best of them, on one line of the standard error.

    A thread draws it, so that it moves while compiled code runs.

    Parameters
    ----------
    wanted : bool or None
        Whether to show it; None: if tuning takes half a second or more and runs in a terminal.
    verbose : int
        Whether each combination is printed, instead of the line.
    limit : Limit
        Says whether the user has interrupted the tuning.
    """

    # Seconds before it opens, and between two drawings.
    patience, pause = 0.5, 0.2

    def __init__(self, wanted: bool | None, verbose: int, limit: Limit) -> None:
        here = is_terminal(sys.stderr) and multiprocessing.parent_process() is None
        self._wanted, self._verbose, self._limit = (here if wanted is None else wanted), verbose, limit
        self._wanted = self._wanted and not verbose
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._count, self._text = 0, ""
        self.phase = ""

    def __enter__(self) -> TunerProgress:
        if self._wanted:
            self._thread = threading.Thread(target=self._run, name="progress of a tuner", daemon=True)
            with suppress(RuntimeError):  # no threads available
                self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join(1.0)

    def update(self, tried: Any, best: float) -> None:
        """A combination was tried; `best` is the best score of its stage."""
        self._count += 1
        rows = f"stage {tried.stage} ({tried.n_rows:,} rows)"
        self._text = f"{rows}  {self._count} tried  best {best:.4f}"
        if self._verbose:
            numbers = ", ".join(
                f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in tried.params.items()
            )
            print(f"[SVM tuning] {rows}: {numbers}: {tried.score:.4f}")

    def _run(self) -> None:
        if self._ended.wait(self.patience):
            return
        from rich.console import Console

        # A terminal that was closed does not end the tuning.
        with suppress(OSError, ValueError), Console(stderr=True).status("tuning") as status:
            while not self._ended.wait(self.pause):
                phase = "stopping" if self._limit.pulled else self.phase
                status.update(f"tuning  {self._text}  {phase}")
