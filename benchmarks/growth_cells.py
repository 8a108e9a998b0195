"""Training time and memory of models on cells, of up to 10,000,000 rows in a file.

Run by ``python benchmarks/growth.py --cells``. Covtype-like rows (54 features, C=1, gamma=1) are made block
by block, written to a Parquet file where pyarrow is installed, and read from there, one row group at a time,
into a memory-mapped file of float32. Every fit runs in a process of its own, after small fits that load
compiled code.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from datasets import covtype_like
from peers import memory
from report import write

SIZES = (100_000, 1_000_000, 10_000_000)
# Up to so many rows the exact model is trained on all of them; above, on as many as take the time of cells.
EXACT = 100_000
CELL_SIZE, FRESH = 5_000, 20_000
FEATURES, BLOCK = 54, 100_000
SVC_OPTIONS: dict[str, Any] = {"C": 1.0, "gamma": 1.0}


# -- data --------------------------------------------------------------------------------------------


def blocks(n: int) -> Iterator[tuple[Any, Any]]:
    """Rows and labels, block by block."""
    for k, start in enumerate(range(0, n, BLOCK)):
        data = covtype_like(min(BLOCK, n - start), seed=k)
        yield data.X.astype(np.float32), data.y.astype(np.int8)


def fresh(n: int) -> tuple[Any, Any]:
    """Rows that no block has."""
    data = covtype_like(n, seed=1_000_000)
    return data.X.astype(np.float32), data.y


def write_parquet(n: int, path: Path) -> None:
    """A Parquet file of all rows; its row groups are the blocks."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [*(f"x{j}" for j in range(FEATURES)), "y"]
    schema = pa.schema([*((name, pa.float32()) for name in names[:-1]), ("y", pa.int8())])
    with pq.ParquetWriter(path, schema) as writer:
        for X, y in blocks(n):
            writer.write_table(pa.table([*X.T, y], schema=schema))


def read_parquet(path: Path) -> Iterator[tuple[Any, Any]]:
    """Rows and labels of a Parquet file, one row group at a time."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        for k in range(file.num_row_groups):
            *columns, y = (column.to_numpy() for column in file.read_row_group(k).columns)
            yield np.column_stack(columns), y


def to_memory_map(parts: Iterator[tuple[Any, Any]], n: int, folder: Path) -> None:
    """Write rows to ``X.npy`` and labels to ``y.npy``, with the memory of one part."""
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float32, (n, FEATURES))
    y, start = np.empty(n, np.int8), 0
    for rows, labels in parts:
        end = start + len(labels)
        X[start:end], y[start:end] = rows, labels
        start = end
    X.flush()
    np.save(folder / "y.npy", y)


def prepare(n: int, folder: Path) -> None:
    """The files of all rows in a folder; a program of its own, so that its memory is not that of a fit."""
    if find_spec("pyarrow") is None:
        to_memory_map(blocks(n), n, folder)
        return
    path = folder / "rows.parquet"
    write_parquet(n, path)
    began = time.perf_counter()
    to_memory_map(read_parquet(path), n, folder)
    print(f"{n:,} rows from Parquet to a memory map in {time.perf_counter() - began:.1f} s", flush=True)
    path.unlink()


# -- one fit -----------------------------------------------------------------------------------------


@contextmanager
def anonymous_peak() -> Iterator[list[float]]:
    """The largest memory of the process in MB that is not pages of files, where the system states it."""
    status, peak, ended = Path("/proc/self/status"), [0.0], threading.Event()

    def sample() -> None:
        while status.exists():
            peak[0] = max(peak[0], int(status.read_text().split("RssAnon:")[1].split()[0]) / 1024)
            if ended.wait(0.02):
                return

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def child(args: argparse.Namespace) -> None:
    """One fit; the numbers go to a file."""
    from maxmargin import SVC, CellSVC

    folder = Path(args.folder)
    X = np.load(folder / "X.npy", mmap_mode="r")[: args.rows]
    y = np.load(folder / "y.npy")[: args.rows]
    X_fresh, y_fresh = fresh(args.fresh)
    svc = SVC(**SVC_OPTIONS)
    svc.fit(np.array(X[:12_000]), y[:12_000])
    CellSVC(svc, cell_size=2_500, n_jobs=args.threads).fit(np.array(X[:5_000]), y[:5_000])
    model: Any = svc.set_params(n_jobs=args.threads)
    if args.child == "cells":
        model = CellSVC(svc, cell_size=args.cell_size, n_jobs=args.threads)
    memory(reset=True)
    with anonymous_peak() as peak:
        began = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - began
    with_pages = memory()
    began = time.perf_counter()
    score = float(model.score(X_fresh, y_fresh))
    found = {
        "model": args.child,
        "n": args.rows,
        "fit_s": seconds,
        "predict_s": time.perf_counter() - began,
        "peak_mb": peak[0],
        "peak_with_file_mb": with_pages,
        "score": score,
        "status": model.status_,
    }
    if args.child == "cells":
        cost = model.cost_
        found |= {
            "fit_s": seconds - (cost.seconds if cost else 0.0),
            "cost_s": cost.seconds if cost else 0.0,
            "n_cells": model.n_cells_,
            "largest": int(model.cell_sizes_.max()),
            "cost": str(cost),
        }
    (folder / "result.json").write_text(json.dumps(found))


# -- all fits ----------------------------------------------------------------------------------------


def run_cells(rows: int, threads: int, out: str, quick: bool) -> None:
    """Time cells for growing numbers of rows, up to `rows`, and write the table.

    Parameters
    ----------
    rows : int
        The most rows.
    threads : int
        Threads of every fit.
    out : str
        Name of the result files.
    quick : bool
        Small sizes only.
    """
    sizes = (5_000, 20_000) if quick else (*(n for n in SIZES if n < rows), rows)
    cell_size, n_fresh = (1_000, 2_000) if quick else (CELL_SIZE, FRESH)
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:

        def program(*arguments: Any) -> None:
            environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
            command = [sys.executable, __file__, *map(str, arguments), "--folder", folder]
            subprocess.run(command, env=environment, check=True)

        def fit(model: str, n: int) -> float:
            step = ["--child", model, "--rows", n, "--threads", threads]
            program(*step, "--cell-size", cell_size, "--fresh", n_fresh)
            results.append(json.loads((Path(folder) / "result.json").read_text()))
            print(f"{n:,} rows, {model}: {results[-1]['fit_s']:.1f} s", flush=True)
            return float(results[-1]["fit_s"])

        program("--child", "data", "--rows", max(sizes))
        most, pace = 0, 1.0
        for n in sizes:
            seconds = fit("cells", n)
            # Rows are independent: the first ones are a random part.
            most = n if n <= EXACT else min(n, int(most * (seconds / pace) ** 0.5))
            pace = fit("exact", most)
    table = [
        {
            "rows": f"{r['n']:,}",
            "model": r["model"],
            "fit s": f"{r['fit_s']:.4g}",
            "statement s": f"{r['cost_s']:.3g}" if "cost_s" in r else "",
            "cells": f"{r['n_cells']:,}" if "n_cells" in r else "",
            "largest cell": f"{r['largest']:,}" if "largest" in r else "",
            "memory MB": f"{r['peak_mb']:.0f}",
            "with file MB": f"{r['peak_with_file_mb']:.0f}",
            "accuracy": f"{r['score']:.4f}",
            "predict s": f"{r['predict_s']:.3g}",
            "status": r["status"],
        }
        for r in results
    ]
    notes = [
        f"covtype-like rows, float32 in a memory-mapped file; C=1, gamma=1, cells of {cell_size:,} rows, tol "
        f"1e-3; accuracy on {n_fresh:,} fresh rows",
        "fit s: without the statement of cost, whose time is beside it",
        f"exact: on all rows up to {EXACT:,}, then on as many as take about the time of the cells above",
        "memory MB: the most memory of the process but pages of files; with file MB: with such pages, which "
        "the system takes back when others need memory",
    ]
    notes += [f"{r['n']:,} rows: {' '.join(r['cost'].split())}" for r in results if "cost" in r]
    write(f"{out}-quick" if quick else out, "Cells", table, notes, results, threads=threads, repetitions=1)


def main() -> None:
    parser = argparse.ArgumentParser(description="One step of `growth.py --cells`.")
    parser.add_argument("--child", required=True, choices=("data", "cells", "exact"), help="step")
    parser.add_argument("--folder", required=True, help="where the files are")
    parser.add_argument("--rows", type=int, required=True, help="number of rows")
    parser.add_argument("--threads", type=int, default=2, help="number of threads")
    parser.add_argument("--cell-size", type=int, default=CELL_SIZE, help="rows of a cell")
    parser.add_argument("--fresh", type=int, default=FRESH, help="rows that the accuracy is measured on")
    args = parser.parse_args()
    if args.child == "data":
        prepare(args.rows, Path(args.folder))
    else:
        child(args)


if __name__ == "__main__":
    main()
