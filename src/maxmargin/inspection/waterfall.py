"""The Shapley values of one row, from the mean over the background to the value of the row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maxmargin._sklearn import num_samples, safe_indexing
from maxmargin._types import Floats
from maxmargin.inspection._style import legend_beside, new_axes, pyplot, titled
from maxmargin.inspection.explanation import ShapleyValues, shapley

#: Dark bars go to the right, light and hatched ones to the left.
LOOKS: tuple[dict[str, Any], ...] = (
    {"facecolor": "#1f3b5c", "edgecolor": "black", "linewidth": 0.6},
    {"facecolor": "#f5b041", "edgecolor": "black", "linewidth": 0.6, "hatch": "////"},
)
# Behind numbers that a line would cross.
_PATCH = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5}


class WaterfallDisplay:
    """The Shapley values of one row as bars, from the mean over the background to the value of the row.

    Use `from_estimator` or `from_values` to create it.

    Parameters
    ----------
    values : array-like of shape (d,)
        The Shapley values of the row.
    base : float
        The value without any feature.
    labels : sequence of str
        Names of the features, with their values.
    output : str
        The name of the output.
    max_features : int
        Features with a bar of their own: those with the largest absolute values. All others share one.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Axes and figure of the plot.
    bars_ : list of Rectangle
        The bars, from the lowest to the highest.
    texts_ : list of Text
        Their values.
    base_, value_ : Line2D
        The lines at the mean over the background and at the value of the row.
    legend_ : Legend
        The legend beside the axes.

    Examples
    --------
    >>> from maxmargin.inspection import WaterfallDisplay
    >>> display = WaterfallDisplay.from_estimator(model, X, X_train[:100], row=3)  # doctest: +SKIP
    >>> display.figure_.savefig("waterfall.png")  # doctest: +SKIP
    """

    def __init__(
        self, values: ArrayLike, base: float, labels: Sequence[str], *, output: str, max_features: int = 10
    ) -> None:
        self.values: Floats = np.array(values, dtype=np.float64)
        self.base, self.labels, self.output = float(base), tuple(labels), output
        self.max_features = max_features
        if self.values.shape != (len(self.labels),):
            raise ValueError(f"values must have the shape ({len(self.labels)},), got {self.values.shape}.")
        if max_features < 1:
            raise ValueError(f"max_features must be at least 1, got {max_features!r}.")

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: ArrayLike,
        background: ArrayLike,
        *,
        row: int = 0,
        output: int | str | None = None,
        distribution: str = "joint",
        n_jobs: int | None = None,
        **options: Any,
    ) -> WaterfallDisplay:
        """Explain and plot one row.

        Parameters
        ----------
        model, X, background, distribution, n_jobs
            See `maxmargin.inspection.shapley`.
        row : int
            The row of X.
        output : int or str, optional
            The output, if there are several.
        **options
            See `from_values`.

        Returns
        -------
        WaterfallDisplay
            The display.
        """
        rows = np.arange(num_samples(X))[_checked(row, num_samples(X)) :][:1]
        found = shapley(model, safe_indexing(X, rows), background, distribution=distribution, n_jobs=n_jobs)
        return cls.from_values(found, output=output, **options)

    @classmethod
    def from_values(
        cls,
        values: ShapleyValues,
        *,
        row: int = 0,
        output: int | str | None = None,
        max_features: int = 10,
        ax: Any = None,
    ) -> WaterfallDisplay:
        """Plot one row of Shapley values.

        Parameters
        ----------
        values : ShapleyValues
            The result of `maxmargin.inspection.shapley`.
        row : int
            The row.
        output : int or str, optional
            The output, if there are several.
        max_features : int
            Features with a bar of their own: those with the largest absolute values. All others share one.
        ax : Axes, optional
            Axes to plot into; a new figure by default.

        Returns
        -------
        WaterfallDisplay
            The display.
        """
        one = values.of_output(output)
        row = _checked(row, len(one.values))
        labels = [
            f"{name} = {_shown(value)}" for name, value in zip(one.feature_names, one.data[row], strict=True)
        ]
        base, name = float(one.base_values), one.output_names[0]
        display = cls(one.values[row], base, labels, output=name, max_features=max_features)
        return display.plot(ax)

    def plot(self, ax: Any = None) -> WaterfallDisplay:
        """Draw the plot.

        Parameters
        ----------
        ax : Axes, optional
            Axes to plot into; a new figure by default.

        Returns
        -------
        WaterfallDisplay
            The display.
        """
        pyplot("WaterfallDisplay")
        from matplotlib.patches import Patch

        order = np.argsort(-np.abs(self.values), kind="stable")
        shown, others = order[: self.max_features], order[self.max_features :]
        labels, values = [self.labels[j] for j in shown], [float(self.values[j]) for j in shown]
        if len(others):
            labels.append(f"{len(others)} other feature{'s' if len(others) > 1 else ''}")
            values.append(float(self.values[others].sum()))
        labels, steps = labels[::-1], np.array(values[::-1])
        ends = self.base + np.cumsum(steps)
        starts = ends - steps
        ax = new_axes(figsize=(7.5, 1.2 + 0.4 * len(labels))) if ax is None else ax
        self.ax_, self.figure_ = ax, ax.figure
        self.bars_, self.texts_ = [], []
        room = 0.01 * float(np.ptp([*starts, *ends]) or 1.0)
        for k, (start, end, step) in enumerate(zip(starts, ends, steps, strict=True)):
            self.bars_ += ax.barh(k, step, left=start, height=0.6, zorder=2, **LOOKS[int(step < 0)])
            self.texts_.append(
                ax.text(
                    max(start, end) + room,
                    k,
                    f"{step:+.3g}",
                    va="center",
                    ha="left",
                    fontsize="small",
                    bbox=_PATCH,
                )
            )
            if k:
                ax.plot([start, start], [k - 0.7, k - 0.3], color="0.5", lw=0.8, zorder=1)
        self.base_ = ax.axvline(self.base, ls=":", lw=1.2, color="black", zorder=1)
        self.value_ = ax.axvline(ends[-1], ls="--", lw=1.2, color="black", zorder=1)
        self.base_.set_label(f"mean over the background: {self.base:.3g}")
        self.value_.set_label(f"this row: {ends[-1]:.3g}")
        ax.use_sticky_edges = False
        low, high = min(*starts, *ends), max(*starts, *ends)
        size = high - low or 1.0
        ax.set_xlim(low - 0.06 * size, high + 0.2 * size)  # on the right there is a number beside each bar
        ax.set_yticks(range(len(labels)), labels)
        ax.set_xlabel(_axis(self.output))
        ax.set_ylabel("feature")
        titled(ax, "What each feature adds to the value of one row")
        handles, labels = ax.get_legend_handles_labels()
        self.legend_ = legend_beside(
            ax,
            [*handles, Patch(**LOOKS[0]), Patch(**LOOKS[1])],
            [*labels, "raises the value", "lowers the value"],
        )
        return self


def _checked(row: int, n: int) -> int:
    """The index of a row, which may count from the end."""
    if not -n <= row < n:
        raise ValueError(f"row must be one of 0 to {n - 1}, got {row!r}.")
    return int(row) % n


def _shown(value: Any) -> str:
    try:
        return f"{float(value):.4g}"
    except (TypeError, ValueError):
        return str(value)


def _axis(output: str) -> str:
    """The name of the axis of an output."""
    whole = output in ("prediction", "decision value") or output.startswith("target ")
    return output if whole else f"decision value, {output}"
