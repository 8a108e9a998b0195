"""Training on a dask cluster of this computer, beside one process on the same cores.

    python benchmarks/cluster.py --quick                  # a minute at most
    python benchmarks/cluster.py                          # half an hour
    python benchmarks/cluster.py --rows 50000 --repeat 5
    python benchmarks/cluster.py --model                  # the model again, from the stored run

Data: covtype-like (54 features; C=1, gamma=1, tol 1e-3), made here. Three tables:

- Time. `maxmargin.SVC` with two threads and a cache of 500 MB, and `maxmargin.dask.SVC` on two workers of one
  thread each, which hold the rows, in turns, each after memory was touched; the fastest fit of each counts.
  Rounds are calls of all workers; the overhead of one is its time without the longest kernel sums. Workers
  keep no kernel rows.
- Scaling. One to four workers that may each use half a core (a Linux control group, which needs root).
- A model of the time with more workers (cluster_model): kernel values and rounds as counted in the largest
  fit with one chunk per thread, its pace of kernel values per core, its latency, which grows with the
  workers, and the time of the client. It is extrapolated from two cores: nothing of it was measured.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from datasets import covtype_like
from peers import touch_memory
from report import RESULTS, write

KIND: dict[str, Any] = {"C": 1.0, "gamma": 1.0, "tol": 1e-3, "cache_size": 500}
# Rows, and fits of each.
TIMES = {50_000: 5, 100_000: 3, 200_000: 2, 500_000: 1}
QUICK = {4_000: 1}
SCALED, SCALED_QUICK, MOST_WORKERS, SHARE = 100_000, 4_000, 4, 0.5
# Rows and workers of the model; seconds that each worker adds to a round; bytes per second of a network.
MODEL_ROWS, MODEL_WORKERS = (1_000_000, 5_000_000, 10_000_000), (16, 64)
LATENCY_PER_WORKER, NETWORK = 0.002, 1e9
# Rows up to which each of two threads has one chunk: only then the overhead is without any kernel sums.
ONE_CHUNK_EACH = 400_000
CHUNKS = 8


@contextmanager
def cluster(workers: int) -> Iterator[Any]:
    """A client of so many worker processes of one thread each."""
    from distributed import Client, LocalCluster

    kind = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(**kind, memory_limit=0) as found, Client(found) as client:
        client.wait_for_workers(workers, timeout=60)
        yield client


def on_workers(X: Any, y: Any) -> tuple[Any, Any]:
    """The data as dask arrays in the memory of the workers."""
    import dask.array as da
    from distributed import wait

    rows = -(-len(y) // CHUNKS)
    lazy = da.from_array(X, chunks=(rows, -1)).persist(), da.from_array(y, chunks=rows).persist()
    wait(list(lazy), timeout=300)
    return lazy


def fitted(model: Any, X: Any, y: Any) -> tuple[float, Any]:
    """Seconds of a fit, and the model."""
    began = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - began, model


def objective(model: Any) -> float:
    """The value of the dual problem."""
    return float(sum(trace[-1].objective for trace in model.trace_))


def compared(client: Any, n: int, repeat: int) -> dict[str, Any]:
    """Fits in this process and on the cluster, in turns."""
    from maxmargin import SVC
    from maxmargin import dask as distributed

    X, y, _, _ = covtype_like(n)
    lazy_X, lazy_y = on_workers(X, y)
    some = slice(0, min(n, 5_000))
    SVC(**KIND, n_jobs=2).fit(X[some], y[some])
    distributed.SVC(**KIND, distribute=True, client=client).fit(lazy_X[some], lazy_y[some])
    alone: list[float] = []
    spread: list[float] = []
    models: list[Any] = [None, None]
    for turn in range(repeat):
        pair = [
            (alone, SVC(**KIND, n_jobs=2), X, y),
            (spread, distributed.SVC(**KIND, n_jobs=2, distribute=True, client=client), lazy_X, lazy_y),
        ]
        for times, model, data, labels in pair if turn % 2 == 0 else pair[::-1]:
            touch_memory(10_000)
            seconds, found = fitted(model, data, labels)
            times.append(seconds)
            who = int(times is spread)
            if models[who] is None or seconds == min(times):
                models[who] = found
            print(f"{n:,} rows, {('one process', 'dask')[who]}: {seconds:.3g} s", flush=True)
    return {"rows": n, "one": alone, "dask": spread, **facts(*models)}


def facts(one: Any, many: Any) -> dict[str, Any]:
    """Facts about the fits of two models, the second one of which is from a cluster."""
    traffic, n, svs = many.traffic_, many.shape_fit_[0], len(many.support_)
    return {
        "svs": svs,
        "ratio_objectives": objective(many) / objective(one) - 1.0,
        "gaps": [float(np.sum(m.relative_gap_)) for m in (one, many)],
        "status": [one.status_, many.status_],
        "values": [m.n_kernel_evals_ / (n * len(m.support_)) for m in (one, many)],
        "rounds": traffic.calls,
        "overhead_s": (traffic.seconds - traffic.work) / traffic.calls,
        "call_s": traffic.seconds,
        "work_s": traffic.work,
        "sent": traffic.bytes_sent,
        "received": traffic.bytes_received,
    }


# -- workers that have less than a core -----------------------------------------------------------


def groups(share: float) -> dict[str, tuple[Path, str, str]]:
    """For both kinds of control groups: folder, file of the limit, and its content."""
    period = 10_000  # microseconds; short against a round
    return {
        "v2": (Path("/sys/fs/cgroup"), "cpu.max", f"{int(share * period)} {period}"),
        "v1": (Path("/sys/fs/cgroup/cpu"), "cpu.cfs_quota_us", str(int(share * period))),
    }


@contextmanager
def limited(processes: list[int], share: float) -> Iterator[None]:
    """Let each of these processes use this share of a core."""
    made: list[Path] = []
    try:
        for pid in processes:
            kind = "v2" if Path("/sys/fs/cgroup/cgroup.controllers").exists() else "v1"
            root, file, content = groups(share)[kind]
            group = root / f"maxmargin-{pid}"
            group.mkdir()
            made.append(group)
            if kind == "v1":
                (group / "cpu.cfs_period_us").write_text("10000")
            (group / file).write_text(content)
            (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        for group in made:
            with suppress(OSError):
                (group.parent / "cgroup.procs").write_text((group / "cgroup.procs").read_text().split()[0])
            with suppress(OSError):
                group.rmdir()


def scaled(n: int, workers: int) -> dict[str, Any]:
    """One fit on so many workers of half a core."""
    from maxmargin import dask as distributed

    X, y, _, _ = covtype_like(n)
    with cluster(workers) as client:
        lazy_X, lazy_y = on_workers(X, y)
        kind = {**KIND, "distribute": True, "client": client, "n_jobs": 1}
        distributed.SVC(**kind).fit(lazy_X[:4000], lazy_y[:4000])
        with limited(list(client.run(os.getpid).values()), SHARE):
            seconds, model = fitted(distributed.SVC(**kind), lazy_X, lazy_y)
    traffic = model.traffic_
    print(f"{n:,} rows, {workers} workers of {SHARE} cores: {seconds:.3g} s", flush=True)
    return {
        "workers": workers,
        "rows": n,
        "s": seconds,
        "call_s": traffic.seconds,
        "work_s": traffic.work,
        "rounds": traffic.calls,
    }


# -- a model of the time ----------------------------------------------------------------------------


def modelled(row: dict[str, Any], cores: int = 2) -> list[dict[str, Any]]:
    """Times for more rows and workers, extrapolated from one fit."""
    n, svs = row["rows"], row["svs"]
    seconds = min(row["dask"])
    values = row["values"][1] * n * svs
    pace = values / (row["work_s"] * cores)  # of one core
    found = []
    for rows in MODEL_ROWS:
        more = (rows / n) ** 0.86 * svs  # support vectors: the exponent of 50,000 to 500,000 rows
        rounds = row["rounds"] * more / svs
        for workers in MODEL_WORKERS:
            kernel = row["values"][1] * rows * more / (pace * workers)
            latency = rounds * (row["overhead_s"] + LATENCY_PER_WORKER * (workers - cores))
            network = (row["sent"] * workers / cores + row["received"]) * more / svs / NETWORK
            client = (seconds - row["call_s"]) * more / svs
            found.append(
                {
                    "rows": f"{rows:,}",
                    "workers": workers,
                    "kernel s": f"{kernel:.0f}",
                    "latency s": f"{latency:.0f}",
                    "network s": f"{network:.0f}",
                    "client s": f"{client:.0f}",
                    "total s (model)": f"{kernel + latency + network + client:.0f}",
                }
            )
    return found


# -- tables -------------------------------------------------------------------------------------------


def time_row(r: dict[str, Any]) -> dict[str, Any]:
    """A row of the first table."""
    one, many = min(r["one"]), min(r["dask"])
    return {
        "rows": f"{r['rows']:,}",
        "SVs": f"{r['svs']:,}",
        "one process s": f"{one:.3g}",
        "dask s": f"{many:.3g}",
        "dask / one": f"{many / one:.2f}",
        "objective": f"{r['ratio_objectives']:+.1e}",
        "relative gaps": " / ".join(f"{gap:.1e}" for gap in r["gaps"]),
        "values / (n SVs)": " / ".join(f"{v:.2f}" for v in r["values"]),
        "rounds": r["rounds"],
        "overhead ms": f"{1e3 * r['overhead_s']:.0f}",
        "MB sent": f"{r['sent'] / 1e6:.0f}",
        "MB received": f"{r['received'] / 1e6:.0f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="run few rows only")
    parser.add_argument("--rows", nargs="*", type=int, help="numbers of rows, without the other tables")
    parser.add_argument("--repeat", type=int, help="fits of each")
    parser.add_argument("--out", default=None, help="name of the result files in benchmarks/results")
    parser.add_argument("--model", action="store_true", help="only compute the model, from the stored run")
    args = parser.parse_args()
    if args.model:
        stored = json.loads((RESULTS / f"{args.out or 'cluster'}.json").read_text())
        times = [r for r in stored["rows"] if r["part"] == "time"]
        write_model(args.out or "cluster", times, threads=2, repetitions=stored["run"]["repetitions"])
        return
    warnings.simplefilter("ignore")
    sizes = QUICK if args.quick else {n: TIMES.get(n, 1) for n in args.rows or TIMES}
    with cluster(2) as client:
        times = [compared(client, n, args.repeat or repeat) for n, repeat in sizes.items()]
    scaling: list[dict[str, Any]] = []
    if not args.rows:
        try:
            n, most = (SCALED_QUICK, 2) if args.quick else (SCALED, MOST_WORKERS)
            scaling = [scaled(n, workers) for workers in range(1, most + 1)]
        except OSError as error:
            print(f"Workers cannot be limited to a share of a core here: {error}", flush=True)
    table = [time_row(r) for r in times]
    notes = [
        "one process: 2 threads, cache 500 MB; dask: 2 workers of 1 thread, no cache; objective: relative "
        "difference of the dual objectives (both certified); pairs: one process / dask",
    ]
    if scaling:
        first = scaling[0]["s"]
        shown = ", ".join(f"{r['workers']}: {r['s']:.3g} s ({first / r['s']:.2f} times)" for r in scaling)
        notes.append(f"{scaling[0]['rows']:,} rows on workers of {SHARE} cores each, {shown}")
    name = args.out or ("cluster-quick" if args.quick else "cluster")
    raw = [*({"part": "time", **r} for r in times), *({"part": "scaling", **r} for r in scaling)]
    repeats = ", ".join(f"{n:,}: {args.repeat or k}" for n, k in sizes.items())
    run: dict[str, Any] = {"threads": 2, "repetitions": f"best of ({repeats})"}
    write(name, "Training on dask", table, notes, raw, **run)
    if not args.rows:
        write_model(name, times, **run)


def write_model(name: str, times: list[dict[str, Any]], **run: Any) -> None:
    """Write the table of the model."""
    base = max((r for r in times if r["rows"] <= ONE_CHUNK_EACH), key=lambda r: r["rows"])
    title = "Training on dask with more workers: a model, nothing of it was measured"
    note = f"extrapolated from {base['rows']:,} rows on 2 cores of one computer; network: 1 GB/s"
    write(f"{name}_model", title, modelled(base), [note], **run)


if __name__ == "__main__":
    main()
