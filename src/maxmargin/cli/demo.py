"""``maxmargin demo``: train, search and plot on bundled data, compared with scikit-learn."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from maxmargin.cli import options as o
from maxmargin.cli.output import emit, note, table, working

# Runs of each estimator; the fastest counts.
_REPEAT = 3
# Solvers whose convergence is plotted.
_SOLVERS = ("batch", "mdm", "mdm-accelerated")


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the figures.")] = Path(
        "maxmargin-demo"
    ),
    json: o.Json = False,
) -> None:
    """Train, search and plot on data that scikit-learn bundles, in under 20 seconds.

    Every step is also timed with scikit-learn's SVC, in the same process and on the same data.
    """
    began = time.perf_counter()
    note("Training on three data sets, with scikit-learn and with maxmargin ...")
    with working("loading data"):
        data = _data()
    trained = [_train(*parts) for parts in data]
    if not json:
        table("Training: C=10, tol=1e-3; seconds, best of 3", [_short(row) for row in trained])
    note("Searching C and gamma, with GridSearchCV and with SVMSearchCV ...")
    found, search = _search()
    if not json:
        table("Search: 100 nodes x 5 folds; seconds", [_short_search(found)])
    note("Plotting ...")
    drawn = _draw(out, search)
    seconds = time.perf_counter() - began
    if json:
        emit({"training": trained, "search": [found], "pictures": drawn, "seconds": seconds})
        return
    if drawn:
        print("Figures:", ", ".join(drawn))
    print(f"Done in {seconds:.0f} s.")


def _data() -> Sequence[tuple[Any, ...]]:
    from sklearn.datasets import load_breast_cancer, load_digits, make_classification
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    sets = {
        "breast_cancer": load_breast_cancer(return_X_y=True),
        "digits": load_digits(return_X_y=True),
        "generated, 20 features": make_classification(
            8_000, 20, n_informative=10, n_clusters_per_class=4, random_state=0
        ),
    }
    parts = []
    for name, (X, y) in sets.items():
        X, X_test, y, y_test = train_test_split(X, y, random_state=0)
        scaler = StandardScaler().fit(X)
        parts.append((name, scaler.transform(X), y, scaler.transform(X_test), y_test))
    return parts


def _train(name: str, X: Any, y: Any, X_test: Any, y_test: Any) -> dict[str, Any]:
    import numpy as np
    import sklearn.svm

    from maxmargin import SVC
    from maxmargin.cli.models import gaps

    ours, theirs = SVC(C=10.0), sklearn.svm.SVC(C=10.0)
    with working(f"{name}: training"):
        fast = _best_of(lambda: ours.fit(X, y))
        slow = _best_of(lambda: theirs.fit(X, y))
    a, b = ours.predict(X_test), theirs.predict(X_test)
    return {
        "data": name,
        "rows": len(X),
        "seconds_sklearn": slow,
        "seconds": fast,
        "ratio": slow / fast,
        "support_vectors": len(ours.support_),
        **gaps(ours),
        "accuracy_sklearn": float((b == y_test).mean()),
        "accuracy": float((a == y_test).mean()),
        "same_labels": float(np.mean(a == b)),
    }


def _search() -> tuple[dict[str, Any], Any]:
    import numpy as np
    import sklearn.svm
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import GridSearchCV
    from sklearn.preprocessing import StandardScaler

    from maxmargin import SVC
    from maxmargin.model_selection import SVMSearchCV

    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    grid = {"C": np.geomspace(0.1, 1000.0, 10), "gamma": np.geomspace(1e-4, 1.0, 10)}
    search = SVMSearchCV(SVC(), grid, n_jobs=2, progress=False)
    with working("breast_cancer: searching"):
        fast = _best_of(lambda: search.fit(X, y))
        theirs = GridSearchCV(sklearn.svm.SVC(), grid, n_jobs=2)
        slow = _best_of(lambda: theirs.fit(X, y), 1)
    return {
        "data": "breast_cancer",
        "rows": len(X),
        "seconds_sklearn": slow,
        "seconds": fast,
        "ratio": slow / fast,
        "best_score_sklearn": float(theirs.best_score_),
        "best_score": float(search.best_score_),
        "best_params": search.best_params_,
    }, search


def _draw(out: Path, search: Any) -> list[str]:
    """Plot the boundary, the search, the convergence of solvers and the hulls; returns the file names."""
    try:
        import matplotlib
    except ImportError:
        note("No figures: they need matplotlib (pip install 'maxmargin[plot]').")
        return []
    import numpy as np
    from sklearn.datasets import load_digits, make_moons

    from maxmargin import SVC
    from maxmargin.inspection import BoundaryDisplay, HullDisplay, SearchDisplay, TraceDisplay, Watched

    matplotlib.use("Agg")  # no window is opened
    out.mkdir(parents=True, exist_ok=True)
    X, y = make_moons(150, noise=0.25, random_state=0)
    digits, labels = load_digits(return_X_y=True)
    rng = np.random.default_rng(2)
    bars = rng.uniform(-1, 1, (2, 8, 2)) * (3.0, 0.2) @ [[0.88, -0.48], [0.48, 0.88]]
    bars[1] += (0.7, 1.6)
    names = []
    with working("plotting"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SVC(C=10.0, gamma=1.0).fit(X, y)
        recorded = {
            name: SVC(C=1000.0, gamma=5e-4, loss="squared_hinge", solver=Watched(name)).fit(
                digits, labels % 2
            )
            for name in _SOLVERS
        }
        displays: dict[str, Callable[[], Any]] = {
            "boundary.png": lambda: BoundaryDisplay.from_estimator(model, X, y),
            "search.png": lambda: SearchDisplay.from_estimator(search),
            "trace.png": lambda: TraceDisplay.from_estimator(recorded, x="kernel_calls", y="relative_gap"),
            "hulls.png": lambda: HullDisplay.from_points(bars.reshape(-1, 2), np.repeat([0, 1], 8), tol=1e-4),
        }
        for name, draw in displays.items():
            draw().figure_.savefig(out / name, dpi=120)
            names.append(str(out / name))
    return names


def _best_of(run: Callable[[], Any], times: int = _REPEAT) -> float:
    best = float("inf")
    for _ in range(times):
        began = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - began)
    return best


def _short(row: dict[str, Any]) -> dict[str, str]:
    """The row with numbers short enough for a table of 80 columns."""
    return {
        "data": row["data"],
        "rows": f"{row['rows']:,}",
        "scikit-learn": f"{row['seconds_sklearn']:.4f}",
        "maxmargin": f"{row['seconds']:.4f}",
        "ratio": f"{row['ratio']:.1f}",
        "relative gap": f"{row['relative_gap']:.0e}",
        "same labels": f"{100 * row['same_labels']:.1f} %",
    }


def _short_search(row: dict[str, Any]) -> dict[str, str]:
    return {
        "data": row["data"],
        "GridSearchCV": f"{row['seconds_sklearn']:.2f}",
        "SVMSearchCV": f"{row['seconds']:.2f}",
        "ratio": f"{row['ratio']:.1f}",
        "best score": f"{row['best_score']:.4f} (GridSearchCV: {row['best_score_sklearn']:.4f})",
    }
