"""Sums of values of sums and products of named kernels, with twice the digits of float64.

See `maxmargin.kernels._accurate`. A kernel is a program for a stack: each step pushes the value of a part, or
replaces the two values on top by their sum or product.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin._compiled.jit import compiled
from maxmargin._types import Floats, Index
from maxmargin.kernels._accurate import _float64, _pair, _plus, _times, _two_product
from maxmargin.kernels._form import KINDS, LAPLACIAN, LINEAR, RBF, SIGMOID
from maxmargin.kernels.panels import Lines

# Steps besides the numbers of named kernels.
_CONSTANT, _SUM, _PRODUCT = 100, 101, 102
# Kind, gamma or the constant, coef0, degree.
_Step = tuple[int, float, float, int]


def sums(kernel: Any, X: Any, rows: Index, columns: Index, coef: Floats, factor: Floats) -> Floats:
    """``k(X[rows], X[columns]) @ (coef * factor)`` for a kernel of named parts with one gamma each."""
    A, B = (Lines.of(_float64(X[index])) for index in (rows, columns))
    coef, factor = (np.ascontiguousarray(c, dtype=np.float64) for c in (coef, factor))
    kinds, gammas, constants, degrees = zip(*_program(kernel), strict=True)
    numbers = np.array([gammas, constants])
    return np.asarray(
        _program_sums(np.array(kinds, np.int64), numbers, np.array(degrees, np.int64), A, B, coef, factor)
    )


def _program(kernel: Any) -> list[_Step]:
    """The steps for a kernel."""
    if kernel.parts:
        join = (_PRODUCT if kernel.multiplies else _SUM, 0.0, 0.0, 0)
        first, *others = kernel.parts
        steps = _program(first)
        for part in others:
            steps += [*_program(part), join]
        return steps
    if hasattr(kernel, "value"):
        return [(_CONSTANT, kernel.value, 0.0, 0)]
    if kernel.name == "linear":
        return [(LINEAR, 1.0, 0.0, 1)]
    return [(KINDS[kernel.name], kernel.gamma, kernel.coef0, kernel.degree)]


@compiled()
def _program_sums(kinds, numbers, degrees, A, B, coef, factor):
    out = np.empty(len(A.indptr) - 1)
    high, low = np.empty(len(kinds)), np.empty(len(kinds))
    has_product, has_rbf, has_laplacian = False, False, False
    for kind in kinds:
        has_product |= kind < RBF
        has_rbf |= kind == RBF
        has_laplacian |= kind == LAPLACIAN
    for i in range(len(out)):
        x, y = 0.0, 0.0
        for j in range(len(coef)):
            s, t, square, distance = 0.0, 0.0, 0.0, 0.0
            if has_product:
                s, t = _pair(LINEAR, A, i, B, j)
            if has_rbf:
                square = _pair(RBF, A, i, B, j)[0]
            if has_laplacian:
                distance = _pair(LAPLACIAN, A, i, B, j)[0]
            top = -1
            for k in range(len(kinds)):
                kind, gamma, coef0 = kinds[k], numbers[0, k], numbers[1, k]
                if kind == _SUM:
                    top -= 1
                    high[top], low[top] = _plus(high[top], low[top], high[top + 1], low[top + 1])
                    continue
                if kind == _PRODUCT:
                    top -= 1
                    high[top], low[top] = _times(high[top], low[top], high[top + 1], low[top + 1])
                    continue
                top += 1
                p, q = gamma, 0.0  # of a constant
                if kind == RBF:
                    p = np.exp(-gamma * square)
                elif kind == LAPLACIAN:
                    p = np.exp(-gamma * distance)
                elif kind < RBF:
                    v, w = _times(s, t, gamma, 0.0)
                    v, w = _plus(v, w, coef0, 0.0)
                    if kind == SIGMOID:
                        p = np.tanh(v)
                        q = w * (1.0 - p * p)
                    else:
                        p = 1.0
                        for _ in range(degrees[k]):
                            p, q = _times(p, q, v, w)
                high[top], low[top] = p, q
            c, d = _two_product(coef[j], factor[j])
            p, q = _times(high[0], low[0], c, d)
            x, y = _plus(x, y, p, q)
        out[i] = x + y
    return out
