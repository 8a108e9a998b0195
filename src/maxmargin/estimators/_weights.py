"""Sample weights as scikit-learn checks them."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._sklearn import check_sample_weight

# Later versions refuse weights that are all zero with a message that is not that of their own SVMs.
_OPTIONS: dict[str, Any] = (
    {"allow_all_zero_weights": True}
    if "allow_all_zero_weights" in inspect.signature(check_sample_weight).parameters
    else {}
)
# Sums of weights are within the range of float64.
_LARGEST = 1e150


def checked_weights(sample_weight: Any, X: Any, *, ensure_non_negative: bool = False) -> NDArray[np.float64]:
    """One weight per row of X; all of them may be zero."""
    weight = np.asarray(
        check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=ensure_non_negative, **_OPTIONS
        )
    )
    if (weight > _LARGEST).any():
        raise ValueError(
            f"sample_weight must be at most {_LARGEST:g}: divide all weights by a common number."
        )
    return weight
