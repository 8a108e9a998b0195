"""The columns of a mixed table as features: a ColumnTransformer of scikit-learn, and what one has learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from maxmargin.data.columns import ColumnValues
from maxmargin.data.kinds import Column
from maxmargin.data.mixed import Schema
from maxmargin.data.table import DataError

#: Features that a column of categories becomes at most; rare categories share the last one.
MOST_CATEGORIES = 50
#: Words of a column of text that become features.
MOST_WORDS = 1000
#: What fills in empty cells of categories.
NO_CATEGORY = "missing"


def encoder_for(columns: Sequence[Column], *, impute: bool = True, scaler: Any = None) -> ColumnTransformer:
    """An unfitted encoder of a table with these columns.

    Numbers and dates are filled in with medians and scaled, truth values are 0 and 1, categories get one
    feature each, text is weighted by TF-IDF. Categories that are unknown at prediction count as rare ones,
    or as none where all were frequent.

    Parameters
    ----------
    columns : sequence of Column
        Names and kinds of the columns.
    impute : bool
        Whether empty cells are filled in; otherwise they are errors.
    scaler : transformer, optional
        What scales numbers and dates.

    Returns
    -------
    ColumnTransformer
        It takes data frames, and ignores columns that it does not know.
    """
    by_kind: dict[tuple[str, str | None], list[str]] = {}
    for column in columns:
        if column.kind != "left out":
            by_kind.setdefault((column.kind, column.form), []).append(column.name)
    if not by_kind:
        raise DataError("no column is left for the features.")
    with_text = any(kind == "text" for kind, _ in by_kind)
    parts: list[tuple[str, Any, Any]] = []
    for k, ((kind, form), names) in enumerate(by_kind.items()):
        if kind == "text":
            parts += [(f"text_{k}_{j}", _text(), name) for j, name in enumerate(names)]
        else:
            parts.append((f"{kind}_{k}", _part(kind, form, impute, scaler, with_text), names))
    threshold = 1.0 if with_text else 0.0
    return ColumnTransformer(parts, sparse_threshold=threshold)


def _part(kind: str, form: str | None, impute: bool, scaler: Any, sparse: bool) -> Any:
    if kind == "category":
        steps: list[Any] = [ColumnValues("category", missing=impute)]
        if impute:
            steps.append(SimpleImputer(strategy="constant", fill_value=NO_CATEGORY))
        encoder = OneHotEncoder(
            handle_unknown="infrequent_if_exist", max_categories=MOST_CATEGORIES, sparse_output=sparse
        )
        return make_pipeline(*steps, encoder)
    steps = [ColumnValues("date" if kind == "date" else "number", date_form=form, missing=impute)]
    if impute:
        strategy = "most_frequent" if kind == "boolean" else "median"
        steps.append(SimpleImputer(strategy=strategy, keep_empty_features=True))
    if scaler is not None and kind != "boolean":
        steps.append(clone(scaler))
    return make_pipeline(*steps)


def _text() -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return make_pipeline(ColumnValues("text"), TfidfVectorizer(max_features=MOST_WORDS))


def encoder_of(estimator: Any) -> ColumnTransformer | None:
    """The encoder of a mixed table at the beginning of a fitted pipeline, if there is one."""
    if isinstance(estimator, Pipeline) and isinstance(estimator.steps[0][1], ColumnTransformer):
        return estimator.steps[0][1]
    return None


def fills_in(encoder: ColumnTransformer) -> bool:
    """Whether empty cells are allowed."""
    firsts = [_steps(part)[0] for _, part, _ in encoder.transformers_ if not isinstance(part, str)]
    return not any(isinstance(step, ColumnValues) and not step.missing for step in firsts)


def schema_of(encoder: ColumnTransformer) -> Schema:
    """The columns that a fitted encoder knows, and how it reads those that it uses."""
    known = getattr(encoder, "feature_names_in_", None)
    if known is None:
        raise DataError(
            "the model was trained without names of columns, so that a file cannot be matched with it: train "
            "it with a data frame."
        )
    columns: dict[str, Column] = {}
    for _, part, chosen in encoder.transformers_:
        if isinstance(part, str) and part == "drop":
            continue
        kind, form = _reads(_steps(part)[0])
        one = isinstance(chosen, str | int)
        for name in [chosen] if one else chosen:
            name = str(known[name]) if isinstance(name, int) else str(name)
            columns[name] = Column(name, kind, form=form)
    order = {str(name): k for k, name in enumerate(known)}
    return Schema(list(order), dict(sorted(columns.items(), key=lambda item: order[item[0]])))


def _steps(part: Any) -> list[Any]:
    return [step for _, step in part.steps] if isinstance(part, Pipeline) else [part]


def _reads(first: Any) -> tuple[str, str | None]:
    """Kind of the columns that a fitted transformer takes, and the form of their dates."""
    if isinstance(first, ColumnValues):
        return first.kind, first.date_form
    if isinstance(first, OneHotEncoder | OrdinalEncoder):
        return ("category" if first.categories_[0].dtype.kind in "OU" else "number"), None
    if isinstance(first, SimpleImputer):
        texts = any(isinstance(value, str) for value in first.statistics_.tolist())
        return ("category" if texts else "number"), None
    return ("text" if hasattr(first, "vocabulary_") else "number"), None
