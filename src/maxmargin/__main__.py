"""``python -m maxmargin``: train on data that scikit-learn bundles, beside scikit-learn itself."""

from __future__ import annotations

import time
from typing import Any

import sklearn.svm
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC


def main() -> None:
    """Fit both machines on three data sets and print what came out."""
    data = {
        "breast_cancer (bundled)": load_breast_cancer(return_X_y=True),
        "digits (bundled)": load_digits(return_X_y=True),
        "10,000 x 20 (generated)": make_classification(
            10_000, 20, n_informative=10, n_clusters_per_class=4, random_state=0
        ),
    }
    console = Console()
    if not console.is_terminal:
        console = Console(width=100)  # a file has no width of its own
    else:
        console.print("Compiling on first use; this takes some seconds once.")
    SVC().fit([[0.0], [1.0]] * 600, [0, 1] * 600)  # compiled loops are cached on disk
    table = Table(title="C=10, gamma='scale', tol=1e-3; seconds, best of 3")
    for title in ("data", "scikit-learn", "maxmargin", "ratio", "SVs", "relative gap", "agree"):
        table.add_column(title, justify="left" if title == "data" else "right")
    for name, (X, y) in data.items():
        X, X_test, y, _ = train_test_split(StandardScaler().fit_transform(X), y, random_state=0)
        slow, theirs = _timed(sklearn.svm.SVC(C=10.0), X, y)
        fast, ours = _timed(SVC(C=10.0), X, y)
        same = (theirs.predict(X_test) == ours.predict(X_test)).mean()
        objective = abs(sum(trace[-1].objective for trace in ours.trace_))
        table.add_row(
            name,
            f"{slow:.4f}",
            f"{fast:.4f}",
            f"{slow / fast:.1f}",
            str(len(ours.support_)),
            f"{ours.dual_gap_.sum() / objective:.1e}",
            f"{100 * same:.2f} %",
        )
    console.print(table)


def _timed(model: Any, X: Any, y: Any) -> tuple[float, Any]:
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        model.fit(X, y)
        best = min(best, time.perf_counter() - began)
    return best, model


if __name__ == "__main__":
    main()
