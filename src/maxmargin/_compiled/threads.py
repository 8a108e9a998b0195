"""Threads of one computation: a pool that ends with it, and BLAS limited to one thread meanwhile.

Numba's threading layers are not used: its workqueue aborts the process on concurrent launches, and GNU
OpenMP does not work after a fork. Instead compiled loops release the GIL, and Python threads run them on
disjoint ranges. BLAS calls inside these ranges are single-threaded, so that ``n_jobs`` is the number of busy
cores for loops and for matrix products.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import joblib
import threadpoolctl
from threadpoolctl import ThreadpoolController

from maxmargin._compiled.limits import Limit, current, under


def _take_control() -> None:
    """Let this thread set limits: from threadpoolctl 3.7 on only the first thread that set one can."""
    clear = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


def effective_n_jobs(n_jobs: int | None) -> int:
    """Number of threads that `n_jobs` asks for.

    None means every core this process may use (CPU affinity, container limits, the share that a
    joblib worker was given and ``OMP_NUM_THREADS`` are respected); negative numbers count back
    from all cores as in joblib.
    """
    cores = _cores()
    if n_jobs is None:
        limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
        return min(cores, int(limit)) if limit.isdigit() and int(limit) > 0 else cores
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0: use None for all cores, or 1 for one thread.")
    return max(1, cores + 1 + n_jobs) if n_jobs < 0 else n_jobs


@functools.cache
def _cores() -> int:
    return int(joblib.cpu_count())  # reads the container's limits, which takes a quarter of a millisecond


def _set_threads(numbers: list[tuple[Any, int]]) -> None:
    """Set the numbers of threads of libraries."""
    if numbers:
        _take_control()
        for library, n in numbers:
            library.set_num_threads(n)
        _take_control()


class _SingleThreadedBlas:
    """Limits BLAS to one thread while at least one computation runs; re-entrant, shared."""

    def __init__(self) -> None:
        self._reset()
        if hasattr(os, "register_at_fork"):
            # A child that is forked during a fit inherits its limit but not its threads. The lock is held
            # during the fork, so that the limit is either set and recorded, or not set.
            os.register_at_fork(
                before=lambda: self._lock.acquire(),
                after_in_parent=lambda: self._lock.release(),
                after_in_child=self._reset_in_child,
            )

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        # Libraries that were limited, with the number of threads that they had.
        self._limited: list[tuple[Any, int]] = []
        self._controller: ThreadpoolController | None = None

    def _reset_in_child(self) -> None:
        limited = self._limited
        self._reset()
        _set_threads(limited)

    def __enter__(self) -> None:
        with self._lock:
            if self._depth == 0:
                if self._controller is None:
                    # Scanning the loaded libraries takes milliseconds: once per process.
                    import scipy.linalg  # noqa: F401  (its BLAS must be loaded to be found)

                    self._controller = ThreadpoolController().select(user_api="blas")
                threads = [(library, library.num_threads) for library in self._controller.lib_controllers]
                self._limited = [(library, n) for library, n in threads if n != 1]
                _set_threads([(library, 1) for library, _ in self._limited])
            self._depth += 1

    def raised(self, limit: int) -> Any:
        """Allow more threads for one large matrix product, unless several computations are running."""
        if limit <= 1 or self._depth != 1 or self._controller is None:
            return contextlib.nullcontext()
        return self._controller.limit(limits=limit, user_api="blas")

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                _set_threads(self._limited)
                self._limited = []


_blas = _SingleThreadedBlas()
_WORKER = "maxmargin-worker"


class Threads:
    """A context in which `run` spreads calls over `n_jobs` threads.

    Examples
    --------
    >>> from maxmargin._compiled.threads import Threads
    >>> squares = [0, 0, 0]
    >>> def square(i):
    ...     squares[i] = i * i
    >>> with Threads(2) as threads:
    ...     threads.run(square, [(0,), (1,), (2,)])
    >>> squares
    [0, 1, 4]
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n = effective_n_jobs(n_jobs)
        self._pool: ThreadPoolExecutor | None = None
        self._entered = 0

    def __enter__(self) -> Threads:
        if self._entered == 0:
            _blas.__enter__()
        self._entered += 1
        return self

    def __exit__(self, *error: object) -> None:
        self._entered -= 1
        if self._entered == 0:
            if self._pool is not None:
                self._pool.shutdown(wait=True)
                self._pool = None
            _blas.__exit__()

    def run(self, function: Callable[..., Any], calls: Iterable[Sequence[Any]]) -> None:
        """Call ``function(*arguments)`` for each of `calls`; the first error is raised."""
        todo = list(calls)
        # A worker that submits work to its own pool would wait for itself.
        nested = threading.current_thread().name.startswith(_WORKER)
        if self.n == 1 or len(todo) <= 1 or not self._entered or nested:
            for arguments in todo:
                function(*arguments)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.n - 1, thread_name_prefix=_WORKER)
        # One queue for all threads, so that long calls do not leave a core idle. The calling thread works
        # too, which saves one task submission.
        queue = iter(todo)
        limit, helpers = current(), min(self.n, len(todo)) - 1
        others = [self._pool.submit(_under, limit, function, queue) for _ in range(helpers)]
        try:
            _each(function, queue)
        finally:
            # Workers that have not started have nothing left to do, and may start late on busy cores.
            late = [future for future in others if not future.cancel()]
            errors = [error for future in late if (error := future.exception()) is not None]
        if errors:
            raise errors[0]

    def blas(self) -> Any:
        """A context in which a call of BLAS or LAPACK may use all threads."""
        nested = threading.current_thread().name.startswith(_WORKER)
        return _blas.raised(1 if nested else self.n)

    def split(self, n: int, smallest: int) -> list[tuple[int, int]]:
        """Cut ``range(n)`` into at most one range per thread, none shorter than `smallest`."""
        parts = max(1, min(self.n, n // max(1, smallest)))
        cuts = [n * k // parts for k in range(parts + 1)]
        return list(zip(cuts[:-1], cuts[1:], strict=True))


def _under(limit: Limit, function: Callable[..., Any], calls: Iterable[Sequence[Any]]) -> None:
    with under(limit):
        _each(function, calls)


def _each(function: Callable[..., Any], calls: Iterable[Sequence[Any]]) -> None:
    for arguments in calls:
        function(*arguments)
