"""Rows on which kernel values lose digits."""

import numpy as np


def data(kind, seed, n=60, d=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if kind == "offset":
        X += 1e4
    elif kind == "zero-or-huge":
        X[:, 1] = np.where(rng.random(n) < 0.5, 0.0, 1.7e9)
    elif kind == "sentinel":
        X[rng.integers(n)] = 1e8
    elif kind == "two-sentinels":
        X[:2] = 1e8
        X[1, 0] += 0.5
    elif kind == "scales":
        X *= 10.0 ** rng.uniform(-3, 4, size=d)
    return X


KINDS = ["plain", "offset", "zero-or-huge", "sentinel", "two-sentinels", "scales"]
