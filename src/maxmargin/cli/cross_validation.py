"""Cross-validation in the commands: scores that cannot be computed become an error in one line."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from maxmargin.cli.output import BadInput, warn
from maxmargin.cli.training_data import Task

# Beginnings of scikit-learn's warnings about scores; a traceback follows.
_FAILED = ("Scoring failed", "One or more of the test scores are non-finite", "One or more of the train")


def fit_search(search: Any, task: Task) -> None:
    """Run a search; raises `BadInput` if none of its nodes has a score."""
    if search.scoring is None and not hasattr(task.model, "score"):
        raise BadInput(
            f"{type(task.model).__name__} is trained without labels and has no score to compare nodes or "
            "folds by: train it without cross-validation"
        )
    with _collect_score_warnings() as failures:
        search.fit(task.X, *(() if task.y is None else (task.y,)))
    reasons = [text.strip().splitlines()[-1] for text in failures if text.startswith(_FAILED[0])]
    if not np.isfinite(search.cv_results_["mean_test_score"]).any():
        reason = reasons[0] if reasons else "the score of at least one fold of every node is not a number"
        named = f"--scoring {search.scoring}: " if search.scoring is not None else ""
        raise BadInput(f"{named}{reason}")
    if reasons:
        warn(f"some scores could not be computed: {reasons[0]}")


@contextmanager
def _collect_score_warnings() -> Iterator[list[str]]:
    """Collect warnings about scores instead of showing them."""
    collected: list[str] = []
    show = warnings.showwarning

    def collect(
        message: Any, category: Any, filename: Any, lineno: Any, file: Any = None, line: Any = None
    ) -> None:
        if str(message).startswith(_FAILED):
            collected.append(str(message))
        else:
            show(message, category, filename, lineno, file, line)

    warnings.showwarning = collect
    try:
        yield collected
    finally:
        warnings.showwarning = show
