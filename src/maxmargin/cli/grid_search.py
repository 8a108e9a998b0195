"""``maxmargin search``: choose the parameters of an estimator by cross-validation on a grid."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from maxmargin.cli import options as o
from maxmargin.cli.checks import (
    check_different,
    check_parameters,
    check_picture,
    check_scoring,
    check_writable,
    did_you_mean,
)
from maxmargin.cli.output import BadInput, Interrupted, emit, facts, note, table, working

_VALUES = "Values a,b,c or first:last:count (evenly spaced in logarithms)."

# Values of a parameter; more are a mistake.
_MOST_VALUES = 1000


def search(
    data: o.Data,
    model: Annotated[
        Path | None,
        typer.Argument(help="File for the best model, trained on all rows.", show_default=False),
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
    c: Annotated[
        str | None,
        typer.Option(
            "-C",
            help=_VALUES,
            show_default="0.1:1000:9, for a regression times the standard deviation of the target",
        ),
    ] = None,
    gamma: Annotated[str | None, typer.Option(help=_VALUES, show_default="seven values around scale")] = None,
    nu: Annotated[str | None, typer.Option(help=_VALUES, show_default="0.01:0.5:9, nu-svr: 0.5")] = None,
    epsilon: Annotated[str | None, typer.Option(help=_VALUES, show_default="0.1")] = None,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", help="Another parameter: name=values; may be repeated.", show_default=False),
    ] = None,
    class_weight: o.ClassWeight = None,
    loss: o.Loss = None,
    bias: o.Bias = None,
    solver: o.Solver = None,
    tol: o.Tol = None,
    n_jobs: o.Jobs = None,
    cv: Annotated[int, typer.Option("--cv", min=2, help="Folds of cross-validation.")] = 5,
    scoring: Annotated[
        str | None,
        typer.Option(help="Name of a scikit-learn scorer.", show_default="accuracy, for a regression r2"),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="File from which an interrupted search is resumed.", show_default=False),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Number of grid points to list.")] = 10,
    plot: o.Picture = None,
    json: o.Json = False,
) -> None:
    """Search for the best parameters on a grid, with warm starts between neighbouring points.

    Example: maxmargin search data.csv best.maxmargin --scale standard -C 0.1:1000:5 --plot grid.png
    """
    check_writable(model, plot, checkpoint, data=data)
    check_different({"the model": model, "--plot": plot, "--checkpoint": checkpoint})
    check_picture(plot)
    asked = _asked(o.given(C=c, gamma=gamma, nu=nu, epsilon=epsilon), param or [])
    with working("loading"):
        from sklearn.base import clone

        from maxmargin.cli.cross_validation import count_fits, fit_search
        from maxmargin.cli.models import gaps, set_feature_names
        from maxmargin.cli.tables import columns_entry
        from maxmargin.cli.training_data import prepare
        from maxmargin.model_selection import SVMSearchCV
    if plot is not None:
        from maxmargin.inspection import SearchDisplay
    parameters = o.given(
        kernel=kernel, loss=loss, bias=bias, class_weight=class_weight, solver=solver, tol=tol, n_jobs=n_jobs
    )
    first = asked.get("epsilon", [])[:1]
    if first and isinstance(first[0], int | float):
        parameters["epsilon"] = first[0]  # for warnings about units; the grid overrides it
    with working("reading data"):
        task = prepare(
            data, machine, parameters, scale=scale, target=target, drop=drop, format=format, quiet=json,
            impute=impute, encode=encode, category=category,
        )  # fmt: skip
    prefix = f"{task.estimator.steps[-1][0]}__" if task.estimator is not task.model else ""
    found = _grid(task, asked)
    if plot is not None and sum(_are_numbers(values) for values in found.values()) < 2:
        raise BadInput("--plot needs two parameters with several numbers: -C 0.1:1000:5 --gamma 0.01,0.1")
    judged = task.model
    if True in found.get("probability", []):
        judged = clone(judged).set_params(probability=True)
    check_scoring(scoring, judged, task.y)
    grid = {prefix + name: values for name, values in found.items()}
    searcher = SVMSearchCV(
        task.estimator, grid, cv=cv, scoring=scoring, n_jobs=n_jobs, checkpoint=checkpoint,
        progress=False if json else None,
    )  # fmt: skip
    fit_search(searcher, task)
    best = searcher.best_estimator_
    set_feature_names(best, task.table.names)
    if model is not None:
        from maxmargin.persistence import save

        save(best, model)
    if plot is not None:
        SearchDisplay.from_estimator(searcher).figure_.savefig(plot, dpi=150)
    results = searcher.cv_results_
    nodes = [
        {
            **{name.removeprefix(prefix): value for name, value in results["params"][k].items()},
            "score": float(results["mean_test_score"][k]),
            "std": float(results["std_test_score"][k]),
        }
        for k in results["rank_test_score"].argsort(kind="stable")
        if not searcher.interrupted_ or math.isfinite(results["mean_test_score"][k])
    ]
    fits = count_fits(searcher)
    chosen = {name.removeprefix(prefix): value for name, value in searcher.best_params_.items()}
    report = {
        "rows": task.X.shape[0],
        "fits": fits,
        "best_score": float(searcher.best_score_),
        **gaps(best.steps[-1][1] if prefix else best),
        "refit_seconds": float(searcher.refit_time_),
        "model": str(model) if model is not None else None,
        "plot": str(plot) if plot is not None else None,
    }
    if json:
        emit(
            {
                **report,
                **columns_entry(task.table),
                "best_params": chosen,
                "nodes": nodes,
                "interrupted": searcher.interrupted_,
            }
        )
    else:
        table(
            f"The best {min(top, len(nodes))} of {len(nodes)}, {searcher.n_splits_} folds",
            nodes[:top],
        )
        shown = (f"{k}={v:.6g}" if isinstance(v, float) else f"{k}={v}" for k, v in chosen.items())
        shown_facts = {key: value for key, value in report.items() if key != "dual_gap"}
        facts("", {**shown_facts, "best": ", ".join(shown)})
        for name in [] if searcher.interrupted_ else _at_the_edge(chosen, nodes):
            note(f"the best {name} is at the edge of the grid: a wider range may contain a better value")
    if searcher.interrupted_:
        planned = len(results["params"]) * searcher.n_splits_
        raise Interrupted(f"interrupted after {fits:,} of {planned:,} fits; the result is the best of these")


def _at_the_edge(chosen: dict[str, Any], nodes: list[dict[str, Any]]) -> list[str]:
    """Names of the parameters whose best value is the smallest or the largest of at least three."""
    edge = []
    for name, value in chosen.items():
        values = {node[name] for node in nodes if isinstance(node.get(name), float | int)}
        if len(values) > 2 and value in (min(values), max(values)):
            edge.append(name)
    return edge


def _are_numbers(values: list[Any]) -> bool:
    return len(values) > 1 and all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)


def _asked(asked: dict[str, str], others: list[str]) -> dict[str, list[Any]]:
    """The values of the parameters that are given by options of their own, and by ``--param``."""
    for other in others:
        name, sign, values = other.partition("=")
        if not sign:
            raise BadInput(f"--param {other}: write it as name=values")
        asked[name.strip()] = values
    return {name: _values(name, text) for name, text in asked.items()}


def _grid(task: Any, asked: dict[str, list[Any]]) -> dict[str, Any]:
    """The values of each parameter; C or nu, whichever counts, and gamma, have a default range."""
    import numpy as np
    from sklearn.base import is_regressor

    known = task.model.get_params()
    for name in asked:
        if name not in known:
            hint = did_you_mean(name, known) or f"use {', '.join(known)}"
            raise BadInput(f"{type(task.model).__name__} has no parameter {name}: {hint}")
    grid: dict[str, Any] = dict(asked)
    if is_regressor(task.model):  # C bounds coefficients, which are in the units of the target
        spread = float(f"{np.std(np.asarray(task.y, dtype=np.float64)):.2g}") or 1.0
        grid.setdefault("C", [spread * factor for factor in np.geomspace(0.1, 1000.0, 9).tolist()])
    elif "nu" in known and known.get("loss", "hinge") == "hinge":
        grid.setdefault("nu", np.geomspace(0.01, 0.5, 9).tolist())
    elif "C" in known:
        grid.setdefault("C", np.geomspace(0.1, 1000.0, 9).tolist())
    if "gamma" not in grid and known["kernel"] not in ("linear", "precomputed"):
        from maxmargin.kernels.gamma import resolve_gamma

        X = task.X
        if task.estimator is not task.model:
            from sklearn.base import clone

            X = clone(task.estimator.steps[0][1]).fit_transform(X)
        centre = float(f"{resolve_gamma('scale', X):.2g}")
        grid["gamma"] = [centre * factor for factor in np.geomspace(0.01, 10.0, 7).tolist()]
    _check_values(task.model, grid)
    return grid


def _check_values(model: Any, grid: dict[str, Any]) -> None:
    """Raise `BadInput` for a value that the estimator does not accept, before anything is trained."""
    from sklearn.base import clone

    for name, values in grid.items():
        for value in values:
            check_parameters(clone(model).set_params(**{name: value}))


def _values(name: str, text: str) -> list[Any]:
    import numpy as np

    try:
        if ":" in text:
            first, last, count = text.split(":")
            if not 0 < int(count) <= _MOST_VALUES:
                raise ValueError
            values = np.geomspace(float(first), float(last), int(count)).tolist()
            if not values or not np.isfinite(values).all():
                raise ValueError
            return values
    except ValueError:
        raise BadInput(
            f"{name}: {text!r} is not first:last:count with two positive numbers and a count of at most "
            f"{_MOST_VALUES:,}, such as 0.1:100:4"
        ) from None
    values = [_parsed(part.strip()) for part in text.split(",") if part.strip()]
    if not values:
        raise BadInput(f"{name}: {text!r} has no values: write a,b,c or first:last:count")
    return values


def _parsed(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False, "none": None}.get(text.lower(), text)
