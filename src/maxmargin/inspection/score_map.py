"""Heat map of the scores of a search over two parameters, with the path of its warm starts."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError

from maxmargin._types import Floats
from maxmargin.inspection._style import new_axes, pyplot

Cell = tuple[int, int]  # index along x, index along y


class SearchDisplay:
    """Mean test scores over two parameters of a search, and the path of its warm starts.

    Use `from_estimator` to create it.

    Parameters
    ----------
    scores : array-like of shape (n_y, n_x)
        The scores; NaN marks missing ones.
    x, y : array-like
        The ascending values of the two parameters.
    param_x, param_y : str
        Their names.
    metric : str
        Name of the score.
    best : tuple of int, optional
        Indices of the best node along x and y.
    path : list of (parent, node), optional
        Cells (index along x, index along y); the parent is None where a node was trained from scratch.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Axes and figure of the plot.
    mesh_, colorbar_ : QuadMesh, Colorbar
        The heat map.
    arrows_ : list of Annotation
        The path, from parent to node.
    cold_, best_ : Line2D or None
        The marks of the cold starts (squares) and of the best node (a star).

    Examples
    --------
    >>> from maxmargin.inspection import SearchDisplay
    >>> display = SearchDisplay.from_estimator(search)  # doctest: +SKIP
    >>> display.figure_.savefig("search.png")  # doctest: +SKIP
    """

    def __init__(
        self,
        scores: ArrayLike,
        x: ArrayLike,
        y: ArrayLike,
        *,
        param_x: str,
        param_y: str,
        metric: str = "score",
        best: Cell | None = None,
        path: Sequence[tuple[Cell | None, Cell]] = (),
    ) -> None:
        self.scores: Floats = np.array(scores, dtype=np.float64)
        self.x: Floats = np.array(x, dtype=np.float64)
        self.y: Floats = np.array(y, dtype=np.float64)
        self.param_x, self.param_y, self.metric = param_x, param_y, metric
        self.best, self.path = best, list(path)
        if self.scores.shape != (len(self.y), len(self.x)):
            raise ValueError(
                f"scores must have the shape ({len(self.y)}, {len(self.x)}), got {self.scores.shape}."
            )

    @classmethod
    def from_estimator(
        cls,
        search: Any,
        *,
        param_x: str | None = None,
        param_y: str | None = None,
        metric: str = "score",
        ax: Any = None,
        **options: Any,
    ) -> SearchDisplay:
        """Plot a fitted search.

        Parameters
        ----------
        search : object
            Any object with `cv_results_` as in scikit-learn. If it has `path_`, pairs (parent, node) of
            indices into `cv_results_` with the parent -1 for a cold start, the path is drawn too.
        param_x, param_y : str, optional
            Two numeric parameters with several values each; by default the second and the first in
            alphabetical order. Where nodes differ in other parameters as well, the best of them is shown.
        metric : str
            Name of the score, if the search has several: ``mean_test_<metric>``.
        ax : Axes, optional
            Axes to plot into; a new figure by default.
        **options
            See `plot`.

        Returns
        -------
        SearchDisplay
            The display.
        """
        results = getattr(search, "cv_results_", None)
        if results is None:
            raise NotFittedError(f"This {type(search).__name__} has no cv_results_: fit it first.")
        key = f"mean_test_{metric}"
        if key not in results:
            known = [name.removeprefix("mean_test_") for name in results if name.startswith("mean_test_")]
            raise ValueError(f"The search has no metric {metric!r}: use one of {', '.join(known)}.")
        nodes: list[dict[str, Any]] = list(results["params"])
        param_x, param_y = _two_parameters(nodes, param_x, param_y)
        x, y = (np.unique([float(node[name]) for node in nodes]) for name in (param_x, param_y))
        cells = [
            (int(np.searchsorted(x, float(node[param_x]))), int(np.searchsorted(y, float(node[param_y]))))
            for node in nodes
        ]
        scores = np.full((len(y), len(x)), np.nan)
        best, highest = None, -np.inf
        for (i, j), score in zip(cells, np.asarray(results[key], dtype=np.float64), strict=True):
            scores[j, i] = np.fmax(scores[j, i], score)
            if score > highest:
                best, highest = (i, j), float(score)
        path: dict[tuple[Cell | None, Cell], None] = {}  # an ordered set: nodes may share a cell
        for parent, node in getattr(search, "path_", None) or ():
            before = cells[parent] if parent >= 0 else None
            if before != cells[node]:
                path[before, cells[node]] = None
        display = cls(
            scores, x, y, param_x=param_x, param_y=param_y, metric=metric, best=best, path=list(path)
        )
        return display.plot(ax, **options)

    @classmethod
    def from_search(cls, search: Any, **options: Any) -> SearchDisplay:
        """Alias of `from_estimator`."""
        return cls.from_estimator(search, **options)

    def plot(self, ax: Any = None, *, cmap: Any = "viridis", path: bool = True) -> SearchDisplay:
        """Draw the plot.

        Parameters
        ----------
        ax : Axes, optional
            Axes to plot into; a new figure by default.
        cmap : str or Colormap
            Colours of the scores. The default is readable in grey too.
        path : bool
            Whether to draw the path, if there is one.

        Returns
        -------
        SearchDisplay
            The display.
        """
        pyplot("SearchDisplay")
        from matplotlib.patheffects import withStroke

        ax = new_axes() if ax is None else ax
        self.ax_, self.figure_ = ax, ax.figure
        logs = [_evenly_spaced_in_logs(values) for values in (self.x, self.y)]
        edges = [_edges(values, log) for values, log in zip((self.x, self.y), logs, strict=True)]
        self.mesh_ = ax.pcolormesh(*edges, np.ma.masked_invalid(self.scores), cmap=cmap)
        for name, log, param in (("x", logs[0], self.param_x), ("y", logs[1], self.param_y)):
            if log:
                getattr(ax, f"set_{name}scale")("log")
            getattr(ax, f"set_{name}label")(param)
        ax.set_xlim(edges[0][0], edges[0][-1])
        ax.set_ylim(edges[1][0], edges[1][-1])
        self.colorbar_ = self.figure_.colorbar(self.mesh_, ax=ax, label=f"mean test {self.metric}")
        # White with a black outline is visible on light and on dark cells.
        outline = [withStroke(linewidth=2.6, foreground="black")]
        self.arrows_: list[Any] = []
        self.cold_ = self.best_ = None
        if path:
            for before, cell in self.path:
                if before is not None:
                    arrow = {"arrowstyle": "->", "color": "white", "lw": 1.1, "shrinkA": 2, "shrinkB": 2}
                    self.arrows_.append(
                        ax.annotate(
                            "", xy=self._at(cell), xytext=self._at(before),
                            arrowprops={**arrow, "path_effects": outline},
                        )
                    )  # fmt: skip
            cold = [self._at(cell) for before, cell in self.path if before is None]
            if cold:
                self.cold_ = self._mark(cold, "s", 7)
        if self.best is not None:
            self.best_ = self._mark([self._at(self.best)], "*", 15)
        return self

    def _at(self, cell: Cell) -> tuple[float, float]:
        return float(self.x[cell[0]]), float(self.y[cell[1]])

    def _mark(self, points: list[tuple[float, float]], marker: str, size: float) -> Any:
        x, y = zip(*points, strict=True)
        return self.ax_.plot(x, y, marker, ms=size, mfc="white", mec="black", ls="none", zorder=3)[0]


def _two_parameters(nodes: list[dict[str, Any]], x: str | None, y: str | None) -> tuple[str, str]:
    """The names of the parameters to draw over."""
    names = sorted({name for node in nodes for name in node})
    numeric = [name for name in names if _varies(nodes, name)]
    for name in (x, y):
        if name is not None and name not in numeric:
            raise ValueError(
                f"{name!r} is not a numeric parameter with several values in every node of the search: use "
                f"two of {', '.join(numeric) or '(none)'}."
            )
    if x is not None and x == y:
        raise ValueError(f"param_x and param_y are both {x!r}.")
    left = [name for name in numeric if name not in (x, y)]
    if len(left) < (x is None) + (y is None):
        raise ValueError(
            "Two numeric parameters with several values are needed, the search has "
            f"{', '.join(numeric) or 'none'}."
        )
    y = y if y is not None else left.pop(0)
    return x if x is not None else left.pop(0), y


def _varies(nodes: list[dict[str, Any]], name: str) -> bool:
    values = [node.get(name) for node in nodes]
    if not all(isinstance(v, Real) and not isinstance(v, bool | np.bool_) for v in values):
        return False
    return len(set(values)) > 1


def _evenly_spaced_in_logs(values: Floats) -> bool:
    """Whether the values are spaced more evenly in their logarithms than as they are."""
    if len(values) < 2 or values[0] <= 0:
        return False
    if len(values) == 2:
        return bool(values[1] >= 10 * values[0])

    def unevenness(steps: Floats) -> float:
        return float(np.ptp(steps) / steps.mean())

    return unevenness(np.diff(np.log(values))) < unevenness(np.diff(values))


def _edges(values: Floats, log: bool) -> Floats:
    """The borders of the cells around the values."""
    at = np.log(values) if log else values
    if len(at) == 1:
        edges = np.array([at[0] - 0.5, at[0] + 0.5])
    else:
        middle = (at[1:] + at[:-1]) / 2
        edges = np.concatenate([[2 * at[0] - middle[0]], middle, [2 * at[-1] - middle[-1]]])
    return np.asarray(np.exp(edges) if log else edges)
