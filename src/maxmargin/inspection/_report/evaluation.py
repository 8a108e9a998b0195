"""Predictions that a report is about, and the rows that they belong to.

New rows are predicted by the model itself. Training rows would look too good: for them a tuner has the
predictions of held-out rows, and otherwise models with the same parameters are trained without each fold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._sklearn import num_samples, safe_indexing
from maxmargin._types import Floats
from maxmargin.inspection._report.budget import Budget
from maxmargin.inspection._report.folds import (
    MOST_ROWS,
    NoFolds,
    predict_folds,
    proba_of,
    rows_for,
    splits_for,
    values_of,
)
from maxmargin.inspection._report.origin import Origin
from maxmargin.inspection._report.subject import CLASSES, NUMBERS, OUTLIERS, Subject


@dataclass
class Sample:
    """Rows with what is predicted for them.

    Attributes
    ----------
    rows : str
        Which rows these are, in words.
    kind : str
        "new", "held-out" or "training".
    y, predicted, values, proba : ndarray or None
        Targets, predictions, decision values and probabilities.
    """

    rows: str
    kind: str
    y: Any
    predicted: Any
    values: Floats | None = None
    proba: Floats | None = None


@dataclass
class Evaluation:
    """Everything that is known about the predictions.

    Attributes
    ----------
    predictions : Sample
        For the score, the confusion matrix and residuals.
    values : Sample
        For ROC and calibration curves; the rows may be fewer.
    model, X, y : object
        A model and rows that it was not trained on, to measure the importance of features.
    tested : str
        Which rows and model these are, in words.
    caution : str
        A sentence, if rows are predicted that have trained the model; otherwise empty.
    """

    predictions: Sample
    values: Sample
    model: Any
    X: Any
    y: Any
    tested: str
    caution: str = ""


def evaluate(subject: Subject, X: Any, y: Any, origin: Origin, budget: Budget, seed: int) -> Evaluation:
    """Predictions of rows that the predicting model has not seen, where that is possible."""
    n = num_samples(X)
    if not origin.trained:
        rows = f"All {n:,} given rows, predicted by the model itself."
        sample = _direct(subject, X, y, rows, "new")
        return Evaluation(sample, sample, subject.fitted, X, y, "Given rows, with the model itself")
    try:
        if subject.precomputed:
            raise NoFolds("rows of a precomputed kernel cannot be divided into folds here")
        folds, sample = _held_out(subject, X, y, budget, seed)
    except NoFolds as reason:
        rows = f"All {n:,} training rows, predicted by the model that they have trained."
        caution = f"Training rows were predicted by their own model, which looks too good, as {reason}."
        sample = _direct(subject, X, y, rows, "training")
        whole = Evaluation(
            sample, sample, subject.fitted, X, y, "Training rows, with the model itself", caution
        )
    else:
        test = folds.test
        whole = Evaluation(
            sample,
            sample,
            folds.model,
            safe_indexing(X, test),
            None if y is None else y[test],
            "Rows of one fold, with a model of the same parameters that was trained without them",
        )
    kept = _kept_by_tuner(subject, y, origin)
    if kept is not None:
        whole.predictions = kept
        if whole.values.kind == "held-out":
            whole.caution = ""
    return whole


def _direct(subject: Subject, X: Any, y: Any, rows: str, kind: str) -> Sample:
    """Predictions of the model itself."""
    return Sample(
        rows,
        kind,
        y,
        subject.fitted.predict(X),
        None if subject.task == NUMBERS else values_of(subject.fitted, X),
        proba_of(subject.fitted, X) if subject.task == CLASSES else None,
    )


def _held_out(subject: Subject, X: Any, y: Any, budget: Budget, seed: int) -> tuple[Any, Sample]:
    """Predictions of each fold by a model that was trained without it."""
    from maxmargin.model_selection.tuning.stages import splits_of

    n = num_samples(X)
    splits = splits_for(subject, X, y, seed, trained=True)
    rows = rows_for(subject, X, y, len(splits), MOST_ROWS, budget.part(0.6), seed)
    if len(rows) < n:
        splits = splits_of(splits, rows, n)
    if not splits:
        raise NoFolds("no fold has rows")
    part, of_part = (X, y) if len(rows) == n else (safe_indexing(X, rows), None if y is None else y[rows])
    folds = predict_folds(subject, part, of_part, splits, budget)
    which = (
        f"{len(folds.rows):,} of the {n:,} training rows"
        if len(folds.rows) < n
        else f"All {n:,} training rows"
    )
    text = (
        f"{which}, each predicted by a model with the same parameters that was trained without its fold "
        f"({folds.n_splits} folds)."
    )
    folds.test = rows[folds.test]
    sample = Sample(
        text,
        "held-out",
        None if y is None else y[rows[folds.rows]],
        folds.predicted,
        folds.values if subject.task != NUMBERS else None,
        folds.proba if subject.task == CLASSES else None,
    )
    return folds, sample


def _kept_by_tuner(subject: Subject, y: Any, origin: Origin) -> Sample | None:
    """The held-out predictions that a tuner has kept, if the rows are those that it was given."""
    predicted = getattr(subject.given, "held_out_predictions_", None)
    at = getattr(subject.given, "held_out_rows_", None)
    if predicted is None or at is None or not origin.in_order or len(at) != len(predicted):
        return None
    if subject.task == OUTLIERS and (y is None or not set(np.unique(predicted).tolist()) <= {-1, 1}):
        return None
    n = len(y)
    which = f"{len(at):,} of the {n:,} training rows" if len(at) < n else f"All {n:,} training rows"
    text = (
        f"{which}, each predicted while it was held out: these are the predictions by which the tuner has "
        f"chosen the parameters ({subject.given.n_splits_} folds). The choice makes them look slightly "
        "better than new rows would."
    )
    return Sample(text, "held-out", y[np.asarray(at)], np.asarray(predicted))
