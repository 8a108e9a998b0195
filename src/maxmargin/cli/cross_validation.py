"""Cross-validation in the commands: scores that cannot be computed become an error in one line."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from maxmargin.cli.output import BadInput, warn
from maxmargin.cli.training_data import Task

# Beginnings of scikit-learn's warnings about scores. A traceback follows that of a scorer.
_NOT_NUMBERS = ("One or more of the test scores are non-finite", "One or more of the train")
_FAILED = ("Scoring failed", *_NOT_NUMBERS)
_SOME_FITS = re.compile(r"\s*\d+ fits failed out of a total")


def fit_search(search: Any, task: Task) -> None:
    """Run a search; raises `BadInput` if none of its nodes has a score."""
    if search.scoring is None and not hasattr(task.model, "score"):
        raise BadInput(
            f"{type(task.model).__name__} is trained without labels and has no score to compare nodes or "
            "folds by: train it without cross-validation"
        )
    task.rehearse()  # of the times that are reported
    with _collect_score_warnings() as failures:
        try:
            search.fit(task.X, *(() if task.y is None else (task.y,)))
        except ValueError as error:
            if not str(error).lstrip().startswith("All the "):
                raise
            raise BadInput(_reason(str(error))) from error
    reasons = [_reason(text) for text in failures if not text.startswith(_NOT_NUMBERS)]
    if not np.isfinite(search.cv_results_["mean_test_score"]).any():
        reason = reasons[0] if reasons else "the score of at least one fold of every node is not a number"
        named = f"--scoring {search.scoring}: " if search.scoring is not None else ""
        raise BadInput(f"{named}{reason}")
    if reasons:
        warn(f"some models could not be trained or scored: {reasons[0]}")


def count_fits(search: Any) -> int:
    """The number of fits that a search has done; all unless it was interrupted."""
    results = search.cv_results_
    if not search.interrupted_:
        return len(results["params"]) * int(search.n_splits_)
    folds = [results[f"split{k}_test_score"] for k in range(search.n_splits_)]
    return int(np.isfinite(folds).sum())


def _reason(text: str) -> str:
    """The message of the exception with which a report of scikit-learn ends."""
    return re.sub(r"^[\w.]+(Error|Exception|Warning): ", "", text.strip().splitlines()[-1])


@contextmanager
def _collect_score_warnings() -> Iterator[list[str]]:
    """Collect warnings about scores and failed fits instead of showing them."""
    collected: list[str] = []
    show = warnings.showwarning

    def collect(
        message: Any, category: Any, filename: Any, lineno: Any, file: Any = None, line: Any = None
    ) -> None:
        if str(message).startswith(_FAILED) or _SOME_FITS.match(str(message)):
            collected.append(str(message))
        else:
            show(message, category, filename, lineno, file, line)

    warnings.showwarning = collect
    try:
        yield collected
    finally:
        warnings.showwarning = show
