"""Is a fitted model what it claims to be? Objective, gap, KKT conditions and feasibility in long double.

The problems are those of the documentation. Everything is recomputed from public attributes and the training
data. A model is at fault if

- a coefficient leaves its box, or a sum is off, by more than 1e-9 (relative);
- a finite `dual_gap_` is less than the true gap, primal less dual value with the best bias;
- `status_` is "solved" and the KKT conditions are violated by more than `tol` (LIBSVM's measure);
- the intercept is outside of what the KKT conditions leave.

Coefficients are float64 numbers whose sums are exact to rounding only: one of them is changed by the rest
(some 1e-16 of the sum) before the objective is evaluated, so that constants of the kernel cancel as they
should. Coefficients that an estimator reports in another scaling than it solved in are rounded once more; for
these the allowance has the term 4 eps |u|'|K||u|.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from attacks.exact import LD, Coefficients, Expansion, Kernel, Long, block, expansion
from attacks.primal import fill, hinge, nearest_zero, squared_hinge, squared_tube, tube

EPS64 = float(np.finfo(np.float64).eps)
Floats = NDArray[np.float64]
PAIRS = 150  # of more pairs of classes so many are judged


@dataclass
class Verdict:
    """What one machine claims and what is true of it."""

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

    def ratio(self) -> float:
        """True gap over what is claimed and allowed."""
        if not np.isfinite(self.claimed):
            return 0.0
        return max(self.gap - self.error, 0.0) / max(self.claimed, 1e-300)


def kernel_of(model: Any, X: Floats, matrix: Floats | None, weight: Floats) -> Kernel:
    """The kernel of a fitted model, from its parameters."""
    if matrix is not None:
        return Kernel("matrix", matrix=matrix)
    name = model.kernel
    if name == "linear":
        return Kernel("linear")
    gamma = model.gamma
    if gamma in ("scale", "auto"):
        used = X[weight > 0]
        spread = float(used.astype(LD).var()) * X.shape[1]
        want = 1.0 / X.shape[1] if gamma == "auto" else 1.0 / spread if spread else 1.0
        # The last bits of a variance depend on the order of its sum: the model's own number, if it is right.
        own = float(getattr(model, "gamma_", getattr(model, "_gamma", want)))
        if abs(own - want) > 1e-6 * want and not hasattr(model, "gamma_"):
            raise AssertionError(f"gamma={gamma!r} is {want:.10g}, but the model uses {own:.10g}")
        gamma = own
    return Kernel(name, float(gamma), int(getattr(model, "degree", 3)), float(getattr(model, "coef0", 0.0)))


def dense_rows(X: Any) -> Floats:
    """The data as float64 rows."""
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def dense_coef(model: Any) -> Floats:
    """dual_coef_ as an array."""
    coef = model.dual_coef_
    return np.asarray(coef.toarray() if sp.issparse(coef) else coef, dtype=np.float64)


def judge(
    model: Any, X: Any, y: Any, weight: Any = None, *, matrix: Floats | None = None
) -> list[Verdict]:
    """All machines of a fitted model. `matrix`: the kernel matrix, if precomputed or callable."""
    rows = dense_rows(X) if matrix is None else np.zeros((len(matrix), 1))
    n = len(rows)
    weight = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    kernel = kernel_of(model, rows, matrix, weight)
    name = type(model).__name__
    if name in ("SVC", "NuSVC"):
        verdicts = _pairs(model, kernel, rows, np.asarray(y), weight)
    elif name == "IncrementalSVC":
        verdicts = [_incremental(model, kernel, rows, np.asarray(y), weight)]
    else:
        kinds = {
            "SVR": _svr, "NuSVR": _nu_svr, "OneClassSVM": _one_class, "L2OneClassSVM": _one_class_l2,
            "AllDistancesSVC": _all_distances, "CrammerSingerSVC": _crammer_singer,
        }  # fmt: skip
        verdicts = [kinds[name](model, kernel, rows, y, weight)]
    _claims(model, verdicts)
    return verdicts


def _claims(model: Any, verdicts: list[Verdict]) -> None:
    if not hasattr(model, "dual_gap_"):
        return  # IncrementalSVC, or a rival
    claims = np.ravel(model.dual_gap_)
    k = len(model.classes_) if type(model).__name__ in ("SVC", "NuSVC") else 2
    if len(claims) != k * (k - 1) // 2:
        verdicts[0].faults.append(f"dual_gap_ has {len(claims)} entries for {k} classes")
        return
    for verdict in verdicts:
        claimed = claims[verdict.place]
        verdict.claimed = float(claimed)
        if np.isnan(claimed) or claimed < 0:
            verdict.faults.append(f"dual_gap_ is {claimed}")
        elif np.isfinite(claimed) and verdict.gap > claimed * (1 + 1e-6) + verdict.error:
            verdict.faults.append(
                f"false certificate: gap {verdict.gap:.6g}, claimed {claimed:.6g} (allowance "
                f"{verdict.error:.2g}, primal {verdict.primal:.6g}, dual {verdict.dual:.6g}, {model.status_})"
            )
        if verdict.gap < -verdict.error - 1e-9 * abs(verdict.primal):
            verdict.faults.append(
                f"weak duality fails: primal {verdict.primal:.10g} < dual {verdict.dual:.10g} "
                "(the point is infeasible, the kernel indefinite, or the judge wrong)"
            )
        if model.status_ == "solved" and verdict.violation > model.tol * (1 + 1e-3) + verdict.slack:
            verdict.faults.append(
                f"solved, but the KKT violation is {verdict.violation:.6g} (tol {model.tol:g}, allowance "
                f"{verdict.slack:.2g})"
            )


def _in_box(faults: list[str], u: Any, upper: Any, where: str) -> None:
    over = np.asarray(u, dtype=LD) - np.asarray(upper, dtype=LD) * (1 + LD(1e-9))
    if not np.isfinite(np.asarray(u, dtype=np.float64)).all():
        faults.append(f"coefficients are not finite ({where})")
    elif (over > 0).any():
        k = int(np.argmax(over))
        faults.append(f"coefficient {k} is {float(u[k]):.10g}, above its bound {float(upper[k]):.10g} ({where})")
    size = np.where(np.isfinite(upper), upper, np.max(np.abs(u), initial=0.0))
    if (np.asarray(u) < -1e-12 * size).any():
        faults.append(f"coefficients of the wrong sign ({where})")


def _sums(faults: list[str], total: float, target: float, size: float, where: str) -> None:
    if abs(total - target) > 1e-9 * max(size, abs(target)):
        faults.append(f"coefficients add up to {total:.10g} instead of {target:.10g} ({where})")


def _mover(rows: Floats, kernel: Kernel, u: Floats, upper: Floats) -> int:
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


def _rescaling(kernel: Kernel, rows: Floats, a: Floats, centred: bool = True) -> tuple[float, float]:
    """eps |u|'|K||u| and eps max |K||u|: what rounding the coefficients once can change."""
    support = np.flatnonzero(a)
    if centred and kernel.name == "linear":
        rows = rows - np.median(rows, axis=0)
    K = np.abs(block(kernel, rows.astype(LD), slice(None), support))
    h = K @ np.abs(a[support]).astype(LD)
    total = float(np.abs(a[support]).astype(LD) @ h[support])
    return 4 * EPS64 * total, 4 * EPS64 * float(h.max(initial=LD(0)))


def _finish(
    name: str, primal: Any, dual: Any, violation: Any, e: Expansion, size: Any, faults: list[str],
    extra: tuple[float, float] = (0.0, 0.0),
) -> Verdict:  # fmt: skip
    """`size`: by how much an error of h is multiplied in the gap (the sum of all |u| and bounds)."""
    p, d = float(primal), float(dual)
    error = e.quad_error + e.h_error * float(size) + 1e-12 * (abs(p) + abs(d)) + extra[0]
    slack = 2 * e.h_error + 1e-12 * float(np.max(np.abs(e.h), initial=LD(0))) + extra[1] + 1e-13
    return Verdict(name, p, d, float(primal - dual), float(violation), error, slack, faults=faults)


def _ends(g: Long, rises: Any, falls: Any) -> tuple[np.longdouble, np.longdouble]:
    """The least gradient that may rise and the largest that may fall."""
    least = np.min(g[rises], initial=LD(np.inf))
    most = np.max(g[falls], initial=-LD(np.inf))
    return least, most


def _violation(ends: list[tuple[np.longdouble, np.longdouble]]) -> np.longdouble:
    return max([LD(0), *(most - least for least, most in ends if np.isfinite(most - least))])


# -- two classes, and pairs of them ------------------------------------------------------------------


def _pairs(model: Any, kernel: Kernel, rows: Floats, y: Any, weight: Floats) -> list[Verdict]:
    """LIBSVM's layout: row j - 1 has the coefficients of class i < j against j, row i those of j."""
    classes = model.classes_
    k = len(classes)
    coef = dense_coef(model)
    full = np.zeros((k - 1, len(rows)))
    full[:, model.support_] = coef
    label = np.searchsorted(classes, y)
    out = []
    pairs = list(combinations(range(k), 2))
    chosen = range(len(pairs))
    if len(pairs) > PAIRS:  # a sample, the same each time
        chosen = np.sort(np.random.default_rng(len(pairs)).permutation(len(pairs))[:PAIRS]).tolist()
    for p in chosen:
        a, b = pairs[p]
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
            out.append(nu_svc(model, name, part, rows[members], sign, u, weight[members], b0))
        else:
            bounds = np.asarray(model.C * (of_class * weight[members]), dtype=np.float64)
            out.append(svc(model, name, part, rows[members], sign, u, bounds, b0))
        out[-1].place = p
    return out


def svc(
    model: Any, name: str, kernel: Kernel, rows: Floats, sign: Floats, u: Floats, C: Floats, b: float
) -> Verdict:
    """½|w|² + Σ C ξ, Σ C ξ², or no slack at all; the dual Σ α - ½|w|² (- Σ α²/(4C))."""
    faults: list[str] = []
    loss_name = "squared_hinge" if type(model).__name__ == "IncrementalSVC" else getattr(model, "loss", "hinge")
    hard, squared = bool(np.isinf(model.C)), loss_name == "squared_hinge"
    upper = np.full(len(u), np.inf) if hard or squared else C
    _in_box(faults, sign * u, upper, name)
    if faults:
        return Verdict(name, np.nan, np.nan, np.nan, np.nan, 0.0, 0.0, faults=faults)
    exact = Coefficients(u)
    _sums(faults, float(exact.total(slice(None))), 0.0, float(np.abs(u).sum()), name)
    exact.move(_mover(rows, kernel, u, upper), slice(None), 0.0)
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
    ends = _ends(g, np.where(sign > 0, ~at_top, ~at_zero), np.where(sign > 0, ~at_zero, ~at_top))
    extra = (0.0, 0.0)
    if squared:  # may have been solved as hulls, and scaled
        extra = _rescaling(kernel, rows, u)
    verdict = _finish(name, e.quad / 2 + loss, dual, _violation([ends]), e, size, faults, extra)
    if getattr(model, "status_", "") == "solved":
        _intercept(verdict, kernel, rows, u, -(b + e.reference), ends, model.tol)
    return verdict


def _intercept(
    verdict: Verdict, kernel: Kernel, rows: Floats, u: Floats, offset: Any, ends: Any, tol: float
) -> None:
    """`offset` must be between the ends, up to the tolerance and what float64 kernel values leave open."""
    low, high = min(ends), max(ends)
    rounding = _rescaling(kernel, rows, u, centred=False)[1] * 4 + 1e-12 * abs(float(offset))
    off = max(low - offset, offset - high, LD(0))
    if np.isfinite(off) and off > tol * (1 + 1e-3) + rounding + verdict.slack:
        verdict.faults.append(
            f"the intercept is {float(off):.6g} outside of [{float(-high):.6g}, {float(-low):.6g}] "
            f"({verdict.name}, tol {tol:g}, allowance {rounding:.2g})"
        )


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
    ends = _ends(g, np.where(positive, True, up), np.where(positive, up, True))
    size = np.abs(alpha).sum() + (2 * abs(primal) / margin if margin > 0 else LD(0))
    if not np.isfinite(primal):
        verdict = Verdict(name, np.inf, float(dual), np.inf, np.nan, 0.0, 0.0, faults=faults)
        verdict.violation = float(_violation([ends]))
        verdict.slack = 2 * e.h_error + 1e-12
        return verdict
    return _finish(name, primal, dual, _violation([ends]), e, size, faults)


def nu_svc(
    model: Any, name: str, kernel: Kernel, rows: Floats, sign: Floats, u: Floats, weight: Floats, b: float
) -> Verdict:
    """½|c₊ - c₋|² over reduced hulls: Σ v = 1 in each class, v ≤ 2 weight / (nu Σ weight)."""
    faults: list[str] = []
    half = 0.5 * model.nu * float(weight.sum())
    exact = Coefficients(u)
    positive = sign > 0
    up, down = exact.total(positive), -exact.total(~positive)
    _sums(faults, float(up - down), 0.0, float(up + down), name)
    mu = weight / half
    alpha = sign * exact.long()
    if not (up > 0 and down > 0):
        return Verdict(name, np.nan, np.nan, np.nan, np.nan, 0.0, 0.0, faults=[*faults, "no coefficients"])
    _in_box(faults, np.where(positive, alpha / up, alpha / down), mu, name)
    at = _mover(rows, kernel, np.where(positive, 0.0, u), mu * float(down))
    exact.match(at, ~positive, positive)
    e = expansion(kernel, rows, exact)
    total = exact.total(positive)
    g = sign * e.h / total  # of the hulls
    v = sign * exact.long() / total
    least = fill(g[positive], mu[positive]) + fill(g[~positive], mu[~positive])
    square = e.quad / total**2
    near = 1e-12 * mu
    ends = [_ends(g[of], (v < mu - near)[of], (v > near)[of]) for of in (positive, ~positive)]
    scale = min(half, 1.0 / float(np.median(mu)))
    extra = _rescaling(kernel, rows, np.asarray(u / float(total)))
    e = e._replace(h=e.h / total, h_error=e.h_error / float(total), quad_error=e.quad_error / float(total**2))
    # f(u) - min f <= square - least; in the words of a primal and a dual value: ½ square and the rest.
    verdict = _finish(name, square / 2, least - square / 2, scale * _violation(ends), e, 4.0, faults, extra)
    verdict.slack *= scale
    return verdict


def _incremental(model: Any, kernel: Kernel, rows: Floats, y: Any, weight: Floats) -> Verdict:
    u = np.zeros(len(rows))
    u[model.support_] = dense_coef(model)[0]
    sign = np.where(np.asarray(y) == model.classes_[-1], 1.0, -1.0)
    kept = weight > 0
    return svc(
        model, "all", kernel, rows[kept], sign[kept], u[kept], model.C * weight[kept], float(model.intercept_[0])
    )


# -- regression --------------------------------------------------------------------------------------


def _beta(model: Any, n: int, weight: Floats) -> tuple[Floats, Any]:
    beta = np.zeros(n)
    beta[model.support_] = dense_coef(model)[0]
    return beta, weight > 0


def _regression(
    model: Any, kernel: Kernel, rows: Floats, y: Any, weight: Floats, squared: bool
) -> tuple[Any, ...]:
    beta, kept = _beta(model, len(rows), weight)
    part = kernel if kernel.matrix is None else kernel._replace(matrix=kernel.matrix[np.ix_(kept, kept)])
    rows, beta = rows[kept], beta[kept]
    target = np.asarray(y, dtype=np.float64)[kept].astype(LD)
    C = model.C * weight[kept]
    faults: list[str] = []
    _in_box(faults, np.abs(beta), np.full(len(beta), np.inf) if squared else C, "all")
    exact = Coefficients(beta)
    size = float(np.abs(beta).sum())
    if hasattr(model, "nu"):  # differences of multipliers that add up to as much
        size = max(size, model.nu * float(C.sum()))
    _sums(faults, float(exact.total(slice(None))), 0.0, size, "all")
    upper = np.full(len(beta), np.inf) if squared else C
    exact.move(_mover(rows, part, beta, upper), slice(None), 0.0)
    return part, rows, beta, target, C.astype(LD), faults, exact, expansion(part, rows, exact)


def _svr(model: Any, kernel: Kernel, rows: Floats, y: Any, weight: Floats) -> Verdict:
    """½|w|² + Σ C ξ (or ξ²), ξ = max(0, |y - f| - ε); the dual Σ y β - ε Σ|β| - ½|w|² (- Σ β²/(4C))."""
    hard = bool(np.isinf(model.C))
    squared = getattr(model, "loss", "") == "squared_epsilon_insensitive" and not hard
    part, rows, beta, target, C, faults, exact, e = _regression(
        model, kernel, rows, y, weight, squared or hard
    )
    b = exact.long()
    eps = LD(model.epsilon)
    rest = target - e.h
    dual = np.sum(target * b) - eps * np.abs(b).sum() - e.quad / 2
    if hard:
        # The documented gap: that of the machine whose tube holds the largest residual.
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
    verdict = _finish("all", primal, dual, _violation([(least, most)]), e, size, faults)
    # Residuals are differences of targets, which may be large.
    verdict.slack += 1e-12 * float(np.abs(target).max(initial=LD(0)))
    if getattr(model, "status_", "") == "solved":
        offset = -(float(model.intercept_[0]) + e.reference)
        _intercept(verdict, part, rows, beta, offset, (least, most), model.tol)
    return verdict


def _nu_svr(model: Any, kernel: Kernel, rows: Floats, y: Any, weight: Floats) -> Verdict:
    """½|w|² + nu Σ C ε + Σ C ξ over b and ε; the dual Σ y β - ½|w|², Σ α = Σ α* = nu Σ C / 2."""
    part, rows, beta, target, C, faults, exact, e = _regression(model, kernel, rows, y, weight, False)
    b = exact.long()
    half = LD(model.nu) * C.sum() / 2
    above = np.maximum(b, 0).sum()
    if above > half * (1 + LD(1e-9)):
        faults.append(f"the positive coefficients add up to {float(above):.10g}, above {float(half):.10g}")
    rest = target - e.h
    # With t = b ± ε the problem falls into two: Σ C max(0, rest - t) + half t, and its mirror image.
    loss = nearest_zero(rest, C, half) + nearest_zero(-rest, C, half)
    primal, dual = e.quad / 2 + loss, np.sum(target * b) - e.quad / 2
    violation = LD(np.nan)
    if above > half * (1 - LD(1e-9)):  # otherwise which α and α* were meant is not known
        g, near = e.h - target, 1e-12 * C
        ends = [_ends(g, b < C - near, b > near), _ends(g, b < -near, b > near - C)]
        violation = _violation(ends)
    size = np.abs(b).sum() + 2 * C.sum()
    verdict = _finish("all", primal, dual, violation, e, size, faults)
    verdict.slack += 1e-12 * float(np.abs(target).max(initial=LD(0)))
    return verdict


# -- one class ---------------------------------------------------------------------------------------


def _one_class(model: Any, kernel: Kernel, rows: Floats, y: Any, weight: Floats) -> Verdict:
    """½ α'Kα with Σ α = nu Σ weight, α ≤ weight: LIBSVM's scaling."""
    alpha, kept = _beta(model, len(rows), weight)
    part = kernel if kernel.matrix is None else kernel._replace(matrix=kernel.matrix[np.ix_(kept, kept)])
    rows, alpha, top = rows[kept], alpha[kept], weight[kept]
    total = model.nu * float(top.sum())
    faults: list[str] = []
    _in_box(faults, alpha, top, "all")
    exact = Coefficients(alpha)
    _sums(faults, float(exact.total(slice(None))), total, total, "all")
    exact.move(_mover(rows, part, alpha, top), slice(None), total)
    e = expansion(part, rows, exact, bias=False)
    a = exact.long()
    least = fill(e.h, top / total) * LD(total)
    near = 1e-12 * top
    ends = _ends(e.h, a < top - near, a > near)
    extra = _rescaling(part, rows, alpha)
    return _finish(
        "all", e.quad / 2, least - e.quad / 2, _violation([ends]), e, 2 * total, faults, extra
    )  # fmt: skip


def _one_class_l2(model: Any, kernel: Kernel, rows: Floats, y: Any, weight: Floats) -> Verdict:
    """½|w|² + ½ Σ C ξ² without a bias; the dual Σ α - ½|w|² - Σ α²/(2C)."""
    alpha, kept = _beta(model, len(rows), weight)
    part = kernel if kernel.matrix is None else kernel._replace(matrix=kernel.matrix[np.ix_(kept, kept)])
    rows, alpha = rows[kept], alpha[kept]
    C = (model.C * weight[kept]).astype(LD)
    faults: list[str] = []
    _in_box(faults, alpha, np.full(len(alpha), np.inf), "all")
    exact = Coefficients(alpha)
    e = expansion(part, rows, exact, bias=False)
    a = exact.long()
    dual = a.sum() - e.quad / 2 - np.sum(a**2 / (2 * C))
    slack = np.maximum(0, 1 - e.h)
    primal = e.quad / 2 + np.sum(C * slack**2) / 2
    # Another valid bound: the value is 1/(2 rho) for the least norm rho of the hull with a ridge, and
    # rho - 2 (gap of the hull) bounds the best rho from below. The better of the two counts.
    total = a.sum()
    rho = (e.quad + np.sum(a**2 / C)) / total**2
    hull = _ridged_gap(e.h / total, a / total, 1 / C)
    low = rho - 2 * hull
    if low > 0:
        primal = min(primal, dual + hull / (rho * low))
    g = e.h + a / C
    ends = _ends(g, np.full(len(a), True), a > 1e-12 * a.max())
    extra = _rescaling(part, rows, alpha)
    size = 2 * total + np.sum(C * slack)
    return _finish("all", primal, dual, _violation([ends]), e, size, faults, extra)


def _ridged_gap(h: Long, u: Long, ridge: Long) -> np.longdouble:
    """The largest h'(u - v) + ½ Σ r (u² - v²) over v ≥ 0, Σ v = 1: v = max(0, t - h) / r."""
    order = np.argsort(h)
    s, inverse = h[order], 1 / ridge[order]
    weight, moment = np.cumsum(inverse), np.cumsum(inverse * s)
    level = (1 + moment) / weight
    ends = np.append(s[1:], LD(np.inf))
    t = level[np.argmax(level <= ends)]
    v = np.maximum(0, t - h) / ridge
    return np.sum(h * (u - v)) + np.sum(ridge * (u**2 - v**2)) / 2


# -- all classes at once -----------------------------------------------------------------------------


def _all_distances(model: Any, kernel: Kernel, rows: Floats, y: Any, weight: Floats) -> Verdict:
    """½ Σ u a k u with a = K - 1 within a class and -1 between classes, Σ u = 1 in each, u ≤ mu weight."""
    u, kept = _beta(model, len(rows), weight)
    part = kernel if kernel.matrix is None else kernel._replace(matrix=kernel.matrix[np.ix_(kept, kept)])
    rows, u = rows[kept], u[kept]
    label = np.searchsorted(model.classes_, np.asarray(y)[kept])
    k = len(model.classes_)
    mu = np.minimum(model.mu_ * weight[kept], 1.0)
    faults: list[str] = []
    size = np.bincount(label, weights=weight[kept])
    want = 1.0 / (model.nu * size.min()) if model.mu is None else model.mu
    if abs(model.mu_ - want) > 1e-12 * want:
        faults.append(f"mu_ is {model.mu_!r} instead of {want!r}")
    _in_box(faults, u, mu, "all")
    h, quad, errors, quad_error, worst = [], [], [], LD(0), 0.0
    exacts = []
    for r in range(k):
        own = np.where(label == r, u, 0.0)
        exact = Coefficients(own)
        _sums(faults, float(exact.total(slice(None))), 1.0, 1.0, f"class {r}")
        exact.move(_mover(rows, part, own, mu), slice(None), 1.0)
        exacts.append(exact)
    # The centre c_r - c: expanded with exact weights K u_r - Σ u_s, whose sum is zero, times 1 / K.
    shift = max(e.shift for e in exacts)
    columns = [np.array([n << (shift - e.shift) for n in e.integers], dtype=object) for e in exacts]
    every = sum(columns[1:], columns[0])
    v, value = np.zeros(len(u), dtype=LD), LD(0)
    for r in range(k):
        one = Coefficients(np.zeros(len(u)))
        one.integers, one.shift = columns[r] * k - every, shift
        e = expansion(part, rows, one)
        own = label == r
        mine = exacts[r].long()
        v = v + mine
        h.append(e.h)
        # K <w_r, c_r>, less the constant that was taken off every value
        quad.append(np.sum(mine * e.h))
        errors.append(e.h_error)
        quad_error += e.h_error
        worst = max(worst, float(np.max(np.abs(e.h[own]))))
        value += e.quad / (2 * k)  # f = Σ |K c_r - Σ c|² / (2 K)
    scale = 1.0 / float(np.median(mu))
    ends, gap = [], LD(0)
    for r in range(k):
        own = label == r
        g, near = h[r][own], 1e-12 * mu[own]
        gap += quad[r] - fill(g, mu[own])
        ends.append(_ends(g, v[own] < mu[own] - near, v[own] > near))
    # Hulls that meet have the value 0: what is rounding can be told by the kernel values only.
    rounding = _rescaling(part, rows, u)
    error = 4 * float(quad_error) + 1e-12 * (abs(float(value)) + float(gap)) + k * rounding[0]
    slack = scale * (2 * max(errors) + 1e-12 * worst + 1e-13 + k * rounding[1])
    return Verdict(
        "all", float(value), float(value - gap), float(gap), scale * float(_violation(ends)), error, slack,
        faults=faults,
    )  # fmt: skip


def _crammer_singer(model: Any, kernel: Kernel, rows: Floats, y: Any, weight: Floats) -> Verdict:
    """½ Σ |w_r|² + Σ C ξ; the dual Σ τ_{i,y_i} - ½ Σ_r τ_r'Kτ_r, Σ_r τ_ir = 0, τ ≤ C at y_i, ≤ 0 elsewhere."""
    kept = weight > 0
    part = kernel if kernel.matrix is None else kernel._replace(matrix=kernel.matrix[np.ix_(kept, kept)])
    k = len(model.classes_)
    tau = np.zeros((k, len(weight)))
    tau[:, model.support_] = dense_coef(model)
    rows, tau = rows[kept], tau[:, kept]
    label = np.searchsorted(model.classes_, np.asarray(y)[kept])
    n = len(label)
    C = model.C * weight[kept]
    own = np.arange(k)[:, None] == label
    faults: list[str] = []
    _in_box(faults, np.where(own, tau, 0.0).sum(axis=0), C, "all")
    if (np.where(own, 0.0, tau) > 1e-12 * C).any():
        faults.append("coefficients of the wrong sign (all)")
    off = np.abs(tau.sum(axis=0)) > 1e-9 * np.maximum(np.abs(tau).sum(axis=0), 1e-6 * C)
    if off.any():
        faults.append(f"the coefficients of {int(off.sum())} samples do not add up to zero")
    exact = Coefficients(tau)
    flat = exact.integers
    flat[label, np.arange(n)] -= flat.sum(axis=0)  # the rest goes to the own class
    g = np.empty((k, n), dtype=LD)
    dual, quads, error, size = LD(0), LD(0), 0.0, LD(0)
    t = np.empty((k, n), dtype=LD)
    for r in range(k):
        one = Coefficients(np.zeros(n))
        one.integers, one.shift = flat[r], exact.shift
        e = expansion(part, rows, one, bias=False)
        t[r] = one.long()
        g[r] = e.h
        quads += e.quad
        error = max(error, e.h_error)
        size += np.abs(t[r]).sum()
        dual += t[r][label == r].sum()
    dual -= quads / 2
    c = C.astype(LD)
    mine = g[label, np.arange(n)]
    rival = np.where(own, -LD(np.inf), g).max(axis=0)
    primal = quads / 2 + np.sum(c * np.maximum(0, 1 + rival - mine))
    g = g - own
    near = 1e-12 * c
    rises = np.where(own, t < c - near, t < -near)
    violation = np.max(np.max(g, axis=0) - np.min(np.where(rises, g, LD(np.inf)), axis=0), initial=LD(0))
    e = Expansion(g.ravel(), LD(0), quads, error, error * float(size))
    return _finish("all", primal, dual, violation, e, size + 2 * c.sum(), faults)
