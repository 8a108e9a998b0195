"""The order in which the nodes of a search are trained, and which starts from which.

The direction with the fewest steps differs between estimators, which declare it (`_search_axes` and
`_search_spine`), see docs/model_selection.md. Multipliers of a C-SVC grow with C, and those at the bound
move with it: C ascends. The weights of a one-class SVM with squared slacks concentrate as C grows: C
descends, and the kernels follow each other at the largest C. C ascends for a regressor; where C is not
searched, the tube gets narrower. Hulls grow as nu falls or mu rises.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from maxmargin.estimators.search_axes import Axis
from maxmargin.model_selection.folds import FOLDS_AT_A_TIME
from maxmargin.model_selection.jobs import Job
from maxmargin.model_selection.path import Path
from maxmargin.model_selection.pipelines import split_parameters, split_pipeline, steps_before
from maxmargin.model_selection.row_wise import is_row_wise
from maxmargin.model_selection.settings import keys_of
from maxmargin.model_selection.trainers.c_path import has_c_path

PATHS = ("auto", "up", "down", "cold")


def parents_of(estimator: Any, candidates: Sequence[dict[str, Any]], path: Any) -> list[int]:
    """The node that each node starts from, -1 for none."""
    n = len(candidates)
    if not isinstance(path, str):
        try:
            given = path if isinstance(path, Path) else Path(path)
        except ValueError as error:
            raise ValueError(f"path is not a valid sequence of parents: {error}") from error
        if len(given) != n:
            raise ValueError(f"path must name a parent for each of the {n} candidates, got {len(given)}.")
        return [int(parent) for parent in given.parents]
    if path not in PATHS:
        raise ValueError(f"path must be one of {', '.join(PATHS)}, or a sequence of parents; got {path!r}.")
    if path == "cold":
        return [-1] * n
    _, last, prefix = split_pipeline(estimator)
    axes: tuple[Axis, ...] = getattr(last, "_search_axes", ())
    if path != "auto":
        axes = tuple(Axis(axis.parameter, path == "up") for axis in axes[:1])
    parents = [-1] * n
    for axis in axes:
        alone = set(range(n)) - {k for pair in enumerate(parents) if pair[1] >= 0 for k in pair}
        _link(parents, candidates, alone, f"{prefix}{axis.parameter}", axis.ascending)
    spine: Axis | None = getattr(last, "_search_spine", None)
    if path == "auto" and spine is not None:
        first = {k for k, parent in enumerate(parents) if parent < 0}
        _link(parents, candidates, first, f"{prefix}{spine.parameter}", spine.ascending)
    return parents


def _link(
    parents: list[int], candidates: Sequence[dict[str, Any]], nodes: set[int], name: str, ascending: bool
) -> None:
    """Let each of the nodes start from the one before it along a parameter, where all others are the same."""
    lines: dict[Any, list[int]] = {}
    for k, params in enumerate(candidates):
        if k in nodes and isinstance(params.get(name), Real):
            rest = keys_of({other: v for other, v in params.items() if other != name})
            lines.setdefault(rest, []).append(k)
    for line in lines.values():
        line.sort(key=lambda k: float(candidates[k][name]), reverse=not ascending)
        for before, after in zip(line, line[1:], strict=False):
            parents[after] = before


def jobs_of(
    estimator: Any, candidates: Sequence[dict[str, Any]], parents: list[int], n_splits: int, workers: int = 1
) -> list[Job]:
    """Jobs that share a kernel matrix follow each other.

    Folds of an `SVC` or `SVR` that share their rows start from each other: all are one job if there are
    enough jobs for the workers, otherwise as many jobs as there are workers. Where the steps before the last
    learn from the training rows, every fold has rows and distances of its own, so that all jobs of a fold
    follow each other; with more than one worker the jobs of two folds alternate, and no worker waits while
    another prepares the rows. Within a setting the largest gamma comes first, see `_largest_gamma_first`.
    """
    _, last, prefix = split_pipeline(estimator)
    found: dict[int, list[tuple[int, int]]] = {}
    root: dict[int, int] = {}
    for parent, node in Path(parents).pairs():
        root[node] = root.get(parent, node)
        found.setdefault(root[node], []).append((node, parent))
    trees: list[Any] = [tuple(zip(*found[k], strict=True)) for k in sorted(found)]
    outer = [split_parameters(params, prefix)[0] for params in candidates]
    settings: dict[Any, list[Any]] = {}
    for tree in trees:
        for setting, part in _one_preprocessing(tree, outer):
            settings.setdefault(setting, []).append(part)
    count = sum(map(len, settings.values()))
    alone = _groups(n_splits, n_splits)
    jobs: list[Job] = []
    for number, some_parts in enumerate(settings.values()):
        parts = _largest_gamma_first(some_parts, candidates, f"{prefix}gamma")
        if not is_row_wise(steps_before(estimator, outer[parts[0][0][0]])):
            both = min(FOLDS_AT_A_TIME, workers)
            for first in range(0, n_splits, both):
                some = range(first, min(first + both, n_splits))
                jobs += [Job((k,), nodes, links, number) for nodes, links in parts for k in some]
            continue
        folds = _groups(n_splits, 1 if count >= 2 * workers else workers) if has_c_path(last) else alone
        jobs += [Job(some, nodes, links, number) for nodes, links in parts for some in folds]
    return jobs


def _groups(n_splits: int, number: int) -> list[tuple[int, ...]]:
    """The folds in at most `number` groups of neighbours."""
    return [tuple(part.tolist()) for part in np.array_split(np.arange(n_splits), min(number, n_splits))]


def _one_preprocessing(tree: Any, outer: Sequence[dict[str, Any]]) -> list[tuple[Any, Any]]:
    """The tree in parts that differ in the parameters of the steps before the last, and so in their rows."""
    groups: dict[Any, list[int]] = {}
    for at, node in enumerate(tree[0]):
        groups.setdefault(keys_of(outer[node]), []).append(at)
    out = []
    for setting, places in groups.items():
        nodes = tuple(tree[0][at] for at in places)
        links = tuple(p if p in nodes else -1 for p in (tree[1][at] for at in places))
        out.append((setting, (nodes, links)))
    return out


def _largest_gamma_first(trees: list[Any], candidates: Sequence[dict[str, Any]], name: str) -> list[Any]:
    """The trees of a preprocessing by falling gamma, the parameter `name`.

    A wide kernel with few support vectors is trained in the least time: the last jobs are short, so that no
    worker waits long for another to finish.
    """

    def order(tree: Any) -> float:
        gamma = candidates[tree[0][0]].get(name)
        return -float(gamma) if isinstance(gamma, Real) else 0.0

    return sorted(trees, key=order)
