"""Calls of all chunks of a cluster, which survive the loss of workers.

A call is one task per chunk. Its arguments travel with the task, so that nothing has to be placed on workers
beforehand; tasks and chunks go wherever the scheduler puts them. Whatever is lost, cancelled or killed is
submitted again; every wait has an end, see `maxmargin.dask.waiting`.
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
from distributed import Client, Future
from numpy.typing import NDArray

from maxmargin._types import Index
from maxmargin.dask.chunk import Chunk
from maxmargin.dask.frame import Frame
from maxmargin.dask.waiting import ANSWER, ClusterError, gather, large_messages, lost_because, threads_of

# Bytes of what all chunks are sent, times the chunks, above which it is sent once, and passed on by workers.
_SENT_TO_EACH = 1 << 22
#: Names of tasks, as the dashboard shows them, by the method of a chunk.
NAMES = {
    "about": "prepare",
    "begin": "place-point",
    "entries": "gradient",
    "exact": "exact-sums",
    "step": "kernel-update",
    "sums": "kernel-sums",
    "take": "fetch-rows",
}


@dataclass
class Traffic:
    """Counts of a session."""

    #: Calls of all chunks; tasks that were lost and submitted again; chunks whose gradient was made again.
    calls: int = 0
    repeated: int = 0
    rebuilt: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    #: Seconds of all calls, of the longest one, and of the longest kernel sums in each.
    seconds: float = 0.0
    longest: float = 0.0
    work: float = 0.0


def make_chunk(frame: Frame, order: Index, cuts: Sequence[tuple[int, int]], *parts: Any) -> Chunk:
    """A chunk from rows of partitions; runs on a worker."""
    return Chunk(frame, order, [part[start:stop] for part, (start, stop) in zip(parts, cuts, strict=True)])


def call_chunk(
    chunk: Chunk, method: str, message: NDArray[np.uint8], shared: NDArray[np.uint8] | None
) -> tuple[str, Any]:
    """Call a method of a chunk; runs on a worker, whose address is returned with the answer."""
    from distributed import get_worker

    arguments = pickle.loads(message.data)
    answer = getattr(chunk, method)(*arguments, *(() if shared is None else (pickle.loads(shared.data),)))
    return get_worker().address, answer


def as_it_is(message: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Data for all chunks; runs on a worker, from which the others fetch them."""
    return message


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
        self._lock = threading.RLock()  # problems that run side by side share a session
        #: The worker that has answered for a chunk.
        self._places: dict[int, str] = {}
        self.chunks = [self._make(i) for i in range(len(pieces))]
        #: Problems that are solved, whose parts each chunk forgets with the next one.
        self.finished: list[set[str]] = [set() for _ in pieces]

    def _make(self, i: int) -> Future:
        """A chunk, wherever the scheduler puts it; at first chunks are spread evenly over all threads."""
        self._places.pop(i, None)
        piece = self._pieces[i]
        threads = threads_of(self.client)
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
        self,
        method: str,
        messages: Sequence[tuple[Any, ...] | None],
        *,
        shared: Any = None,
        limited: bool = True,
        until: float | None = None,
        name: str | None = None,
    ) -> list[Any]:
        """Call a method of every chunk that has a message.

        Parameters
        ----------
        method : str
            Name of a method of `Chunk` that may be called twice.
        messages : list of tuple or None
            Arguments for each chunk.
        shared : object, optional
            The last argument for all chunks.
        limited : bool
            Whether the limit in force may end the wait, see `maxmargin._compiled.limits`.
        until : float, optional
            Time (`time.monotonic`) at which a TimeoutError ends the wait.
        name : str, optional
            Name of the tasks, if it is not the one in `NAMES`.

        Returns
        -------
        list
            Answers; None for chunks without a message.
        """
        began, name = time.perf_counter(), name or NAMES[method]
        packed = [None if m is None else _packed(m) for m in messages]
        called = [i for i, m in enumerate(packed) if m is not None]

        same = None if shared is None else _packed(shared)
        once = same is not None and len(same) * len(called) > _SENT_TO_EACH
        common: Any = same

        def share() -> None:
            nonlocal common
            key = f"shared-rows-{self._id}-{next(self._count)}"
            common = self.client.submit(as_it_is, same, key=key, pure=False)

        def submit(k: int) -> Future:
            key = f"{name}-{self._id}-{next(self._count)}"
            i = called[k]
            chunk, message = self.chunks[i], packed[i]
            # A wish: rows that all chunks are sent may be more than a chunk has, which would then be moved.
            where = {"workers": [self._places[i]], "allow_other_workers": True} if i in self._places else {}
            return self.client.submit(
                call_chunk, chunk, method, message, common, key=key, pure=False, **where
            )

        def repeat(k: int) -> Future:
            with self._lock:
                self.traffic.repeated += 1
                self._revive(called[k])
            if once and lost_because(common) is not None:
                share()
            return submit(k)

        with large_messages():
            if once:
                share()
            futures = [submit(k) for k in range(len(called))]
            timeout = None if until is None else max(0.0, until - time.monotonic())
            found = gather(self.client, futures, what=name, timeout=timeout, resubmit=repeat, limited=limited)
        seconds = time.perf_counter() - began
        with self._lock:
            traffic = self.traffic
            traffic.calls += 1
            traffic.bytes_sent += sum(len(m) for m in packed if m is not None)
            traffic.bytes_sent += 0 if same is None else len(same) * (1 if once else len(called))
            traffic.bytes_received += sum(_size(answer) for _, answer in found)
            traffic.seconds += seconds
            traffic.longest = max(traffic.longest, seconds)
            traffic.work += max((getattr(answer, "seconds", 0.0) for _, answer in found), default=0.0)
            answers: list[Any] = [None] * len(messages)
            for i, (place, answer) in zip(called, found, strict=True):
                answers[i], self._places[i] = answer, place
        return answers

    def _revive(self, i: int) -> None:
        """Make a chunk again that the scheduler has given up, from parts that it may have given up too."""
        if lost_because(self.chunks[i]) is None:
            return
        given_up = []
        for part, _, _ in self._pieces[i]:
            if part.status == "cancelled":
                raise ClusterError(
                    "A part of the training data is lost, and the cluster has no recipe for it: pass dask "
                    "collections that are read from files, not data that were scattered."
                )
            if lost_because(part) is not None:
                given_up.append(part)
        if given_up:
            self.client.sync(lambda: self.client.retry(given_up, asynchronous=True), callback_timeout=ANSWER)
        self.chunks[i] = self._make(i)

    def unite(self, i: int) -> None:
        """Make a chunk again of which several workers have copies, after a task was stolen.

        Each copy would have its own parts, and a task could meet any of them.
        """
        with self._lock:
            key, scheduler = self.chunks[i].key, self.client.scheduler
            holders = self.client.sync(lambda: scheduler.who_has(keys=[key]), callback_timeout=ANSWER)
            if len(holders.get(key, ())) > 1:
                self.chunks[i] = self._make(i)

    def close(self) -> None:
        """Release the chunks."""
        self.chunks = []


def _packed(message: Any) -> NDArray[np.uint8]:
    """A message as an array, which dask copies less often than bytes: half a megabyte takes 10 ms less."""
    return np.frombuffer(pickle.dumps(message, protocol=5), np.uint8)


def _size(answer: Any) -> int:
    """Bytes of the arrays of an answer."""
    if isinstance(answer, np.ndarray):
        return int(answer.nbytes)
    if isinstance(answer, tuple):
        return sum(_size(part) for part in answer)
    if hasattr(answer, "indptr"):
        return int(answer.data.nbytes + answer.indices.nbytes + answer.indptr.nbytes)
    return 8
