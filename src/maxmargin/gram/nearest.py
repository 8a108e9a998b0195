"""Nearest samples in feature space; for kernels that fall with the distance, without kernel values."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin import _costs as costs
from maxmargin._compiled.limits import slices
from maxmargin._types import Floats, Index
from maxmargin.gram.certified import CertifiedRows


def nearest(gram: CertifiedRows, rows: Index, others: Index) -> tuple[Index, Floats]:
    """For each of `rows` the place of the nearest of `others`, and a distance that orders such pairs."""
    if gram.kernel.name == "rbf":
        take = (lambda i: i) if gram.index is None else gram.index.__getitem__
        A, B = gram.X[take(rows)], gram.X[take(others)]
        if sp.issparse(A) and A.shape[1] <= costs.DENSE_NEAREST:
            A, B = A.toarray(), B.toarray()
        with gram.threads.blas():
            return _by_distance(A, B)
    distances = gram.diag[rows][:, None] + gram.diag[others] - 2.0 * gram.block(rows, others)
    found = np.argmin(distances, axis=1)
    return found, distances[np.arange(len(rows)), found]


def _by_distance(A: Any, B: Any) -> tuple[Index, Floats]:
    """For each row of A the nearest row of B, and the squared distance."""
    squares = [
        np.asarray(X.multiply(X).sum(axis=1) if sp.issparse(X) else (X * X).sum(axis=1)) for X in (A, B)
    ]
    a, b = (np.ravel(square).astype(np.float64) for square in squares)
    found, distance = np.empty(len(a), np.intp), np.empty(len(a))
    # Tiles that stay in a cache: with few features the time goes into reading and writing products.
    most = max(1, costs.NEAREST_TILE // max(1, len(b)))
    for start, stop in slices(len(a), float(B.shape[0] * (B.shape[1] + costs.NEAREST_PASSES)), most=most):
        part = slice(start, stop)
        product = A[part] @ B.T
        gap = (product.toarray() if sp.issparse(product) else product).astype(np.float64, copy=False)
        gap *= -2.0
        gap += b
        found[part] = np.argmin(gap, axis=1)
        distance[part] = a[part] + gap[np.arange(len(gap)), found[part]]
    return found, distance
