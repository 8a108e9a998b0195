"""The order in which the nodes of a search are trained, and which starts from which.

The direction that pays differs between machines, see docs/search.md. Multipliers of a C-SVC grow with
C, and those at the bound move with it: one walks up. The weights of a one-class machine with squared slacks
concentrate as C grows: one walks down, and from one width to the next at the largest C. A regressor walks up
in C; where C is not searched, from wide tubes to narrow ones. Hulls grow as nu falls or mu rises.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

from maxmargin.model_selection.chains import Chain
from maxmargin.model_selection.folds import split_parameters, split_pipeline
from maxmargin.model_selection.path import Path

# Parameters along which each machine walks, and whether upwards; measured, see docs/search.md.
# Along the second walk the nodes that have no neighbour along the first.
DIRECTIONS: dict[str, tuple[tuple[str, bool], ...]] = {
    "SVC": (("C", True),),
    "SVR": (("C", True), ("epsilon", False)),
    "CrammerSingerSVC": (("C", False),),
    "L2OneClassSVM": (("C", False),),
    "NuSVC": (("nu", False),),
    "NuSVR": (("nu", False), ("C", True)),
    "OneClassSVM": (("nu", False),),
    "AllDistancesSVC": (("nu", False), ("mu", True)),
}
# The parameter along which the first nodes of these walks start from each other, and whether upwards: the
# heuristic of the paper on MaxMinOver, from the widest kernel to the narrowest. All nodes of a fold are then
# one chain.
SPINES: dict[str, tuple[str, bool]] = {"L2OneClassSVM": ("gamma", True)}

PATHS = ("auto", "up", "down", "cold")


def parents_of(estimator: Any, candidates: Sequence[dict[str, Any]], path: Any) -> list[int]:
    """The node that each node starts from, -1 for none."""
    n = len(candidates)
    if not isinstance(path, str):
        try:
            given = path if isinstance(path, Path) else Path(path)
        except ValueError as error:
            raise ValueError(f"This path is none: {error}") from error
        if len(given) != n:
            raise ValueError(f"path must name a parent for each of the {n} candidates, got {len(given)}.")
        return [int(parent) for parent in given.parents]
    if path not in PATHS:
        raise ValueError(f"path must be one of {', '.join(PATHS)}, or a sequence of parents; got {path!r}.")
    if path == "cold":
        return [-1] * n
    _, last, prefix = split_pipeline(estimator)
    axes = DIRECTIONS.get(type(last).__name__, ())
    if path != "auto":
        axes = tuple((axis, path == "up") for axis, _ in axes[:1])
    parents = [-1] * n
    for axis, up in axes:
        alone = set(range(n)) - {k for pair in enumerate(parents) if pair[1] >= 0 for k in pair}
        _link(parents, candidates, alone, f"{prefix}{axis}", up)
    if path == "auto" and type(last).__name__ in SPINES:
        axis, up = SPINES[type(last).__name__]
        first = {k for k, parent in enumerate(parents) if parent < 0}
        _link(parents, candidates, first, f"{prefix}{axis}", up)
    return parents


def _link(
    parents: list[int], candidates: Sequence[dict[str, Any]], nodes: set[int], name: str, up: bool
) -> None:
    """Let each of the nodes start from the one before it along a parameter, where all others are the same."""
    walks: dict[Any, list[int]] = {}
    for k, params in enumerate(candidates):
        if k in nodes and isinstance(params.get(name), Real):
            rest = tuple(sorted((other, repr(v)) for other, v in params.items() if other != name))
            walks.setdefault(rest, []).append(k)
    for walk in walks.values():
        walk.sort(key=lambda k: float(candidates[k][name]), reverse=not up)
        for before, after in zip(walk, walk[1:], strict=False):
            parents[after] = before


def chains_of(
    estimator: Any, candidates: Sequence[dict[str, Any]], parents: list[int], n_splits: int, n_jobs: int = 1
) -> list[Chain]:
    """Chains that share a kernel matrix follow each other; `n_jobs` are to be kept busy.

    All folds of an `SVC` or `SVR` are one chain, as they start from each other, if there are enough chains.
    """
    _, last, prefix = split_pipeline(estimator)
    found: dict[int, list[tuple[int, int]]] = {}
    root: dict[int, int] = {}
    for parent, node in Path(parents).pairs():
        root[node] = root.get(parent, node)
        found.setdefault(root[node], []).append((node, parent))
    trees: list[Any] = [tuple(zip(*found[k], strict=True)) for k in sorted(found)]
    trees = [part for tree in trees for part in _one_preprocessing(tree, candidates, prefix)]
    one_for_all = type(last).__name__ in ("SVC", "SVR") and len(trees) >= 2 * n_jobs
    folds = [tuple(range(n_splits))] if one_for_all else [(k,) for k in range(n_splits)]
    return [Chain(some, nodes, links) for nodes, links in trees for some in folds]


def _one_preprocessing(tree: Any, candidates: Sequence[dict[str, Any]], prefix: str) -> list[Any]:
    """The tree, in parts that differ in the parameters before the last step: those share no rows."""
    groups: dict[str, list[int]] = {}
    for at, node in enumerate(tree[0]):
        outer, _ = split_parameters(candidates[node], prefix)
        groups.setdefault(repr(sorted(outer.items(), key=lambda item: item[0])), []).append(at)
    out = []
    for places in groups.values():
        nodes = tuple(tree[0][at] for at in places)
        out.append((nodes, tuple(p if p in nodes else -1 for p in (tree[1][at] for at in places))))
    return out
