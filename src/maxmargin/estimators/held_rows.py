"""The state of a classifier that learns and forgets rows: the rows, their labels and gamma."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from maxmargin._types import Floats


@dataclass(frozen=True, eq=False)
class HeldRows:
    """The rows of an `IncrementalSVC` in the order of their arrival, and the solution for them.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, n_features)
        The rows.
    y : ndarray of shape (n,)
        Their sides, -1 and 1.
    ridge : ndarray of shape (n,)
        1 / (2 C weight) of each row.
    u : ndarray of shape (n,)
        Multipliers, with the signs of the sides.
    labels : ndarray of shape (1,) or (2,)
        The labels of side -1 and side 1.
    gamma : float
        The kernel coefficient in use.
    intercept : float
        The constant of the decision function.
    """

    X: Any
    y: Floats
    ridge: Floats
    u: Floats
    labels: NDArray[Any]
    gamma: float
    intercept: float


def merged_labels(y: Any, classes: Any, known: NDArray[Any] | None, *, both: bool) -> NDArray[Any]:
    """Return the labels so far, the negative side first; raises `ValueError` for a third one.

    Parameters
    ----------
    y : ndarray
        Labels of new rows.
    classes : array-like or None
        All labels there will be, where they were given.
    known : ndarray or None
        The labels before, None at the beginning.
    both : bool
        Whether a single label is refused.
    """
    given = np.unique(y)
    first, known = known is None, np.zeros(0, given.dtype) if known is None else known
    if classes is not None:
        classes = np.unique(np.asarray(classes))
        if not first and not np.isin(known, classes).all():
            raise ValueError(f"classes={classes!r} does not contain the labels so far, {known!r}.")
        if not np.isin(given, classes).all():
            raise ValueError(
                f"y has labels that are not in classes={classes!r}: {np.setdiff1d(given, classes)!r}."
            )
        given = np.union1d(given, classes)
    new = np.setdiff1d(given, known)
    labels = np.concatenate([known, new]) if len(known) else given
    if len(labels) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(labels)}: {len(labels)} labels, {', '.join(map(str, labels[:5]))}. "
            "Use maxmargin.SVC for more classes."
        )
    if both and len(labels) < 2:
        raise ValueError(f"The number of classes has to be greater than one; got {len(labels)} class")
    return np.asarray(labels)
