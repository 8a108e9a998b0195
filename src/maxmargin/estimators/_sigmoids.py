"""Platt's sigmoids of class pairs, in compiled loops.

P(first | f) = 1 / (1 + exp(A f + B)), with f the value of a pair, positive for its first class.

Paper: H.-T. Lin, C.-J. Lin, R. C. Weng, "A Note on Platt's Probabilistic Outputs for Support Vector
Machines", Machine Learning 68 (2007): Newton's method with backtracking, in an arithmetic that does not
cancel. With weights, a row counts as so many rows.
"""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.jit import compiled

# Those of the paper and of LIBSVM, but for the gradient: theirs is 1e-5, and another step costs little.
_MOST_STEPS, _LEAST_STEP, _RIDGE, _GRADIENT = 100, 1e-10, 1e-12, 1e-8


@compiled()
def fit_sigmoids(values, first, weight, starts):
    """A and B of each pair; its rows are ``starts[k] : starts[k + 1]``, `first` those of its first class."""
    n = len(starts) - 1
    A, B = np.zeros(n), np.zeros(n)
    for k in range(n):
        part = slice(starts[k], starts[k + 1])
        A[k], B[k] = _fit(values[part], first[part], weight[part])
    return A, B


@compiled()
def _fit(values, first, weight):
    of_first, of_second = 0.0, 0.0
    for i in range(len(values)):
        if first[i]:
            of_first += weight[i]
        else:
            of_second += weight[i]
    # Targets that one further row of each class would give: no probability becomes 0 or 1.
    high, low = (of_first + 1.0) / (of_first + 2.0), 1.0 / (of_second + 2.0)
    A, B = 0.0, np.log((of_second + 1.0) / (of_first + 1.0))
    loss = _loss(values, first, weight, high, low, A, B)
    for _ in range(_MOST_STEPS):
        h11, h22, h21, g1, g2 = _RIDGE, _RIDGE, 0.0, 0.0, 0.0
        for i in range(len(values)):
            f, w = values[i], weight[i]
            e = np.exp(-abs(f * A + B))
            p = (e if f * A + B >= 0 else 1.0) / (1.0 + e)
            second, slope = w * p * (1.0 - p), w * ((high if first[i] else low) - p)
            h11 += f * f * second
            h22 += second
            h21 += f * second
            g1 += f * slope
            g2 += slope
        if abs(g1) < _GRADIENT and abs(g2) < _GRADIENT:
            break
        det = h11 * h22 - h21 * h21
        dA, dB = (h21 * g2 - h22 * g1) / det, (h21 * g1 - h11 * g2) / det
        descent, step = g1 * dA + g2 * dB, 1.0
        while step >= _LEAST_STEP:
            new = _loss(values, first, weight, high, low, A + step * dA, B + step * dB)
            if new < loss + 1e-4 * step * descent:
                break
            step *= 0.5
        if step < _LEAST_STEP:
            break
        A, B, loss = A + step * dA, B + step * dB, new
    return A, B


@compiled()
def _loss(values, first, weight, high, low, A, B):
    total = 0.0
    for i in range(len(values)):
        x = values[i] * A + B
        target = high if first[i] else low
        total += weight[i] * ((target if x >= 0 else target - 1.0) * x + np.log1p(np.exp(-abs(x))))
    return total


@compiled()
def sigmoids(values, A, B, least):
    """P(first | value) of each row and pair, between `least` and 1 - `least`."""
    out = np.empty_like(values)
    for i in range(values.shape[0]):
        for k in range(values.shape[1]):
            x = values[i, k] * A[k] + B[k]
            e = np.exp(-abs(x))
            out[i, k] = min(max((e if x >= 0 else 1.0) / (1.0 + e), least), 1.0 - least)
    return out
