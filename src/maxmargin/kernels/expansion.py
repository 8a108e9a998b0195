"""Decision values: kernel expansions over the support vectors, in bounded memory."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _costs as costs
from maxmargin._compiled.limits import check
from maxmargin._compiled.threads import Threads
from maxmargin._sklearn import num_samples, safe_indexing
from maxmargin._types import Floats
from maxmargin.kernels._columns import occurring, renumbered
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.points import Points


def expand(
    kernel: Kernel,
    X: Any,
    vectors: Points,
    coef: Floats,
    classes: NDArray[np.intp],
    *,
    threads: Threads,
) -> Floats:
    """``out[c, s, r] = sum over the support vectors v of class c of coef[r, v] k(X[s], v)``.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : array, CSR matrix or, for callable kernels, any indexable
        New samples.
    vectors : Points
        Support vectors, prepared by the kernel, class by class.
    coef : ndarray of shape (n_rows, n_vectors)
        Coefficients.
    classes : ndarray of int
        Offsets ``[0, ..., n_vectors]`` of the classes in `vectors`.
    threads : Threads
        Threads that share the work if there is enough of it.

    Returns
    -------
    ndarray of shape (n_classes, n_samples, n_rows)
    """
    n = num_samples(X)
    out = np.zeros((len(classes) - 1, n, len(coef)))
    dtype = np.dtype(np.float64) if kernel.opaque else vectors.X.dtype
    weights = coef.T.astype(dtype, copy=False)
    ends = [int(c) for c in classes]
    height = costs.EXPANSION_ROWS
    if kernel.name == "precomputed":  # rows that stay in the cache while the values of all classes are read
        height = int(np.clip(costs.EXPANSION_GIVEN // max(1, vectors.X.shape[1]), 1, height))

    def work(start: int) -> None:
        if start:
            check()
        stop = min(n, start + height)
        part = X[start:stop] if hasattr(X, "dtype") else safe_indexing(X, slice(start, stop))
        A = kernel.prepare(part, dtype, like=vectors)
        rows = np.arange(stop - start)
        # Few samples: one tile for all classes, so that a single sample does not need many calls.
        whole = len(rows) * vectors.n <= costs.EXPANSION_ROWS * costs.EXPANSION_COLUMNS
        buffer = np.empty(
            len(rows) * (vectors.n if whole else min(costs.EXPANSION_COLUMNS, vectors.n)), dtype
        )
        if whole:
            tile = buffer.reshape(len(rows), vectors.n)
            kernel.fill(A, vectors, 0, vectors.n, tile, rows)
        for c, (first, last) in enumerate(pairwise(ends)):
            if whole:
                np.matmul(tile[:, first:last], weights[first:last], out=out[c, start:stop])
                continue
            for a in range(first, last, costs.EXPANSION_COLUMNS):
                if a > first:
                    check()
                e = min(last, a + costs.EXPANSION_COLUMNS)
                K = buffer[: len(rows) * (e - a)].reshape(len(rows), e - a)
                kernel.fill(A, vectors, a, e, K, rows, first=a)
                out[c, start:stop] += K @ weights[a:e]

    starts = [(s,) for s in range(0, n, height)]
    work_size = n * vectors.n * (kernel.cost(vectors) + len(coef))
    if len(starts) > 1 and work_size > costs.WORTH_A_THREAD and not kernel.opaque:
        with threads:
            threads.run(work, starts)
    else:
        for start in starts:
            work(*start)
    return out


def linear(X: Any, coef: Any, intercept: Floats) -> Floats:
    """Values of linear functions with weight vectors `coef` (n_functions, d), both sparse or dense."""
    if sp.issparse(coef):
        columns = occurring(coef)
        X, coef = renumbered(X, columns), renumbered(coef, columns)
    product = X @ coef.T
    product = product.toarray() if sp.issparse(product) else np.asarray(product)
    return np.asarray(product + intercept, dtype=np.float64)
