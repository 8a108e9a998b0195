"""The hulls of two classes, their nearest points, and the paths of solvers to them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maxmargin._types import Floats
from maxmargin.inspection._nearest import geometry_of, iterates, model_and_mu, offset_of
from maxmargin.inspection._polygons import difference, hull, reduced_hull
from maxmargin.inspection._style import FACES, LINES, MARKERS, REGIONS, class_name, pyplot, style
from maxmargin.solvers.base import Solver


class HullDisplay:
    r"""The hulls of two classes in the plane, and the paths of solvers to their nearest points.

    The boundary of a linear model of two classes is half-way between the nearest points :math:`p_+` and
    :math:`p_-` of their hulls. With slacks these are reduced hulls, in which the weight of a sample is at
    most :math:`\mu`; the boundary is still perpendicular to :math:`p_+ - p_-`, but its offset is determined
    by the free support vectors.

    The second plot shows :math:`w = p_+ - p_-`: the point of least norm among all differences. A solver
    that moves weight between two samples at a time, such as MDM, zigzags towards it where the hulls are thin;
    accelerated MDM takes steps along the cycles of the zigzag (Barbero, López, Dorronsoro, "An
    Accelerated MDM Algorithm for SVM Training").

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
    path_ax_ : Axes or None
        Axes of the paths.
    hulls_ : list of Polygon
        The hull of the negative class first; reduced hulls follow the whole ones.
    nearest_, boundary_ : Line2D, Line2D or None
        The segment between the nearest points, and the boundary; None for a single hull or touching ones.
    paths_ : dict of Line2D
        The paths, by label.

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
        ax : Axes or pair of Axes, optional
            Axes of the hulls and of the paths; a single Axes is divided between both. A new figure by
            default.
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
        ax : Axes or pair of Axes, optional
            Axes to plot into; a new figure by default.
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
        ax : Axes or pair of Axes, optional
            Axes to plot into; a new figure by default.
        paths : bool
            Whether to draw the paths, if there are any.
        legend : bool
            Whether to put legends above the axes.

        Returns
        -------
        HullDisplay
            The display.
        """
        pyplot("HullDisplay")
        self.ax_, self.path_ax_ = _axes(ax, 2 if paths and self.paths else 1)
        self.figure_ = self.ax_.figure
        self.paths_: dict[str, Any] = {}
        self._draw_hulls()
        if self.path_ax_ is not None:
            self._draw_paths(self.path_ax_)
        for axes in (self.ax_, self.path_ax_):
            if axes is not None:
                axes.set_aspect("equal")
                if legend:
                    axes.legend(
                        loc="lower left",
                        bbox_to_anchor=(0.0, 1.01),
                        frameon=False,
                        ncols=2,
                        borderaxespad=0.0,
                    )
        return self

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
            self.hulls_.append(
                ax.add_patch(Polygon(corners, closed=True, fc=face, ec="0.35", lw=1.0, ls=line, zorder=0))
            )
        for k, corners in enumerate(reduced if self.mu is not None else ()):
            self.hulls_.append(
                ax.add_patch(Polygon(corners, closed=True, fc=style(k, REGIONS), ec="0.35", lw=1.0, zorder=0))
            )
        for k, side in enumerate((-1.0, 1.0) if len(whole) == 2 else (1.0,)):
            ax.scatter(
                *self.points[self.sides == side].T, s=26, marker=style(k, MARKERS), c=style(k, FACES),
                edgecolors="black", linewidths=0.7, zorder=3,
                label=class_name(self.classes[k]) if len(whole) == 2 else "samples",
            )  # fmt: skip
        p, q = self.nearest
        self.nearest_ = ax.plot(
            *self.nearest.T, "*-", color="black", ms=12, mfc="white", lw=1.8, zorder=4,
            label="nearest points" if len(whole) == 2 else "to the nearest point",
        )[0]  # fmt: skip
        w = p - q
        self.boundary_ = None
        if len(whole) == 2 and np.hypot(*w) > 1e-5 * np.ptp(self.points, axis=0).max():
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
        _set_square_limits(ax, np.vstack([self.points, self.nearest]))
        ax.set_xlabel(self.names[0])
        ax.set_ylabel(self.names[1])

    def _draw_paths(self, ax: Any) -> None:
        from matplotlib.patches import Circle, Polygon

        _, corners = self._corners()
        region = difference(corners[1], corners[0]) if len(corners) == 2 else corners[0]
        p, q = self.nearest
        w = p - q
        ax.add_patch(Polygon(region, closed=True, fc=REGIONS[3], ec="0.35", lw=1.0, zorder=0))
        ax.add_patch(Circle((0.0, 0.0), float(np.hypot(*w)), fc="none", ec="0.35", ls=":", lw=1.2, zorder=1))
        for k, (label, path) in enumerate(self.paths.items()):
            steps = self.steps[label]
            count = f"{'over ' * (label in self.unfinished)}{steps} step{'s' * (steps != 1)}"
            # The first path is thin and grey, so that the others are visible on top of it.
            thin = k == 0 and len(self.paths) > 1
            self.paths_[label] = ax.plot(
                *path.T, ls="-" if k < 2 else style(k, LINES), marker="." if thin else style(k - 1, MARKERS),
                ms=3 if thin else 6, lw=0.8 if thin else 2.0, color="0.5" if thin else "black",
                mfc="0.5" if thin else "white", zorder=3 + k,
                label=f"{label}: {count}",
            )[0]  # fmt: skip
        ax.plot(*w, "*", color="black", ms=13, mfc="white", zorder=9, label="least norm")
        # The first step is much longer than the zigzag: the axes leave it out.
        _set_square_limits(ax, np.vstack([*(path[1:] for path in self.paths.values()), w[None]]))
        ax.set_xlabel("first component of w")
        ax.set_ylabel("second component of w")


def _label(solver: str | Solver[Any]) -> str:
    return solver if isinstance(solver, str) else repr(solver)


def _axes(ax: Any, n: int) -> tuple[Any, Any]:
    """Axes for the hulls, and for the paths if n is 2."""
    if ax is None:
        _, made = pyplot("HullDisplay").subplots(
            1, n, figsize=(4.8 * n, 4.4), layout="constrained", squeeze=False
        )
        ax = made[0]
    elif not hasattr(ax, "plot"):
        if len(np.ravel(ax)) != 2:
            raise ValueError(f"ax must be one Axes or a pair of them, got {len(np.ravel(ax))}.")
        ax = np.ravel(ax)
    elif n == 1:
        ax = [ax]
    else:
        ax.set_axis_off()
        ax = [ax.inset_axes((0.0, 0.0, 0.44, 0.9)), ax.inset_axes((0.56, 0.0, 0.44, 0.9))]
    return ax[0], ax[1] if n == 2 else None


def _set_square_limits(ax: Any, points: Floats) -> None:
    """Square limits around the points."""
    low, high = points.min(axis=0), points.max(axis=0)
    middle, radius = 0.5 * (low + high), 0.58 * float(np.max(high - low)) or 1.0
    ax.set_xlim(middle[0] - radius, middle[0] + radius)
    ax.set_ylim(middle[1] - radius, middle[1] + radius)
