r"""How exact a model with squared slacks is, for kernel values of any size.

With rows far apart a margin is a sum of large numbers that cancel. With :math:`|k_{ij}| \le
\sqrt{k_{ii}k_{jj}}` the rounding error of the margin of row i is at most about :math:`\epsilon \sqrt{k_{ii}}
\sum_j \sqrt{k_{jj}}|u_j|`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin._types import Floats

# Largest error of a margin that counts as rounding, relative to the `sizes` of its terms.
ROUNDING = 1e-14
# Largest sum of multipliers that counts as zero, relative to the sum of their absolute values.
SUM = 1e-12
# Relative gaps up to which a model counts as exact, and from which on it is rejected.
_SMALL, _LARGE = 1e-6, 1e-3
# A slack that counts as negligible.
_SLACK = 1e-4
# Rounding error of a sum, relative to the sum of its terms' sizes.
UNKNOWN = 1e-15


class InexactError(ValueError):
    """The margins cannot be made exact in float64."""

    def __init__(self, what: str = "The margins cannot be made exact in double precision") -> None:
        super().__init__(
            f"{what}. Scale the features, lower C, or leave out the rows that are far from all others."
        )


def sizes(diag: Floats, u: Floats) -> Floats:
    """For each row a bound of the sum of the terms of its margin, without their signs."""
    root = np.sqrt(np.abs(diag))
    with np.errstate(over="ignore"):
        return np.asarray(root * float(root @ np.abs(u)))


class Gap(NamedTuple):
    """(primal - dual) / primal: from sums in float64, and its largest value given their rounding."""

    found: float
    most: float

    @property
    def small(self) -> bool:
        """Whether the model counts as exact."""
        return self.found <= _SMALL and self.most <= _LARGE

    @property
    def acceptable(self) -> bool:
        """Whether the model can be used."""
        return self.most <= _LARGE


def relative_gap(u: Floats, values: Floats, y: Floats, ridge: Floats, level: float, terms: Floats) -> Gap:
    """The gap of multipliers u with the `values` K u.

    `terms` are the `sizes` of the margins: their rounding errors count as slack. The primal value counts as
    no less than the cost of slacks of 1e-4, because rows far apart are separated at almost no cost.
    """
    unknown = UNKNOWN * terms
    with np.errstate(over="ignore", invalid="ignore"):
        short = 1.0 - y * (values - level)
        square = float(u @ values)
        dual = float(y @ u) - 0.5 * square - 0.5 * float((ridge * u * u).sum())
        least = float((_SLACK**2 / (2.0 * ridge)).sum())
        gaps = []
        for slack, lost in (
            (np.maximum(0.0, short), 0.0),
            (np.maximum(0.0, short + unknown), 2.0 * float(np.abs(u) @ unknown)),
        ):
            primal = 0.5 * square + 0.5 * float((slack * slack / ridge).sum())
            gap = (primal - dual + lost) / (primal + least)
            gaps.append(gap if np.isfinite(gap) else np.inf)
    return Gap(*gaps)
