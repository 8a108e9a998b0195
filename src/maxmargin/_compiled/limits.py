"""How a computation is ended early: a deadline, Ctrl-C, and the places where long work looks at them.

A `Limit` belongs to one fit. It ends with its deadline or when somebody interrupts it, and says so in two
ways: compiled loops read `Limit.flag`, which a timer sets; Python code asks `Limit.over`, or calls `check`
between two slices of a long computation, which raises `Stopped`. Which limit holds is known per thread, so
that neither kernels nor matrices need to be told.

When the end has come, what takes no more than a twentieth of a second or a single slice can still be done: a
last gradient, the certificate. The overrun of a fit is that and a few slices.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

# Multiplications and additions of a slice: some hundredths of a second.
_SLICE = 100_000_000
# Seconds after the end in which work is not given up.
_GRACE = 0.05
# What the flag of a limit holds.
_GOING_ON, _INTERRUPTED, _TIME_IS_UP = range(3)

_local = threading.local()


class Stopped(Exception):
    """Long work was given up: the time is up, or somebody interrupted it."""


class Limit:
    """When one computation has to end.

    Parameters
    ----------
    seconds : float, optional
        Time that it may take from now on.

    Attributes
    ----------
    flag : ndarray of one int64
        Not zero when the end has come; for compiled loops.
    signals : bool
        Whether Ctrl-C sets the flag, which takes Python code in the main thread; see `call`.
    abandoned : bool
        Whether Ctrl-C raised at once: nothing that was computed is wanted any more.

    Examples
    --------
    >>> from maxmargin._compiled.limits import Limit
    >>> Limit().over, Limit(seconds=0.0).over
    (False, True)
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.flag = np.zeros(1, np.int64)
        self.deadline = None if seconds is None else time.perf_counter() + seconds
        self.signals = self.abandoned = False
        self._ended = np.inf
        self._timer: threading.Timer | None = None

    @property
    def over(self) -> bool:
        """Whether to end now."""
        if self.deadline is not None and time.perf_counter() >= self.deadline:
            self._expire()
        return bool(self.flag[0])

    @property
    def late(self) -> bool:
        """Whether the end has come some time ago: what takes long is given up, and nothing is begun."""
        return self.over and time.perf_counter() > self._ended + _GRACE

    @property
    def pulled(self) -> bool:
        """Whether somebody interrupted; may be set."""
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

    def __enter__(self) -> Limit:
        """Begin to watch the clock, in this thread and for those that it hands work to."""
        if self.deadline is not None and not self.over:
            self._timer = threading.Timer(self.deadline - time.perf_counter(), self._expire)
            self._timer.daemon = True
            try:
                self._timer.start()
            except RuntimeError:  # no threads here: Python code still looks at the clock
                self._timer = None
        self._before = current()
        _local.limit = self
        return self

    def __exit__(self, *error: object) -> None:
        _local.limit = self._before
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


_ENDLESS = Limit()


def current() -> Limit:
    """The limit of what runs in this thread; one that never ends where there is none."""
    limit: Limit | None = getattr(_local, "limit", None)
    return _ENDLESS if limit is None else limit


@contextmanager
def under(limit: Limit) -> Iterator[None]:
    """What runs inside, in this thread, is under a limit that another thread watches."""
    before = current()
    _local.limit = limit
    try:
        yield
    finally:
        _local.limit = before


def check() -> None:
    """Raise `Stopped` if there is no time left; for between two slices."""
    if current().late:
        raise Stopped


def slices(n: int, cost: float, multiple: int = 1, most: int | None = None) -> Iterator[tuple[int, int]]:
    """Ranges that cover ``range(n)`` and take a slice each, where an entry takes `cost` operations.

    All begin at a `multiple`, and none has more than `most` entries. Before every one but the first it is
    checked whether there is time left.
    """
    step = max(1, int(_SLICE / max(1.0, cost)) // multiple) * multiple
    step = step if most is None else min(step, most)
    for start in range(0, n, step):
        if start:
            check()
        yield start, min(n, start + step)


def call(function: Callable[..., Any], *arguments: Any, work: float) -> Any:
    """``function(*arguments)``, compiled, which looks at the flag and takes up to `work` operations.

    Python handles signals in the main thread, between two instructions of its own. So that Ctrl-C is noticed
    during long calls they run in another thread, for which the main thread waits.
    """
    limit = current()
    if not limit.signals or work < 10 * _SLICE or threading.current_thread() is not threading.main_thread():
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
    except RuntimeError:  # no threads here
        return function(*arguments)
    while thread.is_alive():
        try:
            thread.join()
        except BaseException:  # a second Ctrl-C: the call must end before its arrays are given away
            limit.pulled = True
            thread.join()
            raise
    if errors:
        raise errors[0]
    return outcome[0]
