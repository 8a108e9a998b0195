"""Lazy predictions of dask collections, with one copy of the model per worker."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any
from uuid import uuid4

import dask
import numpy as np
from dask.base import tokenize

from maxmargin.dask.clients import find_client
from maxmargin.dask.inputs import check_collection, float_type, is_frame
from maxmargin.dask.parts import as_rows
from maxmargin.dask.waiting import large_messages

# Bytes of a model up to which it is part of the graph of each prediction, which then depends on nothing else.
# dask warns about graphs of more than 10 MB.
_SMALL = 8 << 20


def evaluate(block: Any, model: Any, method: str, empty: Any, dtype: Any) -> Any:
    """Values of one block of rows.

    Parameters
    ----------
    block : array, sparse matrix or data frame
        Rows; there may be none.
    model : estimator of `maxmargin`
        Fitted, without names of features.
    method : str
        The name of its method.
    empty : ndarray, Series or DataFrame
        Without rows: the container of the result, with its columns.
    dtype : dtype
        float32 or float64, which data frames are converted to.

    Returns
    -------
    ndarray, Series or DataFrame
    """
    if not block.shape[0]:
        values = empty
    else:
        values = getattr(model, method)(as_rows([block], dtype) if hasattr(block, "iloc") else block)
    if not hasattr(empty, "iloc"):
        return values
    values = np.asarray(values)
    if empty.ndim == 1:
        return type(empty)(values, index=block.index, name=empty.name, dtype=empty.dtype)
    return type(empty)(values, index=block.index, columns=empty.columns)


def apply(X: Any, model: Any, local: Any, method: str, columns: Any = None) -> Any:
    """A lazy collection of the values that a method has for the rows of X.

    Parameters
    ----------
    X : dask array or data frame
        Rows.
    model : Future or Delayed
        The fitted estimator as the result of a task.
    local : estimator
        The same estimator in this process, for checks of X, and the type and the shape of the result.
    method : str
        The name of its method.
    columns : sequence, optional
        Names of the columns of the result, if X is a data frame and there are several.

    Returns
    -------
    dask Array, Series or DataFrame
        With the chunks, or partitions and index, of X.
    """
    check_collection(X, "X")
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead: reshape X to (rows, features).")
    frame = is_frame(X)
    d = len(X.columns) if frame else X.shape[1]
    expected = getattr(local, "n_features_in_", None)  # not with kernels that are functions
    expected = local.shape_fit_[1] if expected is None else expected
    if not np.isnan(d) and d != expected:
        raise ValueError(
            f"X has {d} features, but {type(local).__name__} is expecting {expected} features as input."
        )
    dtype = float_type(X)
    # Columns with wrong names are refused here, and tasks need not look at names.
    one = X._meta_nonempty.iloc[:1] if frame else np.zeros((1, expected), dtype)
    sample = np.asarray(getattr(local, method)(one))
    if frame:
        return _of_partitions(X, model, method, sample, columns, dtype)
    empty, title = sample[:0], method.replace("_", "-")
    rows = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    return rows.map_blocks(
        partial(evaluate, method=method, empty=empty, dtype=dtype),
        model,
        # The whole name, or the beginning of it: that depends on the version of dask.
        name=f"{title}-{tokenize(rows.name, model.key, method)}",
        dtype=sample.dtype,
        meta=empty,
        **({"drop_axis": 1} if sample.ndim == 1 else {"chunks": (rows.chunks[0], (sample.shape[1],))}),
    )


def _of_partitions(X: Any, model: Any, method: str, sample: Any, columns: Any, dtype: Any) -> Any:
    """See `apply`, for data frames; only later versions of ``map_partitions`` take results of tasks."""
    import pandas as pd
    from dask.dataframe import from_delayed

    index = X._meta.index
    if sample.ndim == 1:
        empty = pd.Series(sample, name=method).iloc[:0].set_axis(index)
    else:
        empty = pd.DataFrame(sample[:0], index=index, columns=columns)
    values = dask.delayed(partial(evaluate, method=method, empty=empty, dtype=dtype), pure=False)
    token = f"{method.replace('_', '-')}-{tokenize(X, model.key, method)}"
    partitions = [values(part, model, dask_key_name=f"{token}-{i}") for i, part in enumerate(X.to_delayed())]
    return from_delayed(partitions, meta=empty, divisions=X.divisions, prefix=token, verify_meta=False)


class Models:
    """A fitted estimator as the result of a task: a part of each graph, or on the cluster if it is large."""

    def __init__(self, local: Any) -> None:
        from distributed.protocol.pickle import dumps

        self._attributes = dict(vars(local))
        self._stored, self._name = dumps(local), f"model-{uuid4().hex[:12]}"
        self._futures: dict[str, Any] = {}

    def made_from(self, local: Any) -> bool:
        """Whether nothing was set in an estimator since this was made from it."""
        now, then = vars(local), self._attributes
        return now.keys() == then.keys() and all(now[name] is then[name] for name in now)

    def task(self, client: Any) -> Any:
        """A Future or Delayed object.

        Parameters
        ----------
        client : distributed.Client or None
            The parameter of the estimator.

        Returns
        -------
        Future or Delayed
        """
        if len(self._stored) > _SMALL:
            try:
                client = find_client(client)
            except ValueError:  # it is closed, or asynchronous
                client = None
            if client is not None:
                return self._on_cluster(client)
        return dask.delayed(pickle.loads, pure=False)(self._stored, dask_key_name=self._name)

    def _on_cluster(self, client: Any) -> Any:
        """The future on one cluster, made once: large models are sent only once."""
        future = self._futures.get(client.id)
        if future is None or future.status in ("cancelled", "error", "lost"):
            with large_messages():
                future = client.submit(
                    pickle.loads, self._stored, key=f"{self._name}-{client.id}", pure=False
                )
            self._futures[client.id] = future
        return future
