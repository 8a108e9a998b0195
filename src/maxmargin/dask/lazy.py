"""Lazy predictions of dask collections, with one copy of the model per worker."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np


def evaluate(block: Any, model: Any, method: str, empty: Any) -> Any:
    """Values of one block of rows; `empty` is the result without rows.

    Parameters
    ----------
    block : array, sparse matrix or data frame
        Rows; there may be none.
    model : estimator of `maxmargin`
        Fitted.
    method : str
        The name of its method.
    empty : ndarray, Series or DataFrame
        Without rows: the container of the result, with its columns.

    Returns
    -------
    ndarray, Series or DataFrame
    """
    if hasattr(empty, "iloc"):
        values = getattr(model, method)(block) if len(block) else empty.to_numpy()
        if empty.ndim == 1:
            return type(empty)(values, index=block.index, name=empty.name).astype(empty.dtype)
        return type(empty)(values, index=block.index, columns=empty.columns)
    return getattr(model, method)(block) if block.shape[0] else empty


def apply(X: Any, model: Any, local: Any, method: str, columns: Any = None) -> Any:
    """A lazy collection of the values that a method has for the rows of X.

    Parameters
    ----------
    X : dask array or data frame
        Rows.
    model : Future or Delayed
        The fitted estimator as the result of a task.
    local : estimator
        The same estimator in this process, for the type and the shape of the result.
    method : str
        The name of its method.
    columns : sequence, optional
        Names of the columns of the result, if X is a data frame and there are several.

    Returns
    -------
    dask Array, Series or DataFrame
        With the chunks, or partitions and index, of X.
    """
    frame = not hasattr(X, "chunks")
    d = len(X.columns) if frame else X.shape[1] if X.ndim == 2 else -1
    if d != local.n_features_in_:
        given = f"{d} features" if d >= 0 else f"{X.ndim} dimensions"
        raise ValueError(
            f"X has {given}, but {type(local).__name__} is expecting {local.n_features_in_} features as input."
        )
    sample = _sample(X, local, method, frame)
    name = method.replace("_", "-")
    if frame:
        import pandas as pd

        index = X._meta.index
        if sample.ndim == 1:
            meta = pd.Series(sample, name=method).iloc[:0]
            empty = pd.Series(meta.to_numpy(), index=index, dtype=meta.dtype, name=method)
        else:
            empty = pd.DataFrame(sample[:0], index=index, columns=columns)
        return X.map_partitions(evaluate, model, method, empty, meta=empty, token=name)
    rows = X.rechunk({1: -1})
    empty = sample[:0]
    chunks = (rows.chunks[0],) if sample.ndim == 1 else (rows.chunks[0], (sample.shape[1],))
    dropped = {"drop_axis": 1} if sample.ndim == 1 else {}
    return rows.map_blocks(
        evaluate,
        model,
        method,
        empty,
        name=name,
        token=None,
        dtype=sample.dtype,
        chunks=chunks,
        meta=empty,
        **dropped,
    )


def _sample(X: Any, local: Any, method: str, frame: bool) -> Any:
    """The values of one row of zeros."""
    zeros = np.zeros((1, local.n_features_in_), np.float64 if frame else _float(X.dtype))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about names of features
        return np.asarray(getattr(local, method)(zeros))


def _float(dtype: Any) -> Any:
    return np.float32 if dtype == np.float32 else np.float64
