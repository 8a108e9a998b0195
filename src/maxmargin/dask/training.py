"""Training on all workers."""

from __future__ import annotations

from typing import Any

from maxmargin.dask.data import TrainingData


def fit_distributed(estimator: Any, data: TrainingData, report: Any = None) -> None:
    """Fit an estimator in place, on the workers that hold the data.

    Parameters
    ----------
    estimator : estimator of `maxmargin`
        An ordinary estimator; it gets its fitted attributes.
    data : TrainingData
        The training data.
    report : callable, optional
        Gets a line of text now and then.
    """
    raise NotImplementedError
