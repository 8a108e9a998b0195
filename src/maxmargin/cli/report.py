"""``maxmargin report``: one HTML page about a model."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from maxmargin.cli import options as o
from maxmargin.cli.checks import check_different, check_writable, need_matplotlib
from maxmargin.cli.output import BadInput, emit, note, working


class Rows(StrEnum):
    """Whether the rows have trained the model."""

    auto = "auto"
    training = "training"
    new = "new"


def report(
    model: Annotated[str, typer.Argument(help="Model file, of maxmargin or LIBSVM.", show_default=False)],
    data: o.Data,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File for the page.", show_default="beside the model, .html"),
    ] = None,
    target: o.Target = None,
    format: o.DataFormat = None,
    rows: Annotated[
        Rows,
        typer.Option(help="Whether the rows have trained the model; auto looks for its support vectors."),
    ] = Rows.auto,
    max_time: Annotated[
        float, typer.Option(min=0, help="Seconds for the parts that train or predict many times.")
    ] = 15.0,
    title: Annotated[
        str | None, typer.Option(help="Title of the page.", show_default="the name of the model")
    ] = None,
    json: o.Json = False,
) -> None:
    """Write a page about a model: scores, curves, support vectors, certificate, timings.

    Example: maxmargin report iris.maxmargin iris.csv -o iris.html
    """
    output = _page_of(model) if output is None else output
    check_writable(output, data=data)
    check_different({"the model": model, "--output": output})
    need_matplotlib("a report")
    with working("loading"):
        from maxmargin.cli.models import as_trained, load_model, target_is_doubtful
        from maxmargin.cli.tables import labelled, read_rows
        from maxmargin.cli.training_data import check_finite
        from maxmargin.data import DataError
        from maxmargin.inspection import report as report_on
        from maxmargin.persistence import kind, load_libsvm

        estimator = load_model(model)
    names = getattr(estimator, "feature_names_in_", None)
    width = int(estimator.n_features_in_)
    with working("reading data"):
        table = read_rows(estimator, data, target=target, format=format, names=names, width=width)
    if table.X.shape[1] > width and kind(model) == "libsvm":
        # LIBSVM's files do not store the number of features, only those that are not zero.
        width = table.X.shape[1]
        estimator = load_libsvm(model, n_features=width)
    if table.X.shape[1] != width:
        raise DataError(f"{data} has {table.X.shape[1]} features, but {model} was trained with {width}.")
    check_finite(table, data)
    if target_is_doubtful(estimator, table):
        raise BadInput(
            f"{data}: column {table.target!r} may not be the target: say so (--target {table.target})"
        )
    X, y = labelled(table, as_trained(estimator, table.X))
    y = _labels(estimator, y, data, quiet=json)
    with working("report") as status:
        made = report_on(
            estimator, X, y, output, rows=rows.value, max_time=max_time,
            title=title or f"Report on {Path(model).name}",
            progress=None if status is None else lambda part: status.update(f"report: {part}"),
        )  # fmt: skip
    if json:
        emit({"report": str(output), **made.facts})
    else:
        print(f"{output}: report on {made.facts['rows']['n']:,} rows{_score(made.facts['score'])}")


def _page_of(model: str) -> Path:
    """The name of the page beside the model file."""
    path = Path(model)
    return path.with_suffix(".html") if path.suffix else path.with_name(f"{path.name}.html")


def _labels(estimator: Any, y: Any, data: str, quiet: bool) -> Any:
    """The target; None for an outlier detector whose data have no labels 1 and -1."""
    import numpy as np
    from sklearn.base import is_classifier, is_regressor

    if is_classifier(estimator) or is_regressor(estimator):
        if y is None:
            raise BadInput(f"{data} has no target to compare predictions with: name its column (--target)")
        return y
    if y is not None and not set(np.unique(y).tolist()) <= {-1, 1}:
        if not quiet:
            note(f"{data}: the target is left out, as its labels are not 1 (inliers) and -1 (outliers)")
        return None
    return y


def _score(score: dict[str, Any]) -> str:
    """The main score in words."""
    if "accuracy" in score:
        ends = f"95 % interval {score['low']:.4f} to {score['high']:.4f}"
        return f", accuracy {score['accuracy']:.4f} ({ends})"
    return f", R2 {score['r2']:.4g}" if "r2" in score else ""
