"""Squared distances from products, and the kernel of any width from distances, in one pass each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.exp2 import exp2
from maxmargin._compiled.jit import IN_ORDER, compiled


def exponentials(D: NDArray[Any], gamma: float, out: NDArray[Any]) -> NDArray[Any]:
    """``exp(-gamma D)`` in the precision of D, written to `out`."""
    _pass(D.ravel(), D.dtype.type(-gamma / np.log(2.0)), out.ravel())
    return out


@compiled(fastmath=IN_ORDER)
def _pass(D, slope, out):
    for t in range(len(D)):
        out[t] = exp2(slope * D[t])


# Rows and columns that are mirrored at a time: their lines stay in the first-level cache.
_MIRRORED = 16


@compiled(fastmath=IN_ORDER)
def fill_distances(products, norm, a, c, D):
    """Write the squared distances of the rows from a on to those from c on, and their mirror images, to D.

    `products` are the inner products, `norm` the squared norms of all rows. If c = a, the tile is square.
    """
    zero = D.dtype.type(0.0)
    for i in range(len(products)):
        row, line, others, own = products[i], D[a + i][c:], norm[c:], norm[a + i]
        for j in range(len(row)):
            line[j] = max(D.dtype.type(own + others[j] - 2.0 * row[j]), zero)
    if c == a:
        # Solvers rely on symmetry: the order of the sums differs on the two sides of the diagonal.
        for i in range(len(products)):
            for j in range(i):
                D[a + i, a + j] = D[a + j, a + i] = max(D[a + i, a + j], D[a + j, a + i])
        return
    for low in range(0, len(products), _MIRRORED):
        for left in range(0, products.shape[1], _MIRRORED):
            high, right = min(low + _MIRRORED, len(products)), min(left + _MIRRORED, products.shape[1])
            for j in range(left, right):
                line = D[c + j][a:]
                for i in range(low, high):
                    line[i] = D[a + i, c + j]
