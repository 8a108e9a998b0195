"""Microseconds per pair step and nanoseconds per kernel value, of this tree and of another commit.

    python benchmarks/steps.py                       # this tree
    python benchmarks/steps.py --against HEAD~3      # and another commit, in turns
    python benchmarks/steps.py --against HEAD~3 --limit 1.25   # exit code 1 if this tree is slower than that
    python benchmarks/steps.py --levels              # code of wheels, by CPU level, and code compiled here
    python benchmarks/steps.py --quick

Only public names are used, so that commits with another internal structure can be compared. The time of a
pair step is that of a fit whose kernel values are cached, divided by its iterations, for problems that fit
one working set (512, 1,024 and 2,048 variables), with one thread. Kernel values are whole rows of a Gram
matrix in float32. The best of several repetitions counts; the two trees are measured in turns.
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

ROOT = Path(__file__).parents[1]
SIZES = (512, 1024, 2048)


def measure(repeat: int) -> dict[str, float]:
    """All figures of the tree that is imported, in the units of their names."""
    import numpy as np
    from sklearn.datasets import make_classification, make_friedman1

    from maxmargin import SVC, SVR, dual
    from maxmargin.gram import Gram
    from maxmargin.solvers import Batch, Stop

    def best(function: Any) -> tuple[float, Any]:
        seconds, result = np.inf, None
        for _ in range(repeat + 1):  # the first compiles
            began = time.perf_counter()
            result = function()
            seconds = min(seconds, time.perf_counter() - began)
        return seconds, result

    found: dict[str, float] = {}
    for n in SIZES:
        X, y = make_classification(n, 10, n_informative=5, flip_y=0.1, random_state=0)
        sign = np.where(y == 1, 1.0, -1.0)
        gram = Gram(X, gamma=0.05, n_jobs=1)
        gram.rows(np.arange(n))
        problem = dual.c_svc(sign, C=100.0)
        seconds, solution = best(
            lambda g=gram, p=problem: Batch(finish=None).solve(p, g, stop=Stop(1e-3, max_iter=20_000))
        )
        found[f"Batch, {n} variables (us/step)"] = 1e6 * seconds / solution.n_iter
        seconds, model = best(lambda X=X, y=y: SVC(C=100.0, gamma=0.05, n_jobs=1).fit(X, y))
        found[f"SVC, {n} rows (us/step)"] = 1e6 * seconds / int(model.n_iter_[0])
        X, y = make_friedman1(n, 10, noise=1.0, random_state=0)
        seconds, model = best(lambda X=X, y=y: SVR(C=10.0, gamma=0.1, epsilon=0.5, n_jobs=1).fit(X, y))
        found[f"SVR, {n} rows (us/step)"] = 1e6 * seconds / int(model.n_iter_)
    for d in (10, 100):
        X = np.random.default_rng(0).normal(size=(4000, d))
        rows = np.arange(1000)

        def values(X: Any = X, rows: Any = rows) -> None:
            Gram(X, gamma=1.0 / X.shape[1], cache_bytes=1 << 28, n_jobs=1).rows(rows)

        seconds, _ = best(values)
        found[f"rbf, {d} features (ns/value)"] = 1e9 * seconds / (4000 * 1000)
    return found


def run(tree: Path, code: str, repeat: int) -> dict[str, float]:
    """The figures of a tree with compiled code from a folder ("0": compiled here), from another process."""
    paths = [str(tree / "src"), str(ROOT / "benchmarks")]
    script = f"import sys; sys.path[:0] = {paths!r}; import json, steps; "
    script += f"print(json.dumps(steps.measure({repeat})))"
    environment = {**os.environ, "MAXMARGIN_CODE": code}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def write_levels(folder: Path) -> dict[str, str]:
    """Compile for each CPU level that can run here; the folders by level."""
    sys.path.insert(0, str(ROOT / "src"))
    from maxmargin._compiled.cpu import suitable_levels
    from maxmargin._compiled.ready_code import file_name
    from maxmargin._warmup.compile import write_level

    found = {}
    for level in suitable_levels():
        found[level.name] = str(folder / level.name)
        write_level(level, folder / level.name / file_name(level))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--against", help="another commit, measured in turns with this tree")
    parser.add_argument("--levels", action="store_true", help="compare code for CPU levels with native code")
    parser.add_argument("--repeat", type=int, default=5, help="number of repetitions in a process")
    parser.add_argument("--turns", type=int, default=3, help="number of processes for each tree")
    parser.add_argument(
        "--limit", type=float, help="exit with 1 if a figure is more than this many times that of --against"
    )
    parser.add_argument("--quick", action="store_true", help="run one turn with one repetition")
    parser.add_argument("--out", default="steps", help="name of the result files in benchmarks/results")
    args = parser.parse_args()
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from report import write

    repeat, turns = (1, 1) if args.quick else (args.repeat, args.turns)
    with tempfile.TemporaryDirectory() as folder:
        trees = {"this tree": (ROOT, "0")}  # compiled here
        if args.against:
            trees[args.against] = (Path(folder) / "tree", "0")
            git = ["git", "-C", str(ROOT), "worktree"]
            subprocess.run([*git, "add", "--detach", str(trees[args.against][0]), args.against], check=True)
        if args.levels:
            trees |= {name: (ROOT, code) for name, code in write_levels(Path(folder)).items()}
        try:
            best: dict[str, dict[str, float]] = {name: {} for name in trees}
            for _ in range(turns):
                for name, (tree, code) in trees.items():
                    for key, value in run(tree, code, repeat).items():
                        best[name][key] = min(value, best[name].get(key, float("inf")))
        finally:
            if args.against:
                subprocess.run([*git, "remove", "--force", str(trees[args.against][0])], check=True)
    rows = []
    for key in best["this tree"]:
        row: dict[str, Any] = {"what": key} | {name: f"{values[key]:.3g}" for name, values in best.items()}
        if args.against:
            row["ratio"] = f"{best['this tree'][key] / best[args.against][key]:.3f}"
        for name in trees if args.levels else ():
            if name not in ("this tree", args.against):
                row[f"{name} / native"] = f"{best[name][key] / best['this tree'][key]:.3f}"
        rows.append(row)
    write(args.out, "Pair steps and kernel values", rows, raw=best, threads=1, repetitions=repeat * turns)
    slower = [row["what"] for row in rows if args.limit and float(row.get("ratio", 0)) > args.limit]
    if slower:
        sys.exit(f"slower than {args.against} by more than {args.limit} times: {', '.join(slower)}")


if __name__ == "__main__":
    main()
