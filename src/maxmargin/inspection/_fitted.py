"""The machine inside a fitted estimator, and what it tells about its support vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators.incremental import IncrementalSVC
from maxmargin.estimators.one_class_l2 import L2OneClassSVM

Bools = NDArray[np.bool_]


def refitted(estimator: Any) -> Any:
    """The best estimator of a search; any other estimator as it is.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    """
    if hasattr(estimator, "best_estimator_"):
        return estimator.best_estimator_
    if hasattr(estimator, "cv_results_"):
        raise NotFittedError(
            f"This {type(estimator).__name__} has no best_estimator_: it was searched with refit=False."
        )
    check_is_fitted(estimator)
    return estimator


def machine_of(estimator: Any) -> Any:
    """The last step of a pipeline; any other estimator as it is."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def at_bound(machine: Any) -> Bools:
    """Which support vectors have as large a coefficient as their bound allows.

    Weights of samples are not kept by estimators: with them it is a guess.
    """
    coef = machine.dual_coef_
    size = np.abs(coef.toarray() if sp.issparse(coef) else coef)
    bound = _bound(machine, size)
    if bound is None:
        return np.zeros(size.shape[1], dtype=np.bool_)
    return np.asarray((size >= (1 - 1e-6) * bound).any(axis=0))


def _bound(machine: Any, size: Any) -> Any:
    """The largest coefficient that each support vector may have; None if there is no such bound."""
    params = machine.get_params(deep=False)  # scikit-learn's machines have attributes C and nu even if unused
    if hasattr(machine, "mu_"):
        return machine.mu_
    if "C" not in params:
        if hasattr(machine, "offset_"):
            return 1.0
        # The coefficients of either class add up to nu n / 2 times their bound.
        two = len(getattr(machine, "classes_", ())) == 2
        return size.sum() / (machine.nu * machine.shape_fit_[0]) if two else None
    squared = isinstance(machine, IncrementalSVC | L2OneClassSVM)
    if squared or "squared" in params.get("loss", ""):
        return None  # squared slacks bound nothing
    weights = getattr(machine, "class_weight_", ())
    return machine.C * (np.repeat(weights, machine.n_support_) if len(weights) else 1.0)
