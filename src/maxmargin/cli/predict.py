"""``maxmargin predict``: predict the labels or targets of new rows, block by block."""

from __future__ import annotations

import csv
import io
import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from maxmargin.cli import options as o
from maxmargin.cli.checks import check_writable
from maxmargin.cli.output import BadInput, console, emit, note, plain

# Bytes of numbers that are predicted at a time.
_SLICE = 1 << 22
# Seconds after which a terminal shows the progress.
_PATIENCE = 2.0


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
    """Predict one label or number per row, in the order of the data, which may be larger than memory.

    Example: maxmargin predict iris.maxmargin new.csv > labels.txt
    """
    check_writable(output, data=data)
    check_writable(output, data=model, content="model")
    from maxmargin.cli.models import load_model, target_is_doubtful
    from maxmargin.cli.running_score import RunningScore
    from maxmargin.cli.tables import labels_of, n_labelled, read_parts
    from maxmargin.cli.training_data import check_finite

    predictor = _Predictor(model, load_model(model), values, probabilities)
    estimator = predictor.estimator
    score, rows, scored_rows, doubtful, named = RunningScore(estimator), 0, 0, False, None
    blocks = read_parts(estimator, data, target=target, format=format)
    collected: dict[str, list[Any]] = {}
    with _writer(output, json) as write, _progress(data, output, json) as show:
        for block in blocks:
            table = block.table
            predictor.check_width(table, data)
            check_finite(table, data, block.before)
            if not rows:
                doubtful, named = target_is_doubtful(estimator, table), table.target
                scored = table.y is not None and not doubtful
            for part, X in predictor.slices(table.X):
                found = predictor(X)
                if scored and table.y is not None:
                    score.add(*labels_of(table, part, found["prediction"]))
                if json:
                    for key, value in found.items():
                        collected.setdefault(key, []).append(plain(value))
                else:
                    write(predictor.columns(found))
            rows, scored_rows = block.before + table.X.shape[0], scored_rows + n_labelled(table)
            show(block.read, rows)
    result = score.result() if rows and scored else None
    if doubtful and not json:
        note(f"{data}: no score, column {named!r} may not be the target (--target {named})")
    elif scored and result is None and target is not None:
        note(f"{data}: no score, the target {named!r} holds values that the model does not predict")
    if json:
        _emit(collected, result, estimator, probabilities)
    elif result:
        note(f"{result[0]} {result[1]:.4g} ({scored_rows:,} rows, target {named!r})")


class _Predictor:
    """A model, and what is predicted with it."""

    def __init__(self, file: str, estimator: Any, values: bool, probabilities: bool) -> None:
        from maxmargin.persistence import kind

        if probabilities and not hasattr(estimator, "predict_proba"):
            raise BadInput(
                f"{file} has no probabilities: train it with `maxmargin tune`, which calibrates them"
            )
        self.file, self.estimator, self.of_libsvm = file, estimator, kind(file) == "libsvm"
        self.least = int(estimator.n_features_in_)
        self.values = values and hasattr(estimator, "decision_function")
        self.probabilities = probabilities

    def check_width(self, table: Any, data: str) -> None:
        """Raise an error if the number of features is not that of the model."""
        from maxmargin.data import DataError
        from maxmargin.persistence import load_libsvm

        width = table.X.shape[1]
        if width > self.estimator.n_features_in_ and self.of_libsvm:
            # LIBSVM's files do not store the number of features, only those that are not zero.
            self.estimator = load_libsvm(self.file, n_features=width)
        known = int(self.estimator.n_features_in_)
        if not self.least <= width <= known:
            raise DataError(f"{data} has {width} features, but {self.file} was trained with {self.least}.")

    def slices(self, X: Any) -> Iterator[tuple[slice, Any]]:
        """Rows that take a bounded amount of memory, in the form that the model was trained with."""
        import scipy.sparse as sp

        from maxmargin.cli.models import as_trained

        wide = int(self.estimator.n_features_in_)
        if X.shape[1] < wide:  # an earlier block had more features, which are zero in this one
            X = sp.csr_array(X)
            X = sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], wide))
        step = max(1, _SLICE // (8 * max(1, X.shape[1])))
        for start in range(0, X.shape[0], step):
            part = slice(start, min(start + step, X.shape[0]))
            yield part, as_trained(self.estimator, X.iloc[part] if hasattr(X, "iloc") else X[part])

    def __call__(self, X: Any) -> dict[str, Any]:
        """Predictions, decision values and probabilities of some rows."""
        import numpy as np

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            found = {"prediction": self.estimator.predict(X)}
            if self.values:
                decided = np.asarray(self.estimator.decision_function(X), dtype=np.float64)
                found["values"] = decided.reshape(X.shape[0], -1)
            if self.probabilities:
                found["probabilities"] = self.estimator.predict_proba(X)
        return found

    def columns(self, found: dict[str, Any]) -> dict[str, Any]:
        """The columns of a table with these predictions."""
        labels = found["prediction"]
        columns = {"prediction": labels}
        if labels.ndim > 1:  # several targets
            columns = {f"prediction{k}": labels[:, k] for k in range(labels.shape[1])}
        if "values" in found:
            d = found["values"].shape[1]
            columns |= {"value" if d == 1 else f"value{k}": found["values"][:, k] for k in range(d)}
        if "probabilities" in found:
            names = (f"probability {c}" for c in self.estimator.classes_)
            columns |= {name: found["probabilities"][:, k] for k, name in enumerate(names)}
        return columns


@contextmanager
def _writer(output: Path | None, json: bool) -> Iterator[Any]:
    """A function that writes columns; a file appears when all is written, or not at all."""
    from maxmargin._files import writing

    if json:
        yield None
    elif output is None:
        yield _rows_to(sys.stdout)
        sys.stdout.flush()
    else:
        with writing(output) as out:
            text = io.TextIOWrapper(out, encoding="utf-8", newline="")
            yield _rows_to(text)
            text.detach()


def _rows_to(out: Any) -> Any:
    """Predictions alone without a header, several columns with one."""
    writer, begun = csv.writer(out, lineterminator="\n"), False

    def write(columns: dict[str, Any]) -> None:
        nonlocal begun
        if len(columns) > 1 and not begun:
            writer.writerow(columns)
        begun = True
        writer.writerows(zip(*(plain(column) for column in columns.values()), strict=True))
        out.flush()

    return write


@contextmanager
def _progress(data: str, output: Path | None, json: bool) -> Iterator[Any]:
    """A function that shows the share of the file that is done, and the rows, where that is seen."""
    seen = sys.stderr.isatty() and not json and (output is not None or not sys.stdout.isatty())
    if not seen:
        yield lambda read, rows: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    total = os.path.getsize(data) if os.path.isfile(data) else None
    bar = Progress(
        TextColumn("predicting"), BarColumn(20), TaskProgressColumn(),
        TextColumn("{task.fields[rows]:,} rows"), TimeRemainingColumn(), console=console(sys.stderr),
        transient=True,
    )  # fmt: skip
    line = bar.add_task("predicting", total=total, rows=0)
    began, shown = time.monotonic(), False

    def show(read: int, rows: int) -> None:
        nonlocal shown
        if not shown and time.monotonic() - began > _PATIENCE:
            bar.start()
            shown = True
        bar.update(line, completed=read, rows=rows)

    try:
        yield show
    finally:
        if shown:
            bar.stop()


def _emit(found: dict[str, list[Any]], score: Any, estimator: Any, probabilities: bool) -> None:
    """One JSON object, for which all predictions are kept in memory."""
    whole = {key: [row for part in parts for row in part] for key, parts in found.items()}
    result: dict[str, Any] = {"predictions": whole["prediction"], **(dict([score]) if score else {})}
    if "values" in whole:
        result["values"] = whole["values"]
    if probabilities:
        result |= {"classes": estimator.classes_, "probabilities": whole["probabilities"]}
    emit(result)
