"""The rbf kernel from products that other kernels are computed from too."""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.exp2 import exp2
from maxmargin._compiled.intrinsics import fmin
from maxmargin._compiled.jit import IN_ORDER, compiled


@compiled(fastmath=IN_ORDER)
def from_products(tile, a, b, slope, out):
    """``out[r, t] = 2 ** min(0, slope * (2 tile[r, t] - a[r] - b[t]))``, and 0 for rows beyond the range."""
    zero, two = a.dtype.type(0.0), a.dtype.type(2.0)
    for r in range(tile.shape[0]):
        line, target, ar = tile[r], out[r], a[r]
        if not ar < np.inf:
            target[:] = zero
            continue
        for t in range(tile.shape[1]):
            target[t] = exp2(fmin(slope * (two * line[t] - ar - b[t]), zero))
