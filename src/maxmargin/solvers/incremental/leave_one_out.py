"""Leave-one-out values: the decision value of each row without it (formulas: see the package)."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.linalg

from maxmargin._compiled.jit import compiled
from maxmargin._types import Floats, Index
from maxmargin.solvers import costs
from maxmargin.solvers.incremental.checked import CheckedMargins


def leave_one_out(svm: CheckedMargins) -> Floats:
    """The value of each held row by a model trained without it."""
    held = svm.held
    y = svm.y[held]
    values = svm.g[held] + svm.p[held] - svm.ridge[held] * svm.u[held] - svm.level
    if svm.epsilon is not None and len(held) == 1:
        raise ValueError("Leaving one row out needs at least two rows: learn more of them.")
    support = np.flatnonzero((svm.u[held] != 0) | svm.limits_level()[held])
    if svm.epsilon is None:
        alone = np.array([np.count_nonzero(y == y[k]) == 1 for k in support], dtype=bool)
        values[support[alone]] = -y[support[alone]]  # the other class alone is left
        support = support[~alone]
    if not len(support):
        return values
    one_sided = svm.epsilon is None and not svm.boxed
    if one_sided and svm.active.size and 8 * 2 * len(held) ** 2 <= svm.samples.most_bytes:
        values[support] = _all_at_once(svm, held, support)
    else:
        for k in support:
            values[k] = _without(svm, int(held[k]))
    return values


def _all_at_once(svm: CheckedMargins, held: Index, out: Index) -> Floats:
    """The values of the rows ``held[out]`` from T."""
    member = np.isin(held, svm.active.members)
    S, N = np.flatnonzero(member), np.flatnonzero(~member)
    order = np.concatenate([S, N])
    T, q = _tableau(svm, held[S], held[N])
    sign = svm.y[held[order]]
    where = np.empty(len(held), np.intp)
    where[order] = np.arange(len(held))
    v, tol = np.empty(len(out)), float(np.median(svm.tol[held]))
    left = np.zeros(len(out), np.bool_)

    def run(start: int, stop: int) -> None:
        _leave_out(T, q, sign, len(S), where[out[start:stop]], tol, v[start:stop], left[start:stop])

    with svm.samples.threads:
        svm.samples.threads.run(run, svm.samples.threads.split(len(out), costs.LEFT_OUT_ROWS))
    values = svm.y[held[out]] - v
    for t in np.flatnonzero(left):
        values[t] = _without(svm, int(held[out[t]]))
    return values


def _tableau(svm: CheckedMargins, S: Index, N: Index) -> tuple[Floats, Floats]:
    """T and q for rows S then N."""
    s, n = len(S), len(S) + len(N)
    T = np.empty((n, n))
    H = svm.block(S, S)
    H[np.arange(s), np.arange(s)] += svm.ridge[S]
    H += svm.active.sigma  # changes nothing where the sum is kept, and makes H definite
    with svm.samples.threads.blas():
        factor = scipy.linalg.cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
        inverse = scipy.linalg.cho_solve(factor, np.eye(s), overwrite_b=True, check_finite=False)
        h = inverse.sum(axis=1)
        total = float(h.sum())
        T[:s, :s] = inverse - np.outer(h, h / total)
        B = svm.block(S, N)
        # e'u = 0 also for what enters: its multiplier is taken from S.
        T[:s, s:] = T[:s, :s] @ B + h[:, None] / total
        T[s:, :s] = -T[:s, s:].T
        level_of = h @ B / total
        V = svm.block(N, N)
        V[np.arange(n - s), np.arange(n - s)] += svm.ridge[N]
        constant = 1.0 / total - svm.active.sigma
        V -= B.T @ (T[:s, :s] @ B) + level_of[:, None] + level_of - constant
        T[s:, s:] = V
    q = np.concatenate([svm.u[S], svm.level - svm.g[N]])
    return T, q


def _without(svm: CheckedMargins, k: int) -> float:
    """The value of one row: unlearn it, compute its value, and restore everything."""
    before, p = svm.snapshot(), float(svm.p[k])
    try:
        svm.remove(k)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            svm.make_exact()
        return float(svm.g[k] + p - svm.level)
    finally:
        svm.restore(before)


@compiled()
def _leave_out(T, q, sign, s, rows, tol, out, left):
    """For each k of `rows` (positions in S): the value v_k when k has left; `left` marks those not found."""
    n = len(q)
    inside = np.zeros(n, np.bool_)
    y = np.empty(n)
    for t in range(len(rows)):
        k = rows[t]
        Z = np.empty(1, np.int64)
        Z[0] = k
        fewest, tries, found = n + 1, costs.LEFT_OUT_TRIES, False
        for _ in range(50 + 4 * n):
            small, v = np.empty((len(Z), len(Z))), np.empty(len(Z))
            for a in range(len(Z)):
                inside[Z[a]] = True
                v[a] = q[Z[a]]
                for b in range(len(Z)):
                    small[a, b] = T[Z[a], Z[b]]
            _eliminate(small, v)
            wrong, last = 0, -1
            for i in range(n):
                y[i] = q[i]
            for z in range(len(Z)):
                column = T[Z[z]]  # T is symmetric but for the sign between S and N
                flip = Z[z] < s
                for i in range(s):
                    y[i] -= (column[i] if flip else -column[i]) * v[z]
                for i in range(s, n):
                    y[i] -= (-column[i] if flip else column[i]) * v[z]
            for z in range(len(Z)):
                y[Z[z]] = v[z]
            flips = np.zeros(n, np.bool_)
            for i in range(n):
                if i == k:
                    continue
                # A multiplier must have its row's sign, a slack (as level - gradient) the other.
                multiplier = (i < s) != inside[i]
                value = sign[i] * y[i]
                if (multiplier and value < -tol) or (not multiplier and value > tol):
                    flips[i] = True
                    wrong += 1
                    last = i
            if wrong == 0:
                found = True
            else:
                if wrong < fewest:
                    fewest, tries = wrong, costs.LEFT_OUT_TRIES
                elif tries > 0:
                    tries -= 1
                if tries == 0:
                    flips[:] = False
                    flips[last] = True
                count = 0
                for i in range(n):
                    count += inside[i] != flips[i]
                new, at = np.empty(count, np.int64), 0
                for i in range(n):
                    if inside[i] != flips[i]:
                        new[at] = i
                        at += 1
            for a in range(len(Z)):
                inside[Z[a]] = False
            if found:
                out[t] = y[k]
                break
            Z = new
        left[t] = not found


@compiled()
def _eliminate(A, b):
    """``b = A^-1 b`` in place, with row pivoting; `numpy.linalg.solve` takes many seconds to compile."""
    n = len(b)
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[p, k]):
                p = i
        if p != k:
            b[k], b[p] = b[p], b[k]
            for j in range(k, n):
                A[k, j], A[p, j] = A[p, j], A[k, j]
        for i in range(k + 1, n):
            factor = A[i, k] / A[k, k]
            if factor != 0.0:
                b[i] -= factor * b[k]
                for j in range(k + 1, n):
                    A[i, j] -= factor * A[k, j]
    for k in range(n - 1, -1, -1):
        total = b[k]
        for j in range(k + 1, n):
            total -= A[k, j] * b[j]
        b[k] = total / A[k, k]
