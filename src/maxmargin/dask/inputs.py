"""The containers that users pass as X: blocks of rows of dask collections, arrays, and data frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin._sklearn import feature_names_of

# Bytes of a block into which data of this process are cut: small against the memory of a worker, and large
# against the 1 ms that a task costs.
_BLOCK_BYTES = 32 << 20
# Fewest rows of such a block.
_BLOCK_ROWS = 1000


def is_lazy(X: Any) -> bool:
    """Whether an object is a dask collection."""
    from dask import is_dask_collection

    return X is not None and bool(is_dask_collection(X))


def check_collection(X: Any, name: str) -> None:
    """Refuse dask collections that are neither arrays nor data frames."""
    # Delayed objects say that they have any public attribute.
    known = hasattr(X, "_meta") and (hasattr(X, "chunks") or hasattr(X, "npartitions"))
    if not known or not X.ndim:
        raise TypeError(
            f"{name} must be a dask array or data frame, got a dask {type(X).__name__}: "
            "dask.array.from_delayed and dask.dataframe.from_delayed convert delayed objects."
        )


def delayed_chunks(X: Any) -> Any:
    """The chunks of a dask array, or the partitions of a data frame or series, as Delayed objects.

    Tasks are not fused: so what X and y have in common is computed once.
    """
    frame = hasattr(X, "divisions")
    return (X.optimize(fuse=False) if frame else X).to_delayed(optimize_graph=False)


def is_frame(X: Any) -> bool:
    """Whether X is a data frame of pandas or dask."""
    return hasattr(X, "columns") and hasattr(X, "npartitions" if is_lazy(X) else "iloc")


@dataclass(frozen=True)
class Blocks:
    """The blocks of X: `rows[i]` are the column blocks of chunk i, as Delayed objects or data.

    Parameters
    ----------
    rows : list of list
        The blocks.
    sizes : list of int, or None
        Rows of each chunk, if they are known.
    dtype : dtype
        float32 or float64, which they are converted to.
    feature_names : ndarray of str or None
        Names of the columns of a data frame.
    lazy : bool
        Whether the blocks are Delayed objects.
    """

    rows: list[list[Any]]
    sizes: list[int] | None
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

    Examples
    --------
    >>> import dask.array as da
    >>> from maxmargin.dask.inputs import blocks_of
    >>> blocks = blocks_of(da.ones((5, 4), chunks=(3, 2), dtype="float32"))
    >>> blocks.sizes, [len(row) for row in blocks.rows], blocks.dtype
    ([3, 2], [2, 2], dtype('float32'))
    """
    lazy = is_lazy(X)
    if lazy:
        check_collection(X, "X")
    elif not (sp.issparse(X) or is_frame(X)):
        X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead: reshape X to (rows, features), for "
            "example with X.reshape(-1, 1) or X.to_frame()."
        )
    dtype = float_type(X)
    names = _names_of_columns(X._meta if lazy else X) if is_frame(X) else None
    if not lazy:
        return _of_rows(X, dtype, names)
    if is_frame(X):
        return Blocks([[part] for part in delayed_chunks(X)], None, dtype, names, True)
    known = not np.isnan(np.array(X.chunks[0], dtype=float)).any()
    sizes = [int(n) for n in X.chunks[0]] if known else None
    return Blocks([list(row) for row in delayed_chunks(X)], sizes, dtype, None, True)


def _of_rows(X: Any, dtype: np.dtype[Any], names: Any) -> Blocks:
    """Blocks of data of this process."""
    rows = X.tocsr() if sp.issparse(X) else X.iloc if is_frame(X) else X
    n, d = X.shape
    width = X.nnz / max(1, n) * 12 if sp.issparse(X) else d * dtype.itemsize
    step = max(_BLOCK_ROWS, int(_BLOCK_BYTES / max(1.0, width)))
    starts = range(0, max(n, 1), step)
    return Blocks(
        [[rows[s : s + step]] for s in starts], [min(step, n - s) for s in starts], dtype, names, False
    )


def _names_of_columns(meta: Any) -> Any:
    """Names as scikit-learn has them: an array of strings, or None if they are numbers."""
    twice = meta.columns[meta.columns.duplicated()]
    if len(twice):
        raise ValueError(f"X has several columns with the name {twice[0]!r}: rename them.")
    return feature_names_of(meta)


def float_type(X: Any) -> np.dtype[Any]:
    """float32 if all of X is, else float64; an error if X has no numbers.

    Strings and objects in arrays may be numbers: whether they are is seen when they are converted.
    """
    if is_frame(X):
        import pandas as pd

        meta = X._meta if is_lazy(X) else X.iloc[:0]
        for i, (name, dtype) in enumerate(zip(meta.columns, meta.dtypes, strict=True)):
            if not (pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)):
                raise ValueError(
                    f"column {name!r} (number {i}) of X has the type {dtype}, which is not numeric: encode "
                    "it, or leave it out with X.drop(columns=...)."
                )
        types = [np.dtype(getattr(dtype, "numpy_dtype", None) or dtype.type) for dtype in meta.dtypes]
        dtype = np.result_type(*types) if types else np.dtype(np.float64)
    else:
        dtype = np.dtype(X.dtype)
    if dtype.kind == "c":
        raise ValueError("Complex data not supported: X has the type " + str(dtype) + ".")
    if dtype.kind in "mMV":
        raise ValueError(f"X has the type {dtype}, which is not numeric.")
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)
