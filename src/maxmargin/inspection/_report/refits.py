"""Parts of a report that train or predict many times: learning curve and importance of features."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import get_scorer

from maxmargin._sklearn import num_samples, safe_indexing
from maxmargin._types import Floats
from maxmargin.inspection._report.budget import Budget, untrained
from maxmargin.inspection._report.evaluation import Evaluation
from maxmargin.inspection._report.folds import NoFolds, rows_for, splits_for
from maxmargin.inspection._report.origin import Origin
from maxmargin.inspection._report.subject import OUTLIERS, Subject

# Rows of the learning curve and of permutations, at most.
_CURVE_ROWS, _PERMUTED_ROWS = 3_000, 1_000
# Parts of the rows that the learning curve trains on.
_PARTS = (0.1, 0.2, 0.4, 0.7, 1.0)
_REPEATS = 5
# More features than these are not permuted, and of those that are so many are shown.
_MOST_FEATURES = 100
SHOWN_FEATURES = 20
# Time of a fit with more rows, relative to the ratio of the rows: its exponent.
_GROWTH = 2.0


class Skipped(NamedTuple):
    """A part that is left out, and a sentence that says why."""

    reason: str


class LearningCurve(NamedTuple):
    """Scores by the number of training rows; `note` is a sentence on rows that were left out."""

    sizes: Any
    test: Floats
    train: Floats
    rows: str
    score: str
    note: str

    def means(self) -> tuple[Floats, Floats]:
        """Mean scores of held-out rows and of training rows; NaN where no fold has a score."""
        return _mean(self.test), _mean(self.train)


class Importance(NamedTuple):
    """The loss of score if the values of a feature are permuted, the largest first."""

    names: list[str]
    mean: Floats
    std: Floats
    rows: str
    score: str
    n_features: int


def scoring_for(subject: Subject, model: Any, X: Any, y: Any) -> tuple[Any, str]:
    """A scorer that can score a clone without a calibrator, and its name."""
    if subject.task == OUTLIERS and not isinstance(getattr(subject.given, "scoring", None), str):
        return get_scorer("roc_auc"), "ROC area"
    if subject.scorer is None:
        return None, subject.score_name
    try:
        found = float(subject.scorer(model, X, y))
    except (ValueError, AttributeError, TypeError):
        return None, Subject(subject.fitted, subject.fitted, subject.last, subject.task).score_name
    return (subject.scorer, subject.score_name) if np.isfinite(found) else (None, subject.score_name)


def learning_curve(
    subject: Subject, X: Any, y: Any, whole: Evaluation, origin: Origin, budget: Budget, seed: int
) -> LearningCurve | Skipped:
    """Scores of models with the same parameters that were trained on more and more rows."""
    from sklearn.model_selection import learning_curve as of_sklearn

    from maxmargin.model_selection.tuning.stages import splits_of

    reason = _no_labels(subject, y)
    if reason is None and subject.precomputed:
        reason = "The rows of a precomputed kernel cannot be divided here."
    if reason is not None:
        return Skipped(reason)
    n = num_samples(X)
    try:
        splits = splits_for(subject, X, y, seed, origin.trained)
        rows = rows_for(subject, X, y, 2 * len(splits), _CURVE_ROWS, budget, seed)
    except (NoFolds, ValueError) as error:
        return Skipped(f"Left out, as {str(error).rstrip('.')}.")
    if len(rows) < n:
        X, y, splits = safe_indexing(X, rows), y[rows], splits_of(splits, rows, n)
    scoring, name = scoring_for(subject, whole.model, whole.X, whole.y)
    least = len(splits[0][0])
    sizes = np.unique([max(2, round(least * part)) for part in _PARTS])
    found: list[tuple[int, float, float]] = []
    note = ""
    seconds, before = 0.0, 0
    for size in sizes.tolist():
        if before and seconds * (size / before) ** _GROWTH > budget.left:
            note = f"Larger parts, up to {sizes[-1]:,} rows, were left out for their time (max_time)."
            break
        began = time.perf_counter()
        try:
            _, train, test = of_sklearn(
                untrained(subject.fitted, budget), X, y, train_sizes=[size], cv=splits, scoring=scoring,
                shuffle=True, random_state=seed, error_score=np.nan,
            )  # fmt: skip
        except ValueError:  # no fold can be trained, as with rows of a single class
            return Skipped("Left out, as parts of the rows cannot be trained on.")
        seconds, before = time.perf_counter() - began, size
        if budget.left <= 0:
            note = f"Larger parts, up to {sizes[-1]:,} rows, were left out for their time (max_time)."
            break
        if np.isfinite(test).any():
            found.append((size, test[0], train[0]))
    if len(found) < 2:
        too_few = "Left out, as the rows are too few to train on parts of them."
        return Skipped(f"Left out. {note}" if note else too_few)
    of = "training rows" if origin.trained else "given rows, as the model does not keep its training rows"
    text = f"Parts of {len(rows):,} {of}; scores are those of {len(splits)} held-out folds."
    if len(rows) < n:
        text = f"Parts of {len(rows):,} of the {n:,} {of}; scores are those of {len(splits)} held-out folds."
    return LearningCurve(
        np.array([size for size, _, _ in found]),
        np.array([test for _, test, _ in found]),
        np.array([train for _, _, train in found]),
        text,
        name,
        note,
    )


def importance(
    subject: Subject, names: list[str], whole: Evaluation, budget: Budget, seed: int
) -> Importance | Skipped:
    """How much each feature matters, by permuting its values."""
    from sklearn.inspection import permutation_importance

    X, y = whole.X, whole.y
    reason = _no_labels(subject, y)
    d = X.shape[1]
    if reason is None and subject.precomputed:
        reason = "A precomputed kernel has no features to permute."
    if reason is None and sp.issparse(X):
        reason = "Features of sparse data are not permuted, as their permutation would make the data dense."
    if reason is None and d > _MOST_FEATURES:
        reason = f"Single features of {d:,} matter little: at most {_MOST_FEATURES} are permuted one by one."
    if reason is not None:
        return Skipped(reason)
    rng = np.random.default_rng(seed)
    n = num_samples(X)
    rows = np.sort(rng.permutation(n)[:_PERMUTED_ROWS])
    part, of_part = safe_indexing(X, rows), y[rows]
    scoring, name = scoring_for(subject, whole.model, part, of_part)
    began = time.perf_counter()
    whole.model.predict(part)
    seconds = (time.perf_counter() - began) * d * _REPEATS
    if seconds > budget.left:
        return Skipped(
            f"Left out, as {d * _REPEATS:,} predictions would take some {seconds:.0f} s (max_time)."
        )
    try:
        found = permutation_importance(
            whole.model, part, of_part, scoring=scoring, n_repeats=_REPEATS, random_state=seed,
            max_samples=1.0,
        )  # fmt: skip
    except ValueError as error:
        return Skipped(f"Left out, as the score cannot be computed ({str(error).rstrip('.')}).")
    if not np.isfinite(found.importances_mean).all():
        return Skipped("Left out, as the score of these rows is not defined.")
    order = np.argsort(-found.importances_mean, kind="stable")[:SHOWN_FEATURES]
    text = f"{whole.tested}: {len(rows):,} rows, each feature permuted {_REPEATS} times."
    return Importance(
        [names[k] for k in order], found.importances_mean[order], found.importances_std[order], text, name, d
    )


def _mean(values: Floats) -> Floats:
    known = np.isfinite(values)
    total = np.where(known, values, 0.0).sum(axis=1)
    return np.where(known.any(axis=1), total / np.maximum(known.sum(axis=1), 1), np.nan)


def _no_labels(subject: Subject, y: Any) -> str | None:
    """Why there is no score; None if there is one."""
    if subject.task != OUTLIERS:
        return None
    if y is None:
        return "Without labels there is no score: give y, 1 for inliers and -1 for outliers."
    return None if len(np.unique(y)) == 2 else "All rows have the same label, so there is no score."
