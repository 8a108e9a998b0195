"""Objectives of fitted models in float64, from their public attributes: the same for every library."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

REGRESSORS = ("SVR", "NuSVR")


def pairs(support: Any, coef: Any, y: Any) -> list[tuple[Any, Any]]:
    """Rows and coefficients of every pair of classes; `coef` is `dual_coef_` as an array."""
    classes, label = np.unique(y, return_inverse=True)
    support = np.asarray(support, dtype=np.intp)
    if len(classes) == 2:
        return [(support, coef[0])]
    found = []
    for a, b in combinations(range(len(classes)), 2):
        of_a, of_b = label[support] == a, label[support] == b
        rows = np.concatenate([support[of_a], support[of_b]])
        found.append((rows, np.concatenate([coef[b - 1, of_a], coef[a, of_b]])))
    return found


def dual_value(estimator: str, X: Any, y: Any, kernel: Any, support: Any, coef: Any, epsilon: float) -> float:
    """The objective that training minimises, summed over the pairs of classes.

    ===========  =====================================================
    SVC          b'Kb / 2 - sum |b|
    NuSVC        b'Kb / 2 with positive coefficients that add up to 1
    SVR          b'Kb / 2 - y'b + epsilon sum |b|
    NuSVR        b'Kb / 2 - y'b
    OneClassSVM  b'Kb / 2
    ===========  =====================================================
    """
    if estimator in ("SVC", "NuSVC"):
        return sum(_pair(estimator, X, kernel, rows, b) for rows, b in pairs(support, coef, y))
    rows, b = np.asarray(support, dtype=np.intp), coef[0]
    value = 0.5 * square(X, kernel, rows, b)
    if estimator in REGRESSORS:
        value -= float(np.asarray(y)[rows] @ b)
    return value + (epsilon * float(np.abs(b).sum()) if estimator == "SVR" else 0.0)


def _pair(estimator: str, X: Any, kernel: Any, rows: Any, b: Any) -> float:
    if estimator == "SVC":
        return 0.5 * square(X, kernel, rows, b) - float(np.abs(b).sum())
    return 0.5 * square(X, kernel, rows, b) / float(b[b > 0].sum()) ** 2


def square(X: Any, kernel: Any, rows: Any, b: Any) -> float:
    """b'Kb of the rows, in float64."""
    from maxmargin.gram.gram import Gram

    if not len(rows):
        return 0.0
    gram = Gram(X, kernel, dtype="float64", cache_bytes=0, index=rows)
    own = np.arange(len(rows))
    with gram.threads:
        return float(b @ gram.exact(own, own, np.asarray(b, dtype=np.float64)))


def hinge_value(X: Any, y: Any, w: Any, C: float) -> float:
    """|w|^2 / 2 + C sum max(0, 1 - y (<w, x> + b)) of two classes -1 and +1, with the best b."""
    scores = np.asarray(X @ w).ravel()
    # The loss is convex and piecewise linear in b, with its kinks where a row is on its margin.
    kinks = y - scores
    order = np.argsort(kinks)
    # Left of all kinks every positive row pays and no negative one does; at a kink the slope rises by 1.
    b = kinks[order[min(len(y) - 1, int(np.count_nonzero(y > 0)))]]
    around = kinks[order[max(0, int(np.count_nonzero(y > 0)) - 1)]]
    losses = [float(np.maximum(0.0, 1.0 - y * (scores + c)).sum()) for c in (b, around)]
    return 0.5 * float(w @ w) + C * min(losses)
