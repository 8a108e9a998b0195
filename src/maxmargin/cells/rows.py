"""The rows of a fit on cells, which may be on disk: samples, cells, and training side by side in threads."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from maxmargin._compiled.limits import current
from maxmargin._compiled.threads import Threads
from maxmargin._types import Floats, Index
from maxmargin.cells.nearest import Nearest
from maxmargin.cells.partition import Partition
from maxmargin.cells.training import Model, train_cell

#: Bytes of rows gathered in one pass over a file. [bytes; 10 million rows of 54 float32 take 6 passes]
BUDGET = 400 << 20
# Rows that are read at a time.
_STEP = 1 << 16


class Rows(Protocol):
    """The rows as training on cells needs them; numbers of rows ascend."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""

    def take(self, rows: Index) -> Any:
        """Some rows, in memory."""

    def nearest(self, partition: Partition, *, two: bool) -> Nearest:
        """The cell of each row, see `Partition.nearest`."""

    def train(
        self,
        estimator: Any,
        cells: Sequence[Index],
        y: NDArray[Any],
        weight: Floats,
        done: Callable[[int], None],
    ) -> list[Model | None]:
        """The model of each cell; None of those that the limit in force left no time for.

        `done` is called with the number of cells that were trained since it was called last.
        """


class LocalRows:
    """Rows of an array, a memory-mapped file, or a CSR matrix.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, n_features)
        All rows.
    n_jobs : int or None
        Threads, each of which trains one cell at a time.
    kept : ndarray of int, optional
        The rows that count.
    """

    def __init__(self, X: Any, n_jobs: int | None, kept: Index | None = None) -> None:
        self._X, self._n_jobs = X, n_jobs
        self._kept = None if kept is None or len(kept) == X.shape[0] else kept
        self._file = file_of(X)
        self.shape = (X.shape[0] if self._kept is None else len(self._kept), X.shape[1])

    def take(self, rows: Index) -> Any:
        """See `Rows`."""
        if len(rows) == self._X.shape[0]:
            return self._X
        rows = rows if self._kept is None else self._kept[rows]
        if self._file is None:
            return self._X[rows]
        out = np.empty((len(rows), self._X.shape[1]), self._X.dtype)
        for s in range(0, len(rows), _STEP):
            out[s : s + _STEP] = self._X[rows[s : s + _STEP]]
        release(self._file)
        return out

    def nearest(self, partition: Partition, *, two: bool = False) -> Nearest:
        """See `Rows`."""
        found = partition.nearest(self._X, two=two, n_jobs=self._n_jobs)
        release(self._file)
        if self._kept is None:
            return found
        own, second, far = found
        if second is None or far is None:
            return Nearest(own[self._kept])
        return Nearest(own[self._kept], second[self._kept], far[self._kept])

    def train(
        self,
        estimator: Any,
        cells: Sequence[Index],
        y: NDArray[Any],
        weight: Floats,
        done: Callable[[int], None],
    ) -> list[Model | None]:
        """See `Rows`."""
        limit = current()
        models: list[Model | None] = [None] * len(cells)
        # A single cell has all threads.
        estimator = clone(estimator).set_params(n_jobs=1 if len(cells) > 1 else self._n_jobs)

        def train(c: int, take: Callable[[Index], Any]) -> None:
            if not limit.over:
                own = cells[c]
                models[c] = train_cell(estimator, take(own), y[own], weight[own])
                done(1)

        self.each(train, cells)
        return models

    def each(self, function: Callable[[int, Callable[[Index], Any]], None], cells: Sequence[Index]) -> None:
        """Call a function with the number of each cell and a function that takes its rows, in threads."""
        with Threads(self._n_jobs) as threads:
            for numbers, take in self._batches(cells, BUDGET):
                # The largest first: a long one at the end would leave threads idle.
                order = sorted(numbers, key=lambda c: -len(cells[c]))
                threads.run(function, [(c, take) for c in order])

    def _batches(self, cells: Sequence[Index], budget: int) -> Iterator[tuple[range, Callable[[Index], Any]]]:
        """Numbers of cells, and a function that takes their rows, some cells at a time.

        Of a file the rows of as many cells as fit the `budget` are read in one pass, in its order.
        """
        if self._file is None:
            yield range(len(cells)), self.take
            return
        most = max(1, budget // (self._X.shape[1] * self._X.itemsize))
        start = 0
        while start < len(cells) and not current().over:
            end, size = start + 1, len(cells[start])
            while end < len(cells) and size + len(cells[end]) <= most:
                size += len(cells[end])
                end += 1
            numbers = np.sort(np.concatenate(cells[start:end]))
            yield range(start, end), _Taken(numbers, self.take(numbers)).take
            start = end


class _Taken:
    """Some of the rows, in memory."""

    def __init__(self, numbers: Index, rows: Any) -> None:
        self._numbers, self._rows = numbers, rows

    def take(self, rows: Index) -> Any:
        """Some of these, by their numbers among all rows."""
        return self._rows[np.searchsorted(self._numbers, rows)]


def file_of(X: Any) -> np.memmap[Any, Any] | None:
    """The memory-mapped file that an array is part of; None for other data."""
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap):
            return X
        X = X.base
    return None


def release(file: np.memmap[Any, Any] | None) -> None:
    """Give back memory into which pages of a file were read: it is read again when it is needed.

    Without it the whole file would count as memory of the process after a pass, if nothing else needs it.
    """
    pages = getattr(file, "_mmap", None)
    # In mode "c" changed pages are in memory only.
    if (
        file is not None
        and file.mode == "r"
        and isinstance(pages, mmap.mmap)
        and hasattr(mmap, "MADV_DONTNEED")
    ):
        pages.madvise(mmap.MADV_DONTNEED)
