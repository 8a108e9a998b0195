"""Linear classifiers of two classes: `SVC(kernel="linear")` beside scikit-learn's `LinearSVC` (LIBLINEAR).

    python benchmarks/linear.py            # needs MAXMARGIN_DATA: some minutes
    python benchmarks/linear.py --quick    # generated data, seconds

Both losses, one thread each. `LinearSVC` penalises its bias; `SVC` is trained with a free bias and with a
penalised one, the same problem as LinearSVC's. Excess is that of the primal objective, computed here from
`coef_` and `intercept_`, over the largest certified lower bound (the dual value of our runs) of the same
problem, relative to it. Every model is trained with several tolerances, and its time is that of its quickest
run with an excess of at most 1e-3, or 1e-4. Where there is none, the table shows the time of the tightest run
and its excess. LIBLINEAR may take its default of 1,000 passes, and chooses between the primal and the dual
where it can; our runs are ended after --seconds. The first fit of each kind is not counted.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

sys.path.insert(0, str(Path(__file__).parent))
from datasets import MissingData, load
from maxmargin import SVC
from report import geometric_mean, write

#: Data sets, and how many of their rows are used.
SETS: dict[str, int | None] = {"text": 8000, "a9a": None, "ijcnn1": None, "covtype_binary_50k": 20_000}
QUICK: dict[str, int | None] = {"text": 1000, "synthetic": 1000}
LOSSES = ("hinge", "squared_hinge")
PENALTIES = (1.0, 100.0)
ACCURACIES = (1e-3, 1e-4)
OURS, LIBLINEAR = (1e-1, 1e-2, 1e-3, 1e-4), (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
MODELS = {"LinearSVC": "penalised", "SVC": "free", "SVC, penalised": "penalised"}


class Run(NamedTuple):
    """One training: seconds, primal value, and a certified lower bound, 0 if there is no better one."""

    seconds: float
    primal: float
    bound: float = 0.0


def primal(X: Any, y: Any, model: Any, loss: str, C: float, penalised: bool) -> float:
    """|w|^2 / 2 (+ b^2 / 2) + C times the losses."""
    w = np.ravel(model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_)
    b = float(model.intercept_[0])
    slack = np.maximum(0.0, 1.0 - y * (X @ w + b))
    return float(0.5 * (w @ w + penalised * b * b) + C * (slack.sum() if loss == "hinge" else slack @ slack))


def timed(make: Callable[[], Any], X: Any, y: Any) -> tuple[float, Any]:
    """The quicker of two fits, if they are quick, and the model."""
    best = np.inf
    for _ in range(2):
        model = make()
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        best = min(best, time.perf_counter() - began)
        if best > 1.0:
            break
    return best, model


def runs_of(name: str, X: Any, y: Any, loss: str, C: float, seconds: float) -> Iterator[Run]:
    """The runs of a model, from the loosest tolerance on."""
    penalised = MODELS[name] == "penalised"
    for tol in LIBLINEAR if name == "LinearSVC" else OURS:

        def make(tol: float = tol) -> Any:
            if name == "LinearSVC":
                return LinearSVC(C=C, loss=loss, tol=tol, dual=True if loss == "hinge" else "auto")
            return SVC(
                kernel="linear", C=C, loss=loss, bias=MODELS[name], tol=tol, max_time=seconds, n_jobs=1
            )

        needed, model = timed(make, X, y)
        trace = model.trace_[0] if name != "LinearSVC" else ()
        bound = -trace[-1].objective if trace else 0.0
        value = primal(X, y, model, loss, C, penalised)
        yield Run(needed, value, bound)
        # No more accurate one is needed, or it would not get further in its time or passes.
        if name != "LinearSVC" and (needed > seconds or value - bound <= 0.1 * min(ACCURACIES) * bound):
            return
        if name == "LinearSVC" and np.max(model.n_iter_) >= model.max_iter:
            return


def one(data: str, rows: int | None, loss: str, C: float, seconds: float) -> dict[str, Any]:
    """All models on one problem."""
    X, y = load(data, rows)[:2]
    y = np.where(y > np.median(np.unique(y)), 1, -1)
    found = {name: list(runs_of(name, X, y, loss, C, seconds)) for name in MODELS}
    bounds = {
        bias: max(run.bound for name in MODELS if MODELS[name] == bias for run in found[name])
        for bias in ("free", "penalised")
    }
    # The bias costs something: the optimal value without its cost is a bound as well.
    bounds["penalised"] = max(bounds.values())
    out: dict[str, Any] = {
        "data": data, "n": X.shape[0], "d": X.shape[1], "loss": loss, "C": C, "models": {}
    }  # fmt: skip
    for name, runs in found.items():
        excess = [run.primal / bounds[MODELS[name]] - 1.0 for run in runs]
        times = {
            f"{accuracy:g}": min(
                (run.seconds for run, e in zip(runs, excess, strict=True) if e <= accuracy), default=None
            )
            for accuracy in ACCURACIES
        }
        last = int(np.argmin(excess))
        out["models"][name] = {"seconds": times, "tightest": runs[last].seconds, "excess": excess[last]}
    return out


def shown(row: dict[str, Any]) -> dict[str, Any]:
    out = {
        "data": row["data"], "rows": row["n"], "features": row["d"],
        "loss": row["loss"], "C": f"{row['C']:g}",
    }  # fmt: skip
    for accuracy in map("{:g}".format, ACCURACIES):
        for name, model in row["models"].items():
            needed = model["seconds"][accuracy]
            late = f"{model['tightest']:.3g} (excess {model['excess']:.0e})"
            out[f"{name}: s to {accuracy}"] = late if needed is None else f"{needed:.3g}"
        factor = ratio(row, accuracy)
        out[f"x LinearSVC, {accuracy}"] = "-" if factor is None else f"{factor:.2g}"
    return out


def ratio(row: dict[str, Any], accuracy: str, name: str = "SVC") -> float | None:
    """How many times as long LinearSVC takes as a model of ours, where both are accurate enough."""
    theirs, ours = (row["models"][which]["seconds"][accuracy] for which in ("LinearSVC", name))
    return None if theirs is None or ours is None else float(theirs / ours)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small generated data")
    parser.add_argument("--seconds", type=float, default=10.0, help="after which a fit of ours is ended")
    parser.add_argument("--out", default="linear", help="name of the result files in benchmarks/results")
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for data, n in (QUICK if args.quick else SETS).items():
        try:
            X, y = load(data, n)[:2]
        except MissingData as missing:
            sys.exit(str(missing))
        y = np.where(y > np.median(np.unique(y)), 1, -1)
        for loss in LOSSES:
            for name in MODELS:
                next(runs_of(name, X, y, loss, 0.1, 60.0))  # compiled and loaded
            for C in PENALTIES:
                rows.append(one(data, n, loss, C, args.seconds))
                print(shown(rows[-1]), flush=True)
    notes = []
    for accuracy in map("{:g}".format, ACCURACIES):
        for loss in LOSSES:
            found = [ratio(r, accuracy) for r in rows if r["loss"] == loss]
            both = [f for f in found if f is not None]
            if both:
                notes.append(
                    f"LinearSVC / SVC, {loss}, excess {accuracy}: geometric mean {geometric_mean(both):.2g}, "
                    f"{min(both):.2g} to {max(both):.2g}, of {len(both)} problems out of {len(found)}"
                )
    write(
        args.out, 'SVC(kernel="linear") and LinearSVC', [shown(r) for r in rows], notes, rows, threads=1,
        repetitions="the quicker of 2 fits, of those of more than a second 1",
    )  # fmt: skip


if __name__ == "__main__":
    main()
