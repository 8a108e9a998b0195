r"""The factor of an active set's matrix, grown and shrunk by one variable at a time.

On the free variables S the conditions :math:`H_{SS}u_S = p_S + \lambda e,\ e^\top u_S = const` are linear.
Papers on incremental SVMs keep the inverse R of their bordered matrix. Here it is a Cholesky factor,

.. math:: L L^\top = H_{SS} + \sigma e e^\top,\qquad h = L^{-1} e.

* :math:`\sigma e e^\top` changes nothing: directions keep the sum. It makes the matrix positive definite
  wherever the bordered one is regular.
* Adding a variable costs one forward and one backward substitution, which *read* |S|^2 values; the inverse
  takes a product and a rank-one update, which read as many and write half of them again. Removing one costs
  the rotations of what stands behind it, a third of that on average.
* The factor is backward stable; the inverse's error grows with every update, and with the square of the
  condition.

It is stored by rows, packed: |S|(|S| + 1)/2 values in float64.
"""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.jit import REORDER, compiled
from maxmargin._types import Floats
from maxmargin.solvers import _cholesky as cholesky

# A pivot smaller than this, relative to the diagonal, is taken for zero.
TINY = 1e-13


def bytes_for(size: int) -> int:
    """Memory that the factor of `size` variables takes."""
    return 8 * (size * (size + 1) // 2)


def room_for(packed: Floats, size: int) -> Floats:
    """The factor in a buffer that holds `size` variables, with some room to grow."""
    needed = size * (size + 1) // 2
    if needed <= len(packed):
        return packed
    larger = np.empty(max(needed, min(2 * len(packed), needed + 64 * size)))
    larger[: len(packed)] = packed
    return larger


def factorise(matrix: Floats, packed: Floats) -> None:
    """Fill `packed` from a symmetric matrix (changed); raises `LinAlgError` if it is not definite."""
    _pack(np.ascontiguousarray(cholesky.factor(matrix.T).T), packed)


@compiled()
def _pack(lower, packed):
    at = 0
    for i in range(len(lower)):
        for k in range(i + 1):
            packed[at + k] = lower[i, k]
        at += i + 1


@compiled(fastmath=REORDER)
def forward(packed, size, b):
    """``b = L^-1 b`` in place."""
    at = 0
    for i in range(size):
        row = packed[at : at + i]
        total = b[i]
        for k in range(i):
            total -= row[k] * b[k]
        b[i] = total / packed[at + i]
        at += i + 1


@compiled(fastmath=REORDER)
def backward(packed, size, b):
    """``b = L^-T b`` in place."""
    at = size * (size + 1) // 2
    for i in range(size - 1, -1, -1):
        at -= i + 1
        row = packed[at : at + i]
        b[i] /= packed[at + i]
        x = b[i]
        for k in range(i):
            b[k] -= x * row[k]


@compiled()
def append(packed, size, a, pivot):
    """The row of one more variable: a = L^-1 (its column), pivot = the square of the new diagonal."""
    at = size * (size + 1) // 2
    for k in range(size):
        packed[at + k] = a[k]
    packed[at + size] = np.sqrt(pivot)


@compiled(fastmath=REORDER)
def delete(packed, size, p, vectors):
    """Take variable p out; the rows of `vectors`, each L^-1 b for some b, are changed accordingly.

    The rows behind p get the rank-one update by their column p, as rotations (`cos`, `sin`) of that column
    with each later one, and move up by one row. Four rows at a time, for each is a chain of dependent
    operations.
    """
    after = size - p - 1
    cos, sin = np.empty(after), np.empty(after)
    v = np.empty(4)
    for first in range(0, after, 4):
        count = min(4, after - first)
        i = p + 1 + first
        for r in range(count):
            v[r] = packed[(i + r) * (i + r + 1) // 2 + p]
        known = 0
        if count == 4:
            s0 = i * (i + 1) // 2 + p + 1
            s1, s2, s3 = s0 + i + 1, s0 + 2 * i + 3, s0 + 3 * i + 6
            t0, t1, t2, t3 = s0 - i - 1, s1 - i - 2, s2 - i - 3, s3 - i - 4
            v0, v1, v2, v3 = v[0], v[1], v[2], v[3]
            for k in range(first):
                c, s = cos[k], sin[k]
                x0, x1, x2, x3 = packed[s0 + k], packed[s1 + k], packed[s2 + k], packed[s3 + k]
                packed[t0 + k] = c * x0 + s * v0
                packed[t1 + k] = c * x1 + s * v1
                packed[t2 + k] = c * x2 + s * v2
                packed[t3 + k] = c * x3 + s * v3
                v0, v1, v2, v3 = c * v0 - s * x0, c * v1 - s * x1, c * v2 - s * x2, c * v3 - s * x3
            v[0], v[1], v[2], v[3] = v0, v1, v2, v3
            known = first
        for r in range(count):
            row = (i + r) * (i + r + 1) // 2
            up = row - i - r
            for k in range(p):
                packed[up + k] = packed[row + k]
            up, row, x = up + p, row + p + 1, v[r]
            for k in range(known, first + r):
                y = packed[row + k]
                packed[up + k] = cos[k] * y + sin[k] * x
                x = cos[k] * x - sin[k] * y
            k = first + r
            y = packed[row + k]
            length = np.sqrt(y * y + x * x)
            cos[k], sin[k] = y / length, x / length
            packed[up + k] = length
    for w in vectors:
        x = w[p]
        for k in range(after):
            y = w[p + 1 + k]
            w[p + k] = cos[k] * y + sin[k] * x
            x = cos[k] * x - sin[k] * y
