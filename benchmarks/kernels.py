"""Kernels of one's own: compiled objects beside the same kernels as Python functions, and named kernels.

    python benchmarks/kernels.py --quick   # few rows
    python benchmarks/kernels.py           # 6,000 rows of 20 and of 100 features: two minutes

Every kernel is trained as an object of maxmargin.kernels, as a function of two matrices (NumPy) in maxmargin
and in scikit-learn's SVC, and by its name where it has one. Seconds of a fit in one thread, the best of the
repetitions, which go through all ways in turn; compiling a function is not included and has a column of its
own. Objectives are computed from the coefficients in float64, and their largest relative difference is shown.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn.svm
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from threadpoolctl import threadpool_limits

from datasets import synthetic
from maxmargin import SVC
from maxmargin.kernels import exp, linear, of_products, of_rows, rbf
from report import write


def rational(dot: float, xx: float, zz: float) -> float:
    return 1.0 / (1.0 + 0.05 * (xx + zz - 2.0 * dot))


def gaussian(dot: float, xx: float, zz: float) -> float:
    return exp(-0.05 * (xx + zz - 2.0 * dot))


def common(x: Any, z: Any) -> float:
    total = 0.0
    for k in range(len(x)):
        total += min(x[k], z[k])
    return total


def squared(A: Any, B: Any) -> Any:
    return np.einsum("ij,ij->i", A, A)[:, None] + np.einsum("ij,ij->i", B, B) - 2.0 * (A @ B.T)


def sum_of_both(A: Any, B: Any) -> Any:
    return rbf_kernel(A, B, gamma=0.05) + 0.5 * linear_kernel(A, B)


def product_of_both(A: Any, B: Any) -> Any:
    return rbf_kernel(A, B, gamma=0.05) * (linear_kernel(A, B) + 1)


def common_of_all(A: Any, B: Any) -> Any:
    return np.stack([np.minimum(row, B).sum(axis=1) for row in A])


Way = Callable[[], Any]
# Name, object, function of two matrices, parameters of the named kernel.
KERNELS: list[tuple[str, Any, Callable[[Any, Any], Any], dict[str, Any] | None]] = [
    ("1 / (1 + distance)", of_products(rational), lambda A, B: 1.0 / (1.0 + 0.05 * squared(A, B)), None),
    ("Gaussian, own", of_products(gaussian), lambda A, B: np.exp(-0.05 * squared(A, B)), {"gamma": 0.05}),
    ("rbf + linear / 2", rbf(0.05) + 0.5 * linear(), sum_of_both, None),
    ("rbf * (linear + 1)", rbf(0.05) * (linear() + 1), product_of_both, None),
    ("intersection", of_rows(common), common_of_all, None),
]


def objective(model: Any, K: Any) -> float:
    """The dual value of a model of two classes."""
    coef, rows = np.asarray(model.dual_coef_)[0], np.asarray(model.support_)
    return float(np.abs(coef).sum() - 0.5 * coef @ K[np.ix_(rows, rows)] @ coef)


def one(
    name: str, kernel: Any, function: Any, named: Any, n: int, d: int, repetitions: int
) -> tuple[Any, Any]:
    """A row of the table, and its seconds."""
    data = synthetic(n, d)
    X = np.abs(data.X) if name == "intersection" else data.X
    began = time.perf_counter()
    kernel(X[:2])
    compiling = time.perf_counter() - began
    ways: dict[str, Way] = {
        "object": lambda: SVC(kernel=kernel, n_jobs=1),
        "function": lambda: SVC(kernel=function, n_jobs=1),
        "scikit-learn": lambda: sklearn.svm.SVC(kernel=function, cache_size=200),
    }
    if named is not None:
        ways["named"] = lambda: SVC(**named, n_jobs=1)
    for make in ways.values():  # loads compiled code
        make().fit(X[:600], data.y[:600])
    K = kernel(X)
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    values: dict[str, float] = {}
    for _ in range(repetitions):
        for way, make in ways.items():
            model = make()
            began = time.perf_counter()
            model.fit(X, data.y)
            seconds[way].append(time.perf_counter() - began)
            values[way] = objective(model, K)
    best = {way: min(times) for way, times in seconds.items()}
    top = max(values.values())
    row = {
        "kernel": name,
        "rows x features": f"{n} x {d}",
        "object, s": f"{best['object']:.2f}",
        "function / object": f"{best['function'] / best['object']:.1f}",
        "scikit-learn / object": f"{best['scikit-learn'] / best['object']:.1f}",
        "named / object": f"{best['named'] / best['object']:.2f}" if named is not None else "",
        "first value, s": f"{compiling:.1f}",
        "objectives differ by": f"{(top - min(values.values())) / top:.1e}",
    }
    return row, {
        "kernel": name,
        "n": n,
        "d": d,
        "seconds": seconds,
        "objectives": values,
        "compiling": compiling,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="600 rows, one repetition")
    parser.add_argument("--out", metavar="NAME", help="name of the result files")
    args = parser.parse_args()
    sizes = [(600, 20)] if args.quick else [(6000, 20), (6000, 100)]
    repetitions = 1 if args.quick else 3
    rows, raw = [], []
    with threadpool_limits(1):
        for n, d in sizes:
            for name, kernel, function, named in KERNELS:
                row, seconds = one(name, kernel, function, named, n, d, repetitions)
                rows.append(row)
                raw.append(seconds)
                print(row, flush=True)
    out = args.out or ("kernels-quick" if args.quick else "kernels")
    notes = [
        "first value: of two rows, with compiling the function where that had not been done in the process"
    ]
    write(
        out, "Kernels of one's own, ratios of seconds", rows, notes, raw, threads=1, repetitions=repetitions
    )


if __name__ == "__main__":
    main()
