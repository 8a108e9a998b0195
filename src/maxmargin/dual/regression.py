"""Regression: two variables for each row."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.dual._build import check_unit_interval, problem
from maxmargin.dual._regression import paired_parts
from maxmargin.dual.problem import Dual


def epsilon_svr(
    y: ArrayLike,
    epsilon: float = 0.1,
    C: ArrayLike = 1.0,
    bounds: ArrayLike | None = None,
    rows: ArrayLike | None = None,
) -> Dual:
    r"""Regression with the epsilon-insensitive loss; u = [alpha, -alpha*]. `bounds` replace `C`.

    Minimises :math:`\tfrac12\|w\|^2 + C\sum_i \max(0, |y_i - \langle w, x_i\rangle - b| - \varepsilon)`. The
    variables i and n + i share kernel row i, whose coefficient is their sum. Infinite C: a hard tube.

    Examples
    --------
    >>> from maxmargin import dual
    >>> problem = dual.epsilon_svr([1.0, 3.0], epsilon=0.5, C=2.0)
    >>> problem.p, problem.lo, problem.hi, problem.row
    (array([0.5, 2.5, 1.5, 3.5]), array([ 0.,  0., -2., -2.]), array([2., 2., 0., 0.]), array([0, 1, 0, 1]))
    """
    parts = paired_parts(y, epsilon, C if bounds is None else bounds, rows)
    return problem("epsilon_svr", sums=[0.0], **parts)


def squared_epsilon_svr(
    y: ArrayLike, epsilon: float = 0.1, ridge: ArrayLike = 0.5, rows: ArrayLike | None = None
) -> Dual:
    """Regression with the squared epsilon-insensitive loss; ``ridge = 1/(2C)`` for the loss C sum xi^2."""
    parts = paired_parts(y, epsilon, np.inf, rows)
    both = np.tile(np.broadcast_to(np.asarray(ridge, dtype=np.float64), len(parts["p"]) // 2), 2)
    return problem("squared_epsilon_svr", sums=[0.0], ridge=both, **parts)


def quantile_svr(
    y: ArrayLike, quantile: float = 0.5, C: ArrayLike = 1.0, rows: ArrayLike | None = None
) -> Dual:
    r"""Regression of a quantile, with the pinball loss; u = [alpha, -alpha*].

    Minimises :math:`\tfrac12\|w\|^2 + \sum_i C_i \max(q r_i, (q - 1) r_i)` with the residuals
    :math:`r_i = y_i - \langle w, x_i\rangle - b`: the dual of a tube of width 0 in the box
    :math:`[C_i (q - 1), C_i q]`. `C` may be one number or one bound per sample; finite.

    Examples
    --------
    >>> from maxmargin import dual
    >>> problem = dual.quantile_svr([1.0, 3.0], quantile=0.75, C=2.0)
    >>> problem.p, problem.lo, problem.hi
    (array([1., 3., 1., 3.]), array([ 0. ,  0. , -0.5, -0.5]), array([1.5, 1.5, 0. , 0. ]))
    """
    if not 0 < quantile < 1:
        raise ValueError(f"quantile must be in (0, 1), got {quantile!r}.")
    parts = paired_parts(y, 0.0, C, rows)
    n = len(parts["p"]) // 2
    if not np.isfinite(parts["hi"]).all():
        raise ValueError("C must be finite: with an infinite loss there are no quantiles.")
    parts["hi"][:n] *= quantile
    parts["lo"][n:] *= 1.0 - quantile
    return problem("quantile_svr", sums=[0.0], **parts)


def nu_svr(y: ArrayLike, nu: float = 0.5, C: ArrayLike = 1.0, rows: ArrayLike | None = None) -> Dual:
    r"""Regression with a tube whose width is determined by `nu`.

    alpha and alpha* add up to :math:`\nu\sum_i C_i/2` each. On the free variables of the two groups the
    gradient is -b - epsilon and -b + epsilon. `C` may be one number or one bound per sample.
    """
    check_unit_interval(nu, "nu")
    parts = paired_parts(y, 0.0, C, rows)
    n = len(parts["p"]) // 2
    half = 0.5 * nu * float(parts["hi"][:n].sum())
    if not np.isfinite(half):
        raise ValueError("C must be finite: otherwise nu does not determine the width of the tube.")
    return problem("nu_svr", sums=[half, -half], group=np.repeat([0, 1], n), **parts)
