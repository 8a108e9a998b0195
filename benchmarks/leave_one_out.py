"""Exact leave-one-out: `IncrementalSVC.leave_one_out` against training n times.

    python benchmarks/leave_one_out.py              # german and splice, all rows; needs MAXMARGIN_DATA
    python benchmarks/leave_one_out.py --plain      # the losses of scikit-learn's SVC and SVR
    python benchmarks/leave_one_out.py --quick      # bundled data, seconds

C = 1, gamma = 1/d, 2 threads where threads are used. Our time is that of fit and leave_one_out together. The
other methods train n times, each time without one row, and predict that row:

- SVC, the same problem: maxmargin's `SVC(loss="squared_hinge")`.
- LIBSVM, the same problem: scikit-learn's `SVC(kernel="precomputed", C=1e6)` on K + I / (2 C), whose hard
  margin is the squared hinge of K. K is computed once, which is not counted; the remaining rows are copied
  from it.
- LIBSVM, hinge: scikit-learn's `SVC`, as in `cross_val_predict(SVC(), X, y, cv=LeaveOneOut())`: *another*
  problem, the usual one in scikit-learn.

On sets of up to --full rows all n trainings are run. On larger ones --folds of them are, and their mean is
multiplied by n: such figures have a ~. Ours is the best of --repeat runs; the others are sums of many
trainings and run once. The held-out values are compared with trainings on the same problem to 1e-10.

With --plain `maxmargin.model_selection.leave_one_out` of SVC and SVR, hinge and epsilon-insensitive, is
compared with n trainings of scikit-learn's classes of the same names at their default tolerance, all of them
run: german, breast_cancer and iris (three classes), and diabetes for regression (C = 100, epsilon = 10),
standardised. The difference is from trainings at a tolerance of 1e-9, of --folds rows. Results:
leave_one_out_plain.

"Position" is the order-of-addition idea of the SimpleSVM paper's last paragraph: the time to unlearn the
support vector that was learnt first, in the middle, and last; only what was learnt after it has to be
changed in the factor."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

sys.path.insert(0, str(Path(__file__).parent))
from datasets import MissingData, whole
from maxmargin import SVC, SVR, IncrementalSVC
from maxmargin.model_selection import leave_one_out
from maxmargin.solvers.papers._factor import delete
from report import write

SETS = {"german": "raetsch_german", "splice": "raetsch_splice"}
THREADS = 2
RIVALS = {
    "svc": "n trainings of SVC, the same model",
    "libsvm_same": "of LIBSVM, the same model",
    "libsvm_hinge": "of LIBSVM, hinge (another model)",
}


def trained_without(rows: Any, n: int, train: Callable[[Any, int], float]) -> tuple[float, Any]:
    """Seconds per training without one row, and the values of these rows."""
    values = []
    began = time.perf_counter()
    for k in rows:
        values.append(train(np.flatnonzero(np.arange(n) != k), int(k)))
    return (time.perf_counter() - began) / len(rows), np.array(values)


def trainings(X: Any, y: Any, gamma: float) -> dict[str, Callable[[Any, int], float]]:
    """For every rival: the value that a training on the rows `keep` gives row k."""
    import sklearn.svm

    K = rbf_kernel(X, gamma=gamma)

    def svc(keep: Any, k: int, tol: float = 1e-3) -> float:
        model = SVC(gamma=gamma, loss="squared_hinge", tol=tol, n_jobs=THREADS)
        return float(model.fit(X[keep], y[keep]).decision_function(X[[k]])[0])

    def libsvm_same(keep: Any, k: int) -> float:
        own = K[np.ix_(keep, keep)]
        own[np.diag_indices_from(own)] += 0.5  # 1 / (2 C)
        model = sklearn.svm.SVC(kernel="precomputed", C=1e6).fit(own, y[keep])
        return float(model.decision_function(K[k : k + 1, keep])[0])

    def libsvm_hinge(keep: Any, k: int) -> float:
        model = sklearn.svm.SVC(gamma=gamma).fit(X[keep], y[keep])
        return float(model.decision_function(X[[k]])[0])

    return {
        "svc": svc,
        "libsvm_same": libsvm_same,
        "libsvm_hinge": libsvm_hinge,
        "tight": lambda keep, k: svc(keep, k, 1e-10),
    }


def positions(model: IncrementalSVC) -> list[float]:
    """Milliseconds to take the first, the middle and the last member out of the factor."""
    active = model._svm.problems[0].active
    out = []
    for p in (0, active.size // 2, active.size - 1):
        best = np.inf
        for _ in range(5):
            packed, work = active._packed.copy(), active._work.copy()
            began = time.perf_counter()
            delete(packed, active.size, p, work[:1])
            best = min(best, time.perf_counter() - began)
        out.append(1e3 * best)
    return out


def one(name: str, X: Any, y: Any, args: argparse.Namespace) -> dict[str, Any]:
    """All ways to leave one out, on one set."""
    n, gamma = len(y), 1.0 / X.shape[1]
    order = np.random.default_rng(0).permutation(n)
    some, run = order[: args.folds], order[: n if n <= args.full else args.folds]
    IncrementalSVC(gamma=gamma).fit(X[:100], y[:100]).leave_one_out()  # compiled and loaded
    best = np.inf
    for _ in range(args.repeat):
        began = time.perf_counter()
        model = IncrementalSVC(gamma=gamma).fit(X, y)
        values = model.leave_one_out()
        best = min(best, time.perf_counter() - began)
    ways = trainings(X, y, gamma)
    ways["svc"](order[1:], int(order[0]))
    row: dict[str, Any] = {"set": name, "n": n, "svs": len(model.support_), "seconds": best}
    row |= {"accuracy": float(np.mean((values > 0) == (y > 0))), "trainings": len(run)}
    same = np.nan
    for way in RIVALS:
        each, held_out = trained_without(run, n, ways[way])
        row[way] = each * n
        if way == "libsvm_same":
            same = float(np.abs(held_out - values[run]).max())
    _, tight = trained_without(some, n, ways["tight"])
    row |= {"difference": float(np.abs(values[some] - tight).max()), "difference_libsvm": same}
    row |= dict(zip(("first_ms", "middle_ms", "last_ms"), positions(model), strict=True))
    return row


def shown(row: dict[str, Any]) -> dict[str, Any]:
    tilde = "" if row["trainings"] == row["n"] else "~"
    out = {
        "set": row["set"],
        "n": row["n"],
        "SVs": row["svs"],
        "leave-one-out accuracy": f"{row['accuracy']:.4f}",
        "s (fit included)": f"{row['seconds']:.3g}",
        "trainings run": f"{row['trainings']} of {row['n']}",
    }
    for way, title in RIVALS.items():
        out[f"{title}: s"] = f"{tilde}{row[way]:.3g} ({row[way] / row['seconds']:.0f} x)"
    out["largest difference"] = f"{row['difference']:.1e}"
    out["from LIBSVM's, same model"] = f"{row['difference_libsvm']:.1e}"
    out["unlearn first / middle / last: ms"] = (
        f"{row['first_ms']:.2f} / {row['middle_ms']:.2f} / {row['last_ms']:.3f}"
    )
    return out


def plain_problems(quick: bool) -> dict[str, tuple[Any, Any, dict[str, Any]]]:
    """Data and parameters of a classification or, with epsilon, a regression."""
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
    from sklearn.preprocessing import scale

    out: dict[str, tuple[Any, Any, dict[str, Any]]] = (
        {} if quick else {"german": (*whole(SETS["german"]), {})}
    )
    for name, load in {
        "breast_cancer": load_breast_cancer,
        "iris": load_iris,
        "diabetes": load_diabetes,
    }.items():
        X, y = load(return_X_y=True)
        out[name] = (scale(X), y, {"C": 100.0, "epsilon": 10.0} if name == "diabetes" else {})
    rows = slice(None, None, 5 if quick else 1)
    return {name: (X[rows], y[rows], options) for name, (X, y, options) in out.items()}


def one_plain(name: str, X: Any, y: Any, options: dict[str, Any], args: argparse.Namespace) -> dict[str, Any]:
    """One training of ours that is undone for each row, against n of scikit-learn's."""
    import sklearn.svm

    regression, n = "epsilon" in options, len(y)
    options = options | {"gamma": 1.0 / X.shape[1]}
    ours: Any = SVR(**options) if regression else SVC(**options)
    theirs: Any = (sklearn.svm.SVR if regression else sklearn.svm.SVC)(**options)
    how = "predict" if regression else "decision_function"
    leave_one_out(ours, X[::3], y[::3], method=how)  # compiled and loaded
    best = np.inf
    for _ in range(args.repeat):
        began = time.perf_counter()
        values = leave_one_out(ours, X, y, method=how)
        best = min(best, time.perf_counter() - began)

    def held_out(tol: float) -> Callable[[Any, int], Any]:
        return lambda keep, k: getattr(clone(theirs).set_params(tol=tol).fit(X[keep], y[keep]), how)(X[[k]])[
            0
        ]

    each, _ = trained_without(range(n), n, held_out(1e-3))
    some = np.random.default_rng(0).permutation(n)[: args.folds]
    _, tight = trained_without(some, n, held_out(1e-9))
    return {
        "set": name, "n": n, "model": type(ours).__name__, "svs": len(ours.fit(X, y).support_),
        "seconds": best, "scikit-learn": each * n, "difference": float(np.abs(values[some] - tight).max()),
    }  # fmt: skip


def plain(args: argparse.Namespace) -> None:
    """The losses of scikit-learn's classes."""
    rows = [one_plain(name, *problem, args) for name, problem in plain_problems(args.quick).items()]
    table = [
        {
            "set": r["set"],
            "model": r["model"],
            "n": r["n"],
            "SVs": r["svs"],
            "leave_one_out: s": f"{r['seconds']:.3g}",
            "n trainings of scikit-learn: s": f"{r['scikit-learn']:.3g} "
            f"({r['scikit-learn'] / r['seconds']:.1f} x)",
            "largest difference": f"{r['difference']:.1e}",
        }
        for r in rows
    ]
    how = f"best of {args.repeat} for ours; 1 for each training of scikit-learn"
    write(args.out, "Exact leave-one-out of SVC and SVR", table, [], rows, threads=THREADS, repetitions=how)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="use bundled data only")
    parser.add_argument(
        "--full", type=int, default=1000, help="largest number of rows for which all trainings run"
    )
    parser.add_argument("--folds", type=int, default=100, help="number of trainings on larger sets")
    parser.add_argument("--repeat", type=int, default=3, help="number of runs, of which the fastest counts")
    parser.add_argument("--plain", action="store_true", help="run the losses of scikit-learn's SVC and SVR")
    parser.add_argument("--out", help="name of the result files in benchmarks/results")
    args = parser.parse_args()
    args.out = args.out or ("leave_one_out_plain" if args.plain else "leave_one_out")
    if args.quick:
        args.full, args.folds = 0, 10
    if args.plain:
        plain(args)
        return
    rows: list[dict[str, Any]] = []
    for name, source in {"breast_cancer": "breast_cancer"}.items() if args.quick else SETS.items():
        try:
            rows.append(one(name, *whole(source), args))
        except MissingData as missing:
            sys.exit(str(missing))
        print(rows[-1], flush=True)
    notes = [f"~: {args.folds} trainings were run, their mean is multiplied by n."]
    how = f"best of {args.repeat} for ours; 1 for each training of the rivals"
    table = [shown(r) for r in rows]
    write(args.out, "Exact leave-one-out", table, notes, rows, threads=THREADS, repetitions=how)


if __name__ == "__main__":
    main()
