"""The model that a report is about, and the data that it is given with."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_consistent_length, column_or_1d

from maxmargin._sklearn import num_samples
from maxmargin.inspection._fitted import last_step, refitted
from maxmargin.kernels.functions import opaque

#: Kinds of models.
CLASSES, NUMBERS, OUTLIERS = "classification", "regression", "outlier detection"


@dataclass(frozen=True)
class Subject:
    """A fitted model, and the search that has chosen it if there was one.

    Attributes
    ----------
    given, fitted, last : object
        What the user has given; the estimator that predicts; its last step, a support vector machine.
    task : str
        `CLASSES`, `NUMBERS` or `OUTLIERS`.
    """

    given: Any
    fitted: Any
    last: Any
    task: str

    @classmethod
    def of(cls, model: Any) -> Subject:
        """Find the parts of a model; raises ValueError if it is not a fitted support vector machine."""
        if not hasattr(model, "get_params") or isinstance(model, type):
            raise ValueError(f"model must be a fitted estimator or search, got {model!r}.")
        fitted = refitted(model)
        last = last_step(fitted)
        if not hasattr(last, "support_") or not hasattr(last, "dual_coef_"):
            raise ValueError(
                f"A report needs a support vector machine, or a pipeline or search with one; "
                f"{type(last).__name__} has no support vectors."
            )
        if is_regressor(last):
            return cls(model, fitted, last, NUMBERS)
        if is_outlier_detector(last) or hasattr(last, "offset_"):
            return cls(model, fitted, last, OUTLIERS)
        if not is_classifier(last):
            raise ValueError(
                f"{type(last).__name__} is not a classifier, a regressor or an outlier detector."
            )
        return cls(model, fitted, last, CLASSES)

    # -- the search ----------------------------------------------------------------------------------

    @property
    def results(self) -> dict[str, Any] | None:
        """`cv_results_` of the search, if there was one."""
        return getattr(self.given, "cv_results_", None)

    @property
    def metric(self) -> str:
        """The name of the score in `cv_results_` by which the search has chosen."""
        refit = getattr(self.given, "refit", None)
        names = [k.removeprefix("mean_test_") for k in self.results or () if k.startswith("mean_test_")]
        return refit if isinstance(refit, str) and refit in names else (names or ["score"])[0]

    @property
    def scorer(self) -> Any:
        """The scorer of the search; None for the estimator's own score."""
        found = getattr(self.given, "scorer_", None)
        if isinstance(found, dict):
            found = found.get(self.metric)
        return found if callable(found) else None

    @property
    def score_name(self) -> str:
        """The name of the score by which models are compared."""
        scoring = getattr(self.given, "scoring", None) if self.scorer is not None else None
        if isinstance(scoring, str):
            return scoring.replace("_", " ")
        if self.metric != "score" and self.scorer is not None:
            return self.metric.replace("_", " ")
        if callable(scoring):
            return str(getattr(scoring, "__name__", "score")).strip("<>")
        return {CLASSES: "accuracy", NUMBERS: "R²", OUTLIERS: "ROC area"}[self.task]

    @property
    def only_inliers(self) -> bool:
        """Whether only rows with the label 1 have trained the model."""
        return getattr(self.given, "train_on", "all") == "inliers"

    # -- the model -----------------------------------------------------------------------------------

    @property
    def classes(self) -> Any:
        """The classes; None unless the model is a classifier."""
        return self.last.classes_ if self.task == CLASSES else None

    @property
    def n_trained(self) -> int | None:
        """Number of training rows, where it is known."""
        if hasattr(self.last, "n_held_"):
            return int(self.last.n_held_)
        shape = getattr(self.last, "shape_fit_", None)
        return None if shape is None or not shape[0] else int(shape[0])

    @property
    def precomputed(self) -> bool:
        """Whether the kernel matrix is given in place of features."""
        return getattr(self.last, "kernel", None) == "precomputed"

    def chosen(self) -> dict[str, Any]:
        """Kernel, C, nu, gamma and epsilon of the model, as far as it has them."""
        params = self.last.get_params(deep=False)
        kernel = params.get("kernel", "rbf")
        shown = "a function" if opaque(kernel) else str(kernel)
        out: dict[str, Any] = {"kernel": shown}
        names = ["C", "nu", "epsilon"]
        if kernel in ("rbf", "poly", "sigmoid", "laplacian") or opaque(kernel):
            names.append("gamma")
        if kernel == "poly":
            names.append("degree")
        for name in names:
            if name in params:
                out[name] = params[name]
        if "gamma" in out and isinstance(out["gamma"], str):
            found = getattr(self.last, "gamma_", getattr(self.last, "_gamma", None))
            model = getattr(self.last, "get_model", None)
            if found is None and model is not None:
                found = getattr(model().kernel, "gamma", None)
            out["gamma"] = found if found is not None else out["gamma"]
        if getattr(self.last, "loss", None) and "squared" in str(self.last.loss):
            out["loss"] = self.last.loss
        if getattr(self.last, "bias", "free") != "free":
            out["bias"] = self.last.bias
        return out

    def feature_names(self, X: Any) -> list[str]:
        """The names of the features: those of a data frame, or of the model, or numbers."""
        if hasattr(X, "columns"):
            return [str(name) for name in X.columns]
        first = self.fitted.steps[0][1] if isinstance(self.fitted, Pipeline) else self.fitted
        for owner in (self.given, self.fitted, first):
            found = getattr(owner, "feature_names_in_", None)
            if found is not None and len(found) == X.shape[1]:
                return [str(name) for name in found]
        return [f"feature {k}" for k in range(X.shape[1])]


def checked(subject: Subject, X: Any, y: Any) -> tuple[Any, Any]:
    """Rows and targets of the report; raises ValueError where they do not suit the model."""
    if not hasattr(X, "shape"):
        X = np.asarray(X)
    if sp.issparse(X):
        X = X.tocsr()
    targets = np.size(getattr(subject.last, "intercept_", 0.0))
    if subject.task == NUMBERS and targets > 1:
        raise ValueError(f"A report is about one target, and the model predicts {targets}.")
    if len(X.shape) != 2:
        raise ValueError(f"X must have rows and columns, got the shape {tuple(X.shape)}.")
    if num_samples(X) == 0:
        raise ValueError("X has no rows.")
    width = getattr(subject.fitted, "n_features_in_", None)
    if width is not None and X.shape[1] != width:
        raise ValueError(f"X has {X.shape[1]} features, but the model was trained with {width}.")
    if y is None:
        if subject.task != OUTLIERS:
            raise ValueError(
                f"A report on a {subject.task} needs the targets y; only outlier detectors do without."
            )
        return X, None
    y = column_or_1d(np.asarray(y))
    check_consistent_length(X, y)
    if subject.task == NUMBERS:
        if y.dtype.kind not in "biuf" or not np.isfinite(y).all():
            raise ValueError("The targets y of a regression must be finite numbers.")
        return X, y.astype(np.float64)
    known = [-1, 1] if subject.task == OUTLIERS else subject.classes.tolist()
    strange = [label for label in np.unique(y).tolist() if label not in known]
    if strange:
        allowed = ", ".join(repr(label) for label in known[:8]) + (", ..." if len(known) > 8 else "")
        hint = " (1 for inliers, -1 for outliers, or y=None)" if subject.task == OUTLIERS else ""
        raise ValueError(
            f"y holds the label {strange[0]!r}, which the model does not predict: use rows with the labels "
            f"{allowed}{hint}."
        )
    return X, y


def with_values_of(model: Any, shape: str) -> Any:
    """The fitted model with decision values for each class ("ovr") or for each pair of classes ("ovo")."""
    last = last_step(model)
    if getattr(last, "decision_function_shape", shape) == shape and not getattr(last, "break_ties", False):
        return model
    changed = copy(last)
    changed.decision_function_shape, changed.break_ties = shape, False
    if last is model:
        return changed
    whole = copy(model)
    whole.steps = [*model.steps[:-1], (model.steps[-1][0], changed)]
    return whole
