"""Whether rows have trained a model: found by the support vectors among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin._sklearn import num_samples, safe_indexing
from maxmargin.inspection._report.subject import Subject

#: Values of the parameter `rows`.
CHOICES = ("auto", "training", "new")
# If this share of the support vectors is among the rows, they are taken for the training rows. Rows of few
# different values coincide by chance, too.
_MOST = 0.5


@dataclass(frozen=True)
class Origin:
    """Where the rows come from.

    Attributes
    ----------
    trained : bool
        Whether they are taken for training rows.
    in_order : bool
        Whether they are certainly all training rows in their order.
    reason : str
        A sentence that says why.
    """

    trained: bool
    in_order: bool
    reason: str


def origin_of(subject: Subject, X: Any, y: Any, rows: str) -> Origin:
    """Where the rows come from; `rows` is "auto", or what the user says."""
    if rows not in CHOICES:
        raise ValueError(f"rows must be one of {', '.join(map(repr, CHOICES))}, got {rows!r}.")
    if rows == "new":
        return Origin(False, False, "You said that these rows have not trained the model.")
    in_order = _in_order(subject, X, y)
    if in_order:
        return Origin(
            True, True, "The rows are those that have trained the model: its support vectors are among them."
        )
    if rows == "training":
        return Origin(True, False, "You said that these rows have trained the model.")
    found = _found(subject, X)
    if found is None and subject.n_trained == num_samples(X):
        return Origin(
            True,
            False,
            "Whether the rows have trained the model cannot be known, as it keeps no support vectors to "
            "compare with; as many rows have trained it, so they are taken for these.",
        )
    if found is None:
        return Origin(
            False,
            False,
            "Whether the rows have trained the model cannot be known, as it keeps no support vectors to "
            "compare with; they are taken for new ones, as their number differs.",
        )
    n_found, n_vectors = found
    if n_vectors and n_found >= _MOST * n_vectors:
        return Origin(
            True,
            False,
            f"{n_found:,} of the {n_vectors:,} support vectors are among the rows, so they are taken for "
            "training rows.",
        )
    if n_found:
        return Origin(
            False,
            False,
            f"{n_found:,} of the {n_vectors:,} support vectors are equal to one of the rows, so a few may "
            "have trained the model; they are taken for new ones.",
        )
    return Origin(
        False,
        False,
        "No support vector is among the rows, so they are taken for new ones; the model does not keep its "
        "other training rows to compare with.",
    )


def _in_order(subject: Subject, X: Any, y: Any) -> bool:
    """Whether the rows `support_` of X are the support vectors, and as many rows have trained the model."""
    last = subject.last
    n, support = num_samples(X), np.asarray(last.support_, dtype=np.intp)
    places = np.arange(n)
    if subject.only_inliers and y is not None:
        places = np.flatnonzero(y > 0)
    if subject.n_trained != len(places) or support.max(initial=-1) >= len(places):
        return False
    if subject.precomputed:
        return not sp.issparse(X) and X.shape == (n, n) and bool(np.allclose(X, np.asarray(X).T))
    vectors = last.support_vectors_
    if not vectors.shape[0] or not vectors.shape[1]:
        return False
    rows = _transformed(subject, safe_indexing(X, places[support]))
    if rows.shape != vectors.shape:
        return False
    difference = abs(rows - vectors)
    largest = abs(vectors).max()
    return bool(difference.max() <= 1e-5 * largest)


def _found(subject: Subject, X: Any) -> tuple[int, int] | None:
    """How many of the support vectors are among the rows, and how many there are; None if not known."""
    vectors = getattr(subject.last, "support_vectors_", None)
    if subject.precomputed or vectors is None or not vectors.shape[0] or not vectors.shape[1]:
        return None
    rows = _transformed(subject, X)
    if rows.shape[1] != vectors.shape[1]:
        return None
    return len(_keys(vectors) & _keys(rows)), len(_keys(vectors))


def _transformed(subject: Subject, X: Any) -> Any:
    """The rows as the last step sees them."""
    before = X if subject.last is subject.fitted else subject.fitted[:-1].transform(X)
    return before.tocsr() if sp.issparse(before) else np.asarray(before, dtype=np.float64)


def _keys(rows: Any) -> set[bytes]:
    """The rows in single precision as bytes, as a transformation of fewer rows may round differently."""
    if not sp.issparse(rows):
        small = np.ascontiguousarray(rows, dtype=np.float32) + np.float32(0.0)  # -0 becomes 0
        return {row.tobytes() for row in small}
    rows = sp.csr_array(rows, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    at, indices, data = rows.indptr, rows.indices.astype(np.int64), rows.data.astype(np.float32)
    return {indices[a:b].tobytes() + data[a:b].tobytes() for a, b in zip(at, at[1:], strict=False)}
