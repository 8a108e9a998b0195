"""The kernel coefficient that is estimated from the data."""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin import _costs as costs
from maxmargin._types import Floats, Index
from maxmargin.kernels.layout import without_duplicates


def resolve_gamma(gamma: str | float, X: Any, weight: Floats | None = None) -> float:
    """The number for ``gamma="scale"`` (1 / (n_features Var X)) or ``"auto"`` (1 / n_features).

    A row counts in Var X as often as its `weight` says, once by default.

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
    if weight is not None and (weight == weight[0]).all():
        weight = None
    with np.errstate(over="ignore", invalid="ignore"):
        sparse = sp.issparse(X)
        variance = _sparse_variance(without_duplicates(X.tocsr()), weight) if sparse else _variance(X, weight)
    return gamma_of_variance(X.shape[1], variance)


def gamma_of_rows(gamma: str | float, X: Any, kept: Index) -> float:
    """`resolve_gamma` for the rows `kept` of X, of which large data are not copied.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.kernels.gamma import gamma_of_rows
    >>> gamma_of_rows("scale", np.array([[0.0], [9.0], [2.0]]), np.array([0, 2]))
    1.0
    """
    if gamma != "scale" or len(kept) == X.shape[0]:
        return resolve_gamma(gamma, X)
    stored = X.data if sp.issparse(X) else X
    if stored.nbytes <= costs.STREAMED_BYTES or not len(kept):
        return resolve_gamma(gamma, X[kept])
    with np.errstate(over="ignore", invalid="ignore"):
        return gamma_of_variance(X.shape[1], _variance_of_rows(X, kept, stored.size / X.shape[0]))


def gamma_of_variance(n_features: int, variance: float) -> float:
    """The number for ``gamma="scale"`` from the variance of all entries; 1 if they are all equal."""
    if not np.isfinite(variance):
        raise ValueError(
            "The dual coefficients or intercepts are not finite: gamma='scale' needs the variance of X, "
            "which is too large for float64. Scale the features, for example with StandardScaler."
        )
    return 1.0 / (n_features * variance) if variance != 0 else 1.0


def _variance(X: Any, weight: Floats | None) -> float:
    """The variance of all entries, from differences; exactly 0 if all are equal."""
    if weight is None:
        variance = X.var(dtype=np.float64) if X.size <= costs.COPIED_VALUES else _variance_by_parts(X)
    else:
        size = float(weight.sum()) * X.shape[1]
        mean = float(weight @ X.sum(axis=1, dtype=np.float64)) / size
        variance = weight @ np.square(X.astype(np.float64) - mean).sum(axis=1) / size
    first = np.float64(X.flat[0])
    if variance < 1e-25 * first * first and (first == X).all():
        return 0.0  # instead of a rounding error
    return float(variance)


def _variance_by_parts(X: Any) -> float:
    """``X.var(dtype=np.float64)`` without copies of X, which take most of its time."""
    mean, total = X.mean(dtype=np.float64), 0.0
    step = max(1, costs.COPIED_VALUES // X.shape[1])
    for s in range(0, X.shape[0], step):
        part = np.subtract(X[s : s + step], mean, dtype=np.float64)
        total += float(np.square(part, out=part).sum())
    return total / X.size


def _variance_of_rows(X: Any, kept: Index, width: float) -> float:
    """The variance of all entries of some rows, of which each stores about `width`; 0 if all are equal."""
    size, step = float(len(kept)) * float(X.shape[1]), int(costs.COPIED_VALUES / max(1.0, width)) + 1

    def stored() -> Iterator[Floats]:
        for s in range(0, len(kept), step):
            part = X[kept[s : s + step]]
            yield np.asarray(without_duplicates(part.tocsr()).data if sp.issparse(part) else part, np.float64)

    mean = fsum(float((part / size).sum()) for part in stored())
    count, squares, low, high = 0, 0.0, np.inf, -np.inf
    for part in stored():
        count += part.size
        squares += float(np.square(part - mean).sum())
        low, high = min(low, part.min(initial=np.inf)), max(high, part.max(initial=-np.inf))
    if count < size:
        low, high, squares = min(low, 0.0), max(high, 0.0), squares + (size - count) * mean * mean
    return 0.0 if low == high else squares / size


def _sparse_variance(X: Any, weight: Floats | None) -> float:
    """The same for a CSR matrix, zeros included."""
    n, d = X.shape
    data = X.data
    if len(data) == n * d and (data == data[0]).all():
        return 0.0
    if weight is None:
        size, stored = float(n) * float(d), float(len(data))
        parts = range(0, len(data), costs.COPIED_VALUES)

        def values(s: int) -> Floats:
            return np.asarray(data[s : s + costs.COPIED_VALUES], dtype=np.float64)

        mean = fsum(float((values(s) / size).sum()) for s in parts)
        squares = fsum(float(np.square(values(s) - mean).sum()) for s in parts)
    else:
        data, weights = data.astype(np.float64), np.repeat(weight, np.diff(X.indptr))
        size, stored = float(weight.sum()) * float(d), float(weights.sum())
        mean = float((weights * (data / size)).sum())
        squares = float((weights * np.square(data - mean)).sum())
    return squares / size + (size - stored) / size * mean**2
