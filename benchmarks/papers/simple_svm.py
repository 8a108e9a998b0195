"""Vishwanathan, Murty: "SSVM: A Simple SVM Algorithm", tables I to V and figure 1.

    python benchmarks/papers/simple_svm.py               # five sets, all C'; needs MAXMARGIN_DATA
    python benchmarks/papers/simple_svm.py --quick       # bundled data, seconds
    python benchmarks/papers/simple_svm.py --only adult-1 --draw docs/images/simple-svm.png

Squared hinge with ridge 1/C', k = exp(-||x - x'||^2 / (2 sigma^2)), until y f(x) > 0.999 for all points.
SimpleSVM in the paper's form and in the block form, NPA on the two hulls, DirectSVM, and the incremental
algorithm (rows arrive one by one, each event updates all rows so far; up to 2,000 rows). "SVs exact" are
those of an independent solution with a violation of at most 1e-8. Kernel evaluations are in millions:
values computed; rows are cached. For DirectSVM and the incremental algorithm they are the values that
their rule uses, as in the paper's text."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
from datasets import MissingData, load
from maxmargin import dual
from maxmargin.gram.gram import Gram
from maxmargin.kernels.kernel import Kernel
from maxmargin.solvers import NPA, Batch, DirectSVM, SimpleSVM, Stop
from maxmargin.solvers.incremental.checked import CheckedMargins
from maxmargin.solvers.incremental.samples import Samples
from report import RESULTS, write

# C', then the paper's iterations, SVs and evaluations of SimpleSVM, SVs and evaluations of NPA (in millions).
Row = tuple[float, int, int, float, int, float]
SPIRALS: list[Row] = [
    (0.03, 192, 194, 0.038, 195, 0.104), (0.1, 192, 194, 0.038, 195, 0.121),
    (0.2, 192, 194, 0.038, 195, 0.134), (0.3, 192, 194, 0.038, 195, 0.143),
    (0.6, 192, 194, 0.038, 195, 0.162), (1.0, 192, 194, 0.038, 195, 0.188),
    (2.0, 199, 194, 0.038, 195, 0.238), (3.0, 201, 194, 0.038, 194, 0.276),
    (5.0, 204, 188, 0.040, 188, 0.340), (10, 204, 184, 0.039, 185, 0.452),
    (50, 240, 182, 0.044, 181, 1.094), (100, 240, 180, 0.045, 181, 1.300),
    (500, 250, 178, 0.054, 179, 1.540), (1000, 250, 176, 0.055, 178, 2.210),
]  # fmt: skip
WISCONSIN: list[Row] = [
    (0.03, 665, 652, 0.490, 652, 1.21), (0.1, 599, 505, 0.518, 505, 1.04),
    (0.2, 587, 473, 0.493, 473, 0.99), (0.3, 549, 434, 0.461, 427, 1.31),
    (0.6, 476, 360, 0.411, 360, 0.74), (1.0, 454, 352, 0.414, 352, 0.85),
    (2.0, 420, 330, 0.384, 330, 0.59), (3.0, 399, 327, 0.372, 327, 0.71),
    (5.0, 400, 320, 0.434, 319, 0.73), (10, 383, 311, 0.406, 311, 0.85),
    (50, 372, 304, 0.456, 303, 0.78), (100, 364, 302, 0.451, 303, 0.78),
    (500, 356, 296, 0.443, 298, 0.69),
]  # fmt: skip
# At C' = 1 the paper's iterations and SVs have changed places.
ADULT1: list[Row] = [
    (0.03, 1603, 1602, 2.58, 1602, 7.4), (0.1, 1535, 1377, 3.07, 1377, 8.1),
    (0.2, 1459, 1246, 3.03, 1246, 8.5), (0.3, 1394, 1192, 2.99, 1191, 7.9),
    (0.6, 1315, 1119, 2.83, 1118, 8.9), (1.0, 1272, 1077, 2.73, 1077, 9.6),
    (2.0, 1257, 1032, 2.77, 1032, 10.6), (3.0, 1252, 996, 2.90, 996, 11.5),
    (5.0, 1217, 951, 2.23, 950, 11.9), (10, 1191, 898, 2.88, 898, 14.1),
    (50, 1176, 776, 2.82, 776, 26.2), (100, 1188, 735, 3.18, 734, 33.7),
    (500, 1200, 687, 3.08, 687, 56.9), (1000, 1224, 677, 3.20, 677, 66.0),
]  # fmt: skip
ADULT4: list[Row] = [
    (0.03, 4554, 4112, 26.5, 4111, 58.8), (0.1, 4051, 3571, 25.7, 3569, 62.2),
    (0.2, 3799, 3384, 24.5, 3383, 68.4), (0.3, 3700, 3305, 23.9, 3305, 70.4),
    (0.6, 3605, 3201, 24.0, 3199, 82.6), (1.0, 3552, 3117, 23.6, 3116, 89.6),
    (2.0, 3517, 2999, 24.4, 2998, 98.8), (3.0, 3466, 2911, 26.6, 2915, 98.7),
    (5.0, 3448, 2882, 26.3, 2824, 115.1), (10, 3486, 2679, 26.4, 2680, 150.6),
    (50, 3336, 2313, 26.4, 2371, 355.5), (100, 3420, 2194, 30.6, 2242, 460.8),
    (500, 3590, 2032, 27.4, 2034, 1023.3), (1000, 3662, 1967, 30.2, 1968, 1468.9),
]  # fmt: skip
ADULT7: list[Row] = [
    (1.0, 11284, 10035, 307, 10181, 1131), (10, 10958, 8833, 364, 9343, 2053),
    (50, 10540, 7654, 392, 8393, 5105),
]  # fmt: skip
# Data set, whether its values are taken as they are, sigma^2, the paper's table.
SETS: dict[str, tuple[str, bool, float, list[Row]]] = {
    "spirals": ("two-spirals", True, 0.5, SPIRALS),
    "wisconsin": ("wisconsin-breast-cancer", True, 4.0, WISCONSIN),
    "adult-1": ("a1a", False, 10.0, ADULT1),
    "adult-4": ("a4a", False, 10.0, ADULT4),
    "adult-7": ("a7a", False, 10.0, ADULT7),
}
QUICK: dict[str, tuple[str, bool, float, list[Row]]] = {
    "breast_cancer": ("breast_cancer", False, 15.0, [(1.0, 0, 0, 0.0, 0, 0.0)])
}
# Rows up to which the rivals without kept rows, and the incremental algorithm, are run; rows for NPA.
SMALL, MIDDLE = 2000, 5000


def incremental(X: Any, y: Any, gamma: float, ridge: float) -> tuple[int, float]:
    """Rows one by one: support vectors, and the kernel values that the sensitivities of all rows use."""

    class Counted(CheckedMargins):
        used = 0

        def update(self, base: Any) -> None:
            super().update(base)
            self.used += self.n * max(1, self.active.size)

    samples = Samples(Kernel("rbf", gamma=gamma), most_bytes=1 << 32, n_jobs=1)
    machine = Counted(samples, factor_bytes=1 << 32)
    for k in range(len(y)):
        machine.append(samples.append(X[[k]]), y[[k]], np.array([ridge]), np.array([np.inf]))
        machine.make_exact()
    return int(np.count_nonzero(machine.u)), machine.used


def one(X: Any, y: Any, gamma: float, C: float, repeat: int, forms: Sequence[str] = ()) -> dict[str, Any]:
    """All solvers for one C', or some of them."""
    n = len(y)
    ridge = 1.0 / C
    problem = dual.squared_c_svc(y, ridge)
    stop = Stop(1e-3, criterion="paper")

    def gram() -> Gram:
        return Gram(X, gamma=gamma, dtype="float64", cache_bytes=min(8 * n * (n + 64), 3 << 30))

    found: dict[str, Any] = {}
    if not forms:
        exact = Batch().solve(problem, gram(), stop=Stop(1e-8))
        found["exact"] = {"svs": int(np.count_nonzero(exact.u)), "objective": exact.objective}
    runs: dict[str, Any] = {
        "simple": (SimpleSVM(), stop, problem),
        "block": (SimpleSVM(block=True), stop, problem),
        "batch": (Batch(), Stop(1e-3), problem),
    }
    if n <= MIDDLE:
        runs["npa"] = (NPA(), Stop(1e-3), dual.nearest_points(y, ridge))
    if n <= SMALL:
        runs["direct"] = (DirectSVM(restarts=0), Stop(1e-3), problem)
    for name, (solver, rule, which) in runs.items():
        if forms and name not in forms:
            continue
        best = np.inf
        for _ in range(1 if name in ("npa", "direct") else repeat):
            rows = gram()
            began = time.perf_counter()
            solution = solver.solve(which, rows, stop=rule)
            best = min(best, time.perf_counter() - began)
            if best > 5:
                break
        found[name] = {
            "svs": int(np.count_nonzero(solution.u)),
            # Of the block form the rounds, without the pair steps of its coarse run.
            "steps": int(solution.details["learnt"]) if name == "block" else solution.n_iter,
            "evals": solution.n_kernel_evals,
            "seconds": best,
            "status": str(solution.status),
            "objective": solution.objective,
            **solution.details,
        }
    if n <= SMALL and not forms:
        svs, used = incremental(X, y, gamma, ridge)
        found["incremental"] = {"svs": svs, "evals": used}
    return found


def millions(found: dict[str, Any], name: str) -> str:
    return f"{found[name]['evals'] / 1e6:.3g}" if name in found else ""


def table(name: str, n: int, paper: Row, found: dict[str, Any]) -> dict[str, Any]:
    C, itr, svs, evals, _, npa_evals = paper
    simple, block = found["simple"], found["block"]
    direct = found.get("direct", {})
    return {
        "set": name,
        "C'": f"{C:g}",
        "paper: Itr / SVs / evals": f"{itr} / {svs} / {evals:g}" if itr else "",
        "ours": f"{simple['steps']} / {simple['svs']} / {simple['evals'] / 1e6:.3g}",
        "SVs exact": found["exact"]["svs"],
        "evals / (n SVs)": f"{simple['evals'] / (n * found['exact']['svs']):.2f}",
        "backtracked": f"{simple['backtracked'] / max(1, simple['steps']):.0%}",
        "s": f"{simple['seconds']:.3g}",
        "block: rounds / SVs / evals": f"{block['steps']} / {block['svs']} / {block['evals'] / 1e6:.3g}",
        "block, Batch: s": f"{block['seconds']:.3g}, {found['batch']['seconds']:.3g}",
        "NPA evals: paper / ours": f"{npa_evals:g} / {millions(found, 'npa')}"
        if itr
        else millions(found, "npa"),
        "DirectSVM: steps / evals / wrong signs": " / ".join(
            [str(direct["steps"]), millions(found, "direct"), str(direct["wrong"])] if direct else []
        ),
        "incremental": millions(found, "incremental"),
    }


def draw(raw: list[dict[str, Any]], target: Path) -> None:
    """Figure 1: kernel evaluations against C', on adult-4."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = [r for r in raw if r["set"] == "adult-4"] or raw
    C = [r["C"] for r in rows]
    figure, axis = plt.subplots(figsize=(5.2, 3.6), layout="constrained")
    looks = {
        "NPA, paper": ([r["paper"][5] for r in rows], "s:", "white"),
        "NPA": ([r["found"]["npa"]["evals"] / 1e6 for r in rows if "npa" in r["found"]], "s-", "black"),
        "SimpleSVM, paper": ([r["paper"][3] for r in rows], "o:", "white"),
        "SimpleSVM": ([r["found"]["simple"]["evals"] / 1e6 for r in rows], "o-", "black"),
        "block form": ([r["found"]["block"]["evals"] / 1e6 for r in rows], "^-", "black"),
    }
    for name, (values, line, fill) in looks.items():
        if len(values) == len(C) and any(values):
            axis.plot(
                C, values, line, color="black", markerfacecolor=fill, markersize=5, linewidth=1, label=name
            )
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("C'")
    axis.set_ylabel("kernel evaluations (millions)")
    axis.set_title(f"Kernel evaluations over C', {rows[0]['set']}")
    axis.legend(frameon=False, fontsize=8)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=140)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="use bundled data and one C'")
    parser.add_argument(
        "--only", nargs="*", help="run these sets, keep the results of the others from an earlier run"
    )
    parser.add_argument(
        "--forms", nargs="*", default=[], help="measure these forms only, keep the other results"
    )
    parser.add_argument("--repeat", type=int, default=2, help="number of fits, of which the fastest counts")
    parser.add_argument("--out", default="simple_svm", help="name of the result files in benchmarks/results")
    parser.add_argument("--draw", help="file for a figure (needs matplotlib)")
    args = parser.parse_args()
    sets = QUICK if args.quick else {k: v for k, v in SETS.items() if not args.only or k in args.only}
    raw: list[dict[str, Any]] = []
    path = RESULTS / f"{args.out}.json"
    before = json.loads(path.read_text())["rows"] if args.forms else []
    if args.only and path.exists():
        raw = [r for r in json.loads(path.read_text())["rows"] if r["set"] not in args.only]
    for name, (source, as_it_is, sigma2, paper) in sets.items():
        try:
            data = load(source, 300 if args.quick else None, raw=as_it_is)
        except MissingData as missing:
            sys.exit(str(missing))
        y = np.where(np.asarray(data.y) == np.max(data.y), 1.0, -1.0)
        X = data.X.toarray() if hasattr(data.X, "toarray") and data.X.shape[0] < SMALL else data.X
        some = np.random.default_rng(0).permutation(len(y))[:60]
        one(X[some], y[some], 0.5 / sigma2, 1.0, 1)  # compiled and loaded
        for row in paper:
            found = one(X, y, 0.5 / sigma2, row[0], args.repeat, args.forms)
            for old in (r["found"] for r in before if r["set"] == name and r["C"] == row[0]):
                found = {**old, **found}
            raw.append({"set": name, "n": len(y), "C": row[0], "paper": row, "found": found})
            print(table(name, len(y), row, found), flush=True)
    order = list(SETS)
    raw.sort(key=lambda r: order.index(r["set"]) if r["set"] in order else -1)
    rows = [table(r["set"], r["n"], tuple(r["paper"]), r["found"]) for r in raw]
    share = [r["found"]["simple"]["backtracked"] / max(1, r["found"]["simple"]["steps"]) for r in raw]
    slower = [r["found"]["block"]["seconds"] / r["found"]["batch"]["seconds"] for r in raw]
    rounds = {r["set"]: [q["found"]["block"]["steps"] for q in raw if q["set"] == r["set"]] for r in raw}
    ratios = {name: [t for r, t in zip(raw, slower, strict=True) if r["set"] == name] for name in rounds}
    notes = [
        f"Steps that had to backtrack: {np.mean(share):.0%} on average, at most {max(share):.0%}",
        f"The block form takes {min(slower):.2f} to {max(slower):.2f} times the time of Batch: "
        + ", ".join(f"{name} {min(r):.2f} to {max(r):.2f}" for name, r in ratios.items()),
        "Rounds of the block form after its coarse run of Batch (0: none, or an S that is left to Batch): "
        + ", ".join(f"{name} {min(r)} to {max(r)}" for name, r in rounds.items()),
    ]
    how = f"best of {args.repeat}; NPA, DirectSVM and fits above 5 s once"
    keep = bool(args.only or args.forms)
    title = "SimpleSVM, tables I to V"
    write(args.out, title, rows, notes, raw, threads="all cores", repetitions=how, keep=keep)
    if args.draw:
        draw(raw, Path(args.draw))


if __name__ == "__main__":
    main()
