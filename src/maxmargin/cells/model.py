"""The model of a fit on cells: a partition, and the model of each cell."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.limits import current
from maxmargin._types import Floats, Index
from maxmargin.cells.nearest import Nearest
from maxmargin.cells.partition import Partition, sample_rows, sample_size
from maxmargin.cells.rows import LocalRows, Rows
from maxmargin.cells.training import Model, constant_of, predict_cell
from maxmargin.solvers.solution import ended

# Seconds between two lines about the progress.
_PAUSE = 5.0


@dataclass(frozen=True)
class Options:
    """How rows become cells; see the parameters of `CellSVC`."""

    cell_size: int
    overlap: float
    seed: int
    n_jobs: int | None
    verbose: bool = False


@dataclass(frozen=True)
class CellModel:
    """A model for each cell of a partition.

    Attributes
    ----------
    partition : Partition
        The cells.
    models : list of Model
        Their models, see `maxmargin.cells.training`.
    sizes : ndarray of int of shape (n_cells,)
        Rows that each was trained on.
    """

    partition: Partition
    models: list[Model]
    sizes: Index

    @classmethod
    def train(
        cls, rows: Rows, y: NDArray[Any], weight: Floats, estimator: Any, options: Options
    ) -> CellModel:
        """Train all cells within the limit in force.

        Parameters
        ----------
        rows : Rows
            The rows, in this process or on a cluster.
        y : ndarray of shape (n,)
            Numbers of classes (integers), or targets.
        weight : ndarray of shape (n,)
            Positive factors of C.
        estimator : SVC or SVR
            The parameters of all cells.
        options : Options
            How rows become cells.

        Returns
        -------
        CellModel
            Cells without rows are left out; cells that there was no time for have a `Constant`.
        """
        n = rows.shape[0]
        sample = rows.take(sample_rows(n, sample_size(n, options.cell_size), options.seed))
        partition = Partition.of_sample(sample, n, options.cell_size, options.seed, options.n_jobs)
        two = options.overlap > 0 and len(partition) > 1
        cells = rows_of_cells(rows.nearest(partition, two=two), len(partition), options.overlap)
        filled = np.array([len(own) > 0 for own in cells])
        cells = [own for own in cells if len(own)]
        report = _Report(len(cells)) if options.verbose else lambda count: None
        models = rows.train(estimator, cells, y, weight, report)
        for c, own in enumerate(cells):
            if models[c] is None:
                models[c] = constant_of(y[own], weight[own], ended(current()))
        return cls(partition.only(filled), models, np.array([len(own) for own in cells]))

    def values(
        self,
        X: Any,
        n_jobs: int | None,
        of_cell: Callable[[Model, Any], NDArray[Any]] = predict_cell,
        columns: int = 0,
    ) -> NDArray[Any]:
        """Values of rows, each from the model of its own cell.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n, n_features)
            Rows.
        n_jobs : int or None
            Threads.
        of_cell : callable
            Computes values from a model and rows.
        columns : int
            Values of a row; 0 for a vector.
        """
        if len(self.models) == 1:
            return np.asarray(of_cell(self.models[0], X), dtype=np.float64)
        rows = LocalRows(X, n_jobs)
        cells = rows_of_cells(rows.nearest(self.partition), len(self.models))
        out = np.empty((X.shape[0], columns) if columns else X.shape[0])

        def fill(c: int, take: Callable[[Index], Any]) -> None:
            if len(cells[c]):
                out[cells[c]] = of_cell(self.models[c], take(cells[c]))

        rows.each(fill, cells)
        return out


def rows_of_cells(nearest: Nearest, k: int, overlap: float = 0.0) -> list[Index]:
    """The rows that each of k cells is trained on, ascending.

    With an overlap those of its neighbours that are closest to the border come on top.
    """
    cells = _by_number(nearest.own, k)
    if nearest.second is None or nearest.far is None:
        return cells
    for c, rows in enumerate(_by_number(nearest.second, k)):
        closest = rows[np.argsort(nearest.far[rows], kind="stable")[: int(overlap * len(cells[c]))]]
        cells[c] = np.sort(np.concatenate([cells[c], closest]))
    return cells


def _by_number(number: NDArray[np.int32], k: int) -> list[Index]:
    order = np.argsort(number, kind="stable").astype(np.intp)
    return np.split(order, np.cumsum(np.bincount(number, minlength=k))[:-1])


class _Report:
    """Writes how many cells are trained, every few seconds and at the end."""

    def __init__(self, total: int) -> None:
        self._total, self._done, self._lock = total, 0, threading.Lock()
        self._began = self._said = time.monotonic()

    def __call__(self, count: int) -> None:
        with self._lock:
            self._done += count
            now = time.monotonic()
            if now - self._said < _PAUSE and self._done < self._total:
                return
            self._said, seconds = now, now - self._began
            left = seconds * (self._total - self._done) / self._done
        print(
            f"{self._done:,} of {self._total:,} cells, {seconds:.0f} s, about {left:.0f} s left",
            file=sys.stderr,
            flush=True,
        )
