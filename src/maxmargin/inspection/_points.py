"""Samples as points of a picture, and which of them are support vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from maxmargin._types import Floats, Index
from maxmargin.inspection._fitted import at_bound, machine_of


def columns_of(X: Any, n_columns: int, fitted: Any) -> tuple[Floats, tuple[str, ...]]:
    """The samples as an array with so many columns, and the columns' names."""
    if getattr(machine_of(fitted), "kernel", None) == "precomputed":
        raise ValueError("A precomputed kernel has no features to draw over: train with a named kernel.")
    names = tuple(map(str, X.columns)) if hasattr(X, "columns") else None
    values = check_array(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    if values.shape[1] != n_columns:
        what = "A boundary needs samples with two features" if n_columns == 2 else "A tube needs one feature"
        raise ValueError(
            f"{what}, X has {values.shape[1]}: choose {'two' if n_columns == 2 else 'one'}, or put a "
            "projection such as PCA before the machine and draw the machine alone."
        )
    return values, names or tuple(f"feature {k}" for k in range(n_columns))


def like(X: Any, values: Floats) -> Any:
    """Other samples in the form of X, so that an estimator finds the names that it was trained with."""
    return type(X)(values, columns=X.columns) if hasattr(X, "iloc") else values


def support_of(fitted: Any, X: Any, values: Floats) -> tuple[Index, Any, Floats | None] | None:
    """Rows of the support vectors, which are at their bound, and where they are if not in these rows.

    None for an estimator that has none.
    """
    machine = machine_of(fitted)
    if not hasattr(machine, "support_"):
        return None
    rows = np.asarray(machine.support_, dtype=np.intp)
    vectors = machine.support_vectors_
    vectors = vectors.toarray() if sp.issparse(vectors) else np.asarray(vectors)
    bounded = at_bound(machine)
    if vectors.size and machine is fitted and vectors.shape[1] == 2:
        return rows, bounded, vectors.astype(np.float64)
    if rows.max(initial=-1) >= len(values) or not _same(fitted, machine, X, rows, vectors):
        raise ValueError(
            "The support vectors are not at their places in X: pass the samples that the estimator was "
            "trained with, in the same order, or support=False."
        )
    return rows, bounded, None


def _same(fitted: Any, machine: Any, X: Any, rows: Index, vectors: Any) -> bool:
    """Whether the rows of X become the support vectors in front of the machine."""
    if not vectors.size:
        return True  # callable kernels keep no vectors that could be compared
    given = X.iloc[rows] if hasattr(X, "iloc") else (X if sp.issparse(X) else np.asarray(X))[rows]
    before: Any = given if machine is fitted else fitted[:-1].transform(given)
    before = before.toarray() if sp.issparse(before) else np.asarray(before, dtype=np.float64)
    return before.shape == vectors.shape and bool(np.allclose(before, vectors, rtol=1e-4, atol=1e-6))
