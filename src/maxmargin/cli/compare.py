"""``maxmargin compare``: several solvers on one data set."""

from __future__ import annotations

import time
import warnings
from typing import Annotated, Any

import typer

from maxmargin.cli import options as o
from maxmargin.cli.checks import check_picture, check_writable, unknown
from maxmargin.cli.output import BadInput, Interrupted, emit, table, working

# Seconds of a first fit, which compiles the solver: compile time is not part of the comparison.
_WARM_UP = 0.2
# Seconds that the runs of one solver may take together before they are not repeated.
_LONG = 5.0
# A trace with fewer records does not make a curve: the run is repeated with more of them.
_FEWEST_RECORDS = 10


def compare(
    data: o.Data,
    target: o.Target = None,
    drop: o.Drop = None,
    format: o.DataFormat = None,
    scale: o.Scaling = o.Scale.none,
    machine: o.Machine = "svc",
    solver: Annotated[
        list[str] | None,
        typer.Option("--solver", "-s", help="A solver; may be repeated.", show_default="all suitable ones"),
    ] = None,
    kernel: o.Kernel = None,
    c: o.C = None,
    gamma: o.Gamma = None,
    nu: o.Nu = None,
    quantile: o.Quantile = None,
    epsilon: o.Epsilon = None,
    loss: o.Loss = None,
    bias: o.Bias = None,
    tol: o.Tol = None,
    cache_size: o.CacheSize = None,
    max_time: Annotated[float, typer.Option(help="Time limit of each solver in seconds.")] = 20.0,
    n_jobs: o.Jobs = None,
    repeat: Annotated[
        int, typer.Option(min=1, help="Runs of each solver, of which the fastest counts; fewer if long.")
    ] = 3,
    plot: o.Picture = None,
    json: o.Json = False,
) -> None:
    """Compare solvers on one data set: seconds, iterations, kernel operations, certified gap.

    Example: maxmargin compare data.csv --scale standard -s batch -s smo -s rosen --plot gap.png
    """
    check_writable(plot, data=data)
    check_picture(plot)
    from sklearn.base import clone

    from maxmargin import solvers
    from maxmargin.cli.training_data import prepare

    if plot is not None:
        from maxmargin.inspection import TraceDisplay, Watched
    parameters = o.given(
        kernel=kernel, C=c, gamma=gamma, nu=nu, quantile=quantile, epsilon=epsilon, loss=loss, bias=bias,
        tol=tol, cache_size=cache_size, n_jobs=n_jobs,
    )  # fmt: skip
    task = prepare(
        data, machine, parameters, scale=scale, target=target, drop=drop, format=format, quiet=json
    )
    if "solver" not in task.model.get_params():
        raise BadInput(f"--machine {machine} has one training algorithm only: there is nothing to compare")
    for name in solver or ():
        if name not in solvers.names():
            raise unknown("--solver", name, solvers.names())
    X = task.X if task.estimator is task.model else task.estimator[:-1].fit_transform(task.X)
    labels = () if task.y is None else (task.y,)
    fitted: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    refused: dict[str, str] = {}
    stopped = False
    for name in solver or [name for name in solvers.names() if name != "auto"]:
        model = clone(task.model).set_params(solver=name, max_time=max_time)
        try:
            with working(f"{name}: compiling"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                first = clone(model).set_params(max_time=min(_WARM_UP, max_time)).fit(X, *labels)
            if first.status_ == "interrupted":
                stopped = True
                break
            with working(f"{name}: training"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model, seconds, runs, stopped = _best_run(model, X, labels, repeat)
        except (TypeError, ValueError) as error:
            if solver:
                raise BadInput(str(error)) from error
            refused[name] = str(error)
            continue
        fitted[name] = model
        rows.append(_row(name, model, seconds, runs))
        if stopped:
            break
    if stopped and not rows:
        raise Interrupted("interrupted before the first solver was done")
    if not rows:
        raise BadInput(next(iter(refused.values()), "no solver can be compared"))
    rows.sort(key=lambda row: (row["status"] != "solved", row["seconds"]))
    if plot is not None and not stopped:
        curves = {}
        for row in rows:
            model = fitted[row["solver"]]
            if min(len(trace) for trace in model.trace_) < _FEWEST_RECORDS:
                with working(f"{row['solver']}: recording"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model = clone(model).set_params(solver=Watched(row["solver"]))
                    clone(model).set_params(max_time=min(_WARM_UP, max_time)).fit(X, *labels)
                    model.fit(X, *labels)
            curves[row["solver"]] = model
        TraceDisplay.from_estimator(curves, x="seconds", y="relative_gap").figure_.savefig(plot, dpi=150)
    if json:
        emit({"data": data, "rows": X.shape[0], "features": X.shape[1], "solvers": rows, "refused": refused})
    else:
        title = f"{type(task.model).__name__} on {data}: {X.shape[0]:,} rows, {X.shape[1]:,} features"
        table(title, [_short(row) for row in rows])
        print(_repetitions([row["runs"] for row in rows]))
    if stopped:
        raise Interrupted("interrupted; solvers that had not started are missing")


def _best_run(model: Any, X: Any, labels: tuple[Any, ...], repeat: int) -> tuple[Any, float, int, bool]:
    """The model of the fastest run, its seconds, the number of runs, and whether Ctrl-C ended the last."""
    from sklearn.base import clone

    best, least, total = model, float("inf"), 0.0
    for run in range(1, repeat + 1):
        tried = clone(model)
        began = time.perf_counter()
        tried.fit(X, *labels)
        seconds = time.perf_counter() - began
        total += seconds
        interrupted = tried.status_ == "interrupted"
        if interrupted and run > 1:  # whole runs count
            return best, least, run - 1, True
        if seconds < least:
            best, least = tried, seconds
        if interrupted or tried.status_ != "solved" or total > _LONG:
            return best, least, run, interrupted
    return best, least, repeat, False


def _repetitions(runs: list[int]) -> str:
    """A line about the runs of the solvers."""
    least, most = min(runs), max(runs)
    if most == 1:
        return "Seconds of one run each."
    if least == most:
        return f"Seconds of the fastest of {most} runs each."
    return f"Seconds of the fastest of {least} to {most} runs; long ones are repeated less (--repeat)."


def _row(name: str, model: Any, seconds: float, runs: int) -> dict[str, Any]:
    import numpy as np

    from maxmargin.cli.models import gaps

    return {
        "solver": name,
        "status": str(model.status_),
        "seconds": seconds,
        "runs": runs,
        "iterations": int(np.sum(model.n_iter_)),
        "kernel_calls": int(model.n_kernel_calls_),
        "kernel_evals": int(model.n_kernel_evals_),
        "support_vectors": len(model.support_),
        **gaps(model),
    }


def _short(row: dict[str, Any]) -> dict[str, Any]:
    """The row with numbers short enough for a table of 80 columns."""
    return {
        "solver": row["solver"],
        "status": row["status"],
        "seconds": f"{row['seconds']:.3g}",
        "iterations": f"{row['iterations']:,}",
        "kernel ops": f"{row['kernel_calls']:.2e}",
        "computed": f"{row['kernel_evals']:.2e}",
        "SVs": f"{row['support_vectors']:,}",
        "relative gap": f"{row['relative_gap']:.1e}",
    }
