"""Sums for the certificate: in float64 or with twice its digits, and bounds of their errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from maxmargin import _costs as costs
from maxmargin._compiled.lazy import lazy
from maxmargin._sklearn import safe_indexing
from maxmargin._types import Floats, Index, Rows
from maxmargin.gram.sums import SummedRows
from maxmargin.kernels import _accurate, _accurate_joined, composed
from maxmargin.kernels.expansion import expand
from maxmargin.kernels.rounding import Rounding
from maxmargin.kernels.streamed import streams

Array = NDArray[Any]


class CertifiedRows(SummedRows):
    """Accurate sums of the rows of a `Gram`, which are neither cached nor counted."""

    @lazy
    def rounding(self) -> Rounding:
        """Bounds of the rounding errors of the rows."""
        return self.kernel.rounding(self.points, self.dtype, self.diag)

    @lazy
    def double_rounding(self) -> Rounding:
        """Bounds of the rounding errors of float64 values from the original data."""
        if self.dtype == np.float64:
            return self.rounding
        return self.kernel.rounding(self.points, np.float64, self.diag)

    def exact(self, rows: Index, columns: Index, coef: Array) -> Floats:
        """Return ``K[rows, columns] @ coef`` in float64 throughout, independent of `dtype`."""
        if self.kernel.name == "precomputed":
            if costs.FEW_ROWS * len(rows) > self.n and self.held(columns).all():
                whole = np.zeros(len(rows))
                self.add(whole, columns, coef, rows, _Uncounted())
                return whole
            out = np.empty(len(rows))

            def work(a: int, b: int) -> None:
                out[a:b] = self.points.X.sums(rows[a:b], columns, coef)

            self._spread(work, len(rows), float(len(columns)))
            return out
        if self.features is not None:
            return self.features.values(self.features.weights(columns, coef), rows)
        rows, columns = self._samples(rows), self._samples(columns)
        stream = self.points.streamed and streams(
            self.X, np.dtype(np.float64), len(columns), self.points.sparse
        )
        vectors = self.kernel.prepare(self.X, np.float64, index=columns, like=self.points, stream=stream)
        if vectors.sparse and (stream or len(rows) > costs.EXPANSION_ROWS):
            vectors = self.kernel.lay_out(vectors)
        if self.points.streamed:
            samples: Any = _Selected(self.X, rows)
        else:
            samples = self.X[rows] if hasattr(self.X, "dtype") else safe_indexing(self.X, rows)
        ends = np.array([0, len(columns)])
        return expand(self.kernel, samples, vectors, coef[None], ends, threads=self.threads)[0, :, 0]

    def sum_cost(self, rows: int, columns: int) -> float:
        """Kernel values that `exact` and `accurate` are worth, for so many rows and columns."""
        return float(rows + columns if self.features is not None else rows * columns)

    def accurate(self, rows: Index, columns: Index, coef: Array, factor: Array) -> Floats:
        """Return ``K[rows, columns] @ (coef * factor)`` with twice the digits of float64.

        Slower than `exact`; every entry is rounded once.
        """
        if self.kernel.name == "precomputed":
            return _accurate.weighted_sums(self.points.X.block(rows, columns), coef, factor)
        if self._accurate_kernel:
            samples = self._samples(rows), self._samples(columns)
            return _accurate_joined.sums(self.kernel.name, self.X, *samples, coef, factor)
        if callable(self.kernel.name):
            values = np.empty((len(rows), len(columns)))  # not in `dtype`, which may be float32
            A, B = self.points.take(rows), self.points.take(columns)
            if self.kernel.composed:
                B = self.kernel.prepare(self.X, np.float64, index=self._samples(columns), like=self.points)
                A = self.kernel.prepare(self.X, np.float64, index=self._samples(rows), like=self.points)
            self.kernel.fill(A, B, 0, len(columns), values, np.arange(len(rows)))
            return _accurate.weighted_sums(values, coef, factor)
        if self.features is not None:
            return _accurate.linear_sums(self.features, rows, columns, coef, factor)
        return _accurate.sums(self.kernel, self.X, self._samples(rows), self._samples(columns), coef, factor)

    def bound(self, rows: Index, columns: Index, coef: Array, double: bool = False) -> Floats:
        """Bound the rounding errors of ``K[rows, columns] @ coef`` (see `maxmargin.kernels.rounding`).

        The sum is computed from the rows or, if `double`, by `exact`.
        """
        return (self.double_rounding if double else self.rounding).of_sum(rows, columns, coef)

    def largest_bound(self, double: bool = False) -> float:
        """Bound what `bound` returns for any rows and coefficients, per unit of the sum of ``|coef|``."""
        return (self.double_rounding if double else self.rounding).of_any_sum(self.n)

    def accurate_bound(self, error: Floats, size: float) -> Floats:
        """Bound the errors of sums from `accurate`, besides the rounding of the results.

        `error` bounds those of the same sums from `exact`, and `size` is the sum of ``|coef|``. The remaining
        error is that of the exponential function, or of a user's function.
        """
        if self.kernel.translation_invariant:
            return np.full(len(error), 2.0**-48 * size)
        if self._accurate_kernel:
            return np.minimum(error, self._accurate_error * size)
        return (1.0 if callable(self.kernel.name) else 2.0**-45) * error

    @property
    def _accurate_kernel(self) -> bool:
        """Whether the kernel is one of named parts, whose values have an accurate form."""
        return self.kernel.composed and composed.has_accurate_sums(self.kernel.name)

    @lazy
    def _accurate_error(self) -> float:
        """Largest error of an accurate value of such a kernel."""
        return composed.accurate_error(self.kernel.name, self.points)

    def relative(self, dtype: DTypeLike, index: Index, cache_bytes: int | None = None) -> Rows:
        """Return the rows and columns `index` with a cache of their own."""
        raise NotImplementedError

    def _samples(self, rows: Index) -> Index:
        """Positions of `rows` in the data."""
        return rows if self.index is None else self.index[rows]


class _Selected:
    """Rows of data that are copied when they are read."""

    def __init__(self, X: Any, rows: Index) -> None:
        self.X, self.rows, self.dtype, self.shape = X, rows, X.dtype, (len(rows), X.shape[1])

    def __getitem__(self, part: slice) -> Any:
        """Some of the rows."""
        return self.X[self.rows[part]]


class _Uncounted:
    """Does not count the values of the certificate."""

    def count(self, evals: int = 0, calls: int = 0) -> None:
        """Count nothing."""
