"""Checks of training data, of samples to predict, and of sample weights."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, validate_data

from maxmargin import solvers
from maxmargin._compiled.threads import effective_n_jobs
from maxmargin._sklearn import check_sample_weight, num_samples
from maxmargin.estimators._elsewhere import SamplesElsewhere
from maxmargin.estimators._plain import plain_samples, plain_targets, without_names
from maxmargin.estimators._scales import UnscaledDataWarning, disparity
from maxmargin.estimators.model import KernelModel
from maxmargin.kernels.functions import opaque
from maxmargin.kernels.layout import in_c_order

UNSCALED = (
    "Some features vary more than a thousand times as much as others: the small ones hardly affect the "
    "kernel, and training is slow. Scale them, for example with make_pipeline(StandardScaler(), ...)."
)
_CHECKS: dict[str, Any] = {
    "dtype": [np.float64, np.float32],
    "order": "C",
    "accept_sparse": "csr",
    "accept_large_sparse": True,
}
# Later versions refuse weights that are all zero with a message that is not that of their own SVMs.
_WEIGHT_CHECKS: dict[str, Any] = (
    {"allow_all_zero_weights": True}
    if "allow_all_zero_weights" in inspect.signature(check_sample_weight).parameters
    else {}
)
# Sums of weights are within the range of float64.
_LARGEST_WEIGHT = 1e150


def _checks(kernel: Any) -> dict[str, Any]:
    """The checks of `validate_data`; a kernel matrix is read in any order."""
    return {**_CHECKS, "order": None} if kernel == "precomputed" else _CHECKS


def check_training_data(
    estimator: Any, X: Any, y: Any = None, *, multi_output: bool = False
) -> tuple[Any, Any]:
    """Check X, y and the parameters that training depends on; sets scikit-learn's attributes of the input.

    With `multi_output` y may have several columns.
    """
    if isinstance(X, SamplesElsewhere):  # checked where they are
        solvers.get(estimator.solver)
        estimator.n_features_in_, estimator.shape_fit_ = X.shape[1], X.shape
        return X, y
    if sp.issparse(X) and estimator.kernel == "precomputed":
        raise TypeError("Sparse precomputed kernels are not supported: pass a dense matrix.")
    by_features = not opaque(estimator.kernel) and estimator.kernel != "precomputed"
    if by_features and isinstance(X, np.memmap):
        X = np.asarray(X)  # the same memory as a plain array
    if by_features and type(X) is np.ndarray and X.ndim == 2 and X.dtype.char in "fd":
        X = in_c_order(X, X.dtype)  # ten times as fast as scikit-learn's copy from Fortran order
    solvers.get(estimator.solver)  # an unknown name fails before any work is done
    effective_n_jobs(estimator.n_jobs)
    if opaque(estimator.kernel):
        check_consistent_length(X, y)
    elif without_names(estimator) and plain_samples(X) and (y is None or plain_targets(y, len(X))):
        estimator.n_features_in_ = X.shape[1]
    elif y is None:
        X = validate_data(estimator, X, **_checks(estimator.kernel))
    else:
        X, y = validate_data(estimator, X, y, multi_output=multi_output, **_checks(estimator.kernel))
    if estimator.kernel == "precomputed" and X.shape[0] != X.shape[1]:
        raise ValueError(
            f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} matrix."
        )
    if by_features and disparity(X) is not None:
        warnings.warn(UNSCALED, UnscaledDataWarning, stacklevel=5)
    estimator.shape_fit_ = X.shape if hasattr(X, "shape") else (num_samples(X),)
    return X, y


def check_samples(estimator: Any, X: Any, model: KernelModel) -> Any:
    """Check samples to predict, and that the estimator's attributes still belong together."""
    if not model.kernel.opaque:
        if not (_as_trained(estimator, X) and plain_samples(X)):
            X = validate_data(estimator, X, reset=False, **_checks(model.kernel.name))
        if sp.issparse(X) and not model.sparse:
            raise ValueError(f"cannot use sparse input in {type(estimator).__name__!r} trained on dense data")
        if model.sparse and not sp.issparse(X):
            X = sp.csr_array(X)
    if model.kernel.name == "precomputed" and X.shape[1] != model.shape[0]:
        raise ValueError(
            f"X.shape[1] = {X.shape[1]} should be equal to {model.shape[0]}, "
            "the number of samples at training time"
        )
    if model.n_support.sum() != len(model.support):
        raise ValueError(f"The internal representation of {type(estimator).__name__} was altered")
    return X


def _as_trained(estimator: Any, X: Any) -> bool:
    """Whether X has as many features as the training data, and neither have names."""
    shape = X.shape if type(X) is np.ndarray else ()
    return shape[1:] == (getattr(estimator, "n_features_in_", None),) and without_names(estimator)


def check_weights(estimator: Any, X: Any, sample_weight: Any) -> NDArray[np.float64]:
    """Return one weight per row of X, at least one of them positive."""
    if opaque(estimator.kernel):
        X = np.empty((num_samples(X), 0))
    weight = any_weights(sample_weight, X)
    if not (weight > 0).any():
        raise ValueError("Invalid input - all samples have zero or negative weights.")
    return weight


def any_weights(sample_weight: Any, X: Any, *, ensure_non_negative: bool = False) -> NDArray[np.float64]:
    """Return one weight per row of X; all of them may be zero."""
    if sample_weight is None:
        return np.ones(num_samples(X))
    weight = np.asarray(
        check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=ensure_non_negative, **_WEIGHT_CHECKS
        )
    )
    if (weight > _LARGEST_WEIGHT).any():
        raise ValueError(
            f"sample_weight must be at most {_LARGEST_WEIGHT:g}: divide all weights by a common number."
        )
    return weight
