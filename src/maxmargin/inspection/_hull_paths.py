"""Paths of solvers to the nearest point: in the plane, and as distances on a logarithmic scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from maxmargin._types import Floats
from maxmargin.inspection._style import COLOURS, LINES, MARKERS, REGIONS, style

# The distances that are drawn, relative to the largest one; below, paths are at their ends.
_LEAST = 1e-5
# Steps from which on their axis is logarithmic.
_MANY = 20
# Steps of a path that can be distinguished in the plane. The zigzags of more would fill an area.
SHOWN = 30


def draw_paths(ax: Any, paths: Mapping[str, Floats], region: Floats, w: Floats) -> dict[str, Any]:
    """The first steps of each path over the region of all differences; returns the lines."""
    from matplotlib.patches import Circle, Polygon

    ax.add_patch(
        Polygon(region, closed=True, fc=REGIONS[3], ec="0.35", lw=1.0, zorder=0, label="all values of w")
    )
    ax.add_patch(Circle((0.0, 0.0), float(np.hypot(*w)), fc="none", ec="0.35", ls=":", lw=1.2, zorder=1))
    ax.plot([], [], color="0.35", ls=":", lw=1.2, label="circle of the least length")
    lines = {}
    for k, (label, path) in enumerate(paths.items()):
        shown = path[: SHOWN + 1]
        cut = f" (first {SHOWN} steps)" if len(path) > len(shown) else ""
        # The first path is thin, so that the others are visible on top of it.
        thin = k == 0 and len(paths) > 1
        lines[label] = ax.plot(
            *shown.T, ls="-" if k < 2 else style(k, LINES), color=style(k + 1, COLOURS),
            marker="." if thin else style(k - 1, MARKERS), ms=4 if thin else 6, mfc="white",
            lw=0.9 if thin else 2.0, zorder=3 + k, label=f"{label}{cut}",
        )[0]  # fmt: skip
    ax.plot(*w, "*", color="black", ms=13, mfc="white", ls="none", zorder=9, label="nearest to the origin")
    # The first step is much longer than the zigzag: the axes leave it out.
    square_limits(ax, np.vstack([*(path[1 : SHOWN + 1] for path in paths.values()), w[None]]))
    ax.set_xlabel("first component of w")
    ax.set_ylabel("second component of w")
    ax.set_aspect("equal")
    return lines


def draw_distances(
    ax: Any, paths: Mapping[str, Floats], steps: Mapping[str, int], unfinished: frozenset[str], w: Floats
) -> dict[str, Any]:
    """How much longer than the least one w is at every step, on a logarithmic axis; returns the lines."""
    above = {label: np.hypot(*path[1:].T) - float(np.hypot(*w)) for label, path in paths.items()}
    top = max((float(values.max()) for values in above.values() if len(values)), default=0.0) or 1.0
    lines = {}
    for k, (label, values) in enumerate(above.items()):
        at = np.arange(1, len(values) + 1)
        count = f"{'over ' * (label in unfinished)}{steps[label]} step{'s' * (steps[label] != 1)}"
        lines[label] = ax.plot(
            at, np.maximum(values, 1e-3 * _LEAST * top), ls=style(k, LINES), color=style(k + 1, COLOURS),
            lw=1.8, marker=style(k, MARKERS), ms=5, mfc="white", markevery=_marked(len(at)),
            label=f"{label}: {count}",
        )[0]  # fmt: skip
    if max((len(values) for values in above.values()), default=0) >= _MANY:
        ax.set_xscale("log")
    else:
        ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_yscale("log")
    ax.set_ylim(_LEAST * top, 2.0 * top)
    ax.set_xlabel("step")
    ax.set_ylabel("length of w above the least one")
    return lines


def square_limits(ax: Any, points: Floats) -> None:
    """Square limits around the points."""
    low, high = points.min(axis=0), points.max(axis=0)
    middle, radius = 0.5 * (low + high), 0.58 * float(np.max(high - low)) or 1.0
    ax.set_xlim(middle[0] - radius, middle[0] + radius)
    ax.set_ylim(middle[1] - radius, middle[1] + radius)


def _marked(n: int) -> list[int]:
    """Indices of markers that are evenly spaced on a logarithmic axis."""
    return (np.unique(np.geomspace(1, n, 10).astype(int)) - 1).tolist() if n else []
