"""Arrays that begin on a cache line.

NumPy aligns to 16 bytes. A vector register of 64 bytes then straddles two cache lines at every load, which
costs compiled loops up to half of their speed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

LINE = 64


def aligned(shape: int | tuple[int, ...], dtype: DTypeLike, *, zero: bool = False) -> NDArray[Any]:
    """An empty (or zeroed) C-contiguous array whose first element begins a cache line."""
    dtype = np.dtype(dtype)
    size = math.prod(shape if isinstance(shape, tuple) else (shape,)) * dtype.itemsize
    raw = (np.zeros if zero else np.empty)(size + LINE, np.uint8)
    start = -raw.ctypes.data % LINE
    return raw[start : start + size].view(dtype).reshape(shape)
