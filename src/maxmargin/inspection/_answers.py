"""What an estimator answers over the plane, and how samples are marked for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_outlier_detector

from maxmargin._types import Floats
from maxmargin.inspection._fitted import machine_of


def places_of(column: Floats, n: int, eps: float) -> Floats:
    """Evenly spaced places over the range of a feature and some more."""
    room = eps * float(np.ptp(column)) or 1.0
    return np.linspace(column.min() - room, column.max() + room, n)


def response_of(fitted: Any, grid: Any) -> dict[str, Any]:
    """What the estimator says on the grid, and what kind of answer that is."""
    machine = machine_of(fitted)
    if is_outlier_detector(fitted):
        values = np.asarray(fitted.decision_function(grid), dtype=np.float64)
        return {"response": values, "kind": "one-class", "classes": None}
    classes = getattr(fitted, "classes_", None)
    if classes is None:
        raise TypeError(
            f"A classifier, a regressor or an outlier detector is needed, got {type(machine).__name__}."
        )
    if len(classes) == 2 and hasattr(fitted, "decision_function"):
        values = np.asarray(fitted.decision_function(grid), dtype=np.float64)
        # The values of an All-Distances machine are not scaled to a margin of 1.
        return {
            "response": values, "kind": "margin", "classes": classes, "margins": not hasattr(machine, "mu_")
        }  # fmt: skip
    place = np.searchsorted(classes, fitted.predict(grid)).astype(np.float64)
    return {"response": place, "kind": "classes", "classes": classes}


def labels_of(fitted: Any, X: Any, y: Any, kind: str, classes: Any) -> dict[str, Any]:
    """How samples are marked."""
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
            f"y has labels that the estimator does not know: {', '.join(map(str, unknown[:5]))}."
        )
    return {"labels": np.searchsorted(classes, y), "classes": list(classes)}
