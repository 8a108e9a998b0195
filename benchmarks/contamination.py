"""Outliers among clean rows: what detectors call outliers by default, and with a share of 5 %.

    python benchmarks/contamination.py --quick   # Gaussian data only, fewer repetitions
    python benchmarks/contamination.py           # with Rätsch's sets, which need MAXMARGIN_DATA: a minute

Half of the rows train, the other half is new; all are clean: Gaussian samples, or the rows of class +1 of a
set, standardised. The table has percentages of new rows (of training rows in parentheses) that are called
outliers, mean over repetitions. Every estimator has its default parameters but for the share.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import sklearn.svm
from sklearn.ensemble import IsolationForest

from datasets import MissingData, whole
from maxmargin import L2OneClassSVM, OneClassSVM
from report import write

SHARE = 0.05
SETS = ("banana", "breast-cancer", "diabetis", "german", "image", "ringnorm", "splice", "twonorm", "waveform")
GAUSSIAN = ((200, 2), (1000, 2), (1000, 10))
DETECTORS: dict[str, Callable[[int], Any]] = {
    "L2OneClassSVM, margin": lambda seed: L2OneClassSVM(contamination="margin"),
    "L2OneClassSVM": lambda seed: L2OneClassSVM(),
    "L2OneClassSVM, 5 %": lambda seed: L2OneClassSVM(contamination=SHARE),
    "OneClassSVM, nu 0.05": lambda seed: OneClassSVM(nu=SHARE),
    "OneClassSVM, 5 %": lambda seed: OneClassSVM(contamination=SHARE),
    "scikit-learn's OneClassSVM, nu 0.05": lambda seed: sklearn.svm.OneClassSVM(nu=SHARE),
    "IsolationForest": lambda seed: IsolationForest(random_state=seed),
    "IsolationForest, 5 %": lambda seed: IsolationForest(contamination=SHARE, random_state=seed),
}


def samples(quick: bool) -> Iterator[tuple[str, Callable[[np.random.Generator], Any]]]:
    """Names, and functions that draw clean rows."""
    for n, d in GAUSSIAN[: 1 if quick else None]:

        def gaussian(rng: np.random.Generator, n: int = n, d: int = d) -> Any:
            return rng.normal(size=(2 * n, d))

        yield f"Gaussian, {n} x {d}", gaussian
    for name in () if quick else SETS:
        try:
            X, y = whole(f"raetsch_{name}")
        except MissingData as missing:
            print(missing, flush=True)
            return
        rows = X[y > 0]

        def drawn(rng: np.random.Generator, rows: Any = rows) -> Any:
            return rows[rng.permutation(len(rows))[:2000]]

        yield name, drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="generated data only, two repetitions")
    parser.add_argument("--out", default=None, help="name of the result files in benchmarks/results")
    args = parser.parse_args()
    repetitions = 2 if args.quick else 5
    rows: list[dict[str, Any]] = []
    raw: list[dict[str, Any]] = []
    for name, draw in samples(args.quick):
        shares: dict[str, list[tuple[float, float]]] = {detector: [] for detector in DETECTORS}
        for seed in range(repetitions):
            X = draw(np.random.default_rng(seed))
            train, new = X[: len(X) // 2], X[len(X) // 2 :]
            for detector, make in DETECTORS.items():
                model = make(seed).fit(train)
                found = [100.0 * float((model.predict(part) == -1).mean()) for part in (new, train)]
                shares[detector].append((found[0], found[1]))
        means = {detector: np.mean(of, axis=0) for detector, of in shares.items()}
        rows.append({"data": name, **{k: f"{a:.1f} ({b:.1f})" for k, (a, b) in means.items()}})
        raw.append({"data": name, **{k: {"new": a, "training": b} for k, (a, b) in means.items()}})
        print(rows[-1], flush=True)
    notes = [
        f"{detector}: {np.mean([r[detector]['new'] for r in raw]):.1f} % of new rows in the mean, at most "
        f"{max(r[detector]['new'] for r in raw):.1f} %; of training rows "
        f"{np.mean([r[detector]['training'] for r in raw]):.1f} %, at most "
        f"{max(r[detector]['training'] for r in raw):.1f} %"
        for detector in DETECTORS
    ]
    out = args.out or ("contamination-quick" if args.quick else "contamination")
    write(out, "Outliers among clean rows, %", rows, notes, raw, threads="default", repetitions=repetitions)


if __name__ == "__main__":
    main()
