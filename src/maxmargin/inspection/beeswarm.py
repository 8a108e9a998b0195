"""The Shapley values of all rows, feature by feature."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maxmargin._types import Floats
from maxmargin.inspection._style import new_axes, pyplot, titled
from maxmargin.inspection.explanation import ShapleyValues, shapley

# Bins of the range of all values, in which points are put side by side.
_BINS = 120
# Height of a feature, of which one is the distance to the next.
_HEIGHT = 0.8


class BeeswarmDisplay:
    """The Shapley values of many rows: a line of points per feature, in the shade of the feature's value.

    Features with the largest mean absolute values are on top. Use `from_estimator` or `from_values` to create
    it.

    Parameters
    ----------
    values : ShapleyValues
        Values of one output.
    max_features : int
        Number of features that are shown.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Axes and figure of the plot.
    points_ : list of PathCollection
        The points of each feature, from the topmost down.
    colorbar_ : Colorbar
        The shades.
    features_ : ndarray of int
        The features that are shown, from the topmost down.

    Examples
    --------
    >>> from maxmargin.inspection import BeeswarmDisplay
    >>> display = BeeswarmDisplay.from_estimator(model, X, X_train[:100])  # doctest: +SKIP
    >>> display.figure_.savefig("beeswarm.png")  # doctest: +SKIP
    """

    def __init__(self, values: ShapleyValues, *, max_features: int = 12) -> None:
        self.values = values.of_output()
        self.max_features = max_features
        if max_features < 1:
            raise ValueError(f"max_features must be at least 1, got {max_features!r}.")

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: ArrayLike,
        background: ArrayLike,
        *,
        output: int | str | None = None,
        distribution: str = "joint",
        n_jobs: int | None = None,
        **options: Any,
    ) -> BeeswarmDisplay:
        """Explain and plot the rows of X.

        Parameters
        ----------
        model, X, background, distribution, n_jobs
            See `maxmargin.inspection.shapley`.
        output : int or str, optional
            The output, if there are several.
        **options
            See `from_values`.

        Returns
        -------
        BeeswarmDisplay
            The display.
        """
        found = shapley(model, X, background, distribution=distribution, n_jobs=n_jobs)
        return cls.from_values(found, output=output, **options)

    @classmethod
    def from_values(
        cls,
        values: ShapleyValues,
        *,
        output: int | str | None = None,
        max_features: int = 12,
        ax: Any = None,
        **options: Any,
    ) -> BeeswarmDisplay:
        """Plot Shapley values.

        Parameters
        ----------
        values : ShapleyValues
            The result of `maxmargin.inspection.shapley`.
        output : int or str, optional
            The output, if there are several.
        max_features : int
            Number of features that are shown.
        ax : Axes, optional
            Axes to plot into; a new figure by default.
        **options
            See `plot`.

        Returns
        -------
        BeeswarmDisplay
            The display.
        """
        return cls(values.of_output(output), max_features=max_features).plot(ax, **options)

    def plot(self, ax: Any = None, *, cmap: Any = "cividis") -> BeeswarmDisplay:
        """Draw the plot.

        Parameters
        ----------
        ax : Axes, optional
            Axes to plot into; a new figure by default.
        cmap : str or Colormap
            Shades from the lowest to the highest value of each feature. The default is readable in grey too.

        Returns
        -------
        BeeswarmDisplay
            The display.
        """
        pyplot("BeeswarmDisplay")
        values, data = self.values.values, self.values.data
        order = np.argsort(-np.abs(values).mean(axis=0), kind="stable")
        self.features_ = order[: self.max_features]
        edges = np.histogram_bin_edges(values[:, self.features_], _BINS)
        ax = new_axes(figsize=(7.5, 1.2 + 0.4 * len(self.features_))) if ax is None else ax
        self.ax_, self.figure_ = ax, ax.figure
        ax.axvline(0.0, color="0.5", lw=0.8, zorder=1)
        sides = [_side_by_side(values[:, j], edges) for j in self.features_]
        step = _HEIGHT / max(8.0, max(float(np.ptp(side)) for side in sides) + 1.0)
        self.points_ = [
            ax.scatter(
                values[:, j], -k + step * sides[k], c=_ranks(data[:, j]), cmap=cmap, vmin=0.0, vmax=1.0, s=12,
                edgecolors="black", linewidths=0.3, zorder=2, rasterized=len(values) > 2000,
            )
            for k, j in enumerate(self.features_)
        ]  # fmt: skip
        self.colorbar_ = self.figure_.colorbar(
            self.points_[0], ax=ax, label="value of the feature (by rank)", ticks=[0, 1]
        )
        self.colorbar_.ax.set_yticklabels(["low", "high"])
        ax.set_yticks(-np.arange(len(self.features_)), [self.values.feature_names[j] for j in self.features_])
        ax.set_ylim(0.6 - len(self.features_), 0.6)
        ax.set_xlabel(f"Shapley value ({self.values.output_names[0]}); left of 0 it lowers the output")
        ax.set_ylabel("feature")
        left = values.shape[1] - len(self.features_)
        rest = f"; the {left} that add less are left out" if left else ""
        titled(ax, f"What each feature adds, in {len(values)} rows{rest}")
        return self


def _side_by_side(values: Floats, edges: Floats) -> Floats:
    """Positions 0, 1, -1, 2, -2, ... of the values that share a bin."""
    bins = np.clip(np.searchsorted(edges, values, side="right"), 1, len(edges) - 1)
    order = np.argsort(bins, kind="stable")
    ordered = bins[order]
    rank = np.empty(len(values), np.intp)
    rank[order] = np.arange(len(values)) - np.searchsorted(ordered, ordered)
    return np.where(rank % 2 == 1, (rank + 1) // 2, -(rank // 2)).astype(np.float64)


def _ranks(column: Any) -> Floats:
    """Ranks of the values of a feature from 0 to 1, so that a single large value does not hide all others."""
    column = column.astype(str) if column.dtype == object else column
    distinct, place = np.unique(column, return_inverse=True)
    return place / (len(distinct) - 1) if len(distinct) > 1 else np.full(len(column), 0.5)
