"""The rows of a fit on cells that live on workers: samples, cells, and training of some cells per task."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from maxmargin._compiled.limits import Limit, Stopped, current
from maxmargin._types import Floats, Index
from maxmargin.cells.nearest import Nearest
from maxmargin.cells.partition import Partition
from maxmargin.cells.training import Model, train_cell
from maxmargin.dask.data import TrainingData
from maxmargin.dask.parts import joined
from maxmargin.dask.tasks import Work
from maxmargin.dask.waiting import gather, large_messages, threads_of

# Bytes of the rows that a task trains on at most, if a cell has fewer: a worker has them for each thread.
_BUDGET = 64 << 20
# Tasks for each thread at least, so that threads are busy to the end; so many are submitted at a time.
_PER_THREAD, _SUBMITTED = 4, 2
# Share of the time left after which a worker ends a cell, so that its solution arrives in time.
_SHARE = 0.9


class CellRows:
    """Rows of `TrainingData` that have a weight, as `maxmargin.cells.rows.Rows`.

    Workers keep nothing but the parts of the data, so a task that is lost with its worker can be repeated.

    Parameters
    ----------
    data : TrainingData
        Checked partitions on the workers.
    n_jobs : int or None
        Threads of the fit of a single cell.
    kept : ndarray of int
        The numbers of the rows that count, ascending.
    """

    def __init__(self, data: TrainingData, n_jobs: int | None, kept: Index) -> None:
        self._data, self._n_jobs, self._kept = data, n_jobs, kept
        self._starts = np.concatenate([[0], np.cumsum(data.sizes)])
        self._work = Work(data.client)
        self.shape = (len(kept), data.shape[1])

    def take(self, rows: Index) -> Any:
        """See `Rows`."""
        pieces = self._pieces([rows])
        parts = [self._data.parts[i] for i in pieces]
        arguments = [(own,) for own in pieces.values()]
        found = self._work.each(split_cells, "take-rows", parts, arguments, "taking a sample")
        return joined([rows for [rows] in found])

    def nearest(self, partition: Partition, *, two: bool) -> Nearest:
        """See `Rows`."""
        arguments = [(partition, two)] * len(self._data.parts)
        with large_messages():
            found = self._work.each(
                assign_cells, "assign-cells", self._data.parts, arguments, "assigning cells"
            )
        columns: list[Any] = [
            None if each[0] is None else np.concatenate(each)[self._kept] for each in zip(*found, strict=True)
        ]
        return Nearest(*columns)

    def train(
        self,
        estimator: Any,
        cells: Sequence[Index],
        y: NDArray[Any],
        weight: Floats,
        done: Callable[[int], None],
    ) -> list[Model | None]:
        """See `Rows`."""
        client, limit = self._data.client, current()
        estimator = clone(estimator).set_params(n_jobs=1 if len(cells) > 1 else self._n_jobs)
        threads = max(1, sum(threads_of(client).values()))
        token = f"0{uuid4().hex[:12]}"

        def submit(numbers: range) -> Any:
            own = [cells[c] for c in numbers]
            once = f"{token}-{uuid4().hex[:12]}"
            with large_messages():
                pieces = [
                    client.submit(
                        split_cells, self._data.parts[i], each, key=f"split-cells-{once}-{i}", pure=False
                    )
                    for i, each in self._pieces(own).items()
                ]
                targets = [(y[rows], weight[rows]) for rows in own]
                return client.submit(
                    train_cells,
                    estimator,
                    targets,
                    _left(limit),
                    *pieces,
                    key=f"train-cell-{once}",
                    pure=False,
                )

        models: list[Model | None] = [None] * len(cells)
        waiting, under_way = deque(self._batches(cells, threads)), deque[tuple[range, Any]]()
        with suppress(Stopped):
            while (waiting or under_way) and not limit.over:
                while waiting and len(under_way) < _SUBMITTED * threads:
                    numbers = waiting.popleft()
                    under_way.append((numbers, submit(numbers)))
                numbers, future = under_way.popleft()
                [found] = gather(
                    client,
                    [future],
                    what="training cells",
                    resubmit=lambda _, numbers=numbers: submit(numbers),  # type: ignore[misc]
                    limited=True,
                )
                models[numbers.start : numbers.stop] = found
                done(len(found))
        return models

    def _batches(self, cells: Sequence[Index], threads: int) -> Iterator[range]:
        """Numbers of the cells of each task."""
        rows = sum(len(own) for own in cells)
        width = self.shape[1] * self._data.dtype.itemsize
        most = min(_BUDGET / width, rows / (_PER_THREAD * threads))
        start, size = 0, 0
        for c, own in enumerate(cells):
            if size and size + len(own) > most:
                yield range(start, c)
                start, size = c, 0
            size += len(own)
        yield range(start, len(cells))

    def _pieces(self, cells: Sequence[Index]) -> dict[int, list[Index]]:
        """For each part that has any of these rows: the numbers of those of each cell within the part."""
        cuts = [np.searchsorted(numbers, self._starts) for numbers in (self._kept[own] for own in cells)]
        found = {}
        for i, start in enumerate(self._starts[:-1]):
            own = [
                self._kept[cell[cut[i] : cut[i + 1]]] - start for cell, cut in zip(cells, cuts, strict=True)
            ]
            if any(len(rows) for rows in own):
                found[i] = own
        return found


def _left(limit: Limit) -> float | None:
    """Seconds that a task has."""
    return None if limit.deadline is None else max(0.0, _SHARE * (limit.deadline - time.perf_counter()))


def split_cells(part: Any, cells: Sequence[Index]) -> list[Any]:
    """The rows of each cell that are in a part; runs on a worker."""
    return [part[rows] for rows in cells]


def assign_cells(part: Any, partition: Partition, two: bool) -> Nearest:
    """The cell of each row of a part; runs on a worker."""
    return partition.nearest(part, two=two)


def train_cells(
    estimator: Any, targets: Sequence[tuple[Any, Floats]], seconds: float | None, *pieces: list[Any]
) -> list[Model | None]:
    """The models of some cells, whose rows are in pieces; None after so many seconds; runs on a worker."""
    with Limit(seconds, shared=True) as limit:
        return [
            None if limit.over else train_cell(estimator, joined([piece[c] for piece in pieces]), y, weight)
            for c, (y, weight) in enumerate(targets)
        ]
