"""The containers that users pass: blocks of rows of X, and y or weights as one array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin._sklearn import feature_names_of

# Bytes of a block into which data of this process are cut: small against the memory of a worker, and large
# against the 1 ms that a task costs.
_BLOCK_BYTES = 32 << 20
# Fewest blocks of data of this process that are worth cutting.
_BLOCK_ROWS = 1000


def is_lazy(X: Any) -> bool:
    """Whether an object is a dask array or data frame."""
    from dask import is_dask_collection

    return X is not None and bool(is_dask_collection(X))


@dataclass(frozen=True)
class Blocks:
    """The blocks of X: `rows[i]` are the column blocks of chunk i, as Delayed objects or data.

    Parameters
    ----------
    rows : list of list
        The blocks.
    sizes : list of int, or None
        Rows of each chunk, if they are known.
    n_features : int or None
        Number of columns, if it is known.
    dtype : dtype
        float32 or float64, which they are converted to.
    feature_names : ndarray of str or None
        Names of the columns of a data frame.
    lazy : bool
        Whether the blocks are Delayed objects.
    """

    rows: list[list[Any]]
    sizes: list[int] | None
    n_features: int | None
    dtype: np.dtype[Any]
    feature_names: Any
    lazy: bool


def blocks_of(X: Any) -> Blocks:
    """Blocks of rows of a dask array, a dask data frame, or of an array, sparse matrix or data frame.

    Parameters
    ----------
    X : dask or local container of shape (n_samples, n_features)
        Training data.

    Returns
    -------
    Blocks
    """
    if hasattr(X, "columns") and hasattr(X, "iloc" if not is_lazy(X) else "npartitions"):
        return _of_frame(X)
    if is_lazy(X):
        if not hasattr(X, "chunks"):
            raise TypeError(f"X must be a dask array or data frame, got a dask {type(X).__name__}.")
        if X.ndim != 2:
            raise ValueError(f"Expected 2D array, got {X.ndim}D array instead: X has the shape {X.shape}.")
        known = not np.isnan(np.array(X.chunks[0], dtype=float)).any()
        return Blocks(
            [list(row) for row in X.to_delayed()],
            [int(n) for n in X.chunks[0]] if known else None,
            None if np.isnan(X.shape[1]) else int(X.shape[1]),
            _float(X.dtype),
            None,
            True,
        )
    X = X.tocsr() if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead: reshape X to (rows, features).")
    return _of_rows(X, X, _float(X.dtype), None)


def _of_frame(X: Any) -> Blocks:
    """Blocks of a data frame of pandas or dask, whose columns have to be numeric."""
    meta = X._meta if is_lazy(X) else X.iloc[:0]
    import pandas as pd

    for i, (name, dtype) in enumerate(zip(meta.columns, meta.dtypes, strict=True)):
        if not (pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)):
            raise ValueError(
                f"column {name!r} (number {i}) of X has the type {dtype}, which is not numeric: encode it, or "
                "leave it out with X.drop(columns=...)."
            )
    plain = [dtype if isinstance(dtype, np.dtype) else np.dtype(np.float64) for dtype in meta.dtypes]
    dtype = _float(np.result_type(*plain) if plain else np.dtype(np.float64))
    names = feature_names_of(meta)
    if not is_lazy(X):
        return _of_rows(X, X.iloc, dtype, names)
    rows = [[part] for part in X.to_delayed()]
    return Blocks(rows, None, len(meta.columns), dtype, names, True)


def _of_rows(X: Any, rows: Any, dtype: np.dtype[Any], names: Any) -> Blocks:
    n, d = X.shape
    width = X.nnz / max(1, n) * 12 if sp.issparse(X) else d * dtype.itemsize
    step = max(_BLOCK_ROWS, int(_BLOCK_BYTES / max(1.0, width)))
    starts = range(0, max(n, 1), step)
    sizes = [min(step, n - s) for s in starts]
    return Blocks([[rows[s : s + step]] for s in starts], sizes, d, dtype, names, False)


def _float(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)


def vector_blocks(y: Any, name: str) -> list[Any]:
    """The chunks of y or weights: Delayed objects, or one array."""
    if not is_lazy(y):
        return [np.asarray(y)]
    if getattr(y, "ndim", 1) > 1 and len(getattr(y, "numblocks", ())) > 1 and y.numblocks[1] > 1:
        raise ValueError(f"{name} should be a 1d array, got a dask array of shape {y.shape}.")
    return list(np.ravel(y.to_delayed()))


def joined_vector(chunks: Sequence[Any], sizes: Sequence[int], name: str, *, known: bool = True) -> Any:
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
    >>> from maxmargin.dask.inputs import joined_vector
    >>> joined_vector([["a", "b"], ["c"]], [1, 2], "y").tolist()
    ['a', 'b', 'c']
    >>> joined_vector([[1, 2], [3, 4]], [2, 1], "y")
    Traceback (most recent call last):
    ...
    ValueError: y has 4 values and X 3 rows: chunk 1 of y has 2 values, chunk 1 of X 1 rows.
    """
    arrays = [np.asarray(chunk) for chunk in chunks]
    arrays = [a.ravel() if a.ndim == 2 and a.shape[1] == 1 else a for a in arrays]
    wrong = next((a for a in arrays if a.ndim != 1), None)
    if wrong is not None:
        raise ValueError(f"{name} should be a 1d array, got an array of shape {wrong.shape} instead.")
    lengths, n = [len(a) for a in arrays], sum(sizes)
    one_by_one = len(lengths) == len(sizes) > 1
    if sum(lengths) != n or (one_by_one and not known and lengths != list(sizes)):
        where = ""
        if one_by_one:
            i = next(i for i, (a, b) in enumerate(zip(lengths, sizes, strict=True)) if a != b)
            where = f": chunk {i} of {name} has {lengths[i]:,} values, chunk {i} of X {sizes[i]:,} rows"
        raise ValueError(f"{name} has {sum(lengths):,} values and X {n:,} rows{where}.")
    filled = [a for a in arrays if len(a)]
    return np.concatenate(filled) if len(filled) > 1 else (filled or arrays)[0]
