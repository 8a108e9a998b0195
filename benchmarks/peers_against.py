"""The fits of peers.py with this tree and with another commit, in turns.

    python benchmarks/peers_against.py HEAD~20                 # all problems; needs MAXMARGIN_DATA
    python benchmarks/peers_against.py HEAD~20 --only digits diabetes --turns 5
    python benchmarks/peers_against.py HEAD --quick

Each fit runs in a process of its own with the code of one tree, as in peers.py; the fastest of all turns
counts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from datasets import MissingData, load
from peers import PROBLEMS, QUICK, REPEATS, measured
from report import ROOT, geometric_mean, write


def fastest(name: str, tree: Path, threads: int, before: float) -> float:
    """Seconds of a fit with the code of a tree, or what was found before if that is less."""
    os.environ["PYTHONPATH"] = str(tree / "src")
    found = measured(name, "maxmargin", threads, REPEATS.get(name, 3))
    return before if found is None else min(before, float(found["fit"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("commit", nargs="?", default="HEAD", help="the other commit")
    parser.add_argument("--quick", action="store_true", help="run two small problems, one turn")
    parser.add_argument("--only", nargs="*", help="run the problems whose name starts with one of these")
    parser.add_argument("--turns", type=int, default=3, help="processes for each tree and problem")
    parser.add_argument("--threads", type=int, default=2, help="number of threads")
    parser.add_argument(
        "--out", default="peers_against", help="name of the result files in benchmarks/results"
    )
    args = parser.parse_args()
    problems = ["breast_cancer", "diabetes"] if args.quick else list(PROBLEMS)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / "tree"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(other), args.commit], check=True)
        try:
            for name in problems:
                if args.only and not name.startswith(tuple(args.only)):
                    continue
                try:
                    load(*{**PROBLEMS, **QUICK}[name][:2])
                except MissingData as missing:
                    print(missing, flush=True)
                    continue
                best = {ROOT: float("inf"), other: float("inf")}
                for _ in range(1 if args.quick else args.turns):
                    for tree in best:
                        best[tree] = fastest(name, tree, args.threads, best[tree])
                rows.append({"problem": name, "before": best[other], "now": best[ROOT]})
                print(f"{name}: {best[other]:.4g} s before, {best[ROOT]:.4g} s now", flush=True)
        finally:
            subprocess.run([*git, "remove", "--force", str(other)], check=True)
    mean = geometric_mean([row["now"] / row["before"] for row in rows])
    shown = [
        {
            "problem": row["problem"],
            "before s": f"{row['before']:.4g}",
            "now s": f"{row['now']:.4g}",
            "now / before": f"{row['now'] / row['before']:.3f}",
        }
        for row in rows
    ]
    notes = [f"before: commit {args.commit}", f"now / before, geometric mean: {mean:.3f}"]
    repetitions = f"best of {args.turns} processes each, in turns, with the fits of peers.py in each"
    write(args.out, "Fits of peers.py, before and now", shown, notes, rows, threads=args.threads,
          repetitions=repetitions)  # fmt: skip


if __name__ == "__main__":
    main()
