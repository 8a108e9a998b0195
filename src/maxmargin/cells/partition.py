"""Cells: a partition of the rows by their nearest centre, which k-means finds on a sample.

The centres depend on the sample only, and the sample on the number of rows and the seed (`sample_rows`);
the cell of a row depends on the row and the centres only (`nearest_centres`). So chunks, threads and the
number of workers do not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin._types import Floats, Index, Mask
from maxmargin.cells.nearest import Nearest, nearest_centres

#: Rows of the sample in which centres are found: at least so many, and so many for each centre.
LEAST_SAMPLE, SAMPLE_PER_CENTRE = 20_000, 50
# Passes of k-means over the sample. [passes; the prototype used 30, by then few rows change their cell]
_PASSES = 20
# A cell that is larger than this multiple of the wanted size is split; one below that share is merged.
_TOO_LARGE, _TOO_SMALL = 3.0, 0.1
# Rounds of splits; copies of one row cannot be split.
_ROUNDS = 5
#: Below this multiple of the wanted size all rows are one cell.
ONE_CELL = 1.5


def n_cells_for(n_rows: int, cell_size: int) -> int:
    """The number of cells of about `cell_size` rows.

    Examples
    --------
    >>> from maxmargin.cells.partition import n_cells_for
    >>> n_cells_for(7_000, 5_000), n_cells_for(23_000, 5_000)
    (1, 5)
    """
    return 1 if n_rows < ONE_CELL * cell_size else max(2, round(n_rows / cell_size))


def sample_rows(n_rows: int, size: int, seed: int = 0) -> Index:
    """Numbers of `size` random rows of `n_rows`, ascending: a function of these three numbers only.

    Examples
    --------
    >>> from maxmargin.cells.partition import sample_rows
    >>> sample_rows(4, 9)
    array([0, 1, 2, 3])
    """
    if size >= n_rows:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, size, replace=False, shuffle=False))


def sample_size(n_rows: int, cell_size: int) -> int:
    """Rows of the sample from which a partition is made."""
    return min(n_rows, max(LEAST_SAMPLE, SAMPLE_PER_CENTRE * n_cells_for(n_rows, cell_size)))


@dataclass(frozen=True)
class Partition:
    """Cells of the nearest centre.

    Attributes
    ----------
    centres : ndarray of shape (n_cells, n_features)
        The centres, float64.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.cells.partition import Partition
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.3]])
    >>> own = Partition.of_sample(X, n_rows=6, cell_size=3).nearest(X).own
    >>> own.tolist() in ([0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0])
    True
    """

    centres: Floats

    @classmethod
    def of_sample(
        cls, sample: Any, n_rows: int, cell_size: int, seed: int = 0, n_jobs: int | None = 1
    ) -> Partition:
        """Cells of about `cell_size` rows for `n_rows` rows of which `sample` is a random part.

        Parameters
        ----------
        sample : ndarray or sparse matrix of shape (n_sample, n_features)
            See `sample_rows` and `sample_size`.
        n_rows : int
            Number of all rows.
        cell_size : int
            Rows that a cell should have. Cells that the sample shows to have more than three times as many
            are split, and centres with less than a tenth are dropped: their rows go to the neighbours.
        seed : int, default=0
            Chooses the first centres.
        n_jobs : int, default=1
            Threads.
        """
        k = n_cells_for(n_rows, cell_size)
        if k == 1:
            return cls(_mean(sample))
        share = sample.shape[0] / n_rows  # of a cell's rows that are in the sample
        centres = _k_means(sample, k, seed, n_jobs)
        for _ in range(_ROUNDS):
            own = cls(centres).nearest(sample, n_jobs=n_jobs).own
            count = np.bincount(own, minlength=len(centres)) / share
            large = np.flatnonzero(count > _TOO_LARGE * cell_size)
            parts = [
                _k_means(sample[np.flatnonzero(own == c)], round(count[c] / cell_size), seed, n_jobs)
                for c in large
            ]
            if not any(len(part) > 1 for part in parts):
                break
            centres = np.concatenate([np.delete(centres, large, axis=0), *parts])
        return cls(_without_small(centres, sample, _TOO_SMALL * cell_size * share, n_jobs))

    def __len__(self) -> int:
        return len(self.centres)

    def only(self, kept: Mask) -> Partition:
        """The partition by some of the centres."""
        return Partition(self.centres[kept])

    def nearest(self, X: Any, *, two: bool = False, n_jobs: int | None = 1) -> Nearest:
        """The cell of each row of an array or a CSR matrix, see `nearest_centres`."""
        return nearest_centres(X, self.centres, two=two, n_jobs=n_jobs)


def _mean(X: Any) -> Floats:
    return np.asarray(X.mean(axis=0, dtype=np.float64)).reshape(1, -1)


def _k_means(sample: Any, k: int, seed: int, n_jobs: int | None) -> Floats:
    """At most k centres, by Lloyd's passes from random rows.

    scikit-learn's `KMeans` adds in an order that depends on the number of threads; this does not.
    """
    n = sample.shape[0]
    k = max(1, min(k, n))
    if k == 1:
        return _mean(sample)
    centres = _dense(sample[sample_rows(n, k, seed)])
    own: Any = None
    for _ in range(_PASSES):
        before, own = own, nearest_centres(sample, centres, n_jobs=n_jobs).own
        if before is not None and np.array_equal(before, own):
            break
        count = np.bincount(own, minlength=len(centres))
        kept = count > 0
        member = sp.csr_array((np.ones(n), (own, np.arange(n))), shape=(len(centres), n))
        centres = _dense(member @ sample)[kept] / count[kept, None]
        if not kept.all():
            own = None
    return centres


def _dense(X: Any) -> Floats:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def _without_small(centres: Floats, sample: Any, least: float, n_jobs: int | None) -> Floats:
    """Drop centres with fewer than `least` rows of the sample, the smallest first."""
    own = nearest_centres(sample, centres, n_jobs=n_jobs).own
    kept = np.ones(len(centres), np.bool_)
    count = np.bincount(own, minlength=len(centres))
    while kept.sum() > 1:
        smallest = int(np.argmin(np.where(kept, count, len(own) + 1)))
        if count[smallest] >= max(1.0, least):
            break
        kept[smallest] = False
        left, moved = np.flatnonzero(kept), np.flatnonzero(own == smallest)
        if len(moved):
            own[moved] = left[nearest_centres(sample[moved], centres[left]).own]
            count = np.bincount(own, minlength=len(centres))
    return centres[kept]
