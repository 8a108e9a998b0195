"""Exact Shapley values: `maxmargin.inspection.shapley` against `KernelExplainer` of the package shap.

    python benchmarks/shapley.py           # needs MAXMARGIN_DATA for two of the sets: three minutes
    python benchmarks/shapley.py --quick   # bundled data, few rows

Without shap (pip install shap) only the exact values are timed. An `SVC` with default parameters is trained
on half of the standardised rows (at most --rows), and its decision values are explained for --explain of the
others, with 100 training rows as the background. Both use one thread, and both evaluate the same model, so
that `KernelExplainer` has the fast predictions of this library.

- shap: ``KernelExplainer(model.decision_function, background).shap_values(X)`` with its defaults, which keep
  ten features of each row.
- shap, all features: the same with ``l1_reg=0``.

Errors are the mean absolute differences from the exact values, in per cent of the mean absolute exact value.
"Error of the sum" is the largest difference of the sums of exact values from the decision values."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parent))
from datasets import MissingData, load, whole
from maxmargin import SVC
from maxmargin.inspection import shapley
from report import geometric_mean, write

SETS = ("raetsch_german", "breast_cancer", "raetsch_splice", "digits")
BACKGROUND = 100
# Options of `shap_values` by the name of the row.
RIVALS: dict[str, dict[str, Any]] = {"shap": {}, "shap, all features": {"l1_reg": 0}}


def trained(name: str, rows: int) -> tuple[Any, Any, Any]:
    """A model, its training rows, and other rows."""
    X, y = whole(name) if name.startswith("raetsch") else load(name)[:2]
    y = np.asarray(y) > 0 if len(np.unique(y)) == 2 else np.asarray(y) % 2
    order = np.random.default_rng(0).permutation(len(y))
    train, new = order[: min(rows, len(y) // 2)], order[len(y) // 2 :]
    return SVC(n_jobs=1).fit(X[train], y[train]), X[train], X[new]


def one(name: str, args: argparse.Namespace, shap: Any) -> dict[str, Any]:
    """Both methods on one set."""
    model, train, new = trained(name, args.rows)
    background, some = train[:BACKGROUND], new[: args.explain]
    shapley(model, some[:1], background, n_jobs=1)  # compiled and loaded
    best = np.inf
    for _ in range(args.repeat):
        began = time.perf_counter()
        exact = shapley(model, some, background, n_jobs=1)
        best = min(best, time.perf_counter() - began)
    out: dict[str, Any] = {
        "set": name.removeprefix("raetsch_"), "d": some.shape[1], "svs": len(model.support_),
        "ms": 1e3 * best / len(some),
        "sum_error": float(np.abs(exact.predicted - model.decision_function(some)).max()),
    }  # fmt: skip
    for rival, options in (RIVALS if shap else {}).items():
        explainer = shap.KernelExplainer(model.decision_function, background)
        began = time.perf_counter()
        values = explainer.shap_values(some, silent=True, **options)
        out[f"{rival}_ms"] = 1e3 * (time.perf_counter() - began) / len(some)
        out[f"{rival}_error"] = float(np.abs(values - exact.values).mean() / np.abs(exact.values).mean())
    print(out, flush=True)
    return out


def rivals(row: dict[str, Any]) -> list[str]:
    """The rivals that were measured."""
    return [rival for rival in RIVALS if f"{rival}_ms" in row]


def shown(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the table."""
    cells = {
        "set": row["set"], "features": row["d"], "support vectors": row["svs"],
        "exact, ms per row": f"{row['ms']:.2f}", "error of the sum": f"{row['sum_error']:.0e}",
    }  # fmt: skip
    for rival in rivals(row):
        cells[f"{rival}, ms"] = f"{row[f'{rival}_ms']:.0f} ({row[f'{rival}_ms'] / row['ms']:.0f} times)"
        cells[f"{rival}, error"] = f"{100 * row[f'{rival}_error']:.2f} %"
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="bundled data, two rows")
    parser.add_argument("--rows", type=int, default=1000, help="most training rows")
    parser.add_argument("--explain", type=int, default=20, help="rows to explain")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", help="name of the files of results")
    args = parser.parse_args()
    try:
        import shap
    except ImportError:
        shap = None
        print("shap is left out, as it is not installed: pip install shap", flush=True)
    if args.quick:
        args.rows, args.explain = 200, 2
    raw = []
    with threadpool_limits(1):
        for name in ("breast_cancer",) if args.quick else SETS:
            try:
                raw.append(one(name, args, shap))
            except MissingData as missing:
                print(missing, flush=True)
    notes = [f"{BACKGROUND} rows of the background, {args.explain} rows explained"]
    for rival in rivals(raw[0]):
        ratios = [row[f"{rival}_ms"] / row["ms"] for row in raw]
        errors = [100 * row[f"{rival}_error"] for row in raw]
        notes.append(
            f"{rival}: {geometric_mean(ratios):.0f} times the time of exact values (geometric mean), error "
            f"{min(errors):.2f} % to {max(errors):.2f} %"
        )
    out = args.out or ("shapley-quick" if args.quick else "shapley")
    if shap:
        notes.append(f"shap {shap.__version__}")
    how = f"best of {args.repeat}, 1 of shap"
    title = "Exact Shapley values, and KernelExplainer"
    write(out, title, [shown(row) for row in raw], notes, raw, threads=1, repetitions=how)


if __name__ == "__main__":
    main()
