"""Arithmetic on one group of variables: a box and one sum.

Feasible points for cold and warm starts, and the one-dimensional problems whose maxima add up to the duality
gap (see `maxmargin.dual`).
"""

from __future__ import annotations

import numpy as np

from maxmargin import _costs as costs
from maxmargin._types import Floats


def fill_evenly(u: Floats, hi: Floats, total: float) -> Floats:
    """Raise evenly spaced variables of the group to their bounds until all add up to `total`."""
    missing = total - float(u.sum())
    if missing <= 0:
        return u
    room = hi - u
    typical = float(np.median(room))
    count = min(len(u), int(np.ceil(missing / typical)) if typical > 0 else len(u))
    chosen = np.linspace(0, len(u) - 1, max(1, count)).astype(np.intp)
    if room[chosen].sum() < missing:  # then the others too
        rest = np.ones(len(u), np.bool_)
        rest[chosen] = False
        chosen = np.concatenate([chosen, np.flatnonzero(rest)])
    room = room[chosen]
    ahead = np.concatenate([[0.0], np.cumsum(room)[:-1]])
    u = u.copy()
    u[chosen] += np.clip(missing - ahead, 0.0, room)
    return u


def shift_sum(u: Floats, lo: Floats, hi: Floats, total: float) -> Floats:
    """Change `u` within its box until it adds up to `total`; zeros are changed last."""
    u = u.copy()
    for stage in range(4):
        missing = total - float(u.sum())
        if abs(missing) <= 1e-15 * max(abs(total), float(np.abs(u).sum())):
            break
        room = hi - u if missing > 0 else u - lo
        if stage == 0:  # towards zero
            room = np.minimum(room, np.where(np.sign(u) == -np.sign(missing), np.abs(u), 0.0))
        elif stage == 1:  # variables other than zero
            room = np.where(u != 0, room, 0.0)
        finite = np.isfinite(room)
        if not finite.all():
            share = np.where(finite, 0.0, 1.0) / (~finite).sum()
        else:
            available = float(room.sum())
            if available <= 0:
                continue
            share = room / max(available, abs(missing))
        u = np.clip(u + missing * share, lo, hi)
    return u


def quantile(c: Floats, lo: Floats, hi: Floats, total: float) -> float:
    """`best_multiplier` of a bounded box without ridge: a weighted quantile of c."""
    width = hi - lo
    if not len(c):
        return 0.0
    if len(c) >= costs.SELECTED_FROM and width[0] > 0 and (width == width[0]).all():
        k = int(np.ceil((total - lo.sum()) / width[0])) - 1
        k = len(c) - 1 - min(max(k, 0), len(c) - 1)  # from below
        return float(np.partition(c, k)[k])
    order = np.argsort(-c)
    # With b just below c[order[k]] the first k + 1 variables are at their upper bound.
    reached = lo.sum() + np.cumsum(width[order])
    k = min(int(np.searchsorted(reached, total)), len(c) - 1)
    return float(c[order[k]])


def best_multiplier(c: Floats, lo: Floats, hi: Floats, ridge: Floats, total: float) -> float | None:
    """The b that minimises sum_i max_v [(c_i - b) v - r_i v^2/2] + b total over lo <= v <= hi.

    Returns None if the sum is infinite for every b. At the minimum the maximising v add up to `total`;
    their sum falls as b grows, so b is a weighted quantile (ridge 0) or the root of a monotone
    function.
    """
    flat = ridge == 0
    # Where only the sum bounds v, the maximum is infinite unless c - b has the right sign.
    floor = float(np.max(c[flat & np.isposinf(hi)], initial=-np.inf))
    ceiling = float(np.min(c[flat & np.isneginf(lo)], initial=np.inf))
    if floor > ceiling:
        return None
    if flat.all():
        return _flat_multiplier(c, lo, hi, total, floor, ceiling)
    if not flat.any():
        return _crossing(c, lo, hi, ridge, total)

    with np.errstate(divide="ignore", invalid="ignore"):

        def best(b: float) -> Floats:
            t = c - b
            v = np.where(flat, np.where(t > 0, hi, lo), t / ridge)
            # For an unbounded variable with c = b any v is a maximum, for example 0.
            return np.where(flat & (t == 0), np.clip(0.0, lo, hi), np.clip(v, lo, hi))

        spread = float(np.max(np.abs(c), initial=1.0))
        low = max(floor, -spread) if np.isfinite(floor) else -spread
        high = min(ceiling, spread) if np.isfinite(ceiling) else spread
        while not np.isfinite(floor) and best(low).sum() < total and low > -1e300:
            low *= 2.0
        while not np.isfinite(ceiling) and best(high).sum() > total and high < 1e300:
            high *= 2.0
        for _ in range(100):
            middle = 0.5 * (low + high)
            if middle in (low, high):
                break
            if best(middle).sum() > total:
                low = middle
            else:
                high = middle
        b = high if np.isfinite(best(high)).all() else low
        return b if np.isfinite(best(b)).all() else None


def _flat_multiplier(c: Floats, lo: Floats, hi: Floats, total: float, floor: float, ceiling: float) -> float:
    """`best_multiplier` without ridges, for b between `floor` and `ceiling`.

    Between them a variable without an upper bound is at its lower one, and the reverse; the bounded ones have
    to supply the rest of the sum. Where they cannot, b is at the end at which unbounded ones may move.
    """
    bounded = np.isfinite(lo) & np.isfinite(hi)
    if bounded.all():
        return quantile(c, lo, hi, total)
    at = np.where(np.isfinite(lo), lo, np.where(np.isfinite(hi), hi, 0.0))
    rest = total - float(at[~bounded].sum())
    c, lo, hi = c[bounded], lo[bounded], hi[bounded]
    b = quantile(c, lo, hi, rest)
    if rest > hi.sum() and np.isfinite(floor):
        b = floor
    elif rest < lo.sum() and np.isfinite(ceiling):
        b = ceiling
    # An ulp inside: the caller's differences from b round too.
    return min(max(b, float(np.nextafter(floor, ceiling))), float(np.nextafter(ceiling, floor)))


def _crossing(c: Floats, lo: Floats, hi: Floats, ridge: Floats, total: float) -> float | None:
    """`best_multiplier` where all variables have a ridge.

    The sum of the maximising v is continuous, and linear between the points where a variable meets a bound:
    a few Newton steps lead to the root. Every third step halves the interval instead.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        inverse = 1.0 / ridge
        high = float(np.max(np.abs(c), initial=1.0))
        low = -high
        while np.clip((c - low) * inverse, lo, hi).sum() < total and low > -1e300:
            low *= 2.0
        while np.clip((c - high) * inverse, lo, hi).sum() > total and high < 1e300:
            high *= 2.0
        b = 0.5 * (low + high)
        for step in range(1, 300):
            v = (c - b) * inverse
            excess = float(np.clip(v, lo, hi).sum()) - total
            if not np.isfinite(excess):
                return None
            low, high = (b, high) if excess > 0 else (low, b)
            slope = float(inverse[(v > lo) & (v < hi)].sum())
            newton = b + excess / slope if slope > 0 else np.nan
            if abs(newton - b) <= 2.0**-52 * abs(b):
                break
            b = newton if low < newton < high and step % 3 else 0.5 * (low + high)
            if b in (low, high):
                break
        return b


def gain(t: Floats, room: Floats, r: Floats) -> Floats:
    """Maximum of t d - r d^2/2 over 0 <= d <= room."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if not r.any():
            return np.where(t > 0, t * room, 0.0)
        d = np.where(r > 0, np.minimum(t / r, room), room)
        return np.where(t > 0, np.where(np.isinf(d), np.inf, (t - 0.5 * r * d) * d), 0.0)
