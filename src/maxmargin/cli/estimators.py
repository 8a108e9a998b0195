"""Estimators by the names that the option ``--machine`` takes."""

from __future__ import annotations

from typing import Any

from maxmargin.cli.checks import check_parameters, did_you_mean, unknown
from maxmargin.cli.output import BadInput

# Name on the command line, class, and purpose.
ESTIMATORS: dict[str, tuple[str, str]] = {
    "svc": ("SVC", "classification, one binary problem for each pair of classes"),
    "nu-svc": ("NuSVC", "classification with nu in place of C"),
    "svr": ("SVR", "regression"),
    "nu-svr": ("NuSVR", "regression with nu in place of epsilon"),
    "quantile-svr": ("QuantileSVR", "regression of quantiles: the pinball loss"),
    "all-distances": ("AllDistancesSVC", "one problem for all classes, few support vectors"),
    "crammer-singer": ("CrammerSingerSVC", "one problem for all classes, one slack per sample"),
    "incremental": ("IncrementalSVC", "classification, rows can be added and removed later"),
    "incremental-svr": ("IncrementalSVR", "regression, rows can be added and removed later"),
    "one-class": ("OneClassSVM", "outlier detection"),
    "l2-one-class": ("L2OneClassSVM", "outlier detection with squared slacks"),
}


def make_estimator(name: str, parameters: dict[str, Any]) -> Any:
    """Create the estimator of a name and set its parameters; bad names and parameters raise `BadInput`."""
    import maxmargin

    if name not in ESTIMATORS:
        raise unknown("--machine", name, ESTIMATORS)
    estimator = getattr(maxmargin, ESTIMATORS[name][0])()
    known = estimator.get_params()
    for parameter, value in parameters.items():
        if parameter not in known:
            hint = did_you_mean(parameter, known) or f"use {', '.join(known)}"
            raise BadInput(f"--machine {name} has no parameter {parameter}: {hint}")
        if parameter in ("gamma", "class_weight", "contamination") and isinstance(value, str):
            value = _number_or_text(value)
        if parameter == "quantiles":
            value = _numbers(value)
        estimator.set_params(**{parameter: value})
    weights = parameters.get("class_weight")
    if weights is None:
        check_parameters(estimator)
        return estimator
    if "=" not in weights and weights != "balanced":
        raise BadInput(f"--class-weight {weights!r} is unknown: use balanced, or label=weight,label=weight")
    check_parameters(estimator.set_params(class_weight=None))  # the labels are not known yet
    return estimator.set_params(class_weight=weights)


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise BadInput(f"--quantiles {text}: use numbers with commas, such as 0.05,0.5,0.95") from error


def _number_or_text(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text
