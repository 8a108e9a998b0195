"""The All-Distances SVM with parameters chosen by the paper's own protocol, and the accuracy of glass.

    python benchmarks/papers/all_distances_protocol.py --only glass vowel satimage   # needs MAXMARGIN_DATA
    python benchmarks/papers/all_distances_protocol.py --quick                       # bundled data

The paper's grid, 15 values of sigma and 15 of mu, by cross-validation on all training rows: 10 folds, 5 for
usps, letter and shuttle; no fit has a time limit. mu = m_s^(-k/14), m_s the size of the smallest class in the
training sets of the folds. Features are standardised (images as they are) and the kernel is
exp(-d^2 / sigma), the reading that meets the paper's accuracies at its own parameters (all_distances.py).
Where several nodes have the same number of correct rows, the accuracies of all of them are given as a range,
and the node in their middle is the one that counts.

Glass has no test set; the paper uses 5-fold cross-validation on all rows for its accuracy. Next to this
accuracy the program gives the share of *training* rows that are classified correctly (of glass: the mean of
the five folds), at the paper's node and at the chosen one.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import StratifiedKFold

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))
from all_distances import QUICK, SETS, SIGMAS, STEPS, Set, fetch, smallest

from datasets import Data, MissingData
from maxmargin import AllDistancesSVC
from report import RESULTS, write

FIVE_FOLDS = ("usps", "letter", "shuttle")


def splits_of(y: Any, folds: int) -> list[tuple[Any, Any]]:
    """Stratified folds; a class with fewer rows than folds is in the test part of some of them only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        splitter = StratifiedKFold(folds, shuffle=True, random_state=0)
        return list(splitter.split(np.zeros((len(y), 1)), y))


def fold_scores(X: Any, y: Any, train: Any, test: Any, sigma: float, mus: list[float]) -> dict[str, Any]:
    """Correct test rows for every mu, and the number of fits that did not reach their tolerance."""
    warnings.simplefilter("ignore")
    K = np.exp(euclidean_distances(X, X[train], squared=True) / -sigma)
    inner, outer = np.ascontiguousarray(K[train]), np.ascontiguousarray(K[test])
    model = AllDistancesSVC(kernel="precomputed", n_jobs=1, warm_start=True)
    right, unsolved = [], 0
    for mu in mus:
        model.set_params(mu=mu).fit(inner, y[train])
        unsolved += model.status_ != "solved"
        right.append(int(np.sum(model.predict(outer) == y[test])))
    return {"right": right, "unsolved": unsolved}


def held_out(X: Any, y: Any, mu: float, gamma: float) -> tuple[float, float]:
    """Per cent correct by 5-fold cross-validation on all rows: held out, and in training."""
    right, fitted = 0, []
    for train, test in splits_of(y, 5):
        # The smallest class of a fold may be too small for mu.
        own = max(mu, (1 + 1e-9) / smallest(y[train]))
        model = AllDistancesSVC(mu=own, gamma=gamma).fit(X[train], y[train])
        right += int(np.sum(model.predict(X[test]) == y[test]))
        fitted.append(float(np.mean(model.predict(X[train]) == y[train])))
    return 100 * right / len(y), 100 * float(np.mean(fitted))


def accuracies(data: Data, own_test: bool, mu: float, sigma: float) -> dict[str, float]:
    """Per cent correct: on the test rows (held out by cross-validation if there are none), in training."""
    if own_test:
        test, training = held_out(data.X, data.y, mu, 1.0 / sigma)
        return {"test": test, "training": training}
    model = AllDistancesSVC(mu=max(mu, (1 + 1e-9) / smallest(data.y)), gamma=1.0 / sigma, cache_size=2000)
    model.fit(data.X, data.y)
    training = 100 * float(np.mean(model.predict(data.X) == data.y))
    return {"test": 100 * float(np.mean(model.predict(data.X_test) == data.y_test)), "training": training}


def protocol(name: str, given: Set, jobs: int) -> dict[str, Any]:
    """The paper's search on one set, and the accuracies at its best node and at the paper's."""
    data = fetch(given)
    X, y = data.X, data.y
    folds = 5 if name in FIVE_FOLDS else 10
    splits = splits_of(y, folds)
    least = min(smallest(y[train]) for train, _ in splits)
    mus = [min(1.0, least ** (-k / 14) * (1 + 1e-9)) for k in STEPS]
    tasks = [(sigma, fold) for sigma in SIGMAS for fold in splits]
    found = Parallel(n_jobs=jobs)(
        delayed(fold_scores)(X, y, train, test, sigma, mus) for sigma, (train, test) in tasks
    )
    right = np.zeros((len(SIGMAS), len(mus)), int)
    for (sigma, _), scores in zip(tasks, found, strict=True):
        right[SIGMAS.index(sigma)] += scores["right"]
    top = np.argwhere(right == right.max())
    middle = top[np.argmin(((top - top.mean(axis=0)) ** 2).sum(axis=1))]
    own_test = given.data == "glass"
    best = [accuracies(data, own_test, mus[b], SIGMAS[a]) for a, b in top]
    chosen = best[int(np.flatnonzero((top == middle).all(axis=1))[0])]
    row: dict[str, Any] = {
        "set": name, "rows": len(y), "folds": folds, "m_s": least, "sigma": SIGMAS[middle[0]],
        "k": STEPS[middle[1]], "mu": mus[middle[1]], "cv": float(100 * right.max() / len(y)),
        "test": chosen["test"], "training": chosen["training"], "tied": len(top),
        "least_test": min(b["test"] for b in best), "most_test": max(b["test"] for b in best),
        "fits": len(tasks) * len(mus), "unsolved": sum(scores["unsolved"] for scores in found),
        "right": right.tolist(),
    }  # fmt: skip
    if given.ad is not None:
        at = accuracies(data, own_test, given.ad.other, given.ad.sigma)
        row |= {"paper": given.ad.accuracy, "paper_sigma": given.ad.sigma, "paper_mu": given.ad.other}
        row |= {"test_at_paper": at["test"], "training_at_paper": at["training"]}
    return row


def shown(row: dict[str, Any]) -> dict[str, Any]:
    tied = f" ({row['least_test']:.2f} to {row['most_test']:.2f})" if row["tied"] > 1 else ""
    return {
        "set": row["set"],
        "rows": row["rows"],
        "folds": row["folds"],
        "chosen: sigma, mu": f"{row['sigma']:.3g}, {row['mu']:.3g} (k = {row['k']})",
        "cross-validated": f"{row['cv']:.2f}",
        "test accuracy: paper": f"{row['paper']:.2f}" if "paper" in row else "",
        "ours (nodes with the same score)": f"{row['test']:.2f}{tied}",
        "training accuracy": f"{row['training']:.2f}",
        "paper's sigma, mu": f"{row['paper_sigma']:g}, {row['paper_mu']:g}" if "paper" in row else "",
        "there: test / training": (
            f"{row['test_at_paper']:.2f} / {row['training_at_paper']:.2f}" if "paper" in row else ""
        ),
        "fits, not solved": f"{row['fits']}, {row['unsolved']}",
    }


def report(out: str, rows: list[dict[str, Any]], keep: bool) -> None:
    notes = ["All training rows, no time limit; exp(-d^2 / sigma), features standardised (not images)."]
    title, how = "All-Distances SVM, the paper's protocol", "1 (accuracies)"
    write(out, title, [shown(r) for r in rows], notes, rows, threads=1, repetitions=how, keep=keep)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="use bundled data and a small grid")
    parser.add_argument(
        "--only", nargs="*", help="run these sets, keep the results of the others from an earlier run"
    )
    parser.add_argument("--jobs", type=int, default=2, help="number of processes of the cross-validation")
    parser.add_argument(
        "--out", default="all_distances_protocol", help="name of the result files in benchmarks/results"
    )
    args = parser.parse_args()
    if args.quick:
        globals().update(SIGMAS=SIGMAS[::5], STEPS=STEPS[::7])
    sets = QUICK if args.quick else {k: v for k, v in SETS.items() if not args.only or k in args.only}
    path = RESULTS / f"{args.out}.json"
    rows = json.loads(path.read_text())["rows"] if args.only and path.exists() else []
    for name, given in sets.items():
        try:
            row = protocol(name, given, args.jobs)
        except MissingData as missing:
            sys.exit(str(missing))
        rows = [r for r in rows if r["set"] != name] + [row]
        rows.sort(key=lambda r: list({**SETS, **QUICK}).index(r["set"]))
        report(args.out, rows, keep=bool(args.only) or name != next(iter(sets)))


if __name__ == "__main__":
    main()
