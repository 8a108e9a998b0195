"""The hulls of two classes, their nearest points, and the paths of solvers to them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maxmargin._types import Floats
from maxmargin.inspection._hull_paths import draw_distances, draw_paths, square_limits
from maxmargin.inspection._nearest import geometry_of, iterates, model_and_mu, offset_of
from maxmargin.inspection._polygons import difference, hull, reduced_hull
from maxmargin.inspection._style import (
    FACES,
    MARKERS,
    REGIONS,
    class_name,
    legend_below,
    pyplot,
    style,
    titled,
)
from maxmargin.solvers.base import Solver


class HullDisplay:
    r"""The hulls of two classes in the plane, and the paths of solvers to their nearest points.

    The boundary of a linear model of two classes is half-way between the nearest points :math:`p_+` and
    :math:`p_-` of their hulls. With slacks these are reduced hulls, in which the weight of a sample is at
    most :math:`\mu`; the boundary is still perpendicular to :math:`p_+ - p_-`, but its offset is determined
    by the free support vectors.

    The second plot shows the first steps to :math:`w = p_+ - p_-`, the point of least norm among all
    differences. A solver that moves weight between two samples at a time, such as MDM, zigzags towards it
    where the hulls are thin; accelerated MDM takes steps along the cycles of the zigzag (Barbero, López,
    Dorronsoro, "An Accelerated MDM Algorithm for SVM Training"). The third plot shows all steps: how much
    longer than the least one w is, on logarithmic axes.

    Use `from_points` or `from_estimator` to create it.

    Parameters
    ----------
    points : array-like of shape (n_samples, 2)
        Samples.
    sides : array-like of shape (n_samples,)
        +1 and -1; only +1 for a single hull, whose nearest point to the origin is drawn.
    nearest : array-like of shape (2, 2)
        The nearest points: that of the positive class, then that of the negative class or the origin.
    mu : float, optional
        The largest weight of a sample; None for the whole hulls.
    offset : float, optional
        The value of :math:`\langle w, x\rangle` on the boundary; by default half-way.
    paths : dict of array-like of shape (n_iterates, 2)
        The iterates :math:`w_t` of each solver, by label.
    steps : dict of int
        The number of iterations of each solver, by label.
    unfinished : collection of str
        Labels of the solvers that have not converged at the end of their paths.
    classes : pair, optional
        Names of the negative and the positive class.
    names : pair of str
        Labels of the axes.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Axes and figure of the hulls.
    path_ax_, distance_ax_ : Axes or None
        Axes of the paths in the plane, and of the distances.
    hulls_ : list of Polygon
        The hull of the negative class first; reduced hulls follow the whole ones.
    nearest_, boundary_ : Line2D, Line2D or None
        The segment between the nearest points, and the boundary; None for a single hull or touching ones.
    paths_, distances_ : dict of Line2D
        The paths and the distances, by label.

    Examples
    --------
    >>> from maxmargin.inspection import HullDisplay
    >>> X = [[0.0, 0.0], [4.0, 1.0], [1.0, 2.0], [5.0, 3.5]]
    >>> display = HullDisplay.from_points(X, [0, 0, 1, 1])  # doctest: +SKIP
    >>> display.figure_.savefig("hulls.png")  # doctest: +SKIP
    """

    def __init__(
        self,
        points: ArrayLike,
        sides: ArrayLike,
        nearest: ArrayLike,
        *,
        mu: float | None = None,
        offset: float | None = None,
        paths: Mapping[str, ArrayLike] | None = None,
        steps: Mapping[str, int] | None = None,
        unfinished: Collection[str] = (),
        classes: Any = ("-1", "+1"),
        names: tuple[str, ...] = ("feature 0", "feature 1"),
    ) -> None:
        self.points: Floats = np.asarray(points, dtype=np.float64)
        self.sides: Floats = np.asarray(sides, dtype=np.float64)
        self.nearest: Floats = np.asarray(nearest, dtype=np.float64)
        self.offset = offset
        self.mu, self.classes, self.names = mu, tuple(classes), tuple(names)
        self.paths = {label: np.asarray(path, np.float64) for label, path in (paths or {}).items()}
        self.unfinished = frozenset(unfinished)
        self.steps = dict(steps or {label: len(path) - 1 for label, path in self.paths.items()})

    @classmethod
    def from_points(
        cls,
        X: Any,
        y: Any = None,
        *,
        solvers: Sequence[str | Solver[Any]] | Mapping[str, str | Solver[Any]] | None = None,
        mu: float | None = None,
        tol: float = 1e-3,
        max_steps: int = 300,
        start: ArrayLike | None = None,
        ax: Any = None,
        **options: Any,
    ) -> HullDisplay:
        """Plot the hulls of samples, and the paths of solvers to their nearest points.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, 2)
            Samples.
        y : array-like of shape (n_samples,), optional
            Two classes. Without y there is one hull, and its point nearest to the origin is drawn.
        solvers : sequence or dict of str or Solver, optional
            Solvers whose paths are drawn, by name or by label; by default "mdm" and "mdm-accelerated", or
            "smo-first-order" and "smo" for reduced hulls, which MDM does not accept. With an empty sequence
            only the hulls are drawn.
        mu : float, optional
            The largest weight of a sample, for reduced hulls; at least one over the size of each class.
        tol : float
            Solvers stop when the largest KKT violation is below tol.
        max_steps : int
            The largest number of steps of a path.
        start : array-like of shape (n_samples,), optional
            Weights of the samples at the start of each solver.
        ax : Axes or sequence of two or three Axes, optional
            Axes of the hulls, of the paths and, if there is a third one, of the distances; a single Axes is
            divided among them. A new figure by default.
        **options
            See `plot`.

        Returns
        -------
        HullDisplay
            The display.
        """
        display = cls._of_points(X, y, solvers=solvers, mu=mu, tol=tol, max_steps=max_steps, start=start)
        return display.plot(ax, **options)

    @classmethod
    def _of_points(
        cls,
        X: Any,
        y: Any,
        *,
        solvers: Sequence[str | Solver[Any]] | Mapping[str, str | Solver[Any]] | None = None,
        mu: float | None = None,
        tol: float = 1e-3,
        max_steps: int = 300,
        start: ArrayLike | None = None,
    ) -> HullDisplay:
        pyplot(cls.__name__)
        if max_steps < 1:
            raise ValueError(f"max_steps must be positive, got {max_steps!r}.")
        at = geometry_of(X, y, mu)
        if solvers is None:
            solvers = ("mdm", "mdm-accelerated") if mu is None else ("smo-first-order", "smo")
        several = dict(solvers) if isinstance(solvers, Mapping) else {_label(s): s for s in solvers}
        found = {label: iterates(at, solver, tol, max_steps, start) for label, solver in several.items()}
        return cls(
            at.points,
            at.sides,
            at.nearest(),
            mu=mu,
            paths={label: path for label, (path, _, _) in found.items()},
            steps={label: steps for label, (_, steps, _) in found.items()},
            unfinished=[label for label, (_, _, converged) in found.items() if not converged],
            classes=at.classes,
            names=at.names,
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        ax: Any = None,
        paths: bool = True,
        legend: bool = True,
        **options: Any,
    ) -> HullDisplay:
        """Plot the hulls of a fitted linear classifier and its boundary between them.

        Parameters
        ----------
        estimator : object
            A fitted classifier of two classes with a linear kernel whose slacks are not squared: `SVC`, with
            a finite or an infinite C, `NuSVC` or `AllDistancesSVC`. For a pipeline the last step is plotted,
            in the units of its input.
        X : array-like of shape (n_samples, 2)
            The training samples.
        y : array-like of shape (n_samples,)
            Their classes.
        ax : Axes or sequence of two or three Axes, optional
            Axes to plot into, see `from_points`; a new figure by default.
        paths, legend : bool
            See `plot`.
        **options
            See `from_points`; mu follows from the estimator.

        Returns
        -------
        HullDisplay
            The display.
        """
        model, mu, X = model_and_mu(estimator, X)
        if "mu" in options:
            raise TypeError("mu follows from the estimator: use from_points to set another value.")
        display = cls._of_points(X, y, mu=mu, **options)
        display.offset = offset_of(model, display.nearest[0] - display.nearest[1])
        return display.plot(ax, paths=paths, legend=legend)

    def plot(self, ax: Any = None, *, paths: bool = True, legend: bool = True) -> HullDisplay:
        """Draw the plot.

        Parameters
        ----------
        ax : Axes or sequence of two or three Axes, optional
            Axes to plot into, see `from_points`; a new figure by default.
        paths : bool
            Whether to draw the paths, if there are any.
        legend : bool
            Whether to put legends below the axes.

        Returns
        -------
        HullDisplay
            The display.
        """
        pyplot("HullDisplay")
        self.ax_, self.path_ax_, self.distance_ax_ = _axes(ax, 3 if paths and self.paths else 1)
        self.figure_ = self.ax_.figure
        self.paths_: dict[str, Any] = {}
        self.distances_: dict[str, Any] = {}
        self._draw_hulls()
        w = self.nearest[0] - self.nearest[1]
        two = len(self._corners()[0]) == 2
        if self.path_ax_ is not None:
            _, corners = self._corners()
            region = difference(corners[1], corners[0]) if two else corners[0]
            self.paths_ = draw_paths(self.path_ax_, self.paths, region, w)
            titled(self.path_ax_, "Steps of the solvers")
        if self.distance_ax_ is not None:
            self.distances_ = draw_distances(self.distance_ax_, self.paths, self.steps, self.unfinished, w)
            titled(self.distance_ax_, "Length of w at every step")
        if legend:
            for axes in (self.ax_, self.path_ax_, self.distance_ax_):
                if axes is not None:
                    self._legend(axes)
        return self

    def _legend(self, ax: Any) -> None:
        """A legend in which the marker of each class lies on the shade of its hull."""
        from matplotlib.patches import Patch

        handles, labels = ax.get_legend_handles_labels()
        if ax is self.ax_:
            classes = len(self._corners()[0])
            first = next(k for k, label in enumerate(labels) if label in self._class_names())
            for k in range(classes):
                handles[first + k] = (Patch(fc=style(k, REGIONS), ec="0.35"), handles[first + k])
        legend_below(ax, handles, labels, ncols=2 if ax is self.ax_ else 1)

    def _class_names(self) -> list[str]:
        return [class_name(label) for label in self.classes] if (self.sides < 0).any() else ["samples"]

    def _corners(self) -> tuple[list[Floats], list[Floats]]:
        """Corners of the whole hulls and of the reduced ones, the negative class first."""
        parts = [self.points[self.sides < 0], self.points[self.sides > 0]]
        whole = [hull(part) for part in parts if len(part)]
        if self.mu is None:
            return whole, whole
        return whole, [reduced_hull(part, self.mu) for part in parts if len(part)]

    def _draw_hulls(self) -> None:
        from matplotlib.patches import Polygon

        ax = self.ax_
        whole, reduced = self._corners()
        self.hulls_: list[Any] = []
        for k, corners in enumerate(whole):
            face = style(k, REGIONS) if self.mu is None else "none"
            line = "-" if self.mu is None else ":"
            look = {"fc": face, "ec": "0.35", "lw": 1.0, "ls": line, "zorder": 0}
            label = "whole hulls" if self.mu is not None and k == 0 else None
            self.hulls_.append(ax.add_patch(Polygon(corners, closed=True, label=label, **look)))
        for k, corners in enumerate(reduced if self.mu is not None else ()):
            self.hulls_.append(
                ax.add_patch(Polygon(corners, closed=True, fc=style(k, REGIONS), ec="0.35", lw=1.0, zorder=0))
            )
        two = len(whole) == 2
        for k, side in enumerate((-1.0, 1.0) if two else (1.0,)):
            ax.scatter(
                *self.points[self.sides == side].T, s=26, marker=style(k, MARKERS), c=style(k, FACES),
                edgecolors="black", linewidths=0.7, zorder=3, label=self._class_names()[k],
            )  # fmt: skip
        p, q = self.nearest
        self.nearest_ = ax.plot(
            *self.nearest.T, "*-", color="black", ms=12, mfc="white", lw=1.8, zorder=4,
            label="nearest points" if two else "to the nearest point",
        )[0]  # fmt: skip
        w = p - q
        self.boundary_ = None
        if two and np.hypot(*w) > 1e-5 * np.ptp(self.points, axis=0).max():
            middle = 0.5 * (p + q)
            if self.offset is not None:
                middle = middle + (self.offset - middle @ w) / (w @ w) * w
            self.boundary_ = ax.axline(
                tuple(middle),
                tuple(middle + w[::-1] * [-1.0, 1.0]),
                color="black",
                ls="--",
                lw=1.2,
                label="boundary",
            )
        square_limits(ax, np.vstack([self.points, self.nearest]))
        ax.set_aspect("equal")
        hulls = "hulls" if self.mu is None else "reduced hulls"
        titled(ax, f"Nearest points of two {hulls}" if two else "Nearest point of a hull")
        ax.set_xlabel(self.names[0])
        ax.set_ylabel(self.names[1])


def _label(solver: str | Solver[Any]) -> str:
    return solver if isinstance(solver, str) else repr(solver)


def _axes(ax: Any, n: int) -> tuple[Any, Any, Any]:
    """Axes of the hulls, of the paths and of the distances; the last two are None if n is 1."""
    if ax is None:
        _, made = pyplot("HullDisplay").subplots(
            1, n, figsize=(4.6 * n, 5.0), layout="constrained", squeeze=False
        )
        found = list(made[0])
    elif not hasattr(ax, "plot"):
        found = list(np.ravel(ax))
        if len(found) not in (2, 3):
            raise ValueError(f"ax must be one Axes or a sequence of two or three of them, got {len(found)}.")
        found = found[:n]
    elif n == 1:
        found = [ax]
    else:
        ax.set_axis_off()
        found = [ax.inset_axes((left, 0.36, 0.26, 0.6)) for left in (0.0, 0.37, 0.74)]  # legends are below
    a, b, c = (*found, None, None)[:3]
    return a, b, c
