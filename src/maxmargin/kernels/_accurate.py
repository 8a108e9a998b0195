"""Sums of kernel values for certificates, accurate where float64 cancels.

Inner products and sums are kept as unevaluated pairs of float64 numbers (double-double, about 32 digits);
distances are summed from differences, which do not cancel. Ten times slower than
`maxmargin.kernels.expansion.expand`, and used only where float64 is not enough according to the bound of
`maxmargin.kernels.rounding`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin._compiled.jit import compiled
from maxmargin._compiled.limits import slices
from maxmargin._types import Floats, Index
from maxmargin.kernels._columns import occurring, renumbered
from maxmargin.kernels._form import KINDS, LAPLACIAN, RBF, SIGMOID
from maxmargin.kernels.features import Features
from maxmargin.kernels.layout import canonical_csr
from maxmargin.kernels.panels import Lines

# Multiplications and additions in the time of which a product is added in pairs of numbers.
_PAIR_COST = 40.0


def sums(kernel: Any, X: Any, rows: Index, columns: Index, coef: Floats, factor: Floats) -> Floats:
    """``k(X[rows], X[columns]) @ (coef * factor)``, for the named kernels of features."""
    if kernel.name == "linear":
        return linear_sums(Features(_float64(X)), rows, columns, coef, factor)
    A, B = (Lines.of(_float64(X[index])) for index in (rows, columns))
    coef, factor = (np.ascontiguousarray(c, dtype=np.float64) for c in (coef, factor))
    gamma, coef0, degree = float(kernel.gamma), float(kernel.coef0), int(kernel.degree)  # compiled once
    return np.asarray(_pair_sums(KINDS[kernel.name], A, B, coef, factor, gamma, coef0, degree))


def linear_sums(features: Features, rows: Index, columns: Index, coef: Floats, factor: Floats) -> Floats:
    """The same for the linear kernel: <x_i, w> with w = sum_j coef_j factor_j x_j in pairs of numbers.

    The samples are read where they are, in slices (`maxmargin._compiled.limits`): copies of millions of
    entries would take as long, between two looks at the time.
    """
    coef, factor = (np.ascontiguousarray(c, dtype=np.float64) for c in (coef, factor))
    lines, cost = features.lines, _PAIR_COST * features.width
    high, low, out = np.zeros(features.d), np.zeros(features.d), np.empty(len(rows))
    for start, stop in slices(len(columns), cost):
        _add_weights(lines, columns[start:stop], coef[start:stop], factor[start:stop], high, low)
    for start, stop in slices(len(rows), cost):
        _values_of_weights(lines, rows[start:stop], high, low, out[start:stop])
    return out


def combination(coef: Floats, X: Any) -> Any:
    """``coef @ X`` with twice the digits of float64, as one row, sparse where X is."""
    sparse = not isinstance(X, np.ndarray)
    columns = occurring(X) if sparse else None
    features = Features(renumbered(_float64(X), columns) if sparse else _float64(X))
    high, low = np.zeros(features.d), np.zeros(features.d)
    ones = np.ones(len(coef))
    _add_weights(features.lines, np.arange(len(coef)), np.asarray(coef, dtype=np.float64), ones, high, low)
    total = high + low
    if not sparse:
        return total
    there = np.flatnonzero(total)
    at = there if columns is None else columns[there]
    return sp.csr_array((total[there], at, [0, len(there)]), shape=(1, X.shape[1]))


def squared_distances(A: Any, B: Any) -> Floats:
    """Squared distances of the rows of two matrices, from differences."""
    out = np.empty((A.shape[0], B.shape[0]))
    _distances(Lines.of(_float64(A)), Lines.of(_float64(B)), out)
    return out


def weighted_sums(K: Any, coef: Floats, factor: Floats) -> Floats:
    """``K @ (coef * factor)`` for given values."""
    K, coef, factor = (np.ascontiguousarray(part, dtype=np.float64) for part in (K, coef, factor))
    return np.asarray(_matrix_sums(K, coef, factor))


def _float64(X: Any) -> Any:
    if isinstance(X, np.ndarray):
        return np.ascontiguousarray(X, dtype=np.float64)
    return canonical_csr(X, np.dtype(np.float64))


# -- pairs of numbers --------------------------------------------------------------------------


@compiled()
def _two_sum(a, b):
    """A + b and its rounding error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@compiled()
def _two_product(a, b):
    """A b and its rounding error (Dekker, Veltkamp)."""
    p = a * b
    if not abs(p) < 1e290 or abs(a) > 1e290 or abs(b) > 1e290:
        return p, 0.0
    c = 134217729.0 * a
    a1 = c - (c - a)
    a2 = a - a1
    c = 134217729.0 * b
    b1 = c - (c - b)
    b2 = b - b1
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


@compiled()
def _plus(x, y, a, b):
    """(x + y) + (a + b)."""
    s, e = _two_sum(x, a)
    return _two_sum(s, e + y + b)


@compiled()
def _times(x, y, a, b):
    """(x + y) (a + b)."""
    p, e = _two_product(x, a)
    return _two_sum(p, e + x * b + y * a)


# -- kernel values -----------------------------------------------------------------------------


@compiled()
def _pair(kind, A, i, B, j):
    """The product (two numbers), squared distance or 1-norm distance of row i of A and row j of B."""
    a, a_end, b, b_end = A.indptr[i], A.indptr[i + 1], B.indptr[j], B.indptr[j + 1]
    a_start, b_start = a, b
    x, y = 0.0, 0.0
    while a < a_end or b < b_end:
        f = A.indices[a - a_start if A.dense else a] if a < a_end else np.int64(2**62)
        h = B.indices[b - b_start if B.dense else b] if b < b_end else np.int64(2**62)
        v = A.data[a] if f <= h else 0.0
        w = B.data[b] if h <= f else 0.0
        a += f <= h
        b += h <= f
        if kind == RBF:
            x += (v - w) * (v - w)
        elif kind == LAPLACIAN:
            x += abs(v - w)
        elif f == h:
            p, e = _two_product(v, w)
            x, y = _plus(x, y, p, e)
    return x, y


@compiled()
def _value(kind, A, i, B, j, gamma, coef0, degree):
    """One kernel value as two numbers."""
    x, y = _pair(kind, A, i, B, j)
    if kind >= RBF:
        return np.exp(-gamma * x), 0.0
    x, y = _times(x, y, gamma, 0.0)
    x, y = _plus(x, y, coef0, 0.0)
    if kind == SIGMOID:
        t = np.tanh(x)
        return t, y * (1.0 - t * t)
    p, q = 1.0, 0.0
    for _ in range(degree):
        p, q = _times(p, q, x, y)
    return p, q


@compiled()
def _pair_sums(kind, A, B, coef, factor, gamma, coef0, degree):
    out = np.empty(len(A.indptr) - 1)
    for i in range(len(out)):
        x, y = 0.0, 0.0
        for j in range(len(coef)):
            p, q = _value(kind, A, i, B, j, gamma, coef0, degree)
            c, d = _two_product(coef[j], factor[j])
            p, q = _times(p, q, c, d)
            x, y = _plus(x, y, p, q)
        out[i] = x + y
    return out


@compiled()
def _add_weights(B, columns, coef, factor, high, low):
    """Add ``coef_j factor_j x_j`` of the samples `columns` to the weights, which are pairs of numbers."""
    for j in range(len(columns)):
        start, end = B.indptr[columns[j]], B.indptr[columns[j] + 1]
        c, d = _two_product(coef[j], factor[j])
        for k in range(start, end):
            f = B.indices[k - start if B.dense else k]
            p, e = _times(c, d, B.data[k], 0.0)
            high[f], low[f] = _plus(high[f], low[f], p, e)


@compiled()
def _values_of_weights(A, rows, high, low, out):
    """``out[i] = <x_i, w>`` for the samples `rows`."""
    for i in range(len(rows)):
        x, y = 0.0, 0.0
        start, end = A.indptr[rows[i]], A.indptr[rows[i] + 1]
        for k in range(start, end):
            f = A.indices[k - start if A.dense else k]
            p, e = _times(high[f], low[f], A.data[k], 0.0)
            x, y = _plus(x, y, p, e)
        out[i] = x + y


@compiled()
def _matrix_sums(K, coef, factor):
    out = np.empty(len(K))
    for i in range(len(K)):
        x, y = 0.0, 0.0
        for j in range(len(coef)):
            c, d = _two_product(coef[j], factor[j])
            p, e = _times(c, d, K[i, j], 0.0)
            x, y = _plus(x, y, p, e)
        out[i] = x + y
    return out


@compiled()
def _distances(A, B, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = _pair(RBF, A, i, B, j)[0]
