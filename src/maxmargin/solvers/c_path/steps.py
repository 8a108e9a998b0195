"""Rows for pair steps on a block of the kernel matrix, read from the matrix when they are needed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from maxmargin._compiled.jit import compiled
from maxmargin._types import Mask
from maxmargin.solvers._pair_rows import begin, fetch, has, is_kind
from maxmargin.solvers.pairs import LONGEST, Places


class MatrixRows(NamedTuple):
    """The rows of a block, or of the matrix itself."""

    flat: NDArray[Any]  # the values between the variables, row after row
    stride: int  # distance between the beginnings of two rows
    valid: Mask  # (size,) whether a row has been read
    K: NDArray[Any]  # (n, n) the matrix that it is read from
    slots: NDArray[np.int64]  # (size,) row of K at each place
    size: int


@compiled()
def block_places(size, diag, up, down):
    """The first `size` variables, in ranges, as one group."""
    count = (size + LONGEST - 1) // LONGEST
    ranges = np.empty(count + 1, np.int64)
    for r in range(count):
        ranges[r] = r * LONGEST
    ranges[count] = size
    groups = np.array([0, count])
    return Places(ranges, groups, diag[:size], up[:size], down[:size])


@compiled()
def _read(rows, i):
    """Fill row i of the block from the matrix."""
    row, at = rows.K[rows.slots[i]], i * rows.stride
    for k in range(rows.size):
        rows.flat[at + k] = row[rows.slots[k]]
    rows.valid[i] = True


@overload(has, inline="always")
def _has(rows, i):
    if is_kind(rows, MatrixRows):
        return lambda rows, i: rows.valid[i]
    return None


@overload(fetch, inline="always")
def _fetch(rows, i):
    if is_kind(rows, MatrixRows):
        return lambda rows, i: _read(rows, i)
    return None


@overload(begin, inline="always")
def _begin(rows, i):
    if is_kind(rows, MatrixRows):
        return lambda rows, i: i * rows.stride
    return None
