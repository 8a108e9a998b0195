"""Arrays that start on a cache line, and large buffers that are reused.

NumPy aligns to 16 bytes. A load of a 64-byte vector register then crosses a cache line, which costs compiled
loops up to half of their speed.

The operating system clears each page of memory at its first use, which takes as long as computing the kernel
values that are stored in it. A large buffer is therefore kept when it is no longer needed, marked as free so
that the system can reclaim it when memory is short, and reused by the next fit. A computation that needs
several buffers, one after the other, has them in a `Buffers` of its own.
"""

from __future__ import annotations

import math
import mmap
import weakref
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

LINE = 64
# Smaller arrays are not kept.
_LARGE = 1 << 24
_FLAGS = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
_CAN_KEEP = bool(_FLAGS) and hasattr(mmap, "MADV_FREE")
# At most one buffer; list methods need no lock, which a fork could leave locked.
_waiting: list[mmap.mmap] = []


def aligned(shape: int | tuple[int, ...], dtype: DTypeLike, *, zero: bool = False) -> NDArray[Any]:
    """An empty (or zeroed) C-contiguous array whose first element starts a cache line."""
    dtype = np.dtype(dtype)
    size = math.prod(shape if isinstance(shape, tuple) else (shape,)) * dtype.itemsize
    raw = (np.zeros if zero else np.empty)(size + LINE, np.uint8)
    start = -raw.ctypes.data % LINE
    return raw[start : start + size].view(dtype).reshape(shape)


class _Memory:
    """The memory of an array, without the mark that it is read-only."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array  # keeps it alive
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def writable(array: NDArray[Any]) -> NDArray[Any]:
    """The same memory as an array that counts as writable, for compiled code that only reads it.

    To Numba a read-only array (a memory map, say) is another type, for which it compiles again.
    """
    return array if array.flags.writeable else np.asarray(_Memory(array))


def recycled(shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Like `aligned`, for large arrays: their memory is reused by the next one."""
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
    """Keep a buffer for later in place of a smaller one."""
    if _waiting and len(_waiting[0]) >= len(buffer):
        return
    buffer.madvise(mmap.MADV_FREE)
    _waiting[:] = [buffer]


class Buffers:
    """Memory for the large arrays of one computation: that of an array that is gone is reused by the next.

    Several threads may use an object. Its memory is free when `release` has been called and the last array is
    gone.

    Examples
    --------
    >>> from maxmargin._compiled.memory import Buffers
    >>> buffers = Buffers()
    >>> K = buffers.empty((3, 3), "float32")
    >>> address = K.ctypes.data
    >>> del K
    >>> buffers.empty((2, 2), "float64").ctypes.data == address
    True
    """

    def __init__(self) -> None:
        self._free: list[NDArray[Any]] = []
        self._open = True

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """An array like that of `aligned`."""
        dtype = np.dtype(dtype)
        size = math.prod(shape if isinstance(shape, tuple) else (shape,)) * dtype.itemsize
        try:
            memory = self._free.pop()
        except IndexError:
            memory = None
        if memory is None or len(memory) < size:
            memory = recycled(size, np.uint8)
        whole = np.frombuffer(memory.data, np.uint8)
        weakref.finalize(whole, self._give_back, memory).atexit = False
        return whole[:size].view(dtype).reshape(shape)

    def _give_back(self, memory: NDArray[Any]) -> None:
        if self._open:
            self._free.append(memory)

    def release(self) -> None:
        """Keep no memory any more."""
        self._open = False
        self._free.clear()
