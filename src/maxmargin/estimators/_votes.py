"""One-vs-one: coefficients of all class pairs, their values, and their votes."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.jit import compiled


@compiled()
def pair_values(parts, intercept):
    """Decision values (n_samples, n_pairs) from expansions (n_classes, n_samples, n_classes - 1).

    ``parts[c, s, r]`` is the expansion of sample s over the support vectors of class c with the r-th row of
    scikit-learn's `dual_coef_`: the model of classes a < b has row b - 1 for class a and row a for class b.
    """
    k, n = parts.shape[0], parts.shape[1]
    out = np.empty((n, k * (k - 1) // 2))
    for s in range(n):
        p = 0
        for a in range(k):
            for b in range(a + 1, k):
                out[s, p] = parts[a, s, b - 1] + parts[b, s, a] + intercept[p]
                p += 1
    return out


@compiled()
def spread_pairs(weights, starts, first, second, segments, coef, used):
    """Write the coefficients of class pairs, which start at `starts`, to their places in `dual_coef_`.

    Class c has the columns ``segments[c] : segments[c + 1]`` of `coef`; `used` marks those that are not zero.
    """
    for k in range(len(first)):
        a, b, t = first[k], second[k], starts[k]
        for i in range(segments[a], segments[a + 1]):
            coef[b - 1, i] = weights[t]
            used[i] |= weights[t] != 0
            t += 1
        for i in range(segments[b], segments[b + 1]):
            coef[a, i] = weights[t]
            used[i] |= weights[t] != 0
            t += 1


@compiled()
def winners(values, k):
    """The class with the most votes for each sample; of several, the first."""
    out = np.empty(len(values), np.intp)
    votes = np.empty(k, np.int64)
    for s in range(len(values)):
        votes[:] = 0
        p = 0
        for a in range(k):
            for b in range(a + 1, k):
                votes[a if values[s, p] > 0 else b] += 1
                p += 1
        out[s] = np.argmax(votes)
    return out


@compiled()
def winners_of_pairs(values, k):
    """The class with the most votes, as `winners`, from values (n_pairs, n_models, n_samples)."""
    _, models, n = values.shape
    out = np.zeros((models, n), np.intp)
    votes = np.empty((k, n), np.int32)
    for c in range(models):
        votes[:] = 0
        p = 0
        for a in range(k):
            for b in range(a + 1, k):
                of_pair, first, second = values[p, c], votes[a], votes[b]
                for s in range(n):
                    vote = 1 if of_pair[s] > 0 else 0
                    first[s] += vote
                    second[s] += 1 - vote
                p += 1
        best, most = out[c], votes[0]
        for a in range(1, k):
            of_class = votes[a]
            for s in range(n):
                better = of_class[s] > most[s]
                best[s] = a if better else best[s]
                most[s] = of_class[s] if better else most[s]
    return out


def reordered(values: NDArray[np.float64], order: NDArray[np.integer]) -> NDArray[np.float64]:
    """The values of the pairs of ``classes[order]``, from those of the pairs of the classes.

    Of several classes with the most votes the first wins, and a value of zero is a vote for the second of a
    pair: so a model whose classes were not in ascending order when it was trained has to know their order.
    """
    k = len(order)
    place = np.zeros((k, k), np.intp)
    place[np.triu_indices(k, 1)] = np.arange(k * (k - 1) // 2)
    pairs = list(combinations(map(int, order), 2))
    columns = [place[min(a, b), max(a, b)] for a, b in pairs]
    signs = np.array([1.0 if a < b else -1.0 for a, b in pairs])
    return np.ascontiguousarray(values[:, columns] * signs)
