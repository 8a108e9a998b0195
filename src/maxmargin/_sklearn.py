"""Private names of scikit-learn, and what differs between its versions; nothing else here imports them.

A name that a release moves or renames is repaired in this file. ``tests/test_sklearn_names.py`` resolves all
of them, with the oldest supported scikit-learn as well as the newest.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sklearn.base import _fit_context as fit_context
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import Hidden, Interval, StrOptions
from sklearn.utils.multiclass import _ovr_decision_function as ovr_decision_function
from sklearn.utils.validation import _check_method_params as check_method_params
from sklearn.utils.validation import _check_sample_weight as check_sample_weight
from sklearn.utils.validation import _num_samples as num_samples

try:  # scikit-learn 1.9 and later
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # pragma: no cover  (depends on the installed version)

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Callbacks came with scikit-learn 1.9."""

    def with_callbacks(method: Any) -> Any:
        """Nothing to tear down before scikit-learn 1.9."""
        return method


__all__ = [
    "CallbackSupportMixin",
    "Hidden",
    "Interval",
    "StrOptions",
    "callbacks_of",
    "check_method_params",
    "check_sample_weight",
    "fit_context",
    "num_samples",
    "output_of",
    "ovr_decision_function",
    "safe_indexing",
    "validate_parameters",
    "validate_step_names",
    "with_callbacks",
]

# Names for searches, in modules that take too long to import for a fit.
_ON_DEMAND = {
    "MultimetricScorer": ("sklearn.metrics._scorer", "_MultimetricScorer"),
    "fit_and_score": ("sklearn.model_selection._validation", "_fit_and_score"),
    "insert_error_scores": ("sklearn.model_selection._validation", "_insert_error_scores"),
    "safe_split": ("sklearn.utils.metaestimators", "_safe_split"),
    "warn_or_raise_about_fit_failures": (
        "sklearn.model_selection._validation",
        "_warn_or_raise_about_fit_failures",
    ),
}


def __getattr__(name: str) -> Any:
    if name not in _ON_DEMAND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _ON_DEMAND[name]
    return getattr(import_module(module), attribute)


def validate_parameters(estimator: Any) -> None:
    """Check the parameters of an estimator, as its `fit` does first."""
    estimator._validate_params()


def validate_step_names(pipeline: Any) -> None:
    """Check the names of the steps of a pipeline, as its `fit` does."""
    pipeline._validate_names([name for name, _ in pipeline.steps])


def callbacks_of(estimator: Any) -> Any:
    """The callbacks set on an estimator; None without, or before scikit-learn 1.9."""
    set_here = getattr(estimator, "_skl_callbacks", None)
    return set_here if set_here and hasattr(estimator, "_init_callback_context") else None


def output_of(estimator: Any) -> str | None:
    """The container that `set_output` has asked a transformer for."""
    found = getattr(estimator, "_sklearn_output_config", {}).get("transform")
    return None if found is None else str(found)
