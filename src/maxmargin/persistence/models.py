"""Which models can be stored, and what makes each of them.

To add a class, add a line to `ENTRIES`: where it is, and its fields beside those of all machines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.persistence.schema import ArrayField, NumberField, Sizes, Stored
from maxmargin.persistence.values import (
    Refused,
    decode,
    decode_labels,
    decode_names,
    encode,
    encode_labels,
)

Fields = dict[str, ArrayField | NumberField]

_LARGEST = 2**31 - 1
_STATUS = ("solved", "max_iter", "max_time", "stalled", "infeasible", "interrupted", "unknown")


@dataclass(frozen=True)
class Entry:
    """How one class is stored.

    Parameters
    ----------
    module : str
        Where the class is.
    fields : dict
        Its fitted attributes.
    sizes : callable
        Adds to the sizes what the shapes of the fields mention; raises `Refused` where they cannot be.
    finish : callable
        Derives the remaining attributes of a loaded estimator.
    labels : str
        The attribute with class labels, if there is one.
    begin : callable
        Gives what the fields do not find among the attributes of an estimator to be stored.
    """

    module: str
    fields: Fields
    sizes: Callable[[Any, Sizes, Stored], None]
    finish: Callable[[Any, Sizes], None]
    labels: str | None = None
    begin: Callable[[Any], dict[str, Any]] = lambda estimator: {}


# -- machines ----------------------------------------------------------------------------------------

_MACHINE: Fields = {
    "shape_fit_0": NumberField(int, low=1),
    "_sparse": NumberField(bool),
    "_gamma": NumberField(float, low=0.0),
    "status_": NumberField(str, choices=_STATUS),
    "n_kernel_evals_": NumberField(int, low=0),
    "n_kernel_calls_": NumberField(int, low=0),
    "support_": ArrayField(("support",), ("i4",), low=0, below="samples"),
    "_n_support": ArrayField(("groups",), ("i4",), low=0),
    "_dense_coef": ArrayField(("rows", "support")),
    "support_vectors_": ArrayField(("vectors", "columns"), ("f4", "f8"), sparse=True),
}
_PAIRS: Fields = {
    **_MACHINE,
    "intercept_": ArrayField(("pairs",)),
    "class_weight_": ArrayField(("classes",), low=0.0),
    "n_iter_": ArrayField(("pairs",), ("i4",), low=0),
    "dual_gap_": ArrayField(("pairs",), finite=False),
    "_vote_order": ArrayField(("classes",), ("i4", "i8"), low=0, below="classes", optional=True),
}
_ONE: Fields = {
    **_MACHINE,
    "n_iter_": NumberField(int, low=0),
    "dual_gap_": NumberField(float, finite=False),
}


def _begin_machine(estimator: Any) -> dict[str, Any]:
    return {"shape_fit_0": estimator.shape_fit_[0], "_vote_order": getattr(estimator, "_vote_order", None)}


def _machine_sizes(estimator: Any, sizes: Sizes, arrays: Stored) -> None:
    """Sizes of what every machine has."""
    support = arrays.get("support_", np.empty(0))
    sizes["support"] = len(support) if support.ndim == 1 else 0
    precomputed = estimator.kernel == "precomputed"
    sizes["vectors"], sizes["columns"] = (0, 0) if precomputed else (sizes["support"], sizes["features"])
    sizes["samples"] = _LARGEST if not precomputed else sizes["features"]


def _classes(rows: Callable[[int], int]) -> Callable[[Any, Sizes, Stored], None]:
    """Sizes of a classifier whose coefficients have so many rows."""

    def sizes_of(estimator: Any, sizes: Sizes, arrays: Stored) -> None:
        k = sizes["classes"]
        if k < 2:
            raise Refused("fewer than two classes")
        sizes.update(groups=k, rows=rows(k), pairs=k * (k - 1) // 2)
        _machine_sizes(estimator, sizes, arrays)

    return sizes_of


def _one_class_sizes(estimator: Any, sizes: Sizes, arrays: Stored) -> None:
    sizes.update(groups=1, rows=1)
    _machine_sizes(estimator, sizes, arrays)


def _finish_machine(estimator: Any, sizes: Sizes) -> None:
    from maxmargin._estimator import _align
    from maxmargin._threads import effective_n_jobs

    effective_n_jobs(estimator.n_jobs)
    n = estimator.__dict__.pop("shape_fit_0")
    precomputed = estimator.kernel == "precomputed"
    if n > _LARGEST or (precomputed and n != sizes["features"]):
        raise Refused(f"a model of {n} training samples, which cannot be")
    estimator.shape_fit_ = (n, sizes["features"])
    if (estimator.support_ >= n).any():
        raise Refused("a support vector that is none of the training samples")
    if int(estimator._n_support.sum(dtype=np.int64)) != sizes["support"]:
        raise Refused("numbers of support vectors that do not add up")
    sparse = sp.issparse(estimator.support_vectors_)
    if sparse != estimator._sparse or (sparse and precomputed):
        raise Refused("support vectors that are sparse where they should not be, or the other way round")
    estimator.support_vectors_ = _align(estimator.support_vectors_)
    coef = estimator._dense_coef
    estimator.dual_coef_ = _align(sp.csr_array(coef)) if sparse else coef
    estimator.fit_status_ = int(estimator.status_ not in ("solved", "unknown"))
    estimator._prepared = {}
    estimator._solved = None


def _finish_pairs(estimator: Any, sizes: Sizes) -> None:
    _finish_machine(estimator, sizes)
    order = estimator.__dict__["_vote_order"]
    if order is None:
        del estimator._vote_order
    elif len(np.unique(order)) != len(order):
        raise Refused("an order of votes that names a class twice")


def _finish_one_class(estimator: Any, sizes: Sizes) -> None:
    _finish_machine(estimator, sizes)
    estimator.intercept_ = -estimator.offset_


def _finish_all_distances(estimator: Any, sizes: Sizes) -> None:
    _finish_machine(estimator, sizes)
    estimator._products = None


# -- rows that come and go ---------------------------------------------------------------------------


def _begin_incremental(estimator: Any) -> dict[str, Any]:
    X, y, ridge, u = estimator._machine.rows()
    return {"_X": X, "_y": y, "_ridge": ridge, "_u": u}


def _incremental_sizes(estimator: Any, sizes: Sizes, arrays: Stored) -> None:
    if not 1 <= sizes["classes"] <= 2:
        raise Refused("more than two classes")
    rows = arrays.get("_y", np.empty(0))
    sizes["held"] = len(rows) if rows.ndim == 1 else 0
    if not sizes["held"]:
        raise Refused("no rows")


def _finish_incremental(estimator: Any, sizes: Sizes) -> None:
    from maxmargin._threads import effective_n_jobs
    from maxmargin.exact import ExactMachine
    from maxmargin.kernels import Kernel

    effective_n_jobs(estimator.n_jobs)
    X, y, ridge, u = (estimator.__dict__.pop(name) for name in ("_X", "_y", "_ridge", "_u"))
    if (np.abs(y) != 1).any() or (sizes["classes"] == 1 and (y > 0).any()) or (u * y < 0).any():
        raise Refused("sides of rows other than -1 and 1, or multipliers of the other sign")
    if sp.issparse(X) != estimator._sparse:
        raise Refused("rows that are sparse where they should not be, or the other way round")
    kernel = Kernel(estimator.kernel, gamma=estimator.gamma_, degree=estimator.degree, coef0=estimator.coef0)
    try:
        most, factor = int(estimator.cache_size * 1e6), int(estimator.max_factor * 1e6)
    except (OverflowError, ValueError):
        raise Refused("a budget of memory that is no number") from None
    estimator._machine = ExactMachine(kernel, most_bytes=most, factor_bytes=factor, n_jobs=estimator.n_jobs)
    estimator._machine.restore(X, y, ridge, u)
    estimator.classes_ = np.sort(estimator._sides)
    used = np.flatnonzero(u)
    level = -estimator._sign() * float(estimator.intercept_[0])
    estimator._show(len(y), used, X[used], y[used], u[used], level)


# -- scalers -----------------------------------------------------------------------------------------

_FLOATS = ("f4", "f8")


def _scaler(**fields: dict[str, Any]) -> Fields:
    out: Fields = {name: ArrayField(("features",), _FLOATS, **how) for name, how in fields.items()}
    out["n_samples_seen_"] = ArrayField(("seen",), ("i8", "f8"), low=0)
    return out


def _begin_scaler(estimator: Any) -> dict[str, Any]:
    """The rows seen, one number or one per feature."""
    seen = np.atleast_1d(np.asarray(estimator.n_samples_seen_))
    return {"n_samples_seen_": seen if seen.dtype.kind == "f" else seen.astype(np.int64)}


def _scaler_sizes(estimator: Any, sizes: Sizes, arrays: Stored) -> None:
    seen = arrays.get("n_samples_seen_", np.empty(0))
    sizes["seen"] = 1 if seen.shape == (1,) else sizes["features"]


def _finish_scaler(estimator: Any, sizes: Sizes) -> None:
    if estimator.n_samples_seen_.shape == (1,):
        estimator.n_samples_seen_ = estimator.n_samples_seen_[0]


def _finish_standard(estimator: Any, sizes: Sizes) -> None:
    _finish_scaler(estimator, sizes)
    needed = {"mean_": estimator.with_mean or estimator.with_std}
    needed |= dict.fromkeys(("var_", "scale_"), estimator.with_std)
    for name, there in needed.items():
        if there and getattr(estimator, name) is None:
            raise Refused(f"no array {name!r}")


def _finish_min_max(estimator: Any, sizes: Sizes) -> None:
    _finish_scaler(estimator, sizes)
    limits = estimator.feature_range
    numbers = len(limits) == 2 and all(type(v) in (int, float) and np.isfinite(v) for v in limits)
    if not numbers or not limits[0] < limits[1]:
        raise Refused("a parameter 'feature_range' that is no range")


_OPTIONAL, _ALWAYS = {"optional": True}, {"positive": True}
_SKLEARN = "sklearn.preprocessing"
_SCALING = (_scaler_sizes, _finish_scaler, None, _begin_scaler)
_STANDARD = (_scaler_sizes, _finish_standard, None, _begin_scaler)
_MIN_MAX = (_scaler_sizes, _finish_min_max, None, _begin_scaler)

ENTRIES: dict[str, Entry] = {
    "SVC": Entry("maxmargin", _PAIRS, _classes(lambda k: k - 1), _finish_pairs, "classes_", _begin_machine),
    "NuSVC": Entry("maxmargin", _PAIRS, _classes(lambda k: k - 1), _finish_pairs, "classes_", _begin_machine),
    "OneClassSVM": Entry(
        "maxmargin",
        {**_ONE, "offset_": ArrayField((1,))},
        _one_class_sizes,
        _finish_one_class,
        begin=_begin_machine,
    ),
    "L2OneClassSVM": Entry(
        "maxmargin",
        {**_ONE, "offset_": ArrayField((1,))},
        _one_class_sizes,
        _finish_one_class,
        begin=_begin_machine,
    ),
    "AllDistancesSVC": Entry(
        "maxmargin",
        {**_ONE, "intercept_": ArrayField(("classes",)), "mu_": NumberField(float, low=0.0)},
        _classes(lambda k: 1),
        _finish_all_distances,
        "classes_",
        _begin_machine,
    ),
    "CrammerSingerSVC": Entry(
        "maxmargin", _ONE, _classes(lambda k: k), _finish_machine, "classes_", _begin_machine
    ),
    "IncrementalSVC": Entry(
        "maxmargin",
        {
            "_sparse": NumberField(bool),
            "gamma_": NumberField(float, low=0.0),
            "intercept_": ArrayField((1,)),
            "_X": ArrayField(("held", "features"), _FLOATS, sparse=True),
            "_y": ArrayField(("held",)),
            "_ridge": ArrayField(("held",), positive=True),
            "_u": ArrayField(("held",)),
        },
        _incremental_sizes,
        _finish_incremental,
        "_sides",
        _begin_incremental,
    ),
    "StandardScaler": Entry(
        _SKLEARN, _scaler(mean_=_OPTIONAL, var_=_OPTIONAL, scale_={**_OPTIONAL, **_ALWAYS}), *_STANDARD
    ),
    "MinMaxScaler": Entry(
        _SKLEARN, _scaler(min_={}, scale_=_ALWAYS, data_min_={}, data_max_={}, data_range_={}), *_MIN_MAX
    ),
    "MaxAbsScaler": Entry(_SKLEARN, _scaler(scale_=_ALWAYS, max_abs_={}), *_SCALING),
}
SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler")


# -- one estimator -----------------------------------------------------------------------------------


def class_of(name: str) -> Any:
    """The class behind a name of `ENTRIES`."""
    return getattr(import_module(ENTRIES[name].module), name)


def describe(estimator: Any, prefix: str, arrays: Stored) -> dict[str, Any]:
    """The header of one estimator; its arrays are added to `arrays` under names with the prefix."""
    name = type(estimator).__name__
    entry = ENTRIES[name]
    estimator._validate_params()  # may have been set after the fit; `restore` would refuse them
    given = entry.begin(estimator)
    values: dict[str, Any] = {}
    own: Stored = {}
    record: dict[str, Any] = {
        "class": name,
        "parameters": {
            key: encode(value, f"The parameter {key} of {name}")
            for key, value in sorted(estimator.get_params(deep=False).items())
        },
        "n_features": int(estimator.n_features_in_),
        "values": values,
    }
    for key, field in entry.fields.items():
        field.put(key, given[key] if key in given else getattr(estimator, key), values, own)
    if entry.labels is not None:
        record["labels"] = encode_labels(getattr(estimator, entry.labels))
    if hasattr(estimator, "feature_names_in_"):
        record["feature_names"] = [str(v) for v in estimator.feature_names_in_]
    arrays.update({prefix + key: value for key, value in own.items()})
    return record


def restore(record: Any, prefix: str, arrays: Stored) -> Any:
    """The estimator behind a header; raises `Refused` for whatever prediction could stumble over."""
    known = {"class", "parameters", "n_features", "values", "labels", "feature_names"}
    if not isinstance(record, dict) or not set(record) <= known:
        raise Refused("a model with keys that are not known")
    name = record.get("class")
    if not isinstance(name, str) or name not in ENTRIES:
        raise Refused(f"a model of a class that this maxmargin does not know, {str(name)[:50]!r}")
    entry = ENTRIES[name]
    estimator = _with_parameters(name, record.get("parameters"))
    d, values = record.get("n_features"), record.get("values")
    if type(d) is not int or not 1 <= d <= _LARGEST or not isinstance(values, dict):
        raise Refused("a number of features that is none, or no values")
    own = {key.removeprefix(prefix): arrays.pop(key) for key in list(arrays) if key.startswith(prefix)}
    sizes: Sizes = {"features": d}
    if entry.labels is not None:
        labels = decode_labels(record.get("labels"), ordered=entry.labels == "classes_")
        setattr(estimator, entry.labels, labels)
        sizes["classes"] = len(labels)
    elif "labels" in record:
        raise Refused("labels where there are none")
    entry.sizes(estimator, sizes, own)
    for key, field in entry.fields.items():
        setattr(estimator, key, field.get(key, values, own, sizes))
    expected = {key for key, field in entry.fields.items() if isinstance(field, NumberField)}
    if own or set(values) != expected:
        raise Refused("arrays or values that do not belong to the model")
    estimator.n_features_in_ = d
    if "feature_names" in record:
        estimator.feature_names_in_ = decode_names(record["feature_names"], d)
    entry.finish(estimator, sizes)
    return estimator


def _with_parameters(name: str, stored: Any) -> Any:
    """An unfitted estimator whose parameters pass its own checks."""
    estimator = class_of(name)()
    if not isinstance(stored, dict) or not set(stored) <= set(estimator.get_params(deep=False)):
        raise Refused(f"parameters that {name} does not have")
    parameters = {key: decode(value, f"a parameter {key!r}") for key, value in stored.items()}
    if any(isinstance(value, float) and value != value for value in parameters.values()):
        raise Refused("a parameter that is NaN")
    estimator.set_params(**parameters)
    estimator._validate_params()
    return estimator
