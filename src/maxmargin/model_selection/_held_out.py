"""Exact leave-one-out values, without training n times."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_X_y, compute_class_weight
from sklearn.utils.validation import check_array

from maxmargin._sklearn import validate_parameters
from maxmargin._types import Floats
from maxmargin.estimators._incremental import BaseIncremental
from maxmargin.estimators._validation import any_weights
from maxmargin.estimators.incremental import IncrementalSVC
from maxmargin.estimators.incremental_svr import IncrementalSVR
from maxmargin.estimators.search_axes import kernel_of
from maxmargin.estimators.svc import SVC
from maxmargin.estimators.svr import SVR

_SHARED = ("C", "kernel", "degree", "gamma", "coef0", "loss", "n_jobs")
_SVC = (*_SHARED, "decision_function_shape", "break_ties")
_SVR = (*_SHARED, "epsilon")


def leave_one_out(
    estimator: Any, X: Any, y: ArrayLike, *, sample_weight: ArrayLike | None = None, method: str = "predict"
) -> NDArray[Any]:
    """Predict each row by the model that is trained on all others, exactly, from one training.

    The result is that of ``cross_val_predict(estimator, X, y, cv=LeaveOneOut(), method=method)`` with a
    tight tolerance. Rows that are no support vectors need no work, the others are unlearnt from the solution
    (`maxmargin.solvers.incremental`). What is estimated from the data is estimated once, from all rows:
    ``gamma="scale"`` and ``class_weight="balanced"``. Set both to numbers where that matters.

    Parameters
    ----------
    estimator : SVC, SVR, IncrementalSVC or IncrementalSVR
        With any of their losses and kernels, and a finite C. It may be fitted, and is not changed; the gamma
        of a fitted one is used.
    X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
        All rows; for ``kernel="precomputed"`` the square kernel matrix.
    y : array-like of shape (n_samples,)
        Labels or targets.
    sample_weight : array-like of shape (n_samples,), default=None
        Factors of C per sample.
    method : {"predict", "decision_function"}, default="predict"
        What is computed for each row; decision values of classifiers only.

    Returns
    -------
    ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
        Labels, targets, or decision values in the shape of the estimator's `decision_function`. For a row
        that is the only one of its class: the side of the other class, in each pair.

    Raises
    ------
    TypeError
        If the estimator is of another class.
    ValueError
        If C is infinite, or the estimator does not have the method.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC
    >>> from maxmargin.model_selection import leave_one_out
    >>> X, y = load_iris(return_X_y=True)
    >>> round(float((leave_one_out(SVC(gamma=0.1), X, y) == y).mean()), 4)
    0.9733
    """
    classifier = isinstance(estimator, SVC | IncrementalSVC)
    if not (classifier or isinstance(estimator, SVR | IncrementalSVR)):
        raise _refused(estimator)
    methods = ("predict", "decision_function") if classifier else ("predict",)
    if method not in methods:
        name = type(estimator).__name__
        raise ValueError(f"method={method!r} is not possible for {name}: use one of {', '.join(methods)}.")
    validate_parameters(estimator)
    if not np.isfinite(estimator.C):
        raise ValueError(
            "C is infinite, and without a row a hard margin may be another problem altogether: use a large "
            "finite C, or cross_val_predict of scikit-learn."
        )
    if getattr(estimator, "bias", "free") != "free":
        raise ValueError(
            f"bias={estimator.bias!r} is another problem than the one whose rows can be unlearnt: use "
            "bias='free', or cross_val_predict of scikit-learn."
        )
    X, y = check_X_y(
        X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", y_numeric=not classifier
    )
    weight = any_weights(sample_weight, X, ensure_non_negative=True)
    if getattr(estimator, "class_weight", None) is not None:
        classes, label = np.unique(y, return_inverse=True)
        weight = weight * compute_class_weight(estimator.class_weight, classes=classes, y=y)[label]
    learner, rows = _learner(estimator, X, weight)
    learner.fit(rows, y, weight)
    return _values(learner, rows, weight > 0, method)


def _learner(estimator: Any, X: Any, weight: Floats) -> tuple[BaseIncremental, Any]:
    """An estimator with the same parameters that can unlearn rows, and the rows for it."""
    if isinstance(estimator, BaseIncremental):
        return clone(estimator), X
    classifier = isinstance(estimator, SVC)
    names, kind = (_SVC, IncrementalSVC) if classifier else (_SVR, IncrementalSVR)
    learner = kind(**{name: getattr(estimator, name) for name in names})
    if isinstance(estimator.gamma, str):
        fitted = hasattr(estimator, "support_")
        kernel = (
            estimator.get_model().kernel if fitted else kernel_of(estimator, X, np.flatnonzero(weight > 0))
        )
        learner.gamma = float(kernel.gamma)
    if estimator.kernel == "precomputed":
        K = check_array(X, accept_sparse="csr", dtype=np.float64)
        if K.shape[0] != K.shape[1]:
            raise ValueError(
                f"A precomputed kernel matrix of all rows is square, got one of shape {K.shape}: "
                "leave_one_out takes the rows out itself."
            )
        learner.kernel = _Given(K)
        return learner, np.arange(len(weight), dtype=np.float64)[:, None]
    return learner, X


class _Given:
    """Values of a kernel matrix, for samples that are the numbers of its rows."""

    def __init__(self, K: Any) -> None:
        self.K = K

    def __call__(self, a: Floats, b: Floats) -> Floats:
        """The kernel between rows a and b."""
        block = self.K[a.ravel().astype(np.intp)][:, b.ravel().astype(np.intp)]
        return np.asarray(block.toarray() if hasattr(block, "toarray") else block)


def _values(learner: Any, X: Any, held: NDArray[np.bool_], method: str) -> NDArray[Any]:
    """The values of each row without it; rows without weight are out already."""
    labels = method == "predict" and isinstance(learner, IncrementalSVC)
    found = learner.leave_one_out_predict() if labels else learner.leave_one_out()
    if held.all():
        return np.asarray(found)
    out = np.empty((len(held), *found.shape[1:]), found.dtype)
    out[held], out[~held] = found, getattr(learner, method)(X[~held])
    return out


def _refused(estimator: Any) -> TypeError:
    kind = type(estimator)
    name, library = kind.__name__, kind.__module__.partition(".")[0]
    if isinstance(estimator, Pipeline):
        return TypeError(
            "leave_one_out does not take a pipeline, whose steps would have to be refitted without each row: "
            "transform X first, or use cross_val_predict of scikit-learn."
        )
    return TypeError(
        "leave_one_out takes SVC, SVR, IncrementalSVC and IncrementalSVR of maxmargin, whose training can be "
        f"undone for a row; got {name} of {library}. Use sklearn.model_selection.cross_val_predict with "
        "LeaveOneOut()."
    )
