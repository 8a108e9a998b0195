"""An estimator at the end of a pipeline: its own parameters, and the steps before it."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline


def split_pipeline(estimator: Any) -> tuple[Any, Any, str]:
    """The steps before the last as a pipeline (or None), the last step, and the prefix of its parameters."""
    if not isinstance(estimator, Pipeline):
        return None, estimator, ""
    steps = [
        (name, step) for name, step in estimator.steps[:-1] if step is not None and step != "passthrough"
    ]
    name, last = estimator.steps[-1]
    before = Pipeline(steps, memory=estimator.memory) if steps else None
    return before, last, f"{name}__"


def split_parameters(params: dict[str, Any], prefix: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters of the steps before the last, and those of the last step by their own names."""
    own = {k[len(prefix) :]: v for k, v in params.items() if k.startswith(prefix)}
    return {k: v for k, v in params.items() if not k.startswith(prefix)}, own
