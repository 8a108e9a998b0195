"""The true gap of the estimators for one class, and of those for all classes at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from attacks.exact import LD, Coefficients, Expansion, Kernel, expansion
from attacks.primal import fill
from attacks.verdict import (
    Floats,
    Verdict,
    dense_coef,
    ends_of,
    finish,
    in_box,
    interval,
    mover,
    rescaling,
    row_coef,
    sums,
    violation_of,
)


def one_class(model: Any, kernel: Kernel, rows: Floats, y: Any, weight: Floats, repaired: bool) -> Verdict:
    """½ α'Kα with Σ α = nu Σ weight, α ≤ weight: LIBSVM's scaling."""
    alpha, kept = row_coef(model, len(rows), weight)
    part = kernel if kernel.matrix is None else kernel._replace(matrix=kernel.matrix[np.ix_(kept, kept)])
    rows, alpha, top = rows[kept], alpha[kept], weight[kept]
    total = model.nu * float(top.sum())
    faults: list[str] = []
    in_box(faults, alpha, top, "all")
    exact = Coefficients(alpha)
    sums(faults, float(exact.total(slice(None))), total, total, "all")
    if repaired:
        exact.move(mover(rows, part, alpha, top), slice(None), total)
    e = expansion(part, rows, exact, bias=False)
    a = exact.long()
    least = fill(e.h, top / total) * LD(total)
    near = 1e-12 * top
    ends = ends_of(e.h, a < top - near, a > near)
    extra = rescaling(part, rows, alpha)
    verdict = finish(
        "all", e.quad / 2, least - e.quad / 2, violation_of([ends]), e, 2 * total, faults, extra
    )  # fmt: skip
    verdict.loose = interval([ends])
    return verdict


def one_class_l2(model: Any, kernel: Kernel, rows: Floats, y: Any, weight: Floats, repaired: bool) -> Verdict:
    """½|w|² + ½ Σ C ξ² without a bias; the dual Σ α - ½|w|² - Σ α²/(2C)."""
    alpha, kept = row_coef(model, len(rows), weight)
    part = kernel if kernel.matrix is None else kernel._replace(matrix=kernel.matrix[np.ix_(kept, kept)])
    rows, alpha = rows[kept], alpha[kept]
    C = (model.C * weight[kept]).astype(LD)
    faults: list[str] = []
    in_box(faults, alpha, np.full(len(alpha), np.inf), "all")
    exact = Coefficients(alpha)
    e = expansion(part, rows, exact, bias=False)
    a = exact.long()
    dual = a.sum() - e.quad / 2 - np.sum(a**2 / (2 * C))
    slack = np.maximum(0, 1 - e.h)
    primal = e.quad / 2 + np.sum(C * slack**2) / 2
    g = e.h + a / C
    ends = ends_of(g, np.full(len(a), True), a > 1e-12 * a.max())
    extra = rescaling(part, rows, alpha)
    size = 2 * a.sum() + np.sum(C * slack)
    return finish("all", primal, dual, violation_of([ends]), e, size, faults, extra)


def all_distances(
    model: Any, kernel: Kernel, rows: Floats, y: Any, weight: Floats, repaired: bool
) -> Verdict:
    """½ Σ u a k u with a = K - 1 within a class and -1 between classes, Σ u = 1 in each, u ≤ mu weight."""
    u, kept = row_coef(model, len(rows), weight)
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
    in_box(faults, u, mu, "all")
    h, quad, errors, quad_error, worst = [], [], [], LD(0), 0.0
    exacts = []
    for r in range(k):
        own = np.where(label == r, u, 0.0)
        exact = Coefficients(own)
        sums(faults, float(exact.total(slice(None))), 1.0, 1.0, f"class {r}")
        if repaired:
            exact.move(mover(rows, part, own, mu), slice(None), 1.0)
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
        ends.append(ends_of(g, v[own] < mu[own] - near, v[own] > near))
    # Hulls that meet have the value 0: only the kernel values show what is rounding.
    rounding = rescaling(part, rows, u)
    error = 4 * float(quad_error) + 1e-12 * (abs(float(value)) + float(gap)) + k * rounding[0]
    slack = scale * (2 * max(errors) + 1e-12 * worst + 1e-13 + k * rounding[1])
    return Verdict(
        "all", float(value), float(value - gap), float(gap), scale * float(violation_of(ends)), error, slack,
        faults=faults,
    )  # fmt: skip


def crammer_singer(
    model: Any, kernel: Kernel, rows: Floats, y: Any, weight: Floats, repaired: bool
) -> Verdict:
    """½ Σ |w_r|² + Σ C ξ; the dual Σ τ_{i,y_i} - ½ Σ_r τ_r'Kτ_r, Σ_r τ_ir = 0, τ ≤ C at y_i, else ≤ 0."""
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
    in_box(faults, np.where(own, tau, 0.0).sum(axis=0), C, "all")
    if (np.where(own, 0.0, tau) > 1e-12 * C).any():
        faults.append("coefficients of the wrong sign (all)")
    off = np.abs(tau.sum(axis=0)) > 1e-9 * np.maximum(np.abs(tau).sum(axis=0), 1e-4 * C)
    if off.any():
        faults.append(f"the coefficients of {int(off.sum())} samples do not add up to zero")
    exact = Coefficients(tau)
    flat = exact.integers
    if repaired:
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
    # The certificate may be that of a longer w: none is better than the best one.
    short = mine - rival
    longer = np.concatenate([[0.0], 1e-6 * 2.0 ** np.arange(0, 20, 0.25)]).astype(LD)
    values = [s * s * quads / 2 + np.sum(c * np.maximum(0, 1 - s * short)) for s in 1 + longer]
    primal = np.min(values)
    g = g - own
    near = 1e-12 * c
    rises = np.where(own, t < c - near, t < -near)
    violation = np.max(np.max(g, axis=0) - np.min(np.where(rises, g, LD(np.inf)), axis=0), initial=LD(0))
    e = Expansion(g.ravel(), LD(0), quads, error, error * float(size))
    return finish("all", primal, dual, violation, e, size + 2 * c.sum(), faults)
