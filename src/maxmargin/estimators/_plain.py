"""Fast recognition of input that scikit-learn's checks would return unchanged.

The checks are made for data of any kind, and take a small fit longer than its training. They are skipped only
for input that passes all of them; all other input is checked, with their errors and warnings.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

# Integers up to which conversions between int64 and float64 are exact.
_LARGEST_INTEGER = 2.0**53


def plain_samples(X: Any) -> bool:
    """Whether X is an array of finite numbers as training uses them, which `check_array` returns as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.estimators._plain import plain_samples
    >>> plain_samples(np.ones((2, 2))), plain_samples([[1.0]]), plain_samples(np.array([[np.nan]]))
    (True, False, False)
    """
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype.char in "fd"
        and X.dtype.isnative
        and X.flags.c_contiguous
        and X.size > 0
        and _finite(X)
    )


def plain_targets(y: Any, n: int) -> bool:
    """Whether y is an array of n finite numbers or strings, which `check_X_y` returns as it is."""
    return (
        type(y) is np.ndarray
        and y.shape == (n,)
        and y.flags.c_contiguous
        and (y.dtype.kind in "biuU" or (y.dtype.kind == "f" and _finite(y)))
    )


def without_names(estimator: Any) -> bool:
    """Whether an estimator has no names of features that those of new data would be compared with."""
    return not hasattr(estimator, "feature_names_in_")


def class_labels(y: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.intp]]:
    """The labels as an array, the distinct ones and their numbers; errors and warnings are scikit-learn's.

    Examples
    --------
    >>> from maxmargin.estimators._plain import class_labels
    >>> class_labels(["b", "a", "b"])[1:]
    (array(['a', 'b'], dtype='<U1'), array([1, 0, 1]))
    """
    plain = type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biuf" and len(y) > 0
    if plain:
        classes, label = _distinct(y)
        # With more classes there would be a warning.
        few = len(y) <= 20 or len(classes) <= 0.5 * len(y) - 1
        plain = few and (y.dtype.kind != "f" or _whole_numbers(classes))
    if not plain:
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        classes, label = np.unique(y, return_inverse=True)
    return y, classes, label


def _distinct(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """`np.unique` with the inverse; integers that are close together are counted, not sorted."""
    if np.can_cast(values.dtype, np.intp):
        least, most = int(values.min()), int(values.max())
        if most - least < len(values):
            place = np.subtract(values, least, dtype=np.intp)
            there = np.bincount(place) > 0
            classes = np.add(np.flatnonzero(there), least).astype(values.dtype)
            return classes, (there.cumsum() - 1)[place]
    return np.unique(values, return_inverse=True)


def _finite(values: NDArray[Any]) -> bool:
    """Whether all values are finite; False also where their sum overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()))


def _whole_numbers(values: NDArray[Any]) -> bool:
    inside = np.abs(values) <= _LARGEST_INTEGER  # and not NaN
    return bool(inside.all() and (values == np.rint(values)).all())
