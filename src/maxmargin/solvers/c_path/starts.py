"""Where a path along C starts, if a solution for another C is known."""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.jit import compiled
from maxmargin._types import Floats
from maxmargin.solvers import costs


def carried(u: Floats, C: float, to: float, weight: Floats) -> Floats:
    """Starts for another C from solutions u (n_folds, n) for C; the bounds are C times the weights.

    The weights are of shape (n,), or (n_folds, n). See `carry`.
    """
    out, weights = np.empty(u.shape), np.broadcast_to(weight, u.shape)
    for before, of_fold, start in zip(u, weights, out, strict=True):
        carry(before, float(C), float(to), np.ascontiguousarray(of_fold), start)
    return out


@compiled()
def carry(u, C, to, weight, out):
    """Fill `out` with a start: u scaled by the ratio of the two C, or as it is.

    It stays where C grows and few variables are at their bound.
    """
    bounded, nonzero = 0, 0
    for t in range(len(u)):
        bounded += abs(u[t]) == C * weight[t]
        nonzero += u[t] != 0
    scaled = (bounded > 0 and bounded >= costs.PATH_KEEP * (nonzero - bounded)) or to < C
    ratio = to / C
    for t in range(len(u)):
        bound = C * weight[t]
        if not scaled:
            out[t] = u[t]
        elif abs(u[t]) == bound:
            out[t] = np.sign(u[t]) * (bound * ratio)
        else:
            out[t] = ratio * u[t]
