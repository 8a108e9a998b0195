"""Training of an ordinary estimator by a single task."""

from __future__ import annotations

import warnings
from typing import Any
from uuid import uuid4

from maxmargin._sklearn import callbacks_of
from maxmargin.dask.data import TrainingData
from maxmargin.dask.parts import joined
from maxmargin.dask.waiting import gather


def fit_on_worker(estimator: Any, data: TrainingData) -> Any:
    """Fit an estimator on one worker, which gets all rows.

    Parameters
    ----------
    estimator : estimator of `maxmargin`
        Not fitted, or with a solution to start from.
    data : TrainingData
        Data of a client.

    Returns
    -------
    estimator
        A fitted copy. What it warned about is warned about here.
    """
    import dask

    if callbacks_of(estimator) is not None:
        raise ValueError(
            "Callbacks are not possible on one worker: use distribute=True, or distribute=False to train in "
            "this process."
        )

    def submit(_: int = 0) -> Any:
        key = f"fit-{type(estimator).__name__}-{uuid4().hex[:12]}"
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            return data.client.submit(
                fit_parts, estimator, data.parts, data.y, data.weight, key=key, pure=False
            )

    [(fitted, caught)] = gather(data.client, [submit()], what="training on one worker", resubmit=submit)
    for category, message in caught:
        warnings.warn(message, category, stacklevel=4)
    return fitted


def fit_parts(estimator: Any, parts: list[Any], y: Any, weight: Any) -> tuple[Any, list[tuple[type, str]]]:
    """Fit an estimator to all parts; runs on a worker. Returns it, and what it warned about."""
    from distributed import get_worker

    parameters = {"n_jobs": estimator.n_jobs, "verbose": estimator.verbose}
    if estimator.n_jobs is None:
        estimator.n_jobs = get_worker().state.nthreads
    estimator.verbose = False  # nobody sees the output of a worker
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(joined(parts), y, weight)
    estimator.set_params(**parameters)
    return estimator, [(each.category, str(each.message)) for each in caught]
