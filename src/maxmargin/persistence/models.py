"""From one estimator to a header and arrays, and back.

To add a class, add a line to `maxmargin.persistence.estimators.ESTIMATORS`: where the class is, and its
fields beside those of all estimators.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Any

from sklearn.utils.validation import check_is_fitted

from maxmargin._sklearn import output_of, validate_parameters
from maxmargin.persistence.estimators import ESTIMATORS, LARGEST
from maxmargin.persistence.scalers import SCALERS
from maxmargin.persistence.schema import Entry, NumberField, PerRowField, Sizes, Stored, Values
from maxmargin.persistence.tables import TABLES
from maxmargin.persistence.values import (
    Refused,
    decode,
    decode_labels,
    decode_names,
    encode,
    encode_labels,
)

#: What may come before an estimator, or be a part of a ColumnTransformer.
TRANSFORMERS: dict[str, Entry] = {**SCALERS, **TABLES}
#: Steps of a pipeline before an estimator; a ColumnTransformer may besides be the first.
BEFORE = (*SCALERS, "SimpleImputer")
ENTRIES: dict[str, Entry] = {**ESTIMATORS, **TRANSFORMERS}
#: Containers that `set_output` of a transformer accepts.
OUTPUTS = ("default", "pandas", "polars")


def class_of(name: str) -> Any:
    """The class behind a name of `ENTRIES`."""
    return getattr(import_module(ENTRIES[name].module), name)


def check_class(estimator: Any, names: Collection[str]) -> None:
    """Whether the estimator is fitted and exactly of one of the classes."""
    name = type(estimator).__name__
    if name not in names or type(estimator) is not class_of(name):
        if name in names and hasattr(estimator, "to_local"):
            raise TypeError(f"{name} of maxmargin.dask cannot be stored: store what its to_local() returns.")
        raise TypeError(
            f"{name} cannot be stored: only {', '.join(names)} and pipelines that end in one can. Pickle or "
            "skops may be able to."
        )
    check_is_fitted(estimator)


def describe(estimator: Any, prefix: str, arrays: Stored) -> dict[str, Any]:
    """The header of one estimator; its arrays are added to `arrays` under names with the prefix."""
    name = type(estimator).__name__
    entry = ENTRIES[name]
    validate_parameters(estimator)  # may have been set after the fit; `restore` would refuse them
    given = entry.begin(estimator)
    values: dict[str, Any] = {}
    own: Stored = {}
    record: dict[str, Any] = {
        "class": name,
        "parameters": {
            key: encode(value, f"The parameter {key} of {name}")
            for key, value in sorted(estimator.get_params(deep=False).items())
        },
        "n_features": int(getattr(estimator, "n_features_in_", 1)),  # of text there is one column
        "values": values,
    }
    for key, field in entry.fields.items():
        field.put(key, given[key] if key in given else getattr(estimator, key), values, own)
    if entry.labels is not None:
        labels = given[entry.labels] if entry.labels in given else getattr(estimator, entry.labels)
        record["labels"] = encode_labels(labels)
    if hasattr(estimator, "feature_names_in_"):
        record["feature_names"] = [str(v) for v in estimator.feature_names_in_]
    output = output_of(estimator)
    if output is not None:
        record["output"] = output
    arrays.update({prefix + key: value for key, value in own.items()})
    return record


def restore(record: Any, prefix: str, arrays: Stored) -> Any:
    """The estimator behind a header; raises `Refused` for values that prediction could not use."""
    known = {"class", "parameters", "n_features", "values", "labels", "feature_names", "output"}
    if not isinstance(record, dict) or not set(record) <= known:
        raise Refused("a model with unknown keys")
    name = record.get("class")
    if not isinstance(name, str) or name not in ENTRIES:
        raise Refused(f"a model of an unknown class, {str(name)[:50]!r}")
    entry = ENTRIES[name]
    estimator = _with_parameters(name, record.get("parameters"))
    d, values = record.get("n_features"), record.get("values")
    if type(d) is not int or not 1 <= d <= LARGEST or not isinstance(values, dict):
        raise Refused("an invalid number of features, or no values")
    own = {key.removeprefix(prefix): arrays.pop(key) for key in list(arrays) if key.startswith(prefix)}
    sizes: Sizes = {"features": d}
    found: Values = {}
    if entry.labels is not None:
        labels = decode_labels(record.get("labels"), ordered=entry.labels == "classes_")
        found[entry.labels] = labels
        sizes["classes"] = len(labels)
    elif "labels" in record:
        raise Refused("labels for an estimator that has none")
    entry.sizes(estimator, sizes, own)
    fields = {k: f.of(sizes) if isinstance(f, PerRowField) else f for k, f in entry.fields.items()}
    for key, field in fields.items():
        found[key] = field.get(key, values, own, sizes)
    numbers = {key: field for key, field in fields.items() if isinstance(field, NumberField)}
    needed = {key for key, field in numbers.items() if field.missing is None}
    if own or not needed <= set(values) <= set(numbers):
        raise Refused("arrays or values that do not belong to the model")
    estimator.n_features_in_ = d
    if "feature_names" in record:
        estimator.feature_names_in_ = decode_names(record["feature_names"], d)
    if "output" in record:
        if (
            name not in TRANSFORMERS
            or not hasattr(estimator, "set_output")
            or record["output"] not in OUTPUTS
        ):
            raise Refused("an unknown output container")
        estimator.set_output(transform=record["output"])
    entry.finish(estimator, found, sizes)
    return estimator


def _with_parameters(name: str, stored: Any) -> Any:
    """An unfitted estimator whose parameters pass its own checks."""
    estimator = class_of(name)()
    if not isinstance(stored, dict) or not set(stored) <= set(estimator.get_params(deep=False)):
        raise Refused(f"parameters that {name} does not have")
    parameters = {key: decode(value, f"a parameter {key!r}") for key, value in stored.items()}
    numbers = [value for key, value in parameters.items() if key not in ENTRIES[name].may_be_nan]
    if any(isinstance(value, float) and value != value for value in numbers):
        raise Refused("a parameter that is NaN")
    estimator.set_params(**{**ENTRIES[name].earlier, **parameters})
    validate_parameters(estimator)
    return estimator
