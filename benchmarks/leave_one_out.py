"""Exact leave-one-out: `IncrementalSVC.leave_one_out` against training n times.

    python benchmarks/leave_one_out.py              # german and splice, all rows; needs MAXMARGIN_DATA
    python benchmarks/leave_one_out.py --quick      # bundled data, seconds

C = 1, gamma = 1/d, all threads for all. Ours is the time of fit and leave_one_out together, best of
--repeat. The n trainings of maxmargin's SVC (squared hinge, the same machine) and scikit-learn's
`cross_val_predict(SVC(), cv=LeaveOneOut())` (hinge: it has no other) are estimated from --folds rows. The
held-out values of these rows are compared with trainings of the same machine to 1e-10.

"Position" is the order-of-addition idea of the SimpleSVM paper's last paragraph: the time to unlearn the
support vector that was learnt first, in the middle, and last; only what was learnt after it has to be
changed in the factor."""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from datasets import MissingData, whole
from maxmargin import SVC, IncrementalSVC
from maxmargin.solvers.factor import delete
from report import write

SETS = {"german": "raetsch_german", "splice": "raetsch_splice"}


def folds_of(make: Any, X: Any, y: Any, rows: Any) -> tuple[float, Any]:
    """Seconds per training without one row, and the values of these rows."""
    values = []
    began = time.perf_counter()
    for k in rows:
        keep = np.arange(len(y)) != k
        values.append(make().fit(X[keep], y[keep]).decision_function(X[[k]])[0])
    return (time.perf_counter() - began) / len(rows), np.array(values)


def positions(model: IncrementalSVC) -> list[float]:
    """Milliseconds to take the first, the middle and the last member out of the factor."""
    active = model._machine.active
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="bundled data only")
    parser.add_argument("--folds", type=int, default=50)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", default="leave_one_out", help="name of the result files")
    args = parser.parse_args()
    import sklearn.svm

    rows: list[dict[str, Any]] = []
    for name, source in {"breast_cancer": "breast_cancer"}.items() if args.quick else SETS.items():
        try:
            X, y = whole(source)
        except MissingData as missing:
            sys.exit(str(missing))
        n, gamma = len(y), 1.0 / X.shape[1]
        some = np.random.default_rng(0).permutation(n)[: 10 if args.quick else args.folds]
        IncrementalSVC(gamma=gamma).fit(X[:100], y[:100]).leave_one_out()  # compiled and loaded
        best = np.inf
        for _ in range(args.repeat):
            began = time.perf_counter()
            model = IncrementalSVC(gamma=gamma).fit(X, y)
            values = model.leave_one_out()
            best = min(best, time.perf_counter() - began)
        makes: dict[str, Any] = {
            "SVC": partial(SVC, gamma=gamma, loss="squared_hinge"),
            "scikit-learn": partial(sklearn.svm.SVC, gamma=gamma),
        }
        makes["SVC"]().fit(X, y)
        seconds = {who: folds_of(make, X, y, some)[0] * n for who, make in makes.items()}
        tight = folds_of(partial(makes["SVC"], tol=1e-10), X, y, some)[1]
        first, middle, last = positions(model)
        rows.append(
            {
                "set": name,
                "n": n,
                "SVs": len(model.support_),
                "leave-one-out accuracy": f"{np.mean((values > 0) == (y > 0)):.4f}",
                "s (fit included)": f"{best:.3f}",
                "largest difference": f"{np.abs(values[some] - tight).max():.1e}",
                "n trainings of SVC: s": f"{seconds['SVC']:.1f}",
                "x SVC": f"{seconds['SVC'] / best:.0f}",
                "scikit-learn's LeaveOneOut: s": f"{seconds['scikit-learn']:.1f}",
                "x scikit-learn": f"{seconds['scikit-learn'] / best:.0f}",
                "unlearn first / middle / last: ms": f"{first:.2f} / {middle:.2f} / {last:.3f}",
            }
        )
        print(rows[-1], flush=True)
    notes = [f"Trainings estimated from {len(some)} rows each"]
    write(args.out, "Exact leave-one-out", rows, notes)


if __name__ == "__main__":
    main()
