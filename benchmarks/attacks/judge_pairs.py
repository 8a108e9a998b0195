"""The true gap of SVC, NuSVC and IncrementalSVC: two classes, or pairs of them."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from attacks.exact import LD, Coefficients, Expansion, Kernel, Long, expansion
from attacks.primal import fill, hinge, squared_hinge
from attacks.verdict import (
    Floats,
    Verdict,
    at_bounds,
    dense_coef,
    ends_of,
    finish,
    in_box,
    intercept,
    interval,
    mover,
    rescaling,
    sums,
    tolerance,
    violation_of,
)

PAIRS = 150  # of more pairs of classes so many are judged


def pairs(model: Any, kernel: Kernel, rows: Floats, y: Any, weight: Floats, repaired: bool) -> list[Verdict]:
    """LIBSVM's layout: row j - 1 has the coefficients of class i < j against j, row i those of j."""
    classes = model.classes_
    k = len(classes)
    coef = dense_coef(model)
    full = np.zeros((k - 1, len(rows)))
    full[:, model.support_] = coef
    label = np.searchsorted(classes, y)
    out = []
    every = list(combinations(range(k), 2))
    chosen = range(len(every))
    if len(every) > PAIRS:  # a sample, the same each time
        chosen = np.sort(np.random.default_rng(len(every)).permutation(len(every))[:PAIRS]).tolist()
    for p in chosen:
        a, b = every[p]
        members = np.flatnonzero(((label == a) | (label == b)) & (weight > 0))
        first = label[members] == a
        u = np.where(first, full[b - 1, members], full[a, members])
        # The second of two classes is positive, as in scikit-learn; of more the first.
        sign = np.where(first == (k > 2), 1.0, -1.0)
        part = kernel if kernel.matrix is None else kernel._replace(
            matrix=kernel.matrix[np.ix_(members, members)]
        )  # fmt: skip
        of_class = np.where(first, model.class_weight_[a], model.class_weight_[b])
        name = f"{classes[a]} / {classes[b]}"
        b0 = float(model.intercept_[p])
        if type(model).__name__ == "NuSVC":
            out.append(nu_svc(model, name, part, rows[members], sign, u, weight[members], repaired))
        else:
            bounds = np.asarray(model.C * (of_class * weight[members]), dtype=np.float64)
            out.append(svc(model, name, part, rows[members], sign, u, bounds, b0, repaired))
        out[-1].place = p
    return out


def svc(
    model: Any, name: str, kernel: Kernel, rows: Floats, sign: Floats, u: Floats, C: Floats, b: float,
    repaired: bool,
) -> Verdict:  # fmt: skip
    """½|w|² + Σ C ξ, Σ C ξ², or no slack at all; the dual Σ α - ½|w|² (- Σ α²/(4C))."""
    faults: list[str] = []
    loss_name = getattr(model, "loss", "hinge")
    hard, squared = bool(np.isinf(model.C)), loss_name == "squared_hinge"
    upper = np.full(len(u), np.inf) if hard or squared else C
    in_box(faults, sign * u, upper, name)
    if not np.isfinite(u).all():
        return Verdict(name, np.nan, np.nan, np.nan, np.nan, 0.0, 0.0, faults=faults)
    exact = Coefficients(u)
    sums(faults, float(exact.total(slice(None))), 0.0, float(np.abs(u).sum()), name)
    if repaired:
        exact.move(mover(rows, kernel, u, upper), slice(None), 0.0)
    e = expansion(kernel, rows, exact)
    alpha = sign * exact.long()
    if hard:
        return _hard_margin(model, name, e, sign, alpha, faults)
    c = np.asarray(C, dtype=LD)
    g = e.h - sign
    if squared:
        loss, best = squared_hinge(sign, e.h, c)
        dual = alpha.sum() - e.quad / 2 - np.sum(alpha**2 / (4 * c))
        g = g + sign * alpha / (2 * c)
        size = np.abs(alpha).sum() * 2 + 2 * np.sum(c * np.maximum(0, 1 - sign * (e.h + best)))
    else:
        loss, best = hinge(sign, e.h, c)
        dual = alpha.sum() - e.quad / 2
        size = np.abs(alpha).sum() + c.sum()
    near = 1e-12 * (float(np.max(alpha)) if squared else c)
    at_zero, at_top = alpha <= near, alpha >= upper - near
    ends = ends_of(g, np.where(sign > 0, ~at_top, ~at_zero), np.where(sign > 0, ~at_zero, ~at_top))
    extra = (0.0, 0.0)
    if squared:  # may have been solved as hulls, and scaled
        extra = rescaling(kernel, rows, u)
    verdict = finish(name, e.quad / 2 + loss, dual, violation_of([ends]), e, size, faults, extra)
    verdict.loose = interval([ends])
    if getattr(model, "status_", "") == "solved":
        bounded = not squared and at_bounds(u, C)
        intercept(verdict, kernel, rows, u, -(b + e.reference), ends, tolerance(model), bounded)
    return verdict


def _hard_margin(
    model: Any, name: str, e: Expansion, sign: Floats, alpha: Long, faults: list[str]
) -> Verdict:
    """w is scaled until every margin is 1."""
    positive = sign > 0
    margin = (np.min(e.h[positive]) - np.max(e.h[~positive])) / 2
    dual = alpha.sum() - e.quad / 2
    primal = e.quad / 2 / margin**2 if margin > 0 else LD(np.inf)
    g = e.h - sign
    up = alpha > 1e-12 * np.max(alpha)
    ends = ends_of(g, np.where(positive, True, up), np.where(positive, up, True))
    size = np.abs(alpha).sum() + (2 * abs(primal) / margin if margin > 0 else LD(0))
    if not np.isfinite(primal):
        verdict = Verdict(name, np.inf, float(dual), np.inf, np.nan, 0.0, 0.0, faults=faults)
        verdict.violation = float(violation_of([ends]))
        verdict.slack = 2 * e.h_error + 1e-12
        return verdict
    return finish(name, primal, dual, violation_of([ends]), e, size, faults)


def nu_svc(
    model: Any, name: str, kernel: Kernel, rows: Floats, sign: Floats, u: Floats, weight: Floats,
    repaired: bool,
) -> Verdict:  # fmt: skip
    """½|c₊ - c₋|² over reduced hulls: Σ v = 1 in each class, v ≤ 2 weight / (nu Σ weight)."""
    faults: list[str] = []
    half = 0.5 * model.nu * float(weight.sum())
    exact = Coefficients(u)
    positive = sign > 0
    up, down = exact.total(positive), -exact.total(~positive)
    sums(faults, float(up - down), 0.0, float(up + down), name)
    mu = weight / half
    alpha = sign * exact.long()
    if not (up > 0 and down > 0):
        # Not begun when the time was up, which only an infinite gap says truly.
        return Verdict(name, np.nan, np.nan, np.inf, np.inf, 0.0, 0.0, faults=faults)
    in_box(faults, np.where(positive, alpha / up, alpha / down), mu, name)
    if repaired:
        at = mover(rows, kernel, np.where(positive, 0.0, u), mu * float(down))
        exact.match(at, ~positive, positive)
    e = expansion(kernel, rows, exact)
    total = exact.total(positive)
    g = sign * e.h / total  # of the hulls
    v = sign * exact.long() / total
    least = fill(g[positive], mu[positive]) + fill(g[~positive], mu[~positive])
    square = e.quad / total**2
    near = 1e-12 * mu
    ends = [ends_of(g[of], (v < mu - near)[of], (v > near)[of]) for of in (positive, ~positive)]
    scale = min(half, 1.0 / float(np.median(mu)))
    extra = rescaling(kernel, rows, np.asarray(u / float(total)))
    e = e._replace(h=e.h / total, h_error=e.h_error / float(total), quad_error=e.quad_error / float(total**2))
    # f(u) - min f <= square - least; in the words of a primal and a dual value: ½ square and the rest.
    verdict = finish(name, square / 2, least - square / 2, scale * violation_of(ends), e, 4.0, faults, extra)
    verdict.slack *= scale
    verdict.loose = interval(ends) * float(total)
    return verdict


def incremental(model: Any, kernel: Kernel, rows: Floats, y: Any, weight: Floats, repaired: bool) -> Verdict:
    u = np.zeros(len(rows))
    u[model.support_] = dense_coef(model)[0]
    sign = np.where(np.asarray(y) == model.classes_[-1], 1.0, -1.0)
    kept = weight > 0
    return svc(
        model,
        "all",
        kernel,
        rows[kept],
        sign[kept],
        u[kept],
        model.C * weight[kept],
        float(model.intercept_[0]),
        repaired,
    )
