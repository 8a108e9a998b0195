"""Tuned models: `SVCCV` and `SVRCV` beside exhaustive searches with scikit-learn.

    python benchmarks/tuner.py --quick           # bundled data, a small grid
    python benchmarks/tuner.py                   # all sets; most need MAXMARGIN_DATA
    python benchmarks/tuner.py --only letter     # the other sets are kept from an earlier run

GridSearchCV with scikit-learn's SVC: standardised features, 10 values of C (0.01 to 10,000), 10 widths (gamma
from 0.01 to 100 divided by the median squared distance), 5 folds, refit on all rows. Regression: C from 0.1
to 1,000, gamma from 0.01 to 10 divided by the median, epsilon 0.01, 0.1 and 0.3, targets standardised. SVCCV
and SVRCV have their defaults, which include probabilities. All get the same training rows; times are those of
`fit`, the final model included. Test errors are those of held-out rows, paired by split (1 - R2 for a
regression).

On the first split GridSearchCV runs with one worker and with two, once each, and so does ours, the best of
three. On the other splits only errors are compared, and the exhaustive search is SVMSearchCV, whose scores
are those of GridSearchCV.

Sets that are hard to tune, with more features than rows or with rare classes, are compared by their errors
alone (one minus the balanced accuracy for rare classes).

On sets of 20,000 rows and more an exhaustive search would take days: there only ours runs, once, with two
threads, and its seconds are reported without a rival.
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
import sklearn.svm
from sklearn.datasets import make_classification
from sklearn.metrics import get_scorer
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

sys.path.insert(0, str(Path(__file__).parent))
from datasets import MissingData, california_like, load, partitions
from maxmargin import SVC, SVCCV, SVR, SVRCV
from maxmargin.model_selection import SVMSearchCV
from peers import touch_memory
from report import RESULTS, geometric_mean, write

Split = tuple[Any, Any, Any, Any]
RAETSCH = (
    "banana", "breast-cancer", "diabetis", "flare-solar", "german", "heart", "image", "ringnorm", "splice",
    "thyroid", "titanic", "twonorm", "waveform",
)  # fmt: skip


def parts(X: Any, y: Any, n: int, count: int, stratified: bool = True) -> list[Split]:
    """Random splits with `n` training rows."""
    X = X.toarray() if hasattr(X, "toarray") else X
    found = []
    for seed in range(count):
        a, b, c, d = train_test_split(
            X, y, train_size=n, random_state=seed, stratify=y if stratified else None
        )
        found.append((a, c, b, d))
    return found


def pooled(name: str) -> tuple[Any, Any]:
    """Training and test rows of a data set together."""
    data = load(name)
    X = [part.toarray() if hasattr(part, "toarray") else part for part in (data.X, data.X_test)]
    return np.vstack(X), np.concatenate([data.y, data.y_test])


def given(name: str) -> Split:
    """The split that a data set comes with."""
    data = load(name)
    return data.X, data.y, data.X_test, data.y_test


def bundled(name: str) -> tuple[Any, Any]:
    import sklearn.datasets

    return getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)


def regression(make: Callable[[int], Any], n: int) -> Callable[[int], list[Split]]:
    """Splits of generated regression data, or of bundled data."""

    def splits(count: int) -> list[Split]:
        X, y = make(n)
        y = (y - y.mean()) / y.std()
        return parts(X, y, min(n, 2 * len(y) // 3), count, stratified=False)

    return splits


def friedman(number: int) -> Callable[[int], Any]:
    import sklearn.datasets

    make = getattr(sklearn.datasets, f"make_friedman{number}")
    return lambda n: make(n + 2000, noise=1.0 if number == 1 else 0.1, random_state=0)


def california(n: int) -> Any:
    data = california_like(n + 2000)
    return np.vstack([data.X, data.X_test]), np.concatenate([data.y, data.y_test])


SETS: dict[str, Callable[[int], list[Split]]] = {
    **{name: (lambda k, name=name: partitions(f"raetsch_{name}", k)) for name in RAETSCH},  # type: ignore[misc]
    "svmguide1": lambda k: parts(*pooled("svmguide1"), 3089, min(k, 3)),
    "satimage": lambda k: parts(*pooled("satimage"), 1500, min(k, 3)),
    "letter": lambda k: parts(*pooled("letter"), 1500, min(k, 3)),
    "a1a": lambda k: parts(*pooled("a1a"), 1605, min(k, 3)),
    "digits": lambda k: parts(*bundled("digits"), 1000, min(k, 3)),
    "breast_cancer": lambda k: parts(*bundled("breast_cancer"), 400, min(k, 3)),
}
REGRESSION: dict[str, Callable[[int], list[Split]]] = {
    "diabetes": regression(lambda n: bundled("diabetes"), 300),
    "friedman1": regression(friedman(1), 600),
    "friedman2": regression(friedman(2), 600),
    "friedman3": regression(friedman(3), 600),
    "california-like": regression(california, 1000),
}
LARGE: dict[str, Callable[[], Split]] = {
    "a9a": lambda: given("a9a"),
    "ijcnn1": lambda: given("ijcnn1"),
    "covtype 40,000": lambda: parts(*load("covtype_binary_50k")[:2], 40_000, 1)[0],
}


def wide(informative: int) -> Callable[[int], Split]:
    """80 rows with 2,000 features."""

    def split(seed: int) -> Split:
        X, y = make_classification(
            2080, 2000, n_informative=informative, n_redundant=0, class_sep=3.0, flip_y=0.05,
            random_state=seed,
        )  # fmt: skip
        return X[:80], y[:80], X[80:], y[80:]

    return split


def rare(n: int, share: float) -> Callable[[int], Split]:
    """Two classes, of which the second has few rows."""

    def split(seed: int) -> Split:
        X, y = make_classification(
            n + 4000, 10, n_informative=6, weights=[1.0 - share], flip_y=0.02, class_sep=0.8,
            n_clusters_per_class=3, random_state=seed,
        )  # fmt: skip
        return X[:n], y[:n], X[n:], y[n:]

    return split


#: Splits by number, the score, and the weights of classes.
HARD: dict[str, tuple[Callable[[int], Split], str, str | None]] = {
    "wide, 15 informative features": (wide(15), "accuracy", None),
    "wide, 100 informative features": (wide(100), "accuracy", None),
    "rare class, 5 %": (rare(800, 0.05), "balanced_accuracy", None),
    "rare class, 5 %, balanced": (rare(800, 0.05), "balanced_accuracy", "balanced"),
    "rare class, 2 %, balanced": (rare(1000, 0.02), "balanced_accuracy", "balanced"),
}
QUICK = {"breast_cancer": SETS["breast_cancer"], "diabetes": REGRESSION["diabetes"]}


def grid_of(X: Any, numeric: bool, size: int) -> dict[str, list[float]]:
    """The exhaustive grid for standardised rows."""
    some = X[np.random.default_rng(0).permutation(len(X))[:500]]
    middle = float(np.median(euclidean_distances(some, squared=True)))
    if not numeric:
        gammas = np.logspace(-2, 2, size) / middle
        return {"C": np.logspace(-2, 4, size).tolist(), "gamma": gammas.tolist()}
    gammas = np.logspace(-2, 1, size) / middle
    return {"C": np.logspace(-1, 3, size).tolist(), "gamma": gammas.tolist(), "epsilon": [0.01, 0.1, 0.3]}


def exhaustive(X: Any, y: Any, numeric: bool, size: int, workers: int | None) -> tuple[Any, Any, float]:
    """Scaler, search and seconds of GridSearchCV; of SVMSearchCV where `workers` is None."""
    scaler = StandardScaler().fit(X)
    rows = scaler.transform(X)
    grid = grid_of(rows, numeric, size)
    folds: Any = (KFold if numeric else StratifiedKFold)(5, shuffle=True, random_state=0)
    if workers is None:
        ours = SVR() if numeric else SVC()
        return scaler, SVMSearchCV(ours, grid, cv=folds).fit(rows, y), np.nan
    theirs = sklearn.svm.SVR() if numeric else sklearn.svm.SVC()
    touch_memory(len(rows))
    began = time.perf_counter()
    search = GridSearchCV(theirs, grid, cv=folds, n_jobs=workers).fit(rows, y)
    return scaler, search, time.perf_counter() - began


def tuned(X: Any, y: Any, numeric: bool, threads: int, repeat: int) -> tuple[Any, float]:
    """The tuned model and the seconds of the fastest fit."""
    best, model = np.inf, None
    touch_memory(len(X))  # once: it empties the processor's caches too
    for _ in range(repeat):
        began = time.perf_counter()
        model = (SVRCV if numeric else SVCCV)(n_jobs=threads).fit(X, y)
        best = min(best, time.perf_counter() - began)
    return model, best


def run(name: str, splits: list[Split], numeric: bool, size: int, threads: int) -> dict[str, Any]:
    """All figures of a data set."""
    found: dict[str, Any] = {"set": name, "rows": len(splits[0][1]), "kind": "SVR" if numeric else "SVC"}
    found["classes"] = None if numeric else len(np.unique(splits[0][1]))
    errors = []
    for k, (X, y, X_test, y_test) in enumerate(splits):
        if k == 0:
            tuned(X, y, numeric, 1, 1)  # loads compiled code
            scaler, search, found["grid_s"] = exhaustive(X, y, numeric, size, 1)
            model, found["ours_s"] = tuned(X, y, numeric, 1, 3)
            found["nodes"] = len(model.path_)
            if threads > 1:
                found["grid_s_2"] = exhaustive(X, y, numeric, size, threads)[2]
                tuned(X, y, numeric, threads, 1)
                found["ours_s_2"] = tuned(X, y, numeric, threads, 3)[1]
        else:
            scaler, search, _ = exhaustive(X, y, numeric, size, None)
            model = tuned(X, y, numeric, 1, 1)[0]
        reference = 1.0 - search.best_estimator_.score(scaler.transform(X_test), y_test)
        errors.append((float(reference), 1.0 - float(model.score(X_test, y_test))))
    found["errors"] = errors
    return found


def run_hard(name: str, count: int) -> dict[str, Any]:
    """Errors of an exhaustive search and of ours."""
    make, scoring, weights = HARD[name]
    errors, scorer = [], get_scorer(scoring)
    for seed in range(count):
        X, y, X_test, y_test = make(seed)
        scaler = StandardScaler().fit(X)
        rows = scaler.transform(X)
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        model = SVC(class_weight=weights)
        search = SVMSearchCV(model, grid_of(rows, False, 10), cv=folds, scoring=scoring).fit(rows, y)
        ours = SVCCV(scoring=scoring, class_weight=weights).fit(X, y)
        found = scorer(search.best_estimator_, scaler.transform(X_test), y_test), scorer(ours, X_test, y_test)
        errors.append([1.0 - float(score) for score in found])
    return {"set": name, "rows": len(y), "kind": "hard", "classes": 2, "errors": errors}


def run_large(name: str, split: Split, threads: int) -> dict[str, Any]:
    """Seconds and error of ours alone."""
    X, y, X_test, y_test = split
    began = time.perf_counter()
    model = SVCCV(n_jobs=threads).fit(X, y)
    seconds = time.perf_counter() - began
    return {
        "set": name, "rows": X.shape[0], "kind": "large", "classes": len(model.classes_), "seconds": seconds,
        "tuning_s": model.tuning_time_, "refit_s": model.refit_time_, "rows of the last stage": model.n_rows_,
        "nodes": len(model.path_), "error": 1.0 - float(model.score(X_test, y_test)),
    }  # fmt: skip


def summary(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """The table and the means."""
    table, notes = [], []
    for r in (r for r in rows if r["kind"] in ("SVC", "SVR")):
        errors = np.array(r["errors"])
        line = {
            "set": r["set"], "rows": r["rows"], "classes": r["classes"] or "regression",
            "GridSearchCV s": f"{r['grid_s']:.3g}", "ours ms": f"{1e3 * r['ours_s']:.3g}",
            "x GridSearchCV": f"{r['grid_s'] / r['ours_s']:.0f}",
        }  # fmt: skip
        if "ours_s_2" in r:
            line["x, 2 threads each"] = f"{r['grid_s_2'] / r['ours_s_2']:.0f}"
        line |= {
            "nodes": r["nodes"], "splits": len(errors), "error, exhaustive": f"{errors[:, 0].mean():.4f}",
            "error, ours": f"{errors[:, 1].mean():.4f}",
        }  # fmt: skip
        table.append(line)
    for kind in ("SVC", "SVR"):
        some = [r for r in rows if r["kind"] == kind]
        if not some:
            continue
        ratios = [r["grid_s"] / r["ours_s"] for r in some]
        two = [r["grid_s_2"] / r["ours_s_2"] for r in some if "ours_s_2" in r]
        of_two = [r["grid_s"] / r["ours_s"] for r in some if r["classes"] == 2]
        note = f"{kind}: GridSearchCV / ours, 1 thread each, geometric mean of {len(ratios)}: "
        note += f"{geometric_mean(ratios):.0f} (least {min(ratios):.0f}"
        note += f", least of two classes {min(of_two):.0f})" if of_two else ")"
        notes.append(note)
        if two:
            notes.append(
                f"{kind}: the same, 2 threads each: {geometric_mean(two):.0f} (least {min(two):.0f})"
            )
        pairs = np.array([pair for r in some for pair in r["errors"]])
        points = 100.0 * (pairs[:, 1] - pairs[:, 0])
        notes.append(
            f"{kind}: test error, ours less exhaustive, {len(points)} splits: {points.mean():+.2f} +- "
            f"{points.std() / np.sqrt(len(points)):.2f} points; better, equal, worse: "
            f"{(points < 0).sum()}, {(points == 0).sum()}, {(points > 0).sum()}"
        )
    for r in (r for r in rows if r["kind"] == "hard"):
        points = 100.0 * (np.array(r["errors"])[:, 1] - np.array(r["errors"])[:, 0])
        notes.append(
            f"{r['set']}, {len(points)} splits, error of ours less exhaustive: {points.mean():+.2f} +- "
            f"{points.std() / np.sqrt(len(points)):.2f} points (exhaustive "
            f"{100.0 * np.mean(r['errors'], axis=0)[0]:.1f})"
        )
    notes += [
        f"{r['set']}, {r['rows']:,} rows, ours alone, 2 threads: {r['tuning_s']:.1f} s for {r['nodes']} "
        f"combinations on up to {r['rows of the last stage']:,} rows, then {r['refit_s']:.1f} s for the "
        f"final fit; test error {r['error']:.4f}"
        for r in rows
        if r["kind"] == "large"
    ]
    return table, notes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="bundled data and a small grid")
    parser.add_argument("--only", nargs="*", help="run these sets; the others are kept from an earlier run")
    parser.add_argument("--splits", type=int, default=5, help="splits of a set")
    parser.add_argument("--threads", type=int, default=2, help="number of threads")
    parser.add_argument("--out", default=None, help="name of the result files in benchmarks/results")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    sets = QUICK if args.quick else {**SETS, **REGRESSION}
    rows: list[dict[str, Any]] = []
    for name, splits in sets.items():
        if args.only and name not in args.only:
            continue
        try:
            some = splits(1 if args.quick else args.splits)
        except MissingData as missing:
            print(missing, flush=True)
            continue
        rows.append(
            run(name, some, name in REGRESSION, 3 if args.quick else 10, 1 if args.quick else args.threads)
        )
        r = rows[-1]
        print(
            f"{name}: {r['grid_s']:.2f} s, ours {1e3 * r['ours_s']:.1f} ms, errors {r['errors']}", flush=True
        )
    for name in {} if args.quick else HARD:
        if not args.only or name in args.only:
            rows.append(run_hard(name, 4 * args.splits))
            print(rows[-1], flush=True)
    for name, split in ({} if args.quick else LARGE).items():
        if args.only and name not in args.only:
            continue
        try:
            rows.append(run_large(name, split(), args.threads))
        except MissingData as missing:
            print(missing, flush=True)
            continue
        print(rows[-1], flush=True)
    out = args.out or ("tuner-quick" if args.quick else "tuner")
    if args.only and (RESULTS / f"{out}.json").exists():
        earlier = json.loads((RESULTS / f"{out}.json").read_text())["rows"]
        new = {r["set"] for r in rows}
        rows = sorted(
            [r for r in earlier if r["set"] not in new] + rows,
            key=lambda r: [*sets, *HARD, *LARGE].index(r["set"]),
        )
    table, notes = summary(rows)
    how = "GridSearchCV once, ours the best of 3"
    write(out, "Tuner", table, notes, rows, threads="1 and 2", repetitions=how, keep=bool(args.only))


if __name__ == "__main__":
    main()
