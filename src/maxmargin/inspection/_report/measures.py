"""Numbers of a report: intervals, scores by class, curves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxmargin._types import Floats


def wilson(right: int, n: int) -> tuple[float, float]:
    """Wilson's interval of 95 % for a share of rows.

    Examples
    --------
    >>> from maxmargin.inspection._report.measures import wilson
    >>> [round(end, 3) for end in wilson(90, 100)]
    [0.826, 0.945]
    """
    z = 1.96
    share, shrunk = right / n, 1.0 + z * z / n
    middle = (share + z * z / (2 * n)) / shrunk
    half = z * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5 / shrunk
    return max(0.0, middle - half), min(1.0, middle + half)


def finite_rows(*arrays: Any) -> Any:
    """Which rows are finite in all arrays."""
    return np.logical_and.reduce([np.isfinite(a).reshape(len(a), -1).all(axis=1) for a in arrays])


class Curve(NamedTuple):
    """A ROC curve and the area under it."""

    name: Any
    false: Floats
    true: Floats
    area: float


def roc_curves(y: Any, values: Floats, classes: Any) -> list[Curve]:
    """The ROC curve of the second class of two, or of each class against the others.

    Classes without any row, or with all of them, have no curve.
    """
    from sklearn.metrics import auc, roc_curve

    known = finite_rows(values)
    y, values = y[known], values[known]
    single = values.ndim == 1
    out = []
    for k, name in enumerate(classes[1:] if single else classes):
        is_class = y == name
        if is_class.any() and not is_class.all():
            false, true, _ = roc_curve(is_class, values if single else values[:, k])
            out.append(Curve(name, false, true, float(auc(false, true))))
    return out


class Calibration(NamedTuple):
    """Probabilities beside what happened.

    Attributes
    ----------
    of : str
        Of which event the probabilities are.
    predicted, observed : ndarray
        Mean probability and share of the event, per bin.
    proba : ndarray
        The probabilities.
    brier, log_loss, difference : float
        Brier score, logarithmic loss, and the mean distance of the two per row.
    n_bins : int
        Number of bins.
    """

    of: str
    predicted: Floats
    observed: Floats
    proba: Floats
    brier: float
    log_loss: float
    difference: float
    n_bins: int


def calibration(y: Any, proba: Floats, classes: Any) -> Calibration | None:
    """The calibration curve of the second class of two, or of the most probable class of several."""
    from sklearn.calibration import calibration_curve
    from sklearn.metrics import log_loss

    known = finite_rows(proba)
    y, proba = y[known], proba[known]
    if len(y) < 2:
        return None
    label = np.searchsorted(classes, y)
    hits = np.zeros_like(proba)
    hits[np.arange(len(y)), label] = 1.0
    if len(classes) == 2:
        event, shown, of = label == 1, proba[:, 1], f"of the class {classes[1]}"
        brier = float(np.mean((proba[:, 1] - event) ** 2))
    else:
        best = proba.argmax(axis=1)
        event, shown, of = best == label, proba.max(axis=1), "of the most probable class"
        brier = float(np.mean(((proba - hits) ** 2).sum(axis=1)))
    n_bins = int(np.clip(len(y) // 30, 2, 10))
    observed, predicted = calibration_curve(event, np.clip(shown, 0, 1), n_bins=n_bins, strategy="quantile")
    return Calibration(
        of, predicted, observed, shown, brier, float(log_loss(y, proba, labels=classes)),
        float(np.mean(np.abs(observed - predicted))), len(observed),
    )  # fmt: skip


class ClassScores(NamedTuple):
    """Confusion matrix, and precision, recall and F1 of each class."""

    matrix: Any
    precision: Floats
    recall: Floats
    f1: Floats
    support: Any


def class_scores(y: Any, predicted: Any, classes: Any) -> ClassScores:
    """The scores by class, in the order of `classes`."""
    from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

    matrix = confusion_matrix(y, predicted, labels=classes)
    scores = precision_recall_fscore_support(y, predicted, labels=classes, zero_division=0.0)
    return ClassScores(matrix, *scores)


def regression_scores(y: Floats, predicted: Floats) -> dict[str, float]:
    """R², mean absolute error, root mean squared error, mean and standard deviation of the residuals."""
    error = y - predicted
    around = float(np.sum((y - y.mean()) ** 2))
    return {
        "r2": 1.0 - float(np.sum(error**2)) / around if around > 0 else float("nan"),
        "mean_absolute_error": float(np.abs(error).mean()),
        "root_mean_squared_error": float(np.sqrt(np.mean(error**2))),
        "mean_residual": float(error.mean()),
        "std_of_targets": float(y.std()),
    }
