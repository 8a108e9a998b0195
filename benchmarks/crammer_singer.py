"""`CrammerSingerSVC`, one problem for all classes, against `SVC`, one per pair, at usual and at wide kernels.

    python benchmarks/crammer_singer.py          # digits, usps and letter, which need MAXMARGIN_DATA: minutes
    python benchmarks/crammer_singer.py --quick  # a part of digits, seconds

Gamma and C of letter's rows "chosen" are those that cross-validation chose (papers/all_distances.py), those
of the others are usual. Wider kernels and larger C follow, where steps of single samples converge slowly.
Features are standardised, but for usps. A fit that --limit ended has its status in the table. Times are the
better of two fits, if the first takes less than five seconds.

With the linear kernel we compare with scikit-learn's LinearSVC(multi_class="crammer_singer",
fit_intercept=False), which LIBLINEAR solves, by the value of the primal problem at the weights of each. Our
dual value is a bound that no weights can be below: by what share each value exceeds it is shown.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from datasets import Data, MissingData, load
from maxmargin import SVC, CrammerSingerSVC
from report import write


class Setting(NamedTuple):
    """A kernel and C for a data set."""

    data: str
    kernel: str
    gamma: float
    C: float


SETTINGS = (
    Setting("digits", "usual", 1 / 64, 8.0),
    Setting("digits", "wide", 1 / 512, 8.0),
    Setting("digits", "wide, large C", 1 / 512, 1024.0),
    Setting("digits", "very wide", 1 / 4096, 128.0),
    Setting("usps", "usual", 1 / 128, 8.0),
    Setting("usps", "wide", 1 / 512, 8.0),
    Setting("letter, 4,000 rows", "chosen", 1 / 32, 8.0),
    Setting("letter, 4,000 rows", "wide", 1 / 128, 32.0),
    Setting("letter", "chosen", 1 / 32, 8.0),
)
LINEAR = (("digits", 0.01), ("digits", 1.0), ("usps", 0.1), ("letter, 4,000 rows", 1.0))
QUICK_ROWS = 400


def data_of(name: str, quick: bool) -> Data:
    """Training and test rows, standardised where features have no common unit."""
    base, _, part = name.partition(", ")
    data = load(base, raw=base == "letter")
    X, y, X_test, y_test = data
    if base == "digits":  # bundled, without a test part
        order = np.random.default_rng(0).permutation(len(X))
        train, test = order[: QUICK_ROWS if quick else 1400], order[1400:]
        X, y, X_test, y_test = X[train], y[train], X[test], y[test]
    elif part:
        rows = np.random.default_rng(0).permutation(len(X))[:4000]
        X, y = X[rows], y[rows]
    X, X_test = np.asarray(X, dtype=np.float64), np.asarray(X_test, dtype=np.float64)
    if base != "usps":
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    return Data(X, np.asarray(y), X_test, np.asarray(y_test))


def timed(make: Callable[[], Any], data: Data) -> tuple[Any, float]:
    """A fitted model, and the seconds of the quicker of two fits; of one if that takes five seconds."""
    best = np.inf
    for _ in range(2):
        began = time.perf_counter()
        model = make().fit(data.X, data.y)
        best = min(best, time.perf_counter() - began)
        if best > 5:
            break
    return model, best


def compare(setting: Setting, data: Data, limit: float) -> dict[str, Any]:
    """One row of the table."""
    gamma, C = setting.gamma, setting.C
    pairs, seconds = timed(lambda: SVC(gamma=gamma, C=C), data)
    joint, own = timed(lambda: CrammerSingerSVC(gamma=gamma, C=C, max_time=limit), data)
    return {
        "data": setting.data,
        "rows": len(data.X),
        "classes": len(joint.classes_),
        "kernel": setting.kernel,
        "gamma": setting.gamma,
        "C": setting.C,
        "pairs_seconds": seconds,
        "seconds": own,
        "ratio": own / seconds,
        "status": joint.status_,
        "relative_gap": joint.relative_gap_,
        "accuracy": 100 * float(np.mean(joint.predict(data.X_test) == data.y_test)),
        "pairs_accuracy": 100 * float(np.mean(pairs.predict(data.X_test) == data.y_test)),
    }


def primal(coef: Any, data: Data, C: float) -> float:
    """The value of Crammer and Singer's primal problem."""
    values = data.X @ coef.T
    true = np.unique(data.y, return_inverse=True)[1]
    own = values[np.arange(len(values)), true]
    values[np.arange(len(values)), true] -= 1.0
    return float(0.5 * np.sum(coef**2) + C * np.sum(values.max(axis=1) + 1.0 - own))


def against_liblinear(name: str, C: float, data: Data, limit: float) -> dict[str, Any]:
    """One row of the second table."""
    ours, own = timed(lambda: CrammerSingerSVC(kernel="linear", C=C, max_time=limit), data)
    theirs, other = timed(
        lambda: LinearSVC(C=C, multi_class="crammer_singer", fit_intercept=False, random_state=0), data
    )
    bound = -ours.trace_[0][-1].objective  # the dual value: at most the optimal one
    values = [primal(model.coef_, data, C) for model in (ours, theirs)]
    return {
        "data": name,
        "C": C,
        "seconds": own,
        "liblinear_seconds": other,
        "ours": values[0],
        "liblinear": values[1],
        "ours_above": values[0] / bound - 1,
        "liblinear_above": values[1] / bound - 1,
        "status": ours.status_,
        "relative_gap": ours.relative_gap_,
    }


def shown(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "data": row["data"],
        "kernel": row["kernel"],
        "gamma": f"1/{1 / row['gamma']:.0f}",
        "C": f"{row['C']:g}",
        "SVC (s)": f"{row['pairs_seconds']:.3g}",
        "CrammerSingerSVC (s)": f"{row['seconds']:.3g}",
        "ratio": f"{row['ratio']:.1f}",
        "status": row["status"],
        "relative gap": f"{row['relative_gap']:.1e}",
        "accuracy (%)": f"{row['accuracy']:.2f}",
        "of SVC": f"{row['pairs_accuracy']:.2f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROWS} rows of digits only")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which a fit is ended")
    parser.add_argument("--out", default="crammer_singer", help="name of the result files")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    known: dict[str, Data] = {}
    rows: list[dict[str, Any]] = []
    linear: list[dict[str, Any]] = []
    first = data_of("digits", args.quick)
    for setting in SETTINGS[:4]:  # compiled and loaded, in both precisions
        compare(setting, first, args.limit)
    against_liblinear("digits", 1.0, first, args.limit)
    for setting in SETTINGS:
        if args.quick and setting.data != "digits":
            continue
        try:
            data = known.setdefault(setting.data, data_of(setting.data, args.quick))
        except MissingData as missing:
            print(missing, flush=True)
            continue
        rows.append(compare(setting, data, args.limit))
        print(shown(rows[-1]), flush=True)
    for name, C in LINEAR:
        if name in known:
            linear.append(against_liblinear(name, C, known[name], args.limit))
            print(linear[-1], flush=True)
    notes = [
        f"Linear kernel, {row['data']}, C = {row['C']:g}: {row['seconds']:.3g} s ({row['status']}), "
        f"{row['ours_above']:.1e} above the bound; LIBLINEAR {row['liblinear_seconds']:.3g} s, "
        f"{row['liblinear_above']:.1e} above it."
        for row in linear
    ]
    raw = rows + [{"kernel": "linear", **row} for row in linear]
    title = "Crammer and Singer's problem against pairs of classes"
    how = "better of 2 fits; above 5 s: 1"
    write(args.out, title, [shown(r) for r in rows], notes, raw, threads="all cores", repetitions=how)


if __name__ == "__main__":
    main()
