"""Model selection: a grid of 10 x 10, 5 folds; GridSearchCV and SVMSearchCV in one run.

    python benchmarks/selection.py               # eight sets; some need MAXMARGIN_DATA
    python benchmarks/selection.py --quick       # bundled and synthetic data, a small grid

The wide grid (C from 0.01 to 10,000; for the regression of Friedman's first problem C from 0.1 to 1,000) with
the same folds for all: GridSearchCV with scikit-learn's estimator, with that of scikit-learn-intelex, and
SVMSearchCV; no refit. All searches of a set run equally often (--repeat on sets of up to 1,500 rows, 500 for
the regression; once on larger ones), each after memory was touched, and the fastest run counts. scikit-learn
and ours are timed with two workers and with one, intelex with two.

The scores of all nodes are compared with those of scikit-learn. On the larger sets the searches with intelex,
and those of scikit-learn with one worker, are timed on every fourth node and multiplied by four; such figures
have a ~. "Test error" is that of the model refitted with the parameters that ours chose (for the regression
1 - R2).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

sys.path.insert(0, str(Path(__file__).parent))
from datasets import Data, MissingData, friedman1, load, synthetic, whole
from maxmargin import SVC, SVR
from maxmargin.model_selection import SVMSearchCV
from peers import touch_memory
from report import RESULTS, geometric_mean, write

WORKERS = 2
# Rows above which every search runs once, and slow ones are timed on a part of the nodes.
SAMPLED, SAMPLED_SVR = 1500, 500
# Rows from which on a search needs so much memory that it is touched before.
TOUCHED_FROM = 600


def _split(X: Any, y: Any, n: int, n_test: int) -> Data:
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:n], order[n : n + n_test]
    scaler = StandardScaler().fit(X[train])
    return Data(scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test])


def _covtype(n: int) -> Data:
    data = load("covtype_binary_50k")
    X = np.asarray(data.X.todense()) if hasattr(data.X, "todense") else data.X
    order = np.random.default_rng(0).permutation(len(X))
    rest = order[n : n + 5000]
    return Data(X[order[:n]], data.y[order[:n]], X[rest], data.y[rest])


SETS: dict[str, Callable[[], Data]] = {
    "german": lambda: _split(*whole("raetsch_german"), 800, 200),
    "covtype 1,000": lambda: _covtype(1000),
    "synthetic 1,000 x 8": lambda: synthetic(1000, 8, seed=1),
    "synthetic 2,000 x 20": lambda: synthetic(2000, 20),
    "svmguide1": lambda: load("svmguide1"),
    "banana": lambda: _split(*whole("raetsch_banana"), 4300, 1000),
    "covtype 5,000": lambda: _covtype(5000),
    "friedman1 1,000": lambda: friedman1(1000),
}
QUICK: dict[str, Callable[[], Data]] = {
    "breast_cancer": lambda: load("breast_cancer"),
    "synthetic 300 x 8": lambda: synthetic(300, 8, seed=1),
    "friedman1 200": lambda: friedman1(200),
}


def wide_grid(X: Any, size: int) -> dict[str, list[float]]:
    """C up to 10,000; widths around the median distance."""
    some = X[np.random.default_rng(0).permutation(len(X))[:500]]
    middle = float(np.median(euclidean_distances(some, squared=True)))
    gammas = np.logspace(-2, 2, size) / middle
    return {"C": list(np.logspace(-2, 4, size)), "gamma": list(gammas)}


def regression_grid(size: int) -> dict[str, list[float]]:
    """C and gamma for standardised features and targets."""
    return {"C": list(np.logspace(-1, 3, size)), "gamma": list(np.logspace(-3, 0, size))}


def part_of(grid: dict[str, list[float]]) -> list[dict[str, list[float]]]:
    """Every fourth node, spread evenly: every second C for every second width, alternately."""
    Cs, gammas = grid["C"], grid["gamma"]
    return [{"C": Cs[(k // 2) % 2 :: 2], "gamma": [gammas[k]]} for k in range(0, len(gammas), 2)]


def timed(search: Any, data: Data, repeat: int) -> tuple[float, Any]:
    """The quickest of some searches."""
    best = np.inf
    for _ in range(repeat):
        if len(data.y) > TOUCHED_FROM:
            touch_memory()
        began = time.perf_counter()
        search.fit(data.X, data.y)
        best = min(best, time.perf_counter() - began)
    return best, search


def node_scores(search: Any) -> dict[tuple[float, float], float]:
    """The mean score of every node."""
    nodes, scores = search.cv_results_["params"], search.cv_results_["mean_test_score"]
    return {(p["C"], p["gamma"]): float(s) for p, s in zip(nodes, scores, strict=True)}


def compared(ours: Any, theirs: Any) -> dict[str, Any]:
    """How the scores of all nodes differ."""
    a, b = node_scores(ours), node_scores(theirs)
    assert a.keys() == b.keys()
    differences = np.array([abs(a[node] - b[node]) for node in a])
    best = max(b.values())
    return {
        "nodes compared": len(a),
        "nodes that differ": int(np.sum(differences > 1e-6)),
        "largest difference of a score": float(differences.max()),
        "their score at our best node, below their best": best - b[max(a, key=lambda node: a[node])],
    }


def one(name: str, data: Data, size: int, intelex: bool, repeat: int) -> dict[str, Any]:
    """All searches on one set."""
    import sklearn.svm

    regression = name.startswith("friedman1")
    kind = "SVR" if regression else "SVC"
    folds: Any = (KFold if regression else StratifiedKFold)(5, shuffle=True, random_state=0)
    grid = regression_grid(size) if regression else wide_grid(data.X, size)
    large = len(data.y) > (SAMPLED_SVR if regression else SAMPLED)
    runs = 1 if large else repeat
    row: dict[str, Any] = {"set": name, "rows": len(data.y), "machine": kind, "runs": runs, "sampled": large}

    def of_grid(machine: Any, workers: int, part: bool) -> tuple[float, Any]:
        nodes = part_of(grid) if part else grid
        search = GridSearchCV(machine(), nodes, cv=folds, n_jobs=workers, refit=False)
        seconds, search = timed(search, data, runs)
        return seconds * size**2 / len(search.cv_results_["params"]), search

    mine = SVR if regression else SVC
    for workers, key in ((WORKERS, "ours"), (1, "ours, 1 worker")):
        search = SVMSearchCV(mine(), grid, cv=folds, n_jobs=workers, refit=False)
        row[key], search = timed(search, data, runs)
    best = mine(**search.best_params_).fit(data.X, data.y)
    row["test error"] = 1.0 - float(best.score(data.X_test, data.y_test))
    theirs = getattr(sklearn.svm, kind)
    row["scikit-learn"], check = of_grid(theirs, WORKERS, False)
    row["scikit-learn, 1 worker"], _ = of_grid(theirs, 1, large)
    if intelex:
        import sklearnex.svm

        row["intelex"], _ = of_grid(getattr(sklearnex.svm, kind), WORKERS, large)
    row |= compared(search, check)
    print(row, flush=True)
    return row


def warm_up(intelex: bool) -> None:
    """Compile, and start the worker processes of GridSearchCV with their libraries."""
    import sklearn.svm

    small, numbers = synthetic(200, 8), friedman1(200)
    grid = {"C": [1.0, 10.0], "gamma": [0.1, 1.0]}
    for workers in (1, WORKERS):
        SVMSearchCV(SVC(), grid, n_jobs=workers).fit(small.X, small.y)
        SVMSearchCV(SVR(), grid, n_jobs=workers).fit(numbers.X, numbers.y)
    machines: list[Any] = [sklearn.svm.SVC]
    if intelex:
        import sklearnex.svm

        machines.append(sklearnex.svm.SVC)
    for machine in machines:
        GridSearchCV(machine(), grid, n_jobs=WORKERS).fit(small.X, small.y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--quick", action="store_true", help="use bundled and synthetic data and a small grid"
    )
    parser.add_argument(
        "--only", nargs="*", help="run these sets, keep the results of the others from an earlier run"
    )
    parser.add_argument("--no-intelex", action="store_true", help="do not run scikit-learn-intelex")
    parser.add_argument(
        "--repeat", type=int, default=2, help="number of runs of every search on the smaller sets"
    )
    parser.add_argument("--out", default="selection", help="name of the result files in benchmarks/results")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    sets = QUICK if args.quick else {k: v for k, v in SETS.items() if not args.only or k in args.only}
    try:
        import sklearnex  # noqa: F401

        intelex = not args.no_intelex
    except ImportError:
        intelex = False
    warm_up(intelex)
    path = RESULTS / f"{args.out}.json"
    rows = json.loads(path.read_text())["rows"] if args.only and path.exists() else []
    keep = bool(rows)
    rows = [r for r in rows if r["set"] not in sets]
    for name, fetch in sets.items():
        try:
            rows.append(one(name, fetch(), 4 if args.quick else 10, intelex, args.repeat))
        except MissingData as missing:
            sys.exit(str(missing))
    rows.sort(key=lambda r: list({**SETS, **QUICK}).index(r["set"]))
    how = f"best of {args.repeat} for all searches of a small set, 1 for all of a larger set (column runs)"
    notes = summary(rows)
    table = [_shown(r) for r in rows]
    write(args.out, "Model selection", table, notes, rows, threads="2 and 1", repetitions=how, keep=keep)


def summary(rows: list[dict[str, Any]]) -> list[str]:
    """The geometric means, for classification and for regression."""
    notes = []
    for kind in ("SVC", "SVR"):
        some = [r for r in rows if r["machine"] == kind]
        for rival, ours, how in (
            ("scikit-learn", "ours", "2 workers each"),
            ("scikit-learn, 1 worker", "ours, 1 worker", "1 worker each"),
            ("intelex", "ours", "2 workers each"),
        ):
            ratios = [r[rival] / r[ours] for r in some if rival in r]
            if ratios:
                notes.append(
                    f"{kind}, {rival.split(',')[0]} / ours, {how}, geometric mean of {len(ratios)}: "
                    f"{geometric_mean(ratios):.0f} (least {min(ratios):.0f})"
                )
    worst = max(rows, key=lambda r: r["largest difference of a score"])
    differing, nodes = (sum(r[k] for r in rows) for k in ("nodes that differ", "nodes compared"))
    notes.append(
        f"Scores compared with scikit-learn's: {nodes} nodes, {differing} differ; the largest difference is "
        f"{worst['largest difference of a score']:.4f} ({worst['set']})"
    )
    return notes


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    tilde = "~" if row["sampled"] else ""
    intelex = "intelex" in row
    return {
        "set": row["set"],
        "rows": row["rows"],
        "machine": row["machine"],
        "runs": row["runs"],
        "ours (s)": f"{row['ours']:.3g}",
        "scikit-learn (s)": f"{row['scikit-learn']:.3g}",
        "scikit-learn / ours": f"{row['scikit-learn'] / row['ours']:.0f}",
        "intelex (s)": f"{tilde}{row['intelex']:.3g}" if intelex else "",
        "intelex / ours": f"{row['intelex'] / row['ours']:.0f}" if intelex else "",
        "1 worker: ours (s)": f"{row['ours, 1 worker']:.3g}",
        "scikit-learn, 1 worker (s)": f"{tilde}{row['scikit-learn, 1 worker']:.3g}",
        "ratio, 1 worker": f"{row['scikit-learn, 1 worker'] / row['ours, 1 worker']:.0f}",
        "test error": f"{row['test error']:.3f}",
        "nodes that differ": f"{row['nodes that differ']} of {row['nodes compared']}",
        "largest difference of a score": f"{row['largest difference of a score']:.4f}",
    }


if __name__ == "__main__":
    main()
