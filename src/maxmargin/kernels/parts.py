"""The parts that kernels are made of, and the operators that join them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._types import Floats
from maxmargin.kernels import composed
from maxmargin.kernels.composed import LOG2E, Measure, Tile
from maxmargin.kernels.layout import squared_norms
from maxmargin.kernels.points import Points
from maxmargin.kernels.rounding import UNIT, sum_of

Array = NDArray[Any]

# Errors of values of a user's function, in units in the last place of the largest value of two samples of
# these sizes, and the size relative to the largest of samples whose own value is 0.
_OWN_UNITS, _SMALLEST_SIZE = 16.0, 1e-12
# Errors of values with twice the digits: of functions with float64 values, and relative ones of products.
_OF_EXPONENTIALS, _OF_PAIRS = 2.0**-48, 2.0**-90
_NEGATIVE = "{what} is not a kernel: coefficients must not be negative. Use sums and products."


class Size(NamedTuple):
    """Squares of bounds: ``|k(x_i, x_j)| <= value_i value_j``, wrong by ``error_i error_j`` at most."""

    value: Floats
    error: Floats


class KernelFunction:
    """A kernel as an object, for the parameter `kernel` of every estimator.

    It cannot be changed, two with equal parts are equal, and it can be pickled if the functions in it can.
    Sums, products, and coefficients that are not negative make new ones. It is called like scikit-learn's
    pairwise kernels, with one or two sets of rows.

    See Also
    --------
    linear, poly, rbf, sigmoid, laplacian : The named kernels.
    of_products, of_rows : Kernels from functions that are compiled.

    Examples
    --------
    >>> from maxmargin.kernels import linear, poly
    >>> kernel = 2 * linear() * (poly(2) + 1)
    >>> kernel
    2 * linear() * (poly(degree=2, gamma=1.0, coef0=0.0) + 1)
    >>> kernel([[1.0], [3.0]])
    array([[   4.,   60.],
           [  60., 1476.]])
    """

    # So that NumPy's numbers leave products to this class.
    __array_ufunc__ = None

    #: The kernels that this one is made of; none if it is not a sum or product.
    parts: tuple[KernelFunction, ...] = ()

    def leaves(self) -> Iterator[KernelFunction]:
        """All kernels in it that are not sums or products, in order."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.leaves()

    def __call__(self, X: Any, Y: Any = None) -> NDArray[np.float64]:
        """The matrix ``k(X, Y)`` in float64; ``k(X, X)`` by default."""
        return composed.block(self, X, X if Y is None else Y)

    def __add__(self, other: Any) -> KernelFunction:
        other = _as_kernel(other)
        return other if other is NotImplemented else _sum(self, other)

    def __radd__(self, other: Any) -> KernelFunction:
        other = _as_kernel(other)
        return other if other is NotImplemented else _sum(other, self)

    def __mul__(self, other: Any) -> KernelFunction:
        other = _as_kernel(other)
        return other if other is NotImplemented else _product(self, other)

    def __rmul__(self, other: Any) -> KernelFunction:
        other = _as_kernel(other)
        return other if other is NotImplemented else _product(other, self)

    def __neg__(self) -> KernelFunction:
        raise ValueError(_NEGATIVE.format(what=f"-({self!r})"))

    def __sub__(self, other: Any) -> KernelFunction:
        raise ValueError(_NEGATIVE.format(what=f"{self!r} - ({other!r})"))

    def __rsub__(self, other: Any) -> KernelFunction:
        raise ValueError(_NEGATIVE.format(what=f"{other!r} - ({self!r})"))

    # -- for `maxmargin.kernels.composed` --------------------------------------------------------

    #: Whether values come from a function of the user.
    own = False
    #: Whether the kernel depends on x - z only.
    translation_invariant = False
    #: Whether it reads rows, which must be dense.
    reads_rows = False
    #: Whether it is the product of its parts.
    multiplies = False
    #: Whether it may not be positive semidefinite.
    may_be_indefinite = False
    #: Multiplications and additions of a value, besides those of products and distances.
    operations = 10.0

    @property
    def measure(self) -> Measure | None:
        """Products or distances that the values of this part are computed from, besides the rows."""
        return None

    @property
    def n_features(self) -> int | None:
        """The number of features that the rows must have."""
        return None

    def evaluate(self, tile: Tile, out: Array) -> None:
        """Write the values of a tile to a contiguous array."""
        raise NotImplementedError

    def diag(self, points: Points, norms: composed.Norms) -> Floats:
        """k(x, x) of each point."""
        raise NotImplementedError

    def size(self, points: Points, norms: composed.Norms, unit: float, terms: int) -> Size:
        """Sizes of the values and of their errors, where products have so many terms of precision `unit`.

        With a unit of 0 values are those of `maxmargin.kernels._accurate_joined`.
        """
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class Constant(KernelFunction):
    """The kernel with one value, which is also the coefficient of a product."""

    value: float

    translation_invariant = True
    operations = 1.0

    def __repr__(self) -> str:
        return f"{self.value:.12g}" if float(f"{self.value:.12g}") == self.value else repr(self.value)

    def evaluate(self, tile: Tile, out: Array) -> None:
        """See `KernelFunction.evaluate`."""
        out.fill(self.value)

    def diag(self, points: Points, norms: composed.Norms) -> Floats:
        """See `KernelFunction.diag`."""
        return np.full(points.n, self.value)

    def size(self, points: Points, norms: composed.Norms, unit: float, terms: int) -> Size:
        """See `KernelFunction.size`."""
        return Size(np.full(points.n, self.value), np.full(points.n, unit * self.value))


@dataclass(frozen=True, repr=False)
class Named(KernelFunction):
    """A named kernel; gamma is a tuple if every feature has its own."""

    name: str
    gamma: float | tuple[float, ...] = 1.0
    degree: int = 3
    coef0: float = 0.0

    @property
    def translation_invariant(self) -> bool:  # type: ignore[override]
        """Whether the kernel depends on x - z only."""
        return self.name in ("rbf", "laplacian")

    @property
    def may_be_indefinite(self) -> bool:  # type: ignore[override]
        """Whether it may not be positive semidefinite."""
        return self.name == "sigmoid" or (self.name == "poly" and self.coef0 < 0)

    @property
    def measure(self) -> Measure:
        """See `KernelFunction.measure`."""
        return Measure(self.name == "laplacian", self.gamma if isinstance(self.gamma, tuple) else None)

    @property
    def n_features(self) -> int | None:
        """See `KernelFunction.n_features`."""
        return len(self.gamma) if isinstance(self.gamma, tuple) else None

    @property
    def _factor(self) -> float:
        """Gamma, unless the measure has it."""
        return 1.0 if isinstance(self.gamma, tuple) else self.gamma

    @property
    def scale(self) -> float:
        """Factor of norms and distances in exponents of 2."""
        return self._factor * LOG2E

    def __repr__(self) -> str:
        names = {"linear": (), "poly": ("degree", "gamma", "coef0"), "sigmoid": ("gamma", "coef0")}
        values = {n: getattr(self, n) for n in names.get(self.name, ("gamma",))}
        shown = ", ".join(f"{n}={list(v) if isinstance(v, tuple) else v!r}" for n, v in values.items())
        return f"{self.name}({shown})"

    def evaluate(self, tile: Tile, out: Array) -> None:
        """See `KernelFunction.evaluate`."""
        from maxmargin.kernels._form import KINDS
        from maxmargin.kernels._tiles import transform

        values, number = tile.values(self.measure), out.dtype.type
        if self.name == "linear":
            out[:] = values
        elif self.name == "rbf":
            tile.gaussian(self.measure, self._factor, out)
        else:
            slope = -self.scale if self.name == "laplacian" else self._factor
            shift = number(0.0 if self.name == "laplacian" else self.coef0)
            transform(
                KINDS[self.name], values, number(slope), shift, self.degree, out, np.arange(len(out)), 0
            )

    def diag(self, points: Points, norms: composed.Norms) -> Floats:
        """See `KernelFunction.diag`."""
        if self.translation_invariant:
            return np.ones(points.n)
        # Not `norms`, which have the precision of the points.
        square = squared_norms(points.X)
        if self.name == "linear":
            return square
        inner = self._factor * square + self.coef0
        return np.asarray(inner**self.degree if self.name == "poly" else np.tanh(inner))

    def size(self, points: Points, norms: composed.Norms, unit: float, terms: int) -> Size:
        r"""See `KernelFunction.size`.

        The bounds are those of `maxmargin.kernels.rounding`, the second with
        :math:`3\min(n_i, n_j) + c \le \sqrt{3 n_i + c}\sqrt{3 n_j + c}`.
        """
        norm, ones = norms(self.measure), np.ones(points.n)
        exponential = np.full(points.n, _OF_EXPONENTIALS)
        relative = unit * (sum_of(terms) + 4.0) if unit else _OF_PAIRS
        if self.translation_invariant:
            if not unit:
                return Size(ones, exponential)
            scaled = self.scale * norm
            if self.name == "rbf" and unit == UNIT[np.dtype(np.float64)]:
                # Of two distant rows the difference is computed.
                scaled = np.minimum(scaled, composed.DISTANT)
            close = math.log(2.0) * (3.0 * scaled + 1.1) + 1.0
            return Size(ones, unit * (6.0 + sum_of(terms)) * close)
        if self.name == "linear":
            return Size(norm, relative * norm)
        inner = self._factor * norm + abs(self.coef0)
        if self.name == "sigmoid":
            return Size(ones, relative * (inner + 1.0) if unit else exponential)
        value = inner**self.degree
        return Size(value, max(1, self.degree) * relative * value)


class _Own(KernelFunction):
    """The common part of functions of the user."""

    own = True
    operations = 20.0

    def size(self, points: Points, norms: composed.Norms, unit: float, terms: int) -> Size:
        """See `KernelFunction.size`; values are of a kernel, and as accurate as a sum of a few terms."""
        diag = np.abs(self.diag(points, norms))
        value = diag + _SMALLEST_SIZE * diag.max(initial=0.0)
        return Size(value, _OWN_UNITS * unit * value)


@dataclass(frozen=True, repr=False)
class OfProducts(_Own):
    """See `maxmargin.kernels.of_products`."""

    function: Callable[[float, float, float], float]

    @property
    def measure(self) -> Measure:
        """See `KernelFunction.measure`."""
        return Measure(False, None)

    def __repr__(self) -> str:
        return f"of_products({self.function!r})"

    def evaluate(self, tile: Tile, out: Array) -> None:
        """See `KernelFunction.evaluate`."""
        from maxmargin.kernels._user import of_products

        a, b = tile.norms(self.measure)
        of_products(self.function, tile.values(self.measure), a, b[None], out)

    def diag(self, points: Points, norms: composed.Norms) -> Floats:
        """See `KernelFunction.diag`."""
        from maxmargin.kernels._user import of_products

        norm, out = np.ascontiguousarray(norms(self.measure)), np.empty((points.n, 1))
        of_products(self.function, norm[:, None], norm, norm[:, None], out)
        return out[:, 0]


@dataclass(frozen=True, repr=False)
class OfRows(_Own):
    """See `maxmargin.kernels.of_rows`."""

    function: Callable[[Any, Any], float]

    reads_rows = True

    def __repr__(self) -> str:
        return f"of_rows({self.function!r})"

    def evaluate(self, tile: Tile, out: Array) -> None:
        """See `KernelFunction.evaluate`."""
        from maxmargin.kernels._user import of_rows

        of_rows(self.function, *tile.rows(), out)

    def diag(self, points: Points, norms: composed.Norms) -> Floats:
        """See `KernelFunction.diag`."""
        from maxmargin.kernels._user import of_rows

        out = np.empty((points.n, 1))
        for i in range(points.n):
            of_rows(self.function, points.X[i : i + 1], points.X[i : i + 1], out[i : i + 1])
        return out[:, 0]


@dataclass(frozen=True, repr=False)
class _Joined(KernelFunction):
    """A sum or product of several kernels."""

    parts: tuple[KernelFunction, ...] = ()

    _join: ClassVar[Any] = staticmethod(np.add)

    @property
    def own(self) -> bool:  # type: ignore[override]
        """Whether values come from a function of the user."""
        return any(part.own for part in self.parts)

    @property
    def translation_invariant(self) -> bool:  # type: ignore[override]
        """Whether the kernel depends on x - z only."""
        return all(part.translation_invariant for part in self.parts)

    @property
    def may_be_indefinite(self) -> bool:  # type: ignore[override]
        """Whether a part may not be positive semidefinite."""
        return any(part.may_be_indefinite for part in self.parts)

    @property
    def reads_rows(self) -> bool:  # type: ignore[override]
        """Whether it reads rows, which must be dense."""
        return any(part.reads_rows for part in self.parts)

    def evaluate(self, tile: Tile, out: Array) -> None:
        """See `KernelFunction.evaluate`."""
        *others, last = self.parts
        last.evaluate(tile, out)
        for part in others:
            if isinstance(part, Constant):
                self._join(out, out.dtype.type(part.value), out=out)
            else:
                with tile.scratch(out.shape) as values:
                    part.evaluate(tile, values)
                    self._join(out, values, out=out)

    def diag(self, points: Points, norms: composed.Norms) -> Floats:
        """See `KernelFunction.diag`."""
        return np.asarray(reduce(self._join, (part.diag(points, norms) for part in self.parts)))


@dataclass(frozen=True, repr=False)
class Sum(_Joined):
    """The sum of several kernels."""

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))

    def size(self, points: Points, norms: composed.Norms, unit: float, terms: int) -> Size:
        r"""See `KernelFunction.size`: :math:`\sum_t s_{it} s_{jt} \le \|s_i\| \|s_j\|`."""
        sizes = [part.size(points, norms, unit, terms) for part in self.parts]
        value, error = (np.sum(of, axis=0) for of in zip(*sizes, strict=True))
        return Size(value, error + len(sizes) * unit * value)


@dataclass(frozen=True, repr=False)
class Product(_Joined):
    """The product of several kernels; a coefficient is the first factor."""

    multiplies = True
    _join: ClassVar[Any] = staticmethod(np.multiply)

    def __repr__(self) -> str:
        return " * ".join(f"({f!r})" if isinstance(f, Sum) else repr(f) for f in self.parts)

    def size(self, points: Points, norms: composed.Norms, unit: float, terms: int) -> Size:
        r"""See `KernelFunction.size`: the error is that of :math:`\prod_t (k_t + \delta_t)`."""
        sizes = [part.size(points, norms, unit, terms) for part in self.parts]
        value, error = sizes[0]
        for v, e in sizes[1:]:
            value, error = value * v, error * (v + e) + value * e
        return Size(value, error + len(sizes) * unit * value)


def _sum(a: KernelFunction, b: KernelFunction) -> KernelFunction:
    terms = [t for k in (a, b) for t in (k.parts if isinstance(k, Sum) else (k,)) if t != Constant(0.0)]
    return Sum(tuple(terms)) if len(terms) > 1 else (terms or [a])[0]


def _product(a: KernelFunction, b: KernelFunction) -> KernelFunction:
    factors = [f for k in (a, b) for f in (k.parts if isinstance(k, Product) else (k,))]
    coefficient = math.prod(f.value for f in factors if isinstance(f, Constant))
    rest = [f for f in factors if not isinstance(f, Constant)]
    if not math.isfinite(coefficient):
        raise ValueError("The coefficient of a kernel is too large for float64.")
    if not rest or coefficient == 0.0:
        return Constant(coefficient)
    factors = [*([] if coefficient == 1.0 else [Constant(coefficient)]), *rest]
    return Product(tuple(factors)) if len(factors) > 1 else factors[0]


def _as_kernel(value: Any) -> Any:
    """A kernel, or a number as a constant; NotImplemented for anything else."""
    if isinstance(value, KernelFunction):
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        return NotImplemented
    number = float(value)
    if not 0.0 <= number < math.inf:
        raise ValueError(
            f"A kernel cannot have the coefficient or constant {value!r}: use a finite number that is at "
            "least 0."
        )
    return Constant(number)
