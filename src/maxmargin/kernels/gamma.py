"""The kernel coefficient that is estimated from the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


def resolve_gamma(gamma: str | float, X: Any) -> float:
    """The number behind ``gamma="scale"`` (1 / (n_features Var X)) or ``"auto"`` (1 / n_features).

    Examples
    --------
    >>> from maxmargin.kernels import resolve_gamma
    >>> resolve_gamma("auto", [[0.0, 1.0], [2.0, 3.0]])
    0.5
    """
    if not isinstance(gamma, str):
        return float(gamma)
    X = X if sp.issparse(X) else np.asarray(X)
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if gamma != "scale":
        raise ValueError(f"gamma must be 'scale', 'auto' or a number, got {gamma!r}.")
    if 0 in X.shape:
        return 1.0
    if sp.issparse(X):
        variance = _sparse_variance(X.tocsr())
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            variance = X.var(dtype=np.float64)
            first = np.float64(X.flat[0])
            if variance < 1e-25 * first * first and (first == X).all():
                variance = 0.0  # not what rounding made of it
    if not np.isfinite(variance):
        raise ValueError(
            "The dual coefficients or intercepts are not finite: gamma='scale' asks for the variance of X, "
            "which is too large for float64. Scale the features, for example with StandardScaler."
        )
    return 1.0 / (X.shape[1] * float(variance)) if variance != 0 else 1.0


def _sparse_variance(X: Any) -> float:
    """The variance of all entries, zeros included, from differences: equal entries give exactly 0."""
    data = X.data.astype(np.float64)
    size = float(X.shape[0]) * float(X.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float((data / size).sum())
        if len(data) == size and (data == data[0]).all():
            return 0.0
        return float(np.square(data - mean).sum() / size + (size - len(data)) / size * mean**2)
