"""Heat map of the scores of a search over two parameters, and the nodes to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError

from maxmargin._types import Floats
from maxmargin.inspection._fitted import last_step
from maxmargin.inspection._score_grid import (
    cell_edges,
    evenly_spaced_in_logs,
    robust_range,
    short_names,
    simplest_within_error,
    standard_errors,
    two_parameters,
)
from maxmargin.inspection._style import COLOURS, legend_below, new_axes, pyplot, titled

Cell = tuple[int, int]  # index along x, index along y


class SearchDisplay:
    """Mean test scores over two parameters of a search.

    Marked are the best node, the simplest one within one standard error of it, and the edge of the grid if
    the best node lies there: a better one may be beyond. Use `from_estimator` to create the display.

    Parameters
    ----------
    scores : array-like of shape (n_y, n_x)
        The scores; NaN marks missing ones.
    x, y : array-like
        The ascending values of the two parameters.
    param_x, param_y : str
        Their names; the axes show the last part, such as C for svc__C.
    metric : str
        Name of the score.
    best : tuple of int, optional
        Indices of the best node along x and y.
    simplest : tuple of int, optional
        Indices of the simplest node within one standard error of the best.
    path : list of (parent, node), optional
        Cells (index along x, index along y); the parent is None where a node was trained from scratch.
    n_folds : int, optional
        Number of folds of which the scores are means.
    estimator_name : str, optional
        Name of the estimator, for the title.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Axes and figure of the plot.
    mesh_, colorbar_ : QuadMesh, Colorbar
        The heat map.
    best_, simplest_ : Line2D or None
        The marks of the best node (a star) and of the simplest within one standard error (a diamond). If it
        is the best node itself there is one mark.
    edges_ : list of Line2D
        The edges of the grid on which the best node lies, of parameters with at least three values.
    arrows_ : list of Annotation
        The path, from parent to node, if it is drawn.
    cold_ : Line2D or None
        The marks of the nodes that were trained from scratch (squares), if the path is drawn.
    legend_ : Legend or None
        The legend below the axes.

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
        simplest: Cell | None = None,
        path: Sequence[tuple[Cell | None, Cell]] = (),
        n_folds: int | None = None,
        estimator_name: str | None = None,
    ) -> None:
        self.scores: Floats = np.array(scores, dtype=np.float64)
        self.x: Floats = np.array(x, dtype=np.float64)
        self.y: Floats = np.array(y, dtype=np.float64)
        self.param_x, self.param_y, self.metric = param_x, param_y, metric
        self.best, self.simplest, self.path = best, simplest, list(path)
        self.n_folds, self.estimator_name = n_folds, estimator_name
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
            indices into `cv_results_` with the parent -1 for a cold start, the path can be drawn too.
        param_x, param_y : str, optional
            Two numeric parameters with several values each, such as "C" or "svc__C"; by default the second
            and the first in alphabetical order. Where nodes differ in other parameters as well, the best of
            them is shown.
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

        Notes
        -----
        The standard error of the best node is the standard deviation of its folds divided by the square root
        of their number. The simplest node is that with the least C times gamma (over nu) among those that
        differ in C, gamma, nu and degree only; for other parameters it is not marked.
        """
        results = getattr(search, "cv_results_", None)
        if results is None:
            raise NotFittedError(f"This {type(search).__name__} has no cv_results_: fit it first.")
        key = f"mean_test_{metric}"
        if key not in results:
            known = [name.removeprefix("mean_test_") for name in results if name.startswith("mean_test_")]
            raise ValueError(f"The search has no metric {metric!r}: use one of {', '.join(known)}.")
        nodes: list[dict[str, Any]] = list(results["params"])
        param_x, param_y = two_parameters(nodes, param_x, param_y)
        x, y = (np.unique([float(node[name]) for node in nodes]) for name in (param_x, param_y))
        cells = [
            (int(np.searchsorted(x, float(node[param_x]))), int(np.searchsorted(y, float(node[param_y]))))
            for node in nodes
        ]
        values = np.asarray(results[key], dtype=np.float64)
        scores = np.full((len(y), len(x)), np.nan)
        for (i, j), score in zip(cells, values, strict=True):
            scores[j, i] = np.fmax(scores[j, i], score)
        errors = standard_errors(results, metric)
        marks: dict[str, Cell] = {}
        if np.isfinite(values).any():
            best = int(np.nanargmax(np.where(np.isfinite(values), values, np.nan)))
            marks["best"] = cells[best]
            simplest = simplest_within_error(nodes, values, errors, best)
            if simplest is not None:
                marks["simplest"] = cells[simplest]
        path: dict[tuple[Cell | None, Cell], None] = {}  # an ordered set: nodes may share a cell
        for parent, node in getattr(search, "path_", None) or ():
            before = cells[parent] if parent >= 0 else None
            if before != cells[node]:
                path[before, cells[node]] = None
        inner = last_step(getattr(search, "estimator", search))
        display = cls(
            scores, x, y, param_x=param_x, param_y=param_y, metric=metric, path=list(path),
            n_folds=sum(name.startswith("split") and name.endswith(f"_test_{metric}") for name in results)
            or None,
            estimator_name=type(inner).__name__ if hasattr(inner, "get_params") else None, **marks,
        )  # fmt: skip
        return display.plot(ax, **options)

    @classmethod
    def from_search(cls, search: Any, **options: Any) -> SearchDisplay:
        """Alias of `from_estimator`."""
        return cls.from_estimator(search, **options)

    def plot(
        self,
        ax: Any = None,
        *,
        cmap: Any = "cividis",
        path: bool = False,
        score_range: str | tuple[float, float] = "robust",
        legend: bool = True,
    ) -> SearchDisplay:
        """Draw the plot.

        Parameters
        ----------
        ax : Axes, optional
            Axes to plot into; a new figure by default.
        cmap : str or Colormap
            Colours of the scores. The default is readable in grey too, and by colour-blind readers.
        path : bool
            Whether to draw from which node each node started, if that is known.
        score_range : {"robust", "full"} or pair of float
            Scores at the ends of the colour range. By default it is chosen so that good scores differ; lower
            ones share the darkest colour, which an arrow at the colour bar says. "full" is from the lowest
            to the highest score.
        legend : bool
            Whether to put a legend below the axes.

        Returns
        -------
        SearchDisplay
            The display.
        """
        pyplot("SearchDisplay")
        low, high = self._range(score_range)
        ax = new_axes(figsize=(6.4, 5.4)) if ax is None else ax
        self.ax_, self.figure_ = ax, ax.figure
        self.legend_ = None
        logs = [evenly_spaced_in_logs(values) for values in (self.x, self.y)]
        edges = [cell_edges(values, log) for values, log in zip((self.x, self.y), logs, strict=True)]
        shown = np.ma.masked_invalid(self.scores)
        self.mesh_ = ax.pcolormesh(*edges, shown, cmap=cmap, vmin=low, vmax=high)
        names = self._names()
        for axis, log, name in zip("xy", logs, names, strict=True):
            if log:
                getattr(ax, f"set_{axis}scale")("log")
            getattr(ax, f"set_{axis}label")(name)
        ax.set_xlim(edges[0][0], edges[0][-1])
        ax.set_ylim(edges[1][0], edges[1][-1])
        self._draw_colorbar(low, high)
        self._draw_missing()
        self._draw_path(path)
        self._draw_edges(names)
        self.best_ = self.simplest_ = None
        same = self.simplest == self.best
        if self.simplest is not None and not same:
            label = f"simplest within one standard error:\n{self._words(self.simplest, names)}"
            self.simplest_ = self._mark([self._at(self.simplest)], "D", 9, label)
        if self.best is not None:
            label = "best, also the simplest within one standard error:\n" if same else "best: "
            self.best_ = self._mark([self._at(self.best)], "*", 16, label + self._words(self.best, names))
        of = f"{self.estimator_name}: scores" if self.estimator_name else "Scores"
        titled(ax, f"{of} over {names[1]} and {names[0]}")
        if legend and ax.get_legend_handles_labels()[1]:
            self.legend_ = legend_below(ax)
        return self

    def _range(self, score_range: Any) -> tuple[float, float]:
        if isinstance(score_range, str):
            if score_range not in ("robust", "full"):
                raise ValueError(
                    f"score_range must be 'robust', 'full' or a pair of scores, got {score_range!r}."
                )
            low, high = robust_range(self.scores)
            finite = self.scores[np.isfinite(self.scores)]
            return (float(finite.min()) if score_range == "full" and len(finite) else low), high
        low, high = (float(end) for end in score_range)
        if not low < high:
            raise ValueError(f"score_range must ascend, got {(low, high)}.")
        return low, high

    def _names(self) -> tuple[str, str]:
        short = short_names([self.param_x, self.param_y])
        return short[self.param_x], short[self.param_y]

    def _draw_colorbar(self, low: float, high: float) -> None:
        known = self.scores[np.isfinite(self.scores)]
        below, above = bool((known < low).any()), bool((known > high).any())
        extend = {(True, True): "both", (True, False): "min", (False, True): "max"}.get(
            (below, above), "neither"
        )
        label = f"mean test {self.metric}" + (f" of {self.n_folds} folds" if self.n_folds else "")
        ends = [f"down to {known.min():.3g}"] if below else []
        ends += [f"up to {known.max():.3g}"] if above else []
        label += f"\n(beyond the arrow: {', '.join(ends)})" if ends else ""
        self.colorbar_ = self.figure_.colorbar(self.mesh_, ax=self.ax_, extend=extend, label=label)

    def _draw_missing(self) -> None:
        """Hatch the cells without a score."""
        if np.isfinite(self.scores).all():
            return
        from matplotlib.patches import Rectangle

        look: dict[str, Any] = {"facecolor": "white", "edgecolor": "0.6", "hatch": "xx"}
        ax = self.ax_
        ax.patch.set(**look)
        ax.add_patch(
            Rectangle((0, 0), 0, 0, transform=ax.transAxes, label="no score", **look)
        )  # for the legend

    def _draw_path(self, path: bool) -> None:
        """Arrows from each node to those that started from its solution."""
        from matplotlib.lines import Line2D
        from matplotlib.patheffects import withStroke

        self.arrows_: list[Any] = []
        self.cold_ = None
        if not path:
            return
        # White with a black outline is visible on light and on dark cells.
        outline = [withStroke(linewidth=2.6, foreground="black")]
        for before, cell in self.path:
            if before is not None:
                arrow = {"arrowstyle": "->", "color": "white", "lw": 1.1, "shrinkA": 2, "shrinkB": 2}
                self.arrows_.append(
                    self.ax_.annotate(
                        "", xy=self._at(cell), xytext=self._at(before),
                        arrowprops={**arrow, "path_effects": outline},
                    )
                )  # fmt: skip
        if self.arrows_:
            self.ax_.add_line(
                Line2D(
                    [], [], color="white", lw=1.1, marker=">", ms=5, mec="black", mfc="white",
                    path_effects=outline, label="from a node to one that starts from its solution",
                )
            )  # fmt: skip
        cold = [self._at(cell) for before, cell in self.path if before is None]
        if cold:
            self.cold_ = self._mark(cold, "s", 7, "trained without a warm start")

    def _draw_edges(self, names: tuple[str, str]) -> None:
        """Thick dashes along the edges on which the best node lies."""
        self.edges_: list[Any] = []
        if self.best is None:
            return
        for along, (values, name, at) in enumerate(zip((self.x, self.y), names, self.best, strict=True)):
            if len(values) < 3 or at not in (0, len(values) - 1):
                continue
            side = float(at > 0)
            line = ([side, side], [0.0, 1.0])
            self.edges_ += self.ax_.plot(
                *(line if along == 0 else line[::-1]), transform=self.ax_.transAxes, clip_on=False,
                color=COLOURS[1], lw=4.5, ls=(0, (1.6, 0.8)), scalex=False, scaley=False, zorder=4,
                label=f"the best {name} is at the edge: try {'larger' if side else 'smaller'} values",
            )  # fmt: skip

    def _words(self, cell: Cell, names: tuple[str, str]) -> str:
        """The score of a cell and its parameters."""
        (i, j), (x, y) = cell, names
        return f"{self.scores[j, i]:.4g} at {y} = {self.y[j]:.3g}, {x} = {self.x[i]:.3g}"

    def _at(self, cell: Cell) -> tuple[float, float]:
        return float(self.x[cell[0]]), float(self.y[cell[1]])

    def _mark(self, points: list[tuple[float, float]], marker: str, size: float, label: str) -> Any:
        x, y = zip(*points, strict=True)
        return self.ax_.plot(
            x, y, marker, ms=size, mfc="white", mec="black", ls="none", zorder=3, label=label
        )[0]  # fmt: skip
