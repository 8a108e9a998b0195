"""Paths that need no costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from maxmargin.model_selection.path.forest import Path
from maxmargin.model_selection.path.grid import Grid


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

    With `axis` the C of a model with the hinge loss this saves most: the solution of the smaller C,
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
