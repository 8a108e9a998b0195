"""Values that the jobs of a search have in common, computed once for all threads of a process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import TypeVar

T = TypeVar("T")


class Memo:
    """Values by key; a pickled object is empty, so that a job in another process computes its own.

    Examples
    --------
    >>> from maxmargin.model_selection.memo import Memo
    >>> memo = Memo()
    >>> memo.get("labels", lambda: [0, 1]) is memo.get("labels", lambda: [0, 1])
    True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[Hashable, tuple[threading.Lock, list[object]]] = {}

    def __reduce__(self) -> tuple[type[Memo], tuple[()]]:
        return Memo, ()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, which the first caller makes while others wait."""
        with self._lock:
            lock, made = self._values.setdefault(key, (threading.Lock(), []))
        with lock:
            if not made:
                made.append(make())
            return made[0]  # type: ignore[return-value]
