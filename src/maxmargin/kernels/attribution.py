"""Shapley values of kernel expansions, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin._compiled.limits import check
from maxmargin._compiled.threads import Threads
from maxmargin._types import Floats, Index
from maxmargin.kernels.kernel import Kernel

_LOG2E = 1.4426950408889634
# Numbers in a copy of support vectors (32 MB), and factors of the rows of one call (1 MB).
_VECTORS, _FACTORS = 4_000_000, 128_000
# Most rows of one call: from some 10 on the factors of the background, which they share, cost little.
_MOST_ROWS = 16
# Factors of the games of one call: some hundredths of a second, after which Ctrl-C has an effect.
_CALL = 10_000_000
# Strips of support vectors whose mean factors are computed in one call.
_MEANS = 4
# Calls whose results are added up at once.
_AT_ONCE = 16


def attribute(
    kernel: Kernel,
    X: Any,
    background: Any,
    vectors: Any,
    coef: Floats,
    *,
    independent: bool = False,
    threads: Threads,
) -> tuple[Floats, Floats]:
    """Shapley values of ``sum_v coef[o, v] k(x, v)`` for kernels that are products over the features.

    Parameters
    ----------
    kernel : Kernel
        An "rbf" or "laplacian" kernel.
    X, background : float64 array or CSR matrix of shape (n, d), (m, d)
        Rows to explain, and rows from which the values of missing features are taken.
    vectors : array or CSR matrix of shape (n_vectors, d)
        Support vectors.
    coef : ndarray of shape (n_outputs, n_vectors)
        Their coefficients.
    independent : bool
        Whether the values of missing features are drawn independently of each other, or all from one row.
    threads : Threads
        Threads that share the work. The result does not depend on their number.

    Returns
    -------
    values : ndarray of shape (n, d, n_outputs)
        The Shapley values.
    base : ndarray of shape (n_outputs,)
        The values without any feature.
    """
    from maxmargin.kernels import _product_games as games  # compiled: not at import

    rbf = kernel.name == "rbf"
    form = (games.RBF if rbf else games.LAPLACIAN, _scale(kernel.gamma, rbf))
    if any(map(sp.issparse, (X, background, vectors))):
        X, background = sp.csr_array(X), sp.csr_array(background)
        vectors = sp.csr_array(vectors)
    columns, point = _varying(X, background)
    n, d, n_outputs, width = X.shape[0], X.shape[1], len(coef), len(columns)
    rows, known = (np.ascontiguousarray(_dense(part[:, columns])) for part in (X, background))
    rules = games.Quadrature.of(width)
    sums, base = np.zeros((n, width, n_outputs)), np.zeros(n_outputs)
    with threads:
        for strips, weights in _strips(kernel, vectors, coef, columns, point, games.LANES):
            means: Any = np.empty_like(strips) if independent else None
            if independent:
                ranges = [slice(s, s + _MEANS) for s in range(0, len(strips), _MEANS)]
                threads.run(games.mean_factors, [(*form, known, strips[s], means[s]) for s in ranges])
            some = 1 if independent else len(known)
            for calls in _calls(n, some, len(strips), width * games.LANES):
                check()
                found = [np.zeros((len(range(n)[r]) * width + 1, n_outputs)) for r, _, _ in calls]
                given = [
                    (*form, rows[r], means[s] if independent else known[b], strips[s], weights[s], rules, out)
                    for (r, b, s), out in zip(calls, found, strict=True)
                ]
                threads.run(games.add_independent if independent else games.add_joint, given)
                for (r, _, _), out in zip(calls, found, strict=True):  # in this order, whatever the threads
                    sums[r] += out[:-1].reshape(sums[r].shape)
                    base += out[-1] if r.start == 0 else 0.0
    count = 1 if independent else len(known)
    values = np.zeros((n, d, n_outputs))
    values[:, columns] = sums / count
    return values, base / count


def _scale(gamma: float, rbf: bool) -> float:
    """The factor of differences, so that kernel values are powers of 2."""
    return float(np.sqrt(gamma * _LOG2E) if rbf else gamma * _LOG2E)


def _dense(X: Any) -> Any:
    return X.toarray() if sp.issparse(X) else X


def _varying(rows: Any, known: Any) -> tuple[Index, Any]:
    """The columns in which rows and background have different values, and the values that the others have.

    The Shapley values of the other features are zero. Of sparse rows these are columns without entries.
    """
    if sp.issparse(rows):
        both = sp.vstack([rows, known], format="csr")
        return np.unique(both.indices[both.data != 0]), np.zeros(rows.shape[1])
    low = np.minimum(rows.min(axis=0), known.min(axis=0))
    high = np.maximum(rows.max(axis=0), known.max(axis=0))
    return np.flatnonzero(low != high), rows[0]


def _strips(
    kernel: Kernel, vectors: Any, coef: Floats, columns: Index, point: Any, lanes: int
) -> Iterator[tuple[Floats, Floats]]:
    """The support vectors in strips (n_strips, width, lanes), with coefficients (n_strips, lanes, n_outputs).

    The factors of the columns that are left out are part of the coefficients.
    """
    n_outputs, count = coef.shape
    left = np.setdiff1d(np.arange(len(point)), columns)
    step = lanes * max(1, _VECTORS // (lanes * max(1, len(columns) if sp.issparse(vectors) else len(point))))
    for start in range(0, count, step):
        part = vectors[start : start + step]
        away = abs(part[:, left]) if sp.issparse(part) else abs(part[:, left] - point[left])
        far = (away if kernel.name == "laplacian" else away * away).sum(axis=1)
        weights = coef[:, start : start + step] * np.exp(-kernel.gamma * np.asarray(far).ravel())
        part = np.asarray(_dense(part[:, columns]), dtype=np.float64)
        added = ((0, -len(part) % lanes), (0, 0))
        part = np.pad(part, added, mode="edge")  # copies need no more nodes than the last vector
        weights = np.pad(np.ascontiguousarray(weights.T), added)
        strips = part.reshape(len(part) // lanes, lanes, len(columns)).transpose(0, 2, 1)
        yield np.ascontiguousarray(strips), weights.reshape(-1, lanes, n_outputs)


def _calls(n: int, background: int, strips: int, width: int) -> Iterator[list[tuple[slice, slice, slice]]]:
    """Parts of the work, some at a time: rows, rows of the background, and strips of support vectors."""
    height = max(1, min(_MOST_ROWS, n, _FACTORS // max(1, width)))
    share = max(1, min(background, _CALL // max(1, height * width)))
    length = max(1, _CALL // max(1, height * width * share))
    every = (
        (slice(r, r + height), slice(b, b + share), slice(s, s + length))
        for r in range(0, n, height)
        for b in range(0, background, share)
        for s in range(0, strips, length)
    )
    while some := list(islice(every, _AT_ONCE)):
        yield some
