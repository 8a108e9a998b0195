"""Targets of a regression."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import column_or_1d
from sklearn.utils.validation import assert_all_finite

from maxmargin._types import Floats

_ADVICE = "for several targets wrap the estimator in sklearn.multioutput.MultiOutputRegressor."


def has_columns(y: Any) -> bool:
    """Whether y has several columns, or none: not one number per sample in any form."""
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    return len(shape) == 2 and shape[1] != 1


def regression_targets(y: Any, *, multi_output: bool = False) -> Floats:
    """One finite float64 number per sample, or several with `multi_output`; ValueError if y is anything else.

    Examples
    --------
    >>> from maxmargin.estimators.targets import regression_targets
    >>> regression_targets([1, 2])
    array([1., 2.])
    >>> regression_targets([[1, 2], [3, 4]], multi_output=True).shape
    (2, 2)
    """
    if type(y) is np.ndarray and y.dtype == np.float64 and y.ndim == 1 and np.isfinite(y).all():
        return y  # nearly always: the checks below would take as long as some pair steps
    if has_columns(y) and not (multi_output and np.asarray(y).size):
        raise ValueError(
            f"y should be a 1d array, got an array of shape {getattr(y, 'shape', np.shape(y))} instead: "
            + ("give it a column for each target." if multi_output else _ADVICE)
        )
    if sp.issparse(y):
        raise ValueError("Sparse targets are not supported: pass y.toarray().")
    y = np.asarray(y) if has_columns(y) else column_or_1d(y, warn=True)
    if np.iscomplexobj(y):
        raise ValueError("Complex data not supported: the targets must be real numbers.")
    try:
        y = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"The targets of a regression must be numbers: {error}.") from error
    assert_all_finite(y, input_name="y")
    return y
