"""The client that an estimator works with."""

from __future__ import annotations

from typing import Any


def find_client(client: Any = None) -> Any:
    """The client that was given or else the current one; None if there is none.

    Parameters
    ----------
    client : distributed.Client, optional
        The parameter of an estimator.

    Returns
    -------
    distributed.Client or None
    """
    from distributed import Client, get_client

    if client is None:
        try:
            client = get_client()
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
        raise ValueError(f"client is {client.status}: make a new Client().")
    return client
