"""Convex hulls, reduced hulls and differences of hulls in the plane."""

from __future__ import annotations

import numpy as np

from maxmargin._types import Floats

# Up to so many samples every corner of a reduced hull is found; beyond, corners in so many directions.
_EXACT, _DIRECTIONS = 60, 2000


def hull(points: Floats) -> Floats:
    """Corners of the convex hull, counter-clockwise; also of points on one line, or of one point.

    Andrew's monotone chains: the lower one from left to right, the upper one back.
    """
    ordered = np.unique(points, axis=0)
    if len(ordered) < 3:
        return np.asarray(ordered)

    def chain(along: Floats) -> list[Floats]:
        kept: list[Floats] = []
        for point in along:
            while len(kept) > 1 and _turn(kept[-2], kept[-1], point) <= 0:
                kept.pop()
            kept.append(point)
        return kept[:-1]

    return np.array(chain(ordered) + chain(ordered[::-1]))


def reduced_hull(points: Floats, mu: float) -> Floats:
    r"""Corners of :math:`\{\sum_i u_i x_i : \sum_i u_i = 1,\ 0\le u_i\le\mu\}`.

    The farthest point in a direction gives the weight mu to the farthest samples, and what is left of 1 to
    the next one. Which samples these are changes only where the direction is perpendicular to a line through
    two samples: one direction between any two such ones finds every corner.
    """
    n = len(points)
    mu = max(mu, 1.0 / n)  # a little less is rounding
    full = min(n, int(np.floor(1.0 / mu + 1e-9)))
    weights = np.zeros(n)
    weights[:full] = mu
    if full < n:
        weights[full] = max(0.0, 1.0 - full * mu)
    if n <= _EXACT:
        i, j = np.triu_indices(n, 1)
        d = points[j] - points[i]
        turns = np.sort(np.concatenate([np.arctan2(d[:, 0], -d[:, 1]), np.arctan2(-d[:, 0], d[:, 1])]))
        angles = 0.5 * (turns + np.append(turns[1:], turns[:1] + 2 * np.pi)) if len(turns) else np.zeros(1)
    else:
        angles = np.linspace(0.0, 2 * np.pi, _DIRECTIONS, endpoint=False)
    ahead = np.argsort(-(np.column_stack([np.cos(angles), np.sin(angles)]) @ points.T), axis=1)
    corners = weights @ points[ahead]
    # Corners that differ by rounding only would leave slivers.
    size = float(np.abs(points).max()) or 1.0
    return hull(np.round(corners / size, 12) * size)


def difference(a: Floats, b: Floats) -> Floats:
    """Corners of all differences of a point of the hull of a and one of the hull of b."""
    return hull((a[:, None] - b[None]).reshape(-1, 2))


def _turn(a: Floats, b: Floats, c: Floats) -> float:
    """Positive if the path from a through b to c turns left."""
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))
