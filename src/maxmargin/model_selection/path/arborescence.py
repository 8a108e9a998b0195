"""The cheapest path: costs from a pilot, and Edmonds' algorithm."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from maxmargin._types import Floats, Index
from maxmargin.model_selection.path.forest import Path, checked_costs
from maxmargin.model_selection.path.grid import Grid

S = TypeVar("S")


def cost_matrix(
    grid: Grid, cold: Callable[[int], tuple[float, S]], warm: Callable[[int, S], float]
) -> tuple[sp.coo_array, Floats]:
    """Measure the cost of every edge of the grid.

    Parameters
    ----------
    grid : Grid
        The nodes.
    cold : callable
        ``cold(i)`` trains node i and returns the cost (seconds, steps, kernel values) and the solution.
    warm : callable
        ``warm(j, solution)`` trains node j from the solution of a neighbour and returns the cost.
        All cold trainings come first, so that it may give up, with `numpy.inf`, beyond the cost of j's.

    Returns
    -------
    costs : coo_array of shape (n, n)
        The cost of node j from its neighbour i, itself trained cold. Entries that are stored are
        edges, even if their cost is 0.
    cold : ndarray of shape (n,)
        The costs of the cold trainings.

    Examples
    --------
    >>> from maxmargin.model_selection import Grid, cost_matrix
    >>> costs, cold = cost_matrix(
    ...     Grid({"C": [1, 10, 100]}), cold=lambda i: (5.0 + i, i), warm=lambda j, i: 2.0 if j > i else 1.0
    ... )
    >>> cold, costs.toarray()
    (array([5., 6., 7.]), array([[0., 2., 0.],
           [1., 0., 2.],
           [0., 1., 0.]]))
    """
    trained = [cold(i) for i in range(len(grid))]
    edges = list(grid.edges())
    data = np.array([warm(j, trained[i][1]) for i, j in edges], dtype=np.float64)
    i, j = np.array(edges, dtype=np.intp).reshape(-1, 2).T
    matrix = sp.coo_array((data, (i, j)), shape=(len(grid), len(grid)))
    return matrix, np.array([cost for cost, _ in trained], dtype=np.float64)


def arborescence(costs: sp.sparray, cold: ArrayLike, cold_starts: str = "few") -> Path:
    """The cheapest path, by Edmonds' algorithm.

    Parameters
    ----------
    costs : sparse array of shape (n, n)
        The cost of node j from node i for every edge, all stored entries; infinite ones are left out. No
        cost may be negative. See `cost_matrix`.
    cold : array-like of shape (n,)
        The cost of each node trained cold.
    cold_starts : {"few", "any"}
        "few": one cold start, the best of the trees from every root, as in the paper; more only where the
        edges leave no other way, one in each component of the grid as a rule. "any": wherever a cold start
        makes it cheaper.

    Returns
    -------
    Path
        Its cost, ``path.node_costs(costs, cold).sum()``, is the least possible.

    References
    ----------
    J. Edmonds, "Optimum branchings", J. Res. Nat. Bur. Standards 71B, 1967.

    Examples
    --------
    Of three nodes the last is expensive to train cold, and cheap from the one before:

    >>> import scipy.sparse as sp
    >>> from maxmargin.model_selection import arborescence
    >>> costs = sp.coo_array(([4.0, 1.0, 2.5, 3.0], ([0, 1, 1, 2], [1, 2, 0, 1])))
    >>> arborescence(costs, [2.0, 3.0, 9.0]).parents
    array([ 1, -1,  1])
    >>> arborescence(costs, [2.0, 3.0, 9.0], cold_starts="any").parents
    array([-1, -1,  1])
    """
    if cold_starts not in ("few", "any"):
        raise ValueError(f"cold_starts must be 'few' or 'any', got {cold_starts!r}.")
    matrix, cold = checked_costs(costs, cold)
    n = len(cold)
    usable = np.isfinite(matrix.data) & (matrix.row != matrix.col)
    weights = matrix.data[usable]
    # More than any choice of edges could save, so that each cold start is one that cannot be avoided.
    toll = 0.0 if cold_starts == "any" else 1.0 + 2.0 * (float(cold.sum()) + float(weights.sum()))
    tails = np.concatenate([matrix.row[usable], np.full(n, n)])
    heads = np.concatenate([matrix.col[usable], np.arange(n)])
    chosen = _edmonds(n + 1, tails, heads, np.concatenate([weights, cold + toll]), root=n)
    parents = np.full(n, -1, dtype=np.intp)
    parents[heads[chosen]] = np.where(tails[chosen] == n, -1, tails[chosen])
    return Path(parents)


def _edmonds(n: int, tails: Index, heads: Index, costs: Floats, root: int) -> Index:
    """The places of the edges of the cheapest arborescence from `root`, which must reach every node.

    Of the cheapest edges into each node those that form cycles are contracted, until there are none; the cost
    of an edge into a cycle is then the difference to the cost of the edge that it replaces.
    """
    origin = np.arange(len(heads))
    levels: list[tuple[Index, Index, Index, Index]] = []
    while True:
        # The cheapest edge into each node; the first of several.
        usable = np.flatnonzero((heads != root) & (tails != heads))
        by_cost = usable[np.lexsort((costs[usable], heads[usable]))]
        nodes, first = np.unique(heads[by_cost], return_index=True)
        best = np.full(n, -1, dtype=np.intp)
        best[nodes] = by_cost[first]
        cycles = _cycles(tails[best].tolist(), root)
        if not cycles:
            break
        inside = np.concatenate(cycles)
        name = np.full(n, -1, dtype=np.intp)
        for k, cycle in enumerate(cycles):
            name[cycle] = k
        alone = np.flatnonzero(name < 0)
        name[alone] = len(cycles) + np.arange(len(alone))
        levels.append((origin, heads, best, inside))
        saved = np.zeros(n)
        saved[inside] = costs[best[inside]]
        kept = np.flatnonzero(name[tails] != name[heads])
        costs = costs[kept] - saved[heads[kept]]
        tails, heads, root = name[tails[kept]], name[heads[kept]], int(name[root])
        origin, n = kept, len(cycles) + len(alone)
    chosen = best[np.arange(n) != root]
    # Back: a cycle keeps all its edges but the one into the node where it is entered.
    for before, heads_before, best_before, inside in reversed(levels):
        chosen = origin[chosen]
        entered = np.isin(inside, heads_before[chosen])
        chosen = np.concatenate([chosen, best_before[inside[~entered]]])
        origin = before
    return chosen


def _cycles(towards: list[int], root: int) -> list[list[int]]:
    """The cycles of the map from each node but the root to another."""
    seen, found = [-1] * len(towards), []
    for start in range(len(towards)):
        node, way = start, []
        while node != root and seen[node] < 0:
            seen[node] = start
            way.append(node)
            node = towards[node]
        if node != root and seen[node] == start:
            found.append(way[way.index(node) :])
    return found
