"""Probabilities from the values that cross-validation leaves behind."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from maxmargin._types import Floats
from maxmargin.estimators.calibration import CALIBRATORS, Calibrator
from maxmargin.estimators.one_vs_one import BaseSVC
from maxmargin.model_selection.jobs import Job, SearchSetup
from maxmargin.model_selection.pipelines import split_pipeline
from maxmargin.model_selection.runner import run_job


def check_calibration(calibrate: str | None, estimator: Any) -> None:
    """Refuse to calibrate an estimator without values of class pairs."""
    _, last, _ = split_pipeline(estimator)
    if calibrate is not None and not isinstance(last, BaseSVC):
        raise ValueError(
            f"calibrate={calibrate!r} needs SVC or NuSVC, got {type(last).__name__}: use calibrate=None, or "
            "CalibratedClassifierCV of scikit-learn."
        )


def equip(model: Any, calibrator: Calibrator | None) -> None:
    """Give the calibrator to a fitted `SVC` or `NuSVC`, alone or at the end of a pipeline."""
    while isinstance(model, Pipeline):
        model = model[-1]
    if calibrator is not None:
        model.set_calibrator(calibrator)


def calibrator_of(
    kind: str,
    values: Sequence[Floats],
    labels: Sequence[Any],
    classes: Any,
    weight: Sequence[Floats] | None = None,
) -> Calibrator | None:
    """A calibrator fitted to the values of held-out rows, or None if no fold has values of all pairs.

    A fold whose training rows lack a class has values of fewer pairs, and is left out.
    """
    n_pairs = len(classes) * (len(classes) - 1) // 2
    known = [k for k, of_fold in enumerate(values) if of_fold.shape[1] == n_pairs]
    if not known:
        warnings.warn(
            "No fold has all classes among its training rows: there are no probabilities.", stacklevel=4
        )
        return None
    of_rows = np.concatenate([labels[k] for k in known])
    some = np.isin(of_rows, classes)  # without rows of a class that no training row has a weight of
    return CALIBRATORS[kind].fit(
        np.concatenate([values[k] for k in known])[some],
        np.searchsorted(classes, of_rows[some]),
        len(classes),
        None if weight is None else np.concatenate([weight[k] for k in known])[some],
    )


class CalibratedMixin:
    """`predict_proba` for estimators with `calibrate`, `calibrator_` and `best_estimator_`."""

    def _has_probabilities(self: Any) -> bool:
        """Raise AttributeError if there are none, as `available_if` wants it."""
        if self.calibrate is None:
            raise AttributeError("predict_proba is not available when calibrate=None")
        return True

    def _probabilities(self: Any, X: Any) -> Any:
        """The probabilities of a fitted estimator."""
        if self.calibrator_ is None:
            raise ValueError("No fold had all classes, so that there are no probabilities: use fewer folds.")
        return self.best_estimator_.predict_proba(X)

    @available_if(lambda self: self._has_probabilities())
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes.

        With `calibrate` they are fitted to the decision values of held-out rows, and need not agree with
        `predict`: a class with the largest probability may have a negative decision value.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        check_is_fitted(self, "best_estimator_")
        return self._probabilities(X)

    @available_if(lambda self: self._has_probabilities())
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities of the classes, see `predict_proba`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return np.log(self.predict_proba(X))


def held_out_values(X: Any, y: Any, setup: SearchSetup, params: dict[str, Any]) -> list[Floats]:
    """The values of held-out rows for one candidate of a search, which is trained once more on all folds."""
    alone = replace(setup, candidates=[params], keep_values=True)
    folds = tuple(range(len(setup.splits)))
    try:
        results = run_job(X, y, alone, Job(folds, (0,), (-1,)))
    finally:
        setup.folds.release()
    missing = [k for k, of_fold in enumerate(results) if "values" not in of_fold[0]]
    if missing:
        raise ValueError(
            f"The values of fold {missing[0]} for calibration are not known, as it was trained by "
            f"{results[missing[0]][0]['trainer']}: use calibrate=None."
        )
    return [of_fold[0]["values"] for of_fold in results]
