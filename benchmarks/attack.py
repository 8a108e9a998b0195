"""Test the library's guarantees with random hard problems and an independent verification.

    python benchmarks/attack.py --minutes 120               # all parts
    python benchmarks/attack.py --quick                     # about two minutes, for CI
    python benchmarks/attack.py --only searches --minutes 5
    python benchmarks/attack.py --case certificates:123     # repeat one case, with details

Parts (see the modules in attacks/):

- certificates: fits of every estimator, kernel, solver and difficulty, with gap, KKT conditions and
  feasibility recomputed in long double (attacks/judge.py);
- optimum: the value against an independent solver's;
- unique: row order, warm starts and weights must not change the result;
- searches: scores against GridSearchCV with the same estimator and with scikit-learn's;
- limits: max_time bounds the fit within 0.3 s;
- files: damaged and hostile model files, data files and checkpoints.

Each case runs in its own process: a crash or a hang is a failure of the case. Every failure is printed with
the command that repeats it. The exit code is 1 if a case failed.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

# The code beside this file is attacked, whatever else is installed; other processes inherit the path.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "src")]
from attacks.outcome import Outcome  # noqa: E402
from attacks.workers import ATTEMPTS, HANG, PARTS, Worker, describe, run_case  # noqa: E402
from report import write  # noqa: E402

SHARES = {
    "certificates": 0.45, "searches": 0.18, "limits": 0.13, "unique": 0.08, "optimum": 0.06, "files": 0.10,
}  # fmt: skip
# Cases of the quick form: the same ones on every computer.
QUICK = {"certificates": 150, "searches": 20, "limits": 12, "unique": 80, "optimum": 60, "files": 40}


class Tally:
    """Outcomes by part and label."""

    def __init__(self) -> None:
        self.outcomes: dict[tuple[str, str], list[Outcome]] = collections.defaultdict(list)
        self.failures: list[dict[str, Any]] = []
        self.lock = threading.Lock()

    def add(self, part: str, seed: int, outcome: Outcome) -> None:
        with self.lock:
            self.outcomes[part, outcome.label].append(outcome)
            if outcome.faults:
                case = f"{part}:{seed}"
                what = " ".join(outcome.what.split())
                self.failures.append({"case": case, "what": what, "faults": outcome.faults})
                print(
                    f"FAILED python benchmarks/attack.py --case {case}  # {outcome.faults[0]} | {what[:160]}"
                )
                sys.stdout.flush()

    def rows(self) -> list[dict[str, Any]]:
        out: list[dict[str, Any]] = []
        for (part, label), some in sorted(self.outcomes.items(), key=lambda item: item[0]):
            good = (
                ("solved", "exact", "scores")
                if part != "files"
                else ("scores", "refused", "read", "predicts")
            )
            answered = sum(int(o.answer in good) for o in some)
            worst = max(o.ratio for o in some)
            out.append(
                {
                    "part": part,
                    "what": label,
                    "cases": len(some),
                    "checks": sum(o.checks for o in some),
                    "solved": f"{100 * answered / len(some):.0f} %",
                    "refused": sum(o.answer == "refused" for o in some),
                    "worst true / claimed gap": f"{worst:.3g}" if worst else "",
                    "failures": sum(bool(o.faults) for o in some),
                }
            )
        total: dict[str, Any] = {"part": "all"}
        total |= {key: sum(r[key] for r in out) for key in ("cases", "checks", "refused", "failures")}
        out.append({key: total.get(key, "") for key in out[0]} if out else total)
        return out


def attack(part: str, minutes: float, args: argparse.Namespace, tally: Tally) -> None:
    """Cases of one part until the time is up, or their number is reached."""
    counter = iter(range(QUICK[part] if args.quick else 10**9))
    # The time starts when the first process has compiled what it needs.
    ends: list[float] = []
    lock = threading.Lock()

    def work() -> None:
        worker = Worker(part, args.quick)
        try:
            while True:
                with lock:
                    index = next(counter, None)
                    if index is None or (ends and time.perf_counter() > ends[0]):
                        return
                seed = args.seed * 1_000_000 + index
                tally.add(part, seed, worker.run(seed))
                with lock:
                    if not ends and not args.quick:
                        ends.append(time.perf_counter() + 60.0 * minutes)
        finally:
            worker.stop()

    threads = [threading.Thread(target=work) for _ in range(args.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def one_case(case: str, quick: bool) -> int:
    """Repeat one case here."""
    part, _, seed = case.partition(":")
    print(describe(part, int(seed), quick).what, flush=True)
    faulthandler.dump_traceback_later(5 * HANG[part], exit=True)  # where it is, if it does not end
    outcome = run_case(part, int(seed), quick)
    print(outcome.what)
    print(
        f"answer: {outcome.answer}, checks: {outcome.checks}, worst true / claimed gap: {outcome.ratio:.6g}"
    )
    for fault in outcome.faults:
        print("FAULT", fault)
    return int(bool(outcome.faults))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="duration of the run")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first case")
    parser.add_argument("--quick", action="store_true", help="run smaller problems, about two minutes")
    parser.add_argument("--only", choices=sorted(PARTS), help="run one part")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes at a time")
    parser.add_argument("--case", help="PART:SEED, repeat one case")
    parser.add_argument("--out", default="attack", help="name of the result files in benchmarks/results")
    args = parser.parse_args()
    if args.case:
        return one_case(args.case, args.quick)
    shares = {args.only: 1.0} if args.only else SHARES
    tally = Tally()
    began = time.perf_counter()
    for part, share in shares.items():
        attack(part, args.minutes * share, args, tally)
        if not args.quick or part == list(shares)[-1]:  # a run of hours may be cut
            publish(tally, time.perf_counter() - began, args)
    print(f"{len(tally.failures)} failures in {tally.rows()[-1]['cases']} cases")
    return int(bool(tally.failures))


def publish(tally: Tally, seconds: float, args: argparse.Namespace) -> None:
    """Write the result files."""
    notes = [
        f"{seconds / 60:.1f} minutes" + ("." if args.quick else f" of {args.minutes:g}."),
        "solved: the share of answers with status solved (searches: with scores; files: refused or sound). "
        "Another status, or an infinite gap, is an honest answer.",
        *(
            f"FAILED `python benchmarks/attack.py --case {f['case']}{' --quick' if args.quick else ''}`: "
            f"{json.dumps(f['faults'][0])}"
            for f in tally.failures[:60]
        ),
    ]
    rows = tally.rows()
    write(
        args.out,
        "Attack: certificates, searches, limits and files",
        rows,
        notes,
        {"rows": rows, "failures": tally.failures},
        threads=args.jobs,
        repetitions=f"once; limits the shortest of up to {ATTEMPTS}",
    )


if __name__ == "__main__":
    sys.exit(main())
