"""Figures of a report as SVG that takes its colours from the page.

Figures are drawn with colours that stand for those of the page and are replaced by its CSS variables, so that
they follow a light or dark theme. Texts stay texts. The same numbers give the same SVG.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from maxmargin._types import Floats
from maxmargin.inspection._report.markup import shortened, text
from maxmargin.inspection._report.measures import Calibration, Curve
from maxmargin.inspection._report.refits import LearningCurve
from maxmargin.inspection._score_grid import robust_range
from maxmargin.inspection._style import LINES, pyplot

INK, MUTED, GRID, MAIN, OTHER, CARD = (f"#0b0a{k:02x}" for k in range(6))
_RAMP = tuple(f"#0b0b{k:02x}" for k in range(6))
_VARIABLES = {
    INK: "--ink", MUTED: "--muted", GRID: "--line", MAIN: "--main", OTHER: "--other", CARD: "--card",
    **{colour: f"--q{k}" for k, colour in enumerate(_RAMP)},
}  # fmt: skip
_SIZE = (4.3, 3.1)
# Points of a scatter plot at most: more of them are hard to see and large to store.
_MOST_POINTS = 1_000
_SETTINGS = {
    "svg.fonttype": "none", "svg.hashsalt": "maxmargin", "font.size": 8.5, "figure.titlesize": 9.5,
    "font.family": "DejaVu Sans", "text.parse_math": False, "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": MUTED, "axes.labelcolor": INK, "text.color": INK, "xtick.color": MUTED,
    "ytick.color": MUTED, "xtick.labelcolor": INK, "ytick.labelcolor": INK, "axes.facecolor": "none",
    "figure.facecolor": "none", "savefig.facecolor": "none", "axes.grid": True, "grid.color": GRID,
    "grid.linewidth": 0.6, "axes.axisbelow": True, "legend.frameon": False, "axes.unicode_minus": True,
    "axes.linewidth": 0.8, "lines.linewidth": 1.6, "legend.fontsize": 8.0, "svg.image_inline": True,
    "path.simplify": True,
}  # fmt: skip


@contextmanager
def _figure(
    name: str, title: str, label: str, out: dict[str, str], size: tuple[float, float] = _SIZE
) -> Iterator[Any]:
    """Axes to draw on; the SVG is added to `out`. The title is above the legend, if that is on top."""
    pyplot("A report")
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.style import context

    with context("default"), matplotlib.rc_context(_SETTINGS):
        figure = Figure(figsize=size, layout="constrained")
        figure.suptitle(title)
        ax = figure.add_subplot()
        yield ax
        stream = io.StringIO()
        figure.savefig(
            stream, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    out[name] = _for_page(stream.getvalue(), name, label)


def _for_page(svg: str, name: str, label: str) -> str:
    """The SVG as a part of the page: its own names, colours of the page, a description."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    box = re.search(r'viewBox="([^"]*)"', svg)
    assert box is not None
    head = f'<svg class="plot" viewBox="{box[1]}" role="img" aria-label="{text(label)}">'
    svg = head + svg[svg.index(">") + 1 :]
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(?:xlink:)?href="#', f'href="#{name}-', svg)
    svg = svg.replace("url(#", f"url(#{name}-")
    svg = re.sub(r"'DejaVu Sans'(?:, [^;\"]*)?", "system-ui, sans-serif", svg)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    return re.sub(r"\n\s*", "\n", svg).strip()


def _logarithmic(axis: Any) -> None:
    """Powers of ten as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(numticks=7))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def scores_map(
    x: Floats,
    y: Floats,
    scores: Floats,
    chosen: int,
    last: Any,
    names: tuple[str, str, str],
    out: dict[str, str],
) -> None:
    """The combinations of two parameters, coloured by their scores; `last` are those of the last stage."""
    from matplotlib.colors import BoundaryNorm, ListedColormap

    label = f"Scores of {len(x)} combinations of {names[0]} and {names[1]}; the best has {scores.max():.4g}."
    title = f"Scores over {names[0]} and {names[1]}"
    with _figure("search", title, label, out) as ax:
        low, high = robust_range(scores)
        low = min(low, high - 1e-6)
        lower = bool((scores < low).any())
        norm = BoundaryNorm(np.linspace(low, high, len(_RAMP) + 1), len(_RAMP))
        shapes = (
            ((~last, "s", "first stages"), (last, "o", "last stage"))
            if not last.all()
            else ((last, "o", ""),)
        )
        for part, marker, name in shapes:
            drawn = ax.scatter(
                x[part], y[part], c=scores[part], cmap=ListedColormap(list(_RAMP)), norm=norm, marker=marker,
                s=46, edgecolors=INK, linewidths=0.7, label=name or None,
            )  # fmt: skip
        ax.plot(
            x[chosen], y[chosen], "*", ms=15, mfc=OTHER, mec=INK, mew=0.8, label="chosen", ls="none", zorder=4
        )
        for axis, values, name in ((ax.xaxis, x, names[0]), (ax.yaxis, y, names[1])):
            if _spans_decades(values):
                (ax.set_xscale if axis is ax.xaxis else ax.set_yscale)("log")
                _logarithmic(axis)
            axis.set_label_text(name)
        ax.margins(0.12)
        bar = ax.figure.colorbar(
            drawn, ax=ax, label=names[2], extend="min" if lower else "neither", format="%.3g"
        )
        bar.outline.set_edgecolor(MUTED)
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, handletextpad=0.3)


def scores_line(
    x: Floats, scores: Floats, errors: Floats, chosen: int, names: tuple[str, str], out: dict[str, str]
) -> None:
    """The scores over one parameter."""
    label = f"Scores of {len(x)} values of {names[0]}; the best is {scores.max():.4g}."
    with _figure("search", f"Scores over {names[0]}", label, out) as ax:
        order = np.argsort(x, kind="stable")
        ax.errorbar(
            x[order], scores[order], errors[order], color=MAIN, marker="o", ms=4, capsize=2, lw=1.2,
            label="mean and standard deviation of the folds",
        )  # fmt: skip
        ax.plot(
            x[chosen], scores[chosen], "*", ms=14, mfc=OTHER, mec=INK, ls="none", label="chosen", zorder=4
        )
        if _spans_decades(x):
            ax.set_xscale("log")
            _logarithmic(ax.xaxis)
        ax.set(xlabel=names[0], ylabel=names[1])
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0))


def learning(curve: LearningCurve, out: dict[str, str]) -> None:
    """Scores over the number of training rows."""
    test, train = curve.means()
    ends = [f"{curve.score} {test[k]:.3g} with {curve.sizes[k]} rows" for k in (0, -1)]
    label = f"Learning curve: {', '.join(ends)}."
    with _figure("learning", "Scores over the number of training rows", label, out) as ax:
        for values, mean, colour, line, marker, name in (
            (curve.test, test, MAIN, "-", "o", "held-out rows"),
            (curve.train, train, OTHER, "--", "^", "their own training rows"),
        ):
            if not np.isfinite(mean).any():
                continue  # training rows of one label have no ROC area
            spread = np.nanstd(values, axis=1)
            ax.fill_between(curve.sizes, mean - spread, mean + spread, color=colour, alpha=0.15, lw=0)
            ax.plot(curve.sizes, mean, color=colour, ls=line, marker=marker, ms=4.5, label=name)
        ax.set(xlabel="training rows", ylabel=curve.score)
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        _thousands(ax.xaxis)


def calibration(found: Calibration, out: dict[str, str]) -> None:
    """Observed shares over predicted probabilities, and how often these occur."""
    label = (
        f"Calibration curve in {found.n_bins} bins; mean distance from the diagonal {found.difference:.3f}."
    )
    with _figure("calibration", "Probabilities and what was observed", label, out, (4.3, 3.6)) as ax:
        ax.plot([0, 1], [0, 1], color=MUTED, ls=":", lw=1.2, label="perfectly calibrated")
        ax.plot(found.predicted, found.observed, color=MAIN, marker="o", ms=4.5, label="this model")
        counts, edges = np.histogram(np.clip(found.proba, 0, 1), bins=20, range=(0, 1))
        ax.bar(
            edges[:-1], 0.18 * counts / max(counts.max(), 1), width=0.05, align="edge", color=OTHER,
            alpha=0.5, lw=0, label="rows per probability",
        )  # fmt: skip
        ax.set(
            xlabel="predicted probability", ylabel="observed share", xlim=(-0.02, 1.02), ylim=(-0.02, 1.04)
        )
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def roc(curves: list[Curve], names: list[str], mean: float | None, out: dict[str, str]) -> None:
    """ROC curves; `names` are their texts in the legend."""
    label = "ROC: " + ", ".join(
        f"{name} area {curve.area:.3f}" for name, curve in zip(names, curves, strict=True)
    )
    with _figure("roc", "ROC: rates of true and false positives", label, out, (4.3, 3.6)) as ax:
        ax.plot([0, 1], [0, 1], color=MUTED, ls=":", lw=1.2, label="chance: 0.5")
        for k, (curve, name) in enumerate(zip(curves, names, strict=True)):
            colour = (MAIN, OTHER, INK)[k % 3]
            ax.plot(
                curve.false, curve.true, color=colour, ls=LINES[k % len(LINES)], lw=1.5,
                drawstyle="steps-post", label=f"{shortened(name, 19)}: {curve.area:.3f}",
            )  # fmt: skip
        title = "area" if mean is None else f"area (mean of all classes {mean:.3f})"
        ax.set(
            xlabel="false positive rate", ylabel="true positive rate", xlim=(-0.02, 1.02), ylim=(-0.02, 1.03)
        )
        ax.legend(loc="lower right", title=title)


def fitted_targets(y: Floats, predicted: Floats, seed: int, out: dict[str, str]) -> int:
    """Predictions over targets; returns the number of points."""
    rows = _some(len(y), seed)
    y, predicted = y[rows], predicted[rows]
    label = f"Predicted over true values of {len(y)} rows."
    with _figure("predictions", "Predicted and true values", label, out) as ax:
        low, high = min(y.min(), predicted.min()), max(y.max(), predicted.max())
        ax.plot([low, high], [low, high], color=MUTED, ls=":", lw=1.3, label="perfect prediction")
        ax.scatter(y, predicted, s=9, color=MAIN, alpha=_alpha(len(y)), lw=0, label="rows")
        ax.set(xlabel="true value", ylabel="predicted value")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return len(y)


def residuals(y: Floats, predicted: Floats, epsilon: float | None, seed: int, out: dict[str, str]) -> None:
    """Residuals over predictions."""
    rows = _some(len(y), seed)
    y, predicted = y[rows], predicted[rows]
    label = f"Residuals over predicted values of {len(y)} rows."
    with _figure("residuals", "Errors over predicted values", label, out) as ax:
        ax.axhline(0.0, color=MUTED, ls=":", lw=1.3, label="no error")
        if epsilon:
            ax.axhspan(-epsilon, epsilon, color=OTHER, alpha=0.2, lw=0, label=f"tube, ±{epsilon:.3g}")
        ax.scatter(predicted, y - predicted, s=9, color=MAIN, alpha=_alpha(len(y)), lw=0, label="rows")
        ax.set(xlabel="predicted value", ylabel="true − predicted")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)


def outlier_values(values: Floats, y: Any, out: dict[str, str]) -> None:
    """How often decision values occur, by label if there are labels."""
    share = float(np.mean(values < 0))
    label = f"Decision values of {len(values)} rows; {share:.1%} are negative."
    with _figure("values", "How often decision values occur", label, out) as ax:
        edges = np.histogram_bin_edges(values, bins=30)
        parts = [("all rows", values, MAIN, "")]
        if y is not None:
            parts = [("inliers", values[y > 0], MAIN, ""), ("outliers", values[y < 0], OTHER, "//")]
        for name, part, colour, hatch in parts:
            ax.hist(
                part, bins=edges, color=colour, alpha=0.55, hatch=hatch, edgecolor=colour, lw=0.8, label=name
            )
        ax.axvline(0.0, color=INK, ls="--", lw=1.2, label="limit")
        ax.set(xlabel="decision value (negative: outlier)", ylabel="rows")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)


def _spans_decades(values: Floats) -> bool:
    return bool(values.min() > 0 and values.max() >= 8 * values.min())


def _thousands(axis: Any) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(6, integer=True))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def _some(n: int, seed: int) -> Any:
    return np.arange(n) if n <= _MOST_POINTS else np.random.default_rng(seed).permutation(n)[:_MOST_POINTS]


def _alpha(n: int) -> float:
    return float(np.clip(40 / n**0.5 / 2, 0.35, 0.85))
