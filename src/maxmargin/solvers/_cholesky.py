"""Cholesky factors of large matrices, block by block, so that a deadline or Ctrl-C need not wait for the end.

Small matrices go to LAPACK as they are. A large one is factored by rows of blocks: what the rows above
contribute is subtracted by matrix products, then the block on the diagonal is factored and the rest of the
row solved for. Nearly all of the work is in the products, as in LAPACK, and between them there is time to
look at the clock (`maxmargin._compiled.limits`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from maxmargin._compiled.limits import check, slices
from maxmargin.solvers import costs

Array = NDArray[Any]


def factor(matrix: Array) -> Array:
    """The upper factor U of ``matrix = U'U``, symmetric and in C order, which is lost.

    Raises `LinAlgError` if it is not positive definite. What is below the diagonal has no meaning.
    """
    check()
    n = len(matrix)
    if n <= costs.CHOLESKY_AT_ONCE:
        U: Array = scipy.linalg.cholesky(matrix.T, lower=False, overwrite_a=True, check_finite=False)
        return U
    U = matrix
    for j in range(0, n, costs.CHOLESKY_BLOCK):
        e = min(n, j + costs.CHOLESKY_BLOCK)
        check()
        if j:
            left = U[:j, j:e].T
            for a, b in slices(n - j, float(j * (e - j)), costs.CHOLESKY_BLOCK):
                U[j:e, j + a : j + b] -= left @ U[:j, j + a : j + b]
        corner = scipy.linalg.cholesky(U[j:e, j:e], lower=False, check_finite=False)
        U[j:e, j:e] = corner
        for a, b in slices(n - e, float((e - j) ** 2), costs.CHOLESKY_BLOCK):
            U[j:e, e + a : e + b] = scipy.linalg.solve_triangular(
                corner, U[j:e, e + a : e + b], trans="T", lower=False, check_finite=False
            )
    return U


def solve(U: Array, b: Array) -> Array:
    """``(U'U)^-1 b`` for one or several columns b."""
    check()
    # LAPACK wants columns: the transpose of rows, a lower factor.
    given = (U, False) if U.flags.f_contiguous else (U.T, True)
    if b.ndim == 1:
        return np.asarray(scipy.linalg.cho_solve(given, b, check_finite=False))
    out = np.empty(b.shape, U.dtype, order="F")
    for s, e in slices(b.shape[1], costs.CHOLESKY_SOLVE * len(U) ** 2):
        out[:, s:e] = scipy.linalg.cho_solve(given, b[:, s:e], check_finite=False)
    return out
