"""Ctrl-C as a switch that solvers look at between two checkpoints."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Interrupt:
    """A switch that Ctrl-C pulls; shared by all runs of one fit."""

    def __init__(self) -> None:
        self.pulled = False


@contextmanager
def watch_interrupt() -> Iterator[Interrupt]:
    """Turn the first Ctrl-C into a pulled switch; a second one raises KeyboardInterrupt as usual.

    Only the main thread receives signals, and a handler that somebody else installed is respected.
    """
    switch = Interrupt()
    previous = signal.getsignal(signal.SIGINT)
    mine = threading.current_thread() is threading.main_thread() and previous is signal.default_int_handler
    if not mine:
        yield switch
        return

    def pull(number: int, frame: Any) -> None:
        switch.pulled = True
        signal.signal(signal.SIGINT, previous)

    signal.signal(signal.SIGINT, pull)
    try:
        yield switch
    finally:
        signal.signal(signal.SIGINT, previous)
