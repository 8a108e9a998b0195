"""The true gap of SVR and NuSVR."""

from __future__ import annotations

from typing import Any

import numpy as np

from attacks.exact import LD, Coefficients, Kernel, expansion
from attacks.primal import nearest_zero, squared_tube, tube
from attacks.verdict import (
    Floats,
    Verdict,
    at_bounds,
    ends_of,
    finish,
    in_box,
    intercept,
    interval,
    mover,
    row_coef,
    sums,
    tolerance,
    violation_of,
)


def _regression(
    model: Any, kernel: Kernel, rows: Floats, y: Any, weight: Floats, squared: bool, repaired: bool
) -> tuple[Any, ...]:
    beta, kept = row_coef(model, len(rows), weight)
    part = kernel if kernel.matrix is None else kernel._replace(matrix=kernel.matrix[np.ix_(kept, kept)])
    rows, beta = rows[kept], beta[kept]
    target = np.asarray(y, dtype=np.float64)[kept].astype(LD)
    C = model.C * weight[kept]
    faults: list[str] = []
    in_box(faults, np.abs(beta), np.full(len(beta), np.inf) if squared else C, "all")
    exact = Coefficients(beta)
    size = float(np.abs(beta).sum())
    if hasattr(model, "nu"):  # differences of multipliers that add up to as much
        size = max(size, model.nu * float(C.sum()))
    sums(faults, float(exact.total(slice(None))), 0.0, size, "all")
    upper = np.full(len(beta), np.inf) if squared else C
    if repaired:
        exact.move(mover(rows, part, beta, upper), slice(None), 0.0)
    return part, rows, beta, target, C.astype(LD), faults, exact, expansion(part, rows, exact)


def svr(model: Any, kernel: Kernel, rows: Floats, y: Any, weight: Floats, repaired: bool) -> Verdict:
    """½|w|² + Σ C ξ (or ξ²), ξ = max(0, |y - f| - ε); the dual Σ y β - ε Σ|β| - ½|w|² (- Σ β²/(4C))."""
    hard = bool(np.isinf(model.C))
    squared = getattr(model, "loss", "") == "squared_epsilon_insensitive" and not hard
    part, rows, beta, target, C, faults, exact, e = _regression(
        model, kernel, rows, y, weight, squared or hard, repaired
    )
    b = exact.long()
    eps = LD(model.epsilon)
    rest = target - e.h
    dual = np.sum(target * b) - eps * np.abs(b).sum() - e.quad / 2
    if hard:
        # The documented gap: that of the problem whose tube holds the largest residual.
        wide = max(eps, (rest.max() - rest.min()) / 2)
        primal, dual = e.quad / 2, np.sum(target * b) - wide * np.abs(b).sum() - e.quad / 2
        size = 3 * np.abs(b).sum()
    elif squared:
        dual = dual - np.sum(b**2 / (4 * C))
        loss, best = squared_tube(rest, eps, C)
        primal = e.quad / 2 + loss
        size = 2 * np.abs(b).sum() + 2 * np.sum(C * np.maximum(0, np.abs(rest - best) - eps))
    else:
        primal = e.quad / 2 + tube(rest, eps, C)
        size = np.abs(b).sum() + C.sum()
    ridge = b / (2 * C) if squared else LD(0) * b
    g = e.h - target + ridge
    near = 1e-12 * (np.abs(b).max(initial=LD(0)) if hard or squared else C)
    top = np.full(len(b), LD(np.inf)) if hard or squared else C
    least = np.min((g + np.where(b >= -near, eps, -eps))[b < top - near], initial=LD(np.inf))
    most = np.max((g + np.where(b > near, eps, -eps))[b > near - top], initial=-LD(np.inf))
    verdict = finish("all", primal, dual, violation_of([(least, most)]), e, size, faults)
    # Residuals are differences of targets, which may be large.
    verdict.slack += 1e-12 * float(np.abs(target).max(initial=LD(0)))
    # Far from the origin the multiplier of the sum, the bias, is large.
    verdict.lacking = abs(float(exact.total(slice(None))) * float(model.intercept_[0]))
    verdict.loose = interval([(least, most)])
    if getattr(model, "status_", "") == "solved":
        offset = -(float(model.intercept_[0]) + e.reference)
        bounded = not (hard or squared) and at_bounds(beta, C.astype(np.float64))
        intercept(verdict, part, rows, beta, offset, (least, most), tolerance(model), bounded)
    return verdict


def nu_svr(model: Any, kernel: Kernel, rows: Floats, y: Any, weight: Floats, repaired: bool) -> Verdict:
    """½|w|² + nu Σ C ε + Σ C ξ over b and ε; the dual Σ y β - ½|w|², Σ α = Σ α* = nu Σ C / 2."""
    _, _, _, target, C, faults, exact, e = _regression(model, kernel, rows, y, weight, False, repaired)
    b = exact.long()
    half = LD(model.nu) * C.sum() / 2
    above = np.maximum(b, 0).sum()
    if above > half * (1 + LD(1e-9)):
        faults.append(f"the positive coefficients add up to {float(above):.10g}, above {float(half):.10g}")
    rest = target - e.h
    # With t = b ± ε the problem falls into two: Σ C max(0, rest - t) + half t, and its mirror image.
    loss = nearest_zero(rest, C, half) + nearest_zero(-rest, C, half)
    primal, dual = e.quad / 2 + loss, np.sum(target * b) - e.quad / 2
    violation, loose = LD(np.nan), 0.0
    if above > half * (1 - LD(1e-9)):  # otherwise which α and α* were meant is not known
        g, near = e.h - target, 1e-12 * C
        ends = [ends_of(g, b < C - near, b > near), ends_of(g, b < -near, b > near - C)]
        violation, loose = violation_of(ends), interval(ends)
    size = np.abs(b).sum() + 2 * C.sum()
    verdict = finish("all", primal, dual, violation, e, size, faults)
    verdict.loose = loose
    verdict.slack += 1e-12 * float(np.abs(target).max(initial=LD(0)))
    return verdict
