"""Fits with steps along cycles of pair steps, and without them.

    python benchmarks/cycles.py --quick        # a few seconds
    python benchmarks/cycles.py                # friedman1 and california-like; more with MAXMARGIN_DATA
    python benchmarks/cycles.py --only german

`Batch()` beside `Batch(cycles=False)` in the same process, in turns after a first fit of each; one thread,
tol 1e-3, cache 2 GB. Times are seconds of the processor, of whole fits and of the pair loop alone; the
shortest of several counts.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from datasets import MissingData, load, whole
from peers import CACHE_MB, EPSILON, TOL
from peers import PROBLEMS as PEERS
from report import geometric_mean, write

# Name: data set, rows, C, gamma (None: 1 / features).
PROBLEMS: dict[str, tuple[str, int | None, float, float | None]] = {
    "german C=1000": ("raetsch_german", None, 1000.0, None),
    "friedman1 C=100": ("friedman1", 10_000, 100.0, 0.05),
    **{
        name: PEERS[name]
        for name in (
            "friedman1", "california-like", "a9a C=1", "a9a C=100", "cod-rna", "ijcnn1", "w8a", "covtype",
            "digits", "breast_cancer",
        )
    },
}  # fmt: skip
QUICK: dict[str, tuple[str, int | None, float, float | None]] = {
    "friedman1 2,500": ("friedman1", 2500, 100.0, 0.05)
}
REGRESSIONS = ("friedman1", "california-like")
# Rounds, in each of which both are fitted, where it is not 5.
ROUNDS = {"a9a C=100": 3, "friedman1 C=100": 3, "german C=1000": 20, "digits": 20, "breast_cancer": 100}


def data_of(problem: str) -> tuple[Any, Any, float, float]:
    """X, y, C and gamma of a problem."""
    name, rows, C, gamma = {**PROBLEMS, **QUICK}[problem]
    X, y = whole(name) if name.startswith("raetsch") else load(name, rows)[:2]
    return X, y, C, 1.0 / X.shape[1] if gamma is None else gamma


class TimedLoop:
    """Sums up the time of the pair loop of working sets, while it is active."""

    def __init__(self) -> None:
        self.seconds, self.steps = 0.0, 0

    def __enter__(self) -> TimedLoop:
        from maxmargin.solvers.batch import working_set

        self._call = working_set.call

        def timed(function: Any, *arguments: Any, **options: Any) -> Any:
            began = time.process_time()
            steps = self._call(function, *arguments, **options)
            self.seconds += time.process_time() - began
            self.steps += int(steps)
            return steps

        working_set.call = timed
        return self

    def __exit__(self, *error: object) -> None:
        from maxmargin.solvers.batch import working_set

        working_set.call = self._call


def fit(problem: str, cycles: bool, data: tuple[Any, Any, float, float]) -> dict[str, Any]:
    """One fit: seconds of the processor, steps and gap."""
    from maxmargin import SVC, SVR
    from maxmargin.solvers import Batch

    X, y, C, gamma = data
    kind: dict[str, Any] = {"C": C, "gamma": gamma, "tol": TOL, "cache_size": CACHE_MB, "n_jobs": 1}
    solver = Batch(cycles=cycles)
    regression = problem.startswith(REGRESSIONS)
    model = SVR(**kind, epsilon=EPSILON, solver=solver) if regression else SVC(**kind, solver=solver)
    with TimedLoop() as loop:
        began = time.process_time()
        model.fit(X, y)
        seconds = time.process_time() - began
    gap = float(np.max(model.relative_gap_))
    return {"s": seconds, "loop": loop.seconds, "steps": loop.steps, "gap": gap, "svs": len(model.support_)}


def compare(problem: str, rounds: int) -> dict[str, Any]:
    """Both solvers in turns."""
    data = data_of(problem)
    found: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
    for turn in range(rounds + 1):
        for cycles in (False, True) if turn % 2 else (True, False):
            one = fit(problem, cycles, data)
            if turn:
                found[cycles].append(one)
    row: dict[str, Any] = {"problem": problem}
    for cycles, name in ((False, "pairs"), (True, "cycles")):
        runs = found[cycles]
        row |= {
            f"{name}: steps": runs[0]["steps"],
            f"{name}: loop, s": min(r["loop"] for r in runs),
            f"{name}: fit, s": min(r["s"] for r in runs),
            f"{name}: relative gap": runs[0]["gap"],
        }
    for what in ("steps", "loop, s", "fit, s"):
        before = row[f"pairs: {what}"]
        row[f"{what.split(',')[0]}, ratio"] = row[f"cycles: {what}"] / before if before else None
    return row


def shown(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the table; problems that are solved in one compiled call have no loop."""
    line: dict[str, Any] = {"problem": row["problem"]}
    for name in ("pairs", "cycles"):
        steps = row[f"{name}: steps"]
        line[f"{name}: steps"] = f"{steps:,}" if steps else "-"
        line[f"{name}: loop, s"] = f"{row[f'{name}: loop, s']:.3g}" if steps else "-"
        line[f"{name}: fit, s"] = f"{row[f'{name}: fit, s']:.3g}"
    for what in ("steps", "loop", "fit"):
        ratio = row[f"{what}, ratio"]
        line[f"{what}, ratio"] = "-" if ratio is None else f"{ratio:.2f}"
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="run one small problem only")
    parser.add_argument("--only", nargs="+", help="problems whose names contain one of these words")
    parser.add_argument("--out", default=None, help="name of the result files in benchmarks/results")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    for problem in QUICK if args.quick else PROBLEMS:
        if args.only and not any(word in problem for word in args.only):
            continue
        try:
            rows.append(compare(problem, 2 if args.quick else ROUNDS.get(problem, 5)))
        except MissingData as missing:
            print(missing, flush=True)
            continue
        print(shown(rows[-1]), flush=True)
    ratios = [row["fit, ratio"] for row in rows if row["loop, ratio"] is not None]
    notes = ["processor time, tol 1e-3; 'steps' are pair steps, 'loop' is the time of the pair loop"]
    if ratios:
        notes.append(f"fits with a pair loop, geometric mean: {geometric_mean(ratios):.2f}")
    name = args.out or ("cycles-quick" if args.quick else "cycles")
    title = "Steps along cycles of pair steps"
    times = "best of 3 to 100, in turns"
    write(name, title, [shown(row) for row in rows], notes, rows, threads=1, repetitions=times)


if __name__ == "__main__":
    main()
