"""The pictures of ``maxmargin demo``, and what each of them shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Solvers whose convergence is plotted.
_SOLVERS = ("smo", "mdm", "mdm-accelerated")


def fitted(estimator: Any, X: Any, y: Any) -> Any:
    """The fitted estimator; raises KeyboardInterrupt if Ctrl-C has ended the fit, instead of going on."""
    estimator.fit(X, y)
    if getattr(estimator, "interrupted_", False) or getattr(estimator, "status_", "") == "interrupted":
        raise KeyboardInterrupt
    return estimator


def pictures(search: Any) -> dict[str, tuple[Callable[[], Any], str]]:
    """By file name a function that draws a display, and a description."""
    return {
        "boundary.png": (
            _boundary,
            "A model of two classes. Shades are predictions; rings and squares are the support vectors, the "
            "only samples that the model consists of.",
        ),
        "search.png": (
            lambda: _search(search),
            "The accuracy of the 100 combinations. The star is the best one, the diamond the simplest that "
            "is as good within a standard error; dashes along an edge say that a larger grid may be better.",
        ),
        "trace.png": (
            _trace,
            "How three solvers come closer to the minimum: further down is more accurate, further left less "
            "work. MDM goes to and fro in small steps; accelerated MDM joins them into long ones.",
        ),
        "hulls.png": (
            _hulls,
            "The same in the plane: training is the search for the nearest points of two hulls. In the "
            "middle the steps of MDM and of accelerated MDM, on the right how far they are from the end.",
        ),
    }


def _boundary() -> Any:
    from sklearn.datasets import make_moons

    from maxmargin import SVC
    from maxmargin.inspection import BoundaryDisplay

    X, y = make_moons(150, noise=0.25, random_state=0)
    return BoundaryDisplay.from_estimator(fitted(SVC(C=10.0, gamma=1.0), X, y), X, y)


def _search(search: Any) -> Any:
    from maxmargin.inspection import SearchDisplay

    return SearchDisplay.from_estimator(search)


def _trace() -> Any:
    from sklearn.datasets import make_circles

    from maxmargin import SVC
    from maxmargin.inspection import TraceDisplay, Watched

    X, y = make_circles(300, noise=0.15, factor=0.5, random_state=0)
    options: dict[str, Any] = {"C": 1e4, "gamma": 0.05, "loss": "squared_hinge"}
    runs = {name: fitted(SVC(solver=Watched(name), **options), X, y) for name in _SOLVERS}
    return TraceDisplay.from_estimator(runs, x="kernel_calls", y="relative_gap")


def _hulls() -> Any:
    import numpy as np

    from maxmargin.inspection import HullDisplay

    rng = np.random.default_rng(2)
    parts = []
    for middle, angle in (((0.0, 0.0), -0.5), ((0.7, 1.6), -0.55)):
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        parts.append(rng.uniform(-1, 1, (8, 2)) * (3.0, 0.2) @ turn.T + middle)
    return HullDisplay.from_points(np.vstack(parts), np.repeat(["lower", "upper"], 8), tol=1e-4)
