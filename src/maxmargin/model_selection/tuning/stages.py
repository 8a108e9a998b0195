"""The rows on which a tuner works: few at first, more while they still change the choice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maxmargin._types import Index
from maxmargin.model_selection.tuning.surface import Split

#: Rows of the first stage, and of the second; the first is left out if it would have most rows anyway.
FIRST, SECOND, MOST_ROWS = 1000, 4000, 1.3
#: Rows of every class that a part should have, times the number of folds.
OF_CLASS = 4


def part_of(n: int, size: int, label: Index | None, n_splits: int, rng: np.random.Generator) -> Index:
    """About `size` rows in ascending order, with the classes in proportion; all if `size` is most of them.

    If a class would have too few rows for the folds, the part is larger.
    """
    if label is not None:
        rarest = int(np.bincount(label).min())
        size = max(size, min(SECOND, -(-n * OF_CLASS * n_splits // rarest)))
    if n <= MOST_ROWS * size:
        return np.arange(n)
    if label is None:
        return np.sort(rng.permutation(n)[:size])
    order = rng.permutation(n)
    order = order[np.argsort(label[order], kind="stable")]  # class by class, in random order
    # Every class has its share of evenly spaced places, and at least one row.
    places = np.unique(np.round(np.linspace(0, n - 1, size)).astype(np.intp))
    first = np.searchsorted(label[order], np.unique(label))
    return np.sort(order[np.union1d(places, first)])


def splits_of(splits: Sequence[Split], rows: Index, n: int) -> list[Split]:
    """The folds within a part of the rows, by their places in it; folds without rows are left out."""
    place = np.full(n, -1, np.intp)
    place[rows] = np.arange(len(rows))
    found = []
    for train, test in splits:
        some, held_out = place[train], place[test]
        some, held_out = some[some >= 0], held_out[held_out >= 0]
        if len(some) and len(held_out):
            found.append((some, held_out))
    return found
