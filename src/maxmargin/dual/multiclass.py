"""Problems with all K classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.dual._build import problem, upper
from maxmargin.dual.problem import Dual


def all_distances(labels: ArrayLike, mu: ArrayLike, rows: ArrayLike | None = None) -> Dual:
    """All-Distances SVM: the hulls of K classes, and the distances between all of them."""
    classes, label = np.unique(np.asarray(labels), return_inverse=True)
    k = len(classes)
    if k < 2:
        raise ValueError("The All-Distances SVM needs at least two classes.")
    mu = upper(mu, label.shape, "mu")
    smallest = np.bincount(label).min()
    if mu.max() * smallest < 1 - 1e-12:
        raise ValueError(
            f"mu = {mu.max():g} is infeasible: the smallest class has {smallest} samples, so the "
            f"smallest feasible mu is {1 / smallest:g}."
        )
    return problem(
        "all_distances",
        p=np.zeros(len(label)),
        hi=mu,
        sums=np.ones(k),
        group=label,
        label=label,
        coupling=k * np.eye(k) - 1.0,
        scale=1.0 / float(np.median(mu)),
        rows=rows,
    )


def squared_all_distances(labels: ArrayLike, ridge: ArrayLike, rows: ArrayLike | None = None) -> Dual:
    r"""All-Distances SVM with squared slacks: whole hulls, in the space of the kernel k + ridge.

    Minimises the sum of all :math:`\tfrac12\|c_r - c_s\|^2` there, so :math:`(K - 1)\,` `ridge` is added to
    the diagonal; ``ridge = 1/(2C)`` for the loss :math:`C\sum_i\xi_i^2`. Feasible whatever the sizes of the
    classes are; for two classes the same problem as `nearest_points`.

    Examples
    --------
    >>> from maxmargin import dual
    >>> problem = dual.squared_all_distances([0, 0, 1, 2], ridge=0.5)
    >>> problem.ridge, problem.hull
    (array([1., 1., 1., 1.]), True)
    """
    classes, label = np.unique(np.asarray(labels), return_inverse=True)
    k = len(classes)
    if k < 2:
        raise ValueError("The All-Distances SVM needs at least two classes.")
    return problem(
        "squared_all_distances",
        p=np.zeros(len(label)),
        sums=np.ones(k),
        ridge=(k - 1.0) * np.asarray(ridge, dtype=np.float64),
        group=label,
        label=label,
        coupling=k * np.eye(k) - 1.0,
        scale=float(k),
        self_scaled=True,
        rows=rows,
    )


def crammer_singer(labels: ArrayLike, C: ArrayLike, rows: ArrayLike | None = None) -> Dual:
    r"""The multiclass SVM of Crammer and Singer: K variables per sample, which add up to zero.

    Minimises :math:`\tfrac12\sum_r\|w_r\|^2 + \sum_i C_i\xi_i` with
    :math:`\langle w_{y_i} - w_r, x_i\rangle \ge 1 - \xi_i` for all other classes r.
    """
    classes, label = np.unique(np.asarray(labels), return_inverse=True)
    n, k = len(label), len(classes)
    if k < 2:
        raise ValueError("The SVM of Crammer and Singer needs at least two classes.")
    true = (np.arange(k) == label[:, None]).astype(np.float64)
    sample = np.arange(n) if rows is None else np.asarray(rows, dtype=np.intp)
    return Dual(
        name="crammer_singer",
        p=true.ravel(),
        lo=np.full(n * k, -np.inf),
        hi=(upper(C, (n,), "C")[:, None] * true).ravel(),
        ridge=np.zeros(n * k),
        group=np.repeat(np.arange(n), k),
        sums=np.zeros(n),
        row=np.repeat(sample, k),
        label=np.tile(np.arange(k), n),
        coupling=np.eye(k),
    )
