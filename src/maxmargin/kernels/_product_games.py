r"""Shapley values of products of factors, for many support vectors at once.

A game of D players is worth :math:`v(S) = \prod_{j \in S} p_j \prod_{j \notin S} q_j` with p, q >= 0: a
product kernel between a support vector and a row whose features come from the explained row (p) or from the
background (q). The value of player i is

.. math:: \varphi_i = (p_i - q_i) \int_0^1 \prod_{j \ne i} (p_j t + q_j (1 - t))\, dt.

The integrand is a polynomial of degree D - 1, so that Gauss-Legendre quadrature with ceil(D / 2) nodes is
exact. Fewer nodes are enough where p and q differ little. Let F(t) be the integrand, and

.. math:: r_j = \frac{|p_j - q_j|}{p_j + q_j}, \; \bar r = \frac1D \sum_j r_j, \; c = \frac12 (\rho + 1/\rho).

On the ellipse with the foci 0 and 1 whose half-axes add up to :math:`\rho / 2`, the integrand is at most
:math:`F(1/2) \prod_j (1 + r_j c) \le F(1/2) (1 + \bar r c)^D`. Every factor is at least 2 min(t, 1 - t) times
its value at 1/2, so that the integral is at least F(1/2) / (D + 1). With the bound for analytic functions
(Trefethen, Approximation Theory and Approximation Practice, theorem 19.3) the relative error of m nodes is
at most

.. math:: \frac{64}{15}\, \frac{(D + 1)\, (1 + \bar r c)^D}{(1 - \rho^{-2})\, \rho^{2 m}}

for every :math:`\rho > 1`. As many nodes are used as bring this below the rounding of float64.

The product of all factors but one is that of the factors before it times that of those after it: there are no
divisions, and as no factor is negative, nothing cancels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import roots_legendre

from maxmargin._compiled.jit import IN_ORDER, compiled
from maxmargin._types import Floats
from maxmargin.kernels._nodes import (
    LANES,
    add_two_nodes,
    copy_features,
    laplacian_factors,
    measure,
    multiply,
    rbf_factors,
)

# Exponents of 2 are squared distances or absolute differences.
RBF, LAPLACIAN = range(2)
# Relative error of an integral: that of rounding.
_ERROR = 1e-16
# A game whose value nowhere exceeds this adds nothing.
_NOTHING = 1e-250


class Quadrature(NamedTuple):
    """Nodes of Gauss-Legendre quadrature on [0, 1], for games of up to D players.

    Parameters
    ----------
    nodes, weights : ndarray
        The nodes and weights of all rules, one after the other.
    starts : ndarray of int
        Where each rule begins.
    limits : ndarray
        For each rule the largest sum of the r_j for which it is exact up to rounding, whatever D is.
    exact : ndarray of int of shape (D + 1,)
        The rule that is exact for each number of players.
    """

    nodes: Floats
    weights: Floats
    starts: NDArray[np.intp]
    limits: Floats
    exact: NDArray[np.intp]

    @classmethod
    def of(cls, players: int) -> Quadrature:
        """The rules for games of up to so many players.

        Examples
        --------
        >>> from maxmargin.kernels._product_games import Quadrature
        >>> Quadrature.of(5).exact
        array([0, 0, 0, 0, 0, 1])
        """
        most = max(1, (players + 1) // 2)
        sizes = [2]
        while sizes[-1] < most:  # even, and each about an eighth larger than the one before
            sizes.append(min(most + most % 2, sizes[-1] + 2 * max(1, sizes[-1] // 16)))
        pairs = [roots_legendre(size) for size in sizes]
        counts = np.array(sizes)
        return cls(
            np.concatenate([(1.0 + x) / 2.0 for x, _ in pairs]),
            np.concatenate([w / 2.0 for _, w in pairs]),
            np.concatenate([[0], np.cumsum(counts)]).astype(np.intp),
            _limits(counts, max(1, players)),
            np.searchsorted(counts, (np.arange(players + 1) + 1) // 2),
        )


def _limits(counts: NDArray[np.intp], players: int) -> Floats:
    """The largest sums of the r_j for which rules with so many nodes have no error but rounding."""
    rho = np.geomspace(1.01, 1e8, 400)
    c = (rho + 1.0 / rho) / 2.0
    constant = np.log(64.0 / 15.0 * (players + 1) / (1.0 - rho**-2.0) / _ERROR)
    with np.errstate(over="ignore"):
        room = np.expm1((2.0 * counts[:, None] * np.log(rho) - constant) / players)
        return np.maximum(0.0, (players * room / c).max(axis=1))


@compiled()
def _factors(kind, scale, x, vectors, out):
    """The factors of the features of the row x and of each support vector."""
    if kind == RBF:
        rbf_factors(x, vectors, len(vectors), scale, out)
    else:
        laplacian_factors(x, vectors, len(vectors), scale, out)


@compiled(fastmath=IN_ORDER)
def _add(values, out):
    """Add arrays of the same shape, or one without rows."""
    flat, to = values.reshape(-1), out.reshape(-1)
    for k in range(len(flat)):
        to[k] += flat[k]


@compiled(fastmath=IN_ORDER)
def mean_factors(kind, scale, background, vectors, out):
    """The means over the background of the factors of each feature, of the shape of `vectors`."""
    one = np.empty((vectors.shape[1], LANES))
    for s in range(len(vectors)):
        out[s] = 0.0
        for b in range(len(background)):
            _factors(kind, scale, background[b], vectors[s], one)
            _add(one, out[s])
        out[s] /= len(background)


@compiled()
def _workspace(d):
    """Arrays for `_play`."""
    return np.empty((2 * d, LANES)), np.empty((d, LANES)), np.empty(LANES), np.empty(LANES)


@compiled(fastmath=IN_ORDER)
def _play(p, q, n, active, constant, rules, work):
    """The values of a game of n players, or no rows if they are nothing.

    `p` and `q` are of shape (at least n, LANES) and differ for `active` players; `constant` are factors
    outside the game.
    """
    before, total, spread, largest = work
    spread[:] = 0.0
    largest[:] = constant
    measure(p, q, n, spread, largest)
    if largest.max() < _NOTHING:
        return total[:0]
    widest, rule = spread.max(), 0
    while rule < rules.exact[active] and rules.limits[rule] < widest:
        rule += 1
    total[:n] = 0.0
    for node in range(rules.starts[rule], rules.starts[rule + 1], 2):
        t, w = rules.nodes[node : node + 2], rules.weights[node : node + 2]
        add_two_nodes(p, q, n, constant, t[0], w[0], t[1], w[1], before, total)
    flat, mine, other = total.reshape(-1), p.reshape(-1), q.reshape(-1)
    for k in range(n * LANES):
        flat[k] *= mine[k] - other[k]
    return total[:n]


@compiled()
def _differing(x, y, at, same):
    """Number of features with different values in two rows; `at` gets them, and `same` the others."""
    n = 0
    for j in range(len(x)):
        at[n] = same[j - n] = j
        n += x[j] != y[j]
    return n


@compiled(fastmath=IN_ORDER)
def add_joint(kind, scale, rows, background, vectors, coef, rules, out):
    """Add the values of the games of all rows of the background and all support vectors.

    Parameters
    ----------
    kind : int
        `RBF` or `LAPLACIAN`.
    scale : float
        Factor of differences, so that the exponents are those of 2.
    rows, background : ndarray of shape (n, d), (m, d)
        Rows to explain, and rows of the background.
    vectors : ndarray of shape (n_strips, d, LANES)
        The support vectors.
    coef : ndarray of shape (n_strips, LANES, n_outputs)
        Their coefficients.
    rules : Quadrature
        Rules for up to d players.
    out : ndarray of shape (n * d + 1, n_outputs)
        The sums of values, row by row, and in the last row those of the worths of empty coalitions.
    """
    n, d = rows.shape
    own, values = np.empty((n, d, LANES)), np.empty((n * d + 1, LANES))
    other, p, q = np.empty((d, LANES)), np.empty((d, LANES)), np.empty((d, LANES))
    work, constant, everyone = _workspace(d), np.empty(LANES), np.arange(d)
    players, others = np.empty(d, np.int64), np.empty(d, np.int64)
    for s in range(len(vectors)):
        for r in range(n):
            _factors(kind, scale, rows[r], vectors[s], own[r])
        values[:] = 0.0
        for b in range(len(background)):
            _factors(kind, scale, background[b], vectors[s], other)
            constant[:] = 1.0
            multiply(other, everyone, d, constant)
            values[n * d] += constant
            for r in range(n):
                to = values[r * d : r * d + d]
                constant[:] = 1.0
                size = _differing(rows[r], background[b], players, others)
                if 2 * size >= d:  # factors of equal features are copied only where that is less work
                    _add(_play(own[r], other, d, size, constant, rules, work), to)
                    continue
                copy_features(own[r], other, players, size, p, q)
                multiply(other, others, d - size, constant)
                found = _play(p, q, size, size, constant, rules, work)
                for j in range(len(found)):
                    to[players[j]] += found[j]
        out += np.dot(values, coef[s])


@compiled(fastmath=IN_ORDER)
def add_independent(kind, scale, rows, means, vectors, coef, rules, out):
    """The same for games with the mean factors of the background, see `mean_factors`."""
    n, d = rows.shape
    own, values = np.empty((d, LANES)), np.empty((n * d + 1, LANES))
    work, constant, everyone = _workspace(d), np.empty(LANES), np.arange(d)
    for s in range(len(vectors)):
        values[:] = 0.0
        constant[:] = 1.0
        multiply(means[s], everyone, d, constant)
        values[n * d] += constant
        constant[:] = 1.0
        for r in range(n):
            _factors(kind, scale, rows[r], vectors[s], own)
            _add(_play(own, means[s], d, d, constant, rules, work), values[r * d : r * d + d])
        out += np.dot(values, coef[s])
