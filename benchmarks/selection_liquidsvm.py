"""Model selection compared with liquidSVM, on its default grid with 5 folds.

    python benchmarks/selection_liquidsvm.py             # seven sets; some need MAXMARGIN_DATA
    python benchmarks/selection_liquidsvm.py --quick     # bundled and synthetic data

liquidSVM has to be built from its sources; without it the program says so and ends. Its problem has no bias
and stops at a clipped gap of 0.001 C n. It runs with one thread and with two, and the faster counts;
SVMSearchCV has two, on the same grid (gamma = 1 / sigma^2, C = 1 / (2 lambda n)). SVCCV, which chooses its
combinations itself, has two as well, scales the features once more and calibrates probabilities. Every one of
these runs --repeat times, final models included, and the fastest run counts.
"""

from __future__ import annotations

import argparse
import sys
import sysconfig
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

sys.path.insert(0, str(Path(__file__).parent))
from datasets import Data, MissingData, synthetic
from maxmargin import SVC, SVCCV
from maxmargin.model_selection import SVMSearchCV
from report import geometric_mean, write
from selection import QUICK, SETS, WORKERS, timed


def liquid(data: Data, repeat: int) -> dict[str, Any] | None:
    """liquidSVM's seconds, its error, and its grid; None if it is not there.

    In a process of its own: its threads go on spinning when it is done.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
        return other.submit(_liquid, data, repeat).result()


def _liquid(data: Data, repeat: int) -> dict[str, Any] | None:
    sysconfig.get_config_vars()["SO"] = ".so"  # it looks for its library by this name
    try:
        import liquidSVM
    except Exception:
        return None
    y = np.where(data.y == np.unique(data.y)[1], 1.0, -1.0)
    seconds, wrong, table = np.inf, np.nan, None
    for threads in (1, WORKERS):
        for _ in range(repeat):
            began = time.perf_counter()
            model = liquidSVM.mcSVM(np.ascontiguousarray(data.X), y, threads=threads, folds=5, display=0)
            passed = time.perf_counter() - began
            if passed < seconds:
                seconds, table = passed, np.asarray(model.errTrain)
                truth = np.where(data.y_test == np.unique(data.y)[1], 1.0, -1.0)
                wrong = float(model.test(np.ascontiguousarray(data.X_test), truth)[1][0, 0])
            model.clean()
    assert table is not None
    n = len(y) * 4 / 5
    grid = {
        "gamma": sorted({float(s) ** -2 for s in table[:, 3]}),
        "C": sorted({1.0 / (2.0 * float(x) * n) for x in table[:, 5]}),
    }
    return {"seconds": seconds, "error": wrong, "grid": grid}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="use bundled and synthetic data")
    parser.add_argument("--repeat", type=int, default=3, help="number of runs of every search")
    parser.add_argument(
        "--out", default="selection_liquidsvm", help="name of the result files in benchmarks/results"
    )
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    small = synthetic(200, 8)
    SVMSearchCV(SVC(), {"C": [1.0, 10.0], "gamma": [0.1, 1.0]}, n_jobs=WORKERS).fit(small.X, small.y)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    rows: list[dict[str, Any]] = []
    for name, fetch in (QUICK if args.quick else SETS).items():
        if name.startswith("friedman1"):  # a regression
            continue
        try:
            data = fetch()
        except MissingData as missing:
            sys.exit(str(missing))
        rival = liquid(data, args.repeat)
        if rival is None:
            print("liquidSVM is not installed: nothing to compare.")
            return
        search = SVMSearchCV(SVC(), rival["grid"], cv=folds, n_jobs=WORKERS)
        seconds, search = timed(search, data, args.repeat)
        tuner_seconds, tuner = timed(SVCCV(n_jobs=WORKERS), data, args.repeat)
        rows.append(
            {
                "set": name,
                "rows": len(data.y),
                "grid": f"{len(rival['grid']['gamma'])} x {len(rival['grid']['C'])}",
                "liquidSVM": rival["seconds"],
                "ours": seconds,
                "liquidSVM error": rival["error"],
                "ours error": float(np.mean(search.predict(data.X_test) != data.y_test)),
                "SVCCV": tuner_seconds,
                "SVCCV error": float(np.mean(tuner.predict(data.X_test) != data.y_test)),
            }
        )
        print(rows[-1], flush=True)
    ratios = [r["liquidSVM"] / r["ours"] for r in rows]
    notes = [f"liquidSVM / ours, geometric mean: {geometric_mean(ratios):.1f} (least {min(ratios):.2f})"]
    ratios = [r["liquidSVM"] / r["SVCCV"] for r in rows]
    points = 100.0 * np.array([r["SVCCV error"] - r["liquidSVM error"] for r in rows])
    notes.append(
        f"liquidSVM / SVCCV, geometric mean: {geometric_mean(ratios):.1f} (least {min(ratios):.2f}); "
        f"test error, SVCCV less liquidSVM: {points.mean():+.2f} +- "
        f"{points.std() / np.sqrt(len(points)):.2f} points"
    )
    how = f"best of {args.repeat}; of {args.repeat} with each number of threads for liquidSVM"
    write(
        args.out,
        "Model selection beside liquidSVM",
        [shown(r) for r in rows],
        notes,
        rows,
        threads="2; the better of 1 and 2 for liquidSVM",
        repetitions=how,
    )


def shown(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "set": row["set"],
        "rows": row["rows"],
        "grid": row["grid"],
        "liquidSVM (s)": f"{row['liquidSVM']:.3g}",
        "ours (s)": f"{row['ours']:.3g}",
        "liquidSVM / ours": f"{row['liquidSVM'] / row['ours']:.2f}",
        "SVCCV (s)": f"{row['SVCCV']:.3g}",
        "liquidSVM / SVCCV": f"{row['liquidSVM'] / row['SVCCV']:.2f}",
        "test error: ours / SVCCV / liquidSVM": f"{row['ours error']:.3f} / {row['SVCCV error']:.3f} / "
        f"{row['liquidSVM error']:.3f}",
    }


if __name__ == "__main__":
    main()
