"""Some rows and columns of a Gram matrix, sharing the rows of the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin._compiled.lazy import lazy
from maxmargin._types import Floats, Index, Mask, RowData, Rows, Tally
from maxmargin.gram.on_demand import DataRows
from maxmargin.kernels.features import Features

Array = NDArray[Any]


class View:
    """Some rows and columns of a `Gram` that holds all rows, with its interface."""

    # The rows of the table have columns that are not in the view: computing whole rows may be a waste.
    holds_all = in_place = False
    borrower = None

    def __init__(self, base: DataRows, index: Index) -> None:
        self.base, self.columns, self.n = base, index, len(index)
        self.dtype = base.dtype
        self.diag: Floats = base.diag[index]
        self.threads, self.capacity, self.cache_bytes = base.threads, base.capacity, base.cache_bytes
        self.cost = base.cost
        self.n_evals = self.n_calls = 0
        self._found: tuple[Index, list[int]] | None = None

    @property
    def table(self) -> Array:
        """Cached rows, all columns: row i is ``table[slot[i], columns]``."""
        return self.base.table

    @property
    def slot(self) -> Index:
        """Row of `table` for each row of the view."""
        return self.base.slot[self.columns]

    def ensure(self, rows: ArrayLike) -> None:
        """See `Gram.ensure`; the columns of the view."""
        self.base.ensure(self._own(rows), self._segments, tally=self)

    def complete(self, row: int) -> None:
        """See `Gram.complete`."""
        self.base.complete(int(self.columns[row]), tally=self)

    def held(self, rows: Index) -> Mask:
        """See `Gram.held`; complete in the columns of the view."""
        return self.base.held(self.columns[rows], self._segments)

    @property
    def _segments(self) -> list[int]:
        """The base's segments that contain the columns; a base that opens its cache again has others."""
        if self._found is None or self._found[0] is not self.base.segments:
            self._found = self.base.segments, self.base.segments_of(self.columns)
        return self._found[1]

    def rows(self, idx: ArrayLike) -> Array:
        """See `Gram.rows`."""
        out = self.base.rows(self._own(idx), tally=self)[:, self.columns]
        out.flags.writeable = False
        return out

    def block(self, rows: ArrayLike, columns: ArrayLike) -> Array:
        """See `Gram.block`; the whole block of the view comes from the shared rows."""
        order = np.asarray(rows, dtype=np.intp)
        if len(order) == self.n and np.array_equal(order, columns):
            whole = self.base.square(self.columns, self)
            if whole is not None:
                same = np.array_equal(order, np.arange(self.n))
                return whole if same else whole[np.ix_(order, order)]
        return self.base.block(self.columns[order], self._own(columns), tally=self)

    def add(
        self,
        out: Array,
        idx: ArrayLike,
        coef: ArrayLike,
        *,
        keep: Mask | None = None,
        tally: Tally | None = None,
    ) -> None:
        """See `Gram.add`; the base keeps all rows."""
        self.base.add(out, self._own(idx), coef, self.columns, tally=tally or self)

    def count(self, evals: int = 0, calls: int = 0) -> None:
        """See `Gram.count`; a view counts the values that it uses, and those that are computed for it."""
        self.n_evals += int(evals)
        self.n_calls += int(calls)

    def double(self, cache_bytes: int | None = None) -> Rows:
        """See `Gram.double`; the result has rows of its own, in the budget that the base does not use."""
        used = 0 if self.base.matrix is not None else self.base.n**2 * self.base.dtype.itemsize
        budget = max(0, self.base.cache_bytes - used) if cache_bytes is None else cache_bytes
        precise = self.base.relative(np.float64, self.columns, budget)
        if cache_bytes is None:
            precise.count(evals=self.n_evals, calls=self.n_calls)
        return precise

    @property
    def on_demand(self) -> RowData | None:
        """See `Gram.on_demand`; samples are those of the base, see `columns`."""
        return self.base.on_demand

    def gather(self, rows: Index) -> RowData:
        """See `Gram.gather`."""
        return self.base.gather(self.columns[rows])

    @lazy
    def features(self) -> Features | None:
        """See `Gram.features`; a copy of the samples in the view."""
        whole = self.base.features
        return None if whole is None else Features(whole.X[self.columns])

    @property
    def by_frequency(self) -> tuple[Any, ...] | None:
        """See `Gram.by_frequency`; samples are those of the base, see `columns`."""
        return self.base.by_frequency

    @property
    def panelled(self) -> bool:
        """See `Gram.panelled`."""
        return self.base.panelled

    @property
    def given(self) -> bool:
        """See `Gram.given`."""
        return self.base.given

    @property
    def by_distance(self) -> bool:
        """See `Gram.by_distance`."""
        return self.base.by_distance

    def nearest(self, rows: Index, others: Index) -> tuple[Index, Floats]:
        """See `Gram.nearest`."""
        return self.base.nearest(self.columns[rows], self.columns[others])

    @property
    def exact_data(self) -> None:
        """None: compiled loops number the samples of the base."""

    @property
    def releases_gil(self) -> bool:
        """See `Gram.releases_gil`."""
        return self.base.releases_gil

    def use_one_thread(self) -> None:
        """See `Gram.use_one_thread`."""
        self.base.use_one_thread()
        self.threads = self.base.threads

    def view(self, index: ArrayLike, cache_bytes: int | None = None) -> Rows:
        """See `Gram.view`; the rows are still those of the base."""
        return View(self.base, self._own(index))

    def part(self, index: Index) -> Rows | None:
        """Return None: the rows of a view are in the cache of its base."""
        return None

    def lend(self, borrower: Any = None) -> None:
        """Do nothing: the budget is that of the base."""

    def reopen(self) -> None:
        """Do nothing: the budget of a view is never lent."""

    def exact(self, rows: Index, columns: Index, coef: Array) -> Floats:
        """See `Gram.exact`."""
        return self.base.exact(self.columns[rows], self.columns[columns], coef)

    def sum_cost(self, rows: int, columns: int) -> float:
        """See `Gram.sum_cost`."""
        return self.base.sum_cost(rows, columns)

    def accurate(self, rows: Index, columns: Index, coef: Array, factor: Array) -> Floats:
        """See `Gram.accurate`."""
        return self.base.accurate(self.columns[rows], self.columns[columns], coef, factor)

    def bound(self, rows: Index, columns: Index, coef: Array, double: bool = False) -> Floats:
        """See `Gram.bound`."""
        return self.base.bound(self.columns[rows], self.columns[columns], coef, double)

    def largest_bound(self, double: bool = False) -> float:
        """See `Gram.largest_bound`."""
        return self.base.largest_bound(double)

    def accurate_bound(self, error: Floats, size: float) -> Floats:
        """See `Gram.accurate_bound`."""
        return self.base.accurate_bound(error, size)

    def _own(self, rows: ArrayLike) -> Index:
        """Rows of the base for some rows of the view."""
        return self.columns[np.asarray(rows, dtype=np.intp)]
