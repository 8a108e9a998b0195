"""Rows on demand: the data behind a Gram matrix, for compiled loops that compute kernel values themselves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.lazy import lazy
from maxmargin._types import Floats, Index
from maxmargin.gram.certified import CertifiedRows
from maxmargin.gram.nearest import nearest
from maxmargin.kernels._form import RBF, Form
from maxmargin.kernels.inverted import InvertedIndex
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.panels import Lines
from maxmargin.kernels.points import Points


class OnDemand(NamedTuple):
    """The samples as rbf kernels and kernels of products read them; see `maxmargin.kernels.panels.Panels`."""

    lines: Lines
    #: Number of features.
    d: int
    #: Scaled squared norms of the samples, or 0.
    norm: NDArray[Any]
    #: Factor of products.
    slope: float
    form: Form

    @staticmethod
    def of(gram: CertifiedRows) -> OnDemand | None:
        """The samples of `gram`; None for other kernels, distant rows, and samples not in memory."""
        points, kernel = gram.points, gram.kernel
        if kernel.name not in ("rbf", "linear", "poly") or points.distant is not None or points.streamed:
            return None
        return OnDemand.of_points(points, kernel, gram.dtype)

    @staticmethod
    def of_points(points: Points, kernel: Kernel, dtype: np.dtype[Any]) -> OnDemand:
        """Samples that were prepared."""
        norm = np.zeros(points.n, dtype) if points.norm is None else points.norm
        form = Form.of(kernel, dtype)
        return OnDemand(Lines.of(points.X), points.X.shape[1], norm, kernel.slope, form)

    @property
    def definite(self) -> bool:
        """Whether kernel matrices of distinct samples are positive definite whatever the parameters."""
        return self.form.kind == RBF


class ByFrequency(NamedTuple):
    """The samples as an inverted index reads them; see `maxmargin.kernels.inverted.InvertedIndex`."""

    #: Entries in frequent columns, and the number of these.
    head: Lines
    d: int
    #: Entries in all other columns, and the number of these.
    rare: Lines
    lists: int

    @staticmethod
    def of(gram: CertifiedRows) -> ByFrequency | None:
        """The samples of `gram`; None without an index."""
        index = gram.laid_out.panels
        if not isinstance(index, InvertedIndex):
            return None
        head, rare = index.split(Lines.of(gram.points.X))
        return ByFrequency(head, index.data.head, rare, index.data.starts.shape[1] - 1)


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
    def of(gram: CertifiedRows) -> ExactSamples:
        """The data of `gram`; no samples for other kernels, or where distant rows need differences."""
        if gram.kernel.name != "rbf" or gram.points.distant is not None or gram.points.streamed:
            none = np.empty(0, np.int32)
            return ExactSamples(none, none, np.empty(0), True, np.empty(0, np.intp), np.empty(0), 1.0)
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

    def gather(self, rows: Index) -> OnDemand:
        """Return copies of some samples, in this order, as `on_demand` has them."""
        return OnDemand.of_points(self.points.take(rows), self.kernel, self.dtype)

    @lazy
    def by_frequency(self) -> ByFrequency | None:
        """Data for compiled loops that compute rows of wide sparse samples; None for others."""
        return ByFrequency.of(self)

    @property
    def exact_data(self) -> ExactSamples:
        """Data for compiled loops that compute values in float64; no samples where they cannot."""
        return ExactSamples.of(self)

    @property
    def by_distance(self) -> bool:
        """Whether kernel values fall with the distance, so that `nearest` needs none."""
        return self.kernel.name == "rbf"

    def nearest(self, rows: Index, others: Index) -> tuple[Index, Floats]:
        """For each of `rows` the place of the nearest of `others`, and a distance that orders pairs."""
        return nearest(self, rows, others)
