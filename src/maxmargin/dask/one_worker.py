"""Training of an ordinary estimator by a single task, which Ctrl-C ends as a fit in this process."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from maxmargin._compiled.limits import Limit, Stopped
from maxmargin._sklearn import callbacks_of
from maxmargin.dask.data import TrainingData
from maxmargin.dask.parts import joined
from maxmargin.dask.waiting import gather, large_messages
from maxmargin.solvers.interrupt import watch_interrupt

# Seconds between two looks of a worker whether its fit was interrupted, and for the end of such a fit.
_LOOK, _LAST = 0.25, 60.0


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
    from distributed import Event

    if callbacks_of(estimator) is not None:
        raise ValueError(
            "Callbacks are not possible on one worker: use distribute=True, or distribute=False to train in "
            "this process."
        )
    client, what = data.client, "training on one worker"
    end = Event(f"end-fit-{uuid4().hex}", client=client)

    tasks: list[Any] = []

    def submit(_: int = 0) -> Any:
        key = f"fit-{type(estimator).__name__}-{uuid4().hex[:12]}"
        with large_messages():
            tasks[:] = [
                client.submit(fit_parts, estimator, data.parts, data.y, data.weight, end, key=key, pure=False)
            ]
        return tasks[0]

    try:
        with watch_interrupt() as limit, limit:
            [(fitted, caught)] = gather(client, [submit()], what=what, resubmit=submit, limited=True)
    except Stopped:
        end.set()
        [(fitted, caught)] = gather(client, tasks, what=what, timeout=_LAST)
    except KeyboardInterrupt:
        end.set()  # or the worker would go on
        raise
    for category, message in caught:
        warnings.warn(message, category, stacklevel=4)
    return fitted


def fit_parts(
    estimator: Any, parts: list[Any], y: Any, weight: Any, end: Any
) -> tuple[Any, list[tuple[type, str]]]:
    """Fit an estimator to all parts, until the event `end`; runs on a worker.

    Returns it, and what it warned about.
    """
    from distributed import get_worker

    parameters = {"n_jobs": estimator.n_jobs, "verbose": estimator.verbose}
    if estimator.n_jobs is None:
        estimator.n_jobs = get_worker().state.nthreads
    estimator.verbose = False  # nobody sees the output of a worker
    with warnings.catch_warnings(record=True) as caught, _ended_by(end):
        warnings.simplefilter("always")
        estimator.fit(joined(parts), y, weight)
    estimator.set_params(**parameters)
    return estimator, [(each.category, str(each.message)) for each in caught]


@contextmanager
def _ended_by(end: Any) -> Iterator[None]:
    """Interrupt the fits of this thread when an event is set."""
    assert end.client is not None  # found now: the other thread does not belong to the task
    over = threading.Event()
    with Limit(shared=True) as limit:

        def look() -> None:
            while not over.wait(_LOOK):
                if end.is_set():
                    limit.pulled = True
                    return

        threading.Thread(target=look, daemon=True, name="look-for-interrupt").start()
        try:
            yield
        finally:
            over.set()
