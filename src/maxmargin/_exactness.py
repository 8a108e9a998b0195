r"""How exact a machine with squared slacks is, whatever the sizes of its kernel values.

With rows far apart a margin is a sum of large numbers that cancel. Rounding leaves of it what its terms
allow: with :math:`|k_{ij}| \le \sqrt{k_{ii}k_{jj}}` no more than about :math:`\epsilon \sqrt{k_{ii}} \sum_j
\sqrt{k_{jj}}|u_j|` of the margin of row i is unknown.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# What rounding may do to a sum, relative to the sum of its terms' sizes.
_EPS = 1e-15


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


def relative_gap(u: Floats, values: Floats, y: Floats, ridge: Floats, level: float, terms: Floats) -> float:
    """(primal - dual) / primal of multipliers u with the `values` K u, at most.

    `terms` are the `sizes` of the margins: what is unknown of them counts as slack.
    """
    unknown = _EPS * terms
    with np.errstate(over="ignore", invalid="ignore"):
        slack = np.maximum(0.0, 1.0 - y * (values - level) + unknown)
        square = float(u @ values)
        primal = 0.5 * square + 0.5 * float((slack * slack / ridge).sum())
        dual = float(y @ u) - 0.5 * square - 0.5 * float((ridge * u * u).sum())
        lost = float(np.abs(u) @ unknown)
        gap = (primal - dual + 2.0 * lost) / primal if primal > 0 else np.inf
    return gap if np.isfinite(gap) else np.inf
