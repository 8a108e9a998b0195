"""Where the problems of folds start, and the values of the rows that they leave out, in compiled loops."""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.jit import compiled


@compiled()
def fold_starts(tasks, place, u, gradient, offset, starts, upper, first, second, bounds, sign, folds):
    """The points at which the problems of `tasks`, rows (pair, fold), start, one after the other.

    Pair p is entry ``place[p]`` of the solutions `u`, `gradient`, `offset`, which begin at `starts`. A point
    is u without the multipliers of the fold, its sum kept at zero by the rows nearest to the margin. They are
    free, or become so: all others, at a bound or zero, stay where they are, and need no step back.
    """
    total = 0
    for t in range(len(tasks)):
        e = place[tasks[t, 0]]
        total += starts[e + 1] - starts[e]
    out = np.zeros(total)
    lo, hi, fold_of = np.empty(0), np.empty(0), np.empty(0, np.int64)
    order = np.empty(0, np.int64)
    at, last = 0, -1
    for t in range(len(tasks)):
        pair, fold = tasks[t, 0], tasks[t, 1]
        e = place[pair]
        m = starts[e + 1] - starts[e]
        of_pair = u[starts[e] : starts[e + 1]]
        if pair != last:  # the folds of a pair follow each other
            order = np.argsort(np.abs(gradient[starts[e] : starts[e + 1]] - offset[e]))
            lo, hi, fold_of = np.empty(m), np.empty(m), np.empty(m, np.int64)
            k, label = 0, sign
            for c in (first[pair], second[pair]):
                for i in range(bounds[c], bounds[c + 1]):
                    lo[k], hi[k] = (0.0, upper[i]) if label > 0 else (-upper[i], 0.0)
                    fold_of[k] = folds[i]
                    k += 1
                label = -label
            last = pair
        _without(of_pair, order, lo, hi, fold_of, fold, out[at : at + m])
        at += m
    return out


@compiled()
def _without(u, order, lo, hi, fold_of, fold, start):
    """Fill `start` with u without a fold."""
    excess = 0.0
    for t in range(len(u)):
        if fold_of[t] != fold:
            start[t] = u[t]
            excess += u[t]
    for t in order:
        if fold_of[t] != fold and excess != 0.0:
            end = lo[t] if excess > 0.0 else hi[t]
            whole = abs(start[t] - end) <= abs(excess)  # exactly at the bound: it must not count as free
            new = end if whole else start[t] - excess
            excess = excess + (new - start[t]) if whole else 0.0
            start[t] = new


@compiled()
def held_values(tasks, starts, gradient, offset, first, second, bounds, sign, folds, values, value_starts):
    """Write the values of held-out rows, positive for the first class, from the gradients of all tasks.

    Task t has the gradient from ``starts[t]`` on; the values of pair p begin at ``value_starts[p]``.
    """
    for t in range(len(tasks)):
        pair, fold = tasks[t, 0], tasks[t, 1]
        k, label = 0, sign
        for c in (first[pair], second[pair]):
            for i in range(bounds[c], bounds[c + 1]):
                if folds[i] == fold:
                    values[value_starts[pair] + k] = sign * (gradient[starts[t] + k] + label - offset[t])
                k += 1
            label = -label
