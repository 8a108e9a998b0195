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


def as_rows(blocks: Sequence[Any], dtype: Any, chunk: int | None = None) -> Any:
    """The column blocks of a chunk as one array in C order, or one CSR matrix.

    Parameters
    ----------
    blocks : sequence of array-like, sparse matrices or data frames
        Next to each other.
    dtype : dtype
        float32 or float64.
    chunk : int, optional
        The number of the chunk, for messages.

    Returns
    -------
    ndarray or CSR matrix of shape (n, n_features)
    """
    where = "X" if chunk is None else f"chunk {chunk} of X"
    try:
        rows = [_converted(block, dtype) for block in blocks]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where} is not numeric: {error}") from error
    flat = [block for block in rows if block.ndim != 2]
    if flat:
        raise ValueError(f"{where} has {flat[0].ndim} dimensions; 2 are expected.")
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


def check_parts(checked: Sequence[Checked], feature_names: Any = None) -> list[int]:
    """Rows of each chunk; errors name the chunk that is wrong.

    Parameters
    ----------
    checked : sequence of Checked
        The outcomes for all chunks.
    feature_names : sequence of str, optional
        Names of the columns.

    Returns
    -------
    list of int
    """
    sizes = [each.shape[0] for each in checked]
    start = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    filled = [i for i, size in enumerate(sizes) if size]
    if not filled:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required: X has no rows.")
    first = checked[filled[0]]
    if not first.shape[1]:
        raise ValueError("Found array with 0 feature(s) while a minimum of 1 is required: X has no columns.")
    for i in filled:
        each = checked[i]
        where = f"chunk {i} (rows {start[i]:,} to {start[i + 1] - 1:,}) of X"
        if each.shape[1] != first.shape[1]:
            raise ValueError(
                f"{where} has {each.shape[1]:,} features, and chunk {filled[0]} has {first.shape[1]:,}."
            )
        if each.sparse != first.sparse:
            kinds = [("sparse" if c.sparse else "dense") for c in (each, first)]
            raise ValueError(
                f"{where} is {kinds[0]}, and chunk {filled[0]} is {kinds[1]}: convert one of them."
            )
        if each.bad is not None:
            kind, row, column = each.bad
            name = "" if feature_names is None else f" ({str(feature_names[column])!r})"
            raise ValueError(
                f"{where} contains {kind}, first in row {start[i] + row:,}, column {column:,}{name}: "
                "impute or drop such values, for example with sklearn.impute.SimpleImputer."
            )
    return sizes


def joined(parts: Sequence[Any]) -> Any:
    """All parts as one array, or one CSR matrix."""
    if len(parts) == 1:
        return parts[0]
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def join(*parts: Any) -> Any:
    """The same, as a task."""
    return joined(parts)


def summarize_kept(X: Any, kept: Mask, n_sample: int) -> Summary:
    """The statistics of the rows of a part that count."""
    return summarize(X, kept, n_sample)
