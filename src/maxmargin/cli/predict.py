"""``maxmargin predict``: predict the labels or targets of new rows."""

from __future__ import annotations

import csv
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from maxmargin.cli import options as o
from maxmargin.cli.output import BadInput, check_writable, emit, note, plain


def predict(
    model: Annotated[str, typer.Argument(help="Model file, of maxmargin or LIBSVM.", show_default=False)],
    data: o.Data,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File for the predictions.", show_default="standard output"),
    ] = None,
    values: Annotated[bool, typer.Option("--values", help="Write decision values too, as CSV.")] = False,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Write probabilities of the classes too, as CSV.")
    ] = False,
    target: o.Target = None,
    format: o.DataFormat = None,
    json: o.Json = False,
) -> None:
    """Predict one label or number per row, in the order of the data.

    Example: maxmargin predict iris.maxmargin new.csv > labels.txt
    """
    check_writable(output, data=data)
    check_writable(output, data=model, content="model")
    import numpy as np

    from maxmargin.cli.models import as_trained, load_model, score, target_is_doubtful
    from maxmargin.cli.tables import labelled, n_labelled, read_rows
    from maxmargin.cli.training_data import check_finite
    from maxmargin.data import DataError
    from maxmargin.persistence import kind, load_libsvm

    estimator = load_model(model)
    if probabilities and not hasattr(estimator, "predict_proba"):
        raise BadInput(f"{model} has no probabilities: train it with `maxmargin tune`, which calibrates them")
    names = getattr(estimator, "feature_names_in_", None)
    width = int(estimator.n_features_in_)
    table = read_rows(estimator, data, target=target, format=format, names=names, width=width)
    if table.X.shape[1] > width and kind(model) == "libsvm":
        # LIBSVM's files do not store the number of features, only those that are not zero.
        width = table.X.shape[1]
        estimator = load_libsvm(model, n_features=width)
    if table.X.shape[1] != width:
        raise DataError(f"{data} has {table.X.shape[1]} features, but {model} was trained with {width}.")
    check_finite(table, data)
    X = as_trained(estimator, table.X)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        labels = estimator.predict(X)
        decisions = None
        if values and hasattr(estimator, "decision_function"):
            decisions = np.asarray(estimator.decision_function(X), dtype=np.float64).reshape(len(labels), -1)
        shares = estimator.predict_proba(X) if probabilities else None
    scored = None
    if target_is_doubtful(estimator, table):
        if not json:
            note(f"{data}: no score, column {table.target!r} may not be the target (--target {table.target})")
    elif table.y is not None:
        scored = score(estimator, *labelled(table, X))
        if scored is None and target is not None:
            note(
                f"{data}: no score, the target {table.target!r} holds values that the model does not predict"
            )
    if json:
        result: dict[str, Any] = {"predictions": labels, **(dict([scored]) if scored else {})}
        more = {"values": decisions, "classes": getattr(estimator, "classes_", None), "probabilities": shares}
        if shares is None:
            more = {"values": decisions}
        emit({**result, **{name: value for name, value in more.items() if value is not None}})
        return
    columns = {"prediction": labels}
    if labels.ndim > 1:  # several targets
        columns = {f"prediction{k}": labels[:, k] for k in range(labels.shape[1])}
    if decisions is not None:
        d = decisions.shape[1]
        columns |= {"value" if d == 1 else f"value{k}": decisions[:, k] for k in range(d)}
    if shares is not None:
        columns |= {f"probability {c}": shares[:, k] for k, c in enumerate(estimator.classes_)}
    if output is None:
        _write(sys.stdout, columns)
    else:
        with output.open("w", encoding="utf-8", newline="") as out:
            _write(out, columns)
    if scored:
        note(f"{scored[0]} {scored[1]:.4g} ({n_labelled(table):,} rows, target {table.target!r})")


def _write(out: Any, columns: dict[str, Any]) -> None:
    """Predictions alone without a header, several columns with one."""
    writer = csv.writer(out, lineterminator="\n")
    if len(columns) > 1:
        writer.writerow(columns)
    writer.writerows(zip(*(plain(column) for column in columns.values()), strict=True))
