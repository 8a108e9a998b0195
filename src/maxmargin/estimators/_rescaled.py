"""Rounding errors of coefficients that a model stores in another scaling than they were solved in.

With huge kernel values (sentinels, high degrees) one more rounding of the coefficients moves the decision
function by more than everything else, so gaps allow for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin._types import Floats, Index
from maxmargin.kernels.kernel import Kernel


def lengths_of(X: Any, kernel: Kernel, order: Index) -> Floats:
    """Lengths of the samples `order` in feature space."""
    if kernel.translation_invariant:
        return np.ones(len(order))
    from maxmargin.gram.gram import Gram  # compiled loops: not at import

    return np.sqrt(np.abs(Gram(X, kernel, cache_bytes=0, dtype=np.float64, index=order).diag))


def rounding_of_coefficients(u: Floats, lengths: Floats) -> Floats:
    """Bound the changes of K u if each u is rounded once more, given the samples' lengths in feature space.

    |k(x, z)| is at most the product of the lengths of x and z.
    """
    return 2.0**-52 * lengths * float(np.abs(u) @ lengths)
