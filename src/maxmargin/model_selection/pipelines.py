"""An estimator at the end of a pipeline: its own parameters, and the steps before it."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from maxmargin.model_selection.refusal import Refused, because

_NOTHING = (None, "passthrough")


class PassRowsOn(BaseEstimator):
    """The last step of a pipeline in place of its estimator: passes its rows on.

    Unlike ``"passthrough"`` it counts as fitted. Otherwise scikit-learn asks whether the step before it is,
    which need not have fitted attributes in the whole pipeline.
    """

    def fit(self, X: Any, y: Any = None) -> PassRowsOn:
        """Do nothing."""
        return self

    def transform(self, X: Any) -> Any:
        """The rows as they are."""
        return X

    def __sklearn_is_fitted__(self) -> bool:
        return True


def split_pipeline(estimator: Any) -> tuple[Pipeline | None, Any, str]:
    """The steps before the last as a pipeline (or None), the last step, and the prefix of its parameters.

    The pipeline keeps the names of all steps, and the last one passes its rows on: parameters have the same
    names as before, and a cache (`memory`) sees the same steps. A pipeline that is the last step of another
    is split too.
    """
    if not isinstance(estimator, Pipeline):
        return None, estimator, ""
    name, step = estimator.steps[-1]
    inner, last, prefix = split_pipeline(step)
    steps = [*estimator.steps[:-1], (name, PassRowsOn() if inner is None else inner)]
    return Pipeline(steps, memory=estimator.memory), last, f"{name}__{prefix}"


def pipeline_kinds(estimator: Any) -> list[type]:
    """The classes of a pipeline and of those that are its last steps, which are split.

    Pipelines in other places are not: they transform rows by their own methods.
    """
    found = []
    while isinstance(estimator, Pipeline):
        found.append(type(estimator))
        estimator = estimator.steps[-1][1]
    return found


def split_parameters(params: dict[str, Any], prefix: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters of the steps before the last, and those of the last step by their own names."""
    own = {k[len(prefix) :]: v for k, v in params.items() if k.startswith(prefix)}
    return {k: v for k, v in params.items() if not k.startswith(prefix)}, own


def steps_before(estimator: Any, outer: dict[str, Any]) -> Pipeline | Refused | None:
    """The steps before the last with the parameters `outer`; None if they pass all rows on as they are."""
    before, _, prefix = split_pipeline(estimator)
    if outer:
        if before is None:
            return Refused(f"{', '.join(sorted(outer))} is not a parameter of the estimator")
        others = sorted(_whole_pipeline(prefix).intersection(outer))
        if others:
            return Refused(f"{', '.join(others)} is not a parameter of the steps before the last")
        try:
            before = clone(before).set_params(**clone(outer, safe=False))
        except (AttributeError, TypeError, ValueError) as error:
            return Refused(f"the steps before the last cannot be set ({because(error)})")
    return None if before is None or passes_rows_on(before) else before


def passes_rows_on(step: Any) -> bool:
    """Whether a step of a pipeline leaves its rows as they are."""
    kind = type(step)
    if kind is Pipeline:  # a subclass may do anything
        return all(passes_rows_on(inner) for _, inner in step.steps)
    return kind is PassRowsOn or step is None or (isinstance(step, str) and step in _NOTHING)


def _whole_pipeline(prefix: str) -> set[str]:
    """Names of parameters that replace the last step, or all steps."""
    found, path = {"steps"}, ""
    for name in prefix.split("__")[:-1]:
        found |= {path + name, f"{path}{name}__steps"}
        path += f"{name}__"
    return found
