"""The part "limits": max_time bounds the whole fit, and the answer is still certified."""

from __future__ import annotations

import gc
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

import maxmargin
from attacks.fits import check
from attacks.outcome import Outcome, generator, recorded, refused
from attacks.problems import SOLVERS, labels, points
from attacks.workers import ATTEMPTS

OVERRUN = 0.3  # seconds
TIMES = (0.0, 0.01, 0.05, 0.5)
BUILT_IN = ("linear", "poly", "rbf", "laplacian")
KERNELS = (*BUILT_IN, "rbf", "rbf", "sigmoid", "callable", "precomputed")


def product_kernel(A: Any, B: Any) -> Any:
    """A quadratic kernel as a user would write it."""
    return (np.asarray(A) @ np.asarray(B).T / np.shape(A)[1] + 1.0) ** 2


def waiting() -> float:
    """Seconds for which this thread has been ready but had no core, where the system counts them."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):
        return 0.0


def run(seed: int, quick: bool = False) -> Outcome:
    """One fit with a limit, repeated where it seems to take too long."""
    rng = generator("limits", seed)
    kind = str(rng.choice(list(SOLVERS)))
    name, _, variant = kind.partition(" ")
    limit = float(rng.choice(TIMES))
    pairs, joint = name in ("SVC", "NuSVC"), name in ("AllDistancesSVC", "CrammerSingerSVC")
    k = int(rng.choice([2, 2, 3, 26, 60, 150, 250, 600] if pairs else [2, 3, 26, 150] if joint else [2]))
    n = max(int(rng.choice([60, 600, 2000, 5000, 20_000, 50_000] if k < 26 else [600, 2000, 5000])), 3 * k)
    kernel: Any = str(rng.choice(KERNELS))
    if kernel == "precomputed":
        n = min(n, 3000)
    if quick:
        n = min(n, 2000)
    large = not quick and kernel == "linear" and not joint and k < 26 and bool(rng.random() < 0.3)
    if large:  # passes over all entries, in one piece, would take longer than the overrun
        n = int(rng.choice([100_000, 300_000]))
    X: Any = points(rng, n, int(rng.choice([2, 10, 40])))
    d = X.shape[1]
    y: Any = labels(rng, X, k, 0.2)
    if "SVR" in kind:
        y = np.sin(X).sum(axis=1) + rng.normal(size=n)
    gamma = float(10 ** rng.uniform(-1, 0.5) / d)
    data = "dense"
    if kernel == "precomputed":
        square = (X * X).sum(axis=1)
        X = np.exp(-gamma * np.maximum(square[:, None] + square - 2.0 * X @ X.T, 0.0))
    elif kernel == "callable":
        kernel = product_kernel
    elif large and rng.random() < 0.5:
        places = rng.integers(0, 20_000, X.size)
        X = sp.csr_matrix((X.ravel(), places, np.arange(0, X.size + 1, d)), shape=(n, 20_000))
        X.sum_duplicates()
        data = "wide sparse"
    elif rng.random() < 0.2:
        X, data = sp.csr_matrix(np.where(rng.random(X.shape) < 0.5, 0.0, X)), "sparse"
    options: dict[str, Any] = {
        "kernel": kernel,
        "solver": str(rng.choice(SOLVERS[kind])),
        "max_time": limit,
        "tol": float(rng.choice([1e-3, 1e-8])),
        "n_jobs": int(rng.choice([1, 1, 2])),
        "gamma": gamma,
    }
    if "C" in getattr(maxmargin, name)().get_params():
        options["C"] = float("inf") if variant == "hard" else float(10 ** rng.uniform(0, 4))
    if name == "NuSVC":
        options["nu"] = 0.05
    if variant == "squared":
        options["loss"] = "squared_hinge" if name == "SVC" else "squared_epsilon_insensitive"
    model = getattr(maxmargin, name)(**options)
    outcome = Outcome(f"max_time={limit:g}", f"{model!r} n={n} d={d} classes={k} {data}")
    shortest = np.inf
    with recorded(outcome):
        for attempt in range(
            ATTEMPTS
        ):  # the first compiles; other processes take their share of the computer
            gc.collect()
            wall, cpu, waited = time.perf_counter(), time.process_time(), waiting()
            try:
                model = clone(model).fit(X, y)
            except ValueError as error:
                refused(outcome, error)
                return outcome
            # On a computer that is busy with other things processor time is the better measure; with several
            # threads, wall time without the time in which this one waited for a core.
            wall = time.perf_counter() - wall - (waiting() - waited)
            seconds = min(wall, time.process_time() - cpu)
            shortest = min(shortest, seconds)
            if shortest <= limit + OVERRUN or (attempt and shortest > limit + 10 * OVERRUN):
                break
    outcome.answer = model.status_
    outcome.ratio = 0.0
    if shortest > limit + OVERRUN:
        outcome.faults.append(f"overrun: {shortest:.2f} s for max_time={limit:g}")
    if n <= 700 and k <= 26 and kernel in BUILT_IN and data == "dense":
        check(outcome, model, X, None if "OneClass" in kind else y, None, None)
    else:
        outcome.checks += 1
    return outcome
