"""Compiled primitives that several loops share.

Everything here is plain `compiled` functions on arrays: it can be cached on disk, and
several Python threads can run it at once. No function starts threads of its own, so neither
concurrent fits nor forks can trip over a threading layer.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

f32, f64, i32, i64 = np.float32, np.float64, np.int32, np.int64


def compiled(**options: Any) -> Any:
    """``njit`` without the GIL, cached on disk; in memory only where no cache can be written."""

    def decorate(function: Any) -> Any:
        try:
            return nb.njit(cache=True, nogil=True, **options)(function)
        except RuntimeError:  # "no locator available": a read-only installation without a home
            return nb.njit(nogil=True, **options)(function)

    return decorate


# Flags for loops in which sums may be reordered, and for those in which they must not be
# (`exp2` rounds with a magic number that reassociation would remove).
REORDER = {"contract", "nnan", "ninf", "nsz", "reassoc", "arcp"}
IN_ORDER = {"contract", "nnan", "ninf", "nsz"}


def _minmax(name: str) -> Any:
    """`llvm.minnum` / `llvm.maxnum`, which vectorise where Numba's `min` and `max` do not."""

    @intrinsic
    def pick(typingctx: Any, a: Any, b: Any) -> Any:
        if not isinstance(a, types.Float) or a != b:
            return None

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            ty = context.get_value_type(a)
            kind = ir.FunctionType(ty, [ty, ty])
            function = builder.module.declare_intrinsic(f"llvm.{name}", [ty], kind)
            return builder.call(function, args, fastmath=("fast",))

        return a(a, b), codegen

    return pick


def _bitcast(source: Any, target: Any) -> Any:
    @intrinsic
    def cast(typingctx: Any, a: Any) -> Any:
        if a != source:
            return None

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], context.get_value_type(target))

        return target(source), codegen

    return cast


fmin, fmax = _minmax("minnum"), _minmax("maxnum")
bits32, float_of_bits32 = _bitcast(types.float32, types.int32), _bitcast(types.int32, types.float32)

# An argmax in one vectorised pass: the index rides in the low bits of the mantissa.
INDEX_BITS = 11


@intrinsic
def with_index(typingctx: Any, value: Any, index: Any) -> Any:
    """`value` >= 0 with its low mantissa bits replaced by `index` < 2**INDEX_BITS."""
    if not isinstance(value, types.Float) or not isinstance(index, types.Integer):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        integer = ir.IntType(value.bitwidth)
        high = builder.and_(builder.bitcast(args[0], integer), integer(-(1 << INDEX_BITS)))
        narrow = value.bitwidth < 64  # the index arrives as int64
        low = builder.trunc(args[1], integer) if narrow else args[1]
        return builder.bitcast(builder.or_(high, low), context.get_value_type(value))

    return value(value, types.int64), codegen


@intrinsic
def index_in(typingctx: Any, value: Any) -> Any:
    """The index that `with_index` put into `value`."""
    if not isinstance(value, types.Float):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        integer = ir.IntType(value.bitwidth)
        bits = builder.and_(builder.bitcast(args[0], integer), integer((1 << INDEX_BITS) - 1))
        return builder.zext(bits, ir.IntType(64)) if value.bitwidth < 64 else bits

    return types.int64(value), codegen


@nb.njit(fastmath=IN_ORDER, inline="always")
def exp2_f32(x):  # type: ignore[no-untyped-def]
    """2**x for x <= 0 in float32: integer shift of the exponent, degree-6 polynomial, error 1e-7."""
    x = fmax(x, f32(-126.0))
    shifted = x + f32(12582912.0)
    t = x - (shifted - f32(12582912.0))
    p = f32(1.535336188319500e-4)
    p = p * t + f32(1.339887440266574e-3)
    p = p * t + f32(9.618437357674640e-3)
    p = p * t + f32(5.550332471162809e-2)
    p = p * t + f32(2.402264791363012e-1)
    p = p * t + f32(6.931472028550421e-1)
    p = p * t + f32(1.0)
    return float_of_bits32(i32(i32(bits32(shifted) << i32(23)) + bits32(p)))


@compiled(fastmath=IN_ORDER)
def exp2_tile(tile, a, b, out, slots, c0):  # type: ignore[no-untyped-def]
    """``out[slots[r], c0 + t] = 2 ** min(0, tile[r, t] - a[r] - b[t])``, float32."""
    width = tile.shape[1]
    for r in range(tile.shape[0]):
        ar = a[r]
        line = tile[r]
        target = out[slots[r], c0 : c0 + width]
        for t in range(width):
            target[t] = exp2_f32(fmin(line[t] - ar - b[t], f32(0.0)))


@compiled()
def scatter_panel(indptr, indices, data, c0, c1, panel):  # type: ignore[no-untyped-def]
    """``panel[k, t] = X[c0 + t, k]``: CSR rows laid out as dense columns."""
    panel[:] = 0
    for t in range(c1 - c0):
        for k in range(indptr[c0 + t], indptr[c0 + t + 1]):
            panel[indices[k], t] += data[k]


@compiled(fastmath=REORDER)
def csr_dots(indptr, indices, data, panel, tile):  # type: ignore[no-untyped-def]
    """``tile[r, t] = <A[r], panel[:, t]>`` for CSR rows A."""
    width = tile.shape[1]
    for r in range(tile.shape[0]):
        acc = tile[r]
        acc[:] = 0
        k = indptr[r]
        end = indptr[r + 1]
        while k + 4 <= end:
            v0 = data[k]
            v1 = data[k + 1]
            v2 = data[k + 2]
            v3 = data[k + 3]
            p0 = panel[np.uint32(indices[k])]
            p1 = panel[np.uint32(indices[k + 1])]
            p2 = panel[np.uint32(indices[k + 2])]
            p3 = panel[np.uint32(indices[k + 3])]
            for t in range(width):
                acc[t] += (v0 * p0[t] + v1 * p1[t]) + (v2 * p2[t] + v3 * p3[t])
            k += 4
        while k < end:
            v0 = data[k]
            p0 = panel[np.uint32(indices[k])]
            for t in range(width):
                acc[t] += v0 * p0[t]
            k += 1


@compiled(fastmath=REORDER)
def csr_l1(indptr, indices, data, panel, norm, tile):  # type: ignore[no-untyped-def]
    """``tile[r, t] = ||A[r] - panel[:, t]||_1`` for CSR rows A; `norm` holds the panel's 1-norms."""
    width = tile.shape[1]
    for r in range(tile.shape[0]):
        acc = tile[r]
        for t in range(width):
            acc[t] = norm[t]
        for k in range(indptr[r], indptr[r + 1]):
            v = data[k]
            p = panel[np.uint32(indices[k])]
            for t in range(width):
                acc[t] += abs(v - p[t]) - abs(p[t])


@compiled(fastmath=REORDER)
def dense_l1(A, panel, tile):  # type: ignore[no-untyped-def]
    """``tile[r, t] = ||A[r] - panel[:, t]||_1`` for dense rows A."""
    width = tile.shape[1]
    for r in range(tile.shape[0]):
        acc = tile[r]
        acc[:] = 0
        for k in range(A.shape[1]):
            v = A[r, k]
            p = panel[k]
            for t in range(width):
                acc[t] += abs(v - p[t])


@compiled(fastmath=REORDER)
def add_rows(out, table, slots, coef, c0, c1):  # type: ignore[no-untyped-def]
    """``out[t] += sum_k coef[k] * table[slots[k], c0 + t]`` for t < c1 - c0, summed in float64."""
    size = 1024
    acc = np.empty(size, f64)
    n = slots.shape[0]
    for s in range(c0, c1, size):
        e = min(c1, s + size)
        width = e - s
        target = out[s - c0 : e - c0]
        for t in range(width):
            acc[t] = target[t]
        k = 0
        while k + 8 <= n:
            d0, d1, d2, d3 = coef[k], coef[k + 1], coef[k + 2], coef[k + 3]
            d4, d5, d6, d7 = coef[k + 4], coef[k + 5], coef[k + 6], coef[k + 7]
            r0 = table[slots[k], s:e]
            r1 = table[slots[k + 1], s:e]
            r2 = table[slots[k + 2], s:e]
            r3 = table[slots[k + 3], s:e]
            r4 = table[slots[k + 4], s:e]
            r5 = table[slots[k + 5], s:e]
            r6 = table[slots[k + 6], s:e]
            r7 = table[slots[k + 7], s:e]
            for t in range(width):
                acc[t] += ((d0 * f64(r0[t]) + d1 * f64(r1[t])) + (d2 * f64(r2[t]) + d3 * f64(r3[t]))) + (
                    (d4 * f64(r4[t]) + d5 * f64(r5[t])) + (d6 * f64(r6[t]) + d7 * f64(r7[t]))
                )
            k += 8
        while k < n:
            d0 = coef[k]
            r0 = table[slots[k], s:e]
            for t in range(width):
                acc[t] += d0 * f64(r0[t])
            k += 1
        for t in range(width):
            target[t] = acc[t]
