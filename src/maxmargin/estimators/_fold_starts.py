"""Where the problems of folds start: the solution of all rows without the multipliers that are held out."""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.jit import compiled


@compiled()
def starts_without(u, distance, lo, hi, fold_of, n_folds):
    """(n_folds, m) points: u without each fold, its sum kept at zero by the rows nearest to the margin.

    They are free, or become so: all others, at a bound or zero, stay where they are, and need no step back.
    `distance` is that of each row's gradient from the offset.
    """
    order = np.argsort(distance)
    out = np.zeros((n_folds, len(u)))
    for f in range(n_folds):
        start, excess = out[f], 0.0
        for t in range(len(u)):
            if fold_of[t] != f:
                start[t] = u[t]
                excess += u[t]
        for t in order:
            if fold_of[t] != f and excess != 0.0:
                end = lo[t] if excess > 0.0 else hi[t]
                whole = abs(start[t] - end) <= abs(excess)  # exactly at the bound: it must not count as free
                new = end if whole else start[t] - excess
                excess = excess + (new - start[t]) if whole else 0.0
                start[t] = new
    return out
