"""Ctrl-C: the first press ends a fit with what it has, unless others rely on the result.

- In a fit that was called directly (from a script, a notebook, a console, a `Pipeline`) the first press ends
  the fit, which keeps the best solution so far and warns.
- A second press raises `KeyboardInterrupt`: in the same fit at any time, and within `REPEATED` seconds in
  whatever fit it reaches, so that a loop over fits ends.
- Where another library calls the fit (`GridSearchCV`, `cross_val_score`, an ensemble, a tuner...) or the
  process is a worker, the first press raises: a truncated model must not pass for a trained one.

Only the main thread receives signals, and a handler that somebody else installed is respected.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from maxmargin._compiled.limits import Limit

#: Seconds within which a second press raises, whatever runs by then.
REPEATED = 3.0

# Packages that run what a user wrote, and do not use the result themselves.
_HOSTS = {
    "IPython", "ipykernel", "traitlets", "tornado", "zmq", "jupyter_client", "jupyter_core", "nbclient",
    "spyder_kernels", "marimo", "prompt_toolkit", "ptpython", "bpython", "xonsh", "debugpy", "pydevd",
    "_pydevd_bundle", "_pydev_bundle", "_pytest", "pytest", "pluggy", "xdist", "execnet", "__channelexec__",
    "hypothesis", "click", "typer", "maxmargin", "__main__",
}  # fmt: skip
# Modules that call one fit and hand on its result: wrappers of methods, and estimators around an estimator.
_TRANSPARENT = ("sklearn.base", "sklearn.callback", "sklearn.pipeline", "sklearn.compose._target")
# Our own modules that call fits and use the results.
_LOOPS = ("maxmargin.model_selection",)

_last_press = -float("inf")


@contextmanager
def watch_interrupt(limit: Limit | None = None, *, owner: str = "") -> Iterator[Limit]:
    """Let Ctrl-C end what is under `limit`, by the rules of this module; the limit.

    `owner` is the package whose own fit this is, where that package is one that calls other fits.
    """
    limit = Limit() if limit is None else limit
    previous = signal.getsignal(signal.SIGINT)
    mine = threading.current_thread() is threading.main_thread() and previous is signal.default_int_handler
    if not mine or multiprocessing.parent_process() is not None:
        yield limit
        return
    fit: FrameType | None = sys._getframe(1)
    while fit is not None and fit.f_globals.get("__name__") == "contextlib":
        fit = fit.f_back

    def pull(number: int, frame: Any) -> None:
        global _last_press
        now = time.monotonic()
        again, repeated = limit.pulled, now - _last_press < REPEATED
        _last_press = now
        limit.pulled = True
        if not again:
            limit.abandoned = repeated or relied_on(fit, owner)
        if again or limit.abandoned:
            raise KeyboardInterrupt

    limit.signals = True
    signal.signal(signal.SIGINT, pull)
    try:
        yield limit
    finally:
        signal.signal(signal.SIGINT, previous)
        limit.signals = False
        fit = None  # a frame that refers to itself would keep the data alive


def relied_on(frame: FrameType | None, owner: str = "") -> bool:
    """Whether a library that is not a mere host called what runs in `frame`, and so uses its result."""
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        package = name.partition(".")[0]
        own = bool(owner) and _within(name, (owner,))
        if _within(name, _LOOPS) and not own:
            return True
        installed = package == "sklearn" or frame.f_code.co_filename.startswith(_libraries())
        if installed and package not in _HOSTS and not _within(name, _TRANSPARENT):
            return True
        frame = frame.f_back
    return False


def _within(name: str, modules: tuple[str, ...]) -> bool:
    return any(name == module or name.startswith(module + ".") for module in modules)


@functools.cache
def _libraries() -> tuple[str, ...]:
    """Where installed packages are."""
    folders = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    folders.add(str(Path(np.__file__).parent.parent))  # installed for one user, say
    return tuple(os.path.join(folder, "") for folder in folders if folder)
