"""Responses of an estimator over the plane, and the labels of samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_outlier_detector

from maxmargin._types import Floats
from maxmargin.inspection._fitted import last_step


def axis_of(column: Floats, n: int, eps: float) -> Floats:
    """Evenly spaced values over the range of a feature, extended by eps times the range on both sides."""
    margin = eps * float(np.ptp(column)) or 1.0
    return np.linspace(column.min() - margin, column.max() + margin, n)


def response_of(fitted: Any, grid: Any) -> dict[str, Any]:
    """Values of the estimator on the grid, their kind, and the classes."""
    model = last_step(fitted)
    if is_outlier_detector(fitted):
        values = np.asarray(fitted.decision_function(grid), dtype=np.float64)
        return {"response": values, "kind": "one-class", "classes": None}
    classes = getattr(fitted, "classes_", None)
    if classes is None:
        raise TypeError(
            f"A classifier, a regressor or an outlier detector is needed, got {type(model).__name__}."
        )
    if len(classes) == 2 and hasattr(fitted, "decision_function"):
        values = np.asarray(fitted.decision_function(grid), dtype=np.float64)
        # The values of AllDistancesSVC are not scaled to a margin of 1.
        return {
            "response": values, "kind": "margin", "classes": classes, "margins": not hasattr(model, "mu_")
        }  # fmt: skip
    position = np.searchsorted(classes, fitted.predict(grid)).astype(np.float64)
    return {"response": position, "kind": "classes", "classes": classes}


def labels_of(fitted: Any, X: Any, y: Any, kind: str, classes: Any) -> dict[str, Any]:
    """Positions of the samples' labels among the classes, and the names of the classes."""
    if y is None and kind == "one-class":
        outlier = np.asarray(fitted.predict(X)) < 0
        return {"labels": outlier.astype(np.intp), "classes": ["inliers", "outliers"]}
    if y is None:
        return {"classes": list(classes)}
    if classes is None:
        classes, labels = np.unique(y, return_inverse=True)
        return {"labels": labels, "classes": list(classes)}
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(
            f"y has labels that the estimator was not trained with: {', '.join(map(str, unknown[:5]))}."
        )
    return {"labels": np.searchsorted(classes, y), "classes": list(classes)}
