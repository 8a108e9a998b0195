"""Samples as points of a plot, and which of them are support vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from maxmargin._types import Floats, Index
from maxmargin.inspection._fitted import at_bound, last_step


def columns_of(X: Any, n_columns: int, fitted: Any) -> tuple[Floats, tuple[str, ...]]:
    """The samples as an array with n_columns columns, and the names of the columns."""
    if getattr(last_step(fitted), "kernel", None) == "precomputed":
        raise ValueError(
            "A model with a precomputed kernel has no features to plot: train with a named kernel."
        )
    names = tuple(map(str, X.columns)) if hasattr(X, "columns") else None
    values = check_array(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    if values.shape[1] != n_columns:
        needed = (
            "A boundary needs samples with two features" if n_columns == 2 else "A tube needs one feature"
        )
        raise ValueError(
            f"{needed}, X has {values.shape[1]}: select {'two' if n_columns == 2 else 'one'}, or train on a "
            "projection such as PCA and plot the last step of the pipeline alone."
        )
    return values, names or tuple(f"feature {k}" for k in range(n_columns))


def like(X: Any, values: Floats) -> Any:
    """Other samples in the container of X, so that feature names match those of the training data."""
    return type(X)(values, columns=X.columns) if hasattr(X, "iloc") else values


def support_of(fitted: Any, X: Any, values: Floats) -> tuple[Index, Any, Floats | None] | None:
    """Rows of the support vectors, which are at their bounds, and their coordinates if the rows have others.

    Returns None for an estimator without support vectors.
    """
    model = last_step(fitted)
    if not hasattr(model, "support_"):
        return None
    rows = np.asarray(model.support_, dtype=np.intp)
    vectors = model.support_vectors_
    vectors = vectors.toarray() if sp.issparse(vectors) else np.asarray(vectors)
    bounded = at_bound(model)
    if vectors.size and model is fitted and vectors.shape[1] == 2:
        return rows, bounded, vectors.astype(np.float64)
    if rows.max(initial=-1) >= len(values) or not _same(fitted, model, X, rows, vectors):
        raise ValueError(
            "The support vectors are not the rows support_ of X: pass the training samples in the same "
            "order, or support=False."
        )
    return rows, bounded, None


def _same(fitted: Any, model: Any, X: Any, rows: Index, vectors: Any) -> bool:
    """Whether the rows of X, transformed by the steps before the model, are its support vectors."""
    if not vectors.size:
        return True  # callable kernels keep no vectors that could be compared
    given = X.iloc[rows] if hasattr(X, "iloc") else (X if sp.issparse(X) else np.asarray(X))[rows]
    before: Any = given if model is fitted else fitted[:-1].transform(given)
    before = before.toarray() if sp.issparse(before) else np.asarray(before, dtype=np.float64)
    return before.shape == vectors.shape and bool(np.allclose(before, vectors, rtol=1e-4, atol=1e-6))
