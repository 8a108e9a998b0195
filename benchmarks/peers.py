"""Compare scikit-learn (LIBSVM), scikit-learn-intelex (oneDAL) and maxmargin.

    python benchmarks/peers.py --quick          # bundled and synthetic data only, under a minute
    python benchmarks/peers.py                  # all problems; needs MAXMARGIN_DATA
    python benchmarks/peers.py --only a9a letter --repeat 1

Every library runs in its own process: a fit on small data of the same kind compiles and loads, then fits are
timed, each after memory was touched. All libraries are fitted equally often on a problem and the fastest fit
counts: 3 times, once where another library takes more than 10 s, more often where fits take milliseconds
(REPEATS; --repeat sets one number for all). All have the same tolerance, cache and threads; but LIBSVM always
uses one thread, so maxmargin is also timed with one ("x ours, 1 thread"). SVC for classes, SVR for numbers
(epsilon 0.1, targets standardised; C and gamma from a small search on 4,000 rows). With --only the results of
other problems are kept from an earlier run; all libraries of one problem are always timed in one run.

The solutions are evaluated here, in the same way for all, in float64: dual objective, KKT violation, support
vectors.
"limit" is the time of computing the kernel rows of the support vectors once, K[SV, all], by matrix product
and exponential (float32, all threads, nothing stored); "rows" is the same by maxmargin's fastest loop; "gap"
is the certified duality gap relative to the objective.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from datasets import REGRESSION, MissingData, load
from report import RESULTS, geometric_mean, write

# name: (data set, rows, C, gamma)
PROBLEMS: dict[str, tuple[str, int | None, float, float]] = {
    "a9a C=1": ("a9a", None, 1.0, 1 / 123),
    "a9a C=100": ("a9a", None, 100.0, 0.05),
    "w8a": ("w8a", None, 64.0, 0.0078),
    "ijcnn1": ("ijcnn1", None, 32.0, 2.0),
    "cod-rna": ("cod-rna", None, 32.0, 1.0),
    "covtype": ("covtype_binary_50k", 20_000, 10.0, 1.0),
    "mnist": ("mnist", 10_000, 10.0, 0.02),
    "letter": ("letter", None, 16.0, 0.5),
    "usps": ("usps", None, 10.0, 0.01),
    "satimage": ("satimage", None, 16.0, 1.0),
    "digits": ("digits", None, 10.0, 0.01),
    "breast_cancer": ("breast_cancer", None, 1.0, 1 / 30),
    "california-like": ("california-like", 20_000, 10.0, 0.02),
    "friedman1": ("friedman1", 10_000, 10.0, 0.05),
    "diabetes": ("diabetes", None, 1.0, 0.02),
}
QUICK: dict[str, tuple[str, int | None, float, float]] = {
    "synthetic": ("synthetic", 4000, 10.0, 0.02),
    "digits": PROBLEMS["digits"],
    "breast_cancer": PROBLEMS["breast_cancer"],
    "friedman1 2,000": ("friedman1", 2000, 10.0, 0.05),
    "diabetes": PROBLEMS["diabetes"],
}
MACHINES = ("scikit-learn", "intelex", "maxmargin")
# Fits of every library on a problem, where it is not 3.
REPEATS = {
    "a9a C=1": 1, "a9a C=100": 1, "cod-rna": 1, "california-like": 1, "w8a": 2, "covtype": 2, "mnist": 2,
    "satimage": 5, "digits": 15, "breast_cancer": 50, "diabetes": 50,
}  # fmt: skip
TOL, CACHE_MB, EPSILON = 1e-3, 2000, 0.1


def machine(name: str, threads: int, regression: bool = False) -> Any:
    """The estimator class behind a name, as a function of its parameters."""
    modules = {"scikit-learn": "sklearn.svm", "intelex": "sklearnex.svm", "maxmargin": "maxmargin"}
    kind = getattr(import_module(modules[name]), "SVR" if regression else "SVC")
    own: dict[str, Any] = {"n_jobs": threads} if name == "maxmargin" else {}
    if regression:
        own["epsilon"] = EPSILON
    return lambda **kw: kind(**own, **kw)


def memory(reset: bool = False) -> float:
    """Largest resident memory in MB so far, where the system states it; `reset` forgets what was before."""
    status, switch = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    if not status.exists():
        return 0.0
    if reset:
        try:
            switch.write_text("5")
        except OSError:
            return 0.0
    return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024


def touch_memory(rows: int | None = None) -> None:
    """Use as much memory as a fit may need, and free it: four kernel matrices of `rows`, 3 GB at most.

    A virtual computer gets memory from its host at the first touch, at a fraction of a gigabyte per second,
    and may return it soon after it was freed.
    """
    most = 3 << 27
    np.empty(most if rows is None else min(most, 4 * rows**2 + (1 << 25))).fill(0.0)


def child(args: argparse.Namespace) -> None:
    """Time one library on one problem; writes arrays and times for the parent to judge."""
    problem, rows, C, gamma = {**PROBLEMS, **QUICK}[args.problem]
    data = load(problem, rows)
    if args.dense:
        data = data._replace(X=data.X.toarray(), X_test=data.X_test.toarray())
    make = machine(args.machine, args.threads, problem in REGRESSION)
    kind = {"C": C, "gamma": gamma, "tol": TOL, "cache_size": CACHE_MB}
    test = data.X_test[:10_000]
    warm = np.random.default_rng(0).permutation(data.X.shape[0])[:1500]
    make(**kind).fit(data.X[warm], data.y[warm]).predict(test[:2000])  # compile, load, start threads
    before = memory(reset=True)
    peak = before
    fits: list[float] = []
    predictions: list[float] = []
    singles: list[float] = []
    for _ in range(args.repeat):
        if args.repeat <= 3:
            touch_memory()
        memory(reset=True)
        began = time.perf_counter()
        model = make(**kind).fit(data.X, data.y)
        fits.append(time.perf_counter() - began)
        peak = max(peak, memory())
    for _ in range(min(args.repeat, 5)):
        began = time.perf_counter()
        model.predict(test)
        predictions.append(time.perf_counter() - began)
    for k in range(50):
        began = time.perf_counter()
        model.predict(test[k : k + 1])
        singles.append(time.perf_counter() - began)
    coef = model.dual_coef_
    np.savez(
        args.child,
        fit=min(fits),
        predict=min(predictions),
        single=float(np.median(singles)),
        peak=peak - before,
        evals=getattr(model, "n_kernel_evals_", 0),
        gap=np.sum(getattr(model, "dual_gap_", np.nan)),
        support=model.support_,
        coef=coef.toarray() if hasattr(coef, "toarray") else coef,
        intercept=model.intercept_,
        score=float(model.score(test, data.y_test[:10_000])),
    )


def judge_regression(data: Any, C: float, gamma: float, result: Any) -> tuple[float, float]:
    """Dual objective and KKT violation of a regressor, in float64."""
    from maxmargin import dual
    from maxmargin.gram.gram import Gram

    coef = np.zeros(len(data.y))
    coef[result["support"].astype(np.intp)] = result["coef"][0]
    problem = dual.epsilon_svr(data.y, EPSILON, C)
    u = np.clip(np.concatenate([np.maximum(coef, 0), np.minimum(coef, 0)]), problem.lo, problem.hi)
    gram = Gram(data.X, gamma=gamma, dtype="float64", cache_bytes=0)
    with gram.threads:
        g = problem.gradient(u, gram)
    return problem.objective(u, g), problem.violation(u, g)


def judge(data: Any, C: float, gamma: float, result: Any) -> tuple[float, float]:
    """Dual objective (summed over class pairs) and largest KKT violation, in float64."""
    from maxmargin import dual
    from maxmargin.gram.gram import Gram

    classes, label = np.unique(data.y, return_inverse=True)
    support, coef = result["support"].astype(np.intp), result["coef"]
    total, worst = 0.0, 0.0
    for a, b in combinations(range(len(classes)), 2):
        rows = np.flatnonzero((label == a) | (label == b))
        sign = np.where(label[rows] == (b if len(classes) == 2 else a), 1.0, -1.0)
        full = np.zeros(len(label))
        if len(classes) == 2:
            full[support] = coef[0]
        else:
            of_a, of_b = label[support] == a, label[support] == b
            full[support[of_a]] = coef[b - 1, of_a]
            full[support[of_b]] = coef[a, of_b]
        problem = dual.c_svc(sign, C)
        gram = Gram(data.X, gamma=gamma, dtype="float64", cache_bytes=0, index=rows)
        u = np.clip(full[rows], problem.lo, problem.hi)
        with gram.threads:
            g = problem.gradient(u, gram)
        total += problem.objective(u, g)
        worst = max(worst, problem.violation(u, g))
    return total, worst


def limit(data: Any, gamma: float, support: Any, threads: int, repeat: int, how: str) -> float:
    """Seconds to compute K[SV, all] once: by matrix product and exponential, or by our fastest loop."""
    from maxmargin._compiled.threads import Threads
    from maxmargin.kernels.kernel import Kernel

    kernel = Kernel("rbf", gamma=gamma)
    if how == "gemm":
        X = data.X.toarray() if hasattr(data.X, "toarray") else data.X
        none = np.ones((1, X.shape[1]))  # laid out as these: densely
        points = kernel.prepare(X, np.float32, like=kernel.prepare(none, np.float32))
    else:
        points = kernel.lay_out(kernel.prepare(data.X, np.float32))
    out = np.zeros((256, points.n), np.float32)
    support = np.asarray(support, dtype=np.intp)
    best = np.inf
    with Threads(threads) as team:
        for _ in range(repeat):
            began = time.perf_counter()
            for s in range(0, len(support), 256):
                A = points.take(support[s : s + 256])
                slots = np.arange(A.n)
                team.run(
                    lambda a, b, A=A, slots=slots: kernel.fill(A, points, a, b, out, slots),
                    team.split(points.n, 1024),
                )
            best = min(best, time.perf_counter() - began)
    return float(best)


def measured(name: str, who: str, threads: int, repeat: int, sparse: bool = False) -> dict[str, Any] | None:
    """The measurements of a process of its own; dense data where sparse ones make it fail."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "result.npz")
        command = [sys.executable, __file__, "--child", out, "--problem", name, "--machine", who]
        command += ["--repeat", str(repeat), "--threads", str(threads)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode and sparse:
            print(f"{name}: {who} failed on sparse data, dense data are tried", flush=True)
            command += ["--dense"]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{name}: {who} failed: {done.stderr.strip().splitlines()[-1:]}", flush=True)
            return None
        with np.load(out) as archive:
            return dict(archive)


def run(name: str, args: argparse.Namespace) -> list[dict[str, Any]]:
    """All libraries on one problem."""
    source, rows, C, gamma = {**PROBLEMS, **QUICK}[name]
    data = load(source, rows)
    repeat = args.repeat or REPEATS.get(name, 3)
    found: list[dict[str, Any]] = []
    for who in args.machines:
        result = measured(name, who, args.threads, repeat, sparse=hasattr(data.X, "toarray"))
        if result is None:
            continue
        one = measured(name, who, 1, repeat) if who == "maxmargin" and args.threads > 1 else None
        regression = source in REGRESSION
        objective, violation = (judge_regression if regression else judge)(data, C, gamma, result)
        found.append(
            {
                "problem": name,
                "machine": who,
                "n": int(data.X.shape[0]),
                "classes": 0 if regression else len(np.unique(data.y)),
                "C": C,
                "repeat": repeat,
                "fit_s": float(result["fit"]),
                "fit_1_s": None if one is None else float(one["fit"]),
                "predict_s": float(result["predict"]),
                "one_row_ms": 1e3 * float(result["single"]),
                "objective": objective,
                "violation": violation,
                "n_sv": len(result["support"]),
                "rows": float(result["evals"]) / data.X.shape[0] or None,
                "gap": float(result["gap"]) if np.isfinite(result["gap"]) else None,
                "peak_mb": float(result["peak"]),
                "score": float(result["score"]),
                "support": result["support"],
            }
        )
    if found:
        support = found[-1]["support"]
        seconds = limit(data, gamma, support, args.threads, min(repeat, 3), "gemm")
        ours = limit(data, gamma, support, args.threads, min(repeat, 3), "ours")
        best = min(row["objective"] for row in found)
        for row in found:
            row["limit_s"], row["our_limit_s"] = seconds, ours
            row["excess"] = (row["objective"] - best) / abs(best)
            del row["support"]
    return found


def draw(rows: list[dict[str, Any]], target: Path) -> None:
    """A picture of the ratios, for the README."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ours = {r["problem"]: r["fit_s"] for r in rows if r["machine"] == "maxmargin"}
    names = list(ours)[::-1]
    figure, axes = plt.subplots(figsize=(8, 0.42 * len(names) + 1.2), layout="constrained")
    alone = {r["problem"]: r["fit_1_s"] or r["fit_s"] for r in rows if r["machine"] == "maxmargin"}
    looks = {
        "scikit-learn": ("scikit-learn", ours, "o", "white"),
        "scikit-learn, maxmargin with 1 thread": ("scikit-learn", alone, "d", "white"),
        "scikit-learn-intelex": ("intelex", ours, "s", "black"),
    }
    for label, (machine_name, mine, marker, fill) in looks.items():
        theirs = {r["problem"]: r["fit_s"] for r in rows if r["machine"] == machine_name}
        shown = [n for n in names if n in theirs]
        axes.plot(
            [theirs[n] / mine[n] for n in shown],
            [names.index(n) for n in shown],
            marker,
            color="black",
            markerfacecolor=fill,
            markersize=8,
            label=label,
        )
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_xticks([0.5, 1, 2, 5, 10, 20, 50, 100], ["0.5", "1", "2", "5", "10", "20", "50", "100"])
    axes.minorticks_off()
    axes.set_yticks(range(len(names)), names)
    axes.grid(axis="x", linewidth=0.3)
    axes.set_xlabel("training time relative to maxmargin (right of 1: maxmargin is faster)")
    title = "Training time of other libraries relative to maxmargin"
    figure.legend(loc="outside upper center", ncols=3, frameon=False, title=title, title_fontsize="large")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=130)


def kept_rows(name: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The new rows among those of the other problems, which an earlier run has written."""
    path = RESULTS / f"{name}.json"
    earlier = json.loads(path.read_text())["rows"] if path.exists() else []
    new = {row["problem"] for row in rows}
    together = [row for row in earlier if row["problem"] not in new] + rows
    order = list({**PROBLEMS, **QUICK})
    return sorted(together, key=lambda row: (order.index(row["problem"]), MACHINES.index(row["machine"])))


def summary(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """The table and the geometric means."""
    ours = {r["problem"]: r for r in rows if r["machine"] == "maxmargin"}
    table = []
    for row in rows:
        mine = ours.get(row["problem"])
        table.append(
            {
                "problem": row["problem"],
                "machine": row["machine"],
                "fit s": f"{row['fit_s']:.4g}",
                "x ours": f"{row['fit_s'] / mine['fit_s']:.1f}" if mine else "",
                "1 thread s": f"{row['fit_1_s']:.4g}" if row["fit_1_s"] else "",
                "x ours, 1 thread": (
                    f"{row['fit_s'] / mine['fit_1_s']:.1f}"
                    if mine and mine["fit_1_s"] and row["machine"] == "scikit-learn"
                    else ""
                ),
                "fits": row.get("repeat", ""),
                "x limit": f"{row['fit_s'] / row['limit_s']:.1f}",
                "x rows": f"{row['fit_s'] / row['our_limit_s']:.1f}",
                "predict s": f"{row['predict_s']:.4g}",
                "one row ms": f"{row['one_row_ms']:.2f}",
                "objective": f"{row['objective']:.8g}",
                "excess": f"{row['excess']:.0e}",
                "violation": f"{row['violation']:.1e}",
                "gap": f"{row['gap'] / abs(row['objective']):.0e}" if row["gap"] is not None else "",
                "SVs": row["n_sv"],
                "rows / SV": f"{row['rows'] / row['n_sv']:.2f}" if row["rows"] else "",
                "peak MB": f"{row['peak_mb']:.0f}",
                "score": f"{row['score']:.4f}",
            }
        )
    notes = []
    kinds = {"": [r for r in rows if r["classes"]], " regression": [r for r in rows if not r["classes"]]}
    for other, (kind, some) in product(MACHINES, kinds.items()):
        pairs = [(r, ours[r["problem"]]) for r in some if r["machine"] == other and r["problem"] in ours]
        if other == "maxmargin" or not pairs:
            continue
        fit = [r["fit_s"] / m["fit_s"] for r, m in pairs]
        large = [r["fit_s"] / m["fit_s"] for r, m in pairs if r["n"] >= 20_000]
        predict = [r["predict_s"] / m["predict_s"] for r, m in pairs]
        single = max(m["one_row_ms"] / r["one_row_ms"] for r, m in pairs)
        notes.append(
            f"fit{kind}, {other} / maxmargin, geometric mean: {geometric_mean(fit):.1f} (least {min(fit):.2f}"
            + (f", n >= 20,000: {geometric_mean(large):.1f}" if large else "")
            + f"); predict: {geometric_mean(predict):.1f} (least {min(predict):.2f}); "
            + f"one row: at worst {single:.2f} of its latency"
        )
        alone = [r["fit_s"] / m["fit_1_s"] for r, m in pairs if m["fit_1_s"]]
        if other == "scikit-learn" and alone:
            notes.append(
                f"fit{kind}, {other} / maxmargin with one thread each, geometric mean: "
                f"{geometric_mean(alone):.1f} (least {min(alone):.2f})"
            )
    threads = [r["fit_1_s"] / r["fit_s"] for r in ours.values() if r["fit_1_s"] and r["n"] >= 20_000]
    two = [r for r in ours.values() if r["n"] >= 5_000 and r["classes"] == 2]
    if threads:
        mean = geometric_mean(threads)
        notes.append(f"one thread / all, n >= 20,000: {mean:.2f} (least {min(threads):.2f})")
    soft = [r for r in two if r["C"] <= 10]
    if soft:
        limits = geometric_mean([r["fit_s"] / r["limit_s"] for r in soft])
        rows_once = geometric_mean([r["fit_s"] / r["our_limit_s"] for r in soft])
        notes.append(
            f"two classes, n >= 5,000, C <= 10: {limits:.2f} times the limit, {rows_once:.2f} times the rows"
        )
    if two:
        computed = geometric_mean([r["rows"] / r["n_sv"] for r in two])
        notes.append(f"two classes, n >= 5,000: {computed:.2f} rows computed per support vector")
    return table, notes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--quick", action="store_true", help="run small problems only, which need no data files"
    )
    parser.add_argument("--only", nargs="*", help="run the problems whose name starts with one of these")
    parser.add_argument(
        "--machines", nargs="*", default=list(MACHINES), choices=MACHINES, help="libraries to run"
    )
    parser.add_argument("--repeat", type=int, help="number of fits of every library, for all problems")
    parser.add_argument("--threads", type=int, default=2, help="number of threads")
    parser.add_argument("--out", default=None, help="name of the result files in benchmarks/results")
    parser.add_argument("--draw", help="file for a figure of the ratios (needs matplotlib)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--dense", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--problem", help=argparse.SUPPRESS)
    parser.add_argument("--machine", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args)
        return
    problems = QUICK if args.quick else PROBLEMS
    rows: list[dict[str, Any]] = []
    for name in problems:
        if args.only and not name.startswith(tuple(args.only)):
            continue
        try:
            rows += run(name, args)
        except MissingData as missing:
            print(missing, flush=True)
            continue
        if rows:
            print(f"{name}: " + ", ".join(f"{r['machine']} {r['fit_s']:.3g} s" for r in rows
                                          if r["problem"] == name), flush=True)  # fmt: skip
    name = args.out or ("peers-quick" if args.quick else "peers")
    rows = kept_rows(name, rows) if args.only else rows
    if args.draw:
        draw(rows, Path(args.draw))
    table, notes = summary(rows)
    threads = f"{args.threads} (LIBSVM uses 1); ours also with 1" if args.threads > 1 else 1
    how = "the quickest of as many fits as the column says, the same for all libraries on a problem"
    write(name, "Peers", table, notes, rows, threads=threads, repetitions=how, keep=bool(args.only))


if __name__ == "__main__":
    main()
