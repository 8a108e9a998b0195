"""Which node is trained from which: a forest that spans the grid, in chains for parallel work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from maxmargin._types import Floats, Index

S = TypeVar("S")


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
        The sum of their costs.
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
        self.parents: Index = np.array(parents, dtype=np.intp).reshape(-1)
        n = len(self.parents)
        if not np.array_equal(self.parents, np.asarray(parents).reshape(-1)):
            raise ValueError("parents must be whole numbers.")
        if ((self.parents < -1) | (self.parents >= n)).any():
            raise ValueError(f"Parents must be -1 or one of the {n} nodes.")
        self.parents.flags.writeable = False
        self.roots: Index = np.flatnonzero(self.parents == -1)
        self._children: list[list[int]] = [[] for _ in range(n)]
        for node, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                self._children[parent].append(node)
        self.order: Index = self._depth_first()
        if len(self.order) < n:
            raise ValueError("The parents form a cycle.")

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
        """The cost of each node on this path.

        Parameters
        ----------
        costs, cold
            See `cost_matrix`.

        Returns
        -------
        ndarray of shape (n,)
            The cost of the edge to each node, or of its cold training.
        """
        matrix, cold = checked_costs(costs, cold)
        ends = zip(matrix.row.tolist(), matrix.col.tolist(), strict=True)
        known = dict(zip(ends, matrix.data.tolist(), strict=True))
        pairs = enumerate(self.parents.tolist())
        return np.array([cold[j] if i < 0 else known.get((i, j), np.inf) for j, i in pairs], np.float64)

    def chains(self, n: int, costs: ArrayLike | None = None) -> list[Chain]:
        r"""Cut the path into pieces for parallel work.

        No piece costs more than :math:`\frac1n \sum_j c_j`, unless a single node does, and there are as few
        pieces as that allows: from the leaves up, where the nodes below one cost too much, its largest
        branches are cut off (Kundu and Misra 1977). Handed out one by one in the order of the list, to n
        workers that take the next when they are done, they take at most twice the time of a perfect split,
        and waiting.

        Parameters
        ----------
        n : int
            Workers. For a finer balance give a multiple of them.
        costs : array-like of shape (n_nodes,), optional
            The cost of each node, see `node_costs`; by default all the same.

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

    def _depth_first(self) -> Index:
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


def checked_costs(costs: sp.sparray, cold: ArrayLike) -> tuple[Any, Floats]:
    """Costs of edges and of cold trainings, checked."""
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
