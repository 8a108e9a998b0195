"""Shapley values by their definition: a sum over all coalitions, for some features only."""

from itertools import product
from math import factorial

import numpy as np


def shapley_values(f, x, background, independent=False):
    """The values (d, n_outputs) of the features of x, and the value of the empty coalition.

    Parameters
    ----------
    f : callable
        Values (n, n_outputs) of rows.
    x : ndarray of shape (d,)
        The row.
    background : ndarray of shape (m, d)
        The rows that the features of other players come from.
    independent : bool
        Whether these are drawn feature by feature: all combinations of the background's values.
    """
    d = len(x)
    others = np.array(list(product(*background.T))) if independent else background
    worth = []
    for members in range(2**d):
        rows = others.copy()
        inside = [j for j in range(d) if members >> j & 1]
        rows[:, inside] = x[inside]
        worth.append(f(rows).mean(axis=0))
    values = np.zeros((d, len(worth[0])))
    for i in range(d):
        for members in range(2**d):
            if not members >> i & 1:
                size = members.bit_count()
                share = factorial(size) * factorial(d - size - 1) / factorial(d)
                values[i] += share * (worth[members | 1 << i] - worth[members])
    return values, worth[0]
