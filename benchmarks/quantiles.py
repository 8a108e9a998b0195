"""Quantiles beside scikit-learn's linear and boosted ones; several targets beside a fit for each.

    python benchmarks/quantiles.py --quick    # few rows: seconds
    python benchmarks/quantiles.py            # two to four minutes; needs no data files

Quantiles: three of them, 0.05, 0.5 and 0.95, of new rows. `QuantileSVR` trains all in one fit; the others one
model for each, whose seconds are added up. C (1, 10, 100) and gamma (0.07, 0.2 and 0.6 over the number of
features) are chosen by five folds of the training rows, which takes the seconds of "search"; scikit-learn's
estimators have their default parameters, but `QuantileRegressor` no penalty. The loss is the mean pinball
loss of the three quantiles, "covered" the share of new rows between the outer two (0.9 is wanted), "crossing"
that of rows in which a higher quantile is predicted below a lower one.

Targets: `SVR` with C = 10 and several targets of Friedman's first problem, in one fit, as
`MultiOutputRegressor(SVR)`, and as `MultiOutputRegressor` with scikit-learn's SVR; one thread each. Times are
the best of --repeat runs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import sklearn.svm
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import mean_pinball_loss
from sklearn.multioutput import MultiOutputRegressor

from datasets import Data, california_like, diabetes, friedman1
from maxmargin import SVR, QuantileSVR
from maxmargin.model_selection import SVMSearchCV
from report import write

LEVELS = (0.05, 0.5, 0.95)
RIVALS: dict[str, Callable[[float], Any]] = {
    "QuantileRegressor": lambda q: QuantileRegressor(quantile=q, alpha=0.0),
    "GradientBoosting": lambda q: GradientBoostingRegressor(loss="quantile", alpha=q, random_state=0),
    "HistGradientBoosting": lambda q: HistGradientBoostingRegressor(
        loss="quantile", quantile=q, random_state=0
    ),
}
N_TARGETS = 6


def problems(quick: bool) -> dict[str, Data]:
    """Rows that train and new rows; of diabetes two thirds and one third."""
    whole = diabetes(442)
    order = np.random.default_rng(0).permutation(442)
    train, new = order[:300], order[300:]
    found = {"diabetes": Data(whole.X[train], whole.y[train], whole.X[new], whole.y[new])}
    sizes = (300,) if quick else (1000, 4000)
    for n in sizes:
        found[f"friedman1, {n}"] = friedman1(n)
        found[f"california-like, {n}"] = california_like(n)
    return found


def fastest(make: Callable[[], Any], X: Any, y: Any, repeat: int) -> tuple[float, Any]:
    """Seconds of the fastest fit, and a fitted model."""
    best = np.inf
    for _ in range(repeat):
        model, began = make(), time.perf_counter()
        model.fit(X, y)
        best = min(best, time.perf_counter() - began)
    return best, model


def judged(values: Any, y: Any) -> dict[str, float]:
    """Loss, coverage and crossing of predicted quantiles."""
    losses = [mean_pinball_loss(y, f, alpha=q) for q, f in zip(LEVELS, values.T, strict=True)]
    return {
        "loss": float(np.mean(losses)),
        "covered": float(((values[:, 0] <= y) & (y <= values[:, -1])).mean()),
        "crossing": float((np.diff(values, axis=1) < 0).any(axis=1).mean()),
    }


def quantiles(name: str, data: Data, repeat: int) -> list[dict[str, Any]]:
    """A row for each model."""
    began = time.perf_counter()
    gammas = [factor / data.X.shape[1] for factor in (0.07, 0.2, 0.6)]
    grid = {"C": [1.0, 10.0, 100.0], "gamma": gammas}
    levels = list(LEVELS)
    search = SVMSearchCV(QuantileSVR(quantiles=levels), grid, cv=5, refit=False, progress=False)
    best = search.fit(data.X, data.y).best_params_
    searched = time.perf_counter() - began
    seconds, model = fastest(lambda: QuantileSVR(quantiles=levels, **best), data.X, data.y, repeat)
    found = [
        {
            "data": name, "model": "QuantileSVR", "seconds": seconds, "search": searched, **best,
            "status": model.status_, "gap": float(model.relative_gap_.max()),
            **judged(model.predict(data.X_test), data.y_test),
        }
    ]  # fmt: skip
    for rival, make in RIVALS.items():
        fits = [fastest(partial(make, q), data.X, data.y, repeat) for q in LEVELS]
        values = np.column_stack([fitted.predict(data.X_test) for _, fitted in fits])
        spent = sum(each for each, _ in fits)
        found.append({"data": name, "model": rival, "seconds": spent, **judged(values, data.y_test)})
    for row in found:
        row["times"] = row["seconds"] / seconds
        print(row, flush=True)
    return found


def targets(n: int, repeat: int) -> dict[str, Any]:
    """Several targets of n rows: Friedman's, and sums of it with single features."""
    data = friedman1(n)
    Y = np.column_stack([data.y + 0.3 * k * data.X[:, k] for k in range(N_TARGETS)])
    kind: dict[str, Any] = {"C": 10.0, "gamma": 0.05}
    ours, model = fastest(lambda: SVR(n_jobs=1, **kind), data.X, Y, repeat)
    each, alone = fastest(lambda: MultiOutputRegressor(SVR(n_jobs=1, **kind)), data.X, Y, repeat)
    theirs, other = fastest(lambda: MultiOutputRegressor(sklearn.svm.SVR(**kind)), data.X, Y, repeat)
    predicted = model.predict(data.X_test)
    return {
        "rows": n, "targets": N_TARGETS, "one fit": ours, "a fit for each": each, "scikit-learn": theirs,
        "x a fit for each": each / ours, "x scikit-learn": theirs / ours,
        "kernel values": model.n_kernel_evals_,
        "kernel values, a fit for each": sum(fitted.n_kernel_evals_ for fitted in alone.estimators_),
        "largest difference": float(np.abs(predicted - other.predict(data.X_test)).max()),
    }  # fmt: skip


def shown(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the table: three digits."""
    return {k: f"{v:.3g}" if isinstance(v, float) else v for k, v in row.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rows, one run")
    parser.add_argument("--repeat", type=int, default=3, help="runs, of which the fastest counts (3)")
    parser.add_argument("--out", help="name of the result files (quantiles, and the same with _targets)")
    args = parser.parse_args()
    repeat = 1 if args.quick else args.repeat
    out = args.out or ("quantiles-quick" if args.quick else "quantiles")
    QuantileSVR(quantiles=list(LEVELS)).fit(*friedman1(100)[:2])  # what is compiled or read first
    raw = [row for name, data in problems(args.quick).items() for row in quantiles(name, data, repeat)]
    columns = ("data", "model", "seconds", "times", "search", "C", "gamma", "loss", "covered", "crossing")
    rows = [shown({c: row.get(c, "") for c in columns}) for row in raw]
    notes = []
    for rival in RIVALS:
        own = [(row, raw[k - k % (1 + len(RIVALS))]) for k, row in enumerate(raw) if row["model"] == rival]
        losses = [row["loss"] / ours["loss"] for row, ours in own]
        times = [row["times"] for row, _ in own]
        notes.append(
            f"{rival}: {np.exp(np.mean(np.log(times))):.3g} times the time of QuantileSVR (geometric mean, "
            f"{min(times):.3g} to {max(times):.3g}), {np.exp(np.mean(np.log(losses))):.3g} times its loss "
            f"({min(losses):.3g} to {max(losses):.3g})"
        )
    best = f"best of {repeat}"
    write(out, "Quantiles 0.05, 0.5 and 0.95", rows, notes, raw, threads="default", repetitions=best)
    found = []
    for n in (300,) if args.quick else (500, 2000, 4000):
        found.append(targets(n, repeat))
        print(found[-1], flush=True)
    write(
        f"{out}_targets", "Several targets in one fit", [shown(row) for row in found], (), found,
        threads=1, repetitions=best,
    )  # fmt: skip


if __name__ == "__main__":
    main()
