"""The model inside a pipeline or a search, and which of its support vectors are at their bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

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
            f"This {type(estimator).__name__} has no best_estimator_ because refit=False: use refit=True."
        )
    check_is_fitted(estimator)
    return estimator


def last_step(estimator: Any) -> Any:
    """The last step of a pipeline; any other estimator as it is."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def at_bound(model: Any) -> Bools:
    """Which support vectors have a coefficient at its bound; no one where the bound is not known.

    Estimators do not keep sample weights: where there were any, the result is approximate.
    """
    found = at_known_bound(model)
    return np.zeros(len(model.support_), dtype=np.bool_) if found is None else found


def at_known_bound(model: Any) -> Bools | None:
    """The same as `at_bound`, or None where there is no bound or it is not known."""
    coef = model.dual_coef_
    coef = coef.toarray() if sp.issparse(coef) else coef
    size = np.abs(coef)
    if hasattr(model, "quantiles_"):  # a box that is not symmetric
        size = np.where(coef > 0, size / model.quantiles_[:, None], size / (1.0 - model.quantiles_[:, None]))
    bound = _bound(model, size)
    return None if bound is None else np.asarray((size >= (1 - 1e-6) * bound).any(axis=0))


def _bound(model: Any, size: Any) -> Any:
    """The largest coefficient that each support vector may have; None if there is no such bound."""
    params = model.get_params(deep=False)  # scikit-learn's estimators have attributes C and nu even if unused
    if hasattr(model, "mu_") and "squared" not in params.get("loss", ""):
        return model.mu_
    if "C" not in params:
        if hasattr(model, "offset_"):
            return 1.0
        # The coefficients of either class add up to nu n / 2 times their bound.
        two = len(getattr(model, "classes_", ())) == 2
        return size.sum() / (model.nu * model.shape_fit_[0]) if two else None
    if isinstance(model, L2OneClassSVM) or "squared" in params.get("loss", ""):
        return None  # with squared slacks there is no bound
    weights = getattr(model, "class_weight_", ())
    return model.C * (np.repeat(weights, model.n_support_) if len(weights) else 1.0)
