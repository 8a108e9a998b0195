"""López, Dorronsoro: "Rosen's Projection Method for SVM Training", tables 1 and 2, and beyond.

    python benchmarks/papers/rosen.py               # six sets, 100 partitions; needs MAXMARGIN_DATA
    python benchmarks/papers/rosen.py --quick       # bundled data, two partitions

First-order SMO (Keerthi's modification 2) and both forms of Rosen's method on the hinge dual, eps 1e-3 and
1e-6. A step is a line search; a face is what lies between two looks at all multipliers ("releases"). Kernel
values are counted alike for all: "reads" are the values that enter a step or an update of the gradient, each
time they do, whether they are kept or not (two rows of N values for an iteration of SMO, one row of the block
for each variable that moves in a step of Rosen's method); "computed" are the values that have to be computed,
all of which are kept (for SMO the rows of the variables that move; those that it fetches ahead of their use
are not counted). Times are processor times of one thread. The accuracies of SMO and of each form are compared
by the Wilcoxon rank-sum test.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import ranksums

sys.path.insert(0, str(Path(__file__).parent.parent))
from datasets import MissingData, partitions
from maxmargin import dual
from maxmargin.gram.gram import Gram
from maxmargin.solvers import SMO, Rosen, Solver, State, Stop
from maxmargin.solvers.papers.rosen import Faces
from report import write

# Data set, C, sigma of exp(-||x - x'||^2 / sigma); the paper's SVs and iterations of SMO and Rosen at 1e-3,
# then at 1e-6.
SETS: dict[str, tuple[str, float, float, tuple[float, ...]]] = {
    "titanic": ("raetsch_titanic", 1e5, 2, (69.3, 143.5, 92.0, 141.4, 69.3, 214.2, 92.4, 145.2)),
    "heart": ("raetsch_heart", 3.162, 120, (82.5, 149.8, 83.4, 65.6, 82.5, 331.9, 83.5, 65.7)),
    "cancer": (
        "raetsch_breast-cancer",
        15.19,
        50,
        (114.1, 1431.5, 116.4, 592.1, 113.9, 4711.5, 116.4, 596.0),
    ),
    "thyroid": ("raetsch_thyroid", 10, 3, (25.3, 213.5, 24.8, 70.5, 25.3, 519.2, 24.8, 70.6)),
    "diabetes": ("raetsch_diabetis", 1, 20, (264.9, 360.1, 266.5, 181.3, 264.8, 730.1, 266.5, 181.7)),
    "flare": ("raetsch_flare-solar", 1.023, 30, (480.7, 608.7, 513.1, 339.8, 481.2, 1837.3, 513.2, 394.6)),
}
QUICK: dict[str, tuple[str, float, float, tuple[float, ...]]] = {
    "breast_cancer": ("breast_cancer", 10.0, 60.0, ())
}
TOLERANCES = (1e-3, 1e-6)


class Counted(Rosen):
    """Rosen's method that counts its faces, and the bounds that were hit on them."""

    faces: int = 0
    hits: int = 0

    def advance(self, state: State, work: Faces) -> None:
        before = int(np.count_nonzero((state.u > state.problem.lo) & (state.u < state.problem.hi)))
        super().advance(state, work)
        self.faces += 1
        after = int(np.count_nonzero((state.u > state.problem.lo) & (state.u < state.problem.hi)))
        self.hits += max(0, before + 1 - after)


def needed(X: Any, problem: dual.Dual, sigma: float, tol: float) -> int:
    """Kernel values of the rows that SMO uses, without those that it fetches ahead."""
    gram = Gram(X, "rbf", gamma=1.0 / sigma, dtype="float64", n_jobs=1)
    return SMO("first-order", prefetch=0).solve(problem, gram, stop=Stop(tol)).n_kernel_evals


def one(
    X: Any, y: Any, X_test: Any, y_test: Any, C: float, sigma: float, repeat: int
) -> dict[Any, dict[str, float]]:
    """All solvers on one partition."""
    problem = dual.c_svc(y, C=C)
    distances = ((X_test[:, None, :] - X[None]) ** 2).sum(axis=2)
    kernel = np.exp(-distances / sigma)
    out: dict[Any, dict[str, float]] = {}
    for tol in TOLERANCES:
        for name in ("SMO", "steepest", "conjugate"):
            best = np.inf
            for _ in range(repeat):
                solver: Solver[Any] = SMO("first-order") if name == "SMO" else Counted(name)
                gram = Gram(X, "rbf", gamma=1.0 / sigma, dtype="float64", n_jobs=1)
                began = time.process_time()
                solution = solver.solve(problem, gram, stop=Stop(tol))
                best = min(best, time.process_time() - began)
                if best > 0.1:
                    break
            score = kernel @ solution.u - solution.offset[0]
            out[name, tol] = {
                "svs": int(np.count_nonzero(solution.u)),
                "steps": solution.n_iter,
                "faces": getattr(solver, "faces", 0),
                "hits": getattr(solver, "hits", 0),
                "reads": solution.n_kernel_calls,
                "computed": needed(X, problem, sigma, tol) if name == "SMO" else solution.n_kernel_evals,
                "ms": 1e3 * best,
                "objective": solution.objective,
                "violation": solution.violation,
                "solved": float(solution.status == "solved"),
                "accuracy": float(np.mean(np.where(score >= 0, 1.0, -1.0) == y_test)),
            }
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="use bundled data and two partitions")
    parser.add_argument("--only", nargs="*", help="run these sets only")
    parser.add_argument("--partitions", type=int, default=100, help="number of partitions")
    parser.add_argument("--repeat", type=int, default=2, help="number of fits, of which the fastest counts")
    parser.add_argument(
        "--jobs", type=int, default=1, help="number of processes; more than one makes the times inexact"
    )
    parser.add_argument("--out", default="rosen", help="name of the result files in benchmarks/results")
    args = parser.parse_args()
    sets = QUICK if args.quick else {k: v for k, v in SETS.items() if not args.only or k in args.only}
    steps: list[dict[str, Any]] = []
    costs: list[dict[str, Any]] = []
    raw: list[dict[str, Any]] = []
    for name, (data, C, sigma, paper) in sets.items():
        try:
            parts = partitions(data, 2 if args.quick else args.partitions)
        except MissingData as missing:
            sys.exit(str(missing))
        if not raw:  # compiled and loaded
            X, y, X_test, y_test = parts[0]
            one(X[:80], y[:80], X_test, y_test, 1.0, sigma, 1)
        found = Parallel(n_jobs=args.jobs)(delayed(one)(*part, C, sigma, args.repeat) for part in parts)
        for which, tol in enumerate(TOLERANCES):
            column = {
                solver: {key: np.array([f[solver, tol][key] for f in found]) for key in found[0][solver, tol]}
                for solver in ("SMO", "steepest", "conjugate")
            }
            mean = {s: {k: float(v.mean()) for k, v in values.items()} for s, values in column.items()}
            smo = column["SMO"]
            same = {
                s: float(ranksums(smo["accuracy"], column[s]["accuracy"]).pvalue)
                for s in ("steepest", "conjugate")
            }
            raw.append({"set": name, "tol": tol, "paper": paper, "p": same, **mean})
            row: dict[str, Any] = {"set": name, "eps": f"{tol:g}"}
            given = paper[4 * which : 4 * which + 4]
            row["paper: SVs SMO / Rosen"] = f"{given[0]} / {given[2]}" if paper else ""
            row["iters SMO / Rosen"] = f"{given[1]} / {given[3]}" if paper else ""
            row["ours: SVs SMO / steepest / conj."] = " / ".join(f"{mean[s]['svs']:.1f}" for s in mean)
            row["steps"] = " / ".join(f"{mean[s]['steps']:.1f}" for s in mean)
            row["faces"] = " / ".join(f"{mean[s]['faces']:.1f}" for s in ("steepest", "conjugate"))
            row["releases + hits (steepest)"] = f"{mean['steepest']['faces'] + mean['steepest']['hits']:.1f}"
            steps.append(row)
            costs.append(
                {
                    "set": name,
                    "eps": f"{tol:g}",
                    "reads (thousands) SMO / steepest / conj.": " / ".join(
                        f"{mean[s]['reads'] / 1e3:.0f}" for s in mean
                    ),
                    "reads conj. / SMO": f"{mean['conjugate']['reads'] / mean['SMO']['reads']:.2f}",
                    "computed (thousands)": " / ".join(f"{mean[s]['computed'] / 1e3:.1f}" for s in mean),
                    "computed conj. / SMO": f"{mean['conjugate']['computed'] / mean['SMO']['computed']:.2f}",
                    "ms SMO / steepest / conj.": " / ".join(f"{mean[s]['ms']:.2f}" for s in mean),
                    "ms conj. / SMO": f"{mean['conjugate']['ms'] / mean['SMO']['ms']:.2f}",
                    "accuracy": " / ".join(f"{100 * mean[s]['accuracy']:.2f}" for s in mean),
                    "p steepest / conj.": f"{same['steepest']:.2f} / {same['conjugate']:.2f}",
                }
            )
        print(steps[-2:], costs[-2:], flush=True)
    growth = [
        f"{a['set']} {b[s]['steps'] / a[s]['steps']:.3f}"
        for s in ("steepest",)
        for a, b in zip(raw[::2], raw[1::2], strict=True)
    ]
    notes = [
        f"{len(found)} partitions, standardised; means. Steps at 1e-6 relative to 1e-3, steepest: "
        f"{', '.join(growth)}.",
    ]
    how = f"{len(found)} partitions, the quickest of {args.repeat} fits (1 where a fit takes 0.1 s)"
    threads = 1 if args.jobs == 1 else f"1 ({args.jobs} processes)"
    title = "Rosen's method, tables 1 and 2: support vectors and steps"
    write(args.out, title, steps, notes, raw, threads=threads, repetitions=how)
    title = "Rosen's method: kernel values, time, accuracy"
    write(f"{args.out}_costs", title, costs, threads=threads, repetitions=how)


if __name__ == "__main__":
    main()
