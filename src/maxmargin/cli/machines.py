"""Estimators by the names that the command line knows, and data made ready for them."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.cli.options import Scale
from maxmargin.cli.output import BadInput, note, warn
from maxmargin.data import DataError, Table, read
from maxmargin.data.limits import Limit
from maxmargin.data.table import TARGETS

# A target with so many different numbers is rather a quantity than a class.
_MANY_CLASSES = 50
# A range of targets of so many tolerances is beyond what can be told apart from rounding.
_MANY_TOLERANCES = 1e9
# What a scaler takes for each feature while it is fitted.
_SCALER_BYTES = 40

# Name, class and what it is for.
MACHINES: dict[str, tuple[str, str]] = {
    "svc": ("SVC", "classification, pairs of classes"),
    "nu-svc": ("NuSVC", "classification with nu in place of C"),
    "svr": ("SVR", "regression"),
    "nu-svr": ("NuSVR", "regression with nu in place of epsilon"),
    "all-distances": ("AllDistancesSVC", "one machine for all classes, small and quick to predict"),
    "crammer-singer": ("CrammerSingerSVC", "one machine for all classes, one slack per sample"),
    "incremental": ("IncrementalSVC", "two classes, rows can be added and removed later"),
    "one-class": ("OneClassSVM", "outlier detection"),
    "l2-one-class": ("L2OneClassSVM", "outlier detection with squared slacks"),
}


@dataclass
class Task:
    """An estimator, the data it is to be trained on, and whether these have a target."""

    estimator: Any
    machine: Any
    X: Any
    y: Any
    table: Table

    def fit(self) -> float:
        """Train; returns the seconds it took."""
        began = time.perf_counter()
        self.estimator.fit(self.X, *(() if self.y is None else (self.y,)))
        return time.perf_counter() - began


def make(name: str, parameters: dict[str, Any]) -> Any:
    """The estimator of a name, with parameters."""
    import maxmargin

    if name not in MACHINES:
        raise BadInput(f"unknown machine {name!r}: use one of {', '.join(MACHINES)}")
    estimator = getattr(maxmargin, MACHINES[name][0])()
    known = estimator.get_params()
    for parameter, value in parameters.items():
        if parameter not in known:
            raise BadInput(f"the machine {name} has no parameter {parameter}: it has {', '.join(known)}")
        if parameter in ("gamma", "class_weight") and isinstance(value, str):
            value = _number_or_text(value)
        estimator.set_params(**{parameter: value})
    return estimator


def prepare(
    source: str, name: str, parameters: dict[str, Any], *, scale: Scale, target: str | None,
    drop: list[str] | None, format: str | None, quiet: bool = False,
) -> Task:  # fmt: skip
    """Read the data and make an estimator for them."""
    machine = make(name, parameters)
    outliers = getattr(machine, "_estimator_type", None) == "outlier_detector" or hasattr(
        machine, "fit_predict"
    )
    table = read(source, target=target, drop=drop or (), format=format)
    if table.y is None and not outliers:
        raise DataError(f"{source} has no target to train on.")
    if table.guessed and not quiet:
        what = "left out" if outliers else "the target"
        note(f"{source}: column {table.target!r} is {what} (--target names another)")
    if outliers:
        table = Table(table.X, None, table.names, table.target, table.guessed)
    else:
        check_target(machine, name, table, source)
    weights = parameters.get("class_weight")
    if weights not in (None, "balanced"):
        machine.set_params(class_weight=_weights(weights, table.y))
    X = table.X
    check_finite(table, source)
    if scale is Scale.none:
        warn_if_unscaled(X, table.names)
        return Task(machine, machine, X, table.y, table)
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

    if scale is Scale.minmax and sp.issparse(X):
        raise BadInput("--scale minmax would fill a sparse matrix: use --scale maxabs")
    if _SCALER_BYTES * X.shape[1] > Limit().bytes:
        raise BadInput(f"--scale {scale} keeps numbers for each of the {X.shape[1]:,} features: leave it out")
    scaler = {
        Scale.standard: StandardScaler(with_mean=not sp.issparse(X)),
        Scale.minmax: MinMaxScaler(),
        Scale.maxabs: MaxAbsScaler(),
    }[scale]
    return Task(make_pipeline(scaler, machine), machine, X, table.y, table)


def check_finite(table: Table, source: str) -> None:
    """Name the first value that no machine can use."""
    X = table.X
    if np.isfinite(X.data if sp.issparse(X) else X).all():
        return
    if sp.issparse(X):
        entries = sp.coo_array(X)
        at = int(np.flatnonzero(~np.isfinite(entries.data))[0])
        row, column, value = (int(entries.row[at]), int(entries.col[at]), entries.data[at])
    else:
        row, column = (int(k) for k in np.argwhere(~np.isfinite(X))[0])
        value = X[row, column]
    called = repr(table.names[column]) if table.names is not None else str(column + 1)
    raise DataError(
        f"{source}: row {row + 1} has {value:g} in column {called}: a number is needed. Fill such "
        "cells, leave out these rows, or leave out the column (--drop)."
    )


def check_target(machine: Any, name: str, table: Table, source: str) -> None:
    """Whether the target is of the kind that the machine predicts: classes or quantities."""
    from sklearn.base import is_regressor

    y = np.asarray(table.y)
    called = f"{source}: the target {table.target!r}" if table.target else f"{source}: the target"
    if is_regressor(machine):
        if y.dtype.kind not in "biuf":
            raise BadInput(
                f"{called} holds text such as {str(y[0])!r}, and {name} predicts numbers: name another "
                "column (--target), or train a classifier (--machine svc)"
            )
        _warn_of_units(machine, y, called)
        return
    if y.dtype.kind not in "iuf" or not np.isfinite(y).all():
        return
    fractions = y[y != np.rint(y)]
    if len(fractions):
        raise BadInput(
            f"{called} holds numbers such as {fractions[0]:.6g}, which are no classes: train a regression "
            "(--machine svr), or name another column (--target)"
        )
    found = len(np.unique(y))
    if found > max(_MANY_CLASSES, 0.2 * len(y)):
        warn(f"{called} has {found:,} different values: if it is a quantity, use --machine svr")


def _warn_of_units(machine: Any, y: Any, called: str) -> None:
    """Say it if the tube holds every target, or the tolerance is far below what matters."""
    width = float(np.ptp(y.astype(np.float64)))
    epsilon = machine.get_params().get("epsilon", 0.0)
    if 0 < width <= 2 * epsilon:
        warn(
            f"{called} stays within {width:.3g}, less than the tube is wide: the model will be constant; "
            f"give a smaller --epsilon than {epsilon:g}"
        )
    elif width > _MANY_TOLERANCES * machine.tol:
        warn(
            f"{called} varies by {width:.3g}, and the tolerance is {machine.tol:g}: scale it, or raise --tol"
        )


def load_model(file: str) -> Any:
    """The model of a file of maxmargin or of LIBSVM."""
    from maxmargin.persistence import kind, load, load_libsvm

    found = kind(file)
    if found == "onnx":
        raise BadInput(f"{file} is for ONNX runtimes; maxmargin reads its own models and LIBSVM's")
    if found is None:
        raise BadInput(f"{file} is not a model of maxmargin or LIBSVM")
    return load(file) if found == "maxmargin" else load_libsvm(file)


def remember_names(estimator: Any, names: list[str] | None) -> None:
    """What scikit-learn does for data frames: the model knows its features by name."""
    if names is not None:
        first = estimator.steps[0][1] if hasattr(estimator, "steps") else estimator
        first.feature_names_in_ = np.array(names, dtype=object)


def values_for(estimator: Any, X: Any) -> Any:
    """X as the model takes it: dense where it was trained on dense data."""
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    return X.toarray() if sp.issparse(X) and not getattr(last, "_sparse", False) else X


def score(estimator: Any, X: Any, y: Any) -> tuple[str, float] | None:
    """What the predictions are worth, if the labels are of the kind that is predicted."""
    from sklearn.base import is_classifier, is_outlier_detector, is_regressor

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        if is_regressor(estimator):
            known = y.dtype.kind in "biuf" and np.isfinite(y).all() and len(np.unique(y)) > 1
            return ("r2", float(estimator.score(X, y))) if known else None
        if is_outlier_detector(estimator):
            known = set(np.unique(y).tolist()) <= {-1, 1}
            return ("accuracy", float(np.mean(estimator.predict(X) == y))) if known else None
        if is_classifier(estimator) and set(np.unique(y).tolist()) <= set(estimator.classes_.tolist()):
            return "accuracy", float(np.mean(estimator.predict(X) == y))
    return None


def gaps(machine: Any) -> dict[str, float | None]:
    """What is certified of a fitted machine: the sum of the gaps, and the largest relative one."""
    if not hasattr(machine, "dual_gap_"):  # IncrementalSVC is exact
        return {"dual_gap": None, "relative_gap": None}
    return {
        "dual_gap": float(np.sum(machine.dual_gap_)),
        "relative_gap": float(np.max(machine.relative_gap_)),
    }


def unnamed_quantity(estimator: Any, table: Table) -> bool:
    """Whether a regression would be scored by a column that just happens to be left over.

    Labels tell whether they are those of a classifier. Numbers do not: the column may be a serial number.
    """
    from sklearn.base import is_regressor

    called = (table.target or "").strip().lower()
    return table.guessed and is_regressor(estimator) and called not in TARGETS


def warn_if_unscaled(X: Any, names: list[str] | None) -> None:
    """Say it if some features are so small beside others that a kernel does not see them."""
    from maxmargin.estimators._scales import UnscaledDataWarning, disparity

    warnings.filterwarnings("ignore", category=UnscaledDataWarning)  # said here, with the command's own fix
    found = disparity(X)
    if found is not None:
        large, small, ratio = found
        called = [repr(names[k]) if names else str(k) for k in (large, small)]
        warn(
            f"feature {called[0]} varies {ratio:,.0f} times as much as {called[1]}, which the machine will "
            "hardly see: scale the features (--scale standard)"
        )


def _number_or_text(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _weights(text: Any, y: Any) -> dict[Any, float]:
    labels = {str(label): label for label in np.unique(y).tolist()}
    weights: dict[Any, float] = {}
    for part in str(text).split(","):
        label, _, weight = part.partition("=")
        try:
            weights[labels[label.strip()]] = float(weight)
        except (KeyError, ValueError) as error:
            raise BadInput(
                f"--class-weight {text}: {part!r} is not label=weight with one of the labels "
                f"{', '.join(list(labels)[:12])}"
            ) from error
    return weights
