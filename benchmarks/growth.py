"""Training time and memory as the number of rows grows.

    python benchmarks/growth.py                     # 10,000 to 1,000,000 rows, up to 10 minutes per fit
    python benchmarks/growth.py --quick             # a minute at most
    python benchmarks/growth.py --draw docs/images/growth.png
    python benchmarks/growth.py --cells             # cells, up to 10,000,000 rows in a file

Data: covtype-like (54 features, 44 of them one-hot, 4 % noise; C=1, gamma=1), made here; and, where
MAXMARGIN_DATA holds cod-rna, its test rows (C=1, gamma=1). Every fit runs in its own process with 2
threads, tol 1e-3 and a cache of 500 MB, after a fit of 5,000 rows that compiles and starts threads. Another
library is not run at sizes for which its growth so far predicts more than the limit. "fit MB" is what the
fit adds to the memory of the process, in which the data, float64, are already.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from datasets import MissingData, covtype_like, load
from peers import MACHINES, machine, memory
from report import write

SIZES = (10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)
QUICK = (1_000, 3_000)
TOL, CACHE_MB = 1e-3, 500


def child(args: argparse.Namespace) -> None:
    """One fit; the numbers go to a file."""
    if args.data == "cod-rna":
        data = load("cod-rna")
        X, y = data.X_test[: args.rows], data.y_test[: args.rows]
        X_test, y_test = data.X[:10_000], data.y[:10_000]
    else:
        X, y, X_test, y_test = covtype_like(args.rows)
    make = machine(args.machine, args.threads)
    kind = {"C": 1.0, "gamma": 1.0, "tol": TOL, "cache_size": CACHE_MB}
    warm = np.random.default_rng(0).permutation(len(y))[:5000]
    make(**kind).fit(X[warm], y[warm])
    np.ones(2 * CACHE_MB << 17)  # memory that was never used before is slow at first touch
    memory(reset=True)
    before = memory()
    began = time.perf_counter()
    model = make(**kind).fit(X, y)
    seconds = time.perf_counter() - began
    result = {
        "n": len(y),
        "fit_s": seconds,
        "n_sv": len(model.support_),
        "peak_mb": (peak := memory()),
        "fit_mb": peak - before,
        "status": getattr(model, "status_", ""),
        "gap": float(np.sum(getattr(model, "dual_gap_", np.nan))),
        "score": float(model.score(X_test, y_test)),
    }
    Path(args.child).write_text(json.dumps(result))


def run(who: str, data: str, rows: int, args: argparse.Namespace) -> dict[str, Any] | None:
    """One fit in a process of its own; None if it failed or took too long."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        command = [sys.executable, __file__, "--child", str(out), "--machine", who, "--data", data]
        command += ["--rows", str(rows), "--threads", str(args.threads)]
        environment = {**os.environ, "OMP_NUM_THREADS": str(args.threads)}
        try:
            # What comes before and after the fit gets a minute.
            done = subprocess.run(
                command, env=environment, timeout=args.limit + 60, capture_output=True, text=True, check=False
            )
        except subprocess.TimeoutExpired:
            print(f"{data} {rows}: {who} took more than {args.limit} s", flush=True)
            return None
        if done.returncode:
            print(f"{data} {rows}: {who} failed: {done.stderr.strip().splitlines()[-1:]}", flush=True)
            return None
        found = json.loads(out.read_text())
    print(f"{data} {rows}: {who} {found['fit_s']:.3g} s, {found['peak_mb']:.0f} MB", flush=True)
    return {"data": data, "machine": who, **found}


def foretold(rows: list[dict[str, Any]], who: str, n: int) -> float:
    """Seconds for n rows at the pace of the last two sizes (quadratic after one)."""
    own = [r for r in rows if r["machine"] == who and r["data"] == "covtype-like"]
    if not own:
        return 0.0
    power = 2.0
    if len(own) > 1:
        power = np.log(own[-1]["fit_s"] / own[-2]["fit_s"]) / np.log(own[-1]["n"] / own[-2]["n"])
    return float(own[-1]["fit_s"] * (n / own[-1]["n"]) ** power)


def draw(rows: list[dict[str, Any]], target: Path) -> None:
    """Time against rows, both logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    looks = {
        "scikit-learn": ("o", "white", ":"),
        "intelex": ("s", "black", "--"),
        "maxmargin": ("D", "black", "-"),
    }
    for who, (marker, fill, line) in looks.items():
        own = [r for r in rows if r["machine"] == who and r["data"] == "covtype-like"]
        if not own:
            continue
        n, seconds = [r["n"] for r in own], [r["fit_s"] for r in own]
        axes.plot(
            n,
            seconds,
            marker + line,
            color="black",
            markerfacecolor=fill,
            label=who.replace("intelex", "scikit-learn-intelex"),
        )
        axes.annotate(
            f" {seconds[-1]:.3g} s", (n[-1], seconds[-1]), textcoords="offset points", xytext=(6, -3)
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    sizes = sorted({r["n"] for r in rows if r["data"] == "covtype-like"})
    axes.set_xticks(sizes, [f"{n:,}" for n in sizes])
    axes.minorticks_off()
    axes.grid(linewidth=0.3)
    axes.margins(x=0.12)
    axes.set_xlabel("rows")
    axes.set_ylabel("seconds to train")
    axes.set_title("Training time over the number of rows, data like covtype")
    axes.legend(loc="upper left", frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="run small sizes only")
    parser.add_argument("--cells", action="store_true", help="train cells instead, on rows in a file")
    parser.add_argument(
        "--machines", nargs="*", default=list(MACHINES), choices=MACHINES, help="libraries to run"
    )
    parser.add_argument("--threads", type=int, default=2, help="number of threads")
    parser.add_argument("--limit", type=float, default=600.0, help="time limit of a fit in seconds")
    parser.add_argument("--out", default=None, help="name of the result files in benchmarks/results")
    parser.add_argument("--draw", help="file for a figure (needs matplotlib)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--machine", help=argparse.SUPPRESS)
    parser.add_argument("--data", help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args)
        return
    if args.cells:
        from growth_cells import run_cells

        run_cells(rows=10_000_000, threads=args.threads, out=args.out or "growth_cells", quick=args.quick)
        return
    rows: list[dict[str, Any]] = []
    given_up: list[str] = []
    if not args.quick and "maxmargin" in args.machines:
        try:
            load("cod-rna")
            found = run("maxmargin", "cod-rna", 200_000, args)
            rows += [found] if found else []
        except MissingData as missing:
            print(missing, flush=True)
    for n in QUICK if args.quick else SIZES:
        for who in args.machines:
            if who in given_up:
                continue
            expected = foretold(rows, who, n)
            found = None
            if expected > args.limit and who != "maxmargin":
                print(f"{n}: {who} is left out, its pace foretells {expected:.0f} s", flush=True)
            else:
                found = run(who, "covtype-like", n, args)
            if found is None:
                given_up.append(who)
            else:
                rows.append(found)
    if args.draw:
        draw(rows, Path(args.draw))
    table = [
        {
            "data": r["data"],
            "rows": f"{r['n']:,}",
            "machine": r["machine"],
            "fit s": f"{r['fit_s']:.4g}",
            "SVs": r["n_sv"],
            "memory MB": f"{r['peak_mb']:.0f}",
            "fit MB": f"{r['fit_mb']:.0f}",
            "status": r["status"],
            "score": f"{r['score']:.4f}",
        }
        for r in rows
    ]
    notes = [
        f"fits of at most {args.limit:g} s; {args.threads} threads, tol {TOL:g}, cache {CACHE_MB} MB each"
    ]
    notes += ["memory: the largest of the whole process, data included; fit: what the fit adds to it"]
    name = args.out or ("growth-quick" if args.quick else "growth")
    write(name, "Growth", table, notes, rows, threads=args.threads, repetitions=1)


if __name__ == "__main__":
    main()
