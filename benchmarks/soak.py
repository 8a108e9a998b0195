"""Train on a dask cluster whose workers are killed, stopped, removed and added at random moments.

    python benchmarks/soak.py                    # half an hour
    python benchmarks/soak.py --minutes 5
    python benchmarks/soak.py --quick            # less than a minute, for CI

Every problem is first solved in one process and, undisturbed, on the cluster. Then fits follow one another
while another thread

- kills a worker with SIGKILL (its nanny starts another one),
- stops a worker with SIGSTOP for up to three seconds,
- lets a worker leave, or another one join.

Each solution is compared: with the undisturbed one bit by bit, and with that of one process within both
certificates. A fit that takes longer than five minutes counts as one that hangs, and ends the program. The
exit code is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import faulthandler
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

# The code beside this file is tested, whatever else is installed; other processes inherit the path.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "src")]
from datasets import covtype_like, text_like  # noqa: E402
from report import write  # noqa: E402

# Seconds after which a fit hangs.
HANG = 300.0
# Rows of a chunk at most: all fits of a problem have the same chunks, whatever workers there are.
CHUNK_ROWS = 1000
# Workers at least and at most; seconds between two disturbances, on average.
FEWEST, MOST, PAUSE = 1, 4, 3.0
KINDS = {"kill": 0.5, "stop": 0.15, "leave": 0.15, "join": 0.2}


@dataclass
class Problem:
    """Data and the parameters of an estimator, and the solutions to compare with."""

    estimator: str
    parameters: dict[str, Any]
    X: Any
    y: Any
    local: Any = None
    calm: Any = None
    calm_seconds: float = 0.0
    seconds: list[float] = field(default_factory=list)
    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    slowest_round: float = 0.0


def problems(quick: bool) -> dict[str, Problem]:
    """The problems, small ones in many rounds and larger ones in longer rounds."""
    from maxmargin.solvers import Batch

    n = 1000 if quick else 4000
    few, many = covtype_like(n, seed=1), covtype_like(n if quick else 20_000, seed=2)
    text = text_like(n // 2, d=6000, classes=3)
    small = {"solver": Batch(working_set=128)}
    found = {
        "two classes": Problem("SVC", {"C": 2.0, "gamma": 1.0, **small}, few.X, few.y),
        "float32, 8,192 places": Problem("SVC", {"gamma": 1.0}, many.X.astype(np.float32), many.y),
        "three classes, sparse": Problem("SVC", {**small}, text.X, text.y),
        "regression": Problem("SVR", {"epsilon": 0.1, **small}, few.X, np.sin(4 * few.X[:, 0]) + few.X[:, 1]),
        "tight tolerance": Problem("SVC", {"tol": 1e-8, **small}, few.X[: n // 2], few.y[: n // 2]),
        "novelty": Problem("OneClassSVM", {"nu": 0.1, **small}, few.X, None),
    }
    if quick:
        return {name: found[name] for name in ("two classes", "regression")}
    return found


class Disturber:
    """Disturbs a local cluster at random moments, until `stop`."""

    def __init__(self, cluster: Any, seed: int) -> None:
        self.cluster, self.random = cluster, random.Random(seed)
        self.counts: collections.Counter[str] = collections.Counter()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(self.random.expovariate(1.0 / PAUSE)):
            kind = self.random.choices(list(KINDS), list(KINDS.values()))[0]
            n = len(self.cluster.worker_spec)
            if (kind == "leave" and n <= FEWEST) or (kind == "join" and n >= MOST):
                continue
            with contextlib.suppress(OSError):  # the process is gone already
                if kind == "leave":
                    self.cluster.scale(n - 1)
                elif kind == "join":
                    self.cluster.scale(n + 1)
                elif not self._signal(kind):
                    continue
                self.counts[kind] += 1

    def _signal(self, kind: str) -> bool:
        running = [p for p in (getattr(w, "pid", None) for w in list(self.cluster.workers.values())) if p]
        if not running:
            return False
        pid = self.random.choice(running)
        if kind == "kill":
            os.kill(pid, signal.SIGKILL)
            return True
        os.kill(pid, signal.SIGSTOP)
        self._end.wait(self.random.uniform(0.2, 3.0))
        os.kill(pid, signal.SIGCONT)
        return True


def in_time(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function; the program ends if there is none within `HANG` seconds."""
    outcome: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(function(*arguments))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(HANG)
    if thread.is_alive():
        faulthandler.dump_traceback(all_threads=True)
        raise TimeoutError(f"no result within {HANG:g} s")
    if errors:
        raise errors[0]
    return outcome[0]


def fit(problem: Problem, client: Any) -> Any:
    """A fit on the cluster."""
    import maxmargin.dask

    model = getattr(maxmargin.dask, problem.estimator)(**problem.parameters, distribute=True, client=client)
    return model.fit(problem.X) if problem.y is None else model.fit(problem.X, problem.y)


def fit_here(problem: Problem) -> Any:
    """The same fit in this process."""
    import maxmargin

    model = getattr(maxmargin, problem.estimator)(**problem.parameters)
    return model.fit(problem.X) if problem.y is None else model.fit(problem.X, problem.y)


def same_bits(one: Any, other: Any) -> bool:
    """Whether two models have the same support vectors and coefficients, bit by bit."""
    pairs = [(one.support_, other.support_), (one.intercept_, other.intercept_)]
    pairs += [
        (a.toarray() if sp.issparse(a) else a, b.toarray() if sp.issparse(b) else b)
        for a, b in [(one.dual_coef_, other.dual_coef_)]
    ]
    return all(np.array_equal(a, b) for a, b in pairs)


def within_gaps(one: Any, other: Any) -> bool:
    """Whether two optimal values differ by no more than what both certificates allow."""
    values = [np.array([trace[-1].objective for trace in model.trace_]) for model in (one, other)]
    allowed = np.zeros(len(values[0]))
    for model in (one, other):  # fractions of the value, whatever the scaling of coefficients
        allowed += np.ravel(model.relative_gap_) * np.maximum(np.abs(values[0]), np.abs(values[1]))
    return bool((np.abs(values[0] - values[1]) <= allowed * (1 + 1e-9)).all())


def check(problem: Problem, model: Any) -> None:
    """Compare a solution with the ones of before, and count."""
    traffic = model.traffic_
    problem.counts["fits"] += 1
    problem.counts["same"] += same_bits(model, problem.calm)
    problem.counts["within"] += model.status_ == "solved" and within_gaps(model, problem.local)
    problem.counts["repeated"] += traffic.repeated
    problem.counts["rebuilt"] += traffic.rebuilt
    problem.slowest_round = max(problem.slowest_round, traffic.longest)


def soak(args: argparse.Namespace) -> tuple[dict[str, Problem], Disturber, list[str]]:
    """Fits under disturbance until the time is up; what failed."""
    from distributed import Client, LocalCluster

    from maxmargin.dask import training

    training.chunk_count = lambda n, threads: max(4, n // CHUNK_ROWS)
    todo, failures = problems(args.quick), []
    options: dict[str, Any] = {"memory_limit": 0, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **options) as cluster,
        Client(cluster) as client,
    ):
        for name, problem in todo.items():
            problem.local = fit_here(problem)
            in_time(fit, problem, client)  # the first one waits for code and processes
            began = time.perf_counter()
            problem.calm = in_time(fit, problem, client)
            problem.calm_seconds = time.perf_counter() - began
            print(f"{name}: {problem.calm_seconds:.2f} s undisturbed", flush=True)
        disturber = Disturber(cluster, args.seed)
        disturber.start()
        end = time.perf_counter() + (15.0 if args.quick else 60.0 * args.minutes)
        order = random.Random(args.seed)
        try:
            while time.perf_counter() < end:
                name = order.choice(list(todo))
                problem, began = todo[name], time.perf_counter()
                try:
                    model = in_time(fit, problem, client)
                except TimeoutError as error:
                    problem.counts["hangs"] += 1
                    failures.append(f"{name}: {error}")
                    break
                except Exception as error:
                    problem.counts["errors"] += 1
                    failures.append(f"{name}: {type(error).__name__}: {error}")
                    continue
                problem.seconds.append(time.perf_counter() - began)
                check(problem, model)
        finally:
            disturber.stop()
        failures += left_over(client)
    for name, problem in todo.items():
        for what in ("same", "within"):
            differ = problem.counts["fits"] - problem.counts[what]
            if differ:
                failures.append(f"{name}: {differ} of {problem.counts['fits']} solutions are not {what}")
    return todo, disturber, failures


def left_over(client: Any) -> list[str]:
    """A failure if tasks stay on the cluster when all fits are over."""
    end = time.perf_counter() + 30.0
    while tasks := client.run_on_scheduler(lambda dask_scheduler: list(map(str, dask_scheduler.tasks))):
        if time.perf_counter() > end:
            return [f"{len(tasks)} tasks stay on the cluster: {', '.join(sorted(tasks)[:20])}"]
        time.sleep(0.1)
    return []


def table(todo: dict[str, Problem]) -> list[dict[str, Any]]:
    rows = []
    for name, problem in todo.items():
        counts, seconds = problem.counts, problem.seconds or [float("nan")]
        rows.append(
            {
                "problem": name,
                "rows": f"{problem.X.shape[0]:,}",
                "fits": counts["fits"],
                "same bits": counts["same"],
                "within both gaps": counts["within"],
                "errors": counts["errors"],
                "hangs": counts["hangs"],
                "tasks repeated": counts["repeated"],
                "chunks rebuilt": counts["rebuilt"],
                "slowest round [s]": f"{problem.slowest_round:.1f}",
                "undisturbed fit [s]": f"{problem.calm_seconds:.2f}",
                "median fit [s]": f"{np.median(seconds):.2f}",
                "slowest fit [s]": f"{np.max(seconds):.1f}",
            }
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0, help="duration of the disturbed part")
    parser.add_argument("--seed", type=int, default=0, help="seed of the disturbances")
    parser.add_argument("--quick", action="store_true", help="run two small problems for 15 s")
    parser.add_argument("--out", default="soak", help="name of the result files in benchmarks/results")
    args = parser.parse_args()
    todo, disturber, failures = soak(args)
    done = disturber.counts
    write(
        args.out,
        "Soak: training while workers die, stop, leave and join",
        table(todo),
        [
            f"{done['kill']} kills (SIGKILL), {done['stop']} stops of up to 3 s, {done['leave']} departures "
            f"and {done['join']} arrivals; one to {MOST} workers with one thread each.",
            "Same bits: support vectors, coefficients and intercept are those of the undisturbed fit on the "
            "cluster. Within both gaps: solved, and the optimal value is that of a fit in one process as far "
            "as both certificates say.",
            "Most of a slow round is the start of a process.",
            *(f"FAILED {failure}" for failure in failures),
        ],
        threads="1 per worker",
        repetitions="once, at random moments",
    )
    print(f"{len(failures)} failures")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
