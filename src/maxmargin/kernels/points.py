"""Data prepared for one kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin._sklearn import safe_indexing
from maxmargin.kernels._columns import occurring, renumbered
from maxmargin.kernels.streamed import Streamed

Array = NDArray[Any]


@dataclass(frozen=True)
class Points:
    """Data prepared for one kernel: contiguous, in working precision, with norms.

    Attributes
    ----------
    X : ndarray, CSR matrix, Streamed or any
        Dense array or canonical CSR matrix, or what makes parts of one; for callable kernels the object that
        was given, for precomputed ones `maxmargin.kernels.given.Given`.
    n : int
        Number of points.
    norm : ndarray of shape (n,), optional
        Scaled squared norms (rbf) or 1-norms (sparse laplacian).
    centre : ndarray, optional
        The vector that was subtracted from every row: rbf and laplacian are invariant to translations, their
        rounding errors are not.
    panels : Panels, optional
        A second layout for many rows against the same points, see `Kernel.lay_out`.
    distant : Distant, optional
        The rows whose products would cancel.
    columns : ndarray of int, optional
        The original columns of a sparse `X` whose columns were renumbered (`maxmargin.kernels._columns`).
    """

    X: Any
    n: int
    norm: Array | None = None
    centre: Array | None = None
    panels: Any = None
    distant: Distant | None = None
    columns: Array | None = None

    @property
    def sparse(self) -> bool:
        """Whether products with these points use the sparse loop."""
        return self.X.sparse if isinstance(self.X, Streamed) else sp.issparse(self.X)

    @property
    def streamed(self) -> bool:
        """Whether rows are prepared when they are asked for."""
        return isinstance(self.X, Streamed)

    def take(self, index: Array) -> Points:
        """The points with the given indices."""
        X = safe_indexing(self.X, index) if not hasattr(self.X, "dtype") else self.X[index]
        norm = None if self.norm is None else self.norm[index]
        distant = None if self.distant is None else self.distant.take(index)
        return Points(X, len(index), norm, self.centre, distant=distant, columns=self.columns)


@dataclass(frozen=True)
class Distant:
    """Rows so far from the centre that an exponent computed from their norms would be inaccurate.

    Their kernel values with each other are computed from differences; with all others they are 0, or
    accurate.

    Attributes
    ----------
    X : ndarray or CSR matrix
        The rows in float64, not centred.
    at : ndarray of int of shape (n,)
        Position in `X` of each point, or -1.
    """

    X: Any
    at: Array

    def take(self, index: Array) -> Distant | None:
        """The distant rows among the points with the given indices, or None."""
        at = self.at[index]
        return Distant(self.X, at) if (at >= 0).any() else None


def numbered(X: Any, like: Points | None, sparse: bool) -> tuple[Any, Array | None]:
    """Renumber the columns of sparse rows as in `like`, or those that occur; return also these columns.

    To be called after the norms are computed, because columns that `like` does not have contribute to them.
    """
    if not sparse:
        return X, None
    if isinstance(X, Streamed) and like is None:
        return X, None  # `compact` has renumbered them
    columns = occurring(X) if like is None else like.columns
    return renumbered(X, columns), columns
