"""The nearest centre of each row, exactly: it does not depend on blocks, threads or the BLAS.

A product of matrices in float32 finds it for nearly all rows. Where two centres are nearly equally far, the
distances are computed again in float64, each from the row and the centre alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin._compiled.threads import Threads
from maxmargin._types import Floats, Index

# Scores that are computed at a time. [values; 2 MB of float32 stay in the cache]
_BLOCK = 1 << 19
# Rows that a thread takes at a time.
_STEP = 1 << 15


class Nearest(NamedTuple):
    """The nearest centre of each row; if asked for, the next one and the distance from their border."""

    own: NDArray[np.int32]
    second: NDArray[np.int32] | None = None
    far: Floats | None = None


def nearest_centres(X: Any, centres: Floats, *, two: bool = False, n_jobs: int | None = 1) -> Nearest:
    """Find the nearest centre of each row, the first of several that are equally far.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, n_features)
        Rows, of which some are used at a time.
    centres : ndarray of shape (n_centres, n_features)
        The centres, float64.
    two : bool
        Whether to find the second one too; there have to be two centres.
    n_jobs : int
        Threads.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.cells.nearest import nearest_centres
    >>> nearest_centres(np.array([[1.0], [2.0], [4.0]]), np.array([[0.0], [4.0]])).own
    array([0, 0, 1], dtype=int32)
    """
    n, several = X.shape[0], len(centres) > 1
    own = np.zeros(n, np.int32)
    second, far = (np.zeros(n, np.int32), np.zeros(n)) if two and several else (None, None)
    scorer = _SparseScorer(centres) if sp.issparse(X) else _Scorer(centres)

    def run(start: int) -> None:
        for s, scores in scorer.blocks(X, start, min(n, start + _STEP)):
            at = slice(s, s + len(scores.values))
            own[at] = first = scores.best()
            if second is not None and far is not None:
                scores.leave_out(first)
                second[at] = other = scores.best()
                far[at] = scores.from_plane(first, other)

    if several:
        with Threads(n_jobs) as threads:
            threads.run(run, [(s,) for s in range(0, n, _STEP)])
    return Nearest(own, second, far)


class _Scores:
    """Scores of some rows for all centres, the larger the nearer."""

    def __init__(self, rows: Any, centres: Floats, values: NDArray[Any], error: Floats) -> None:
        self.rows, self.centres, self.values = rows, centres, values
        #: A bound of the error of a difference, for each row.
        self.error = error

    def best(self) -> Index:
        """The nearest centre of each row."""
        values, at = self.values, np.arange(len(self.values))
        first = np.asarray(values.argmax(axis=1))
        best = values[at, first]
        values[at, first] = -np.inf
        with np.errstate(invalid="ignore"):
            certain = best - values.max(axis=1) > self.error
        values[at, first] = best
        for i in np.flatnonzero(~certain):
            with np.errstate(invalid="ignore"):
                close = np.flatnonzero(~(best[i] - values[i] > self.error[i]))
            close = close[values[i, close] != -np.inf]
            if len(close) > 1:
                first[i] = close[np.argmin(self._squares(np.full(len(close), i), close))]
        return first

    def leave_out(self, columns: Index) -> None:
        """Leave out one centre for each row."""
        self.values[np.arange(len(columns)), columns] = -np.inf

    def from_plane(self, first: Index, second: Index) -> Floats:
        """Distances from the plane between two centres."""
        at = np.arange(len(first))
        between = np.linalg.norm(self.centres[first] - self.centres[second], axis=1)
        difference = self._squares(at, second) - self._squares(at, first)
        return np.asarray(difference / (2.0 * np.maximum(between, np.finfo(float).tiny)))

    def _squares(self, rows: Index, centres: Index) -> Floats:
        """Squared distances in float64."""
        X = self.rows[rows]
        difference = (X.toarray() if sp.issparse(X) else X) - self.centres[centres]
        return np.asarray(np.square(difference).sum(axis=1))


class _Scorer:
    """Scores x'c - |c|²/2 of dense rows in float32, after a shift and a scaling of rows and centres."""

    def __init__(self, centres: Floats) -> None:
        self.centres = centres
        # A shift that float32 has exactly, and a power of two, so that neither adds a rounding error.
        self._shift = centres.mean(axis=0).astype(np.float32)
        low = centres - self._shift
        largest = float(np.abs(low).max(initial=0.0))
        self._scale = 2.0 ** -np.round(np.log2(largest)) if largest > 0 else 1.0
        low *= self._scale
        square = np.einsum("ij,ij->i", low, low)
        self._columns = np.concatenate([low.T, -0.5 * square[None]]).astype(np.float32)
        self._largest = float(square.max(initial=0.0))

    def blocks(self, X: Any, start: int, end: int) -> Iterator[tuple[int, _Scores]]:
        """The scores of the rows from `start` to `end`, some at a time."""
        k, step = self._columns.shape[0], max(1, _BLOCK // len(self.centres))
        low = np.ones((step, k), np.float32)
        # Twice the bound for products, and for the rounding of their factors to float32.
        unit = 2.0 * (k + 8) * float(np.finfo(np.float32).eps)
        for s in range(start, end, step):
            rows = X[s : min(end, s + step)]
            own = low[: len(rows)]
            with np.errstate(over="ignore", invalid="ignore"):  # then nothing is certain
                own[:, :-1] = (rows - self._shift) * rows.dtype.type(self._scale)
                length = np.einsum("ij,ij->i", own, own, dtype=np.float64)
                error = unit * (np.sqrt(length * self._largest) + self._largest)
                yield s, _Scores(rows, self.centres, own @ self._columns, error)


class _SparseScorer:
    """The same for sparse rows, in float64: they cannot be shifted."""

    def __init__(self, centres: Floats) -> None:
        self.centres = centres
        self._columns = np.ascontiguousarray(centres.T)
        self._square = np.einsum("ij,ij->i", centres, centres)

    def blocks(self, X: Any, start: int, end: int) -> Iterator[tuple[int, _Scores]]:
        """The scores of the rows from `start` to `end`, some at a time."""
        step, largest = max(1, _BLOCK // len(self.centres)), float(self._square.max())
        unit = 2.0 * (X.shape[1] + 8) * float(np.finfo(np.float64).eps)
        for s in range(start, end, step):
            rows = X[s : min(end, s + step)].astype(np.float64)
            with np.errstate(over="ignore", invalid="ignore"):
                length = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
                values = np.asarray(rows @ self._columns) - 0.5 * self._square
                yield s, _Scores(rows, self.centres, values, unit * (np.sqrt(length * largest) + largest))
