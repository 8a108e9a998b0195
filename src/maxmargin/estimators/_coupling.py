"""Probabilities of K classes from those of their pairs, in a compiled loop over rows.

Paper: T.-F. Wu, C.-J. Lin, R. C. Weng, "Probability Estimates for Multi-class Classification by Pairwise
Coupling", JMLR 5 (2004), the second method: p minimises the sum of (r_ji p_i - r_ij p_j)^2 over all pairs.
"""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.jit import compiled

# LIBSVM's: its iteration ends at an error of so much divided by K. With the same start and the same end the
# probabilities are LIBSVM's to rounding.
ERROR, FEWEST_ROUNDS = 0.005, 100


@compiled()
def coupled(first, k, least):
    """(n, k) probabilities from ``first[:, p]``, those of the first class of pair p.

    They are kept between `least` and 1 - `least`.
    """
    n = len(first)
    out = np.empty((n, k))
    Q, Qp = np.empty((k, k)), np.empty(k)
    for s in range(n):
        p = out[s]
        _matrix(first[s], Q, least)
        p[:] = 1.0 / k
        for _ in range(max(FEWEST_ROUNDS, k)):
            square = 0.0
            for t in range(k):
                Qp[t] = 0.0
                for j in range(k):
                    Qp[t] += Q[t, j] * p[j]
                square += p[t] * Qp[t]
            error = 0.0
            for t in range(k):
                error = max(error, abs(Qp[t] - square))
            if error < ERROR / k:
                break
            for t in range(k):
                change = (square - Qp[t]) / Q[t, t]
                p[t] += change
                square = (square + change * (change * Q[t, t] + 2.0 * Qp[t])) / (1.0 + change) ** 2
                for j in range(k):
                    Qp[j] = (Qp[j] + change * Q[t, j]) / (1.0 + change)
                    p[j] /= 1.0 + change
    return out


@compiled()
def _matrix(first, Q, least):
    """Fill Q with the matrix of the objective p'Qp."""
    k = len(Q)
    for t in range(k):
        Q[t, t] = 0.0
    at = 0
    for a in range(k):
        for b in range(a + 1, k):
            r = min(max(first[at], least), 1.0 - least)
            Q[a, a] += (1.0 - r) * (1.0 - r)
            Q[b, b] += r * r
            Q[a, b] = Q[b, a] = -r * (1.0 - r)
            at += 1
