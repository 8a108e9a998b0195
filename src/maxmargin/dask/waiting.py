"""Waiting for tasks: never without a limit, and with an error that says what is missing.

Tasks that are lost with their workers are submitted again; those that the scheduler can make again by itself
it does make again. The one function for both training and loading is `gather`.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from maxmargin._compiled.limits import check

# Seconds between two looks at the tasks: Ctrl-C takes effect within that time.
PAUSE = 0.2
# Seconds to wait for a first worker: a cluster that was just asked for needs some to start its processes.
FIRST_WORKER = 30.0
# Seconds without any worker after which tasks are given up; a nanny starts its worker again within a few.
NO_WORKER = 60.0
# Seconds for an answer of the scheduler, and for fetching results that are there.
ANSWER = 30.0
FETCH = 300.0
# Seconds that a fit that is to end waits for its last gradient; without it, it ends a few steps earlier.
LAST = 10.0
# How often one task is submitted again: dask gives a task up for which a few workers have died.
RETRIES = 10
# What a broken connection raises; dask makes it again.
_BROKEN = (TimeoutError, OSError)
_WARN_ABOVE = "distributed.admin.large-graph-warning-threshold"


class ClusterError(RuntimeError):
    """The cluster cannot finish a computation: it has no workers, lost data, or cannot be reached."""


def wait_for_workers(client: Any, timeout: float | None = None) -> int:
    """Wait for a first worker; the number of those that are there.

    Parameters
    ----------
    client : distributed.Client
        A synchronous client.
    timeout : float, optional
        Seconds; by default `FIRST_WORKER`.

    Returns
    -------
    int
    """
    timeout = FIRST_WORKER if timeout is None else timeout
    until = time.monotonic() + timeout
    wanted: Any = None
    while not (n := len(threads_of(client))):
        if wanted is None:  # clusters that adapt themselves start workers only for tasks
            wanted = client.submit(int, key=f"start-workers-{uuid4().hex[:12]}", pure=False)
        if time.monotonic() > until:
            raise ClusterError(
                f"no workers: the cluster {_address(client)} has had none for {timeout:g} s. Start some, for "
                "example with cluster.scale(4), or use distribute=False to fit in this process."
            )
        time.sleep(PAUSE)
    return n


def threads_of(client: Any) -> dict[str, int]:
    """The number of threads of each worker; an error if the scheduler does not answer."""
    if client.status not in ("running", "connecting"):
        raise ClusterError(f"the client of {_address(client)} is {client.status}: make a new Client().")
    try:
        return dict(client.nthreads(callback_timeout=ANSWER))
    except _BROKEN as error:
        raise ClusterError(f"the scheduler {_address(client)} does not answer: {error}") from error


def gather(
    client: Any,
    futures: Sequence[Any],
    *,
    what: str,
    timeout: float | None = None,
    resubmit: Callable[[int], Any] | None = None,
    limited: bool = False,
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
        Gets the number of a task that was cancelled, or for which workers died, and returns a new future.
    limited : bool
        Whether the limit in force may end the wait, see `maxmargin._compiled.limits`.

    Returns
    -------
    list
        The results. An error of a task is raised as it is.
    """
    futures, tries = list(futures), [0] * len(futures)
    begin = seen = asked = time.monotonic()
    while True:
        for i, future in enumerate(futures):
            if (lost := lost_because(future)) is not None:
                threads_of(client)  # without a scheduler there is nothing to submit to
                tries[i] += 1
                if resubmit is None or tries[i] > RETRIES:
                    raise ClusterError(
                        f"{what}: task {i} of {len(futures)} was lost, {tries[i]} times: {lost}. Look at the "
                        "logs of the workers; where they die, the most frequent cause is too little memory."
                    ) from lost
                futures[i] = resubmit(i)
        pending = [future for future in futures if future.status != "finished"]
        if not pending:
            found = _fetch(client, futures)
            if found is not None:
                return found
        elif _wait(client, pending):
            continue
        if limited:
            check()
        now = time.monotonic()
        if timeout is not None and now - begin > timeout:
            raise TimeoutError(f"{what}: {len(pending)} of {len(futures)} tasks not done in {timeout:g} s.")
        if now - asked > NO_WORKER / 20:
            asked, n = now, len(threads_of(client))
            seen = now if n else seen
            if now - seen > NO_WORKER:
                raise ClusterError(
                    f"no workers: {what} waits for {len(pending)} tasks, and the cluster {_address(client)} "
                    f"has had no worker for {NO_WORKER:g} s. Start some and fit again."
                )


def lost_because(future: Any) -> BaseException | None:
    """Why a future has no result and never will, if its task can be repeated; other errors are raised."""
    from distributed import KilledWorker

    if future.status == "cancelled":
        return CancelledError(f"{future.key} was cancelled")
    if future.status != "error":
        return None
    try:
        error = future.exception(timeout=ANSWER)
    except (CancelledError, TimeoutError) as changed:
        return changed
    if isinstance(error, KilledWorker):
        return error
    raise error


@contextmanager
def large_messages() -> Iterator[None]:
    """Let tasks have large arguments, about which dask warns.

    They are meant to be there: a task that has its arguments can be repeated, while data that were scattered
    are lost with their worker.
    """
    global _users, _threshold
    import dask

    with _lock:  # the configuration is that of the process, and fits may run side by side
        _users += 1
        if _users == 1:
            _threshold = dask.config.get(_WARN_ABOVE)
            dask.config.set({_WARN_ABOVE: "1 TB"})
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                dask.config.set({_WARN_ABOVE: _threshold})


_lock, _users = threading.Lock(), 0
_threshold: Any = None


def _wait(client: Any, futures: list[Any]) -> bool:
    """Wait a moment; whether all are done."""
    from distributed import wait

    # Errors end here, in the thread of the client: those that `sync` raises refer to its frame, and so to the
    # futures, whose tasks would stay on the cluster until Python collects cycles.
    async def done() -> bool:
        with client.as_current():  # `wait` takes no client
            try:
                await wait(futures, timeout=PAUSE)
            except CancelledError:
                return True
            except TimeoutError:
                return False
        return True

    try:
        return bool(client.sync(done, callback_timeout=ANSWER))
    except TimeoutError:
        return False


def _fetch(client: Any, futures: list[Any]) -> list[Any] | None:
    """The results; None if some were lost on their way."""
    from distributed import KilledWorker

    async def fetch() -> Any:
        try:
            return await client.gather(futures, asynchronous=True)
        # Cancelled in another thread, say, which waits for the same answer.
        except (asyncio.CancelledError, CancelledError, KilledWorker, *_BROKEN):
            return None

    try:
        found = client.sync(fetch, callback_timeout=FETCH)
    except TimeoutError:
        return None
    return None if found is None else list(found)


def _address(client: Any) -> str:
    return str(getattr(getattr(client, "scheduler", None), "address", "(not connected)"))
