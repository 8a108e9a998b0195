"""The layout that all chunks of one data set share, so that their kernel values are those of one matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from maxmargin._types import Floats, Index
from maxmargin.kernels._columns import occurring
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.points import Points


@dataclass(frozen=True)
class Frame:
    """A kernel, and how samples are prepared for it: sparse or dense, and about which centre.

    Parameters
    ----------
    kernel : Kernel
        The kernel with its numbers.
    d : int
        Number of features.
    sparse : bool
        Whether products use the non-zeros only.
    centre : ndarray of shape (d,), optional
        Subtracted from dense samples, where the kernel allows it: a bound of rounding errors holds for all
        samples if they have the same centre.
    """

    kernel: Kernel
    d: int
    sparse: bool
    centre: Floats | None = None

    def stored(self, X: Any) -> Any:
        """Samples as they are kept and sent: CSR if products are sparse."""
        if self.kernel.opaque or not self.sparse or sp.issparse(X):
            return X
        return sp.csr_array(X)

    def prepare(self, X: Any, dtype: DTypeLike, index: Index | None = None) -> Points:
        """The rows `index` of stored samples, as columns of a matrix of kernel values."""
        if self.kernel.opaque:
            return self.kernel.prepare(X, dtype, index=index)
        if self.sparse:
            like = Points(sp.csr_array((0, self.d)), 0, columns=occurring(sp.csr_array(X)))
        else:
            like = Points(np.empty((0, self.d)), 0, centre=self.centre)
        return self.kernel.prepare(X, dtype, index=index, like=like)


def stacked(blocks: list[Any]) -> Any:
    """Blocks of rows as one; a single one is not copied."""
    if len(blocks) == 1:
        return blocks[0]
    if any(sp.issparse(block) for block in blocks):
        return sp.vstack([sp.csr_array(block) for block in blocks], format="csr")
    return np.concatenate(blocks)
