"""The figure of ``maxmargin tune``: the combinations that were tried, and predictions of held-out rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def draw(tuner: Any, y: Any, predicted: Any, numeric: bool, file: Path) -> None:
    """Write the figure to a file."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    draw_scores(left, tuner)
    (_draw_numbers if numeric else _draw_classes)(right, y, predicted)
    figure.savefig(file, dpi=150)
    plt.close(figure)


def draw_scores(ax: Any, tuner: Any) -> None:
    """The combinations of the chosen kernel, coloured by their scores; for a linear kernel scores over C."""
    from maxmargin.inspection._score_grid import robust_range
    from maxmargin.inspection._style import COLOURS, legend_below

    results = tuner.cv_results_
    same = np.array([kernel == tuner.kernel_ for kernel in results["param_kernel"].tolist()])
    C = np.asarray(results["param_C"][same], dtype=float)
    score = np.asarray(results["mean_test_score"], dtype=float)[same]
    stages = np.asarray(results["stage"])[same]
    linear = tuner.kernel_ == "linear"
    height = score if linear else np.asarray(results["param_gamma"][same], dtype=float)
    low, high = robust_range(score)
    # Scores of different stages are of different rows: not quite comparable. A combination may be in both.
    rows = np.asarray(results["n_rows"])[same]
    last = stages == stages.max()
    parts = [(~last, "s", 130.0, "first stages"), (last, "o", 50.0, "last stage")]
    for part, marker, size, name in parts if not last.all() else [(last, "o", 70.0, "tried")]:
        label = f"{name}, on {rows[part].max():,} rows"
        points = ax.scatter(
            C[part], height[part], c=score[part], marker=marker, s=size, cmap="cividis", vmin=low, vmax=high,
            edgecolors="black", linewidths=0.6, label=label,
        )  # fmt: skip
    words = f"chosen: C = {tuner.C_:.3g}" + ("" if linear else f", gamma = {tuner.gamma_:.3g}")
    at = tuner.best_score_ if linear else tuner.gamma_
    ax.plot(tuner.C_, at, "*", ms=14, mfc=COLOURS[1], mec="black", ls="none", label=words)
    ax.set(xscale="log", xlabel="C", title=f"Scores of the combinations tried, {tuner.kernel_} kernel")
    ax.set(ylabel="score by cross-validation") if linear else ax.set(yscale="log", ylabel="gamma")
    ax.margins(0.1)
    legend_below(ax, ncols=1)
    if not linear:
        lower = bool((score < low).any())
        label = "score by cross-validation" + (f" (arrow: down to {score.min():.3g})" if lower else "")
        ax.figure.colorbar(points, ax=ax, label=label, extend="min" if lower else "neither")


def _draw_numbers(ax: Any, y: Any, predicted: Any) -> None:
    """True over predicted values."""
    from maxmargin.inspection._style import COLOURS, legend_below

    ends = [min(np.min(y), np.min(predicted)), max(np.max(y), np.max(predicted))]
    ax.scatter(predicted, y, s=16, color=COLOURS[2], alpha=0.6, linewidths=0, label="held-out rows")
    ax.plot(ends, ends, "--", color="black", lw=1.2, label="perfect predictions")
    ax.set(title="Held-out rows: true and predicted values", xlabel="predicted value", ylabel="true value")
    ax.set_aspect("equal", adjustable="datalim")
    legend_below(ax, ncols=1)


def _draw_classes(ax: Any, y: Any, predicted: Any) -> None:
    """The confusion matrix, in the colours of the shares of each true class."""
    from sklearn.metrics import ConfusionMatrixDisplay, confusion_matrix

    counts = confusion_matrix(y, predicted)
    classes = np.union1d(y, predicted)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    display = ConfusionMatrixDisplay(shares, display_labels=classes)
    display.plot(ax=ax, cmap="Blues", colorbar=False, im_kw={"vmin": 0.0, "vmax": 1.0})
    for text, count in zip(display.text_.ravel(), counts.ravel(), strict=True):
        text.set_text(f"{count:,}")
    ax.set(title="Held-out rows by true and predicted class")
    if len(classes) > 6:
        ax.tick_params(axis="x", labelrotation=90.0)
    ax.figure.colorbar(display.im_, ax=ax, label="share of the true class")
