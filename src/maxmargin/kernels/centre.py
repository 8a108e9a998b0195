"""A centre of most rows: distances are invariant to translations, their rounding errors are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _costs as costs
from maxmargin.kernels.layout import squared_norms

Array = NDArray[Any]

# Norm from which on a few distant rows could affect the centre, and number of rows for medians.
_LARGE_NORM, _MEDIAN_ROWS = 1e3, 1000


def column_means(X: Any) -> Array:
    """Means of the columns, or medians where sums overflow."""
    if X.shape[0] == 0:
        return np.zeros(X.shape[1])
    with np.errstate(over="ignore"):
        if sp.issparse(X):
            # SciPy's mean converts a copy of all values.
            total = np.zeros(X.shape[1])
            step = max(1, costs.COPIED_VALUES // max(1, X.shape[1]))
            for s in range(0, X.shape[0], step):
                total += np.asarray(X[s : s + step].sum(axis=0, dtype=np.float64)).ravel()
            mean = total / X.shape[0]
        else:
            mean = np.einsum("ij->j", X, dtype=np.float64) / len(X)  # in half the time of `mean`
    return mean if np.isfinite(mean).all() else column_medians(X)


def column_medians(X: Any) -> Array:
    """Medians of evenly spaced rows: a centre that a few distant rows do not affect."""
    return np.median(_spaced_rows(X), axis=0)


def _spaced_rows(X: Any) -> Array:
    X = X[:: max(1, X.shape[0] // _MEDIAN_ROWS)]
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def central(X: Any) -> Array:
    """A centre of most rows of a dense X: the mean, or medians if distant rows affect it too much."""
    mean = column_means(X)
    with np.errstate(over="ignore", invalid="ignore"):
        norm = squared_norms(X - mean)
    return robust_centre(X, mean, norm if np.isfinite(norm).all() else np.array([np.inf]))


def robust_centre(X: Any, mean: Array, norm: Array) -> Array:
    """The mean or, where a few distant rows move it away from all others, the medians."""
    if norm.max(initial=0.0) < _LARGE_NORM:
        return mean
    rows, medians = _spaced_rows(X), column_medians(X)
    about_mean, about_medians = (np.median(np.abs(rows - c).sum(axis=1)) for c in (mean, medians))
    return medians if about_medians < 0.5 * about_mean else mean
