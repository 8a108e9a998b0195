"""Training data of the commands: read, checked against the estimator, scaled."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from maxmargin.cli.estimators import make_estimator
from maxmargin.cli.options import Scale
from maxmargin.cli.output import BadInput, note, warn
from maxmargin.cli.tables import numbers_of, pipeline_of, read_table
from maxmargin.data import DataError, Table
from maxmargin.data.limits import Limit
from maxmargin.data.mixed import MixedTable

# More distinct numbers than this in a target suggest a quantity, not classes.
_MANY_CLASSES = 50
# A range of targets of this many tolerances cannot be resolved in float64.
_MANY_TOLERANCES = 1e9
# Rows, and seconds, of a training before the one that is measured.
_FEW, _REHEARSAL = 40, 0.2
# Bytes per feature that a scaler needs while it is fitted.
_SCALER_BYTES = 40


@dataclass
class Task:
    """An estimator and the data to train it on.

    `estimator` is what is fitted: `model` itself, or a pipeline of a scaler or an encoder of columns and
    `model`.
    """

    estimator: Any
    model: Any
    X: Any
    y: Any
    table: Table

    def rehearse(self) -> None:
        """Train on a few rows: what is measured afterwards does not include loading of modules and code."""
        rows = np.arange(min(_FEW, self.X.shape[0]))
        if self.y is not None:
            _, label = np.unique(self.y, return_inverse=True)
            order = np.argsort(label, kind="stable")
            rows = np.sort(np.unique(order[np.linspace(0, len(order) - 1, _FEW).astype(np.intp)]))
        labels = () if self.y is None else (self.y[rows],)
        small = clone(self.estimator)
        last = small.steps[-1][1] if hasattr(small, "steps") else small
        short = {"max_time": _REHEARSAL, "verbose": False, "progress": False, "checkpoint": None}
        known = last.get_params()
        last.set_params(**{name: value for name, value in short.items() if name in known})
        # A failure that concerns all rows is reported by their own training.
        with warnings.catch_warnings(), suppress(ValueError, TypeError, ArithmeticError, TimeoutError):
            warnings.simplefilter("ignore")
            small.fit(self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows], *labels)
        if str(getattr(last, "status_", "")) == "interrupted" or getattr(last, "interrupted_", False):
            raise KeyboardInterrupt

    def fit(self) -> float:
        """Train; returns the seconds it took, without loading."""
        self.rehearse()
        began = time.perf_counter()
        self.estimator.fit(self.X, *(() if self.y is None else (self.y,)))
        return time.perf_counter() - began


def prepare(
    source: str, name: str, parameters: dict[str, Any], *, scale: Scale, target: str | None,
    drop: list[str] | None, format: str | None, quiet: bool = False, impute: bool = True,
    encode: bool = True, category: list[str] | None = None,
) -> Task:  # fmt: skip
    """Read the data and make an estimator for them."""
    from sklearn.base import is_outlier_detector

    model = make_estimator(name, parameters)
    outliers = is_outlier_detector(model) or hasattr(model, "fit_predict")
    table = read_table(
        source, target=target, drop=drop or (), format=format, impute=impute, encode=encode,
        category=category or (), quiet=quiet,
    )  # fmt: skip
    if table.y is None and not outliers:
        raise DataError(f"{source} has no target to train on.")
    if table.guessed and not quiet:
        role = "left out" if outliers else "the target"
        note(f"{source}: column {table.target!r} is {role} (--target names another)")
    if outliers:
        table = replace(table, y=None)
    else:
        check_target(model, name, table, source)
    weights = parameters.get("class_weight")
    if weights not in (None, "balanced"):
        model.set_params(class_weight=_class_weights(weights, table.y))
    X = table.X
    if isinstance(table, MixedTable):
        if scale is Scale.none:
            warn_if_unscaled(*numbers_of(table))
        estimator = pipeline_of(table, model, scaler_of(scale, sparse=False), impute)
        return Task(estimator, model, X, table.y, table)
    check_finite(table, source)
    if scale is Scale.none:
        warn_if_unscaled(X, table.names)
        return Task(model, model, X, table.y, table)
    from sklearn.pipeline import make_pipeline

    if scale is Scale.minmax and sp.issparse(X):
        raise BadInput("--scale minmax would make a sparse matrix dense: use --scale maxabs")
    if _SCALER_BYTES * X.shape[1] > Limit().bytes:
        raise BadInput(
            f"--scale {scale} stores numbers for each of the {X.shape[1]:,} features, more than memory "
            "allows: train without --scale"
        )
    scaler = scaler_of(scale, sparse=sp.issparse(X))
    return Task(make_pipeline(scaler, model), model, X, table.y, table)


def scaler_of(scale: Scale, *, sparse: bool) -> Any:
    """The scaler of an option, not fitted; None for none."""
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

    if scale is Scale.none:
        return None
    scalers = {
        Scale.standard: StandardScaler(with_mean=not sparse),
        Scale.minmax: MinMaxScaler(),
        Scale.maxabs: MaxAbsScaler(),
    }
    return scalers[scale]


def check_finite(table: Table, source: str, before: int = 0) -> None:
    """Raise an error that names the first value that is not finite; `before` rows come before the table."""
    if isinstance(table, MixedTable):  # whose cells were checked while they were read
        return
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
        f"{source}: row {before + row + 1} has {value:g} in column {called}, but a finite number is needed: "
        "fill such cells, remove these rows, or leave out the column (--drop)."
    )


# The options of commands that train the other kind of model.
_OPTIONS = {"svc": "--machine svc", "svr": "--machine svr"}


def check_target(
    model: Any, name: str, table: Table, source: str, options: Mapping[str, str] = _OPTIONS
) -> None:
    """Raise an error if the target is not of the kind that the model predicts: classes or quantities.

    `options` are those that ask for the other kind.
    """
    from sklearn.base import is_regressor

    y = np.asarray(table.y)
    called = f"{source}: the target {table.target!r}" if table.target else f"{source}: the target"
    if is_regressor(model):
        if y.dtype.kind not in "biuf":
            raise BadInput(
                f"{called} holds text such as {str(y[0])!r}, but {name} predicts numbers: name another "
                f"column (--target), or train a classifier ({options['svc']})"
            )
        _warn_about_units(model, y, called)
        return
    if y.dtype.kind not in "iuf" or not np.isfinite(y).all():
        return
    fractions = y[y != np.rint(y)]
    if len(fractions):
        raise BadInput(
            f"{called} holds fractions such as {fractions[0]:.6g}, but {name} predicts classes: train a "
            f"regression ({options['svr']}), or name another column (--target)"
        )
    found = len(np.unique(y))
    if found > max(_MANY_CLASSES, 0.2 * len(y)):
        warn(f"{called} has {found:,} different values: if it is a quantity, use {options['svr']}")


def warn_if_unscaled(X: Any, names: list[str] | None) -> None:
    """Warn if the scales of the features differ so much that some have no effect on the kernel."""
    from maxmargin.estimators._scales import UnscaledDataWarning, disparity

    # This warning names the command's option; the estimator's own would repeat it.
    warnings.filterwarnings("ignore", category=UnscaledDataWarning)
    found = disparity(X)
    if found is not None:
        large, small, ratio = found
        called = [repr(names[k]) if names else str(k) for k in (large, small)]
        warn(
            f"feature {called[0]} varies {ratio:,.0f} times as much as {called[1]}, which will have almost "
            "no effect on the model: scale the features (--scale standard)"
        )


def _warn_about_units(model: Any, y: Any, called: str) -> None:
    """Warn if epsilon or tol do not suit the range of the targets."""
    width = float(np.ptp(y.astype(np.float64)))
    parameters = model.get_params()
    epsilon, tol = parameters.get("epsilon", 0.0), parameters.get("tol", np.inf)
    if 0 < width <= 2 * epsilon:
        warn(
            f"{called} has a range of {width:.3g}, less than the width of the epsilon tube: the model will "
            f"be constant; set --epsilon below {epsilon:g}"
        )
    elif width > _MANY_TOLERANCES * tol:
        warn(
            f"{called} has a range of {width:.3g}, and the tolerance is {tol:g}: scale the target, or "
            "raise --tol"
        )


def _class_weights(text: Any, y: Any) -> dict[Any, float]:
    labels = {str(label): label for label in np.unique(y).tolist()}
    weights: dict[Any, float] = {}
    for part in str(text).split(","):
        label, _, weight = part.partition("=")
        try:
            weights[labels[label.strip()]] = float(weight)
            if not 0 <= float(weight) < np.inf:
                raise ValueError
        except (KeyError, ValueError) as error:
            raise BadInput(
                f"--class-weight {text}: {part!r} is not label=weight, with a weight from 0 on and a label "
                f"among {', '.join(list(labels)[:12])}"
            ) from error
    return weights
