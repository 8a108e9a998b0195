"""What the displays share: matplotlib on demand, and looks that can be told apart in grey."""

from __future__ import annotations

from typing import Any

# Lines and points must be told apart without colours.
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 1.5, 1, 1.5, 1, 1.5)), (0, (8, 2)))
MARKERS = ("o", "^", "D", "v", "P", "X", "<", ">")  # no square: that is the mark of a bound
# Neighbours in each list differ in grey.
FACES = ("#1f3b5c", "#f5b041", "#ffffff", "#a93226", "#7fb3d5", "#4d5656", "#fcf3cf")
REGIONS = ("#c5d5e8", "#fdf2dc", "#b5b5b5", "#ededed", "#8fbfa5", "#f3d3d3", "#c9b3dc")


def pyplot(what: str) -> Any:
    """matplotlib.pyplot, or an error that tells `what` needs it and how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{what} needs matplotlib, which is not installed: pip install 'maxmargin[plot]'."
        ) from error
    return plt


def new_axes(**options: Any) -> Any:
    """Axes of a new figure."""
    _, ax = pyplot("A display").subplots(layout="constrained", **options)
    return ax


def look(k: int, of: tuple[Any, ...]) -> Any:
    """The k-th look, from the beginning again after the last one."""
    return of[k % len(of)]


def class_name(label: Any) -> str:
    """A class as it stands in a legend: a number alone would say nothing there."""
    return label if isinstance(label, str) else f"class {label}"


def legend_beside(ax: Any) -> Any:
    """A legend to the right of the axes, where no data can be."""
    return ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, borderaxespad=0.0)
