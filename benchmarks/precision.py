"""The cost of precision: time to a certified duality gap of 1e-3, 1e-6 and 1e-8.

    python benchmarks/precision.py                      # needs MAXMARGIN_DATA; about half an hour
    python benchmarks/precision.py --quick              # bundled data, seconds
    python benchmarks/precision.py --only german splice
    python benchmarks/precision.py --draw docs/images/precision.png

scikit-learn, scikit-learn-intelex and maxmargin with each finish of `Batch` and without one, each in its own
process, with the same threads and a cache of 2 GB. A library is fitted with tol = target, then with a tenth
and a hundredth of it, and the relative gap (primal - dual) / (1 + |primal|) of the result is computed here,
in float64 and in the same way for all, from its coefficients; the time of a target is that of the first fit
that meets it (best of --repeat where it is short). For a library that does not meet a target, or that needs
longer than --limit seconds for one fit, smaller targets are skipped.
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
from datasets import MissingData, load, whole
from peers import machine
from report import RESULTS, geometric_mean, write

# Name: data set, rows, C, gamma (None: 1 / features).
PROBLEMS: dict[str, tuple[str, int | None, float, float | None]] = {
    "a9a": ("a9a", None, 100.0, 0.05),
    "covtype": ("covtype_binary_50k", 20_000, 10.0, 1.0),
    "german": ("raetsch_german", None, 100.0, None),
    "splice": ("raetsch_splice", None, 100.0, None),
    "breast_cancer": ("raw breast_cancer", None, 1e4, None),
}
QUICK: dict[str, tuple[str, int | None, float, float | None]] = {
    "quick": ("raw breast_cancer", None, 100.0, None)
}
FINISHES: dict[str, str | None] = {
    "maxmargin": "auto",
    "Newton": "newton",
    "Rosen": "rosen",
    "conjugate": "conjugate",
    "no finish": None,
}
MACHINES = ("scikit-learn", "intelex", *FINISHES)
TARGETS = (1e-3, 1e-6, 1e-8)
CACHE_MB = 2000


def data_of(name: str) -> tuple[Any, Any, float, float]:
    """X, y in -1 / +1, C and gamma of a problem."""
    source, rows, C, gamma = {**PROBLEMS, **QUICK}[name]
    if source == "raw breast_cancer":
        from sklearn.datasets import load_breast_cancer

        X, y = load_breast_cancer(return_X_y=True)
        gamma = 1.0 / (X.shape[1] * X.var())  # scikit-learn's default: the features are not scaled
    elif source.startswith("raetsch"):
        X, y = whole(source)
    else:
        data = load(source, rows)
        X, y = data.X, data.y
    sign = np.where(np.asarray(y) > 0, 1.0, -1.0)
    return X, sign, C, gamma if gamma is not None else 1.0 / X.shape[1]


def relative_gap(X: Any, y: Any, C: float, gamma: float, model: Any) -> float:
    """The certified gap of a model, from its coefficients."""
    from maxmargin import dual
    from maxmargin.gram.gram import Gram

    problem = dual.c_svc(y, C)
    coef = model.dual_coef_
    u = np.zeros(len(y))
    u[model.support_] = (coef.toarray() if hasattr(coef, "toarray") else coef)[0]
    gram = Gram(X, gamma=gamma, dtype="float64", cache_bytes=0)
    # Coefficients as they are published need not add up to zero in the last digits.
    u = problem.repair(np.clip(u, problem.lo, problem.hi))
    with gram.threads:
        return float(problem.relative_gap(u, problem.gradient(u, gram)))


def child(args: argparse.Namespace) -> None:
    """All targets of one library on one problem; what is known so far is written after every fit."""
    X, y, C, gamma = data_of(args.problem)
    if args.machine == "intelex" and hasattr(X, "toarray"):
        X = X.toarray()
    if args.machine in FINISHES:
        from maxmargin.solvers import Batch

        solver = Batch(finish=FINISHES[args.machine])
        base = machine("maxmargin", args.threads)

        def make(**kind: Any) -> Any:
            return base(solver=solver, **kind)
    else:
        make = machine(args.machine, args.threads)
    kind = {"C": C, "gamma": gamma, "cache_size": CACHE_MB}
    warm = np.random.default_rng(0).permutation(len(y))[:5000]
    np.ones(min(CACHE_MB << 17, 4 * len(y) ** 2))  # memory that was never used before is slow at first touch
    for tol in (1e-3, 1e-6):
        make(tol=tol, **kind).fit(X[warm[:1500]], y[warm[:1500]])
    found: dict[str, Any] = {}
    tol = 1e-3
    for target in TARGETS:
        tol = min(tol, target)
        while True:
            seconds: list[float] = []
            while len(seconds) < args.repeat:
                began = time.perf_counter()
                model = make(tol=tol, **kind).fit(X, y)
                seconds.append(time.perf_counter() - began)
                if seconds[-1] > 20:
                    break
            gap = relative_gap(X, y, C, gamma, model)
            if gap <= target or tol < 0.05 * target or min(seconds) > args.limit:
                break
            tol *= 0.1
        entry = {"seconds": min(seconds), "tol": tol, "gap": gap, "reached": gap <= target}
        found[f"{target:g}"] = entry
        Path(args.child).write_text(json.dumps(found))
        if gap > target:
            break


def run(problem: str, who: str, args: argparse.Namespace) -> list[dict[str, Any]]:
    """One library on one problem, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        command = [sys.executable, __file__, "--child", str(out), "--problem", problem, "--machine", who]
        command += ["--threads", str(args.threads), "--repeat", str(args.repeat), "--limit", str(args.limit)]
        environment = {**os.environ, "OMP_NUM_THREADS": str(args.threads)}
        try:
            done = subprocess.run(
                command, env=environment, timeout=4 * args.limit, capture_output=True, text=True, check=False
            )
            if done.returncode:
                print(f"{problem}: {who} failed: {done.stderr.strip().splitlines()[-1:]}", flush=True)
        except subprocess.TimeoutExpired:
            print(f"{problem}: {who} took too long", flush=True)
        found = json.loads(out.read_text()) if out.exists() else {}
    print(problem, who, {t: (round(f["seconds"], 4), f["gap"]) for t, f in found.items()}, flush=True)
    return [{"problem": problem, "machine": who, "target": float(t), **f} for t, f in found.items()]


def summary(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """The table, and the means that matter."""
    seconds = {(r["problem"], r["machine"], r["target"]): r["seconds"] for r in rows if r["reached"]}
    problems = list(dict.fromkeys(r["problem"] for r in rows))
    table = []
    for problem in problems:
        for who in MACHINES:
            mine = [seconds.get((problem, who, t)) for t in TARGETS]
            if any(r["problem"] == problem and r["machine"] == who for r in rows):
                row: dict[str, Any] = {"problem": problem, "machine": who}
                row |= {f"{t:g}": f"{s:.4g} s" if s else "-" for t, s in zip(TARGETS, mine, strict=True)}
                row["1e-6 / 1e-3"] = f"{mine[1] / mine[0]:.2f}" if mine[0] and mine[1] else ""
                for t in TARGETS:
                    ours, theirs = seconds.get((problem, "maxmargin", t)), seconds.get((problem, who, t))
                    row[f"x ours {t:g}"] = f"{theirs / ours:.1f}" if ours and theirs else ""
                table.append(row)
    notes = []
    for who in MACHINES:
        for t in TARGETS:
            pairs = [(seconds.get((p, who, t)), seconds.get((p, "maxmargin", t))) for p in problems]
            ratios = [a / b for a, b in pairs if a and b]
            if ratios and who != "maxmargin":
                notes.append(
                    f"{who} at {t:g}: {geometric_mean(ratios):.2f} times our time, {len(ratios)} problems"
                )
    grown = [(seconds.get((p, "maxmargin", 1e-6)), seconds.get((p, "maxmargin", 1e-3))) for p in problems]
    grown_by = [a / b for a, b in grown if a and b]
    if grown_by:
        notes.append(f"From 1e-3 to 1e-6 costs maxmargin {geometric_mean(grown_by):.2f} times the time")
    return table, notes


# Names in the figure.
NAMES = {"intelex": "scikit-learn-intelex"}


def draw(rows: list[dict[str, Any]], target: Path) -> None:
    """Seconds against the certified gap, one panel per problem."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    problems = list(dict.fromkeys(r["problem"] for r in rows))
    figure, axes = plt.subplots(
        1, len(problems), figsize=(2.4 * len(problems) + 1, 3.4), layout="constrained", squeeze=False
    )
    looks = {
        "scikit-learn": ("o", "white", ":"),
        "intelex": ("s", "black", "--"),
        "maxmargin": ("D", "black", "-"),
    }
    for axis, problem in zip(axes[0], problems, strict=True):
        for who, (marker, fill, line) in looks.items():
            own = [r for r in rows if r["problem"] == problem and r["machine"] == who and r["reached"]]
            axis.plot(
                [r["target"] for r in own],
                [r["seconds"] for r in own],
                marker + line,
                color="black",
                markerfacecolor=fill,
                label=NAMES.get(who, who),
            )
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.invert_xaxis()
        axis.set_xticks(TARGETS, [f"{t:g}" for t in TARGETS])
        axis.minorticks_off()
        axis.set_title(problem, fontsize=10)
        axis.grid(linewidth=0.3)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    axes[0, 0].set_ylabel("seconds to train")
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False,
        title="Time to train to a certified relative gap (missing: not reached)", title_fontsize="large",
    )  # fmt: skip
    figure.supxlabel("certified relative gap", fontsize=10)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="use bundled data only")
    parser.add_argument(
        "--only", nargs="*", help="run these problems, keep the results of the others from an earlier run"
    )
    parser.add_argument(
        "--machines", nargs="*", default=list(MACHINES), choices=MACHINES, help="libraries to run"
    )
    parser.add_argument("--threads", type=int, default=2, help="number of threads")
    parser.add_argument(
        "--repeat", type=int, default=3, help="number of short fits, of which the fastest counts"
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=300.0,
        help="seconds of a fit after which smaller tolerances are skipped",
    )
    parser.add_argument("--out", default="precision", help="name of the result files in benchmarks/results")
    parser.add_argument("--draw", help="file for a figure (needs matplotlib)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--problem", help=argparse.SUPPRESS)
    parser.add_argument("--machine", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args)
        return
    names = list(QUICK) if args.quick else [p for p in PROBLEMS if not args.only or p in args.only]
    rows: list[dict[str, Any]] = []
    try:
        for name in names:
            data_of(name)
            for who in args.machines:
                rows += run(name, who, args)
    except MissingData as missing:
        sys.exit(str(missing))
    path = RESULTS / f"{args.out}.json"
    if args.only and path.exists():
        new = {(r["problem"], r["machine"]) for r in rows}
        kept = [r for r in json.loads(path.read_text())["rows"] if (r["problem"], r["machine"]) not in new]
        rows = sorted(
            kept + rows, key=lambda r: (list(PROBLEMS).index(r["problem"]), MACHINES.index(r["machine"]))
        )
    table, notes = summary(rows)
    how = f"best of {args.repeat} where a fit is short"
    title = "Time to a certified duality gap"
    write(args.out, title, table, notes, rows, threads=args.threads, repetitions=how, keep=bool(args.only))
    if args.draw:
        draw(rows, Path(args.draw))


if __name__ == "__main__":
    main()
