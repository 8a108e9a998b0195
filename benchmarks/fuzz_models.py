"""Load damaged and hostile model files: every one must load or raise `ModelFileError`.

    python benchmarks/fuzz_models.py                        # 100,000 mutations, some minutes
    python benchmarks/fuzz_models.py --quick                # 500
    python benchmarks/fuzz_models.py --seed 3 --only 1234   # repeat one mutation in this process

Files of every estimator and pipeline, in the native format and in LIBSVM's, are mutated (see mutations.py):
at random, and on purpose with a correct checksum. Each is loaded and, where that succeeds, used to predict.
This happens in separate processes whose address space may grow by --memory megabytes over that of the
undamaged files, and in which a mutation may take at most --seconds. A crash, an exception other than
ModelFileError, too much memory or too much time is a failure, and is reported with its number.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import json
import multiprocessing
import queue
import resource
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from report import write


def _alarm(*_: Any) -> None:
    raise TimeoutError("too much time")


def limit_memory(megabytes: int) -> None:
    """Let the address space grow by so much and no more."""
    status = Path("/proc/self/statm")
    if status.exists():
        now = int(status.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + megabytes * 2**20, resource.RLIM_INFINITY))


def work(args: argparse.Namespace, which: range, progress: Any, results: Any) -> None:
    """The mutations of one process."""
    warnings.simplefilter("ignore")
    source = importlib.import_module(args.source)
    base = source.files()
    for form, of_form in base.items():
        for data in of_form.values():
            assert source.outcome(form, data) == source.SOUND
    limit_memory(args.memory)
    signal.signal(signal.SIGALRM, _alarm)
    counts: collections.Counter[tuple[str, str, str]] = collections.Counter()
    failures, slowest = [], 0.0
    for index in which:
        progress.value = index
        form, name, way, data = source.mutation(base, args.seed, index)
        began = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, args.seconds)
        try:
            result = source.outcome(form, data)
        except BaseException as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            result = "FAILED"
            what = f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
            failures.append({"index": index, "format": form, "file": name, "way": way, "error": what[:300]})
        signal.setitimer(signal.ITIMER_REAL, 0)
        slowest = max(slowest, time.perf_counter() - began)
        counts[form, way, result] += 1
    results.put(([(*key, n) for key, n in counts.items()], failures, slowest))


def run(args: argparse.Namespace) -> tuple[dict[tuple[str, str, str], int], list[dict[str, Any]], float]:
    """Counts by format, way and outcome; the failures; the longest time."""
    if args.jobs == 0:
        here: queue.SimpleQueue[Any] = queue.SimpleQueue()
        work(args, range(args.mutations), SimpleNamespace(value=0), here)
        some, failures, slowest = here.get()
        return {(form, way, result): n for form, way, result, n in some}, failures, slowest
    context = multiprocessing.get_context("spawn")
    jobs = []
    for k in range(args.jobs):
        progress, results = context.Value("l", -1), context.Queue()
        which = range(k, args.mutations, args.jobs)
        process = context.Process(target=work, args=(args, which, progress, results))
        process.start()
        jobs.append((process, progress, results))
    counts: collections.Counter[tuple[str, str, str]] = collections.Counter()
    failures = []
    slowest = 0.0
    for process, progress, results in jobs:
        while process.is_alive() and results.empty():
            process.join(0.2)
        if results.empty():
            process.join()
            failures.append({"index": progress.value, "error": f"the process died ({process.exitcode})"})
            continue
        some, failed, seconds = results.get()
        process.join()
        for form, way, result, n in some:
            counts[form, way, result] += n
        failures += failed
        slowest = max(slowest, seconds)
    return counts, failures, slowest


def main(source: str, title: str, mutations: int, description: str) -> None:
    """Run the command line for the mutations of a module: its files, its outcomes and what they mean."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mutations", type=int, default=mutations, help="number of mutations")
    parser.add_argument("--quick", action="store_true", help="run 500 mutations")
    parser.add_argument("--seed", type=int, default=0, help="seed of the mutations")
    parser.add_argument("--memory", type=int, default=1024, help="memory limit of a process in megabytes")
    parser.add_argument("--seconds", type=float, default=10.0, help="time limit of one mutation in seconds")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes; 0 runs in this process")
    parser.add_argument("--only", type=int, help="run only the mutation with this number")
    parser.add_argument(
        "--out", default=Path(sys.argv[0]).stem, help="name of the result files in benchmarks/results"
    )
    args = parser.parse_args()
    args.source = source
    module = importlib.import_module(source)
    if args.quick:
        args.mutations = 500
    if args.only is not None:
        form, name, way, data = module.mutation(module.files(), args.seed, args.only)
        print(form, name, way, len(data), "bytes:", module.outcome(form, data))
        return
    began = time.perf_counter()
    counts, failures, slowest = run(args)
    seconds = time.perf_counter() - began
    ways = sorted({(form, way) for form, way, _ in counts}, reverse=True)
    outcomes = (*module.OUTCOMES, "FAILED")
    rows = [
        {"format": form, "mutation": way} | {name: counts.get((form, way, name), 0) for name in outcomes}
        for form, way in ways
    ]
    total = {"format": "all", "mutation": sum(counts.values())}
    total |= {name: sum(row[name] for row in rows) for name in outcomes}  # type: ignore[misc]
    notes = [
        f"{args.mutations} mutations, seed {args.seed}, in {seconds:.0f} s; the slowest took "
        f"{1e3 * slowest:.0f} ms (limit {args.seconds:g} s); memory within {args.memory} MB more than sound "
        "files take.",
        module.MEANING,
        *(f"FAILED {json.dumps(failure)}" for failure in failures[:20]),
    ]
    write(args.out, title, [*rows, total], notes, threads=args.jobs, repetitions=1)
    if failures:
        sys.exit(1)


if __name__ == "__main__":
    main("mutations", "Damaged and hostile model files", 100_000, __doc__ or "")
