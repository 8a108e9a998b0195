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
from numba.extending import intrinsic, overload

f32, f64, i32, i64 = np.float32, np.float64, np.int32, np.int64


def compiled(**options: Any) -> Any:
    """``njit`` without the GIL, cached on disk; in memory only where no cache can be written.

    Divisions follow NumPy: a check for zero would keep a loop from being vectorised.
    """
    options = {"nogil": True, "error_model": "numpy", **options}

    def decorate(function: Any) -> Any:
        try:
            return nb.njit(cache=True, **options)(function)
        except RuntimeError:  # "no locator available": a read-only installation without a home
            return nb.njit(**options)(function)

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
bits64, float_of_bits64 = _bitcast(types.float64, types.int64), _bitcast(types.int64, types.float64)

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


def _fence(ordering: str) -> Any:
    @intrinsic
    def fence(typingctx: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            builder.fence(ordering)
            return context.get_dummy_value()

        return types.void(), codegen

    return fence


@intrinsic
def raised(typingctx: Any, flag: Any) -> Any:
    """Whether ``flag[0]`` is not zero, read from memory each time: another thread may set it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = context.make_array(signature.args[0])(context, builder, args[0]).data
        value = builder.load_atomic(pointer, "monotonic", 8)
        return builder.icmp_signed("!=", value, ir.IntType(64)(0))

    return types.boolean(flag), codegen


@intrinsic
def take(typingctx: Any, counter: Any, amount: Any) -> Any:
    """``counter[0] += amount``, in one step for all threads; returns the value before."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.atomic_rmw("add", pointer, args[1], "monotonic")

    return types.int64(counter, types.int64), codegen


# What was written before `release` is there for a thread that has called `acquire` and seen what came after.
acquire, release = _fence("acquire"), _fence("release")


def exp2(x: Any) -> Any:
    """2**x for x <= 0, for float32 (error 1e-7) and float64 (error 4e-16), in compiled code only.

    An integer shift of the exponent and a polynomial: plain arithmetic that vectorises.
    """
    raise NotImplementedError("for compiled code")


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


@compiled(fastmath=IN_ORDER)
def rbf_rows(A, X, a, b, c0, c1, out, slots, first):  # type: ignore[no-untyped-def]
    """``out[slots[r], c - first] = 2 ** min(0, <A[r], X[c]> - a[r] - b[c])`` for c0 <= c < c1.

    Tiles of 256 x 512 products (half a megabyte in float32) go from the matrix product to the exponential
    without leaving the cache.
    """
    height, width = 256, 512
    zero = a.dtype.type(0.0)
    buffer = np.empty(height * width, a.dtype)
    for r0 in range(0, A.shape[0], height):
        rows = min(height, A.shape[0] - r0)
        for s in range(c0, c1, width):
            e = min(c1, s + width)
            tile = buffer[: rows * (e - s)].reshape(rows, e - s)
            np.dot(A[r0 : r0 + rows], X[s:e].T, tile)
            bs = b[s:e]
            for r in range(rows):
                ar = a[r0 + r]
                line = tile[r]
                target = out[slots[r0 + r], s - first : e - first]
                for t in range(e - s):
                    target[t] = exp2(fmin(line[t] - ar - bs[t], zero))


@compiled()
def count_nonzeros(X, rows):  # type: ignore[no-untyped-def]
    """Offsets of the rows of a CSR matrix with the non-zeros of some rows of X."""
    indptr = np.zeros(len(rows) + 1, np.int64)
    for r in range(len(rows)):
        n = 0
        x = X[rows[r]]
        for k in range(len(x)):
            n += x[k] != 0
        indptr[r + 1] = indptr[r] + n
    return indptr


@compiled()
def copy_nonzeros(X, rows, indptr, indices, data):  # type: ignore[no-untyped-def]
    """The non-zeros themselves, see `count_nonzeros`."""
    for r in range(len(rows)):
        at = indptr[r]
        x = X[rows[r]]
        for k in range(len(x)):
            if x[k] != 0:
                indices[at] = k
                data[at] = x[k]
                at += 1


@compiled()
def scatter_panel(indptr, indices, data, c0, c1, panel):  # type: ignore[no-untyped-def]
    """``panel[k, t] = X[c0 + t, k]``: CSR rows laid out as dense columns."""
    panel[:] = 0
    for t in range(c1 - c0):
        for k in range(indptr[c0 + t], indptr[c0 + t + 1]):
            panel[indices[k], t] += data[k]


@compiled(fastmath=IN_ORDER)
def rbf_rows_csr(  # type: ignore[no-untyped-def]
    a_indptr, a_indices, a_data, a, indptr, indices, data, b, panel, c0, c1, out, slots, first
):
    """The same for CSR rows: each row times a panel of columns laid out densely."""
    width = panel.shape[1]
    zero = a.dtype.type(0.0)
    acc = np.empty(width, a.dtype)
    for s in range(c0, c1, width):
        e = min(c1, s + width)
        scatter_panel(indptr, indices, data, s, e, panel)
        for r in range(len(a)):
            ar = a[r]
            bs = b[s:e]
            for t in range(e - s):
                acc[t] = -ar - bs[t]
            k = a_indptr[r]
            end = a_indptr[r + 1]
            while k + 8 <= end:  # eight fused multiply-adds per load and store of the sum
                v0, v1, v2, v3 = a_data[k], a_data[k + 1], a_data[k + 2], a_data[k + 3]
                v4, v5, v6, v7 = a_data[k + 4], a_data[k + 5], a_data[k + 6], a_data[k + 7]
                p0 = panel[np.uint32(a_indices[k])]
                p1 = panel[np.uint32(a_indices[k + 1])]
                p2 = panel[np.uint32(a_indices[k + 2])]
                p3 = panel[np.uint32(a_indices[k + 3])]
                p4 = panel[np.uint32(a_indices[k + 4])]
                p5 = panel[np.uint32(a_indices[k + 5])]
                p6 = panel[np.uint32(a_indices[k + 6])]
                p7 = panel[np.uint32(a_indices[k + 7])]
                for t in range(width):
                    x = v3 * p3[t] + (v2 * p2[t] + (v1 * p1[t] + (v0 * p0[t] + acc[t])))
                    acc[t] = v7 * p7[t] + (v6 * p6[t] + (v5 * p5[t] + (v4 * p4[t] + x)))
                k += 8
            if k + 4 <= end:
                v0, v1, v2, v3 = a_data[k], a_data[k + 1], a_data[k + 2], a_data[k + 3]
                p0 = panel[np.uint32(a_indices[k])]
                p1 = panel[np.uint32(a_indices[k + 1])]
                p2 = panel[np.uint32(a_indices[k + 2])]
                p3 = panel[np.uint32(a_indices[k + 3])]
                for t in range(width):
                    acc[t] = v3 * p3[t] + (v2 * p2[t] + (v1 * p1[t] + (v0 * p0[t] + acc[t])))
                k += 4
            while k < end:
                v0 = a_data[k]
                p0 = panel[np.uint32(a_indices[k])]
                for t in range(width):
                    acc[t] += v0 * p0[t]
                k += 1
            target = out[slots[r], s - first : e - first]
            for t in range(e - s):
                target[t] = exp2(fmin(acc[t], zero))


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
def add_tile(acc, flat, starts, coef, width):  # type: ignore[no-untyped-def]
    """``acc[t] = sum_k coef[k] * flat[starts[k] + t]`` for t < width, summed in float64."""
    for t in range(width):
        acc[t] = 0.0
    n = len(starts)
    k = 0
    while k + 8 <= n:
        d0, d1, d2, d3 = coef[k], coef[k + 1], coef[k + 2], coef[k + 3]
        d4, d5, d6, d7 = coef[k + 4], coef[k + 5], coef[k + 6], coef[k + 7]
        r0, r1 = flat[starts[k] :], flat[starts[k + 1] :]
        r2, r3 = flat[starts[k + 2] :], flat[starts[k + 3] :]
        r4, r5 = flat[starts[k + 4] :], flat[starts[k + 5] :]
        r6, r7 = flat[starts[k + 6] :], flat[starts[k + 7] :]
        for t in range(width):
            acc[t] += ((d0 * f64(r0[t]) + d1 * f64(r1[t])) + (d2 * f64(r2[t]) + d3 * f64(r3[t]))) + (
                (d4 * f64(r4[t]) + d5 * f64(r5[t])) + (d6 * f64(r6[t]) + d7 * f64(r7[t]))
            )
        k += 8
    while k < n:
        d0 = coef[k]
        r0 = flat[starts[k] :]
        for t in range(width):
            acc[t] += d0 * f64(r0[t])
        k += 1


@compiled(fastmath=REORDER)
def add_rows(out, table, slots, coef, c0, c1):  # type: ignore[no-untyped-def]
    """``out[t] += sum_k coef[k] * table[slots[k], c0 + t]`` for t < c1 - c0, summed in float64."""
    size = 1024  # the sums of so many columns stay in the first-level cache
    acc = np.empty(size, f64)
    starts = slots * table.shape[1]
    flat = table.reshape(-1)
    for s in range(c0, c1, size):
        e = min(c1, s + size)
        add_tile(acc, flat, starts + s, coef, e - s)
        target = out[s - c0 : e - c0]
        for t in range(e - s):
            target[t] += acc[t]


@compiled()
def extremes_of(u, g, lo, hi):  # type: ignore[no-untyped-def]
    """The least gradient that may rise and the largest that may fall."""
    low, high = np.inf, -np.inf
    for t in range(len(u)):
        if u[t] < hi[t]:
            low = min(low, g[t])
        if u[t] > lo[t]:
            high = max(high, g[t])
    return low, high


@compiled()
def extremes(u, g, lo, hi, group, least, most):  # type: ignore[no-untyped-def]
    """The same per group, in one pass."""
    least[:] = np.inf
    most[:] = -np.inf
    if len(least) == 1:
        least[0], most[0] = extremes_of(u, g, lo, hi)
        return
    for t in range(len(u)):
        k = group[t]
        if u[t] < hi[t]:
            least[k] = min(least[k], g[t])
        if u[t] > lo[t]:
            most[k] = max(most[k], g[t])


@compiled()
def gather(table, slots, columns, shift, out):  # type: ignore[no-untyped-def]
    """``out = table[slots][:, columns] + shift``, in the precision of `out`."""
    for r in range(len(slots)):
        row, line = table[slots[r]], out[r]
        for c in range(len(columns)):
            line[c] = row[columns[c]] + shift
