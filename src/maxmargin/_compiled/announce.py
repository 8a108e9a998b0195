"""A line in the log when compiling takes longer than a second, so that a first fit is not silent.

It goes to the logger ``maxmargin`` as information. In a program that has not set up logging it is printed to
the standard error; ``logging.getLogger("maxmargin").setLevel("WARNING")`` silences it.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from typing import Any

from numba.core import event

#: Seconds of compilation in a process after which it is announced, once.
PATIENCE = 1.0

logger = logging.getLogger("maxmargin")
#: Names and seconds of the functions that this process compiled, inner ones within outer ones.
compiled_here: list[tuple[str, float]] = []


class _StandardError(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to the standard error as it is at that moment (a notebook replaces it)."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)
        self.setFormatter(logging.Formatter("%(name)s: %(message)s"))

    @property
    def stream(self) -> Any:
        return sys.stderr

    @stream.setter
    def stream(self, value: Any) -> None:
        pass


class _Announcer(event.Listener):  # type: ignore[misc]
    """Measures compilations of the library's functions. Numba compiles under one lock: no two at a time."""

    def __init__(self) -> None:
        self._began: list[tuple[str, float]] = []
        self._spent = 0.0
        self._timer: threading.Timer | None = None
        self._done = False

    def on_start(self, event: Any) -> None:
        name = self._name(event)
        if name is None:
            return
        if not self._began and not self._done:
            self._timer = threading.Timer(max(0.0, PATIENCE - self._spent), self._say, (name,))
            self._timer.daemon = True
            self._timer.start()
        self._began.append((name, time.perf_counter()))

    def on_end(self, event: Any) -> None:
        if self._name(event) is None or not self._began:
            return
        name, began = self._began.pop()
        compiled_here.append((name, time.perf_counter() - began))
        if not self._began:
            self._spent += time.perf_counter() - began
            if self._timer is not None:
                self._timer.cancel()

    def _name(self, event: Any) -> str | None:
        function = event.data["dispatcher"].py_func
        module = str(function.__module__)
        if module == "maxmargin.kernels._user":  # compiled with a function of the user, in every process
            return None
        return f"{module}.{function.__qualname__}" if module.partition(".")[0] == "maxmargin" else None

    def _say(self, name: str) -> None:
        self._done = True
        if not logger.hasHandlers():
            logger.addHandler(_StandardError())
            if logger.level == logging.NOTSET:
                logger.setLevel(logging.INFO)
        logger.info(
            "compiling %s and others, once per installation (`maxmargin warmup` compiles everything, "
            "`maxmargin doctor` explains)",
            name,
        )


def start() -> None:
    """Measure compilations from now on."""
    event.register("numba:compile", _Announcer())
