"""Two classes: hinge losses and hulls."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.dual._build import hulls, problem, signs_of, squared_scale, upper
from maxmargin.dual.problem import Dual


def c_svc(
    y: ArrayLike, C: ArrayLike = 1.0, bounds: ArrayLike | None = None, rows: ArrayLike | None = None
) -> Dual:
    """C-SVC with the hinge loss; u = y alpha. `bounds` (one per sample) replace `C`.

    Examples
    --------
    >>> from maxmargin import dual
    >>> problem = dual.c_svc([1, -1, 1], C=2.0)
    >>> problem.lo, problem.hi
    (array([ 0., -2.,  0.]), array([2., 0., 2.]))
    """
    y = signs_of(y)
    upper = np.empty(len(y))
    upper[:] = C if bounds is None else bounds
    if not (upper >= 0).all():
        raise ValueError("C and sample bounds must be non-negative numbers.")
    signed = y * upper
    lo, hi = np.minimum(signed, 0.0), np.maximum(signed, 0.0)
    return problem("c_svc", p=y, lo=lo, hi=hi, sums=[0.0], rows=rows)


def squared_c_svc(y: ArrayLike, ridge: ArrayLike, rows: ArrayLike | None = None) -> Dual:
    """C-SVC with the squared hinge loss; ``ridge = 1/(2C)`` for the loss C sum xi^2."""
    y = signs_of(y)
    lo, hi = np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0)
    return problem("squared_c_svc", p=y, lo=lo, hi=hi, sums=[0.0], ridge=ridge, rows=rows)


def reduced_hulls(y: ArrayLike, mu: ArrayLike, rows: ArrayLike | None = None) -> Dual:
    """Nearest points of two reduced hulls: the mu-SVM, which is nu-SVC with mu = 2/(nu n)."""
    y = signs_of(y)
    mu = upper(mu, y.shape, "mu")
    return hulls("reduced_hulls", y, hi=mu, scale=1.0 / float(np.median(mu)), rows=rows)


def nearest_points(y: ArrayLike, ridge: ArrayLike = 0.0, rows: ArrayLike | None = None) -> Dual:
    """Nearest points of two hulls; multiplied by 2/||w||^2 it is the (squared) hinge C-SVC."""
    y = signs_of(y)
    return hulls("nearest_points", y, ridge=ridge, scale=2.0, self_scaled=True, rows=rows)


def minimum_norm(
    y: ArrayLike, ridge: ArrayLike = 0.0, rows: ArrayLike | None = None, *, scale: float = 1.0
) -> Dual:
    """The point of least norm in the hull of y (phi(x), scale), which amounts to a penalised bias.

    Multiplied by 1/||W||^2 it is the (squared) hinge C-SVC with the `penalised_bias` of the same scale.

    Examples
    --------
    >>> from maxmargin import dual
    >>> dual.minimum_norm([1, -1], scale=2.0).shift
    4.0
    """
    y = signs_of(y)
    return problem(
        "minimum_norm",
        p=np.zeros(len(y)),
        sums=[1.0],
        ridge=ridge,
        label=(y < 0).astype(np.intp),
        coupling=[[1.0, -1.0], [-1.0, 1.0]],
        shift=squared_scale(scale),
        scale=1.0,
        self_scaled=True,
        rows=rows,
    )
