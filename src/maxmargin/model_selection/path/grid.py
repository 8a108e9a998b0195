"""The nodes of a parameter grid, and which of them are neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from numbers import Real
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid


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


def _is_number(value: Any) -> bool:
    real = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    return real and bool(np.isfinite(float(value)))
