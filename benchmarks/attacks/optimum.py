"""The part "optimum": an independent solver must not find a better value than the certificate admits."""

from __future__ import annotations

from typing import Any

import numpy as np

import maxmargin
from attacks.exact import dense
from attacks.fits import check
from attacks.judge import judge, kernel_of
from attacks.outcome import Outcome, generator, recorded, refused
from attacks.problems import SOLVERS, labels, points

KINDS = ("SVC", "SVC squared", "NuSVC", "SVR", "SVR squared", "NuSVR", "OneClassSVM", "L2OneClassSVM",
         "AllDistancesSVC", "CrammerSingerSVC")  # fmt: skip


def run(seed: int) -> Outcome:
    """One small problem without difficulties, solved twice."""
    rng = generator("optimum", seed)
    kind = str(rng.choice(KINDS))
    name, _, variant = kind.partition(" ")
    n, d = int(rng.integers(6, 30)), int(rng.integers(1, 4))
    k = 2 if name in ("SVC", "NuSVC") else 3
    X = points(rng, n, d)
    y: Any = labels(rng, X, k, 0.2)
    if "SVR" in kind:
        y = np.sin(X).sum(axis=1) + 0.3 * rng.normal(size=n)
    options: dict[str, Any] = {
        "kernel": str(rng.choice(["rbf", "linear", "poly", "laplacian"])),
        "gamma": float(10 ** rng.uniform(-1, 0.5)), "coef0": 1.0, "degree": 2,
        "tol": float(rng.choice([1e-2, 1e-4, 1e-8])), "solver": str(rng.choice(SOLVERS[kind])),
    }  # fmt: skip
    if "C" in getattr(maxmargin, name)().get_params():
        options["C"] = float(10 ** rng.uniform(-1, 2))
    if variant == "squared":
        options["loss"] = "squared_hinge" if name == "SVC" else "squared_epsilon_insensitive"
    if name in ("NuSVC", "NuSVR", "OneClassSVM", "AllDistancesSVC"):
        options["nu"] = float(rng.choice([0.1, 0.3, 0.5]))
    if options["solver"] not in ("auto", "batch"):
        options["max_iter"] = 50_000
    model = getattr(maxmargin, name)(**options)
    outcome = Outcome(kind, f"{model!r} n={n} d={d}")
    with recorded(outcome):
        try:
            model.fit(X, y)
        except ValueError as error:
            refused(outcome, error)
            return outcome
    outcome.answer = model.status_
    check(outcome, model, X, y, None, None)
    own = judge(model, X, y)[0]
    rival = _rival(model, X, y)
    if rival is None or not np.isfinite(own.claimed):
        return outcome
    outcome.checks += 1
    best, above = rival
    close = 1e-6 * (1 + abs(best))
    # Of hulls the judge calls f(u) the primal value, and its negative is what is maximised here.
    value = -own.primal if name in ("NuSVC", "OneClassSVM", "AllDistancesSVC") else own.dual
    if best - value > own.claimed + close:
        outcome.faults.append(
            f"another solver's value is {best:.10g}, ours {value:.10g}, claimed gap {own.claimed:.3g}"
        )
    if value - above > close:
        outcome.faults.append(f"our value {value:.10g} is above the optimum, at most {above:.10g}")
    return outcome


def _rival(model: Any, X: Any, y: Any) -> tuple[float, float] | None:
    """Bounds of the optimal dual value by clarabel, from kernel values in long double.

    It may end with a gap of its own, so there are two: the value of its point, and the bound that its
    certificate gives. None where it found neither.
    """
    name = type(model).__name__
    K = dense(kernel_of(model, X, None, np.ones(len(X))), X)
    n = len(X)
    if name == "SVC":
        sign = np.where(y == model.classes_[1], 1.0, -1.0)
        squared = model.loss == "squared_hinge"
        Q = sign[:, None] * sign * K + (np.eye(n) / (2 * model.C) if squared else 0.0)
        top = np.full(n, np.inf) if squared else np.full(n, model.C)
        return _solve(Q, np.ones(n), np.zeros(n), top, sign[None], [0.0])
    if name == "SVR":
        squared = model.loss == "squared_epsilon_insensitive"
        both = np.block([[K, -K], [-K, K]]) + (np.eye(2 * n) / (2 * model.C) if squared else 0.0)
        top = np.full(2 * n, np.inf if squared else model.C)
        p = np.concatenate([y - model.epsilon, -y - model.epsilon])
        return _solve(both, p, np.zeros(2 * n), top, np.repeat([1.0, -1.0], n)[None], [0.0])
    if name == "NuSVR":
        both = np.block([[K, -K], [-K, K]])
        E = np.kron(np.eye(2), np.ones(n))
        half = model.nu * n * model.C / 2
        return _solve(
            both, np.concatenate([y, -y]), np.zeros(2 * n), np.full(2 * n, model.C), E, [half, half]
        )
    if name == "NuSVC":
        sign = np.where(y == model.classes_[1], 1.0, -1.0)
        E = np.stack([sign > 0, sign < 0]).astype(float)
        top = np.full(n, 2 / (model.nu * n))
        value = _solve(sign[:, None] * sign * K, np.zeros(n), np.zeros(n), top, E, [1.0, 1.0])
    elif name == "OneClassSVM":
        value = _solve(K, np.zeros(n), np.zeros(n), np.ones(n), np.ones((1, n)), [model.nu * n])
    elif name == "L2OneClassSVM":
        return _solve(K + np.eye(n) / model.C, np.ones(n), np.zeros(n), np.full(n, np.inf), None, [])
    elif name == "AllDistancesSVC":
        k = len(model.classes_)
        label = np.searchsorted(model.classes_, y)
        same = label[:, None] == label
        E = (np.arange(k)[:, None] == label).astype(float)
        top = np.full(n, min(model.mu_, 1.0))
        value = _solve(np.where(same, k - 1.0, -1.0) * K, np.zeros(n), np.zeros(n), top, E, np.ones(k))
    else:
        k = len(model.classes_)
        own = (np.arange(k)[:, None] == np.searchsorted(model.classes_, y)).astype(float)
        E = np.kron(np.ones(k), np.eye(n))
        return _solve(
            np.kron(np.eye(k), K), own.ravel(), np.full(n * k, -np.inf), model.C * own.ravel(), E, np.zeros(n)
        )
    return value


def _solve(Q: Any, p: Any, lo: Any, hi: Any, E: Any, s: Any) -> tuple[float, float] | None:
    """Bounds of the largest p'u - u'Qu/2 with lo <= u <= hi and E u = s: below, above."""
    import clarabel  # type: ignore[import-untyped]
    import scipy.sparse as sp

    m = len(p)
    eye = sp.eye_array(m, format="csr")
    below, above = np.isfinite(hi), np.isfinite(lo)
    parts = [eye[below], -eye[above]]
    b = [hi[below], -lo[above]]
    cones = [clarabel.NonnegativeConeT(int(below.sum() + above.sum()))]
    if E is not None:
        parts, b, cones = [sp.csr_array(E), *parts], [np.asarray(s), *b], [clarabel.ZeroConeT(len(s)), *cones]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    A = sp.csc_matrix(sp.vstack(parts))
    found = clarabel.DefaultSolver(
        sp.csc_matrix(np.triu(Q)), -p, A, np.concatenate(b), cones, settings
    ).solve()
    if "Solved" not in str(found.status):
        return None
    return -float(found.obj_val), -float(found.obj_val_dual)
