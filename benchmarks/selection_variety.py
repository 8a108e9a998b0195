"""Searches over pipelines and over many classes: GridSearchCV and SVMSearchCV in one run.

    python benchmarks/selection_variety.py               # all rows; satimage and letter need MAXMARGIN_DATA
    python benchmarks/selection_variety.py --quick       # bundled and generated data, reduced

Five folds, the same for both; no refit. The two pipelines have 3,000 generated rows and a grid of 4 x 4: C in
0.1, 1, 10, 100 and gamma in 0.001, 0.01, 0.1, 1. Their steps learn from the training rows, so that every fold
has rows and distances of its own:

- "ColumnTransformer": a pandas table with 8 skewed numbers, of which 5 % are missing, and 3 columns of texts
  (4, 7 and 12 different ones); medians for missing numbers and StandardScaler, OneHotEncoder for texts;
- "StandardScaler": 20 numbers on different scales.

digits (all 1,797 rows), satimage (all 4,435) and letter (the first 5,000) have the grid of selection.py with
6 values instead of 10: C from 0.01 to 10,000, and gamma from 0.01 to 100 over the median squared distance.

Both searches are timed with two workers and with one; all searches of a row run equally often (--repeat; once
on satimage and letter) and the fastest run counts. On satimage and letter the searches of scikit-learn with
one worker are timed on every fourth node and multiplied by four; such figures have a ~. The scores of all
nodes are compared with those of scikit-learn.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

sys.path.insert(0, str(Path(__file__).parent))
import selection
from datasets import Data, MissingData, load, synthetic
from maxmargin import SVC
from maxmargin.model_selection import SVMSearchCV
from report import RESULTS, geometric_mean, write

WORKERS = 2
PIPELINE_GRID = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.001, 0.01, 0.1, 1.0]}
CLASSES_GRID = 6


class Row(NamedTuple):
    """A row of the table: the data, the steps before the SVC, and whether a part of the nodes is timed."""

    data: Callable[[], Data]
    steps: Callable[[], list[tuple[str, Any]]] = list
    sampled: bool = False


def mixed_table(n: int, seed: int = 0) -> Data:
    """Two classes of rows with skewed numbers, some of them missing, and texts, as a pandas table."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n, 8))
    texts = [rng.integers(count, size=n) for count in (4, 7, 12)]
    effects = [rng.normal(size=count) for count in (4, 7, 12)]
    score = np.sin(2 * numbers[:, 0]) + numbers[:, 1] * numbers[:, 2] + 0.5 * numbers[:, 3]
    score += sum(effect[text] for effect, text in zip(effects, texts, strict=True))
    y = (score + 0.5 * rng.normal(size=n) > np.median(score)).astype(int)
    skewed = np.exp(0.6 * numbers) * 10.0 ** np.arange(-2, 6)
    skewed[rng.random(skewed.shape) < 0.05] = np.nan
    table = pd.DataFrame(skewed, columns=[f"number {k}" for k in range(8)])
    for k, text in enumerate(texts):
        table[f"text {k}"] = pd.Series([f"kind {value}" for value in text], dtype=object)
    return Data(table, y, table, y)


def columns() -> list[tuple[str, Any]]:
    """The steps before the SVC for a table of numbers and texts."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    texts = OneHotEncoder(handle_unknown="ignore")
    parts = [
        ("numbers", numbers, [f"number {k}" for k in range(8)]),
        ("texts", texts, [f"text {k}" for k in range(3)]),
    ]
    return [("columns", ColumnTransformer(parts))]


def scaler() -> list[tuple[str, Any]]:
    """One step before the SVC."""
    return [("scale", StandardScaler())]


def unscaled(n: int) -> Data:
    """Two classes with features on different scales."""
    data = synthetic(n, 20)
    return data._replace(X=data.X * 10.0 ** np.linspace(-3, 3, 20))


ROWS: dict[str, Row] = {
    "pipeline, ColumnTransformer": Row(lambda: mixed_table(3000), columns),
    "pipeline, StandardScaler": Row(lambda: unscaled(3000), scaler),
    "digits": Row(lambda: load("digits")),
    "satimage": Row(lambda: load("satimage"), sampled=True),
    "letter": Row(lambda: load("letter", 5000), sampled=True),
}
QUICK: dict[str, Row] = {
    "pipeline, ColumnTransformer": Row(lambda: mixed_table(300), columns),
    "pipeline, StandardScaler": Row(lambda: unscaled(300), scaler),
    "digits": Row(lambda: load("digits", 400)),
}


def one(name: str, row: Row, repeat: int) -> dict[str, Any]:
    """All searches of a row."""
    import sklearn.svm

    data, steps = row.data(), row.steps()
    grid = PIPELINE_GRID if steps else selection.wide_grid(data.X, CLASSES_GRID)
    grid = {key: [float(value) for value in values] for key, values in grid.items()}
    n_nodes = len(grid["C"]) * len(grid["gamma"])
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    runs = 1 if row.sampled else repeat
    found: dict[str, Any] = {
        "set": name, "rows": len(data.y), "classes": len(np.unique(data.y)), "nodes": n_nodes, "runs": runs,
        "sampled": row.sampled, "grid": grid,
    }  # fmt: skip

    def searched(kind: Any, machine: Any, nodes: Any, workers: int) -> tuple[float, Any]:
        estimator, prefix = (Pipeline([*steps, ("svc", machine())]), "svc__") if steps else (machine(), "")
        parts = [{f"{prefix}{key}": values for key, values in part.items()} for part in nodes]
        search = kind(estimator, parts, cv=folds, n_jobs=workers, refit=False)
        seconds, search = selection.timed(search, data, runs)
        return seconds * n_nodes / len(search.cv_results_["params"]), search

    for workers, key in ((WORKERS, "ours"), (1, "ours, 1 worker")):
        found[key], ours = searched(SVMSearchCV, SVC, [grid], workers)
    found["scikit-learn"], theirs = searched(GridSearchCV, sklearn.svm.SVC, [grid], WORKERS)
    part = selection.part_of(grid) if row.sampled else [grid]
    found["scikit-learn, 1 worker"], _ = searched(GridSearchCV, sklearn.svm.SVC, part, 1)
    return found | compared(ours, theirs)


def compared(ours: Any, theirs: Any) -> dict[str, Any]:
    """How the scores of all nodes differ."""
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    a, b = (search.cv_results_["mean_test_score"] for search in (ours, theirs))
    differences = np.abs(a - b)
    return {
        "nodes compared": len(a),
        "nodes that differ": int(np.sum(differences > 1e-6)),
        "largest difference of a score": float(differences.max()),
    }


def warm_up() -> None:
    """Compile, and start the worker processes of GridSearchCV."""
    for name in QUICK:
        one(name, QUICK[name], 1)


def summary(rows: list[dict[str, Any]]) -> list[str]:
    """The geometric means, and the largest difference of a score."""
    notes = []
    for workers, suffix in ((WORKERS, ""), (1, ", 1 worker")):
        ratios = [r[f"scikit-learn{suffix}"] / r[f"ours{suffix}"] for r in rows]
        notes.append(
            f"scikit-learn / ours, {workers} worker{'s' if workers > 1 else ''} each, geometric mean of "
            f"{len(ratios)}: {geometric_mean(ratios):.0f} (least {min(ratios):.0f})"
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
    return {
        "set": row["set"],
        "rows": row["rows"],
        "classes": row["classes"],
        "nodes": row["nodes"],
        "runs": row["runs"],
        "ours (s)": f"{row['ours']:.3g}",
        "scikit-learn (s)": f"{row['scikit-learn']:.3g}",
        "scikit-learn / ours": f"{row['scikit-learn'] / row['ours']:.0f}",
        "1 worker: ours (s)": f"{row['ours, 1 worker']:.3g}",
        "scikit-learn, 1 worker (s)": f"{tilde}{row['scikit-learn, 1 worker']:.3g}",
        "ratio, 1 worker": f"{row['scikit-learn, 1 worker'] / row['ours, 1 worker']:.0f}",
        "nodes that differ": f"{row['nodes that differ']} of {row['nodes compared']}",
        "largest difference of a score": f"{row['largest difference of a score']:.4f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="use bundled and generated data, reduced")
    parser.add_argument(
        "--only", nargs="*", help="run these rows, keep the results of the others from an earlier run"
    )
    parser.add_argument("--repeat", type=int, default=2, help="number of runs of every search")
    parser.add_argument("--out", default="selection_variety", help="name of the result files")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = QUICK if args.quick else {k: v for k, v in ROWS.items() if not args.only or k in args.only}
    warm_up()
    path = RESULTS / f"{args.out}.json"
    found = json.loads(path.read_text())["rows"] if args.only and path.exists() else []
    keep = bool(found)
    found = [r for r in found if r["set"] not in rows]
    for name, row in rows.items():
        try:
            found.append(one(name, row, args.repeat))
            print(found[-1], flush=True)
        except MissingData as missing:
            sys.exit(str(missing))
    found.sort(key=lambda r: list(ROWS).index(r["set"]))
    how = f"best of {args.repeat} for all searches of a row, 1 on satimage and letter (column runs)"
    shown = [_shown(r) for r in found]
    title = "Searches over pipelines and many classes"
    write(args.out, title, shown, summary(found), found, threads="2 and 1", repetitions=how, keep=keep)


if __name__ == "__main__":
    main()
