"""Targets and weights: chunks of any container as one array in this process."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.dask.inputs import check_collection, delayed_chunks, is_lazy


def vector_blocks(y: Any, name: str) -> list[Any]:
    """The chunks of y or weights: Delayed objects, or one array or series.

    Parameters
    ----------
    y : dask or local vector of shape (n,) or (n, 1)
        Values.
    name : str
        For messages.

    Returns
    -------
    list
    """
    if not is_lazy(y):
        return [y if hasattr(y, "iloc") else np.asarray(y)]
    check_collection(y, name)
    columns = len(y.columns) if y.ndim == 2 and hasattr(y, "columns") else (*y.shape, 1)[1]
    if y.ndim > 2 or columns != 1:
        raise ValueError(f"{name} should be a 1d array, got {y.ndim} dimensions and {columns} columns.")
    return list(np.ravel(delayed_chunks(y)))


def known_sizes(y: Any) -> list[int] | None:
    """The lengths of the chunks of a vector, as far as they are known without computing anything."""
    if not is_lazy(y):
        return [len(y)] if hasattr(y, "__len__") else None
    if not hasattr(y, "chunks") or np.isnan(np.array(y.chunks[0], dtype=float)).any():
        return None
    return [int(n) for n in y.chunks[0]]


def check_lengths(
    lengths: Sequence[int], sizes: Sequence[int], name: str, *, one_by_one: bool = False
) -> None:
    """Refuse a vector that has not one value for each row of X.

    Parameters
    ----------
    lengths, sizes : sequence of int
        Of the chunks of the vector, and of X.
    name : str
        For messages.
    one_by_one : bool
        Whether each chunk of the vector belongs to the chunk of X with the same number.
    """
    paired = len(lengths) == len(sizes) > 1
    if sum(lengths) == sum(sizes) and not (one_by_one and paired and list(lengths) != list(sizes)):
        return
    where = ""
    if paired:
        i = next(i for i, (a, b) in enumerate(zip(lengths, sizes, strict=True)) if a != b)
        where = f": chunk {i} of {name} has {lengths[i]:,} values, chunk {i} of X {sizes[i]:,} rows"
    raise ValueError(f"{name} has {sum(lengths):,} values and X {sum(sizes):,} rows{where}.")


def joined_vector(
    chunks: Sequence[Any], sizes: Sequence[int], name: str, *, known: bool = True
) -> NDArray[Any]:
    """Chunks of y or of weights as one array that has a value for each row of X.

    Parameters
    ----------
    chunks : sequence of array-like
        The chunks, computed.
    sizes : sequence of int
        Rows of the chunks of X.
    name : str
        For messages.
    known : bool
        Whether the sizes were known before. If not, and there are as many chunks, then these belong together
        one by one, and their lengths have to be equal.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> from maxmargin.dask.vectors import joined_vector
    >>> joined_vector([["a", "b"], ["c"]], [1, 2], "y").tolist()
    ['a', 'b', 'c']
    >>> joined_vector([[1, 2], [3, 4]], [2, 1], "y")
    Traceback (most recent call last):
    ...
    ValueError: y has 4 values and X 3 rows: chunk 1 of y has 2 values, chunk 1 of X 1 rows.
    """
    arrays = [_plain(chunk) for chunk in chunks]
    for i, each in enumerate(arrays):
        if each.ndim != 1:
            raise ValueError(f"{name} should be a 1d array, got an array of shape {each.shape} in chunk {i}.")
    check_lengths([len(each) for each in arrays], sizes, name, one_by_one=not known)
    filled = [i for i, each in enumerate(arrays) if len(each)] or [0]
    start = 0
    for i in filled:
        _check_values(arrays[i], name, i, start)
        if (arrays[i].dtype.kind in "biufc") != (arrays[filled[0]].dtype.kind in "biufc"):
            raise ValueError(
                f"{name} has the type {arrays[i].dtype} in chunk {i}, and {arrays[filled[0]].dtype} in chunk "
                f"{filled[0]}: convert one of them."
            )
        start += len(arrays[i])
    return np.concatenate([arrays[i] for i in filled]) if len(filled) > 1 else arrays[filled[0]]


def _plain(chunk: Any) -> NDArray[Any]:
    """A chunk as an array; nullable numbers become ordinary ones, with NaN for those that are missing."""
    if hasattr(chunk, "iloc"):
        if chunk.ndim == 2 and chunk.shape[1] == 1:
            chunk = chunk.iloc[:, 0]
        kind = getattr(chunk, "dtype", None)
        number = getattr(kind, "numpy_dtype", None)
        if number is not None and not isinstance(kind, np.dtype) and number.kind in "biuf":
            missing = bool(chunk.isna().any())
            return np.asarray(
                chunk.to_numpy(dtype=np.float64, na_value=np.nan) if missing else chunk.to_numpy(dtype=number)
            )
    values = np.asarray(chunk)
    return values.ravel() if values.ndim == 2 and values.shape[1] == 1 else values


def _check_values(values: NDArray[Any], name: str, chunk: int, start: int) -> None:
    """Refuse missing values, and numbers that are not finite."""
    if values.dtype.kind in "fc":
        good = np.isfinite(values)
    elif values.dtype.kind == "O":
        pandas = sys.modules.get("pandas")  # has the values for which comparison with themselves is an error
        good = ~pandas.isna(values) if pandas else np.array([v is not None and v == v for v in values], bool)
    else:
        return
    if not good.all():
        at = int(np.argmin(good))
        value = "infinity" if values.dtype.kind == "f" and np.isinf(values[at]) else "NaN"
        raise ValueError(
            f"{name} contains {value}, first in chunk {chunk}, value {start + at:,}: leave such rows out."
        )
