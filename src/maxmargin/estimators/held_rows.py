"""The state of an estimator that learns and forgets rows: the rows, their labels and gamma."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._types import Floats


@dataclass(frozen=True, eq=False)
class HeldRows:
    """The rows of an `IncrementalSVC` or `IncrementalSVR` in the order of their arrival, with the solution.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, n_features)
        The rows.
    y : ndarray of shape (n,)
        Codes of their classes, which are positions in `labels`; or targets.
    ridge : ndarray of shape (n,)
        1 / (2 C weight) of each row.
    u : ndarray of shape (n_problems, n)
        Multipliers: for each pair of codes a < b, negative for a and positive for b; or of the regression.
    labels : ndarray of shape (n_classes,)
        The labels in the order in which they came; empty in regression.
    gamma : float
        The kernel coefficient in use.
    intercept : ndarray of shape (n_problems,)
        The constants of the decision functions.
    """

    X: Any
    y: Floats
    ridge: Floats
    u: Floats
    labels: NDArray[Any]
    gamma: float
    intercept: Floats


def merged_labels(y: Any, classes: Any, known: NDArray[Any] | None, *, several: bool) -> NDArray[Any]:
    """Return the labels so far, in the order in which they came.

    Parameters
    ----------
    y : ndarray
        Labels of new rows.
    classes : array-like or None
        All labels there will be, where they were given.
    known : ndarray or None
        The labels before, None at the beginning.
    several : bool
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
    if several and len(labels) < 2:
        raise ValueError(f"The number of classes has to be greater than one; got {len(labels)} class")
    return np.asarray(labels)
