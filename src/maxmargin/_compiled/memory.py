"""Arrays that begin on a cache line, and large buffers that are used again.

NumPy aligns to 16 bytes. A vector register of 64 bytes then straddles two cache lines at every load, which
costs compiled loops up to half of their speed.

A page of memory that is touched for the first time must be found and cleared by the system, which takes as
long as computing the kernel values that are to stand there. So a large buffer is kept when it is no longer
needed, marked as free for the system to take back whenever memory is short, and used by the next fit.
"""

from __future__ import annotations

import math
import mmap
import weakref
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

LINE = 64
# Smaller arrays are not worth keeping.
_LARGE = 1 << 24
_FLAGS = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
_CAN_KEEP = bool(_FLAGS) and hasattr(mmap, "MADV_FREE")
# At most one buffer waits here; list methods need no lock, which a fork could leave locked.
_waiting: list[mmap.mmap] = []


def aligned(shape: int | tuple[int, ...], dtype: DTypeLike, *, zero: bool = False) -> NDArray[Any]:
    """An empty (or zeroed) C-contiguous array whose first element begins a cache line."""
    dtype = np.dtype(dtype)
    size = math.prod(shape if isinstance(shape, tuple) else (shape,)) * dtype.itemsize
    raw = (np.zeros if zero else np.empty)(size + LINE, np.uint8)
    start = -raw.ctypes.data % LINE
    return raw[start : start + size].view(dtype).reshape(shape)


def recycled(shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Like `aligned`, for large arrays that come and go: their memory serves the next one."""
    dtype = np.dtype(dtype)
    size = math.prod(shape if isinstance(shape, tuple) else (shape,)) * dtype.itemsize
    if size < _LARGE or not _CAN_KEEP:
        return aligned(shape, dtype)
    try:
        buffer = _waiting.pop()
    except IndexError:
        buffer = None
    if buffer is None or len(buffer) < size:
        buffer = mmap.mmap(-1, size, flags=_FLAGS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            buffer.madvise(mmap.MADV_HUGEPAGE)
    whole = np.frombuffer(buffer, np.uint8)
    weakref.finalize(whole, _keep, buffer).atexit = False
    return whole[:size].view(dtype).reshape(shape)


def _keep(buffer: mmap.mmap) -> None:
    """Keep a buffer for later, instead of a smaller one that waits."""
    if _waiting and len(_waiting[0]) >= len(buffer):
        return
    buffer.madvise(mmap.MADV_FREE)
    _waiting[:] = [buffer]
