"""A ColumnTransformer of scikit-learn in a model file: its parts, each a transformer or a pipeline of some.

What a part gets and returns is followed from step to step, so that a file cannot join an encoder of texts
with numbers, or parts whose widths do not fit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from maxmargin._sklearn import output_of, set_column_parts, validate_parameters, validate_step_names
from maxmargin.persistence.estimators import LARGEST
from maxmargin.persistence.models import OUTPUTS, TRANSFORMERS, check_class, describe, restore
from maxmargin.persistence.scalers import SCALERS
from maxmargin.persistence.schema import Stored
from maxmargin.persistence.values import Refused, decode, decode_names, encode

_KEYS = {"class", "parameters", "n_features", "parts", "sparse_output"}
# Not n_jobs: a file must not decide how many processes are started.
_PARAMETERS = (
    "remainder", "sparse_threshold", "transformer_weights", "verbose", "verbose_feature_names_out",
)  # fmt: skip
_MOST_PARTS, _MOST_STEPS = 10_000, 100
# What columns hold before, between and after steps.
_RAW, _ONE, _NUMBERS, _TEXTS, _DOCUMENTS = "columns", "one column", "numbers", "texts", "documents"


def describe_columns(transformer: Any, prefix: str, arrays: Stored) -> dict[str, Any]:
    """The header of a fitted ColumnTransformer; its arrays are added under names with the prefix."""
    validate_parameters(transformer)
    if transformer.remainder not in ("drop", "passthrough"):
        raise TypeError(
            "A ColumnTransformer whose remainder is an estimator cannot be stored: name its columns."
        )
    parts = []
    for p, (name, part, columns) in enumerate(transformer.transformers_):
        if name == "remainder":
            continue
        if isinstance(part, str):
            what: Any = part
        elif isinstance(part, FunctionTransformer) and part.func is None:  # for "passthrough"
            what = "passthrough"
        else:
            what = _describe_part(part, f"{prefix}{p}/", arrays)
        parts.append([name, what, _encode_columns(columns)])
    parameters = {name: getattr(transformer, name) for name in _PARAMETERS}
    record = {
        "class": "ColumnTransformer",
        "parameters": {
            key: encode(value, f"The parameter {key} of ColumnTransformer")
            for key, value in parameters.items()
        },
        "n_features": int(transformer.n_features_in_),
        "parts": parts,
        "sparse_output": bool(transformer.sparse_output_),
    }
    if hasattr(transformer, "feature_names_in_"):
        record["feature_names"] = [str(name) for name in transformer.feature_names_in_]
    output = output_of(transformer)
    return record if output is None else {**record, "output": output}


def _describe_part(part: Any, prefix: str, arrays: Stored) -> Any:
    if not isinstance(part, Pipeline):
        check_class(part, TRANSFORMERS)
        return describe(part, prefix, arrays)
    if part.memory is not None:
        raise ValueError("A pipeline with memory cannot be stored: set it to None.")
    steps: list[list[Any]] = []
    kept = [(name, step) for name, step in part.steps if step not in (None, "passthrough")]
    for k, (name, step) in enumerate(kept):
        check_class(step, TRANSFORMERS)
        steps.append([name, describe(step, f"{prefix}{k}/", arrays)])
    return {"steps": steps}


def _encode_columns(columns: Any) -> Any:
    """Columns by their names or positions; a single one is not in a list."""
    if isinstance(columns, str | int | np.integer):
        return columns if isinstance(columns, str) else int(columns)
    if isinstance(columns, slice):
        raise ValueError("A ColumnTransformer with a slice of columns cannot be stored: list the columns.")
    listed = columns.tolist() if hasattr(columns, "tolist") else list(columns)
    if any(isinstance(column, bool) for column in listed):
        return [k for k, chosen in enumerate(listed) if chosen]
    if not all(isinstance(column, str | int) for column in listed):
        raise ValueError("The columns of a ColumnTransformer must be names or positions to be stored.")
    return listed


# -- back --------------------------------------------------------------------------------------------


def restore_columns(record: Any, prefix: str, arrays: Stored) -> Any:
    """The ColumnTransformer behind a header, and checked; it returns numbers."""
    if not isinstance(record, dict) or not _KEYS <= set(record) <= _KEYS | {"feature_names", "output"}:
        raise Refused("a ColumnTransformer with missing or unknown keys")
    d, stored, sparse = record["n_features"], record["parts"], record["sparse_output"]
    if type(d) is not int or not 1 <= d <= LARGEST or type(sparse) is not bool:
        raise Refused("an invalid number of columns, or no word on sparsity")
    if not isinstance(stored, list) or len(stored) > _MOST_PARTS:
        raise Refused("parts that are not a list, or too many")
    names = decode_names(record["feature_names"], d) if "feature_names" in record else None
    if names is not None and len(set(names.tolist())) < d:
        raise Refused("names of columns that are not distinct")
    transformer = ColumnTransformer([], **_restore_parameters(record["parameters"]))
    given: list[tuple[str, Any, Any]] = []
    fitted: list[tuple[str, Any, Any]] = []
    places: dict[str, list[int]] = {}
    widths: dict[str, int] = {}
    for p, entry in enumerate(stored):
        if not isinstance(entry, list) or len(entry) != 3 or not isinstance(entry[0], str):
            raise Refused("a part that is not made of a name, a transformer and columns")
        name, what, columns = entry
        at = _positions_of(columns, names, d)
        part, width = _restore_part(what, columns, at, names, f"{prefix}{p}/", arrays)
        if name in places or name == "remainder":
            raise Refused("parts of a ColumnTransformer with the same name")
        places[name] = at
        given.append((name, what if isinstance(what, str) else part, columns))
        fitted.append((name, part, columns))
        if width is not None:
            widths[name] = width
    rest = sorted(set(range(d)) - {k for at in places.values() for k in at})
    by_name = names is not None and all(_by_name(columns) for *_, columns in fitted) and bool(fitted)
    left: Any = list(names[rest]) if by_name and names is not None else rest
    places["remainder"] = rest
    if rest:
        last, width = _restore_part(transformer.remainder, left, rest, names, f"{prefix}rest/", arrays)
        fitted.append(("remainder", last, left))
        if width is not None:
            widths["remainder"] = width
    if not sum(widths.values()):
        raise Refused("a ColumnTransformer without features")
    transformer.transformers = given
    transformer.n_features_in_ = d
    if names is not None:
        transformer.feature_names_in_ = names
    if "output" in record:
        if record["output"] not in OUTPUTS:
            raise Refused("an unknown output container")
        transformer.set_output(transform=record["output"])
    set_column_parts(transformer, fitted, places, left, widths, sparse)
    validate_step_names_of(transformer)
    return transformer


def width_of(transformer: Any) -> int:
    """Features that come out of a restored transformer."""
    name = type(transformer).__name__
    if name == "ColumnTransformer":
        return max((part.stop for part in transformer.output_indices_.values()), default=0)
    if name == "OneHotEncoder":
        return len(transformer.get_feature_names_out())
    if name == "TfidfVectorizer":
        return len(transformer.vocabulary_)
    d = int(transformer.n_features_in_)
    if name == "SimpleImputer" and transformer.strategy != "constant" and not transformer.keep_empty_features:
        return d - sum(value != value for value in transformer.statistics_.tolist())
    return d


def validate_step_names_of(transformer: Any) -> None:
    """Check the names of the parts, as the `fit` of a pipeline does."""
    parts = [(name, "passthrough") for name, *_ in transformer.transformers]
    if parts:
        validate_step_names(Pipeline(parts))


def _restore_parameters(stored: Any) -> dict[str, Any]:
    if not isinstance(stored, dict) or set(stored) != set(_PARAMETERS):
        raise Refused("parameters of a ColumnTransformer that are missing or unknown")
    found = {key: decode(value, f"a parameter {key!r}") for key, value in stored.items()}
    if found["remainder"] not in ("drop", "passthrough"):
        raise Refused("a remainder that is neither dropped nor passed on")
    weights = found["transformer_weights"]
    if weights is not None and not (
        isinstance(weights, dict)
        and all(type(key) is str for key in weights)
        and all(type(value) in (int, float) and math.isfinite(value) for value in weights.values())
    ):
        raise Refused("weights of parts that are not finite numbers by name")
    if found["sparse_threshold"] != found["sparse_threshold"]:
        raise Refused("a parameter that is NaN")
    validate_parameters(ColumnTransformer([], **found))
    return found


def _positions_of(columns: Any, names: Any, d: int) -> list[int]:
    """Columns as positions."""
    listed = columns if isinstance(columns, list) else [columns]
    if all(type(column) is str for column in listed) and names is not None:
        order = {name: k for k, name in enumerate(names.tolist())}
        if not set(listed) <= set(order):
            raise Refused("a column that is not among the names")
        return [order[name] for name in listed]
    if not all(type(column) is int and -d <= column < d for column in listed):
        raise Refused("columns that are neither names nor positions")
    return [column % d for column in listed]


def _by_name(columns: Any) -> bool:
    return all(isinstance(column, str) for column in (columns if isinstance(columns, list) else [columns]))


def _restore_part(
    what: Any, columns: Any, at: list[int], names: Any, prefix: str, arrays: Stored
) -> tuple[Any, int | None]:
    """A part, and the number of features that come out of it; None if nothing comes out."""
    if isinstance(what, str) and what == "drop":
        return what, None
    if isinstance(what, str) and what == "passthrough":
        if not isinstance(columns, list):
            raise Refused("a single column that is passed on")
        passes = FunctionTransformer(accept_sparse=True, check_inverse=False, feature_names_out="one-to-one")
        passes.set_output(transform="default")
        passes.n_features_in_ = len(at)
        if names is not None:
            passes.feature_names_in_ = names[at]
        return passes, (len(at) or None)
    if not isinstance(what, dict) or not at:
        raise Refused("a part that is not a transformer, or has no columns")
    if "steps" not in what:
        one = _restore_step(what, prefix, arrays)
        _check_names([one], names, at)
        return one, _follow([one], len(at), isinstance(columns, list))
    steps = what["steps"]
    if set(what) != {"steps"} or not isinstance(steps, list) or not 1 <= len(steps) <= _MOST_STEPS:
        raise Refused("a part without steps, or with too many")
    if not all(isinstance(step, list) and len(step) == 2 and isinstance(step[0], str) for step in steps):
        raise Refused("a step of a part that is not a pair of a name and a transformer")
    found = [(name, _restore_step(step, f"{prefix}{k}/", arrays)) for k, (name, step) in enumerate(steps)]
    pipeline = Pipeline(found)
    validate_step_names(pipeline)
    width = _follow([step for _, step in found], len(at), isinstance(columns, list))
    _check_names([step for _, step in found], names, at)
    return pipeline, width


def _check_names(steps: list[Any], names: Any, at: list[int]) -> None:
    """Whether steps that know names of columns know those that they get."""
    known = None if names is None else names[at]
    for step in steps:
        own = getattr(step, "feature_names_in_", None)
        if own is not None and (known is None or own.tolist() != list(known)):
            raise Refused("a step of a part with other names of columns than the part")
        named = hasattr(step, "get_feature_names_out") and type(step).__name__ != "TfidfVectorizer"
        known = step.get_feature_names_out(known) if named and known is not None else None


def _restore_step(record: Any, prefix: str, arrays: Stored) -> Any:
    name = record.get("class") if isinstance(record, dict) else None
    if not isinstance(name, str) or name not in TRANSFORMERS:
        raise Refused("a step of a part that is not a transformer that can be stored")
    return restore(record, prefix, arrays)


def _follow(steps: list[Any], width: int, table: bool) -> int:
    """Features that come out of steps; raises `Refused` if one does not take what the one before returns."""
    holds = _RAW if table else _ONE
    for step in steps:
        if getattr(step, "n_features_in_", 1) != width:
            raise Refused("steps of a part with different numbers of columns")
        takes, returns = _flow(step)
        if holds not in takes:
            raise Refused("steps of a part that do not take what the ones before return")
        holds, width = returns, width_of(step)
    if holds != _NUMBERS:
        raise Refused("a part that does not return numbers")
    return width


def _flow(step: Any) -> tuple[tuple[str, ...], str]:
    """The kinds of columns that a step takes, and the kind that it returns."""
    name = type(step).__name__
    if name in SCALERS:
        return (_RAW, _NUMBERS), _NUMBERS
    if name == "ColumnValues":
        if step.kind == "text":
            return (_ONE,), _DOCUMENTS
        return (_RAW,), _TEXTS if step.kind == "category" else _NUMBERS
    if name == "TfidfVectorizer":
        return (_ONE, _DOCUMENTS), _NUMBERS
    if name == "SimpleImputer":
        kind = _NUMBERS if step.statistics_.dtype.kind == "f" else _TEXTS
        return (_RAW, kind), kind
    kinds = {_TEXTS if known.dtype.kind in "OU" else _NUMBERS for known in step.categories_}
    return (_RAW, *kinds) if len(kinds) == 1 else (_RAW,), _NUMBERS
