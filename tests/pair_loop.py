"""The pair loop on a given matrix."""

import numpy as np

from maxmargin._compiled.limits import current
from maxmargin.kernels.panels import Lines
from maxmargin.solvers.batch.block import BlockRows
from maxmargin.solvers.pairs import Places, pair_steps

BIG, TAU = 1e300, 1e-12


def matrix(n, seed=0, ridge=0.0):
    """A kernel matrix, and a generator of numbers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    return K + ridge * np.eye(n), rng


def block_rows(Q):
    """All rows of Q, in a block."""
    none, numbers = np.zeros(0, np.int32), np.zeros(0)
    data = (none, none, numbers, False, np.zeros(0, np.intp), numbers, numbers, numbers, 0)
    data += (
        np.zeros((0, 0)),
        np.zeros(0, np.intp),
        Lines(none, none, numbers, False),
        none,
        np.zeros(0, np.uint16),
        numbers,
    )
    return BlockRows(Q.reshape(-1), Q.shape[1], np.diag(Q).copy(), np.ones(len(Q), np.bool_), *data)


def places_of(n, diag, ranges=None, groups=None):
    """One group in one range, unless said otherwise."""
    ranges = np.array([0, n]) if ranges is None else ranges
    groups = np.array([0, len(ranges) - 1]) if groups is None else groups
    return Places(ranges, groups, diag, np.empty(n), np.empty(n))


def run(Q, places, u, lo, hi, g, kink=0.0, tol=1e-8, most=10_000, cycles=None):
    """The steps taken, changing u."""
    return pair_steps(block_rows(Q), places, cycles, u, lo, hi, g, kink, tol, most, BIG, TAU, current().flag)
