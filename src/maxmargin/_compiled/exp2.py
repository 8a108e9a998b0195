"""Powers of two by arithmetic that compilers vectorise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from maxmargin._compiled.intrinsics import bits32, bits64, float_of_bits32, float_of_bits64, fmax
from maxmargin._compiled.jit import IN_ORDER

f32, i32, i64 = np.float32, np.int32, np.int64


def exp2(x: Any) -> Any:
    """2**x for x <= 0, for float32 (error 1e-7) and float64 (error 4e-16), in compiled code only.

    An integer shift of the exponent and a polynomial; both vectorise.
    """
    raise NotImplementedError("exp2 is available in compiled code only.")


def _exp2_f32(x: Any) -> Any:
    x = fmax(x, f32(-126.0))
    shifted = x + f32(12582912.0)  # 1.5 * 2**23: the low bits are now the nearest integer
    t = x - (shifted - f32(12582912.0))
    p = f32(1.535336188319500e-4)
    p = p * t + f32(1.339887440266574e-3)
    p = p * t + f32(9.618437357674640e-3)
    p = p * t + f32(5.550332471162809e-2)
    p = p * t + f32(2.402264791363012e-1)
    p = p * t + f32(6.931472028550421e-1)
    p = p * t + f32(1.0)
    return float_of_bits32(i32(i32(bits32(shifted) << i32(23)) + bits32(p)))


def _exp2_f64(x: Any) -> Any:
    x = fmax(x, -1022.0)
    shifted = x + 6755399441055744.0  # 1.5 * 2**52
    t = x - (shifted - 6755399441055744.0)
    # Taylor's series, log(2)**k / k!: the next term is below 2e-16 for |t| <= 1/2
    p = 2.5678435993488196e-11
    p = p * t + 4.44553827187081e-10
    p = p * t + 7.054911620801121e-09
    p = p * t + 1.0178086009239696e-07
    p = p * t + 1.3215486790144305e-06
    p = p * t + 1.5252733804059838e-05
    p = p * t + 0.00015403530393381606
    p = p * t + 0.0013333558146428441
    p = p * t + 0.009618129107628477
    p = p * t + 0.055504108664821576
    p = p * t + 0.2402265069591007
    p = p * t + 0.6931471805599453
    p = p * t + 1.0
    return float_of_bits64(i64(bits64(shifted) << i64(52)) + bits64(p))


@overload(exp2, jit_options={"fastmath": IN_ORDER})
def _overload_exp2(x: Any) -> Any:
    return _exp2_f32 if x == types.float32 else _exp2_f64
