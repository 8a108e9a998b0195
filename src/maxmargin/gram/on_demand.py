"""Data for compiled loops that compute kernel rows themselves, when and where they need them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._types import Floats, Index
from maxmargin.kernels.panels import Lines

if TYPE_CHECKING:
    from maxmargin.gram.gram import Gram


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
    def of(gram: Gram) -> OnDemand | None:
        """The samples of `gram`; None for other kernels, or where distant rows need differences."""
        points = gram.points
        if gram.kernel.name != "rbf" or points.distant is not None:
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
    def of(gram: Gram) -> ExactSamples:
        """The data of `gram`."""
        order = gram.columns if gram.index is None else gram.index
        centre = gram.points.centre
        centre = np.zeros(gram.X.shape[1]) if centre is None else centre
        return ExactSamples(*Lines.of(gram.X), order, centre, gram.kernel.slope)
