"""One fit with one thread and with two.

    python benchmarks/threads.py --quick                 # synthetic data, a minute at most
    python benchmarks/threads.py                         # needs MAXMARGIN_DATA
    python benchmarks/threads.py --only a9a covtype --repeat 5

Each library and number of threads has a process of its own, in which a fit on part of the data compiles and
starts threads. Then the processes take turns, one fit each after memory was touched, and the fastest fit of
each counts: of 3, of 1 for 200,000 rows. All fits have tol 1e-3 and a cache of 2,000 MB (500 MB for 200,000
rows). intelex is left out where it is not installed, and for 200,000 rows, with which it takes many minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from datasets import MissingData, covtype_like, load
from peers import CACHE_MB, TOL, machine, touch_memory
from peers import PROBLEMS as PEERS
from report import geometric_mean, write

LARGE = "covtype-like"
# name: (data set, rows, C, gamma)
PROBLEMS: dict[str, tuple[str, int | None, float, float]] = {
    "a9a": PEERS["a9a C=1"],
    **{name: PEERS[name] for name in ("w8a", "ijcnn1", "cod-rna", "covtype", "mnist")},
    LARGE: (LARGE, 200_000, 1.0, 1.0),
}
QUICK: dict[str, tuple[str, int | None, float, float]] = {
    "synthetic": ("synthetic", 6000, 10.0, 0.02),
    "covtype-like 6,000": (LARGE, 6000, 1.0, 1.0),
}
LIBRARIES = ("maxmargin", "intelex")
WARM_ROWS, LARGE_CACHE_MB = 5000, 500


def data_of(problem: str) -> tuple[Any, Any, dict[str, float]]:
    """Rows, labels and the parameters of their fits."""
    name, rows, C, gamma = {**PROBLEMS, **QUICK}[problem]
    cache = LARGE_CACHE_MB if problem == LARGE else CACHE_MB
    kind = {"C": C, "gamma": gamma, "tol": TOL, "cache_size": cache}
    data = covtype_like(rows or 0) if name == LARGE else load(name, rows)
    return data[0], data[1], kind


def child(problem: str, library: str, threads: int) -> None:
    """Fit once for every line of the input; the seconds, rows and support vectors go to the output."""
    warnings.simplefilter("ignore")
    if library == "intelex":
        import daal4py

        daal4py.daalinit(nthreads=threads)
    X, y, kind = data_of(problem)
    make = machine(library, threads)
    warm = np.random.default_rng(0).permutation(len(y))
    for rows in (1500, WARM_ROWS):
        make(**kind).fit(X[warm[:rows]], y[warm[:rows]])
    for _ in sys.stdin:
        if problem not in QUICK:
            touch_memory()
        began = time.perf_counter()
        model = make(**kind).fit(X, y)
        seconds = time.perf_counter() - began
        print(json.dumps({"s": seconds, "rows": len(y), "svs": len(model.support_)}), flush=True)


def timed(problem: str, configurations: list[tuple[str, int]], repeat: int) -> dict[tuple[str, int], Any]:
    """The fastest fit of each configuration (library, threads); they take turns."""
    best: dict[tuple[str, int], Any] = {}
    team = {}
    try:
        for library, threads in configurations:
            command = [sys.executable, __file__, "--child", problem, library, str(threads)]
            environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
            pipe = subprocess.PIPE
            team[library, threads] = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, text=True, env=environment
            )
        for turn in range(repeat):
            # Whoever comes first in a turn finds other caches: each in its turn.
            k = turn % len(configurations)
            for who in configurations[k:] + configurations[:k]:
                process = team[who]
                assert process.stdin is not None and process.stdout is not None
                process.stdin.write("\n")
                process.stdin.flush()
                found = json.loads(process.stdout.readline())
                if who not in best or found["s"] < best[who]["s"]:
                    best[who] = found
                print(f"{problem}: {who[0]}, {who[1]} threads: {found['s']:.3g} s", flush=True)
    finally:
        for process in team.values():
            assert process.stdin is not None
            process.stdin.close()
            process.wait()
    return best


def row_of(problem: str, best: dict[tuple[str, int], Any]) -> dict[str, Any]:
    """A row of the table, with numbers."""
    one, two = best["maxmargin", 1], best["maxmargin", 2]
    row = {
        "problem": problem,
        "rows": one["rows"],
        "one": one["s"],
        "two": two["s"],
        "ratio": one["s"] / two["s"],
        "intelex": None,
    }
    if ("intelex", 2) in best:
        row["intelex"] = best["intelex", 1]["s"] / best["intelex", 2]["s"]
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="run synthetic data only")
    parser.add_argument("--only", nargs="*", choices=list(PROBLEMS), help="problems to run")
    parser.add_argument("--repeat", type=int, default=3, help="fits of each, but 1 for 200,000 rows")
    parser.add_argument("--ours", action="store_true", help="run maxmargin only")
    parser.add_argument("--out", default=None, help="name of the result files in benchmarks/results")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        problem, library, threads = args.child
        child(problem, library, int(threads))
        return
    rows: list[dict[str, Any]] = []
    for problem in QUICK if args.quick else args.only or PROBLEMS:
        rivals = not args.ours and problem != LARGE and find_spec("sklearnex") is not None
        libraries = LIBRARIES if rivals else LIBRARIES[:1]
        repeat = 1 if problem == LARGE else args.repeat
        try:
            data_of(problem)
        except MissingData as missing:
            print(missing, flush=True)
            continue
        rows.append(row_of(problem, timed(problem, [(who, n) for who in libraries for n in (1, 2)], repeat)))
    table = [
        {
            "problem": r["problem"],
            "rows": f"{r['rows']:,}",
            "1 thread s": f"{r['one']:.3g}",
            "2 threads s": f"{r['two']:.3g}",
            "ratio": f"{r['ratio']:.2f}",
            "intelex's ratio": "" if r["intelex"] is None else f"{r['intelex']:.2f}",
        }
        for r in rows
    ]
    notes = []
    some = [r for r in rows if r["problem"] != LARGE]
    if some:
        mean = geometric_mean([r["ratio"] for r in some])
        notes.append(f"geometric mean of the ratios, without 200,000 rows: maxmargin {mean:.2f}")
        theirs = [r["intelex"] for r in some if r["intelex"] is not None]
        notes[0] += f", intelex {geometric_mean(theirs):.2f}" if theirs else ""
    name = args.out or ("threads-quick" if args.quick else "threads")
    times = f"best of {args.repeat}, once for 200,000 rows"
    write(name, "One fit with one thread and with two", table, notes, rows, threads="1, 2", repetitions=times)


if __name__ == "__main__":
    main()
