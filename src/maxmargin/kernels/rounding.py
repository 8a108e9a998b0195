r"""A-priori bounds of the rounding errors of kernel values, and of sums of them.

Solvers need a bound of the error of a gradient entry :math:`\sum_j k(x_i, x_j) u_j`. Two forms cover all
kernels.

**Products** (linear, poly, sigmoid, given matrices): the error of a value is relative to the largest value
that two samples of these sizes can have,

.. math:: |\delta k_{ij}| \le \epsilon\, s_i s_j, \qquad s_i = (\gamma \|x_i\|^2 + |c|)^{degree/2},

which follows from the Cauchy-Schwarz inequality.

**Distances** (rbf, laplacian): the exponent of :math:`2^{-d}` is a difference of norms n_i, n_j and a
product, wrong by :math:`\epsilon(n_i + n_j)`. As :math:`d \ge (\sqrt{n_i} - \sqrt{n_j})^2`, a value that is
not negligible has similar norms, and :math:`2^{-d}(n_i + n_j) \le 3\min(n_i, n_j) + 1.1`: a distant sample
affects the values with its neighbours only.

Sums of k rounded terms are bounded by :math:`4 + 2\sqrt k` units in the last place, which holds with high
probability (Higham and Mary, "A new approach to probabilistic rounding error analysis", 2019); the worst
case, k, is far too pessimistic for sums of practical length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._types import Floats, Index

# Half of the distance from 1 to the next number.
UNIT = {np.dtype(np.float32): 2.0**-24, np.dtype(np.float64): 2.0**-53}
_DOUBLE = 2.0**-53
_LOG_2 = 0.6931471805599453


@dataclass(frozen=True)
class Rounding:
    """Bounds for the kernel values among one set of samples, in one precision.

    Parameters
    ----------
    unit : float
        Relative error of a value, see `bound`.
    size : ndarray of shape (n,)
        s_i for products, n_i for distances.
    distance : bool
        Whether the second form applies.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.kernels.rounding import Rounding
    >>> exact = Rounding(unit=0.0, size=np.array([1.0, 1e8]), distance=False)
    >>> bool(exact.of_sum(slice(None), np.array([1]), np.array([1.0])).max() < 10.0)
    True
    """

    unit: float
    size: Floats
    distance: bool

    @staticmethod
    def products(size: Floats, dtype: Any, terms: float, powers: float = 1.0) -> Rounding:
        """For powers of sums of `terms` products; no error if the values are given."""
        unit = UNIT[np.dtype(dtype)] * powers * (sum_of(terms) + 4.0) if terms else 0.0
        return Rounding(unit, size, False)

    @staticmethod
    def distances(size: Floats, dtype: Any, terms: float) -> Rounding:
        """For powers of 2 of sums of `terms` products."""
        return Rounding(UNIT[np.dtype(dtype)] * (6.0 + sum_of(terms)), size, True)

    def of_sum(self, rows: Any, columns: Index, coef: Floats) -> Floats:
        """Bound the errors of ``K[rows, columns] @ coef``, including the rounding of the sum in float64."""
        weight = np.abs(coef)
        adding = _DOUBLE * sum_of(len(coef))
        with np.errstate(over="ignore"):
            spread = float(weight @ self.size[columns])
            if not self.distance:
                return np.asarray((self.unit + adding) * self.size[rows] * spread)
            total = float(weight.sum())
            close = np.minimum(self.size[rows] * total, spread)
            return np.asarray(self.unit * (_LOG_2 * (3.0 * close + 1.1 * total) + total) + adding * total)

    def of_any_sum(self, terms: int) -> float:
        """Bound `of_sum` for any rows and so many columns, per unit of the sum of ``|coef|``."""
        adding = _DOUBLE * sum_of(terms)
        largest = float(self.size.max(initial=0.0))
        if not self.distance:
            return (self.unit + adding) * (largest * largest)
        return self.unit * (_LOG_2 * (3.0 * largest + 1.1) + 1.0) + adding


def sum_of(terms: float) -> float:
    """Error of a sum of so many rounded terms, in units in the last place."""
    return 4.0 + 2.0 * math.sqrt(max(terms, 0.0))
