"""Early ends of a computation: a deadline, Ctrl-C, and the checks of long computations.

A `Limit` belongs to one fit. It is over at its deadline or when the user interrupts the fit. Compiled loops
read `Limit.flag`, which a timer sets; Python code reads `Limit.over`, or calls `check` between two slices of
a long computation, which raises `Stopped`. The limit in force is stored per thread, so that it need not be
passed to kernels and matrices.

After the end, work that takes at most a twentieth of a second or a single slice can still be done, such as a
last gradient or the certificate. A fit overruns its limit by that time and a few slices. For large data the
time of passes over all of it is reserved before, see `Limit.reserve`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

# Multiplications and additions per slice: a few hundredths of a second.
_SLICE = 100_000_000
# The same of a call that runs in another thread: about a tenth of a second.
_CALL = 3 * _SLICE
# Seconds after the end in which work may still be finished.
_GRACE = 0.05
# A reservation that is longer than the last by less than these seconds leaves the timer as it is.
_WORTH_RESERVING = 0.01
# Values of the flag of a limit.
_RUNNING, _INTERRUPTED, _TIME_IS_UP = range(3)

_local = threading.local()


class Stopped(Exception):
    """A long computation was stopped: the time is up, or the user interrupted it."""


class Limit:
    """The end of one computation.

    Parameters
    ----------
    seconds : float, optional
        Time limit, from now on.
    shared : bool
        Whether limits that are entered under this one, those of fits within the computation, end with it.

    Attributes
    ----------
    flag : ndarray of one int64
        Not zero after the end; for compiled loops.
    signals : bool
        Whether Ctrl-C sets the flag, which needs Python code in the main thread; see `call`.
    abandoned : bool
        Whether Ctrl-C raised at once: the results so far are not needed any more.

    Examples
    --------
    >>> from maxmargin._compiled.limits import Limit
    >>> Limit().over, Limit(seconds=0.0).over
    (False, True)
    """

    def __init__(self, seconds: float | None = None, *, shared: bool = False) -> None:
        self.flag = np.zeros(1, np.int64)
        self.deadline = None if seconds is None else time.perf_counter() + seconds
        # Seconds by which the deadline may be brought forward, and by which it has been.
        self._most_reserved, self._reserved = 0.5 * (seconds or 0.0), 0.0
        self._lock = threading.Lock()
        self.signals = self.abandoned = False
        self._ended = np.inf
        self._timer: threading.Timer | None = None
        self._inner: list[Limit] | None = [] if shared else None

    @property
    def over(self) -> bool:
        """Whether the computation has to end."""
        if self.deadline is not None and time.perf_counter() >= self.deadline:
            self._expire()
        return bool(self.flag[0])

    def reserve(self, seconds: float) -> None:
        """Bring the deadline forward by the time that work after the end will take.

        By half of the time at most; of several reservations the longest counts.
        """
        seconds = min(seconds, self._most_reserved)
        with self._lock:  # problems that are solved side by side share a limit
            if self.deadline is None or seconds < self._reserved + _WORTH_RESERVING:
                return
            self.deadline -= seconds - self._reserved
            self._reserved = seconds
            if self._timer is not None:
                self._timer.cancel()
                self._start_timer()

    @property
    def late(self) -> bool:
        """Whether the time for finishing has passed too: no work is started or continued."""
        return self.over and time.perf_counter() > self._ended + _GRACE

    @property
    def pulled(self) -> bool:
        """Whether the user has interrupted the computation; may be set."""
        return bool(self.flag[0] == _INTERRUPTED)

    @pulled.setter
    def pulled(self, yes: bool) -> None:
        if yes:
            self._end(_INTERRUPTED)

    def _expire(self) -> None:
        if not self.flag[0]:
            self._end(_TIME_IS_UP)

    def _end(self, why: int) -> None:
        if not self.flag[0]:
            self._ended = time.perf_counter()
        self.flag[0] = why
        for inner in tuple(self._inner or ()):
            inner._end(why)

    def __enter__(self) -> Limit:
        """Start the timer, and put this thread and its workers under the limit."""
        if self.deadline is not None and not self.over:
            self._start_timer()
        self._before = outer = current()
        if outer._inner is not None:
            self.signals = self.signals or outer.signals
            outer._inner.append(self)
            if outer.flag[0]:
                self._end(int(outer.flag[0]))
        _local.limit = self
        return self

    def _start_timer(self) -> None:
        assert self.deadline is not None
        self._timer = threading.Timer(max(0.0, self.deadline - time.perf_counter()), self._expire)
        self._timer.daemon = True
        try:
            self._timer.start()
        except RuntimeError:  # no threads available: Python code still checks the clock
            self._timer = None

    def __exit__(self, *error: object) -> None:
        _local.limit = self._before
        if self._before._inner is not None:
            self._before._inner.remove(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


_ENDLESS = Limit()


def current() -> Limit:
    """The limit in force in this thread; by default one without an end."""
    limit: Limit | None = getattr(_local, "limit", None)
    return _ENDLESS if limit is None else limit


@contextmanager
def under(limit: Limit) -> Iterator[None]:
    """Put this thread under a limit whose timer belongs to another thread."""
    before = current()
    _local.limit = limit
    try:
        yield
    finally:
        _local.limit = before


def check() -> None:
    """Raise `Stopped` if there is no time left; called between two slices."""
    if current().late:
        raise Stopped


def affordable(work: float) -> bool:
    """Whether there is time for so many operations that are useful, not necessary: after the end, a slice."""
    return not current().over or (work <= _SLICE and not current().late)


def slices(n: int, cost: float, multiple: int = 1, most: int | None = None) -> Iterator[tuple[int, int]]:
    """Ranges that cover ``range(n)`` and take a slice each, where an entry takes `cost` operations.

    All start at a `multiple`, and none has more than `most` entries. `check` is called before every range
    but the first.
    """
    step = max(1, int(_SLICE / max(1.0, cost)) // multiple) * multiple
    step = step if most is None else min(step, most)
    for start in range(0, n, step):
        if start:
            check()
        yield start, min(n, start + step)


def call(function: Callable[..., Any], *arguments: Any, work: float) -> Any:
    """Call a compiled function that reads the flag and takes up to `work` operations.

    Python handles signals in the main thread only, between two bytecode instructions. Long calls therefore
    run in another thread, for which the main thread waits: so Ctrl-C is handled during the call.
    """
    limit = current()
    if not limit.signals or work < _CALL or threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    outcome: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            with under(limit):
                outcome.append(function(*arguments))
        except BaseException as error:  # raised again in the thread that waits
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no threads available
        return function(*arguments)
    while thread.is_alive():
        try:
            thread.join()
        except BaseException:  # a second Ctrl-C: the call must end before its arrays are freed
            limit.pulled = True
            thread.join()
            raise
    if errors:
        raise errors[0]
    return outcome[0]
