"""Calls of all chunks of a cluster, which survive the loss of workers.

A call is one task per chunk. Its arguments travel with the task, so that nothing has to be placed on workers
beforehand; tasks and chunks go wherever the scheduler puts them. Whatever is lost, cancelled or killed is
submitted again; every wait has an end.
"""

from __future__ import annotations

import itertools
import pickle
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from distributed import CancelledError, Client, Future, KilledWorker, wait
from distributed.comm import CommClosedError

from maxmargin._compiled.limits import check
from maxmargin._types import Index
from maxmargin.dask.chunk import Chunk
from maxmargin.dask.frame import Frame

#: Names of tasks, as the dashboard shows them.
NAMES = {
    "about": "prepare",
    "begin": "place-point",
    "end": "forget",
    "entries": "gradient",
    "exact": "exact-sums",
    "rebuild": "rebuild-gradient",
    "step": "kernel-update",
    "sums": "kernel-sums",
    "take": "fetch-rows",
}
# Seconds between two looks at limits and Ctrl-C; without any worker; for the transfer of answers.
_POLL, _NO_WORKERS, _TRANSFER = 0.25, 60.0, 120.0
# Times that a call is submitted before it is given up.
_ATTEMPTS = 20
_LOST = (CancelledError, KilledWorker, CommClosedError, TimeoutError, OSError)


class ClusterError(RuntimeError):
    """The cluster cannot finish a computation."""


@dataclass
class Traffic:
    """Counts of a session."""

    calls: int = 0
    repeated: int = 0
    rebuilt: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    #: Seconds of all calls, and of the longest kernel sums in each.
    seconds: float = 0.0
    work: float = 0.0


def make_chunk(frame: Frame, order: Index, cuts: Sequence[tuple[int, int]], *parts: Any) -> Chunk:
    """A chunk from rows of partitions; runs on a worker."""
    return Chunk(frame, order, [part[start:stop] for part, (start, stop) in zip(parts, cuts, strict=True)])


def call_chunk(chunk: Chunk, method: str, message: bytes) -> Any:
    """Call a method of a chunk; runs on a worker."""
    return getattr(chunk, method)(*pickle.loads(message))


class Session:
    """The chunks of one fit on a cluster.

    Parameters
    ----------
    client : distributed.Client
        A client that blocks.
    frame : Frame
        Kernel and layout.
    pieces : list of list of (Future, int, int)
        For each chunk, rows ``start:stop`` of partitions.
    orders : list of ndarray of int
        For each chunk, which of its rows are used, in which order.
    """

    def __init__(
        self,
        client: Client,
        frame: Frame,
        pieces: Sequence[Sequence[tuple[Future, int, int]]],
        orders: Sequence[Index],
    ) -> None:
        self.client, self.frame = client, frame
        self._pieces, self._orders = pieces, orders
        self._id = f"0{uuid.uuid4().hex}"
        self._count = itertools.count()
        self.traffic = Traffic()
        self._lock = threading.Lock()
        #: How often each chunk was made.
        self.made = [1] * len(pieces)
        self.chunks = [self._make(i) for i in range(len(pieces))]

    def renew(self, i: int, made: int) -> None:
        """Make a chunk again that has lost its parts, unless that was done since it was `made`.

        Where a task was stolen by another worker, both have a copy of the chunk, and only one of them would
        be rebuilt: of the new chunk there is one.
        """
        with self._lock:
            if self.made[i] == made:
                self.chunks[i] = self._make(i)
                self.made[i] += 1

    def _make(self, i: int) -> Future:
        """A chunk, wherever the scheduler puts it; at first chunks are spread evenly over all threads."""
        piece = self._pieces[i]
        threads = self.client.nthreads()
        slots = [worker for worker in sorted(threads) for _ in range(threads[worker])]
        return self.client.submit(
            make_chunk,
            self.frame,
            self._orders[i],
            [(start, stop) for _, start, stop in piece],
            *(part for part, _, _ in piece),
            key=f"chunk-{self._id}-{next(self._count)}",
            pure=False,
            workers=[slots[i * len(slots) // len(self._pieces)]] if slots else None,
            allow_other_workers=True,  # a wish: whoever is left may make it
        )

    def call(
        self, method: str, messages: Sequence[tuple[Any, ...] | None], *, limited: bool = True
    ) -> list[Any]:
        """Call a method of every chunk that has a message.

        Parameters
        ----------
        method : str
            Name of a method of `Chunk` that may be called twice.
        messages : list of tuple or None
            Arguments for each chunk.
        limited : bool
            Whether the limit in force may end the wait, see `maxmargin._compiled.limits`.

        Returns
        -------
        list
            Answers; None for chunks without a message.
        """
        began = time.perf_counter()
        packed = [None if m is None else pickle.dumps(m, protocol=5) for m in messages]
        answers: dict[int, Any] = {}
        todo = [i for i, m in enumerate(packed) if m is not None]
        self.traffic.calls += 1
        for attempt in range(_ATTEMPTS):
            if attempt:
                self.traffic.repeated += 1
                time.sleep(min(0.1 * attempt, 1.0))
                self._revive(todo)
            answers |= self._try(method, {i: packed[i] for i in todo}, limited)
            todo = [i for i in todo if i not in answers]
            if not todo:
                break
        else:
            raise ClusterError(
                f"{len(todo)} of {len(messages)} tasks {NAMES[method]!r} were lost {_ATTEMPTS} times: workers "
                "keep dying. Look at their logs; the most frequent cause is too little memory."
            )
        found = [answers.get(i) for i in range(len(messages))]
        self.traffic.bytes_sent += sum(len(m) for m in packed if m is not None)
        self.traffic.bytes_received += sum(_size(a) for a in found)
        self.traffic.seconds += time.perf_counter() - began
        self.traffic.work += max((getattr(a, "seconds", 0.0) for a in found), default=0.0)
        return found

    def _try(self, method: str, messages: dict[int, bytes | None], limited: bool) -> dict[int, Any]:
        """Submit the calls once; the answers of those that were not lost."""
        futures = {
            i: self.client.submit(
                call_chunk,
                self.chunks[i],
                method,
                message,
                key=f"{NAMES[method]}-{self._id}-{next(self._count)}",
                pure=False,
            )
            for i, message in messages.items()
        }
        self._wait(list(futures.values()), limited)
        for future in futures.values():
            if future.status == "error":
                error = future.exception(timeout=_TRANSFER)
                if not isinstance(error, _LOST):
                    raise error
        done = {i: f for i, f in futures.items() if f.status == "finished"}
        try:
            return dict(
                self.client.sync(
                    lambda: self.client.gather(done, errors="skip", asynchronous=True),
                    callback_timeout=_TRANSFER,
                )
            )
        except _LOST:
            return {}

    def _wait(self, futures: list[Future], limited: bool) -> None:
        """Wait until all futures are finished, lost or failed."""
        alone_since: float | None = None
        while True:
            try:
                wait(futures, timeout=_POLL)
                return
            except TimeoutError:
                pass
            except (CancelledError, KilledWorker, CommClosedError):
                return
            if limited:
                check()
            if all(f.status != "pending" for f in futures):
                return
            if self.client.status not in ("running", "connecting"):
                raise ClusterError(f"The connection to the scheduler is lost (client: {self.client.status}).")
            alone = not self.client.nthreads()
            alone_since = (alone_since or time.monotonic()) if alone else None
            if alone_since is not None and time.monotonic() - alone_since > _NO_WORKERS:
                raise ClusterError(
                    f"The cluster has had no workers for {_NO_WORKERS:g} s: start some and fit again."
                )

    def _revive(self, todo: list[int]) -> None:
        """Make chunks again that the scheduler does not make by itself."""
        for i in todo:
            if self.chunks[i].status in ("cancelled", "lost", "error"):
                error = (
                    self.chunks[i].exception(timeout=_TRANSFER) if self.chunks[i].status == "error" else None
                )
                if error is not None and not isinstance(error, _LOST):
                    raise error
                for part, _, _ in self._pieces[i]:
                    if part.status in ("cancelled", "lost"):
                        raise ClusterError(
                            "A part of the training data is lost, and the cluster has no recipe for it: pass dask "
                            "collections that are read from files, not data that were scattered."
                        )
                self.renew(i, self.made[i])

    def close(self) -> None:
        """Release the chunks."""
        self.chunks = []


def _size(answer: Any) -> int:
    """Bytes of the arrays of an answer."""
    if isinstance(answer, np.ndarray):
        return int(answer.nbytes)
    if isinstance(answer, tuple):
        return sum(_size(part) for part in answer)
    if hasattr(answer, "indptr"):
        return int(answer.data.nbytes + answer.indices.nbytes + answer.indptr.nbytes)
    return 8
