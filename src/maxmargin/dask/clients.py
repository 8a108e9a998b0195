"""The client that an estimator works with."""

from __future__ import annotations

from typing import Any


def find_client(client: Any = None) -> Any:
    """The client that was given or else the current one; None if there is none.

    Within a task there is none unless it is given: a task that waits for other tasks occupies its worker, and
    may wait for itself. A client from ``distributed.worker_client()`` leaves the worker to others meanwhile.

    Parameters
    ----------
    client : distributed.Client, optional
        The parameter of an estimator.

    Returns
    -------
    distributed.Client or None

    Raises
    ------
    TypeError
        If it is not a client.
    ValueError
        If it is asynchronous, or closed.
    """
    from distributed import Client

    if client is None:
        if _in_a_task():
            return None
        try:
            client = Client.current()
        except ValueError:
            return None
    if not isinstance(client, Client):
        raise TypeError(f"client must be a distributed.Client or None, got {client!r}.")
    if client.asynchronous:
        raise ValueError(
            "client is asynchronous, and fit blocks until it is done: use a Client without asynchronous=True "
            "(in a notebook too), or call fit in a thread with a client of its own."
        )
    if client.status in ("closed", "closing"):
        raise ValueError(
            f"client is {client.status}: make a new Client(), and pass it with set_params(client=...); with "
            "set_params(client=None) the current client is used."
        )
    return client


def _in_a_task() -> bool:
    from distributed import get_worker

    try:
        get_worker()
    except ValueError:
        return False
    return True
