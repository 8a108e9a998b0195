"""``maxmargin train``: fit a model to a data file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from maxmargin.cli import options as o
from maxmargin.cli.checks import check_writable
from maxmargin.cli.output import Interrupted, emit, facts, working


def train(
    data: o.Data,
    model: Annotated[
        Path | None,
        typer.Argument(help="File for the model; without it the model is not written.", show_default=False),
    ] = None,
    target: o.Target = None,
    drop: o.Drop = None,
    format: o.DataFormat = None,
    scale: o.Scaling = o.Scale.none,
    impute: o.Impute = True,
    encode: o.Encode = True,
    category: o.Category = None,
    machine: o.Machine = "svc",
    kernel: o.Kernel = None,
    c: o.C = None,
    gamma: o.Gamma = None,
    degree: o.Degree = None,
    coef0: o.Coef0 = None,
    nu: o.Nu = None,
    quantile: o.Quantile = None,
    quantiles: o.Quantiles = None,
    contamination: o.Contamination = None,
    epsilon: o.Epsilon = None,
    loss: o.Loss = None,
    bias: o.Bias = None,
    class_weight: o.ClassWeight = None,
    solver: o.Solver = None,
    tol: o.Tol = None,
    cache_size: o.CacheSize = None,
    max_time: o.MaxTime = None,
    n_jobs: o.Jobs = None,
    cv: o.Folds = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show the progress of the solver.")
    ] = False,
    json: o.Json = False,
) -> None:
    """Train a model and write it to a file.

    Example: maxmargin train iris.csv iris.maxmargin --target species --scale standard -C 10
    """
    check_writable(model, data=data)
    with working("loading"):
        from maxmargin.cli.models import gaps, score, set_feature_names
        from maxmargin.cli.tables import columns_entry
        from maxmargin.cli.training_data import prepare
    parameters = o.given(
        kernel=kernel, C=c, gamma=gamma, degree=degree, coef0=coef0, nu=nu, epsilon=epsilon,
        quantile=quantile, quantiles=quantiles, contamination=contamination, loss=loss, bias=bias,
        class_weight=class_weight, solver=solver, tol=tol,
        cache_size=cache_size, max_time=max_time, n_jobs=n_jobs,
        verbose=True if verbose and not json else None,
    )  # fmt: skip
    with working("reading data"):
        task = prepare(
            data, machine, parameters, scale=scale, target=target, drop=drop, format=format, quiet=json,
            impute=impute, encode=encode, category=category,
        )  # fmt: skip
    validated, early = None, None
    if cv is not None:
        validated, early = _cross_validate(task, cv, progress=False if json else None)
    with working("training"):
        seconds = task.fit()
    set_feature_names(task.estimator, task.table.names)
    if model is not None:
        from maxmargin.persistence import save

        save(task.estimator, model)
    fitted = task.model
    scored = score(task.estimator, task.X, task.y) if task.y is not None else None
    report = {
        "machine": type(fitted).__name__,
        "rows": task.X.shape[0],
        "features": int(fitted.n_features_in_),
        "classes": len(fitted.classes_) if hasattr(fitted, "classes_") else None,
        "target": task.table.target if task.y is not None else None,
        "status": str(fitted.status_),
        "support_vectors": len(fitted.support_),
        "epsilon": float(fitted.epsilon_) if hasattr(fitted, "epsilon_") else None,
        **gaps(fitted),
        "seconds": seconds,
        **({f"training_{scored[0]}": scored[1]} if scored else {}),
        **(validated or {}),
        "model": str(model) if model is not None else None,
    }
    if json:
        emit({**report, **columns_entry(task.table), "parameters": fitted.get_params()})
    else:
        shown = {key: value for key, value in report.items() if key not in ("machine", "dual_gap")}
        facts("", {"estimator": report["machine"], **shown})
    if report["status"] == "interrupted":
        raise Interrupted("interrupted; the model is the best solution so far")
    if early is not None:
        raise Interrupted(early)


def _cross_validate(
    task: Any, folds: int, progress: bool | None
) -> tuple[dict[str, float | int], str | None]:
    """Mean and standard deviation of the scores of the held-out folds; a message if Ctrl-C left some out."""
    from maxmargin.cli.cross_validation import count_fits, fit_search
    from maxmargin.model_selection import SVMSearchCV

    search = SVMSearchCV(task.estimator, {}, cv=folds, refit=False, progress=progress)
    fit_search(search, task)
    scores: dict[str, float | int] = {
        "cv_score": float(search.cv_results_["mean_test_score"][0]),
        "cv_std": float(search.cv_results_["std_test_score"][0]),
    }
    if not search.interrupted_:
        return scores, None
    done = count_fits(search)
    early = f"interrupted after {done} of {folds} folds, of which the score is; the model has all rows"
    return scores | {"cv_folds": done}, early
