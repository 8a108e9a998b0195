"""Kernel values that were given as a matrix, read where they are.

Nothing is converted or sorted: rows and columns are found through the numbers of the samples, values are
float32 or float64 as they were given, and only those that are asked for are ever read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _costs as costs
from maxmargin._compiled.jit import REORDER, compiled
from maxmargin._compiled.memory import writable
from maxmargin._types import Floats, Index

Array = NDArray[Any]

# Difference of two mirrored values, relative to the largest one, up to which rounding explains it.
_ROUNDING = 1e-6


class Given:
    """Some rows of a kernel matrix.

    Parameters
    ----------
    K : ndarray
        Values with all training samples, float32 or float64.
    samples : ndarray of int, optional
        The rows; all by default. Rows of training samples are columns too.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.kernels.given import Given
    >>> given = Given.of_training(np.array([[4.0, 1.0, 2.0], [1.0, 5.0, 3.0], [2.0, 3.0, 6.0]]))
    >>> given[np.array([2, 0])].block(np.array([0]), np.array([0, 1]))
    array([[6., 2.]])
    """

    def __init__(self, K: Array, samples: Index | None = None) -> None:
        self.K = writable(K)  # for compiled code, which only reads it
        self.samples = samples

    @classmethod
    def of_training(cls, X: Any, samples: Index | None = None) -> Given:
        """Read a square matrix by its rows in memory.

        Those of a matrix in Fortran order are its columns, which are the same unless it is not symmetric.
        """
        K = as_floats(X)
        if not K.flags.c_contiguous:
            K = K.T if K.flags.f_contiguous and _symmetric(K) else np.ascontiguousarray(K)
        return cls(K, samples)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the values."""
        return self.K.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and of training samples."""
        return len(self.K) if self.samples is None else len(self.samples), self.K.shape[1]

    def __getitem__(self, index: Index) -> Given:
        """Some of the rows, without reading them."""
        return Given(self.K, self._at(index))

    def _at(self, index: Index) -> Index:
        return index if self.samples is None else self.samples[index]

    def table(self, dtype: np.dtype[Any]) -> Array | None:
        """The whole matrix if it is in this order and precision."""
        return self.K if self.samples is None and self.K.dtype == dtype else None

    def diagonal(self) -> Floats:
        """Values of training samples with themselves."""
        own = np.diagonal(self.K)
        return np.asarray(own if self.samples is None else own[self.samples], dtype=np.float64)

    def fill(self, others: Given, c0: int, c1: int, out: Array, slots: Array, first: int) -> None:
        """``out[slots, first : first + c1 - c0]`` = the values of these rows with the samples c0:c1."""
        columns = np.arange(c0, c1) if others.samples is None else others.samples[c0:c1]
        rows = np.arange(len(self.K)) if self.samples is None else self.samples
        if self.K.flags.c_contiguous:
            _gather(self.K, rows, columns, out, slots, first)
        else:  # a column at a time
            out[slots, first : first + c1 - c0] = self.K.T[columns][:, rows].T

    def block(self, rows: Index, columns: Index) -> Array:
        """The values of some of the rows with others."""
        out = np.empty((len(rows), len(columns)), self.dtype)
        _gather(self.K, self._at(rows), self._at(columns), out, np.arange(len(rows)), 0)
        return out

    def sums(self, rows: Index, columns: Index, coef: Floats) -> Floats:
        """``K[rows, columns] @ coef`` in float64."""
        out = np.empty(len(rows))
        _sums(self.K, self._at(rows), self._at(columns), np.ascontiguousarray(coef, dtype=np.float64), out)
        return out


def as_floats(X: Any) -> Array:
    """X as an array of float32 or float64."""
    K = np.asarray(X)
    return K if K.dtype in (np.float32, np.float64) else K.astype(np.float64)


def _symmetric(K: Array) -> bool:
    """Whether mirrored values are equal but for rounding: all of a small matrix, else a sample."""
    n = len(K)
    if n * n <= costs.MIRRORED_VALUES:
        i, j = np.divmod(np.arange(n * n), max(1, n))
    else:
        i, j = np.random.default_rng(0).integers(n, size=(2, costs.MIRRORED_VALUES))
    # Relative to the lengths of both samples in feature space.
    size = np.sqrt(np.abs(np.diagonal(K).astype(np.float64)))
    difference = np.abs(K[i, j].astype(np.float64) - K[j, i])
    return bool((difference <= _ROUNDING * size[i] * size[j]).all())


@compiled()
def _gather(K, rows, columns, out, slots, first):
    for r in range(len(rows)):
        line, target = K[rows[r]], out[slots[r], first : first + len(columns)]
        for c in range(len(columns)):
            target[c] = line[columns[c]]


@compiled(fastmath=REORDER)
def _sums(K, rows, columns, coef, out):
    for r in range(len(rows)):
        line, total = K[rows[r]], 0.0
        for c in range(len(columns)):
            total += coef[c] * np.float64(line[columns[c]])
        out[r] = total
