"""Thresholds of outlier detectors, from the scores of the training rows."""

from __future__ import annotations

from numbers import Real

import numpy as np

from maxmargin._sklearn import Interval
from maxmargin._types import Floats

#: The shares of training rows that may be asked for, as for scikit-learn's outlier detectors.
SHARE = Interval(Real, 0.0, 0.5, closed="right")

# Differences of scores of equal rows, relative to the largest score: of kernel values in float32 and float64.
_ROUNDING = {4: 1e-6, 8: 1e-12}


def share_below(scores: Floats, weight: Floats, share: float, itemsize: int = 8) -> float:
    """The threshold with the given share of the weight below it, or the largest smaller one that is possible.

    It is halfway between two scores, so that no training row is on it. Rows with equal scores are on the same
    side.

    Parameters
    ----------
    scores, weight : ndarray of shape (n,)
        Scores and weights of rows.
    share : float
        The share, in (0, 0.5].
    itemsize : int
        Bytes of the kernel values that the scores are sums of.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.estimators._contamination import share_below
    >>> share_below(np.array([3.0, 1.0, 2.0, 4.0]), np.ones(4), 0.25)
    1.5
    """
    order = np.argsort(scores, kind="stable")
    s = scores[order]
    rounding = _rounding(s, itemsize)
    below = np.cumsum(weight[order])
    # A share such as 0.07 of 100 rows is 7.000000000000001 rows.
    cuts = np.flatnonzero(
        (below[:-1] <= share * below[-1] * (1.0 + 1e-12)) & (s[1:] - s[:-1] > 2.0 * rounding)
    )
    if not len(cuts):
        return float(s[0] - 2.0 * rounding)
    k = cuts[-1]
    return float(s[k] + 0.5 * (s[k + 1] - s[k]))


def three_sigma(scores: Floats, weight: Floats, most: float, itemsize: int = 4) -> float:
    """Three standard deviations of the scores below their mean, and at most `most`.

    By Cantelli's inequality at most a tenth of the weight is below it, whatever the scores.
    """
    total = weight.sum()
    mean = float(weight @ scores / total)
    spread = float(np.sqrt(weight @ (scores - mean) ** 2 / total))
    return min(mean - 3.0 * spread, most) - 2.0 * _rounding(scores, itemsize)


def _rounding(scores: Floats, itemsize: int) -> float:
    """Bound of the rounding error of a score; never 0, so that a row on the threshold is an inlier."""
    return max(_ROUNDING[itemsize] * float(np.abs(scores).max()), 1e-300)
