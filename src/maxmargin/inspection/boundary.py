"""The decision boundary of a model in the plane, with margins and support vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_regressor
from sklearn.utils.validation import check_consistent_length

from maxmargin._types import Floats, Index
from maxmargin.inspection._fitted import last_step, refitted
from maxmargin.inspection._points import columns_of, like, support_of
from maxmargin.inspection._response import axis_of, labels_of, response_of
from maxmargin.inspection._style import (
    FACES,
    MARKERS,
    REGIONS,
    class_name,
    legend_beside,
    new_axes,
    pyplot,
    style,
    titled,
)

# The kinds of plots, and their titles.
_KINDS = {
    "classes": "areas of the classes",
    "margin": "boundary",
    "one-class": "boundary around the inliers",
    "tube": "prediction",
}


class BoundaryDisplay:
    r"""A classifier or outlier detector over its two features, or a regression over its one feature.

    The plot depends on the kind of model:

    - two classes: the boundary :math:`f = 0` and the margins :math:`f = \pm 1`;
    - more classes: the region of each class;
    - one class: the boundary :math:`f = 0` around the inliers;
    - regression with one feature: the curve and the tube of :math:`\pm\varepsilon` around it.

    Samples are drawn with rings around the support vectors, and squares around those whose coefficient is at
    its bound, which lie within the margin or on the wrong side of it. Use `from_estimator` to create it.

    Parameters
    ----------
    x : ndarray of shape (n_x,)
        Grid values of the first feature.
    y : ndarray of shape (n_y,) or None
        Grid values of the second feature; None for a regression.
    response : ndarray of shape (n_y, n_x) or (n_x,)
        Values of the decision function ("margin", "one-class"), positions among `classes` ("classes") or
        predictions ("tube") there.
    kind : {"margin", "classes", "one-class", "tube"}
        Meaning of the response.
    points : ndarray of shape (n_samples, 2), optional
        Samples; for a regression the feature and the target.
    labels : ndarray of shape (n_samples,), optional
        Positions of the samples' classes among `classes`.
    classes : sequence, optional
        Names of the classes.
    support : ndarray of shape (n_SV, 2), optional
        Support vectors.
    bounded : ndarray of bool of shape (n_SV,), optional
        Which support vectors have a coefficient at its bound.
    epsilon : float, optional
        Half the width of the tube.
    margins : bool
        Whether to draw the margins :math:`f = \pm 1`.
    names : pair of str
        Labels of the axes.
    estimator_name : str, optional
        Name of the estimator, for the title.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Axes and figure of the plot.
    regions_ : QuadMesh, QuadContourSet or PolyCollection
        The shaded areas.
    lines_ : list of QuadContourSet or of Line2D
        The boundary first, then the margins or the edges of the tube.
    points_ : list of PathCollection
        The samples, class by class.
    support_, bounded_ : PathCollection or None
        The rings, and the squares.
    legend_ : Legend or None
        The legend beside the axes.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from maxmargin import SVC
    >>> from maxmargin.inspection import BoundaryDisplay
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> display = BoundaryDisplay.from_estimator(SVC().fit(X, y), X, y)  # doctest: +SKIP
    >>> display.figure_.savefig("boundary.png")  # doctest: +SKIP
    """

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike | None,
        response: ArrayLike,
        *,
        kind: str = "margin",
        points: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        classes: Any = (),
        support: ArrayLike | None = None,
        bounded: ArrayLike | None = None,
        epsilon: float | None = None,
        margins: bool = True,
        names: tuple[str, str] = ("feature 0", "feature 1"),
        estimator_name: str | None = None,
    ) -> None:
        if kind not in _KINDS:
            raise ValueError(f"kind must be one of {', '.join(_KINDS)}, got {kind!r}.")
        self.x: Floats = np.asarray(x, dtype=np.float64)
        self.y: Floats | None = None if y is None else np.asarray(y, dtype=np.float64)
        self.response: Floats = np.asarray(response, dtype=np.float64)
        shape = self.x.shape if self.y is None else (len(self.y), len(self.x))
        if self.response.shape != shape:
            raise ValueError(f"response must have the shape {shape}, got {self.response.shape}.")
        self.kind, self.classes, self.epsilon, self.margins = kind, list(classes), epsilon, margins
        self.points = None if points is None else np.asarray(points, dtype=np.float64)
        self.labels: Index | None = None if labels is None else np.asarray(labels, dtype=np.intp)
        self.support = None if support is None else np.asarray(support, dtype=np.float64)
        n_support = 0 if self.support is None else len(self.support)
        self.bounded = np.zeros(n_support, bool) if bounded is None else np.asarray(bounded, dtype=bool)
        self.names, self.estimator_name = names, estimator_name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        support: bool = True,
        grid_resolution: int = 200,
        eps: float = 0.1,
        ax: Any = None,
        **options: Any,
    ) -> BoundaryDisplay:
        """Plot a fitted estimator.

        Parameters
        ----------
        estimator : object
            A support vector machine of this library or of scikit-learn, a pipeline that ends in one (the
            plot is in the units of the pipeline's input), or a search, of which the best estimator is
            plotted.
        X : array-like or DataFrame of shape (n_samples, 2) or, for a regression, (n_samples, 1)
            The training samples.
        y : array-like of shape (n_samples,), optional
            Their classes or targets. Without y the samples of a classifier are not distinguished by class,
            and those of an outlier detector are marked as inliers or outliers.
        support : bool
            Whether to mark support vectors.
        grid_resolution : int
            Number of grid values of each feature.
        eps : float
            Margin around the samples, relative to their range.
        ax : Axes, optional
            Axes to plot into; a new figure by default.
        **options
            See `plot`.

        Returns
        -------
        BoundaryDisplay
            The display.
        """
        pyplot(cls.__name__)
        if grid_resolution < 2:
            raise ValueError(f"grid_resolution must be at least 2, got {grid_resolution!r}.")
        if not eps >= 0:
            raise ValueError(f"eps must not be negative, got {eps!r}.")
        fitted = refitted(estimator)
        tube = is_regressor(fitted)
        values, names = columns_of(X, 1 if tube else 2, fitted)
        axes = [axis_of(column, grid_resolution, eps) for column in values.T]
        found = support_of(fitted, X, values) if support else None
        if y is not None:
            y = np.ravel(np.asarray(y))
            check_consistent_length(values, y)
        if tube:
            return cls._of_regression(fitted, X, values, y, axes[0], found, names).plot(ax, **options)
        grid = np.stack(np.meshgrid(*axes), axis=-1)
        known: dict[str, Any] = {"points": values, "names": names}
        known["estimator_name"] = type(last_step(fitted)).__name__
        if found is not None:
            known |= {"support": values[found[0]] if found[2] is None else found[2], "bounded": found[1]}
        known |= response_of(fitted, like(X, grid.reshape(-1, 2)))
        response = known.pop("response").reshape(grid.shape[:2])
        known |= labels_of(fitted, X, y, known["kind"], known.pop("classes"))
        return cls(axes[0], axes[1], response, **known).plot(ax, **options)

    @classmethod
    def _of_regression(
        cls, fitted: Any, X: Any, values: Floats, y: Any, x: Floats, found: Any, names: Any
    ) -> BoundaryDisplay:
        model = last_step(fitted)
        response = np.asarray(fitted.predict(like(X, x[:, None])))
        if response.ndim > 1:
            raise ValueError(
                f"A plot shows one target, and the model predicts {response.shape[1]}: train one for each; "
                "BandDisplay shows quantiles."
            )
        epsilon = getattr(model, "epsilon_", model.get_params(deep=False).get("epsilon"))
        known: dict[str, Any] = {}
        if y is not None:
            known["points"] = np.column_stack([values, np.asarray(y, dtype=np.float64)])
            if found is not None:
                known |= {"support": known["points"][found[0]], "bounded": found[1]}
        return cls(
            x,
            None,
            response,
            kind="tube",
            # LIBSVM's model files do not store the width of the tube.
            epsilon=None if epsilon is None or np.isnan(epsilon) else epsilon,
            names=(names[0], "target"),
            estimator_name=type(model).__name__,
            **known,
        )

    def plot(
        self, ax: Any = None, *, regions: bool = True, legend: bool = True, size: float = 28.0
    ) -> BoundaryDisplay:
        """Draw the plot.

        Parameters
        ----------
        ax : Axes, optional
            Axes to plot into; a new figure by default.
        regions : bool
            Whether to shade the areas.
        legend : bool
            Whether to put a legend beside the axes.
        size : float
            Area of a sample's marker, in square points.

        Returns
        -------
        BoundaryDisplay
            The display.
        """
        pyplot("BoundaryDisplay")
        ax = new_axes(figsize=(7.4, 4.8)) if ax is None else ax
        self.ax_, self.figure_ = ax, ax.figure
        self.regions_: Any = None
        self.lines_: list[Any] = []
        self.points_: list[Any] = []
        self.support_ = self.bounded_ = self.legend_ = None
        {"tube": self._draw_tube, "classes": self._draw_classes}.get(self.kind, self._draw_levels)(regions)
        self._draw_points(size)
        if self.y is not None:
            ax.set_xlim(self.x[0], self.x[-1])
            ax.set_ylim(self.y[0], self.y[-1])
        ax.set_xlabel(self.names[0])
        ax.set_ylabel(self.names[1])
        titled(ax, self._title())
        if legend and ax.get_legend_handles_labels()[1]:
            self.legend_ = self._legend()
        return self

    def _title(self) -> str:
        parts = [_KINDS[self.kind]]
        parts += ["margins"] * (self.kind == "margin" and self.margins)
        parts += ["tube"] * (self.kind == "tube" and self.epsilon is not None)
        parts += ["support vectors"] * (self.support_ is not None or self.bounded_ is not None)
        words = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
        return f"{self.estimator_name}: {words}" if self.estimator_name else words.capitalize()

    def _legend(self) -> Any:
        """A legend in which the marker of each class lies on the shade of its area."""
        from matplotlib.patches import Patch

        handles, labels = self.ax_.get_legend_handles_labels()
        if self.kind == "tube" and self.regions_ is not None:
            handles[1] = (Patch(facecolor=REGIONS[3]), handles[1])  # the tube has a shade, too
        shades = {} if self.regions_ is None or self.kind == "tube" else self._shades()
        title = None
        for label, shade in shades.items():
            patch = Patch(facecolor=shade, edgecolor="0.5", linewidth=0.5)
            if label in labels:
                k = labels.index(label)
                handles[k] = (patch, handles[k])
                title = (
                    "shade: prediction" if self.kind == "one-class" else "marker: class, shade: prediction"
                )
            else:
                handles.append(patch)
                labels.append(f"predicted: {label}")
        return legend_beside(self.ax_, handles, labels, title=title)

    def _shades(self) -> dict[str, str]:
        """The shades of the areas by the names that the legend has for them."""
        if self.kind == "one-class":
            return dict(zip(("inliers", "outliers"), REGIONS, strict=False))
        return {class_name(label): style(c, REGIONS) for c, label in enumerate(self.classes)}

    def _draw_levels(self, regions: bool) -> None:
        """The areas on both sides of f = 0, the boundary and the margins."""
        from matplotlib.lines import Line2D

        ax, f = self.ax_, self.response
        if regions:
            top = 1.0 + float(np.abs(f).max())
            sides = REGIONS[:2] if self.kind == "margin" else REGIONS[1::-1]  # inliers are in the darker area
            self.regions_ = ax.contourf(self.x, self.y, f, [-top, 0.0, top], colors=sides)
        wanted = [(0.0, "-", 1.8, "boundary")]
        if self.kind == "margin" and self.margins:
            wanted += [(-1.0, "--", 1.1, "margins"), (1.0, "--", 1.1, "")]
        for level, line_style, width, label in wanted:
            if f.min() < level < f.max():  # matplotlib warns about levels outside the range
                line = ax.contour(
                    self.x, self.y, f, [level], colors="black", linestyles=line_style, linewidths=width
                )
                self.lines_.append(line)
                if label:  # contours do not appear in legends
                    ax.add_line(Line2D([], [], color="black", ls=line_style, lw=width, label=label))

    def _draw_classes(self, regions: bool) -> None:
        """The area of every class and its border."""
        from matplotlib.colors import ListedColormap

        k = len(self.classes)
        if regions:
            self.regions_ = self.ax_.pcolormesh(
                self.x, self.y, self.response, shading="nearest", rasterized=True,
                cmap=ListedColormap([style(c, REGIONS) for c in range(k)]), vmin=-0.5, vmax=k - 0.5,
            )  # fmt: skip
        for c in range(k):
            mine = (self.response == c).astype(np.float64)
            if 0 < mine.sum() < mine.size:
                self.lines_.append(
                    self.ax_.contour(self.x, self.y, mine, [0.5], colors="black", linewidths=1.0)
                )

    def _draw_tube(self, regions: bool) -> None:
        """The curve, and the tube in which deviations cost nothing."""
        ax, f = self.ax_, self.response
        self.lines_ += ax.plot(self.x, f, "-", color="black", lw=1.8, label="prediction")
        if self.epsilon is None:
            return
        low, high = f - self.epsilon, f + self.epsilon
        if regions:
            self.regions_ = ax.fill_between(self.x, low, high, color=REGIONS[3], lw=0, zorder=0)
        for edge, label in ((high, f"tube, ±{self.epsilon:.3g}"), (low, None)):
            self.lines_ += ax.plot(self.x, edge, "--", color="black", lw=1.0, label=label)

    def _draw_points(self, size: float) -> None:
        ax = self.ax_
        if self.points is not None:
            labels = np.zeros(len(self.points), np.intp) if self.labels is None else self.labels
            for c in range(labels.max(initial=-1) + 1):
                name = class_name(self.classes[c]) if self.labels is not None else "samples"
                mine = self.points[labels == c]
                self.points_.append(
                    ax.scatter(
                        *mine.T, s=size, marker=style(c, MARKERS), c=style(c, FACES), edgecolors="black",
                        linewidths=0.7, zorder=3, label=name,
                    )
                )  # fmt: skip
        if self.support is None:
            return
        rings = (
            ("support_", "o", ~self.bounded, "support vectors"),
            ("bounded_", "s", self.bounded, "support vectors\nat the bound"),
        )
        for name, marker, chosen, label in rings:
            if chosen.any():
                ring = ax.scatter(
                    *self.support[chosen].T, s=4.2 * size, marker=marker, facecolors="none",
                    edgecolors="black", linewidths=0.9, zorder=4, label=label,
                )  # fmt: skip
                setattr(self, name, ring)
