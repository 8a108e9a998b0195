"""Targets of a regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.validation import assert_all_finite

from maxmargin._types import Floats


def regression_targets(y: Any) -> Floats:
    """One finite float64 number per sample; ValueError if y is anything else.

    Examples
    --------
    >>> from maxmargin.estimators.targets import regression_targets
    >>> regression_targets([1, 2])
    array([1., 2.])
    """
    if type(y) is np.ndarray and y.dtype == np.float64 and y.ndim == 1 and np.isfinite(y).all():
        return y  # nearly always: the checks below would take as long as some pair steps
    if np.ndim(y) == 2 and np.shape(y)[1] != 1:
        raise ValueError(
            f"y should be a 1d array, got an array of shape {np.shape(y)} instead: for several targets "
            "wrap the estimator in sklearn.multioutput.MultiOutputRegressor."
        )
    y = column_or_1d(y, warn=True)
    if np.iscomplexobj(y):
        raise ValueError("Complex data not supported: the targets must be real numbers.")
    try:
        y = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"The targets of a regression must be numbers: {error}.") from error
    assert_all_finite(y, input_name="y")
    return y
