"""``maxmargin tune``: a tuned and calibrated model in one command."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from maxmargin.cli import options as o
from maxmargin.cli.checks import (
    check_different,
    check_picture,
    check_scoring,
    check_writable,
    need_matplotlib,
    unknown,
)
from maxmargin.cli.output import BadInput, Interrupted, emit, facts, note, table, working

_KERNELS = ("rbf", "linear", "laplacian", "auto")
# More different whole numbers than this in a target are a quantity, unless it is said otherwise.
_MANY_VALUES = 20
# Classes up to which the confusion matrix is printed.
_SHOWN_CLASSES = 12


class Task(StrEnum):
    """The kind of the target."""

    auto = "auto"
    classification = "classification"
    regression = "regression"


class Scaling(StrEnum):
    """How features are scaled before training."""

    standard = "standard"
    robust = "robust"
    none = "none"


def tune(
    data: o.Data,
    model: Annotated[
        Path | None, typer.Argument(help="File for the model, trained on all rows.", show_default=False)
    ] = None,
    target: o.Target = None,
    drop: o.Drop = None,
    format: o.DataFormat = None,
    task: Annotated[
        Task, typer.Option(help="What is predicted; auto decides by the values of the target.")
    ] = Task.auto,
    scale: Annotated[
        Scaling, typer.Option(help="Scale the features; the scaler is stored in the model.")
    ] = Scaling.standard,
    impute: o.Impute = True,
    encode: o.Encode = True,
    category: o.Category = None,
    kernel: Annotated[str, typer.Option(help="rbf, linear, laplacian, or auto to try all three.")] = "rbf",
    class_weight: Annotated[
        str | None, typer.Option(help="balanced, if all classes are equally important.", show_default=False)
    ] = None,
    scoring: Annotated[
        str | None,
        typer.Option(help="Name of a scikit-learn scorer.", show_default="accuracy, for a regression r2"),
    ] = None,
    cv: Annotated[int, typer.Option("--cv", min=2, help="Folds of cross-validation.")] = 5,
    max_time: Annotated[
        float | None, typer.Option(min=0, help="Time limit in seconds.", show_default="none")
    ] = None,
    n_jobs: o.Jobs = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="File from which tuning is resumed.", show_default=False)
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Write the figure to this file (needs matplotlib).",
            show_default="beside the model, as a .png",
        ),
    ] = None,
    no_plot: Annotated[bool, typer.Option("--no-plot", help="Write no figure.")] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            help="Write a page about the search and the model to this HTML file (needs matplotlib).",
            show_default=False,
        ),
    ] = None,
    json: o.Json = False,
) -> None:
    """Choose the parameters, train, and say how good the model is.

    Example: maxmargin tune data.csv model.maxmargin
    """
    if no_plot and plot is not None:
        raise BadInput("--plot and --no-plot exclude each other")
    if plot is None and not no_plot:
        plot = _beside(model)
    check_writable(model, plot, report, checkpoint, data=data)
    check_different({"the model": model, "--plot": plot, "--report": report, "--checkpoint": checkpoint})
    check_picture(plot)
    if report is not None:
        need_matplotlib("--report")
    if kernel not in _KERNELS:
        raise unknown("--kernel", kernel, _KERNELS)
    if class_weight not in (None, "balanced"):
        raise unknown("--class-weight", class_weight, ["balanced"])
    with working("loading"):
        import numpy as np

        from maxmargin import SVC, SVCCV, SVR, SVRCV
        from maxmargin.cli.models import set_feature_names
        from maxmargin.cli.tables import columns_entry, encoded, read_table, with_encoder
        from maxmargin.cli.training_data import Task as Training
        from maxmargin.cli.training_data import check_finite, check_target
        from maxmargin.data import DataError
    with working("reading data"):
        found = read_table(
            data, target=target, drop=drop or (), format=format, impute=impute, encode=encode,
            category=category or (), quiet=json,
        )  # fmt: skip
    if found.y is None:
        raise DataError(f"{data} has no target to train on.")
    if found.guessed and not json:
        note(f"{data}: column {found.target!r} is the target (--target names another)")
    check_finite(found, data)
    y = np.asarray(found.y)
    numeric = task is Task.regression or (task is Task.auto and _is_quantity(y))
    if task is Task.auto and not json:
        kind = "numbers (regression)" if numeric else f"{len(np.unique(y))} classes"
        note(f"the target holds {kind}; --task says otherwise")
    encoder, X = encoded(found, str(scale), impute)
    scaled = encoder is not None or scale is Scaling.none
    given: dict[str, Any] = {
        "kernel": kernel, "scale": None if scaled else str(scale), "cv": _folds(cv, numeric),
        "scoring": scoring, "max_time": max_time, "n_jobs": n_jobs, "checkpoint": checkpoint,
        "progress": False if json else None,
    }  # fmt: skip
    if numeric and class_weight is not None:
        raise BadInput("--class-weight belongs to a classification, and the target holds numbers")
    tuner: Any = SVRCV(**given) if numeric else SVCCV(class_weight=class_weight, **given)
    tasks = {"svc": "--task classification", "svr": "--task regression"}
    check_target(SVR() if numeric else SVC(), "svr" if numeric else "svc", found, data, tasks)
    check_scoring(scoring, SVR() if numeric else SVC(), y, tuned=True)
    with working("loading"):
        Training(tuner, tuner, X, y, found).rehearse()
    tuner.fit(X, y)
    best = with_encoder(encoder, tuner.best_estimator_)
    set_feature_names(best, found.names)
    if model is not None:
        from maxmargin.persistence import save

        save(best, model)
    rows, predicted = tuner.held_out_rows_, tuner.held_out_predictions_
    result = _result(tuner, y[rows], predicted, numeric)
    if plot is not None:
        from maxmargin.cli.tuned_figure import draw

        draw(tuner, y[rows], predicted, numeric, plot)
    if report is not None:
        from maxmargin.inspection import report as report_on

        with working("report"):
            report_on(tuner, X, y, report)
    result |= {
        name: str(file) if file is not None else None
        for name, file in (("model", model), ("plot", plot), ("report", report))
    }
    if json:
        emit(
            {
                **result,
                **columns_entry(found),
                "best_params": tuner.best_params_,
                "interrupted": tuner.interrupted_,
            }
        )
    else:
        _print(tuner, result, y[rows], predicted, numeric)
    if tuner.interrupted_:
        raise Interrupted("interrupted; the model has the best parameters so far")


def _beside(model: Path | None) -> Path | None:
    """The file of the figure where none is named: none without a model file, or without matplotlib."""
    from importlib.util import find_spec

    if model is None or model.suffix == ".png":
        return None
    return model.with_suffix(".png") if find_spec("matplotlib") is not None else None


def _is_quantity(y: Any) -> bool:
    import numpy as np

    if y.dtype.kind not in "iuf":
        return False
    return bool((y != np.rint(y)).any()) or len(np.unique(y)) > _MANY_VALUES


def _folds(cv: int, numeric: bool) -> Any:
    from sklearn.model_selection import KFold, StratifiedKFold

    return (KFold if numeric else StratifiedKFold)(cv, shuffle=True, random_state=0)


def _result(tuner: Any, y: Any, predicted: Any, numeric: bool) -> dict[str, Any]:
    import numpy as np

    from maxmargin.cli.models import gaps
    from maxmargin.inspection._report.measures import wilson

    last = _last(tuner)
    result: dict[str, Any] = {
        "rows": int(last.shape_fit_[0]), "features": tuner.n_features_in_, "tried": len(tuner.path_),
        "rows_of_the_last_stage": tuner.n_rows_, "best_score": float(tuner.best_score_),
    }  # fmt: skip
    if numeric:
        error = np.asarray(y, dtype=np.float64) - predicted
        result |= {
            "mean_absolute_error": float(np.abs(error).mean()),
            "root_mean_squared_error": float(np.sqrt(np.mean(error**2))),
        }
    else:
        right = int(np.sum(predicted == y))
        low, high = wilson(right, len(y))
        result |= {"accuracy": right / len(y), "accuracy_low": low, "accuracy_high": high}
    return result | {
        "support_vectors": len(last.support_), **gaps(last), "tuning_seconds": float(tuner.tuning_time_),
        "fit_seconds": float(tuner.refit_time_),
    }  # fmt: skip


def _print(tuner: Any, result: dict[str, Any], y: Any, predicted: Any, numeric: bool) -> None:
    import numpy as np

    shown = {k: v for k, v in result.items() if k not in ("dual_gap", "accuracy_low", "accuracy_high")}
    if not numeric:
        low, high = result["accuracy_low"], result["accuracy_high"]
        shown["accuracy"] = f"{result['accuracy']:.4f}, 95 % interval {low:.4f} to {high:.4f} (held-out rows)"
        if len(tuner.classes_) <= _SHOWN_CLASSES:
            rows = [
                {
                    "true class": str(a),
                    **{f"predicted {b}": int(np.sum(predicted[y == a] == b)) for b in tuner.classes_},
                }
                for a in tuner.classes_
            ]
            table("Held-out rows", rows)
    facts("", shown)
    for line in explained(tuner):
        note(line)


def explained(tuner: Any) -> list[str]:
    """The chosen parameters in words."""
    share = len(_last(tuner).support_) / _last(tuner).shape_fit_[0]
    lines = [f"C = {tuner.C_:.4g}: the larger, the more the model follows single rows"]
    if tuner.kernel_ != "linear":
        reach = 1.0 / tuner.gamma_ if tuner.kernel_ == "laplacian" else tuner.gamma_**-0.5
        scaled = "" if tuner.scale is None else " (of scaled features)"
        lines.append(
            f"gamma = {tuner.gamma_:.4g}: rows up to a distance of some {reach:.2g}{scaled} are alike"
        )
    if hasattr(tuner, "epsilon_"):
        lines.append(f"epsilon = {tuner.epsilon_:.4g}: smaller errors cost nothing")
    lines.append(f"{share:.0%} of the rows are support vectors: near 100 % the rows are noisy, or few")
    return lines


def _last(tuner: Any) -> Any:
    best = tuner.best_estimator_
    return best.steps[-1][1] if hasattr(best, "steps") else best
