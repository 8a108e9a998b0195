"""Rows on demand: the data behind a Gram matrix, for compiled loops that compute kernel values themselves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._types import Floats, Index
from maxmargin.gram.certified import CertifiedRows
from maxmargin.gram.nearest import nearest
from maxmargin.kernels.panels import Lines


class OnDemand(NamedTuple):
    """The samples as an RBF kernel reads them; see `maxmargin.kernels.panels.Panels`."""

    lines: Lines
    #: Number of features.
    d: int
    #: Scaled squared norms of the samples.
    norm: NDArray[Any]
    #: Factor of products in the exponent.
    slope: float

    @staticmethod
    def of(gram: CertifiedRows) -> OnDemand | None:
        """The samples of `gram`; None for other kernels, or where distant rows need differences."""
        points = gram.points
        if gram.kernel.name != "rbf" or points.distant is not None or points.norm is None:
            return None
        return OnDemand(Lines.of(points.X), points.X.shape[1], points.norm, gram.kernel.slope)


class ExactSamples(NamedTuple):
    """The data as they were given, for RBF kernel values in float64."""

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]
    dense: bool
    #: Row of the data for each sample.
    order: Index
    centre: Floats
    slope: float

    @staticmethod
    def of(gram: CertifiedRows) -> ExactSamples | None:
        """The data of `gram`; None for other kernels."""
        if gram.kernel.name != "rbf":
            return None
        order = gram.columns if gram.index is None else gram.index
        centre = gram.points.centre
        centre = np.zeros(gram.X.shape[1]) if centre is None else centre
        lines = Lines.of(gram.X)
        if gram.dtype == np.float64:  # so that loops over float64 rows are compiled for one type of data
            lines = lines._replace(data=lines.data.astype(np.float64, copy=False))
        return ExactSamples(*lines, order, centre, gram.kernel.slope)


class DataRows(CertifiedRows):
    """Parts of the interface of rows that depend on the data."""

    @property
    def on_demand(self) -> OnDemand | None:
        """Data for compiled loops that compute rows themselves; None where they cannot."""
        return OnDemand.of(self)

    @property
    def exact_data(self) -> ExactSamples | None:
        """Data for compiled loops that compute values in float64; None where they cannot."""
        return ExactSamples.of(self)

    @property
    def panelled(self) -> bool:
        """Whether rows are computed from panels, so that a single row costs no more than one of many."""
        return self.laid_out.panels is not None

    @property
    def by_distance(self) -> bool:
        """Whether kernel values fall with the distance, so that `nearest` needs none."""
        return self.kernel.name == "rbf"

    def nearest(self, rows: Index, others: Index) -> tuple[Index, Floats]:
        """For each of `rows` the place of the nearest of `others`, and a distance that orders pairs."""
        return nearest(self, rows, others)
