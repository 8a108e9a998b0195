"""The kernel of any width from a matrix of distances, in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.exp2 import exp2
from maxmargin._compiled.jit import IN_ORDER, compiled
from maxmargin._compiled.memory import recycled


def exponentials(D: NDArray[Any], gamma: float) -> NDArray[Any]:
    """``exp(-gamma D)`` in the precision of D."""
    out = recycled(D.shape, D.dtype)  # fresh memory would cost more than the exponentials
    _pass(D.ravel(), D.dtype.type(-gamma / np.log(2.0)), out.ravel())
    return out


@compiled(fastmath=IN_ORDER)
def _pass(D, slope, out):
    for t in range(len(D)):
        out[t] = exp2(slope * D[t])
