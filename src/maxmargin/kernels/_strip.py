"""The innermost loop of the library: kernel values between one sample and a panel of samples.

A panel holds `width` samples feature by feature, so that one feature of all of them is 512 contiguous bytes:
eight vector registers. The sums stay in registers from the first feature to the exponential, which automatic
vectorisation of a loop does not achieve; therefore the vector instructions of LLVM are written explicitly.
LLVM maps them to the instructions of the processor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_VECTORS, _VECTOR_BYTES = 8, 64
PANEL_BYTES = _VECTORS * _VECTOR_BYTES

# 2**t for |t| <= 1/2, highest power first: a minimax fit, and Taylor's series log(2)**k / k!.
_POWERS = {
    32: (
        1.535336188319500e-4, 1.339887440266574e-3, 9.618437357674640e-3, 5.550332471162809e-2,
        2.402264791363012e-1, 6.931472028550421e-1, 1.0,
    ),
    64: (
        2.5678435993488196e-11, 4.44553827187081e-10, 7.054911620801121e-09, 1.0178086009239696e-07,
        1.3215486790144305e-06, 1.5252733804059838e-05, 0.00015403530393381606, 0.0013333558146428441,
        0.009618129107628477, 0.055504108664821576, 0.2402265069591007, 0.6931471805599453, 1.0,
    ),
}  # fmt: skip
# Mantissa bits, the number whose addition rounds to an integer, and the smallest exponent.
_ROUNDING = {32: (23, 12582912.0, -126.0), 64: (52, 6755399441055744.0, -1022.0)}


class _Vectors:
    """Builds instructions on vectors of the width of a register."""

    def __init__(self, builder: Any, scalar: Any) -> None:
        self.builder = builder
        self.bits = 32 if isinstance(scalar, ir.FloatType) else 64
        self.lanes = 8 * _VECTOR_BYTES // self.bits
        self.type = ir.VectorType(scalar, self.lanes)
        self.integers = ir.VectorType(ir.IntType(self.bits), self.lanes)
        self.align = self.bits // 8

    def constant(self, x: float) -> Any:
        return ir.Constant(self.type, [x] * self.lanes)

    def splat(self, x: Any) -> Any:
        undefined, zero = ir.Constant(self.type, ir.Undefined), ir.IntType(32)(0)
        one = self.builder.insert_element(undefined, x, zero)
        mask = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(one, undefined, mask)

    def _at(self, pointer: Any, offset: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(pointer, [offset]), self.type.as_pointer())

    def load(self, pointer: Any, offset: Any) -> Any:
        value = self.builder.load(self._at(pointer, offset))
        value.align = self.align
        return value

    def store(self, value: Any, pointer: Any, offset: Any) -> None:
        self.builder.store(value, self._at(pointer, offset)).align = self.align

    def call(self, name: str, *arguments: Any) -> Any:
        kind = ir.FunctionType(self.type, [self.type] * len(arguments))
        full = f"llvm.{name}.v{self.lanes}f{self.bits}"
        function = cgutils.get_or_insert_function(self.builder.module, kind, full)
        return self.builder.call(function, arguments, fastmath=("nnan", "ninf", "nsz", "contract"))

    def exp2(self, x: Any) -> Any:
        """2 ** min(0, x): an integer shift of the exponent and a polynomial."""
        build = self.builder
        mantissa, magic, smallest = _ROUNDING[self.bits]
        x = self.call("maxnum", self.call("minnum", x, self.constant(0.0)), self.constant(smallest))
        # Not x - (shifted - magic): callers may allow sums to be reordered, which would make it zero.
        shifted = build.fadd(x, self.constant(magic))
        t = build.fsub(x, self.call("rint", x))
        first, *others = _POWERS[self.bits]
        p = self.constant(first)
        for power in others:
            p = self.call("fmuladd", p, t, self.constant(power))
        shift = ir.Constant(self.integers, [mantissa] * self.lanes)
        exponent = build.shl(build.bitcast(shifted, self.integers), shift)
        return build.bitcast(build.add(exponent, build.bitcast(p, self.integers)), self.type)


@intrinsic
def rbf_strip(
    typingctx: Any, indices: Any, i0: Any, values: Any, v0: Any, count: Any, panels: Any, p0: Any,
    norms: Any, c0: Any, norm: Any, out: Any, o0: Any,
) -> Any:  # fmt: skip
    """``out[o0 + t] = 2 ** min(0, <x, panel[:, t]> - norm - norms[c0 + t])`` for the samples t of a panel.

    x has `count` entries ``values[v0:]`` at the features ``indices[i0:]``; the panel begins at
    ``panels[p0]``. All arrays are contiguous and of one floating type.
    """
    return _strip(indices, values, panels, norms, out, _Vectors.exp2)


@intrinsic
def dot_strip(
    typingctx: Any, indices: Any, i0: Any, values: Any, v0: Any, count: Any, panels: Any, p0: Any,
    norms: Any, c0: Any, norm: Any, out: Any, o0: Any,
) -> Any:  # fmt: skip
    """``out[o0 + t] = <x, panel[:, t]> - norm - norms[c0 + t]``, see `rbf_strip`."""
    return _strip(indices, values, panels, norms, out, lambda vectors, x: x)


def _strip(indices: Any, values: Any, panels: Any, norms: Any, out: Any, finish: Callable[..., Any]) -> Any:
    """Signature and code of a strip; `finish` makes values of sums."""
    number = values.dtype
    wide = types.int64
    signature = types.void(indices, wide, values, wide, wide, panels, wide, norms, wide, number, out, wide)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def pointer(k: int) -> Any:
            return context.make_array(signature.args[k])(context, builder, args[k]).data

        i64 = ir.IntType(64)
        index, value, panel, bases, target = (pointer(k) for k in (0, 2, 5, 7, 10))
        _, i0, _, v0, count, _, p0, _, c0, norm, _, o0 = args
        vectors = _Vectors(builder, context.get_value_type(number))
        offsets = [i64(vectors.lanes * j) for j in range(_VECTORS)]
        width = i64(vectors.lanes * _VECTORS)
        minus = vectors.splat(builder.fneg(norm))
        begin = [builder.fsub(minus, vectors.load(bases, builder.add(c0, o))) for o in offsets]

        before = builder.block
        head = builder.append_basic_block("features")
        body = builder.append_basic_block("feature")
        done = builder.append_basic_block("values")
        builder.branch(head)
        builder.position_at_end(head)
        k = builder.phi(i64)
        k.add_incoming(i64(0), before)
        sums = [builder.phi(vectors.type) for _ in offsets]
        for total, start in zip(sums, begin, strict=True):
            total.add_incoming(start, before)
        builder.cbranch(builder.icmp_signed("<", k, count), body, done)

        builder.position_at_end(body)
        feature = builder.load(builder.gep(index, [builder.add(i0, k)]))
        feature = builder.zext(feature, i64) if feature.type.width < 64 else feature
        factor = vectors.splat(builder.load(builder.gep(value, [builder.add(v0, k)])))
        line = builder.gep(panel, [builder.add(p0, builder.mul(feature, width))])
        for total, o in zip(sums, offsets, strict=True):
            total.add_incoming(vectors.call("fmuladd", factor, vectors.load(line, o), total), builder.block)
        k.add_incoming(builder.add(k, i64(1)), builder.block)
        builder.branch(head)

        builder.position_at_end(done)
        for total, o in zip(sums, offsets, strict=True):
            vectors.store(finish(vectors, total), target, builder.add(o0, o))
        return context.get_dummy_value()

    return signature, codegen
