"""Values by key, each computed once for all threads of a process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class Memo:
    """Values by key, of which the least recently used go first if their number is limited.

    The first caller that asks for a key makes its value while others that ask for it wait; callers with other
    keys do not. An exception is raised to the caller whose function raised it and is not kept: the next one
    makes the value. A pickled object is empty, so that another process computes its own values.

    Parameters
    ----------
    keep : int, optional
        Number of values that are kept; None for all.
    needed : callable, optional
        Whether the value of a key will be asked for again: then it is kept in addition. Not pickled.

    Examples
    --------
    >>> from maxmargin._compiled.memo import Memo
    >>> memo = Memo()
    >>> memo.get("labels", lambda: [0, 1]) is memo.get("labels", lambda: [0, 1])
    True
    """

    def __init__(self, keep: int | None = None, needed: Callable[[Any], bool] | None = None) -> None:
        self.keep, self._needed = keep, needed
        self._lock = threading.Lock()
        # An empty list until the value is made: any value, also None, may be kept.
        self._entries: OrderedDict[Hashable, tuple[threading.Lock, list[Any]]] = OrderedDict()

    def __reduce__(self) -> tuple[type[Memo], tuple[int | None]]:
        return Memo, (self.keep,)

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, which the first caller makes while others wait."""
        with self._lock:
            lock, made = self._entries.setdefault(key, (threading.Lock(), []))
            self._entries.move_to_end(key)
            # Before the new value is made, so that its memory can be that of the old one.
            if self.keep is not None:
                self._remove(len(self._entries) - self.keep)
        with lock:
            if not made:
                made.append(make())
            value: T = made[0]
            return value

    def _remove(self, n: int) -> None:
        """Remove n values that are not needed, the least recently used first; not the last one."""
        for key in list(self._entries)[:-1] if n > 0 else ():
            if n > 0 and not (self._needed is not None and self._needed(key)):
                del self._entries[key]
                n -= 1

    def clear(self) -> None:
        """Forget all values; those that are being made reach their callers."""
        with self._lock:
            self._entries.clear()
