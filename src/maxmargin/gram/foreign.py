"""Sums of kernel values between the columns of a matrix and samples that are not among them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _costs as costs
from maxmargin._compiled.memory import aligned
from maxmargin._compiled.sums import add_rows
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.panels import Lines
from maxmargin.kernels.points import Points

Array = NDArray[Any]


def add_samples(
    kernel: Kernel, A: Points, columns: Points, coef: Array, start: int, stop: int, out: Array
) -> None:
    """``out += k(A, columns[start:stop])' coef``, tile by tile.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    A : Points
        Samples, prepared like the columns.
    columns : Points
        Samples that are laid out for many rows (`Kernel.lay_out`).
    coef : ndarray of shape (A.n,)
        Coefficients.
    start, stop : int
        The columns.
    out : ndarray of float64 of shape (stop - start,)
        Changed in place.
    """
    if columns.panels is not None and A.norm is not None:
        columns.panels.add(Lines.of(A.X), A.norm, start, stop, coef, out, start)
        return
    dtype = np.dtype(np.float64) if kernel.opaque else columns.X.dtype
    height, width = min(A.n, costs.STREAM_ROWS), costs.STREAM_COLUMNS
    buffer = aligned(height * width, dtype)
    for r in range(0, A.n, height):
        rows = A if A.n <= height else A.take(np.arange(r, min(A.n, r + height)))
        slots = np.arange(rows.n)
        for c in range(start, stop, width):
            e = min(stop, c + width)
            tile = buffer[: rows.n * (e - c)].reshape(rows.n, e - c)
            kernel.fill(rows, columns, c, e, tile, slots, first=c)
            add_rows(out[c - start : e - start], tile, slots, coef[r : r + rows.n], 0, e - c)
