"""Parts of the duals of regression: paired variables, and the certificate of a hard tube."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maxmargin._types import Floats


def paired_parts(
    y: ArrayLike, epsilon: float, bounds: ArrayLike, rows: ArrayLike | None = None
) -> dict[str, Any]:
    """Linear term, box and rows of [alpha, -alpha*]: targets minus and plus epsilon, over the same rows."""
    y = np.asarray(y, dtype=np.float64)
    if y.ndim != 1 or not np.isfinite(y).all():
        raise ValueError("y must be one-dimensional, with finite values.")
    if not (epsilon >= 0 and np.isfinite(epsilon)):
        raise ValueError(f"epsilon must be finite and non-negative, got {epsilon!r}.")
    n = len(y)
    upper = np.empty(n)
    upper[:] = bounds
    if not (upper >= 0).all():
        raise ValueError("C and sample bounds must be non-negative numbers.")
    zero = np.zeros(n)
    row = np.arange(n) if rows is None else np.asarray(rows, dtype=np.intp)
    return {
        "p": np.concatenate([y - epsilon, y + epsilon]),
        "lo": np.concatenate([zero, -upper]),
        "hi": np.concatenate([upper, zero]),
        "rows": np.concatenate([row, row]),
    }


def tube_gap(u: Floats, g: Floats, p: Floats, noise: Floats) -> float:
    r"""Primal minus dual value of the problem whose hard tube is widened until it contains all residuals.

    With :math:`\varepsilon'`, half the range of the residuals, and b in its middle w is feasible, and the gap
    is :math:`\|w\|^2 - \sum_i y_i u_i + \varepsilon'\sum_i |u_i|`.
    """
    n = len(p) // 2
    residual = -g[:n] + 0.5 * (p[n:] - p[:n])  # y - K beta: g = K beta - y + epsilon
    y = 0.5 * (p[:n] + p[n:])
    error = np.maximum(noise[:n], noise[n:])
    width = 0.5 * float((residual + error).max() - (residual - error).min())
    size = float(np.abs(u).sum())
    beta = u[:n] + u[n:]
    square = float(beta @ (y - residual)) + float(np.abs(beta) @ error)
    return max(0.0, square - float(y @ beta) + width * size)
