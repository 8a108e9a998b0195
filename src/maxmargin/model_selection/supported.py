"""The estimators and splits that a search takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.estimators._incremental import BaseIncremental
from maxmargin.estimators.base import BaseSVM
from maxmargin.kernels.parts import KernelFunction
from maxmargin.model_selection.pipelines import split_pipeline

# Estimators that maxmargin has under the names of scikit-learn's.
_SAME_NAMES = ("SVC", "NuSVC", "OneClassSVM", "SVR", "NuSVR")


def check_estimator(estimator: Any, search: str) -> None:
    """Refuse estimators of other libraries, which may have the same names; `search` is who refuses."""
    _, last, _ = split_pipeline(estimator)
    if isinstance(last, BaseSVM | BaseIncremental):
        return
    kind = type(last)
    name, library = kind.__name__, kind.__module__.partition(".")[0]
    ours = f"Import {name} from maxmargin, or use" if name in _SAME_NAMES else "Use"
    raise TypeError(
        f"{search} searches the parameters of estimators of maxmargin, alone or at the end of a pipeline; "
        f"got {name} of {library}. {ours} sklearn.model_selection.GridSearchCV."
    )


def check_kernels(estimator: Any, candidates: list[dict[str, Any]]) -> None:
    """Refuse to search parameters of named kernels where the kernel is an object that has its own."""
    _, last, prefix = split_pipeline(estimator)
    for candidate in candidates:
        kernel = candidate.get(f"{prefix}kernel", last.kernel)
        searched = [name for name in ("gamma", "degree", "coef0") if f"{prefix}{name}" in candidate]
        if searched and isinstance(kernel, KernelFunction):
            raise ValueError(
                f"{searched[0]} has no effect on the kernel {kernel!r}, which has its own parameters: search "
                f"several kernels instead, as in "
                f"{{'{prefix}kernel': [rbf(g) + linear() for g in (0.01, 0.1)]}}."
            )


def row_indices(rows: Any) -> Any:
    """Rows of a split: indices, or a mask as scikit-learn allows too."""
    rows = np.asarray(rows)
    return np.flatnonzero(rows) if rows.dtype == bool else rows
