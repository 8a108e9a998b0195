"""Kernel values from tiles of products or distances: one vectorised pass per tile.

A tile comes from a matrix product or a loop over features and is still in the cache of the processor when it
is transformed and written to its place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from maxmargin._compiled.exp2 import exp2
from maxmargin._compiled.intrinsics import bits32, bits64, float_of_bits32, float_of_bits64
from maxmargin._compiled.jit import compiled
from maxmargin.kernels._form import LAPLACIAN, POLY, SIGMOID

f32, i32, i64 = np.float32, np.int32, np.int64

# Values beyond the range of a type are infinite, as in NumPy, and rounding to integers must not be reordered:
# only multiplications and additions may be fused.
_FUSED = {"contract", "nsz"}


def tanh(x: Any) -> Any:
    """The hyperbolic tangent with an error of 4 units in the last place, in compiled code only.

    It is m / (m + 2) with m = exp(2 x) - 1 = 2**n q(t) + (2**n - 1) for 2 x log2(e) = n + t, |t| <= 1/2.
    The polynomial q(t) = 2**t - 1 has no constant term, so small values have all digits.
    """
    raise NotImplementedError("tanh is available in compiled code only.")


def _tanh_f32(x: Any) -> Any:
    y = x * f32(2.885390081777927)
    y = f32(-60.0) if y < f32(-60.0) else y  # the result is -1 or 1 beyond; NaN stays NaN
    y = f32(60.0) if y > f32(60.0) else y
    shifted = y + f32(12582912.0)
    t = y - (shifted - f32(12582912.0))
    q = f32(1.535336188319500e-4)
    q = q * t + f32(1.339887440266574e-3)
    q = q * t + f32(9.618437357674640e-3)
    q = q * t + f32(5.550332471162809e-2)
    q = q * t + f32(2.402264791363012e-1)
    q = q * t + f32(6.931472028550421e-1)
    scale = float_of_bits32(i32(i32(bits32(shifted) << i32(23)) + i32(0x3F800000)))
    m = scale * (q * t) + (scale - f32(1.0))
    return m / (m + f32(2.0))


def _tanh_f64(x: Any) -> Any:
    y = x * 2.885390081777927
    y = -60.0 if y < -60.0 else y
    y = 60.0 if y > 60.0 else y
    shifted = y + 6755399441055744.0
    t = y - (shifted - 6755399441055744.0)
    q = 1.3691488853904128e-12  # one term more than `exp2` has: q is smaller than 2**t
    q = q * t + 2.5678435993488196e-11
    q = q * t + 4.44553827187081e-10
    q = q * t + 7.054911620801121e-09
    q = q * t + 1.0178086009239696e-07
    q = q * t + 1.3215486790144305e-06
    q = q * t + 1.5252733804059838e-05
    q = q * t + 0.00015403530393381606
    q = q * t + 0.0013333558146428441
    q = q * t + 0.009618129107628477
    q = q * t + 0.055504108664821576
    q = q * t + 0.2402265069591007
    q = q * t + 0.6931471805599453
    scale = float_of_bits64(i64(bits64(shifted) << i64(52)) + i64(0x3FF0000000000000))
    m = scale * (q * t) + (scale - 1.0)
    return m / (m + 2.0)


@overload(tanh, jit_options={"fastmath": _FUSED})
def _overload_tanh(x: Any) -> Any:
    return _tanh_f32 if x == types.float32 else _tanh_f64


@compiled(fastmath=_FUSED)
def transform(kind, tile, slope, shift, degree, out, slots, first):
    """``out[slots[r], first + t] = f(slope * tile[r, t] + shift)`` for the function of the kernel.

    f(x) is x, x ** degree, tanh(x) or 2 ** x; `out` may be the tile.
    """
    width = tile.shape[1]
    base = np.empty(width, tile.dtype)
    for r in range(tile.shape[0]):
        line = tile[r]
        target = out[slots[r], first : first + width]
        if kind == POLY:
            _power(line, slope, shift, degree, base, target)
        elif kind == SIGMOID:
            for t in range(width):
                target[t] = tanh(slope * line[t] + shift)
        elif kind == LAPLACIAN:
            for t in range(width):
                target[t] = exp2(slope * line[t])
        else:
            for t in range(width):
                target[t] = slope * line[t]


@compiled(fastmath=_FUSED)
def _power(line, slope, shift, degree, base, target):
    """``target = (slope * line + shift) ** degree`` by repeated squaring."""
    width = len(target)
    if degree == 2:
        for t in range(width):
            x = slope * line[t] + shift
            target[t] = x * x
        return
    if degree == 3:
        for t in range(width):
            x = slope * line[t] + shift
            target[t] = x * x * x
        return
    one = line.dtype.type(1.0)
    for t in range(width):
        x = slope * line[t] + shift
        base[t] = x
        target[t] = x if degree & 1 else one
    degree >>= 1
    while degree:
        odd = degree & 1
        for t in range(width):
            x = base[t] * base[t]
            base[t] = x
            target[t] *= x if odd else one
        degree >>= 1
