"""Parts that all displays share: matplotlib on demand, and styles that differ without colours."""

from __future__ import annotations

from typing import Any

# Lines and points must differ without colours.
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 1.5, 1, 1.5, 1, 1.5)), (0, (8, 2)))
MARKERS = ("o", "^", "D", "v", "P", "X", "<", ">")  # no square: it marks support vectors at their bounds
# Neighbours in each list differ in grey.
FACES = ("#1f3b5c", "#f5b041", "#ffffff", "#a93226", "#7fb3d5", "#4d5656", "#fcf3cf")
REGIONS = ("#c5d5e8", "#fdf2dc", "#b5b5b5", "#ededed", "#8fbfa5", "#f3d3d3", "#c9b3dc")


def pyplot(user: str) -> Any:
    """matplotlib.pyplot, or an error that says that `user` needs it and how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{user} needs matplotlib, which is not installed: pip install 'maxmargin[plot]'."
        ) from error
    return plt


def new_axes(**options: Any) -> Any:
    """Axes of a new figure."""
    _, ax = pyplot("A display").subplots(layout="constrained", **options)
    return ax


def style(k: int, of: tuple[Any, ...]) -> Any:
    """The k-th style; they repeat after the last one."""
    return of[k % len(of)]


def class_name(label: Any) -> str:
    """The name of a class in a legend, where a number alone would be unclear."""
    return label if isinstance(label, str) else f"class {label}"


def legend_beside(ax: Any) -> Any:
    """A legend to the right of the axes, where it hides no data."""
    return ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, borderaxespad=0.0)
