"""Whether the scales of the features of a data set are comparable."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

# Standard deviations that differ by this factor: the smaller one adds a millionth to a squared distance.
_FAR_APART = 1000.0
# Rows that are looked at.
_SAMPLE = 256


class UnscaledDataWarning(UserWarning):
    """The scales of features differ so much that the small ones hardly affect the kernel."""


def disparity(X: Any) -> tuple[int, int, float] | None:
    """The features that vary most and least and the ratio of their spreads, if it is too large.

    Constant features do not count, nor sparse data, in which rare features are small by nature.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.estimators._scales import disparity
    >>> large, small, ratio = disparity(np.array([[0.0, 0.0, 7.0], [1.0, 9000.0, 7.0]]))
    >>> large, small, round(ratio)
    (1, 0, 9000)
    >>> disparity(np.array([[0.0, 0.0], [1.0, 9.0]]))
    """
    if sp.issparse(X) or X.ndim != 2 or X.dtype.kind != "f" or X.shape[1] < 2:
        return None
    with np.errstate(all="ignore"):
        rows = np.asarray(X[:: 1 + len(X) // _SAMPLE], dtype=np.float64)
        rest = rows - np.einsum("ij->j", rows) / len(rows)
        square = np.einsum("ij,ij->j", rest, rest) / len(rows)
        if square.max() <= _FAR_APART**2 * square.min() < np.inf:
            return None  # nearly always, and leaving out constants would not raise the ratio
        spread = np.sqrt(square)
        tiny = spread <= 1e-6 * np.abs(rows[0])  # rounding of a constant, in float32 at worst
    spread[tiny | ~np.isfinite(spread)] = 0.0
    large = int(np.argmax(spread))
    small = int(np.argmin(np.where(spread > 0, spread, np.inf)))
    ratio = float(spread[large] / spread[small]) if spread[small] > 0 else 1.0
    return (large, small, ratio) if ratio > _FAR_APART else None
