"""Predicted quantiles over one feature."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_consistent_length

from maxmargin._types import Floats
from maxmargin.inspection._fitted import last_step, refitted
from maxmargin.inspection._points import columns_of, like
from maxmargin.inspection._response import axis_of
from maxmargin.inspection._style import FACES, LINES, MARKERS, legend_beside, new_axes, pyplot, style, titled

# From the widest band to the narrowest; darker inside.
_SHADES = ("#dbe5f1", "#b3c8e0", "#8fadd0", "#6d93c0", "#4f7bad")


class BandDisplay:
    """A regression of quantiles over its one feature: bands between pairs of quantiles, and the line between.

    The lowest and the highest quantile are the edges of the widest band, the next ones those of a narrower
    band within, and so on; the one in the middle, if their number is odd, is a line. Use `from_estimator` to
    create it.

    Parameters
    ----------
    x : ndarray of shape (n_x,)
        Grid values of the feature.
    values : ndarray of shape (n_x, n_quantiles)
        The predicted quantiles there.
    quantiles : sequence of float
        Which quantiles they are, ascending.
    points : ndarray of shape (n_samples, 2), optional
        Samples: the feature and the target.
    names : pair of str
        Labels of the axes.
    estimator_name : str, optional
        Name of the estimator, for the title.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Axes and figure of the plot.
    bands_ : list of PolyCollection
        The bands, the widest first.
    lines_ : list of Line2D
        The quantiles in ascending order.
    points_ : PathCollection or None
        The samples.
    legend_ : Legend or None
        The legend beside the axes.

    See Also
    --------
    maxmargin.QuantileSVR : The estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import QuantileSVR
    >>> from maxmargin.inspection import BandDisplay
    >>> x = np.linspace(0, 6, 200)[:, None]
    >>> y = np.sin(x[:, 0]) + np.random.default_rng(0).normal(size=200) * 0.1 * x[:, 0]
    >>> model = QuantileSVR(quantiles=[0.05, 0.5, 0.95], C=10.0).fit(x, y)
    >>> display = BandDisplay.from_estimator(model, x, y)  # doctest: +SKIP
    >>> display.figure_.savefig("band.png")  # doctest: +SKIP
    """

    def __init__(
        self,
        x: ArrayLike,
        values: ArrayLike,
        quantiles: ArrayLike,
        *,
        points: ArrayLike | None = None,
        names: tuple[str, str] = ("feature 0", "target"),
        estimator_name: str | None = None,
    ) -> None:
        self.x: Floats = np.asarray(x, dtype=np.float64)
        self.values: Floats = np.asarray(values, dtype=np.float64)
        self.quantiles: Floats = np.asarray(quantiles, dtype=np.float64)
        shape = (len(self.x), len(self.quantiles))
        if self.values.shape != shape:
            raise ValueError(f"values must have the shape {shape}, got {self.values.shape}.")
        if not (np.diff(self.quantiles) > 0).all():
            raise ValueError(f"quantiles must ascend, got {self.quantiles.tolist()}.")
        self.points: Floats | None = None if points is None else np.asarray(points, dtype=np.float64)
        self.names, self.estimator_name = names, estimator_name

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, grid_resolution: int = 200, eps: float = 0.05,
        ax: Any = None, **options: Any,
    ) -> BandDisplay:  # fmt: skip
        """Plot a fitted estimator.

        Parameters
        ----------
        estimator : object
            A `maxmargin.QuantileSVR` of one target, a pipeline that ends in one (the plot is in the units of
            the pipeline's input), or a search, of which the best estimator is plotted.
        X : array-like or DataFrame of shape (n_samples, 1)
            Samples.
        y : array-like of shape (n_samples,), optional
            Their targets; without them no samples are drawn.
        grid_resolution : int
            Number of grid values of the feature.
        eps : float
            Margin around the samples, relative to their range.
        ax : Axes, optional
            Axes to plot into; a new figure by default.
        **options
            See `plot`.

        Returns
        -------
        BandDisplay
            The display.
        """
        pyplot(cls.__name__)
        if grid_resolution < 2:
            raise ValueError(f"grid_resolution must be at least 2, got {grid_resolution!r}.")
        if not eps >= 0:
            raise ValueError(f"eps must not be negative, got {eps!r}.")
        fitted = refitted(estimator)
        quantiles = getattr(last_step(fitted), "quantiles_", None)
        if quantiles is None:
            raise TypeError(
                f"A band needs a model of quantiles, QuantileSVR, got {type(last_step(fitted)).__name__}: "
                "BoundaryDisplay shows other regressions."
            )
        column, names = columns_of(X, 1, fitted)
        x = axis_of(column[:, 0], grid_resolution, eps)
        values = np.asarray(fitted.predict(like(X, x[:, None])), dtype=np.float64)
        values = values.reshape(len(x), -1)
        if values.shape[1] != len(quantiles):
            raise ValueError(
                f"A plot shows one target, and the model predicts {values.shape[1]}: train one for each."
            )
        points = None
        if y is not None:
            y = np.ravel(np.asarray(y, dtype=np.float64))
            check_consistent_length(column, y)
            points = np.column_stack([column, y])
        display = cls(
            x, values, quantiles, points=points, names=(names[0], "target"),
            estimator_name=type(last_step(fitted)).__name__,
        )  # fmt: skip
        return display.plot(ax, **options)

    def plot(
        self, ax: Any = None, *, bands: bool = True, legend: bool = True, size: float = 16.0
    ) -> BandDisplay:
        """Draw the plot.

        Parameters
        ----------
        ax : Axes, optional
            Axes to plot into; a new figure by default.
        bands : bool
            Whether to shade the bands.
        legend : bool
            Whether to put a legend beside the axes.
        size : float
            Area of a sample's marker, in square points.

        Returns
        -------
        BandDisplay
            The display.
        """
        pyplot("BandDisplay")
        ax = new_axes(figsize=(7.4, 4.8)) if ax is None else ax
        self.ax_, self.figure_ = ax, ax.figure
        self.bands_: list[Any] = []
        self.points_ = self.legend_ = None
        k = len(self.quantiles)
        for b in range(k // 2 if bands else 0):
            low, high = self.values[:, b], self.values[:, k - 1 - b]
            label = f"{_percent(self.quantiles[b])} to {_percent(self.quantiles[k - 1 - b])}"
            color = style(b, _SHADES)
            self.bands_.append(
                ax.fill_between(self.x, low, high, color=color, lw=0, zorder=b / k, label=label)
            )
        self.lines_: list[Any] = []
        for q in range(k):
            outside = min(q, k - 1 - q)  # 0 for the edges of the widest band
            middle = k % 2 and q == k // 2
            name = "median" if self.quantiles[q] == 0.5 else f"quantile {_percent(self.quantiles[q])}"
            look = {"ls": "-", "lw": 1.8} if middle else {"ls": style(outside + 1, LINES), "lw": 1.0}
            named = name if middle or not bands else None
            self.lines_ += ax.plot(self.x, self.values[:, q], color="black", zorder=2, label=named, **look)
        if self.points is not None:
            self.points_ = ax.scatter(
                *self.points.T, s=size, marker=MARKERS[0], c=FACES[1], edgecolors="black", linewidths=0.5,
                zorder=1.5, label="samples",
            )  # fmt: skip
        ax.set_xlim(self.x[0], self.x[-1])
        ax.set_xlabel(self.names[0])
        ax.set_ylabel(self.names[1])
        titled(
            ax,
            f"{self.estimator_name}: predicted quantiles" if self.estimator_name else "Predicted quantiles",
        )
        handles, labels = ax.get_legend_handles_labels()
        if legend and labels:
            for b in range(len(self.bands_)):  # the edges have a line style of their own
                handles[b] = (handles[b], self.lines_[b])
            self.legend_ = legend_beside(ax, handles, labels)
        return self


def _percent(quantile: float) -> str:
    return f"{100.0 * quantile:.4g} %"
