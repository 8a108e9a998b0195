"""The innermost loops of Shapley values, over the features of 16 support vectors side by side.

Running products and sums stay in registers from the first feature to the last. Automatic vectorisation of
loops over 16 numbers stores them after each feature, and takes several times as long; therefore the vector
instructions of LLVM are written explicitly, as in `maxmargin.kernels._strip`. All arrays are contiguous and
of float64; those with a row for each feature have at least n rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from maxmargin.kernels._strip import _Vectors

#: Support vectors side by side.
LANES = 16
# Exponents from which on a factor is the least number, 2 ** -1022.
_ZERO = 1100.0
_I64, _F64 = ir.IntType(64), ir.DoubleType()


@intrinsic
def rbf_factors(typingctx: Any, x: Any, z: Any, n: Any, scale: Any, out: Any) -> Any:
    """``out[j] = 2 ** -(scale (x[j] - z[j])) ** 2``; x is of shape (n,), z and `out` of shape (n, LANES)."""
    return _factors(x, z, out, lambda vectors, away: vectors.builder.fmul(away, away))


@intrinsic
def laplacian_factors(typingctx: Any, x: Any, z: Any, n: Any, scale: Any, out: Any) -> Any:
    """``out[j] = 2 ** -|scale (x[j] - z[j])|``, see `rbf_factors`."""
    return _factors(x, z, out, lambda vectors, away: vectors.call("fabs", away))


def _factors(x: Any, z: Any, out: Any, distance: Callable[..., Any]) -> Any:
    """Signature and code of factors; `distance` makes exponents of scaled differences."""
    signature = types.void(x, z, types.int64, types.float64, out)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row, strip, target = (_pointer(context, builder, signature, args, k) for k in (0, 1, 4))
        vectors = _Vectors(builder, _F64)
        scale, zero = vectors.splat(args[3]), vectors.constant(_ZERO)

        def body(j: Any, at: Any, run: list[Any]) -> list[Any]:
            value = vectors.splat(builder.load(builder.gep(row, [j])))
            for part in _parts(vectors):
                to = builder.add(at, part)
                away = builder.fmul(scale, builder.fsub(value, vectors.load(strip, to)))
                exponent = distance(vectors, away)
                near = builder.fcmp_ordered("<", exponent, zero)  # infinite differences are not
                exponent = builder.select(near, exponent, zero)
                vectors.store(vectors.exp2(builder.fneg(exponent)), target, to)
            return []

        _features(builder, "factors", args[2], [], body)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def copy_features(typingctx: Any, mine: Any, other: Any, features: Any, n: Any, p: Any, q: Any) -> Any:
    """``p[j], q[j] = mine[features[j]], other[features[j]]`` for arrays of shape (n, LANES)."""
    signature = types.void(mine, other, features, types.int64, p, q)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointers = [_pointer(context, builder, signature, args, k) for k in (0, 1, 2, 4, 5)]
        vectors = _Vectors(builder, _F64)

        def body(j: Any, at: Any, run: list[Any]) -> list[Any]:
            start = builder.mul(builder.load(builder.gep(pointers[2], [j])), _I64(LANES))
            for part in _parts(vectors):
                for source, target in ((pointers[0], pointers[3]), (pointers[1], pointers[4])):
                    value = vectors.load(source, builder.add(start, part))
                    vectors.store(value, target, builder.add(at, part))
            return []

        _features(builder, "copy", args[3], [], body)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def multiply(typingctx: Any, factors: Any, features: Any, n: Any, product: Any) -> Any:
    """``product *= product over j < n of factors[features[j]]`` for `product` of shape (LANES,)."""
    signature = types.void(factors, features, types.int64, product)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source, index, target = (_pointer(context, builder, signature, args, k) for k in (0, 1, 3))
        vectors = _Vectors(builder, _F64)
        parts = _parts(vectors)

        def body(j: Any, at: Any, run: list[Any]) -> list[Any]:
            start = builder.mul(builder.load(builder.gep(index, [j])), _I64(LANES))
            loaded = [vectors.load(source, builder.add(start, part)) for part in parts]
            return [builder.fmul(x, f) for x, f in zip(run, loaded, strict=True)]

        ends = _features(builder, "multiply", args[2], [vectors.load(target, part) for part in parts], body)
        for part, value in zip(parts, ends, strict=True):
            vectors.store(value, target, part)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def measure(typingctx: Any, p: Any, q: Any, n: Any, spread: Any, largest: Any) -> Any:
    """``spread += sum of |p[j] - q[j]| / (p[j] + q[j])``, and ``largest *= product of max(p[j], q[j])``.

    `p` and `q` are of shape (n, LANES), the others of shape (LANES,).
    """
    signature = types.void(p, q, types.int64, spread, largest)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        mine, other, sums, products = (_pointer(context, builder, signature, args, k) for k in (0, 1, 3, 4))
        vectors = _Vectors(builder, _F64)
        parts = _parts(vectors)

        def body(j: Any, at: Any, run: list[Any]) -> list[Any]:
            found = []
            for part, total, product in zip(parts, run[::2], run[1::2], strict=True):
                a, b = (vectors.load(of, builder.add(at, part)) for of in (mine, other))
                away = vectors.call("fabs", builder.fsub(a, b))
                found.append(builder.fadd(total, builder.fdiv(away, builder.fadd(a, b))))
                found.append(builder.fmul(product, vectors.call("maxnum", a, b)))
            return found

        begin = [vectors.load(of, part) for part in parts for of in (sums, products)]
        ends = _features(builder, "measure", args[2], begin, body)
        for part, total, product in zip(parts, ends[::2], ends[1::2], strict=True):
            vectors.store(total, sums, part)
            vectors.store(product, products, part)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def add_two_nodes(
    typingctx: Any, p: Any, q: Any, n: Any, start: Any, t0: Any, w0: Any, t1: Any, w1: Any, before: Any,
    total: Any,
) -> Any:  # fmt: skip
    """``total[j] += start * sum over both nodes of w * product over i != j of (p[i] t + q[i] (1 - t))``.

    `p`, `q` and `total` are of shape (n, LANES), `start` of shape (LANES,). `before`, of shape (2 n, LANES),
    is overwritten.
    """
    f64 = types.float64
    signature = types.void(p, q, types.int64, start, f64, f64, f64, f64, before, total)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        arrays = (_pointer(context, builder, signature, args, k) for k in (0, 1, 3, 8, 9))
        mine, other, constant, products, sums = arrays
        vectors = _Vectors(builder, _F64)
        parts, nodes = _parts(vectors), range(2)
        t, weight = ([vectors.splat(args[k]) for k in of] for of in ((4, 6), (5, 7)))
        rest = [builder.fsub(vectors.constant(1.0), x) for x in t]

        def factors(at: Any) -> list[Any]:
            """The factors of a feature in all parts of the strip, at both nodes each."""
            found = []
            for part in parts:
                a, b = (vectors.load(of, builder.add(at, part)) for of in (mine, other))
                found += [vectors.call("fmuladd", a, t[k], builder.fmul(b, rest[k])) for k in nodes]
            return found

        def place(at: Any, part: Any, k: int) -> Any:
            """Where the product of the factors before a feature is kept."""
            return builder.add(builder.add(at, at), builder.add(part, _I64(LANES * k)))

        def keep(j: Any, at: Any, run: list[Any]) -> list[Any]:
            for c, part in enumerate(parts):
                for k in nodes:
                    vectors.store(run[2 * c + k], products, place(at, part, k))
            return [builder.fmul(x, f) for x, f in zip(run, factors(at), strict=True)]

        def add(j: Any, at: Any, run: list[Any]) -> list[Any]:
            for c, part in enumerate(parts):
                to = builder.add(at, part)
                total = vectors.load(sums, to)
                for k in nodes:
                    left = vectors.load(products, place(at, part, k))
                    total = vectors.call("fmuladd", left, run[2 * c + k], total)
                vectors.store(total, sums, to)
            return [builder.fmul(x, f) for x, f in zip(run, factors(at), strict=True)]

        begin = [builder.fmul(weight[k], vectors.load(constant, part)) for part in parts for k in nodes]
        _features(builder, "forwards", args[2], begin, keep)
        _features(builder, "backwards", args[2], [vectors.constant(1.0) for _ in begin], add, backwards=True)
        return context.get_dummy_value()

    return signature, codegen


def _pointer(context: Any, builder: Any, signature: Any, args: Any, k: int) -> Any:
    """The address of an array's first number."""
    return context.make_array(signature.args[k])(context, builder, args[k]).data


def _parts(vectors: _Vectors) -> list[Any]:
    """Where the vectors of a strip begin."""
    return [_I64(k) for k in range(0, LANES, vectors.lanes)]


def _features(
    builder: Any, name: str, n: Any, begin: list[Any], body: Callable[..., Any], *, backwards: bool = False
) -> list[Any]:
    """A loop over features: ``run = body(j, offset, run)``, from `begin` on; returns the last `run`."""
    before = builder.block
    head, inside, done = (builder.append_basic_block(f"{name}.{part}") for part in ("head", "body", "done"))
    builder.branch(head)
    builder.position_at_end(head)
    j, run = builder.phi(_I64), [builder.phi(x.type) for x in begin]
    for phi, first in zip([j, *run], [_I64(0), *begin], strict=True):
        phi.add_incoming(first, before)
    builder.cbranch(builder.icmp_signed("<", j, n), inside, done)
    builder.position_at_end(inside)
    after = builder.add(j, _I64(1))
    feature = builder.sub(n, after) if backwards else j
    found = body(feature, builder.mul(feature, _I64(LANES)), run)
    for phi, value in zip([j, *run], [after, *found], strict=True):
        phi.add_incoming(value, builder.block)
    builder.branch(head)
    builder.position_at_end(done)
    return run
