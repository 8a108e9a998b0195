"""Measures that are computed for all values of C at once: accuracy of two classes, R^2, squared error."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, mean_squared_error, r2_score

from maxmargin._sklearn import is_default_score, scorer_parts
from maxmargin._types import Floats


def is_accuracy(scorer: Any, estimator: Any) -> bool:
    """Whether a scorer of one metric is the share of right predictions, without weights."""
    if is_default_score(scorer):
        return getattr(type(estimator), "score", None) is ClassifierMixin.score
    return scorer_parts(scorer) == (accuracy_score, 1, {})


def regression_measure(scorer: Any, estimator: Any) -> str | None:
    """Which of "r2" and "mse" a scorer of one metric is, without weights; None if it is another."""
    if is_default_score(scorer):
        return "r2" if getattr(type(estimator), "score", None) is RegressorMixin.score else None
    parts = scorer_parts(scorer)
    if parts == (r2_score, 1, {}):
        return "r2"
    return "mse" if parts == (mean_squared_error, -1, {}) else None


def regression_scores(measure: str, values: NDArray[Any], targets: NDArray[Any]) -> NDArray[Any] | None:
    """The scores of several predictions, one per row; None where R^2 is not defined."""
    squares = np.square(values - targets).sum(axis=1)
    if measure == "mse":
        return -squares / len(targets)
    spread = float(np.square(targets - targets.mean()).sum())
    return 1.0 - squares / spread if spread > 0 and len(targets) > 1 else None


def two_class_shares(values: Floats, labels: NDArray[Any], classes: NDArray[Any]) -> Floats:
    """Of two classes, for every row of decision values the share of samples that get the right class."""
    right = np.where(values >= 0, labels == classes[1], labels == classes[0])
    return np.count_nonzero(right, axis=1) / right.shape[1]


def class_shares(winners: NDArray[np.intp], labels: NDArray[Any], classes: NDArray[Any]) -> Floats:
    """For every row of class numbers the share of samples that get the right class."""
    right = classes[winners] == labels
    return np.count_nonzero(right, axis=1) / right.shape[1]


def share(right: Any) -> float:
    """The mean of truth values."""
    return float(np.count_nonzero(right)) / len(right)
