"""Statistics of the training data, computed part by part and pooled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin._types import Floats, Mask
from maxmargin.estimators._scales import disparity
from maxmargin.kernels.gamma import gamma_of_variance


@dataclass(frozen=True, eq=False)
class Summary:
    """Statistics of all entries of some rows, zeros of sparse rows included.

    Parameters
    ----------
    rows, nonzero : int
        Number of rows, and of entries that are not zero.
    sums : ndarray of shape (n_features,)
        Sums of the columns.
    mean, m2 : float
        Mean of all entries, and the sum of their squared differences from it.
    low, high : float
        The least and the largest entry.
    sample : ndarray of shape (n, n_features)
        Some of the rows, none if they are sparse.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.dask.statistics import pool, summarize
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 9.0]])
    >>> both = pool([summarize(X[:1]), summarize(X[1:])])
    >>> both.rows, both.sums, bool(np.isclose(both.variance, X.var()))
    (3, array([ 6., 13.]), True)
    """

    rows: int
    nonzero: int
    sums: Floats
    mean: float
    m2: float
    low: float
    high: float
    sample: Floats

    @property
    def variance(self) -> float:
        """Variance of all entries; exactly 0 if all are equal."""
        return 0.0 if self.low == self.high else self.m2 / (self.rows * len(self.sums))

    def gamma(self, gamma: str | float) -> float:
        """The number for the parameter gamma, see `maxmargin.kernels.resolve_gamma`."""
        if not isinstance(gamma, str):
            return float(gamma)
        return 1.0 / len(self.sums) if gamma == "auto" else gamma_of_variance(len(self.sums), self.variance)

    @property
    def unscaled(self) -> bool:
        """Whether the scales of features differ too much, as far as the sample shows."""
        return len(self.sample) > 0 and disparity(self.sample) is not None


def summarize(X: Any, kept: Mask | None = None, n_sample: int = 256) -> Summary:
    """The statistics of one part; `kept` selects the rows that count.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, n_features)
        At least one row, of finite numbers.
    kept : ndarray of bool of shape (n,), optional
        The rows that count; all by default.
    n_sample : int
        About how many rows to keep as a sample.

    Returns
    -------
    Summary
    """
    X = X if kept is None else X[kept]
    (n, d), sparse = X.shape, sp.issparse(X)
    if not n * d:
        return Summary(n, 0, np.zeros(d), 0.0, 0.0, np.inf, -np.inf, np.zeros((0, d)))
    values = X.data if sparse else X
    size, zeros = float(n) * d, float(n) * d - values.size
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.asarray(X.sum(axis=0, dtype=np.float64)).ravel()
        mean = float(values.sum(dtype=np.float64)) / size
        m2 = sum(_squares(part, mean) for part in _slices(values))
        m2 += zeros * mean * mean if zeros else 0.0  # `**` of floats raises where the result is too large
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    if zeros:
        low, high = min(low, 0.0), max(high, 0.0)
    sample = np.zeros((0, d)) if sparse else X[:: 1 + n // max(1, n_sample)].astype(np.float64)
    return Summary(n, int(np.count_nonzero(values)), sums, mean, m2, low, high, sample)


def pool(summaries: Sequence[Summary]) -> Summary:
    """The statistics of all rows from those of parts."""
    return reduce(_joined, [each for each in summaries if each.rows] or summaries[:1])


def _joined(a: Summary, b: Summary) -> Summary:
    """The parallel formula of Chan, Golub and LeVeque, "Updating Formulae", Stanford report 79-773, 1979."""
    d, n = len(a.sums), a.rows + b.rows
    delta = b.mean - a.mean
    with np.errstate(over="ignore", invalid="ignore"):
        return Summary(
            n,
            a.nonzero + b.nonzero,
            a.sums + b.sums,
            a.mean + delta * b.rows / n,
            a.m2 + b.m2 + delta * delta * (float(a.rows) * b.rows / n) * d,
            min(a.low, b.low),
            max(a.high, b.high),
            np.concatenate([a.sample, b.sample]),
        )


def _slices(values: Any) -> Any:
    """Slices of about a megabyte, so that differences are not a copy of the whole part."""
    step = max(1, (1 << 17) // max(1, values[:1].size))
    return (values[s : s + step] for s in range(0, len(values), step))


def _squares(values: Any, mean: float) -> float:
    rest = np.subtract(values, mean, dtype=np.float64)
    return float(np.square(rest, out=rest).sum())
