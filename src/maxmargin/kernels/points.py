"""Data made ready for one kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin._sklearn import safe_indexing
from maxmargin.kernels._columns import occurring, renumbered

Array = NDArray[Any]


@dataclass(frozen=True)
class Points:
    """Data made ready for one kernel: contiguous, in working precision, with norms.

    `X` is a dense array or a canonical CSR matrix (for callable kernels: whatever the user gave), `norm` the
    scaled squared norms (rbf) or 1-norms (sparse laplacian), `centre` what was subtracted from every row (rbf
    and laplacian do not see a translation, rounding errors do), `panels` a second layout for many rows
    against the same points (see `Kernel.lay_out`), `distant` the rows whose products would cancel (see
    `Distant`), `columns` the original columns of a sparse `X` where those that occur were renumbered (see
    `maxmargin.kernels._columns`).
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
        return sp.issparse(self.X)

    def take(self, index: Array) -> Points:
        """The points with the given indices."""
        X = safe_indexing(self.X, index) if not hasattr(self.X, "dtype") else self.X[index]
        norm = None if self.norm is None else self.norm[index]
        distant = None if self.distant is None else self.distant.take(index)
        return Points(X, len(index), norm, self.centre, distant=distant, columns=self.columns)


@dataclass(frozen=True)
class Distant:
    """Rows so far from the centre that an exponent computed from their norms would be wrong.

    `X` holds them in float64 as they were given, `at` the place of each row of the points in `X`, or -1.
    Their kernel values with each other come from differences; with all others they are 0, or accurate.
    """

    X: Any
    at: Array

    def take(self, index: Array) -> Distant | None:
        """Those among the given rows."""
        at = self.at[index]
        return Distant(self.X, at) if (at >= 0).any() else None


def numbered(X: Any, like: Points | None, sparse: bool) -> tuple[Any, Array | None]:
    """Sparse rows with the columns of `like`, or those that occur, and what these are.

    It comes after the norms, to which columns that `like` does not have contribute too.
    """
    if not sparse:
        return X, None
    columns = occurring(X) if like is None else like.columns
    return renumbered(X, columns), columns
