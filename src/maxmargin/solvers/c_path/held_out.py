"""Class pairs: the matrix of the rows of a pair, and the decision values of the rows that are scored."""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.jit import compiled
from maxmargin._compiled.sums import add_rows


@compiled()
def matrix_of_rows(K, rows):
    """The part ``K[rows][:, rows]`` of a matrix; for unsigned rows, which need no check of their sign."""
    n = len(rows)
    out = np.empty((n, n), K.dtype)
    for i in range(n):
        row, line = K[rows[i]], out[i]
        for j in range(n):
            line[j] = row[rows[j]]
    return out


@compiled()
def _is_same(u, offset, c):
    """Whether the solution for a C is that for the C before."""
    same = c > 0 and offset[c] == offset[c - 1]
    if same:
        for i in range(u.shape[1]):
            same &= u[c, i] == u[c - 1, i]
    return same


@compiled()
def held_out_values(K, rows, u, offset, scored, ends, tile, out):
    """Fill ``out[c, s]`` with the decision values of row scored[s] of K, for all C.

    `u`, of shape (n_folds, n_C, len(rows)), and `offset` are the solutions on the rows `rows` of K, which is
    symmetric. Fold f has the places ``ends[f] : ends[f + 1]`` of `scored`. Both are unsigned numbers. `tile`
    rows are scored at a time.
    """
    n_C, n = u.shape[1], u.shape[2]
    support, at, coef = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    for f in range(len(u)):
        of_fold = u[f]
        count = 0
        for i in range(n):
            used = False
            for c in range(n_C):
                used |= of_fold[c, i] != 0
            if used:
                support[count] = i
                count += 1
        for start in range(ends[f], ends[f + 1], tile):
            size = min(tile, ends[f + 1] - start)
            some = scored[start : start + size]
            table = np.empty((count, size), K.dtype)
            for r in range(count):
                row, line = K[rows[support[r]]], table[r]
                for s in range(size):
                    line[s] = row[some[s]]
            for c in range(n_C):
                values = out[c, start : start + size]
                if _is_same(of_fold, offset[f], c):
                    values[:] = out[c - 1, start : start + size]
                    continue
                moved = 0
                for r in range(count):
                    x = of_fold[c, support[r]]
                    if x != 0:
                        at[moved], coef[moved] = r, x
                        moved += 1
                values[:] = -offset[f, c]
                add_rows(values, table, at[:moved], coef[:moved], 0, size)
