"""One-class problems: the support of a distribution."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.dual._build import check_unit_interval, problem
from maxmargin.dual.problem import Dual


def one_class(
    n: int, nu: float = 0.5, weights: ArrayLike | None = None, rows: ArrayLike | None = None
) -> Dual:
    """The one-class SVM of Schölkopf et al. with alpha summing to 1; `weights` scale the bounds."""
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    check_unit_interval(nu, "nu")
    total = nu * w.sum()
    return problem("one_class", p=np.zeros(n), hi=w / total, sums=[1.0], scale=float(total), rows=rows)


def one_class_l2(n: int, ridge: ArrayLike, rows: ArrayLike | None = None) -> Dual:
    """The one-class SVM with squared slacks; u / rho with rho = u'Qu is the alpha of the paper."""
    return problem("one_class_l2", p=np.zeros(n), sums=[1.0], ridge=ridge, self_scaled=True, rows=rows)
