"""Rows of cells from data that may be on disk: passes over a file in its order, within a memory budget."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin._types import Index

#: Bytes of rows that are gathered in one pass over a file. [bytes; 10 million rows of 20 float32 take 2 passes]
BUDGET = 400 << 20
# Rows that are read at a time.
_STEP = 1 << 16


def file_of(X: Any) -> np.memmap[Any, Any] | None:
    """The memory-mapped file that an array is part of; None for other data."""
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap):
            return X
        X = X.base
    return None


def release(X: Any) -> None:
    """Give back memory into which pages of a file were read: it is read again when it is needed.

    Without it the whole file would count as memory of the process after a pass, if nothing else needs it.
    """
    file = file_of(X)
    pages = getattr(file, "_mmap", None)
    # In mode "c" changed pages are in memory only.
    if (
        file is not None
        and file.mode == "r"
        and isinstance(pages, mmap.mmap)
        and hasattr(mmap, "MADV_DONTNEED")
    ):
        pages.madvise(mmap.MADV_DONTNEED)


def take(X: Any, rows: Index) -> Any:
    """The rows with these numbers, which ascend, as an array in memory or a sparse matrix."""
    if sp.issparse(X) or file_of(X) is None:
        return X[rows]
    out = np.empty((len(rows), X.shape[1]), X.dtype)
    for s in range(0, len(rows), _STEP):
        out[s : s + _STEP] = X[rows[s : s + _STEP]]
    release(X)
    return out


def batches(X: Any, cells: Sequence[Index], budget: int = BUDGET) -> Iterator[tuple[list[int], list[Any]]]:
    """Numbers of cells and their rows of X, some cells at a time.

    Data in memory are one batch, whose rows are not taken yet (None). For a file the rows of as many cells as
    fit the `budget` are read in one pass, in the order of the file.
    """
    if file_of(X) is None:
        yield list(range(len(cells))), [None] * len(cells)
        return
    width = X.shape[1] * X.itemsize
    start = 0
    while start < len(cells):
        end, size = start + 1, len(cells[start]) * width
        while end < len(cells) and size + len(cells[end]) * width <= budget:
            size += len(cells[end]) * width
            end += 1
        numbers = np.unique(np.concatenate(cells[start:end]))
        part = take(X, numbers)
        yield list(range(start, end)), [part[np.searchsorted(numbers, rows)] for rows in cells[start:end]]
        start = end
