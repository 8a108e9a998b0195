"""Claims of one model and what is true of them, and the checks that apply to models of all kinds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from attacks.exact import LD, Expansion, Kernel, Long, block

EPS64 = float(np.finfo(np.float64).eps)
Floats = NDArray[np.float64]


@dataclass
class Verdict:
    """Claims of one model (for a class pair, or for all classes) and what is true of them."""

    name: str
    primal: float
    dual: float
    gap: float  # true
    violation: float  # true; NaN: not defined
    error: float  # of the judge, in the gap
    slack: float  # allowance of the violation
    claimed: float = np.nan
    faults: list[str] = field(default_factory=list)
    place: int = 0  # in dual_gap_
    lacking: float = 0.0  # what the rounding of a sum adds to the dual value, times its multiplier
    loose: float = 0.0  # the width of the interval that the KKT conditions leave for the bias

    def ratio(self) -> float:
        """True gap over what is claimed and allowed."""
        if not np.isfinite(self.claimed):
            return 0.0
        return max(self.gap - self.error, 0.0) / max(self.claimed, 1e-300)


def dense_coef(model: Any) -> Floats:
    """dual_coef_ as an array."""
    coef = model.dual_coef_
    return np.asarray(coef.toarray() if sp.issparse(coef) else coef, dtype=np.float64)


def in_box(faults: list[str], u: Any, upper: Any, where: str) -> None:
    over = np.asarray(u, dtype=LD) - np.asarray(upper, dtype=LD) * (1 + LD(1e-9))
    if not np.isfinite(np.asarray(u, dtype=np.float64)).all():
        faults.append(f"coefficients are not finite ({where})")
    elif (over > 0).any():
        k = int(np.argmax(over))
        faults.append(
            f"coefficient {k} is {float(u[k]):.10g}, above its bound {float(upper[k]):.10g} ({where})"
        )
    size = np.where(np.isfinite(upper), upper, np.max(np.abs(u), initial=0.0))
    if (np.asarray(u) < -1e-12 * size).any():
        faults.append(f"coefficients of the wrong sign ({where})")


def sums(faults: list[str], total: float, target: float, size: float, where: str) -> None:
    if abs(total - target) > 1e-9 * max(size, abs(target)):
        faults.append(f"coefficients add up to {total:.10g} instead of {target:.10g} ({where})")


def mover(rows: Floats, kernel: Kernel, u: Floats, upper: Floats) -> int:
    """The entry that takes the rounding of a sum: with room on both sides, and no distant row."""
    size = np.abs(u)
    room = np.minimum(size, np.abs(np.where(np.isfinite(upper), upper, 4 * size + 1) - size))
    if kernel.matrix is not None:
        far = np.abs(np.diag(kernel.matrix))
    else:
        far = np.abs(rows - np.median(rows, axis=0)).max(axis=1)
    free = room > 1e-9 * size.max(initial=0.0)
    candidates = np.flatnonzero(free) if free.any() else np.flatnonzero(size > 0)
    if not len(candidates):
        return 0
    return int(candidates[np.argmin(far[candidates])])


def rescaling(kernel: Kernel, rows: Floats, a: Floats, centred: bool = True) -> tuple[float, float]:
    """eps |u|'|K||u| and eps max |K||u|: what rounding the coefficients once can change."""
    support = np.flatnonzero(a)
    if centred and kernel.name == "linear":
        rows = rows - np.median(rows, axis=0)
    K = np.abs(block(kernel, rows.astype(LD), slice(None), support))
    h = K @ np.abs(a[support]).astype(LD)
    total = float(np.abs(a[support]).astype(LD) @ h[support])
    return 4 * EPS64 * total, 4 * EPS64 * float(h.max(initial=LD(0)))


def finish(
    name: str, primal: Any, dual: Any, violation: Any, e: Expansion, size: Any, faults: list[str],
    extra: tuple[float, float] = (0.0, 0.0),
) -> Verdict:  # fmt: skip
    """`size`: by how much an error of h is multiplied in the gap (the sum of all |u| and bounds)."""
    p, d = float(primal), float(dual)
    error = e.quad_error + e.h_error * float(size) + 1e-12 * (abs(p) + abs(d)) + extra[0]
    slack = 2 * e.h_error + 1e-12 * float(np.max(np.abs(e.h), initial=LD(0))) + extra[1] + 1e-13
    return Verdict(name, p, d, float(primal - dual), float(violation), error, slack, faults=faults)


def ends_of(g: Long, rises: Any, falls: Any) -> tuple[np.longdouble, np.longdouble]:
    """The least gradient that may rise and the largest that may fall."""
    least = np.min(g[rises], initial=LD(np.inf))
    most = np.max(g[falls], initial=-LD(np.inf))
    return least, most


def violation_of(ends: list[tuple[np.longdouble, np.longdouble]]) -> np.longdouble:
    return max([LD(0), *(most - least for least, most in ends if np.isfinite(most - least))])


def at_bounds(alpha: Any, upper: Any) -> bool:
    """Whether every multiplier is at a bound up to rounding: then the bias has an interval, not one value."""
    apart = np.minimum(np.abs(alpha), np.abs(upper - np.abs(alpha)))
    return bool(np.all(apart <= 64 * EPS64 * np.asarray(upper)))


def interval(ends: list[Any]) -> float:
    """The widest interval that is left for a bias."""
    widths = [float(least - most) for least, most in ends]
    return max([0.0, *(w for w in widths if np.isfinite(w))])


def tolerance(model: Any) -> float:
    """The violation that a solved model may have; the incremental estimators name none."""
    return float(getattr(model, "tol", np.inf))


def intercept(
    verdict: Verdict,
    kernel: Kernel,
    rows: Floats,
    u: Floats,
    offset: Any,
    ends: Any,
    tol: float,
    bounded: bool,
) -> None:
    """`offset` must be between the ends, up to the tolerance and what float64 kernel values leave open.

    If all multipliers are at bounds (`bounded`) it must be in the middle of the ends, as is documented.
    """
    low, high = min(ends), max(ends)
    if bounded and ends[0] > ends[1]:
        low = high = (low + high) / 2
    rounding = rescaling(kernel, rows, u, centred=False)[1] * 4 + 1e-12 * abs(float(offset))
    off = max(low - offset, offset - high, LD(0))
    if np.isfinite(off) and off > tol * (1 + 1e-3) + rounding + verdict.slack:
        verdict.faults.append(
            f"the intercept is {float(off):.6g} {'from the middle' if low == high else 'outside'} of "
            f"[{float(-max(ends)):.6g}, {float(-min(ends)):.6g}] "
            f"({verdict.name}, tol {tol:g}, allowance {rounding:.2g})"
        )


def row_coef(model: Any, n: int, weight: Floats) -> tuple[Floats, Any]:
    beta = np.zeros(n)
    beta[model.support_] = dense_coef(model)[0]
    return beta, weight > 0
