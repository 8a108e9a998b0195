"""Steps of a search along its path, relative to those of cold trainings, through the public SVMSearchCV.

    python benchmarks/paths.py                  # all estimators; needs MAXMARGIN_DATA
    python benchmarks/paths.py --quick          # bundled and synthetic data, smaller grids

Every estimator is searched over ten values of a parameter (eight of a regressor) at three widths around the
median distance, with three folds: cold, up and down along the parameter, and with path="auto".
`L2OneClassSVM` is also searched over the 20 x 20 grid of the paper on MaxMinOver, without folds, with its own
solver and with the paper's. Steps are those that the solvers report (`n_iter_`). SVC and SVR are trained by
their own `fit` here: the compiled path of the search for them takes other steps.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import ParameterGrid
from sklearn.preprocessing import StandardScaler

sys.path.insert(0, str(Path(__file__).parent))
from datasets import MissingData, friedman1, load, synthetic, whole
from maxmargin import (
    SVC,
    SVR,
    AllDistancesSVC,
    CrammerSingerSVC,
    L2OneClassSVM,
    NuSVC,
    NuSVR,
    OneClassSVM,
)
from maxmargin.estimators.base import BaseSVM
from maxmargin.model_selection import Grid, SVMSearchCV
from report import write

# A limit of time that is never reached keeps SVC and SVR from the engine of the search.
_OWN_FIT = 1e9


@contextmanager
def counted() -> Iterator[dict[str, int]]:
    """Steps, fits and warm starts of all fits inside."""
    total = {"steps": 0, "fits": 0, "warm": 0}
    solve = BaseSVM._solve

    def counting(self: Any, *args: Any, **options: Any) -> Any:
        machines = args[3]
        solutions, lengths = solve(self, *args, **options)
        total["steps"] += sum(solution.n_iter for solution in solutions.values())
        total["fits"] += 1
        total["warm"] += any(machine.warm is not None for machine in machines)
        return solutions, lengths

    BaseSVM._solve = counting  # type: ignore[method-assign]
    try:
        yield total
    finally:
        BaseSVM._solve = solve  # type: ignore[method-assign]


def mean_value(estimator: Any, X: Any, y: Any = None) -> float:
    """A score that any estimator has: it does not matter here."""
    return float(np.mean(estimator.predict(X)))


def steps(estimator: Any, grid: dict[str, list[float]], X: Any, y: Any, path: Any, cv: Any) -> dict[str, int]:
    """The steps that a search takes."""
    with counted() as total, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        SVMSearchCV(
            estimator, grid, scoring=mean_value, refit=False, n_jobs=1, cv=cv, path=path, error_score="raise"
        ).fit(X, y)
    return dict(total)


def along(grid: dict[str, list[float]], axis: str, by: int) -> list[int]:
    """Parents of walks along one parameter, at fixed values of the others."""
    nodes = Grid(grid)
    assert list(ParameterGrid(grid)) == [nodes[k] for k in range(len(nodes))]
    before = (nodes.step(k, axis, -by) for k in range(len(nodes)))
    return [-1 if parent is None else parent for parent in before]


def widths(X: Any, count: int, spread: float) -> list[float]:
    """Values of gamma around the reciprocal of the median squared distance."""
    some = X[np.random.default_rng(0).permutation(len(X))[:500]]
    middle = float(np.median(euclidean_distances(some, squared=True)))
    return list(np.geomspace(1 / spread, spread, count) / middle)


def searches(quick: bool) -> Iterator[tuple[str, Any, str, list[float], str, Any, Any]]:
    """Name, estimator, parameter, its values, data set, rows and labels."""
    count, n = (4, 150) if quick else (10, 1000)
    if quick:
        two = {"synthetic": synthetic(n, 8, seed=1)[:2]}
        many = {"digits": load("digits", n)[:2]}
    else:
        two = {}
        for name in ("german", "banana"):
            X, y = whole(f"raetsch_{name}")
            rows = np.random.default_rng(0).permutation(len(y))[:n]
            two[name] = (X[rows], y[rows])
        many = {"digits": load("digits", n // 2)[:2]}
        for name in ("satimage", "shuttle", "letter"):
            data = load(name, n)
            counts = np.bincount(np.unique(data.y, return_inverse=True)[1])
            frequent = counts[np.unique(data.y, return_inverse=True)[1]] >= 9
            many[name] = (StandardScaler().fit_transform(data.X)[frequent], data.y[frequent])
    Cs, nus = list(np.geomspace(0.01, 1000, count)), list(np.geomspace(0.02, 0.4, count))
    for name, (X, y) in two.items():
        yield "SVC, hinge", SVC(max_time=_OWN_FIT), "C", Cs, name, X, y
        yield "NuSVC", NuSVC(), "nu", nus, name, X, y
        yield "OneClassSVM", OneClassSVM(), "nu", nus, name, X, y
        yield "L2OneClassSVM", L2OneClassSVM(), "C", Cs, name, X, y
    for name, (X, y) in many.items():
        least = 1.6 / np.unique(y, return_counts=True)[1].min()
        if name == "digits":
            yield "CrammerSingerSVC", CrammerSingerSVC(), "C", Cs, name, X, y
        yield "AllDistancesSVC", AllDistancesSVC(), "nu", nus, name, X, y
        yield "AllDistancesSVC", AllDistancesSVC(), "mu", list(np.geomspace(least, 0.9, count)), name, X, y
    X, y = friedman1(150 if quick else 800)[:2]
    count = 4 if quick else 8
    Cs, shares = list(np.geomspace(0.1, 100, count)), list(np.geomspace(0.1, 0.8, count))
    yield "SVR", SVR(max_time=_OWN_FIT), "C", Cs, "friedman1", X, y
    yield "SVR", SVR(max_time=_OWN_FIT), "epsilon", list(np.geomspace(0.01, 0.5, count)), "friedman1", X, y
    yield "NuSVR", NuSVR(), "nu", shares, "friedman1", X, y
    yield "NuSVR", NuSVR(), "C", Cs, "friedman1", X, y


def one_class_grids(quick: bool) -> Iterator[dict[str, Any]]:
    """The paper's grid (C in [1, 1e5], sigma in [0.1, 5], rows of class +1) through the public search."""
    size = 5 if quick else 20
    sigma = np.geomspace(0.1, 5.0, size)
    grid = {"C": list(np.geomspace(1.0, 1e5, size)), "gamma": list(1.0 / (2.0 * sigma**2))}
    for name in ("breast_cancer",) if quick else ("banana", "german", "heart", "thyroid"):
        X, y = whole(name if quick else f"raetsch_{name}")
        X = X[np.random.default_rng(0).permutation(np.flatnonzero(y == 1))[:200]]
        split = [(np.arange(len(X)), np.arange(min(5, len(X))))]
        for solver, tol in (("auto", 1e-3), ("maxminover", 1e-2)):
            machine = L2OneClassSVM(solver=solver, tol=tol, max_iter=1_000_000)
            found = {p: steps(machine, grid, X, None, p, split)["steps"] for p in ("cold", "down", "auto")}
            yield {
                "machine": f"L2OneClassSVM, {solver}", "parameter": f"C x gamma, {size} x {size}",
                "set": name, "cold steps": found["cold"], "up": "", "down": found["down"] / found["cold"],
                "auto": found["auto"] / found["cold"],
            }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--quick", action="store_true", help="use bundled and synthetic data and smaller grids"
    )
    parser.add_argument("--out", default="paths", help="name of the result files in benchmarks/results")
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    try:
        for machine, estimator, axis, values, name, X, y in searches(args.quick):
            grid = {axis: values, "gamma": widths(X, 3, 4.0)}
            ways = {"cold": "cold", "up": along(grid, axis, 1), "down": along(grid, axis, -1), "auto": "auto"}
            found = {way: steps(estimator, grid, X, y, path, 3) for way, path in ways.items()}
            cold = found["cold"]["steps"]
            row = {"machine": machine, "parameter": axis, "set": name, "cold steps": cold}
            rows.append({**row, **{way: found[way]["steps"] / cold for way in ("up", "down", "auto")}})
            print(rows[-1], flush=True)
        for row in one_class_grids(args.quick):
            rows.append(row)
            print(row, flush=True)
    except MissingData as missing:
        sys.exit(str(missing))
    shown = [
        {key: f"{value:.3f}" if isinstance(value, float) else value for key, value in row.items()}
        for row in rows
    ]
    title = "Steps along the paths of a search, of those of cold trainings"
    write(args.out, title, shown, raw=rows, threads=1, repetitions="1 (steps, not seconds)")


if __name__ == "__main__":
    main()
