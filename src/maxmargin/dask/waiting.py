"""Waiting for tasks: never without a limit, and with an error that says what is missing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any

# Seconds between two looks at the tasks: Ctrl-C takes effect within that time.
PAUSE = 0.2
# Seconds to wait for a first worker: a cluster that was just asked for needs some to start its processes.
FIRST_WORKER = 30.0
# Seconds without any worker after which tasks are given up; a nanny starts its worker again within a few.
NO_WORKER = 60.0
# Seconds for an answer of the scheduler, and for fetching results that are there.
ANSWER = 30.0
FETCH = 300.0
# How often a task is submitted again whose workers died, or that was cancelled.
RETRIES = 3


class NoWorkersError(RuntimeError):
    """The cluster has no workers, or its scheduler is gone."""


def wait_for_workers(client: Any, timeout: float = FIRST_WORKER) -> int:
    """Wait for a first worker; the number of those that are there.

    Parameters
    ----------
    client : distributed.Client
        A synchronous client.
    timeout : float
        Seconds.

    Returns
    -------
    int
    """
    until = time.monotonic() + timeout
    while not (n := count_workers(client)):
        if time.monotonic() > until:
            raise NoWorkersError(
                f"no workers: the cluster {_address(client)} has had none for {timeout:g} s. Start some, for "
                "example with cluster.scale(4), or use distribute=False to fit in this process."
            )
        time.sleep(PAUSE)
    return n


def count_workers(client: Any) -> int:
    """Ask the scheduler for the number of its workers; an error if it does not answer."""
    if client.status not in ("running", "connecting"):
        raise NoWorkersError(f"the client of {_address(client)} is {client.status}: make a new Client().")
    try:
        return len(client.nthreads(callback_timeout=ANSWER))
    except (TimeoutError, OSError) as error:
        raise NoWorkersError(f"the scheduler {_address(client)} does not answer: {error}") from error


def gather(
    client: Any,
    futures: Sequence[Any],
    *,
    what: str,
    timeout: float | None = None,
    resubmit: Callable[[int], Any] | None = None,
) -> list[Any]:
    """Wait for tasks and fetch their results.

    Parameters
    ----------
    client : distributed.Client
        The client of the futures.
    futures : sequence of Future
        What to wait for.
    what : str
        The work, for messages: "checking X".
    timeout : float, optional
        Seconds for all of them; without it the wait ends when there are results, an error, or no worker for
        `NO_WORKER` seconds.
    resubmit : callable, optional
        Gets the number of a task that was cancelled, or whose workers died, and returns a new future.

    Returns
    -------
    list
        The results. An error of a task is raised as it is.
    """
    futures, tries = list(futures), [0] * len(futures)
    begin = seen = asked = time.monotonic()
    while True:
        for i, future in enumerate(futures):
            if (lost := _lost(future)) is not None:
                tries[i] += 1
                if resubmit is None or tries[i] > RETRIES:
                    raise RuntimeError(f"{what}: task {i} of {len(futures)} was lost: {lost}") from lost
                futures[i] = resubmit(i)
        pending = [future for future in futures if future.status != "finished"]
        if not pending:
            with suppress(TimeoutError, CancelledError):
                return _fetch(client, futures)
        elif _wait(client, pending):
            continue
        now = time.monotonic()
        if timeout is not None and now - begin > timeout:
            raise TimeoutError(f"{what}: {len(pending)} of {len(futures)} tasks not done in {timeout:g} s.")
        if now - asked > NO_WORKER / 20:
            asked, n = now, count_workers(client)
            seen = now if n else seen
            if now - seen > NO_WORKER:
                raise NoWorkersError(
                    f"no workers: {what} waits for {len(pending)} tasks, and the cluster {_address(client)} "
                    f"has had no worker for {NO_WORKER:g} s."
                )


def _lost(future: Any) -> BaseException | None:
    """Why a future has no result and never will, if its task can be repeated; other errors are raised."""
    from distributed import KilledWorker

    if future.status == "cancelled":
        return CancelledError(f"{future.key} was cancelled")
    if future.status != "error":
        return None
    error = future.exception(timeout=ANSWER)
    if isinstance(error, KilledWorker):
        return error
    raise error


def _wait(client: Any, futures: list[Any]) -> bool:
    """Wait a moment; whether all are done."""
    from distributed import wait

    with client.as_current():  # `wait` takes no client
        try:
            wait(futures, timeout=PAUSE)
        except CancelledError:
            return True
        except TimeoutError:
            return False
    return True


def _fetch(client: Any, futures: list[Any]) -> list[Any]:
    async def fetch() -> Any:
        return await client.gather(futures, asynchronous=True)

    return list(client.sync(fetch, callback_timeout=FETCH))


def _address(client: Any) -> str:
    return str(getattr(getattr(client, "scheduler", None), "address", "(not connected)"))
