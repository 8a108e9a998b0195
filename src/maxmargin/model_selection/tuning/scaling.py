"""The scaling of features that a tuner begins with."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import MaxAbsScaler, RobustScaler, StandardScaler

#: Names of scalings.
SCALINGS = ("standard", "robust")


def scaler_for(scale: str | None, X: Any) -> Any:
    """The scaler of a name, not fitted; None for none. Sparse data are divided by their largest values.

    It makes arrays, whatever scikit-learn is configured to: the model behind it is trained on arrays.
    """
    if scale is None:
        return None
    scaler = StandardScaler() if scale == "standard" else RobustScaler()
    return (MaxAbsScaler() if sp.issparse(X) else scaler).set_output(transform="default")


def scaled(scaler: Any, X: Any) -> Any:
    """X after fitting the scaler to it, or X itself without one."""
    if scaler is None:
        return X
    with np.errstate(over="ignore", invalid="ignore"):
        rows = scaler.fit_transform(X)
    if not np.isfinite(rows.data if sp.issparse(rows) else rows).all():
        raise ValueError(
            "The scaled features are not finite, as their variance is too large for floating-point numbers: "
            "divide them by a large number, or use scale='robust'."
        )
    return rows
