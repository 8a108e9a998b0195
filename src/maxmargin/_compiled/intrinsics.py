"""Instructions that Numba does not offer: minima that vectorise, bits of numbers, atomic reads and writes."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


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

# An argmax in one vectorised pass: the index is stored in the low bits of the mantissa.
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
    """The index that `with_index` stored in `value`."""
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
    """``counter[0] += amount`` atomically; returns the previous value."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.atomic_rmw("add", pointer, args[1], "monotonic")

    return types.int64(counter, types.int64), codegen


# A thread that reads a value written after `release`, then calls `acquire`, sees all writes before `release`.
acquire, release = _fence("acquire"), _fence("release")
