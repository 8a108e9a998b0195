"""Steps before an estimator as ONNX operators: scalers, imputers, and the columns of mixed tables.

Texts become features by a table: an operator finds the row of a category, and the rows are what the fitted
encoder itself returns for the categories, for an empty text, and for an unknown one.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from maxmargin._sklearn import feature_counts
from maxmargin._types import Floats
from maxmargin.persistence.models import TRANSFORMERS, check_class
from maxmargin.persistence.onnx_graph import Graph
from maxmargin.persistence.scalers import SCALERS

# A text that is not among the categories.
_UNKNOWN = "\x00 no category"


def features(graph: Graph, transformer: Any) -> str:
    """The features that a fitted ColumnTransformer makes of its columns, each of which becomes an input."""
    known = getattr(transformer, "feature_names_in_", None)
    names = [f"x{k}" for k in range(transformer.n_features_in_)] if known is None else known.tolist()
    if any(str(name).startswith(graph.prefix) for name in names):
        raise ValueError(f"Columns whose names begin with {graph.prefix!r} cannot be exported: rename them.")
    weights = transformer.transformer_weights or {}
    found = []
    for name, part, columns in transformer.transformers_:
        chosen = _names(columns, names)
        if (isinstance(part, str) and part == "drop") or not chosen:
            continue
        steps = _steps(part)
        made = _part(graph, steps, chosen)
        found.append(made if name not in weights else graph.add("Mul", made, graph.real(weights[name])))
    return found[0] if len(found) == 1 else graph.add("Concat", *found, axis=1)


def of_numbers(graph: Graph, step: Any, X: str) -> str:
    """Numbers after a scaler, an imputer or an encoder of numbers."""
    name = type(step).__name__
    if name in SCALERS:
        return _scale(graph, step, X)
    if name == "SimpleImputer":
        return _impute(graph, step, X)
    if name in ("OneHotEncoder", "OrdinalEncoder"):
        return _encode_numbers(graph, step, X)
    return X  # ColumnValues: an input has numbers already


def _names(columns: Any, names: list[str]) -> list[str]:
    """Columns by name, however they were chosen."""
    listed = [columns] if isinstance(columns, str | int) else np.asarray(columns, dtype=object).tolist()
    if listed and all(isinstance(column, bool) for column in listed):
        listed = [k for k, chosen in enumerate(listed) if chosen]
    return [column if isinstance(column, str) else names[column] for column in listed]


def _steps(part: Any) -> list[Any]:
    """The transformers of a part, in their order."""
    if isinstance(part, str) or (isinstance(part, FunctionTransformer) and part.func is None):
        return []
    steps = [step for _, step in part.steps] if isinstance(part, Pipeline) else [part]
    steps = [step for step in steps if step not in (None, "passthrough")]
    for step in steps:
        check_class(step, TRANSFORMERS)
    return steps


def _part(graph: Graph, steps: list[Any], columns: list[str]) -> str:
    """The features of a part."""
    if any(type(step).__name__ == "TfidfVectorizer" for step in steps):
        raise ValueError(
            f"The text of the column {columns[0]!r} cannot be exported: ONNX has no operator that splits "
            "text into words as TfidfVectorizer does. Leave the column out, or use another format."
        )
    at = next((k for k, step in enumerate(steps) if hasattr(step, "categories_")), None)
    if at is not None and _takes_texts(steps[at]):
        inputs = [graph.column(name, text=True) for name in columns]
        blocks = [_look_up(graph, steps[: at + 1], k, text) for k, text in enumerate(inputs)]
        X, steps = _joined(graph, blocks), steps[at + 1 :]
    else:
        X = _joined(graph, [graph.column(name, text=False) for name in columns])
    for step in steps:
        X = of_numbers(graph, step, X)
    return X


def _joined(graph: Graph, parts: list[str]) -> str:
    return graph.add("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]


def _takes_texts(encoder: Any) -> bool:
    return any(known.dtype.kind in "OU" for known in encoder.categories_)


def _look_up(graph: Graph, steps: list[Any], k: int, text: str) -> str:
    """The features of column k, of texts."""
    encoder = steps[-1]
    counts = feature_counts(encoder)
    known = [value for value in encoder.categories_[k].tolist() if isinstance(value, str) and value]
    rows = np.empty((len(known) + 2, len(counts)), dtype=object)
    for j, others in enumerate(encoder.categories_):
        rows[:, j] = others[0]
    rows[:, k] = [*known, "", _UNKNOWN]
    start, stop = sum(counts[:k]), sum(counts[: k + 1])
    table = np.zeros((len(rows), stop - start))
    for row in range(len(rows)):
        values: Any = rows[row : row + 1]
        try:
            for step in steps[:-1]:
                values = step.transform(values)
            table[row] = _encoded(encoder, values)[0, start:stop]
        except ValueError:  # an encoder that refuses unknown categories: no feature is set
            continue
    keys = np.arange(len(known) + 1).tolist()
    index = graph.add(
        "LabelEncoder", graph.add("Reshape", text, np.array([-1])), domain="ai.onnx.ml",
        keys_strings=[*known, ""], values_int64s=keys, default_int64=len(known) + 1,
    )  # fmt: skip
    return graph.add("Gather", graph.real(table), index, axis=0)


def _encode_numbers(graph: Graph, encoder: Any, X: str) -> str:
    """Features of columns of numbers that are categories."""
    counts = feature_counts(encoder)
    blocks = []
    for k, known in enumerate(encoder.categories_):
        column = graph.add("Gather", X, np.array([k]), axis=1)
        values = known.astype(np.float64)
        rows = np.zeros((len(values), len(counts)), dtype=np.float64)
        for j, others in enumerate(encoder.categories_):
            rows[:, j] = others[0]
        rows[:, k] = values
        own = slice(sum(counts[:k]), sum(counts[: k + 1]))
        table = _encoded(encoder, rows)[:, own]
        unknown = rows[:1].copy()
        unknown[0, k] = np.abs(values[np.isfinite(values)]).max(initial=0.0) * 2.0 + 1.0
        try:
            other = _encoded(encoder, unknown)[:, own]
        except ValueError:
            other = np.zeros((1, counts[k]))
        if not (np.isfinite(table).all() and np.isfinite(other).all()):
            raise ValueError("Codes of categories that are NaN cannot be exported: use numbers for them.")
        hit = graph.add("Equal", column, graph.real(values[None, :]))
        if np.isnan(values).any():
            empty = graph.add("And", graph.add("IsNaN", column), np.isnan(values)[None, :])
            hit = graph.add("Or", hit, empty)
        hit = graph.add("Cast", hit, to=graph.onnx.helper.np_dtype_to_tensor_dtype(graph.dtype))
        # The features of an unknown category, and for each known one the difference from these.
        blocks.append(
            graph.add("Add", graph.add("MatMul", hit, graph.real(table - other)), graph.real(other))
        )
    return _joined(graph, blocks)


def _encoded(encoder: Any, rows: Any) -> Floats:
    """Features that an encoder makes of rows, which may have categories that it does not know."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = encoder.transform(rows)
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found, dtype=np.float64)


def _impute(graph: Graph, imputer: Any, X: str) -> str:
    """Numbers with the missing ones filled in; columns without any known value may be left out."""
    if imputer.add_indicator:
        raise ValueError("A SimpleImputer with add_indicator=True cannot be exported: use False.")
    values = np.asarray(imputer.statistics_, dtype=np.float64)
    mark = float(imputer.missing_values)
    missing = graph.add("IsNaN", X) if np.isnan(mark) else graph.add("Equal", X, graph.real(mark))
    X = graph.add("Where", missing, graph.real(np.nan_to_num(values)[None, :]), X)
    if np.isnan(values).any() and not imputer.keep_empty_features and imputer.strategy != "constant":
        X = graph.add("Gather", X, np.flatnonzero(~np.isnan(values)), axis=1)
    return X


def _scale(graph: Graph, scaler: Any, X: str) -> str:
    name = type(scaler).__name__
    if name == "StandardScaler":
        if scaler.with_mean:
            X = graph.add("Sub", X, graph.real(scaler.mean_))
        return graph.add("Div", X, graph.real(scaler.scale_)) if scaler.with_std else X
    if name == "RobustScaler":
        if scaler.with_centering:
            X = graph.add("Sub", X, graph.real(scaler.center_))
        return graph.add("Div", X, graph.real(scaler.scale_)) if scaler.with_scaling else X
    if name == "MaxAbsScaler":
        X = graph.add("Div", X, graph.real(scaler.scale_))
        return graph.add("Clip", X, graph.real(-1.0), graph.real(1.0)) if _clips(scaler) else X
    X = graph.add("Add", graph.add("Mul", X, graph.real(scaler.scale_)), graph.real(scaler.min_))
    if not scaler.clip:
        return X
    low, high = scaler.feature_range
    return graph.add("Clip", X, graph.real(low), graph.real(high))


def _clips(scaler: Any) -> bool:
    return bool(getattr(scaler, "clip", False))  # an option of newer versions of scikit-learn
