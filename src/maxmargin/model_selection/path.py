r"""The grid of a search as a graph, and the path along which its nodes are trained.

Paper: F. Timm, S. Klement, T. Martinetz, "Fast Model Selection for MaxMinOver-based Training of Support
Vector Machines", sections 2 and 3.2.

Neighbouring nodes of a grid have similar solutions, so a node is trained from the solution of a neighbour.
Let :math:`c_{ij}` be the cost of training node j from the solution of its neighbour i, itself trained cold,
and :math:`c_j` that of training j cold. A search trains along a forest that spans the grid, where node j
has the parent :math:`\pi(j)`, or none. The cheapest one,

.. math:: \min_\pi \sum_{j:\, \pi(j) \ne \emptyset} c_{\pi(j) j} + \sum_{j:\, \pi(j) = \emptyset} c_j,

is a minimum spanning arborescence of the grid with one node more, above it, from which an edge of cost
:math:`c_j` leads to every node j (Edmonds 1967). The paper takes the best of the arborescences from every
root; with a constant on top of all :math:`c_j` that is large enough for a single cold start, one run finds
it. (The paper's text has i and j the other way round in its definition of the cost.)

Costs cannot be known before the search. They are measured on a pilot, a part of the data, or replaced by what
has been learned from other data: `heuristic`, `up`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from numbers import Real
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import ParameterGrid

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
S = TypeVar("S")


class Grid:
    """The nodes of a parameter grid, and which of them are neighbours.

    Parameters
    ----------
    param_grid : dict
        Values per parameter. Those of a numeric parameter may come in any order. A parameter with any other
        value (a kernel's name, True, None, "scale" among numbers) has no neighbouring values: nodes that
        differ in it are in separate components. Of a list of grids, take each on its own and `Path.join` the
        paths.

    Attributes
    ----------
    names : tuple of str
        The parameters, sorted as in scikit-learn.
    numeric : tuple of str
        Those with neighbouring values.
    shape : tuple of int
        Values per parameter.

    Examples
    --------
    Node i is the i-th of scikit-learn's `ParameterGrid`:

    >>> from maxmargin.model_selection import Grid
    >>> grid = Grid({"C": [1, 10, 100], "gamma": [0.1, 0.2], "kernel": ["rbf", "laplacian"]})
    >>> len(grid), grid[4]
    (12, {'C': 10, 'gamma': 0.1, 'kernel': 'rbf'})
    >>> [grid[i] for i in grid.neighbours(0)]
    [{'C': 10, 'gamma': 0.1, 'kernel': 'rbf'}, {'C': 1, 'gamma': 0.2, 'kernel': 'rbf'}]
    """

    def __init__(self, param_grid: Mapping[str, Sequence[Any]]) -> None:
        if not isinstance(param_grid, Mapping):
            raise TypeError(f"param_grid must be a dict of values per parameter, got {param_grid!r}.")
        self._nodes = ParameterGrid(param_grid)  # also checks the values
        self.names = tuple(sorted(param_grid))
        values = [list(param_grid[name]) for name in self.names]
        self.shape = tuple(len(v) for v in values)
        self.numeric = tuple(
            name for name, v in zip(self.names, values, strict=True) if all(map(_is_number, v))
        )
        # From the place of a value in the order given to its place in ascending order, and back.
        self._given = {
            name: np.argsort(np.array(v, dtype=np.float64), kind="stable")
            for name, v in zip(self.names, values, strict=True)
            if name in self.numeric
        }
        self._rank = {name: np.argsort(given) for name, given in self._given.items()}
        strides = [prod(self.shape[k + 1 :]) for k in range(len(self.shape))]
        self._stride = dict(zip(self.names, strides, strict=True))
        self._size = dict(zip(self.names, self.shape, strict=True))

    def __len__(self) -> int:
        return prod(self.shape)

    def __getitem__(self, node: int) -> dict[str, Any]:
        values = self._nodes[self._checked(node)]
        return {name: values[name] for name in self.names}

    def __repr__(self) -> str:
        axes = ", ".join(f"{name}: {size}" for name, size in self._size.items())
        return f"<Grid of {len(self)} nodes, {axes}>"

    def rank(self, node: int, name: str) -> int:
        """The place of a node's value among the ascending values of the numeric parameter `name`."""
        return int(self._rank[self.axis(name)][self._place(self._checked(node), name)])

    def step(self, node: int, name: str, by: int) -> int | None:
        """The node `by` values further up along the numeric parameter `name`; None beyond the ends."""
        rank = self.rank(node, name) + by
        if not 0 <= rank < self._size[name]:
            return None
        there = int(self._given[name][rank])
        return int(node) + (there - self._place(node, name)) * self._stride[name]

    def neighbours(self, node: int) -> list[int]:
        """The nodes one value away along one numeric parameter."""
        found = [self.step(node, name, by) for name in self.numeric for by in (-1, 1)]
        return [other for other in found if other is not None]

    def edges(self) -> Iterator[tuple[int, int]]:
        """All pairs (i, j) of neighbours, each in both directions."""
        for i in range(len(self)):
            for j in self.neighbours(i):
                yield i, j

    def axis(self, name: str) -> str:
        """The name, if it is that of a numeric parameter."""
        if name not in self.numeric:
            raise ValueError(
                f"{name!r} is not a numeric parameter of this grid: use one of {', '.join(self.numeric)}."
            )
        return name

    def _place(self, node: int, name: str) -> int:
        return int(node) // self._stride[name] % self._size[name]

    def _checked(self, node: int) -> int:
        if not 0 <= node < len(self):
            raise IndexError(f"There is no node {node} in a grid of {len(self)}.")
        return int(node)


class Chain(NamedTuple):
    """A part of a path, for one worker.

    Attributes
    ----------
    start : int
        The node that the first of the chain is trained from, in a chain further up in the list; -1: cold.
    nodes : list of int
        In an order in which they can be trained. Their parents are in the chain, but for the first node's,
        and for further cold starts if the chain has any.
    cost : float
        What they cost in all.
    """

    start: int
    nodes: list[int]
    cost: float


class Path:
    """Which node is trained from which.

    Parameters
    ----------
    parents : array-like of int
        The node whose solution each node is trained from; -1: none, a cold start.

    Attributes
    ----------
    parents : ndarray of shape (n,)
        As given.
    order : ndarray of shape (n,)
        The nodes, parents first; depth first with small branches before large ones, so that few solutions
        are waiting for a child at any time.
    roots : ndarray
        The cold starts.

    Examples
    --------
    >>> from maxmargin.model_selection import Path
    >>> path = Path([1, -1, 1, 2])
    >>> path.order, path.pairs()
    (array([1, 0, 2, 3]), [(-1, 1), (1, 0), (1, 2), (2, 3)])
    """

    def __init__(self, parents: ArrayLike) -> None:
        self.parents: Ints = np.array(parents, dtype=np.intp).reshape(-1)
        n = len(self.parents)
        if not np.array_equal(self.parents, np.asarray(parents).reshape(-1)):
            raise ValueError("parents must be whole numbers.")
        if ((self.parents < -1) | (self.parents >= n)).any():
            raise ValueError(f"Parents must be -1 or one of the {n} nodes.")
        self.parents.flags.writeable = False
        self.roots: Ints = np.flatnonzero(self.parents == -1)
        self._children: list[list[int]] = [[] for _ in range(n)]
        for node, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                self._children[parent].append(node)
        self.order: Ints = self._depth_first()
        if len(self.order) < n:
            raise ValueError("These parents lead round in a circle.")

    def __len__(self) -> int:
        return len(self.parents)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Path) and np.array_equal(self.parents, other.parents)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Path over {len(self)} nodes, {len(self.roots)} of them cold>"

    @classmethod
    def join(cls, paths: Sequence[Path]) -> Path:
        """The paths of several grids, one after the other, as one.

        Examples
        --------
        >>> from maxmargin.model_selection import Path
        >>> Path.join([Path([-1, 0]), Path([1, -1])]).parents
        array([-1,  0,  3, -1])
        """
        before = np.cumsum([0, *(len(path) for path in paths)])
        return cls(
            np.concatenate(
                [np.zeros(0, np.intp)]
                + [np.where(p.parents < 0, -1, p.parents + k) for p, k in zip(paths, before, strict=False)]
            )
        )

    def children(self, node: int) -> list[int]:
        """The nodes that are trained from this one."""
        return list(self._children[node])

    def pairs(self) -> list[tuple[int, int]]:
        """(parent, node) for every node, in `order`; the parent is -1 where it is trained cold."""
        return [(int(self.parents[node]), int(node)) for node in self.order]

    def follow(self, train: Callable[[int, S | None], S]) -> Iterator[tuple[int, S]]:
        """Train all nodes in `order`.

        Parameters
        ----------
        train : callable
            ``train(node, start)`` returns the solution of a node, trained from `start`, the solution of its
            parent, or cold if that is None.

        Yields
        ------
        node : int
            The node.
        solution : object
            Its solution, kept here as long as there are nodes to be trained from it.

        Examples
        --------
        >>> from maxmargin.model_selection import Path
        >>> dict(Path([1, -1, 1]).follow(lambda node, start: [*(start or []), node]))
        {1: [1], 0: [1, 0], 2: [1, 2]}
        """
        kept: dict[int, S] = {}
        waiting = [len(children) for children in self._children]
        for parent, node in self.pairs():
            solution = train(node, kept[parent] if parent >= 0 else None)
            if parent >= 0:
                waiting[parent] -= 1
                if not waiting[parent]:
                    del kept[parent]
            if waiting[node]:
                kept[node] = solution
            yield node, solution

    def node_costs(self, costs: sp.sparray, cold: ArrayLike) -> Floats:
        """What each node costs on this path.

        Parameters
        ----------
        costs, cold
            See `cost_matrix`.

        Returns
        -------
        ndarray of shape (n,)
            The cost of the edge to each node, or of its cold training.
        """
        matrix, cold = _checked_costs(costs, cold)
        ends = zip(matrix.row.tolist(), matrix.col.tolist(), strict=True)
        known = dict(zip(ends, matrix.data.tolist(), strict=True))
        pairs = enumerate(self.parents.tolist())
        return np.array([cold[j] if i < 0 else known.get((i, j), np.inf) for j, i in pairs], np.float64)

    def chains(self, n: int, costs: ArrayLike | None = None) -> list[Chain]:
        r"""Cut the path into pieces for parallel work.

        No piece costs more than :math:`\frac1n \sum_j c_j`, unless a single node does, and there are as few
        pieces as that allows: from the leaves up, where what hangs on a node is too much, its largest
        branches are cut off (Kundu and Misra 1977). Handed out one by one in the order of the list, to n
        workers that take the next when they are done, they take at most twice the time of a perfect split,
        and waiting.

        Parameters
        ----------
        n : int
            Workers. For a finer balance give a multiple of them.
        costs : array-like of shape (n_nodes,), optional
            What each node costs, see `node_costs`; by default all the same.

        Returns
        -------
        list of Chain
            A chain whose `Chain.start` is not -1 has been cut off there: its first node is trained when that
            node is done, which is in a chain that comes earlier in the list and has the nodes that others
            wait for at its beginning. A worker that would not wait may train it cold instead, at the price
            of a cold training. Else large chains come first.

        Examples
        --------
        >>> from maxmargin.model_selection import Grid, heuristic
        >>> path = heuristic(Grid({"C": [1, 10, 100], "sigma": [0.1, 1, 2, 5]}), spine="sigma")
        >>> for chain in path.chains(2):
        ...     print(chain)
        Chain(start=-1, nodes=[11, 10, 7, 3, 6, 2], cost=6.0)
        Chain(start=10, nodes=[9, 5, 1, 8, 4, 0], cost=6.0)
        """
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"n must be a positive whole number, got {n!r}.")
        cost = np.ones(len(self)) if costs is None else np.array(costs, dtype=np.float64)
        if cost.shape != (len(self),) or not (np.isfinite(cost).all() and (cost >= 0).all()):
            raise ValueError(f"costs must be {len(self)} finite numbers, none of them negative.")
        # A little more than the exact share, which sums of floats may miss.
        most = float(cost.sum()) / n * (1 + 1e-9)
        weight, cut = cost.copy(), self.parents < 0
        for node in self.order[::-1]:
            branches = sorted(self._children[node], key=lambda child: weight[child])
            weight[node] += sum(weight[child] for child in branches)
            while weight[node] > most and branches:
                largest = branches.pop()
                cut[largest] = True
                weight[node] -= weight[largest]
        # Nodes from which a chain that has been cut off can be reached come first in their chain.
        leads = np.zeros(len(self), dtype=bool)
        for node in self.order[::-1]:
            parent = self.parents[node]
            if parent >= 0:
                leads[parent] |= cut[node] or leads[node]
        head = np.arange(len(self))
        members: dict[int, tuple[list[int], list[int]]] = {}
        for node in self.order.tolist():
            if not cut[node]:
                head[node] = head[self.parents[node]]
            members.setdefault(int(head[node]), ([], []))[0 if leads[node] else 1].append(node)
        chains = {
            k: Chain(int(self.parents[k]), first + rest, float(cost[first + rest].sum()))
            for k, (first, rest) in members.items()
        }
        # The chain that is started from comes first: by the number of cuts above, then by cost.
        depth: dict[int, int] = {}
        for k, chain in chains.items():
            depth[k] = 0 if chain.start < 0 else depth[int(head[chain.start])] + 1
        return [chains[k] for k in sorted(chains, key=lambda k: (depth[k], -chains[k].cost, k))]

    def _depth_first(self) -> Ints:
        # Level by level for the sizes of the branches, as a recursion could be thousands of nodes deep.
        levels: list[int] = []
        level = self.roots.tolist()
        while level:
            levels += level
            level = [child for node in level for child in self._children[node]]
        size = np.ones(len(self), dtype=np.intp)
        for node in reversed(levels):
            size[node] += sum(size[child] for child in self._children[node])
            self._children[node].sort(key=lambda child: (size[child], child))
        order: list[int] = []
        stack = self.roots.tolist()[::-1]
        while stack:
            node = stack.pop()
            order.append(node)
            stack += self._children[node][::-1]
        return np.array(order, dtype=np.intp)


# -- paths that need no costs ----------------------------------------------------------------


def heuristic(grid: Grid, spine: str, direction: str | Mapping[str, str] = "down") -> Path:
    """The paper's heuristic: a spine along one parameter, and from each of its nodes a chain along the other.

    The spine lies at the end of the other parameter where the chains start.

    Parameters
    ----------
    grid : Grid
        Any number of numeric parameters: with more than two, chains along the second, in the order of
        `Grid.numeric`, are the spine of chains along the third.
    spine : str
        The parameter that the spine goes along.
    direction : {"down", "up"} or dict
        Whether to go from the largest value to the smallest or the other way round; for all, or by parameter
        ("down" where one is not named).

    Returns
    -------
    Path
        With one cold start for each combination of the parameters that are not numeric.

    Notes
    -----
    The path of the paper, whose picture is lost, is that with the costs it reports: the largest C from the
    largest sigma down, then down in C, as below. With gamma = 1/(2 sigma^2) it is ``spine="gamma",
    direction={"gamma": "up"}``.

    Examples
    --------
    >>> from maxmargin.model_selection import Grid, heuristic
    >>> grid = Grid({"C": [1, 100], "sigma": [0.1, 1.0]})
    >>> for parent, node in heuristic(grid, spine="sigma").pairs():
    ...     print(grid[node], "from", grid[parent] if parent >= 0 else "nothing")
    {'C': 100, 'sigma': 1.0} from nothing
    {'C': 1, 'sigma': 1.0} from {'C': 100, 'sigma': 1.0}
    {'C': 100, 'sigma': 0.1} from {'C': 100, 'sigma': 1.0}
    {'C': 1, 'sigma': 0.1} from {'C': 100, 'sigma': 0.1}
    """
    ways = dict.fromkeys(grid.numeric, direction) if isinstance(direction, str) else dict(direction)
    for name in ways:
        grid.axis(name)
    others = [name for name in grid.numeric if name != grid.axis(spine)]
    return _nested(grid, [(name, ways.get(name, "down")) for name in (spine, *others)])


def up(grid: Grid, axis: str, spine: str | Mapping[str, str] | None = None) -> Path:
    """Chains upward along one parameter, from its smallest value.

    With `axis` the C of a machine with the hinge loss this is what pays most: the solution of the smaller C,
    scaled by the ratio, is close to that of the larger, and once no multiplier is at C it stays.

    Parameters
    ----------
    grid : Grid
        The nodes.
    axis : str
        The numeric parameter to go along.
    spine : {"up", "down"} or dict, optional
        By default the first node of each chain is a cold start. Else it is reached from its neighbour along
        the other numeric parameters, with the direction for all or by parameter; a parameter that is not
        named in a dict has cold starts at each of its values.

    Returns
    -------
    Path
        The chains, and the spine if there is one.

    Examples
    --------
    >>> from maxmargin.model_selection import Grid, up
    >>> grid = Grid({"C": [1, 10, 100], "gamma": [0.1, 1.0]})
    >>> up(grid, "C").parents.reshape(grid.shape)
    array([[-1, -1],
           [ 0,  1],
           [ 2,  3]])
    >>> up(grid, "C", spine={"gamma": "up"}).parents.reshape(grid.shape)
    array([[-1,  0],
           [ 0,  1],
           [ 2,  3]])
    """
    others = [name for name in grid.numeric if name != grid.axis(axis)]
    if spine is None:
        ways: dict[str, str] = {}
    elif isinstance(spine, str):
        ways = dict.fromkeys(others, spine)
    else:
        ways = dict(spine)
    for name in ways:
        if grid.axis(name) == axis:
            raise ValueError(f"The spine cannot go along {axis!r}, as the chains do.")
    return _nested(grid, [*((name, ways[name]) for name in others if name in ways), (axis, "up")])


def _nested(grid: Grid, axes: Sequence[tuple[str, str]]) -> Path:
    """Each node from the one before it along the last of the axes where it is not the first."""
    for name, way in axes:
        if way not in ("up", "down"):
            raise ValueError(f"The direction of {name!r} must be 'up' or 'down', got {way!r}.")
    back = [(name, -1 if way == "up" else 1) for name, way in reversed(axes)]
    parents = []
    for node in range(len(grid)):
        before = (grid.step(node, name, by) for name, by in back)
        parents.append(next((other for other in before if other is not None), -1))
    return Path(parents)


# -- paths by costs --------------------------------------------------------------------------


def cost_matrix(
    grid: Grid, cold: Callable[[int], tuple[float, S]], warm: Callable[[int, S], float]
) -> tuple[sp.coo_array, Floats]:
    """Measure what every edge of the grid costs.

    Parameters
    ----------
    grid : Grid
        The nodes.
    cold : callable
        ``cold(i)`` trains node i and returns what that cost (seconds, steps, kernel values) and the solution.
    warm : callable
        ``warm(j, solution)`` trains node j from the solution of a neighbour and returns what that cost.
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
    Of three nodes the last is dear to train cold, and cheap from the one before:

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
    matrix, cold = _checked_costs(costs, cold)
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


def _edmonds(n: int, tails: Ints, heads: Ints, costs: Floats, root: int) -> Ints:
    """The places of the edges of the cheapest arborescence from `root`, which must reach every node.

    Of the cheapest edges into each node those that form cycles are contracted, until there are none; what an
    edge into a cycle costs is then what it costs more than the edge that it replaces.
    """
    origin = np.arange(len(heads))
    levels: list[tuple[Ints, Ints, Ints, Ints]] = []
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


def _checked_costs(costs: sp.sparray, cold: ArrayLike) -> tuple[Any, Floats]:
    if not sp.issparse(costs):
        raise TypeError("costs must be a sparse array, whose stored entries are the edges.")
    cold = np.array(cold, dtype=np.float64)
    matrix = costs.tocoo()
    if cold.ndim != 1 or matrix.shape != (len(cold), len(cold)):
        raise ValueError(f"costs must be square and cold as long, got {matrix.shape} and {cold.shape}.")
    if not (np.isfinite(cold).all() and (cold >= 0).all()):
        raise ValueError("The costs of cold trainings must be finite, and none of them negative.")
    if np.isnan(matrix.data).any() or (matrix.data < 0).any():
        raise ValueError("The costs of edges must not be negative, nor NaN.")
    return matrix, cold


def _is_number(value: Any) -> bool:
    real = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    return real and bool(np.isfinite(float(value)))
