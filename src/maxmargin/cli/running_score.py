"""The score of predictions that come in blocks, without keeping them."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.data.table import as_labels


class RunningScore:
    """Accuracy, R² or D² of the pinball loss, as `maxmargin.cli.models.score` gives them for whole data.

    Only the quantiles of a target need all of its values, 8 bytes for each row.
    """

    def __init__(self, estimator: Any) -> None:
        from sklearn.base import is_classifier, is_outlier_detector, is_regressor

        last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
        self.known = True
        self.n = self.right = 0
        self.mean = self.spread = self.error = 0.0
        self.levels = np.array(getattr(last, "quantiles_", ()), dtype=np.float64)
        self.loss = np.zeros(len(self.levels))
        self.targets: list[Any] = []
        self.regression = is_regressor(estimator)
        self.classes: Any = None
        if self.regression:
            # Of several targets the table has one at most.
            self.known = np.size(last.intercept_) <= max(1, len(self.levels))
        elif is_outlier_detector(estimator):
            self.classes = np.array([-1, 1])
        elif is_classifier(estimator):
            self.classes = np.asarray(estimator.classes_)
        else:
            self.known = False

    def add(self, y: Any, predicted: Any) -> None:
        """Take targets, text or numbers, and their predictions."""
        if not self.known or not len(y):
            return
        if self.regression:
            self._add_numbers(y, predicted)
            return
        if y.dtype.kind == "U" and self.classes.dtype.kind not in "UO":
            y = as_labels(y)
        self.known = set(np.unique(y).tolist()) <= set(self.classes.tolist())
        self.n += len(y)
        self.right += int(np.sum(predicted == y)) if self.known else 0

    def _add_numbers(self, y: Any, predicted: Any) -> None:
        y = as_labels(y) if y.dtype.kind == "U" else y
        self.known = y.dtype.kind in "biuf" and bool(np.isfinite(y).all())
        if not self.known:
            return
        y = y.astype(np.float64)
        mean, n = float(y.mean()), self.n + len(y)
        # Sums of squares of two parts, and of the distance of their means.
        self.spread += float(np.sum((y - mean) ** 2)) + (mean - self.mean) ** 2 * self.n * len(y) / n
        self.mean += (mean - self.mean) * len(y) / n
        self.n = n
        if len(self.levels):
            columns = np.asarray(predicted, dtype=np.float64).reshape(len(y), -1)
            self.loss += [_pinball(y, column, q) for column, q in zip(columns.T, self.levels, strict=True)]
            self.targets.append(y)
        else:
            self.error += float(np.sum((y - np.asarray(predicted).ravel()) ** 2))

    def result(self) -> tuple[str, float] | None:
        """Name and value of the score; None if the target is not of the kind that is predicted."""
        if not self.known or not self.n or (self.regression and self.spread == 0):
            return None
        if not self.regression:
            return "accuracy", self.right / self.n
        if not len(self.levels):
            return "r2", 1.0 - self.error / self.spread
        y = np.concatenate(self.targets)
        constant = [_pinball(y, np.percentile(y, 100 * q), q) for q in self.levels]
        return "d2_pinball", float(np.mean(1.0 - self.loss / constant))


def _pinball(y: Any, predicted: Any, q: float) -> float:
    error = y - predicted
    return float(np.sum(np.maximum(q * error, (q - 1.0) * error)))
