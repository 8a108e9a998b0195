"""The contents of model files of scikit-learn's scalers, which may precede an estimator in a pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.persistence.schema import ArrayField, Entry, Fields, Sizes, Stored, Values
from maxmargin.persistence.values import Refused

_FLOATS = ("f4", "f8")


def _scaler(**fields: dict[str, Any]) -> Fields:
    out: Fields = {name: ArrayField(("features",), _FLOATS, **how) for name, how in fields.items()}
    out["n_samples_seen_"] = ArrayField(("seen",), ("i8", "f8"), low=0)
    return out


def _begin_robust(estimator: Any) -> Values:
    return {}


def _robust_sizes(estimator: Any, sizes: Sizes, arrays: Stored) -> None:
    """No sizes beside the number of features."""


def _finish_robust(estimator: Any, found: Values, sizes: Sizes) -> None:
    needed = {"center_": estimator.with_centering, "scale_": estimator.with_scaling}
    for name, value in found.items():
        if needed[name] and value is None:
            raise Refused(f"no array {name!r}")
        setattr(estimator, name, value)
    limits = estimator.quantile_range
    numbers = len(limits) == 2 and all(type(v) in (int, float) and np.isfinite(v) for v in limits)
    if not numbers or not 0 <= limits[0] <= limits[1] <= 100:
        raise Refused("a parameter 'quantile_range' that is not a pair of increasing percentages")


def _begin_scaler(estimator: Any) -> Values:
    """The rows seen, one number or one per feature."""
    seen = np.atleast_1d(np.asarray(estimator.n_samples_seen_))
    return {"n_samples_seen_": seen if seen.dtype.kind == "f" else seen.astype(np.int64)}


def _scaler_sizes(estimator: Any, sizes: Sizes, arrays: Stored) -> None:
    seen = arrays.get("n_samples_seen_", np.empty(0))
    sizes["seen"] = 1 if seen.shape == (1,) else sizes["features"]


def _finish_scaler(estimator: Any, found: Values, sizes: Sizes) -> None:
    for name, value in found.items():
        setattr(estimator, name, value)
    if estimator.n_samples_seen_.shape == (1,):
        estimator.n_samples_seen_ = estimator.n_samples_seen_[0]


def _finish_standard(estimator: Any, found: Values, sizes: Sizes) -> None:
    _finish_scaler(estimator, found, sizes)
    needed = {"mean_": estimator.with_mean or estimator.with_std}
    needed |= dict.fromkeys(("var_", "scale_"), estimator.with_std)
    for name, there in needed.items():
        if there and getattr(estimator, name) is None:
            raise Refused(f"no array {name!r}")


def _finish_min_max(estimator: Any, found: Values, sizes: Sizes) -> None:
    _finish_scaler(estimator, found, sizes)
    limits = estimator.feature_range
    numbers = len(limits) == 2 and all(type(v) in (int, float) and np.isfinite(v) for v in limits)
    if not numbers or not limits[0] < limits[1]:
        raise Refused("a parameter 'feature_range' that is not a pair of increasing numbers")


_OPTIONAL, _ALWAYS = {"optional": True}, {"positive": True}
_SKLEARN = "sklearn.preprocessing"
_SCALING = (_scaler_sizes, _finish_scaler, None, _begin_scaler)
_STANDARD = (_scaler_sizes, _finish_standard, None, _begin_scaler)
_MIN_MAX = (_scaler_sizes, _finish_min_max, None, _begin_scaler)

SCALERS: dict[str, Entry] = {
    "StandardScaler": Entry(
        _SKLEARN, _scaler(mean_=_OPTIONAL, var_=_OPTIONAL, scale_={**_OPTIONAL, **_ALWAYS}), *_STANDARD
    ),
    "MinMaxScaler": Entry(
        _SKLEARN, _scaler(min_={}, scale_=_ALWAYS, data_min_={}, data_max_={}, data_range_={}), *_MIN_MAX
    ),
    "RobustScaler": Entry(
        _SKLEARN,
        {
            "center_": ArrayField(("features",), _FLOATS, optional=True),
            "scale_": ArrayField(("features",), _FLOATS, optional=True, positive=True),
        },
        _robust_sizes,
        _finish_robust,
        None,
        _begin_robust,
    ),
    "MaxAbsScaler": Entry(_SKLEARN, _scaler(scale_=_ALWAYS, max_abs_={}), *_SCALING),
}
