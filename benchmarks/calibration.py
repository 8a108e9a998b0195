"""Probabilities: ``SVC(probability=True)`` beside scikit-learn's and beside a calibrated classifier.

    python benchmarks/calibration.py              # ten sets; needs MAXMARGIN_DATA
    python benchmarks/calibration.py --quick      # bundled data, seconds

C = 1, gamma = "scale", one thread each. Half of the rows (at most --rows) train, the others (at most twice as
many) test; features are standardised by the training rows. Three ways to probabilities, for the same rows:

- ours: maxmargin's ``SVC(probability=True)``: five folds from the solution of all rows;
- scikit-learn: its ``SVC(probability=True)``, LIBSVM: five folds, each trained from zero;
- calibrated: ``CalibratedClassifierCV(SVC(), ensemble=False)`` of maxmargin's `SVC`, five folds from zero.

Seconds are the best of --repeat fits, and "x plain" is their ratio to a fit without probabilities of the same
library. Losses are those of the test rows; the Brier score is the mean squared error of all classes'
probabilities."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.svm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parent))
from datasets import MissingData, load, whole
from maxmargin import SVC
from report import geometric_mean, write

RAETSCH = ("german", "diabetis", "splice", "image", "waveform")
SETS = ("breast_cancer", "digits", *(f"raetsch_{name}" for name in RAETSCH), "a1a", "svmguide1", "letter")
QUICK = ("breast_cancer", "digits")
WAYS = ("ours", "scikit-learn", "calibrated")


def halves(name: str, rows: int) -> tuple[Any, ...]:
    """Training and test rows of a set, standardised."""
    X, y = whole(name) if name.startswith("raetsch") else load(name)[:2]
    X = X.toarray() if hasattr(X, "toarray") else X
    order = np.random.default_rng(0).permutation(len(y))
    n = min(rows, len(y) // 2)
    train, test = order[:n], order[n : 3 * n]
    scaler = StandardScaler().fit(X[train])
    return scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]


def one(name: str, args: argparse.Namespace) -> dict[str, Any]:
    """Losses and seconds of all ways on one set."""
    X, y, X_test, y_test = halves(name, args.rows)
    models = {
        "ours": SVC(probability=True, n_jobs=1),
        "scikit-learn": sklearn.svm.SVC(probability=True, random_state=0),
        "calibrated": CalibratedClassifierCV(SVC(n_jobs=1), ensemble=False),
    }
    plain = {"ours": SVC(n_jobs=1), "scikit-learn": sklearn.svm.SVC()}
    row: dict[str, Any] = {"set": name, "n": len(y), "classes": len(np.unique(y))}
    for repeat in range(args.repeat + 1):  # the first compiles, or loads what is compiled
        for kind, some in (("plain", plain), ("with", models)):
            for way, model in some.items():
                began = time.perf_counter()
                model.fit(X, y)
                seconds, key = time.perf_counter() - began, f"{way} {kind} s"
                row[key] = min(row.get(key, np.inf), seconds) if repeat else np.inf
    row["calibrated plain s"] = row["ours plain s"]
    for way, model in models.items():
        p = model.predict_proba(X_test)
        hit = y_test[:, None] == model.classes_
        row[f"{way} log loss"] = float(log_loss(y_test, p, labels=model.classes_))
        row[f"{way} Brier"] = float(np.mean(np.sum((p - hit) ** 2, axis=1)))
        row[f"{way} ratio"] = row[f"{way} with s"] / row[f"{way} plain s"]
    return row


def shown(row: dict[str, Any]) -> dict[str, Any]:
    out = {"set": row["set"].removeprefix("raetsch_"), "rows": row["n"], "classes": row["classes"]}
    for measure in ("log loss", "Brier"):
        out |= {f"{way}: {measure}": f"{row[f'{way} {measure}']:.4f}" for way in WAYS}
    out |= {
        f"{way}: ms (x plain)": f"{1e3 * row[f'{way} with s']:.3g} ({row[f'{way} ratio']:.1f})"
        for way in WAYS
    }
    return out


def summary(rows: list[dict[str, Any]]) -> list[str]:
    """Paired differences from ours, and the means of ratios."""
    notes = []
    for other in WAYS[1:]:
        for measure in ("log loss", "Brier"):
            d = np.array([row[f"ours {measure}"] - row[f"{other} {measure}"] for row in rows])
            notes.append(
                f"{measure}, ours less {other}: mean {d.mean():+.4f}, from {d.min():+.4f} to {d.max():+.4f}; "
                f"less on {np.count_nonzero(d < 0)} of {len(d)} sets."
            )
        ratio = geometric_mean([row[f"{other} with s"] / row["ours with s"] for row in rows])
        notes.append(f"Time of {other}, as a multiple of ours: {ratio:.1f} (geometric mean).")
    means = {way: geometric_mean([row[f"{way} ratio"] for row in rows]) for way in WAYS}
    shown_means = ", ".join(f"{way} {ratio:.1f}" for way, ratio in means.items())
    return [*notes, f"Time as a multiple of the plain fit (geometric means): {shown_means}."]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="use bundled data only")
    parser.add_argument("--rows", type=int, default=2000, help="largest number of training rows")
    parser.add_argument("--repeat", type=int, default=3, help="number of runs, of which the fastest counts")
    parser.add_argument("--out", default="calibration", help="name of the result files in benchmarks/results")
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", FutureWarning)
        for name in QUICK if args.quick else SETS:
            try:
                rows.append(one(name, args))
            except MissingData as missing:
                sys.exit(str(missing))
            print(shown(rows[-1]), flush=True)
    table = [shown(row) for row in rows]
    how = f"best of {args.repeat}"
    write(args.out, "Probabilities", table, summary(rows), rows, threads=1, repetitions=how)


if __name__ == "__main__":
    main()
