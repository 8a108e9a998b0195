"""Some rows and columns of a Gram matrix, sharing the rows of the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin._types import Index

Array = NDArray[Any]


class View:
    """Some rows and columns of a `Gram`, with its interface, sharing its rows."""

    def __init__(self, base: Any, index: Index) -> None:
        self.base, self.columns, self.n = base, index, len(index)
        self.kernel, self.dtype = base.kernel, base.dtype
        self.diag = base.diag[index]
        self.threads, self.capacity, self.cache_bytes = base.threads, base.capacity, base.cache_bytes
        self.cost = base.cost
        self.n_evals = self.n_calls = 0

    #: A view shares the rows of the whole matrix, which fits the cache: see `Gram.can_part`.
    can_part = False

    @property
    def table(self) -> Array:
        """Cached rows, all columns: row i is ``table[slot[i], columns]``."""
        return self.base.table

    @property
    def slot(self) -> Index:
        """Place in `table` of each row of the view."""
        return self.base.slot[self.columns]

    def ensure(self, rows: ArrayLike) -> None:
        """See `Gram.ensure`."""
        self.base.ensure(self.columns[np.asarray(rows, dtype=np.intp)], tally=self)

    def complete(self, row: int) -> None:
        """See `Gram.complete`."""
        self.base.complete(int(self.columns[row]), tally=self)

    def held(self, rows: Index) -> NDArray[np.bool_]:
        """See `Gram.held`."""
        return self.base.held(self.columns[rows])

    def rows(self, idx: ArrayLike) -> Array:
        """See `Gram.rows`."""
        rows = self.columns[np.asarray(idx, dtype=np.intp)]
        out = self.base.rows(rows, tally=self)[:, self.columns]
        out.flags.writeable = False
        return out

    def block(self, rows: ArrayLike, columns: ArrayLike) -> Array:
        """See `Gram.block`; the whole block of the view comes from the rows that it shares."""
        own = self.columns
        if len(rows) == len(columns) == self.n:  # type: ignore[arg-type]
            whole = self.base.square(own, self)
            if whole is not None and np.array_equal(rows, columns):
                order = np.asarray(rows, dtype=np.intp)
                same = np.array_equal(order, np.arange(self.n))
                return whole if same else whole[np.ix_(order, order)]
        return self.base.block(
            own[np.asarray(rows, dtype=np.intp)], own[np.asarray(columns, dtype=np.intp)], tally=self
        )

    def add(self, out: Array, idx: ArrayLike, coef: ArrayLike, keep: object = None) -> None:
        """See `Gram.add`."""
        self.base.add(out, self.columns[np.asarray(idx, dtype=np.intp)], coef, self.columns, tally=self)

    def count(self, evals: int = 0, calls: int = 0) -> None:
        """See `Gram.count`; a view is charged for what it uses and for what it had to compute."""
        self.n_evals += int(evals)
        self.n_calls += int(calls)

    def double(self, cache_bytes: int | None = None) -> Any:
        """See `Gram.double`; the twin of a view has rows of its own, in what the base leaves free."""
        left = self.base.cache_bytes - self.base.n**2 * self.base.dtype.itemsize
        budget = max(0, left) if cache_bytes is None else cache_bytes
        twin = self.base._relative(np.float64, self.columns, budget)
        if cache_bytes is None:
            twin.n_evals, twin.n_calls = self.n_evals, self.n_calls
        return twin

    def exact(self, rows: Index, columns: Index, coef: Array) -> Array:
        """See `Gram.exact`."""
        return self.base.exact(self.columns[rows], self.columns[columns], coef)

    def accurate(self, rows: Index, columns: Index, coef: Array, factor: Array) -> Array:
        """See `Gram.accurate`."""
        return self.base.accurate(self.columns[rows], self.columns[columns], coef, factor)

    def bound(self, rows: Index, columns: Index, coef: Array, double: bool = False) -> Array:
        """See `Gram.bound`."""
        return self.base.bound(self.columns[rows], self.columns[columns], coef, double)
