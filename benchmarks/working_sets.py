"""Time and kernel values with working sets of 2,048, 4,096 and 8,192 places.

    python benchmarks/working_sets.py --quick                 # a few seconds
    python benchmarks/working_sets.py                         # covtype-like; more with MAXMARGIN_DATA

Every problem has a process of its own, in which the sizes and the default ("auto", which lets the set grow)
take turns after a fit of 5,000 rows; the fastest fit of each counts. tol 1e-3, cache 500 MB, two threads.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from datasets import MissingData, covtype_like, load
from peers import PROBLEMS as PEERS
from peers import touch_memory
from report import write

SIZES = (2048, 4096, 8192, None)
# name: (data set, rows, C, gamma), and fits of each size.
PROBLEMS: dict[str, tuple[str, int | None, float, float]] = {
    **{name: PEERS[name] for name in ("a9a C=1", "a9a C=100", "w8a", "ijcnn1", "cod-rna")},
    "covtype": ("covtype_binary_50k", None, 10.0, 1.0),
    **{f"covtype-like {n:,}": ("covtype-like", n, 1.0, 1.0) for n in (50_000, 100_000, 200_000)},
}
QUICK = {"covtype-like 3,000": ("covtype-like", 3_000, 1.0, 1.0)}
REPEAT, REPEAT_LARGE, LARGE = 3, 1, 100_000


def data_of(problem: str) -> tuple[Any, Any, float, float]:
    name, rows, C, gamma = {**PROBLEMS, **QUICK}[problem]
    data = covtype_like(rows or 0) if name == "covtype-like" else load(name, rows)
    return data[0], data[1], C, gamma


def child(problem: str) -> None:
    """Fits of one problem; a JSON line for each size."""
    from maxmargin import SVC
    from maxmargin.solvers import Batch

    warnings.simplefilter("ignore")
    X, y, C, gamma = data_of(problem)
    kind: dict[str, Any] = {"C": C, "gamma": gamma, "cache_size": 500, "n_jobs": 2}
    some = np.random.default_rng(0).permutation(len(y))[:5000]
    for size in SIZES:
        SVC(**kind, solver=Batch(working_set=size)).fit(X[some], y[some])
    best: dict[int | None, dict[str, Any]] = {}
    for turn in range(REPEAT_LARGE if len(y) > LARGE else REPEAT):
        for size in SIZES[turn:] + SIZES[:turn]:
            if problem not in QUICK:
                touch_memory(15_000)
            began = time.perf_counter()
            model = SVC(**kind, solver=Batch(working_set=size)).fit(X, y)
            seconds = time.perf_counter() - began
            if size not in best or seconds < best[size]["s"]:
                values = model.n_kernel_evals_ / (len(y) * len(model.support_))
                best[size] = {
                    "problem": problem,
                    "size": size,
                    "s": seconds,
                    "values": values,
                    "rows": len(y),
                    "svs": len(model.support_),
                    "gap": float(np.sum(model.relative_gap_)),
                }
    for found in best.values():
        print(json.dumps(found), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="run one small problem only")
    parser.add_argument("--out", default=None, help="name of the result files in benchmarks/results")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child)
        return
    rows: list[dict[str, Any]] = []
    for problem in QUICK if args.quick else PROBLEMS:
        try:
            data_of(problem)
        except MissingData as missing:
            print(missing, flush=True)
            continue
        command = [sys.executable, __file__, "--child", problem]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=1800)
        rows += [json.loads(line) for line in done.stdout.splitlines()]
        print(done.stdout, end="", flush=True)
    table = []
    for problem in dict.fromkeys(r["problem"] for r in rows):
        own = {r["size"]: r for r in rows if r["problem"] == problem}
        line: dict[str, Any] = {"problem": problem, "SVs": f"{own[None]['svs']:,}"}
        for size, r in own.items():
            name = "auto" if size is None else f"{size:,}"
            line[f"{name}: s"] = f"{r['s']:.3g}"
            line[f"{name}: values / (n SVs)"] = f"{r['values']:.2f}"
        table.append(line)
    name = args.out or ("working_sets-quick" if args.quick else "working_sets")
    times = f"best of {REPEAT}, {REPEAT_LARGE} above {LARGE:,} rows"
    write(name, "Sizes of the working set", table, ["cache 500 MB"], rows, threads=2, repetitions=times)


if __name__ == "__main__":
    main()
