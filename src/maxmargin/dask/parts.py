"""Tasks that run once per part of the training data: conversion and checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin._types import Mask
from maxmargin.dask.statistics import Summary, summarize
from maxmargin.kernels.layout import without_duplicates


@dataclass(frozen=True)
class Checked:
    """The outcome of `check`."""

    shape: tuple[int, ...]
    sparse: bool
    #: The first entry that is not finite: "NaN" or "infinity", row, column.
    bad: tuple[str, int, int] | None
    summary: Summary | None


def as_rows(blocks: Sequence[Any], dtype: Any, chunk: int) -> Any:
    """The column blocks of a chunk as one array in C order, or one CSR matrix.

    Parameters
    ----------
    blocks : sequence of array-like, sparse matrices or data frames
        Next to each other.
    dtype : dtype
        float32 or float64.
    chunk : int
        The number of the chunk, for messages.

    Returns
    -------
    ndarray or CSR matrix of shape (n, n_features)
    """
    try:
        rows = [_converted(block, dtype) for block in blocks]
    except (TypeError, ValueError) as error:
        raise ValueError(f"chunk {chunk} of X is not numeric: {error}") from error
    flat = [block for block in rows if block.ndim != 2]
    if flat:
        raise ValueError(f"chunk {chunk} of X has {flat[0].ndim} dimensions; 2 are expected.")
    if len(rows) == 1:
        return rows[0]
    if any(sp.issparse(block) for block in rows):
        return sp.hstack(rows, format="csr", dtype=dtype)
    return np.hstack(rows)


def _converted(block: Any, dtype: Any) -> Any:
    if sp.issparse(block):
        return without_duplicates(block.tocsr().astype(dtype, copy=False))
    if hasattr(block, "iloc"):  # pandas
        missing = {} if all(isinstance(each, np.dtype) for each in block.dtypes) else {"na_value": np.nan}
        block = block.to_numpy(dtype=dtype, **missing)
    return np.ascontiguousarray(block, dtype=dtype) if np.ndim(block) else np.asarray(block)


def check(X: Any, n_sample: int) -> Checked:
    """Look for entries that are not finite, and compute the statistics of a part.

    Parameters
    ----------
    X : ndarray or CSR matrix
        A part.
    n_sample : int
        About how many rows the statistics keep as a sample.

    Returns
    -------
    Checked
    """
    sparse = sp.issparse(X)
    bad = _first_bad(X, sparse) if X.shape[0] else None
    return Checked(X.shape, sparse, bad, None if bad else summarize(X, n_sample=n_sample))


def _first_bad(X: Any, sparse: bool) -> tuple[str, int, int] | None:
    values = X.data if sparse else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return None
    finite = np.isfinite(values)
    if finite.all():
        return None
    if sparse:
        at = int(np.argmin(finite))
        row, column = int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at])
        value = values[at]
    else:
        row, column = (int(i) for i in np.unravel_index(int(np.argmin(finite)), X.shape))
        value = X[row, column]
    return ("NaN" if np.isnan(value) else "infinity"), row, column


def joined(parts: Sequence[Any]) -> Any:
    """All parts as one array, or one CSR matrix."""
    if len(parts) == 1:
        return parts[0]
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def summarize_kept(X: Any, kept: Mask, n_sample: int) -> Summary:
    """The statistics of the rows of a part that count."""
    return summarize(X, kept, n_sample)
