"""Seconds of a search over 10 widths x 10 C x 5 folds with the engine of C paths, on one thread.

python benchmarks/c_paths.py [--data FOLDER] [--reference MODULE.py] [--sets NAME ...]

FOLDER holds `load.py` with ``load(name)``. A reference module offers
``search(X, y, gammas, Cs, folds) -> {"err": array, "time": seconds}``; it is run on the same sets, in turn.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import importlib.util
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedKFold

from maxmargin.model_selection.c_path import kernel_of_width, solve_folds, squared_distances

Floats = NDArray[np.float64]


def module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = found  # compiled functions from the disk cache look for it there
    spec.loader.exec_module(found)
    return found


def problems(data: Path | None) -> dict[str, tuple[Floats, Floats]]:
    X, y = make_classification(
        2000, 20, n_informative=10, n_redundant=5, flip_y=0.05, class_sep=0.8, random_state=0
    )
    sets = {"synthetic": (standardised(X), 2.0 * y - 1)}
    if data is None:
        return sets
    load = module(data / "load.py").load

    def some(name: str, rows: int | None, scale: bool) -> tuple[Floats, Floats]:
        d = load(name)
        X, y = (d["X"], d["y"]) if "X" in d else (d["X_train"], d["y_train"])
        if rows is not None:
            pick = np.random.default_rng(0).permutation(len(X))[:rows]
            X, y = X[pick], y[pick]
        X = X.toarray() if hasattr(X, "toarray") else X
        return standardised(X) if scale else np.ascontiguousarray(X), np.where(y == y.max(), 1.0, -1.0)

    sets["german"] = some("raetsch_german", 800, True)
    sets["covtype 1,000"] = some("covtype_binary_50k", 1000, False)
    sets["svmguide1"] = some("svmguide1", None, True)
    sets["covtype 5,000"] = some("covtype_binary_50k", 5000, False)
    sets["banana"] = some("raetsch_banana", None, True)
    return sets


def standardised(X: Floats) -> Floats:
    deviation = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)


def grids(X: Floats) -> dict[str, tuple[Floats, Floats]]:
    scale = 1 / (X.shape[1] * X.var())
    return {
        "wide": (np.logspace(-2, 2, 10) * scale, np.logspace(-2, 4, 10)),
        "narrow": (np.logspace(-1, 1.5, 10) * scale, np.geomspace(0.05, 500, 10)),
    }


def search(X: Floats, y: Floats, gammas: Floats, Cs: Floats, folds: list[Any]) -> dict[str, Any]:
    begin = time.process_time()
    distances = squared_distances(X)
    K = np.empty_like(distances)
    trains = np.zeros((len(folds), len(y)), np.bool_)
    for mask, (train, _) in zip(trains, folds, strict=True):
        mask[train] = True
    errors = np.zeros((len(gammas), len(Cs)))
    warm, solved = None, True
    for g, gamma in enumerate(gammas):
        kernel_of_width(distances, gamma, K)
        paths = solve_folds(K, y, trains, Cs, warm=warm)
        warm = paths[0].u[0]
        for train, path in zip(trains, paths, strict=True):
            errors[g] += np.count_nonzero(path.decision[:, ~train] * y[~train] <= 0, axis=1)
            solved &= bool(path.solved.all())
    return {"err": errors / len(y), "time": time.process_time() - begin, "solved": solved}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--reference", type=Path)
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    reference = module(args.reference) if args.reference else None
    candidates = [search, reference.search] if reference else [search]
    print(f"{'set':15} {'grid':7} {'seconds':>8} {'reference':>10} {'least error':>24}")
    first = True
    for name, (X, y) in problems(args.data).items():
        if args.sets and name not in args.sets:
            continue
        folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
        for grid, (gammas, Cs) in grids(X).items():
            if first:  # compile
                for one in candidates:
                    one(X, y, gammas[:2], Cs[:3], folds)
                first = False
            runs = [[one(X, y, gammas, Cs, folds) for one in candidates] for _ in range(args.repeats)]
            best = [min(of, key=lambda run: run["time"]) for of in zip(*runs, strict=True)]
            seconds = [f"{r['time']:.2f}" for r in best] + [""]
            errors = " ".join(f"{r['err'].min():.4f}" for r in best)
            solved = "" if best[0]["solved"] else "  not all solved"
            print(f"{name:15} {grid:7} {seconds[0]:>8} {seconds[1]:>10} {errors:>24}{solved}", flush=True)


if __name__ == "__main__":
    main()
