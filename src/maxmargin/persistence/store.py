"""Save and load: from estimators and pipelines to the native container, and back."""

from __future__ import annotations

from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from maxmargin._files import File, writing
from maxmargin._sklearn import validate_step_names
from maxmargin.persistence import native
from maxmargin.persistence.columns import describe_columns, restore_columns, width_of
from maxmargin.persistence.estimators import ESTIMATORS
from maxmargin.persistence.models import BEFORE, TRANSFORMERS, check_class, describe, restore
from maxmargin.persistence.schema import Stored
from maxmargin.persistence.streams import ModelFileError, name_of, reading
from maxmargin.persistence.values import Refused

_ESTIMATORS = tuple(ESTIMATORS)
_MOST_STEPS = 100


def save(estimator: Any, file: File) -> None:
    """Write a fitted model to a file of maxmargin's own format.

    The file holds a JSON header and plain arrays, no code. The same model gives the same bytes. A path is
    written beside its place and then renamed, so that the old file remains if writing fails.

    Parameters
    ----------
    estimator : object
        A fitted estimator of maxmargin, a pipeline of scikit-learn's `StandardScaler`, `MinMaxScaler`,
        `MaxAbsScaler`, `RobustScaler`, `SimpleImputer` and "passthrough" that ends in one, or a fitted
        `SVMSearchCV`, `SVCCV` or other tuner, of which `best_estimator_` is stored, with its calibrator. The
        pipeline may begin with a `ColumnTransformer` of these, `OneHotEncoder`, `OrdinalEncoder`,
        `TfidfVectorizer` and `maxmargin.data.columns.ColumnValues`.
    file : path or binary file object
        The file to write.

    Raises
    ------
    TypeError
        If such an estimator cannot be stored.
    ValueError
        If a parameter is a function or another object.

    Notes
    -----
    Not stored: `trace_`, the solution for a warm start, callbacks and metadata requests. `IncrementalSVC`
    keeps the rows that it holds and continues from them.

    Examples
    --------
    >>> import io
    >>> from maxmargin import SVC
    >>> from maxmargin.persistence import load, save
    >>> file = io.BytesIO()
    >>> save(SVC().fit([[0.0], [1.0], [2.0]], ["a", "b", "b"]), file)
    >>> _ = file.seek(0)
    >>> load(file).predict([[0.1]])
    array(['a'], dtype='<U1')
    """
    estimator = chosen(estimator)
    arrays: Stored = {}
    if isinstance(estimator, Pipeline):
        content: dict[str, Any] = {"pipeline": _describe_steps(estimator, arrays)}
    else:
        check_class(estimator, _ESTIMATORS)
        content = {"model": describe(estimator, "", arrays)}
    with writing(file) as stream:
        native.write(stream, content, arrays)


def load(file: File) -> Any:
    """Read a model that `save` wrote.

    Every array is checked before it is used: a file that was damaged or manipulated gives an error.

    Parameters
    ----------
    file : path or binary file object
        The file to read; a file object is left after the model.

    Returns
    -------
    estimator : object
        The fitted estimator; it predicts what the saved one predicted, bit by bit.

    Raises
    ------
    ModelFileError
        If the file is damaged or malformed.

    Examples
    --------
    See `save`.
    """
    name = name_of(file)
    with reading(file) as (stream, length):
        content, arrays = native.read(stream, name, length)
    try:
        if set(content) == {"model"}:
            record = content["model"]
            if isinstance(record, dict) and record.get("class") in tuple(TRANSFORMERS):
                raise Refused("a scaler or encoder instead of an estimator")
            estimator = restore(record, "", arrays)
        elif set(content) == {"pipeline"}:
            estimator = _restore_steps(content["pipeline"], arrays)
        else:
            raise Refused("neither a model nor a pipeline, or both")
        if arrays:
            raise Refused("arrays that do not belong to the model")
    except Refused as refused:
        raise ModelFileError(
            f"{name}: the file has {refused}. It was written by another version of maxmargin, or "
            "manipulated: do not trust its source."
        ) from None
    except ValueError as error:  # the estimator's own checks of its parameters
        raise ModelFileError(f"{name}: the file has a parameter that is not allowed: {error}") from None
    return estimator


def chosen(estimator: Any) -> Any:
    """The estimator itself, or the best one of a search or tuner."""
    from sklearn.model_selection import GridSearchCV

    from maxmargin.model_selection.tuning.base import BaseTuner

    if isinstance(estimator, GridSearchCV | BaseTuner):
        check_is_fitted(estimator)
        if not hasattr(estimator, "best_estimator_"):
            raise ValueError("The search has no best_estimator_ to store: fit it with refit=True.")
        return estimator.best_estimator_
    return estimator


def _describe_steps(pipeline: Pipeline, arrays: Stored) -> dict[str, Any]:
    options = {key: getattr(pipeline, key, None) for key in ("memory", "transform_input")}
    for key, value in options.items():
        if value is not None:
            raise ValueError(f"A pipeline with {key} cannot be stored: set it to None.")
    if len(pipeline.steps) > _MOST_STEPS:
        raise ValueError(f"A pipeline of more than {_MOST_STEPS} steps cannot be stored.")
    steps: list[list[Any]] = []
    for k, (name, step) in enumerate(pipeline.steps):
        last = k == len(pipeline.steps) - 1
        if step in (None, "passthrough") and not last:
            steps.append([name, "passthrough"])
            continue
        if isinstance(step, ColumnTransformer) and k == 0 and not last:
            steps.append([name, describe_columns(step, f"{k}/", arrays)])
            continue
        check_class(step, _ESTIMATORS if last else BEFORE)
        steps.append([name, describe(step, f"{k}/", arrays)])
    return {"steps": steps, "verbose": bool(pipeline.verbose)}


def _restore_steps(record: Any, arrays: Stored) -> Pipeline:
    if not isinstance(record, dict) or set(record) != {"steps", "verbose"}:
        raise Refused("a pipeline without exactly the keys 'steps' and 'verbose'")
    steps, verbose = record["steps"], record["verbose"]
    if not isinstance(steps, list) or not 1 <= len(steps) <= _MOST_STEPS or type(verbose) is not bool:
        raise Refused("a pipeline without steps, or with too many")
    if not all(isinstance(step, list) and len(step) == 2 and isinstance(step[0], str) for step in steps):
        raise Refused("a pipeline step that is not a pair of a name and a model")
    found: list[tuple[str, Any]] = []
    d = None
    for k, (name, step) in enumerate(steps):
        last = k == len(steps) - 1
        if step == "passthrough" and not last:
            found.append((name, step))
            continue
        if isinstance(step, dict) and step.get("class") == "ColumnTransformer" and k == 0 and not last:
            estimator = restore_columns(step, f"{k}/", arrays)
        elif not isinstance(step, dict) or step.get("class") not in (_ESTIMATORS if last else BEFORE):
            raise Refused(
                "a pipeline step that is not a scaler, or a last step that is not an estimator of maxmargin"
            )
        else:
            estimator = restore(step, f"{k}/", arrays)
        if d is not None and estimator.n_features_in_ != d:
            raise Refused("steps of a pipeline with different numbers of features")
        d = estimator.n_features_in_ if last else width_of(estimator)
        found.append((name, estimator))
    pipeline = Pipeline(found, verbose=verbose)
    validate_step_names(pipeline)
    return pipeline
