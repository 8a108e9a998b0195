"""Memory of a fit to large data: what the process takes for itself, besides the pages of the data's file."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

STATUS = Path("/proc/self/status")
pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not (STATUS.exists() and "RssAnon" in STATUS.read_text()), reason="needs Linux's /proc/self/status"
    ),
]
# Two classes far apart, so that there are few support vectors; a first fit of some rows compiles and imports.
SCRIPT = '''
import json, sys, threading
import numpy as np
import scipy.sparse as sp
from maxmargin import SVC, _costs

form, n, d = sys.argv[1], 50_000, 400
CACHE = 1


def own():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) / 1024


def column_numbers(rows):
    """The first column, and every second one of the others, or that beside it."""
    numbers = 2 * np.arange(d) - rng.integers(0, 2, size=(rows, d))
    numbers[:, 0] = 0
    return numbers


rng, y = np.random.default_rng(0), np.arange(n) % 2
dtype, kind = ("float32" if form == "float32" else "float64"), ("int64" if form == "csr, int64" else "int32")
values = np.memmap("values", dtype, "w+", shape=(n, d))
columns = np.memmap("columns", kind, "w+", shape=(n, d)) if "csr" in form else None
for s in range(0, n, 5_000):
    part = rng.normal(size=(5_000, d))
    part[:, 0] += 12 * y[s : s + 5_000]
    values[s : s + 5_000] = part
    if columns is not None:
        columns[s : s + 5_000] = column_numbers(5_000)
values.flush()
mode = "c" if form == "copy on write" else "r"
if columns is None:
    X, size = np.memmap("values", dtype, mode, shape=(n, d)), values.nbytes
else:
    columns.flush()
    size, starts = values.nbytes + columns.nbytes, np.arange(0, n * d + 1, d, dtype=kind)
    X = sp.csr_array(
        (np.memmap("values", dtype, mode), np.memmap("columns", kind, mode), starts), shape=(n, 2 * d)
    )
del values, columns

zero = form == "rows without weight"
model = SVC(gamma="scale" if zero else 0.5 / d, cache_size=CACHE)
weight = np.where(zero & (np.arange(n) % 1000 == 7), 0.0, 1.0)
kept, _costs.STREAMED_BYTES = _costs.STREAMED_BYTES, 0
model.fit(X[:5_000], y[:5_000]).predict(X[:5_000])
_costs.STREAMED_BYTES = kept
before = peak = own()
done = threading.Event()


def watch():
    global peak
    while not done.wait(0.002):
        peak = max(peak, own())


thread = threading.Thread(target=watch)
thread.start()
model.fit(X, y, weight)
right = float((model.predict(X) == y).mean())
done.set()
thread.join()
growth = max(peak, own()) - before
print(json.dumps({"size": size / 2**20, "growth": growth - CACHE, "status": model.status_, "right": right}))
'''


@pytest.mark.parametrize(
    "form", ["float64", "float32", "copy on write", "csr", "csr, int64", "rows without weight"]
)
def test_a_fit_to_a_file_takes_less_memory_than_a_copy_in_single_precision(form, tmp_path):
    # Blocks that are freed go back to the system at once, and are then counted anew.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, form],
        capture_output=True, text=True, timeout=240, cwd=tmp_path, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found["status"] == "solved" and found["right"] > 0.99
    single = 50_000 * 400 * 4 / 2**20
    assert found["size"] >= single
    assert found["growth"] < 0.8 * single
