"""Is a fitted model what it claims to be? Objective, gap, KKT conditions and feasibility in long double.

The problems are those of the documentation. Everything is recomputed from public attributes and the training
data. A model is at fault if

- a coefficient leaves its box, or a sum is off, by more than 1e-9 (relative);
- a finite `dual_gap_` is less than the true gap, primal less dual value with the best bias;
- `status_` is "solved" and the KKT conditions are violated by more than `tol` (LIBSVM's measure);
- the intercept is outside of what the KKT conditions leave.

Coefficients are float64 numbers whose sums are exact to rounding only. A model is first judged with the
coefficients as they are. If something is wrong it is judged again with one coefficient changed by the rest of
the sum (some 1e-16 of it), so that constants of the kernel cancel; what is wrong in both ways is a fault.
Coefficients that an estimator reports in another scaling than it solved in are rounded once more; for these
the allowance has the term 4 eps |u|'|K||u|.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from attacks import judge_others, judge_pairs, judge_regression
from attacks.exact import LD, Kernel
from attacks.verdict import EPS64, Floats, Verdict, tolerance

KINDS: dict[str, Callable[..., Verdict]] = {
    "IncrementalSVC": judge_pairs.incremental,
    "IncrementalSVR": judge_regression.svr,
    "SVR": judge_regression.svr,
    "NuSVR": judge_regression.nu_svr,
    "OneClassSVM": judge_others.one_class,
    "L2OneClassSVM": judge_others.one_class_l2,
    "AllDistancesSVC": judge_others.all_distances,
    "CrammerSingerSVC": judge_others.crammer_singer,
}


def kernel_of(model: Any, X: Floats, matrix: Floats | None, weight: Floats, sparse: bool = False) -> Kernel:
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
        # scikit-learn's estimators have a private attribute for it.
        own = float(model.get_model().kernel.gamma if hasattr(model, "get_model") else model._gamma)
        # scikit-learn's variance of sparse data is a difference of means, which may cancel.
        lost = 16 * EPS64 * float(np.mean(used**2)) * X.shape[1] / (spread or 1.0) if sparse else 0.0
        if abs(own - want) > (1e-6 + lost) * max(own, want) and not hasattr(model, "gamma_"):
            raise AssertionError(f"gamma={gamma!r} is {want:.10g}, but the model uses {own:.10g}")
        gamma = own
    return Kernel(name, float(gamma), int(getattr(model, "degree", 3)), float(getattr(model, "coef0", 0.0)))


def dense_rows(X: Any) -> Floats:
    """The data as float64 rows."""
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def judge(model: Any, X: Any, y: Any, weight: Any = None, *, matrix: Floats | None = None) -> list[Verdict]:
    """Judge each problem of a fitted model. `matrix`: the kernel matrix, if precomputed or callable."""
    rows = dense_rows(X) if matrix is None else np.zeros((len(matrix), 1))
    n = len(rows)
    weight = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    kernel = kernel_of(model, rows, matrix, weight, sp.issparse(X))
    name = type(model).__name__
    found: list[list[Verdict]] = []
    for repaired in (False, True):
        if name in ("SVC", "NuSVC"):
            found.append(judge_pairs.pairs(model, kernel, rows, np.asarray(y), weight, repaired))
        else:
            found.append([KINDS[name](model, kernel, rows, y, weight, repaired)])
        _claims(model, found[-1])
        if not any(verdict.faults for verdict in found[-1]):
            return found[-1]
    return [min(both, key=_badness) for both in zip(*found, strict=True)]


def _badness(verdict: Verdict) -> tuple[int, float]:
    return len(verdict.faults), verdict.gap


def _claims(model: Any, verdicts: list[Verdict]) -> None:
    if not hasattr(model, "dual_gap_"):
        return  # a rival
    claims = np.ravel(model.dual_gap_)
    k = len(model.classes_) if type(model).__name__ in ("SVC", "NuSVC", "IncrementalSVC") else 2
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
        if verdict.gap < -verdict.error - 1e-9 * abs(verdict.primal) - verdict.lacking:
            verdict.faults.append(
                f"weak duality fails: primal {verdict.primal:.10g} < dual {verdict.dual:.10g} "
                "(the point is infeasible, the kernel indefinite, or the judge wrong)"
            )
        if model.status_ == "solved" and verdict.violation > tolerance(model) * (1 + 1e-3) + verdict.slack:
            verdict.faults.append(
                f"solved, but the KKT violation is {verdict.violation:.6g} (tol {tolerance(model):g}, "
                f"allowance {verdict.slack:.2g})"
            )
