"""Parts of all displays: matplotlib on demand, titles, legends, styles that differ without colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# Lines and points must differ without colours.
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 1.5, 1, 1.5, 1, 1.5)), (0, (8, 2)))
MARKERS = ("o", "^", "D", "v", "P", "X", "<", ">")  # no square: it marks support vectors at their bounds
# Neighbours in each list differ in grey; a region is a light tint of the face with the same place.
FACES = ("#1f3b5c", "#f5b041", "#1b7f5f", "#ffffff", "#a93226", "#7fb3d5", "#4d5656")
REGIONS = ("#aac4e2", "#fdf2dc", "#bfe0d3", "#ededed", "#e3afa5", "#d3e6f3", "#b3b9b9")
# The palette of Okabe and Ito: its colours differ for colour-blind readers too.
COLOURS = ("#000000", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00")


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


def titled(ax: Any, title: str) -> None:
    """Give the axes a title, unless they have one already."""
    if not ax.get_title():
        ax.set_title(title)


def legend_beside(ax: Any, *handles_and_labels: Sequence[Any], title: str | None = None) -> Any:
    """A legend to the right of the axes, where it hides no data."""
    return ax.legend(
        *handles_and_labels, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, borderaxespad=0.0,
        title=title, alignment="left",
    )  # fmt: skip


def legend_below(ax: Any, *handles_and_labels: Sequence[Any], ncols: int = 1) -> Any:
    """A legend under the label of the x axis, where it hides no data."""
    from matplotlib import rcParams
    from matplotlib.transforms import ScaledTranslation

    # The numbers of the axis and its label are as high as four lines of text.
    down = ScaledTranslation(0.0, -4.0 * rcParams["font.size"] / 72.0, ax.figure.dpi_scale_trans)
    return ax.legend(
        *handles_and_labels, loc="upper left", bbox_to_anchor=(0.0, 0.0), bbox_transform=ax.transAxes + down,
        frameon=False, borderaxespad=0.0, ncols=ncols, fontsize="small",
    )  # fmt: skip
