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
def held_out_values(K, rows, begins, u, offset, scored, ends, tile, out):
    """Fill ``out[p, c, s]`` with the decision values of row scored[s] of K, for all class pairs and all C.

    Pair p has the rows ``rows[begins[p] : begins[p + 1]]`` of K, which is symmetric. Its solutions are at the
    same places of `u`, of shape (n_folds, n_C, len(rows)), and ``offset[:, :, p]``. Fold f has the places
    ``ends[f] : ends[f + 1]`` of `scored`, which are unsigned numbers. `tile` rows are scored at a time: the
    values between them and all other rows are collected once for all pairs.
    """
    n_C, n_pairs = u.shape[1], len(begins) - 1
    at, coef = np.empty(len(K), np.int64), np.empty(len(K))
    for f in range(len(u)):
        used = np.zeros(len(K), np.bool_)
        for c in range(n_C):
            for i in range(len(rows)):
                used[rows[i]] |= u[f, c, i] != 0
        for start in range(ends[f], ends[f + 1], tile):
            size = min(tile, ends[f + 1] - start)
            some = scored[start : start + size]
            table = np.empty((len(K), size), K.dtype)
            for r in range(len(K)):
                if used[r]:
                    row, line = K[r], table[r]
                    for s in range(size):
                        line[s] = row[some[s]]
            for p in range(n_pairs):
                of_pair, members = u[f, :, begins[p] : begins[p + 1]], rows[begins[p] : begins[p + 1]]
                for c in range(n_C):
                    values = out[p, c, start : start + size]
                    if _is_same(of_pair, offset[f, :, p], c):
                        values[:] = out[p, c - 1, start : start + size]
                        continue
                    moved = 0
                    for i in range(len(members)):
                        x = of_pair[c, i]
                        if x != 0:
                            at[moved], coef[moved] = members[i], x
                            moved += 1
                    values[:] = -offset[f, c, p]
                    add_rows(values, table, at[:moved], coef[:moved], 0, size)
