"""Model selection: a grid of 10 x 10, 5 folds, 2 threads, rivals and ours in one run.

    python benchmarks/selection.py               # seven sets; some need MAXMARGIN_DATA
    python benchmarks/selection.py --quick       # bundled and synthetic data, a small grid

On the wide grid (C from 0.01 to 10,000): GridSearchCV with scikit-learn's SVC (n_jobs=2), with that of
scikit-learn-intelex, and SVMSearchCV, the same folds for all. liquidSVM, if it is installed, on its own
default grid with the better of one and two threads, and SVMSearchCV on that grid (gamma = 1 / sigma^2,
C = 1 / (2 lambda n)). liquidSVM's machine has no bias and stops at a clipped gap of 0.001 C n. On sets of
more than 1,500 rows the slow searches are timed on every fourth node and multiplied by four; such figures
have a ~.
"Test error" is that of the model that is refitted with the chosen parameters.
"""

from __future__ import annotations

import argparse
import sys
import sysconfig
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler

sys.path.insert(0, str(Path(__file__).parent))
from datasets import Data, MissingData, load, synthetic, whole
from maxmargin import SVC
from maxmargin.model_selection import SVMSearchCV
from report import geometric_mean, write

THREADS = 2
# Rows above which slow searches are timed on a part of the nodes.
SAMPLED = 1500


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
    "covtype 5,000": lambda: _covtype(5000),
    "banana": lambda: _split(*whole("raetsch_banana"), 4300, 1000),
}
QUICK: dict[str, Callable[[], Data]] = {
    "breast_cancer": lambda: load("breast_cancer"),
    "synthetic 300 x 8": lambda: synthetic(300, 8, seed=1),
}


def wide_grid(X: Any, size: int) -> dict[str, list[float]]:
    """C up to 10,000; widths around the median distance."""
    some = X[np.random.default_rng(0).permutation(len(X))[:500]]
    middle = float(np.median(euclidean_distances(some, squared=True)))
    gammas = np.logspace(-2, 2, size) / middle
    return {"C": list(np.logspace(-2, 4, size)), "gamma": list(gammas)}


def part_of(grid: dict[str, list[float]]) -> list[dict[str, list[float]]]:
    """Every fourth node, spread evenly: every second C for every second width, alternately."""
    Cs, gammas = grid["C"], grid["gamma"]
    return [{"C": Cs[(k // 2) % 2 :: 2], "gamma": [gammas[k]]} for k in range(0, len(gammas), 2)]


def timed(search: Any, data: Data, repeat: int) -> tuple[float, Any]:
    """The quickest of some searches."""
    best = np.inf
    for _ in range(repeat):
        began = time.perf_counter()
        search.fit(data.X, data.y)
        best = min(best, time.perf_counter() - began)
        if best > 20:
            break
    return best, search


def error(model: Any, data: Data) -> float:
    """The share of wrong predictions on the test rows."""
    return float(np.mean(model.predict(data.X_test) != data.y_test))


def slow(make: Callable[[], Any], grid: Any, folds: Any, data: Data, sampled: bool) -> float:
    """Seconds of GridSearchCV without its refit."""
    nodes = part_of(grid) if sampled else grid
    seconds, _ = timed(GridSearchCV(make(), nodes, cv=folds, n_jobs=THREADS, refit=False), data, 1)
    share = sum(len(p["C"]) * len(p["gamma"]) for p in nodes) / 100 if sampled else 1.0
    return seconds / share


def liquid(data: Data) -> dict[str, Any] | None:
    """liquidSVM's seconds, its error, and its grid; None if it is not there.

    In a process of its own: its threads go on spinning when it is done.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
        return other.submit(_liquid, data).result()


def _liquid(data: Data) -> dict[str, Any] | None:
    sysconfig.get_config_vars()["SO"] = ".so"  # it looks for its library by this name
    try:
        import liquidSVM
    except Exception:
        return None
    y = np.where(data.y == np.unique(data.y)[1], 1.0, -1.0)
    seconds, wrong, table = np.inf, np.nan, None
    for threads in (1, THREADS):
        for _ in range(2):
            began = time.perf_counter()
            model = liquidSVM.mcSVM(np.ascontiguousarray(data.X), y, threads=threads, folds=5, display=0)
            passed = time.perf_counter() - began
            if passed < seconds:
                seconds, table = passed, np.asarray(model.errTrain)
                truth = np.where(data.y_test == np.unique(data.y)[1], 1.0, -1.0)
                wrong = float(model.test(np.ascontiguousarray(data.X_test), truth)[1][0, 0])
            model.clean()
            if passed > 30:
                break
    assert table is not None
    n = len(y) * 4 / 5
    grid = {
        "gamma": sorted({float(s) ** -2 for s in table[:, 3]}),
        "C": sorted({1.0 / (2.0 * float(x) * n) for x in table[:, 5]}),
    }
    return {"seconds": seconds, "error": wrong, "grid": grid}


def one(name: str, data: Data, size: int, intelex: bool) -> dict[str, Any]:
    """All searches on one set."""
    from sklearn.svm import SVC as Libsvm

    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    grid = wide_grid(data.X, size)
    sampled = len(data.y) > SAMPLED and size == 10
    row: dict[str, Any] = {"set": name, "rows": len(data.y), "sampled": sampled}
    ours, search = timed(SVMSearchCV(SVC(), grid, cv=folds, n_jobs=THREADS, refit=False), data, 3)
    row["ours"] = ours
    row["ours error"] = error(SVC(**search.best_params_).fit(data.X, data.y), data)
    row["scikit-learn"] = slow(Libsvm, grid, folds, data, sampled)
    if intelex:
        from sklearnex.svm import SVC as Intel

        row["intelex"] = slow(Intel, grid, folds, data, sampled)
    rival = liquid(data)
    if rival is not None:
        row["liquidSVM"], row["liquidSVM error"] = rival["seconds"], rival["error"]
        nodes = f"{len(rival['grid']['gamma'])} x {len(rival['grid']['C'])}"
        seconds, own = timed(SVMSearchCV(SVC(), rival["grid"], cv=folds, n_jobs=THREADS), data, 3)
        row["ours, its grid"], row["its grid"] = seconds, nodes
        row["ours error, its grid"] = error(own.best_estimator_, data)
    check = GridSearchCV(Libsvm(), part_of(grid)[0], cv=folds, refit=False).fit(data.X, data.y)
    same = {(p["C"], p["gamma"]): s for p, s in zip(*_scores(search), strict=True)}
    row["largest difference of a score"] = max(
        abs(same[p["C"], p["gamma"]] - s) for p, s in zip(*_scores(check), strict=True)
    )
    print(row, flush=True)
    return row


def _scores(search: Any) -> tuple[Any, Any]:
    return search.cv_results_["params"], search.cv_results_["mean_test_score"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="bundled and synthetic data, a small grid")
    parser.add_argument("--only", nargs="*", help="some of the sets")
    parser.add_argument("--no-intelex", action="store_true", help="without scikit-learn-intelex")
    parser.add_argument("--out", default="selection", help="name of the result files")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    sets = QUICK if args.quick else {k: v for k, v in SETS.items() if not args.only or k in args.only}
    try:
        import sklearnex  # noqa: F401

        intelex = not args.no_intelex
    except ImportError:
        intelex = False
    # What is compiled on first use, apart.
    small = synthetic(200, 8)
    SVMSearchCV(SVC(), {"C": [1.0, 10.0], "gamma": [0.1, 1.0]}, n_jobs=THREADS).fit(small.X, small.y)
    rows = []
    for name, fetch in sets.items():
        try:
            rows.append(one(name, fetch(), 4 if args.quick else 10, intelex))
        except MissingData as missing:
            sys.exit(str(missing))
    notes = []
    for rival in ("scikit-learn", "intelex"):
        if all(rival in r for r in rows):
            notes.append(
                f"{rival} / ours, geometric mean: {geometric_mean([r[rival] / r['ours'] for r in rows]):.0f}"
            )
    if all("liquidSVM" in r for r in rows):
        for grid, key in (("the wide grid", "ours"), ("its own grid", "ours, its grid")):
            ratios = [r["liquidSVM"] / r[key] for r in rows]
            notes.append(
                f"liquidSVM on its grid / ours on {grid}: {geometric_mean(ratios):.1f} "
                f"(least {min(ratios):.2f})"
            )
    write(args.out, "Model selection", [_shown(r) for r in rows], notes, raw=rows)


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    tilde = "~" if row["sampled"] else ""
    out = {"set": row["set"], "rows": row["rows"], "ours, wide (s)": f"{row['ours']:.3g}"}
    for rival in ("scikit-learn", "intelex"):
        if rival in row:
            out[f"{rival} (s)"] = f"{tilde}{row[rival]:.3g}"
            out[f"{rival} / ours"] = f"{row[rival] / row['ours']:.0f}"
    if "liquidSVM" in row:
        out["liquidSVM, its grid (s)"] = f"{row['liquidSVM']:.3g}"
        out["ours, its grid (s)"] = f"{row['ours, its grid']:.3g}"
        out["liquidSVM / ours, its grid"] = f"{row['liquidSVM'] / row['ours, its grid']:.2f}"
        out["liquidSVM / ours, wide"] = f"{row['liquidSVM'] / row['ours']:.2f}"
    errors = [row.get(k) for k in ("ours error", "ours error, its grid", "liquidSVM error")]
    out["test error: ours wide / its grid / liquidSVM"] = " / ".join(
        "-" if e is None else f"{e:.3f}" for e in errors
    )
    out["largest difference of a score"] = f"{row['largest difference of a score']:.4f}"
    return out


if __name__ == "__main__":
    main()
