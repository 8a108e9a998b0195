"""Trained models: loading, feature names, scores and certified gaps."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.cli.output import BadInput
from maxmargin.data import Table
from maxmargin.data.table import TARGETS


def load_model(file: str) -> Any:
    """Load a model file of maxmargin or of LIBSVM."""
    from maxmargin.persistence import kind, load, load_libsvm

    found = kind(file)
    if found == "onnx":
        raise BadInput(f"{file} is an ONNX file; maxmargin reads its own model files and LIBSVM's")
    if found is None:
        raise BadInput(f"{file} is not a model file of maxmargin or LIBSVM")
    return load(file) if found == "maxmargin" else load_libsvm(file)


def set_feature_names(estimator: Any, names: list[str] | None) -> None:
    """Store the names of the features in the model, as scikit-learn does for data frames."""
    if names is not None:
        first = estimator.steps[0][1] if hasattr(estimator, "steps") else estimator
        first.feature_names_in_ = np.array(names, dtype=object)


def as_trained(estimator: Any, X: Any) -> Any:
    """X in the form that the model was trained with, dense or sparse; data frames as they are."""
    if hasattr(X, "iloc"):
        return X
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    if last.get_model().sparse:
        return X if sp.issparse(X) else sp.csr_array(X)
    return X.toarray() if sp.issparse(X) else X


def score(estimator: Any, X: Any, y: Any) -> tuple[str, float] | None:
    """Name and value of the score of the predictions; None if y is not of the kind that is predicted."""
    from sklearn.base import is_classifier, is_outlier_detector, is_regressor

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        if is_regressor(estimator):
            last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
            levels = getattr(last, "quantiles_", ())
            if np.size(last.intercept_) > max(1, len(levels)):
                return None  # several targets, of which the table has one at most
            known = y.dtype.kind in "biuf" and np.isfinite(y).all() and len(np.unique(y)) > 1
            return ("d2_pinball" if len(levels) else "r2", float(estimator.score(X, y))) if known else None
        if is_outlier_detector(estimator):
            known = set(np.unique(y).tolist()) <= {-1, 1}
            return ("accuracy", float(np.mean(estimator.predict(X) == y))) if known else None
        if is_classifier(estimator) and set(np.unique(y).tolist()) <= set(estimator.classes_.tolist()):
            return "accuracy", float(np.mean(estimator.predict(X) == y))
    return None


def gaps(model: Any) -> dict[str, float | None]:
    """Certified gaps of a fitted model: the sum over its binary problems, and the largest relative one."""
    if not hasattr(model, "dual_gap_"):  # of scikit-learn
        return {"dual_gap": None, "relative_gap": None}
    return {
        "dual_gap": float(np.sum(model.dual_gap_)),
        "relative_gap": float(np.max(model.relative_gap_)),
    }


def target_is_doubtful(estimator: Any, table: Table) -> bool:
    """Whether a regression would be scored against a column that may not be the target.

    The labels of a classifier show whether they are its target. Numbers do not: a column that is left over
    may be a serial number.
    """
    from sklearn.base import is_regressor

    called = (table.target or "").strip().lower()
    return table.guessed and is_regressor(estimator) and called not in TARGETS
