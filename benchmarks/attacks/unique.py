"""The part "unique": the same problem in another form must give the same decision values.

Rows in another order, a warm start, and whole weights in place of repeated rows. Two solutions with gaps g
and g' have |w - w'| <= sqrt(2 g) + sqrt(2 g'); what they may differ by in a decision value follows from
that and from `tol`. The bias has one documented value, so it must not jump either.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

import maxmargin
from attacks.exact import Kernel, dense
from attacks.outcome import Outcome, generator, recorded, refused
from attacks.problems import labels, points, spoil

KINDS = ("SVC", "SVC", "SVC balanced", "SVC squared", "NuSVC", "SVR", "NuSVR", "OneClassSVM",
         "AllDistancesSVC", "CrammerSingerSVC", "L2OneClassSVM")  # fmt: skip
TRICKS = ("permutation", "warm start", "weights")


def reach(model: Any, X: Any, gaps: float) -> float:
    """The largest difference of decision values that gaps and `tol` allow."""
    name = type(model).__name__
    kernel = Kernel(model.kernel, gamma_of(model), int(getattr(model, "degree", 3)), float(model.coef0))
    if model.kernel in ("rbf", "laplacian"):
        wide = np.sqrt(2.0)
    else:
        K = dense(kernel, np.asarray(X, dtype=np.float64))
        at = int(np.argmin(np.diag(K)))
        wide = float(np.sqrt(np.max(np.diag(K) - 2 * K[at] + K[at, at])))
        if name in ("CrammerSingerSVC", "L2OneClassSVM"):
            wide = float(np.sqrt(np.diag(K).max()))
    apart = 2 * np.sqrt(2 * max(gaps, 0.0)) * wide
    scale = 1.0
    if name == "NuSVC":  # decision values are divided by the margin of the hulls
        coef = np.abs(np.asarray(model.dual_coef_))
        scale = 0.5 * float(coef.sum(axis=1).max())
    rounding = 1e-9 * (1.0 + wide * float(np.abs(np.asarray(model.dual_coef_)).sum()))
    return float(4 * apart * scale + 6 * model.tol * (1 + wide) + rounding)


def gamma_of(model: Any) -> float:
    """The number used for gamma."""
    if not isinstance(model.gamma, str):
        return float(model.gamma)
    # scikit-learn's estimators and most of ours have the first.
    return float(model._gamma if hasattr(model, "_gamma") else model.get_model().kernel.gamma)


def values(model: Any, X: Any) -> Any:
    """Decision values, one column per decision function."""
    if hasattr(model, "epsilon") or type(model).__name__ == "NuSVR":
        return model.predict(X)[:, None]
    if type(model).__name__ in ("SVC", "NuSVC") and len(model.classes_) > 2:
        return model.set_params(decision_function_shape="ovo").decision_function(X)
    out = model.decision_function(X)
    return out[:, None] if out.ndim == 1 else out


def run(seed: int) -> Outcome:
    """One problem in two forms."""
    rng = generator("unique", seed)
    kind = str(rng.choice(KINDS))
    trick = str(rng.choice(TRICKS))
    difficulty = str(rng.choice(["plain", "duplicates", "opposite labels", "bootstrap", "rank deficient"]))
    n, d = int(rng.integers(12, 160)), int(rng.choice([1, 2, 4]))
    k = 2 if kind != "CrammerSingerSVC" and rng.random() < 0.7 else 3
    X = points(rng, n, d)
    y: Any = labels(rng, X, k, rng.choice([0.0, 0.1, 0.4]))
    X = spoil(rng, X, difficulty) if difficulty != "rank deficient" else np.hstack([X, X])
    if difficulty == "opposite labels":
        X[n // 2 : 2 * (n // 2)] = X[: n // 2]
        y[n // 2 : 2 * (n // 2)] = (y[: n // 2] + 1) % k
    model = _model(rng, kind)
    if "SVR" in kind:
        y = np.round(np.sin(X).sum(axis=1) + 0.3 * rng.normal(size=n), 2)
    outcome = Outcome(f"{trick}", f"{kind} {difficulty} n={n} k={k} {model!r}")
    new = np.vstack([X, 2 * rng.normal(size=(30, X.shape[1]))])
    with recorded(outcome):
        try:
            one, other = _two(rng, trick, model, X, y)
        except ValueError as error:
            refused(outcome, error)
            return outcome
        outcome.answer = "solved" if one.status_ == other.status_ == "solved" else "not solved"
        if outcome.answer == "solved" and meaningful(one) and meaningful(other):
            allowed = reach(one, new, float(np.max(one.dual_gap_) + np.max(other.dual_gap_)))
            a, b = values(one, new), values(other, new)
            outcome.checks = a.size
            worst = np.abs(a - b).max()
            if worst > allowed:
                swapped = int(((a > 0) != (b > 0)).any(axis=1).sum())
                offsets = [np.ravel(getattr(m, "intercept_", np.nan))[:3] for m in (one, other)]
                outcome.faults.append(
                    f"{trick}: decision values differ by {worst:.3g} (allowed {allowed:.3g}), {swapped} of "
                    f"{len(new)} labels; intercepts {offsets[0]} and {offsets[1]}, gaps "
                    f"{np.max(one.dual_gap_):.2g}, {np.max(other.dual_gap_):.2g}"
                )
    return outcome


def meaningful(model: Any) -> bool:
    """Not so where the hulls meet: w = 0, and nothing is determined."""
    gaps = np.ravel(getattr(model, "dual_gap_", 0.0))
    if not np.isfinite(gaps).all():
        return False
    if type(model).__name__ != "NuSVC":
        return True
    coef = np.abs(model.dual_coef_.toarray() if sp.issparse(model.dual_coef_) else model.dual_coef_)
    # The coefficients are divided by the margin, half the squared distance of the hulls; if that is next to
    # nothing they are large, or, if the library does not divide by nothing, they add up to 1 in each class.
    for a, b in combinations(range(len(model.classes_)), 2):
        ends = np.concatenate([[0], np.cumsum(model.n_support_)])
        total = float(coef[b - 1, ends[a] : ends[a + 1]].sum())
        if total > 1e4 or abs(total - 1.0) < 1e-6:
            return False
    return True


def _model(rng: Any, kind: str) -> Any:
    name, _, variant = kind.partition(" ")
    options: dict[str, Any] = {
        "kernel": str(rng.choice(["rbf", "rbf", "linear", "laplacian", "poly"])),
        "gamma": float(10 ** rng.uniform(-1.5, 0.5)),
        "tol": float(rng.choice([1e-6, 1e-8, 1e-9])),
    }
    if options["kernel"] == "poly":
        options |= {"degree": 2, "coef0": 1.0}
    C = float(10 ** rng.uniform(-3, 2))
    if variant == "balanced":
        C, options["class_weight"] = float(10 ** rng.uniform(-4, -1)), "balanced"
    if variant == "squared":
        options["loss"] = "squared_hinge"
    if name in ("SVC", "SVR", "NuSVR", "CrammerSingerSVC", "L2OneClassSVM"):
        options["C"] = C
    if name in ("NuSVC", "NuSVR", "OneClassSVM", "AllDistancesSVC"):
        options["nu"] = float(rng.choice([0.1, 0.3, 0.5]))
    return getattr(maxmargin, name)(**options)


def _fit(model: Any, X: Any, y: Any, weight: Any = None) -> Any:
    return model.fit(X, y, weight)


def _two(rng: Any, trick: str, model: Any, X: Any, y: Any) -> tuple[Any, Any]:
    n = len(X)
    if trick == "permutation":
        order = rng.permutation(n)
        return _fit(clone(model), X, y), _fit(clone(model), X[order], y[order])
    if trick == "warm start":
        warm = clone(model).set_params(warm_start=True)
        name = "C" if "C" in model.get_params() else "nu"
        end = getattr(model, name)
        warm.set_params(**{name: end * rng.choice([0.1, 0.5, 3.0]) if name == "C" else end * 0.7})
        _fit(warm, X, y)
        warm.set_params(**{name: end})
        return _fit(clone(model), X, y), _fit(warm, X, y)
    times = rng.integers(0, 4, size=n)
    times[: min(6, n)] = 1
    model = model if "class_weight" not in model.get_params() else clone(model).set_params(class_weight=None)
    rows = np.repeat(np.arange(n), times)
    return _fit(clone(model), X, y, times.astype(float)), _fit(clone(model), X[rows], y[rows])
