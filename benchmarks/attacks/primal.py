"""One-dimensional minima in long double: the best bias of each loss, the least value over a reduced hull."""

from __future__ import annotations

from typing import Any

import numpy as np

from attacks.exact import LD, Long


def fill(g: Long, upper: Any) -> np.longdouble:
    """The least g'v with Σ v = 1, 0 ≤ v ≤ upper: the smallest are filled first."""
    order = np.argsort(g, kind="stable")
    top = np.asarray(upper, dtype=LD)[order]
    before = np.concatenate([[LD(0)], np.cumsum(top)[:-1]])
    v = np.clip(LD(1) - before, LD(0), top)
    return np.sum(v * g[order]) + (LD(1) - v.sum()) * g[order[-1]]


def nearest_zero(rest: Long, C: Long, half: Any) -> np.longdouble:
    """The least Σ C max(0, rest - t) + half t over t."""
    order = np.argsort(rest)[::-1]
    s, c = rest[order], C[order]
    # The slope half - Σ of the C above t changes its sign at one of the values.
    above = np.cumsum(c)
    at = s[min(int(np.argmax(above >= half)) if (above >= half).any() else len(s) - 1, len(s) - 1)]
    return np.sum(C * np.maximum(0, rest - at)) + half * at


def hinge(sign: Any, h: Long, C: Long) -> tuple[np.longdouble, np.longdouble]:
    """The least Σ C max(0, 1 - y (h + b)) over b, and b."""
    at = sign - h
    order = np.argsort(at)
    c, s = C[order], sign[order]
    # Left of all kinks every positive sample counts, no negative one.
    slope = -C[sign > 0].sum() + np.cumsum(c)
    del s
    k = int(np.argmax(slope >= 0)) if (slope >= 0).any() else len(at) - 1
    values = []
    for j in (max(k - 1, 0), k, min(k + 1, len(at) - 1)):  # rounding of the slope must not matter
        b = at[order[j]]
        values.append((np.sum(C * np.maximum(0, 1 - sign * (h + b))), b))
    return min(values)


def squared_hinge(sign: Any, h: Long, C: Long) -> tuple[np.longdouble, np.longdouble]:
    """The least Σ C max(0, 1 - y (h + b))² over b, and b."""
    return _newton(lambda b: sign - h - b, lambda r: np.where(sign * r > 0, r, LD(0)), C, sign - h)


def tube(rest: Long, eps: Any, C: Long) -> np.longdouble:
    """The least Σ C max(0, |rest - b| - eps) over b."""
    at = np.concatenate([rest - eps, rest + eps])
    order = np.argsort(at)
    slope = -C.sum() + np.cumsum(np.concatenate([C, C])[order])
    k = int(np.argmax(slope >= 0)) if (slope >= 0).any() else len(at) - 1
    near = at[order[max(k - 1, 0) : k + 2]]
    return min(np.sum(C * np.maximum(0, np.abs(rest - b) - eps)) for b in near)


def squared_tube(rest: Long, eps: Any, C: Long) -> tuple[np.longdouble, np.longdouble]:
    """The least Σ C max(0, |rest - b| - eps)² over b, and b."""
    return _newton(
        lambda b: rest - b, lambda r: np.sign(r) * np.maximum(0, np.abs(r) - eps), C, rest
    )  # fmt: skip


def _newton(residual: Any, active: Any, C: Long, kinks: Long) -> tuple[np.longdouble, np.longdouble]:
    """Bisection of the derivative, then steps on the active set; any b gives an upper bound."""
    low, high = kinks.min() - 1, kinks.max() + 1
    for _ in range(120):
        b = (low + high) / 2
        if np.sum(C * active(residual(b))) > 0:
            low = b
        else:
            high = b
    best = (np.sum(C * active(residual(low)) ** 2), low)
    for b in (high, (low + high) / 2):
        best = min(best, (np.sum(C * active(residual(b)) ** 2), b))
    b = best[1]
    r = active(residual(b))
    used = r != 0
    if used.any():
        b = b + np.sum(C * r) / np.sum(C[used])
        best = min(best, (np.sum(C * active(residual(b)) ** 2), b))
    return best
