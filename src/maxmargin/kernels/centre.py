"""A point that most rows are near to: distances do not see a translation, rounding errors do."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.kernels.layout import squared_norms

Array = NDArray[Any]

# A norm from which on a few distant rows could matter for the centre, and the rows that a median is taken of.
_LARGE_NORM, _MEDIAN_ROWS = 1e3, 1000


def column_means(X: Any) -> Array:
    """Means of the columns, or medians where sums overflow."""
    if X.shape[0] == 0:
        return np.zeros(X.shape[1])
    with np.errstate(over="ignore"):
        mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    return mean if np.isfinite(mean).all() else column_medians(X)


def column_medians(X: Any) -> Array:
    """Medians of evenly spaced rows: a centre that distant rows do not move."""
    return np.median(_spaced_rows(X), axis=0)


def _spaced_rows(X: Any) -> Array:
    X = X[:: max(1, X.shape[0] // _MEDIAN_ROWS)]
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def central(X: Any) -> Array:
    """A point that most rows of a dense X are near to: the mean, or medians if distant rows draw it away."""
    mean = column_means(X)
    with np.errstate(over="ignore", invalid="ignore"):
        norm = squared_norms(X - mean)
    return robust_centre(X, mean, norm if np.isfinite(norm).all() else np.array([np.inf]))


def robust_centre(X: Any, mean: Array, norm: Array) -> Array:
    """The mean or, where a few distant rows draw it away from all others, the medians."""
    if np.max(norm, initial=0.0) < _LARGE_NORM:
        return mean
    rows, medians = _spaced_rows(X), column_medians(X)
    about_mean, about_medians = (np.median(np.abs(rows - c).sum(axis=1)) for c in (mean, medians))
    return medians if about_medians < 0.5 * about_mean else mean
