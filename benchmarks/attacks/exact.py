"""Kernel expansions beyond float64: in integers where everything is rational, else in long double.

Nothing of maxmargin is used. ``expansion`` returns h = K u for all rows, u'Ku, and a bound of its own error,
so that the judge never accuses a certificate of what is its own rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LD = np.longdouble
EPS = float(np.finfo(LD).eps)
Long = NDArray[np.longdouble]
Ints = NDArray[Any]  # object arrays of Python integers
MOST = 6_000_000  # products of integers that are computed exactly; above, long double


class Kernel(NamedTuple):
    """A kernel by name and parameters; `matrix` for precomputed and callable ones."""

    name: str
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    matrix: NDArray[np.float64] | None = None


class Expansion(NamedTuple):
    """h = K u less `reference` (a constant that a bias absorbs), u'Ku, and bounds of their errors."""

    h: Long
    reference: np.longdouble
    quad: np.longdouble
    h_error: float
    quad_error: float


def to_integers(values: Any) -> tuple[Ints, int]:
    """Integers N and a shift s with values = N 2^-s, exactly."""
    values = np.asarray(values, dtype=np.float64)
    mantissa, exponent = np.frexp(values.ravel())
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    power = exponent.astype(np.int64) - 53
    used = whole != 0
    least = int(power[used].min()) if used.any() else 0
    out = np.empty(len(whole), dtype=object)
    out[:] = [
        int(n) << int(p - least) if n else 0 for n, p in zip(whole.tolist(), power.tolist(), strict=True)
    ]
    return out.reshape(values.shape), -least


def to_long(number: int, shift: int) -> np.longdouble:
    """number 2^-shift, rounded to 64 bits."""
    sign, size = (-1, -number) if number < 0 else (1, number)
    drop = max(size.bit_length() - 64, 0)
    size >>= drop
    high, low = size >> 32, size & 0xFFFFFFFF
    value = np.ldexp(LD(high), 32) + LD(low)
    return sign * np.ldexp(value, drop - shift)


def _longs(numbers: Ints, shift: int) -> Long:
    out = np.empty(len(numbers), dtype=LD)
    for i, number in enumerate(numbers):
        out[i] = to_long(int(number), shift)
    return out


class Coefficients:
    """Coefficients of rows, held exactly, whose sums can be made exact."""

    def __init__(self, values: Any) -> None:
        self.integers, self.shift = to_integers(values)

    def long(self) -> Long:
        """Rounded to long double."""
        return _longs(self.integers, self.shift)

    def total(self, members: Any) -> np.longdouble:
        """The exact sum of some, rounded once."""
        return to_long(int(sum(self.integers[members].tolist())), self.shift)

    def move(self, at: int, members: Any, target: float) -> None:
        """Change one entry such that `members` add up to `target` exactly."""
        goal, shift = to_integers([target])
        if shift > self.shift:
            self.integers = np.array([n << (shift - self.shift) for n in self.integers], dtype=object)
            self.shift = shift
        missing = (int(goal[0]) << (self.shift - shift)) - int(sum(self.integers[members].tolist()))
        self.integers[at] += missing

    def match(self, at: int, members: Any, others: Any) -> None:
        """Change one entry of `members` such that they and `others` add up to zero."""
        self.integers[at] -= int(sum(self.integers[members].tolist())) + int(
            sum(self.integers[others].tolist())
        )


def expansion(kernel: Kernel, X: NDArray[np.float64], u: Coefficients, bias: bool = True) -> Expansion:
    """K u and u'Ku for the rows X; `bias`: a constant may be taken off h."""
    support = np.flatnonzero(u.integers != 0)
    n, d = X.shape
    cost = {"linear": n * d, "matrix": n * len(support), "poly": n * len(support) * (d + kernel.degree)}
    if cost.get(kernel.name, MOST + 1) <= MOST:
        return _rational(kernel, X, u, support, bias)
    return _rounded(kernel, X, u, support, bias)


def _rational(kernel: Kernel, X: NDArray[np.float64], u: Coefficients, support: Any, bias: bool) -> Expansion:
    n = len(X)
    c = u.integers[support]
    if kernel.name == "linear":
        rows, shift = to_integers(X)
        w = c @ rows[support] if len(support) else np.zeros(X.shape[1], dtype=object)
        h, power = rows @ w, 2 * shift + u.shift
    elif kernel.name == "matrix":
        assert kernel.matrix is not None
        K, shift = to_integers(kernel.matrix[:, support])
        h = K @ c if len(support) else np.zeros(n, dtype=object)
        power = shift + u.shift
    else:
        rows, shift = to_integers(X)
        gamma, by = to_integers([kernel.gamma])
        inner = (rows @ rows[support].T) * gamma[0]
        power = 2 * shift + by
        constant, at = to_integers([kernel.coef0])
        if at > power:
            inner, power = inner * (1 << (at - power)), at
        inner = inner + (int(constant[0]) << (power - at))
        K = inner.copy()
        for _ in range(kernel.degree - 1):
            K = K * inner
        h = K @ c if len(support) else np.zeros(n, dtype=object)
        power = power * kernel.degree + u.shift
    h = np.asarray(h, dtype=object)
    quad = to_long(int(sum((c * h[support]).tolist())), power + u.shift)
    middle = sorted(h.tolist())[n // 2] if bias else 0
    values = _longs(h - middle, power)
    top = float(np.max(np.abs(values), initial=LD(0)))
    return Expansion(values, to_long(int(middle), power), quad, 2 * EPS * top, 2 * EPS * abs(float(quad)))


def _rounded(kernel: Kernel, X: NDArray[np.float64], u: Coefficients, support: Any, bias: bool) -> Expansion:
    n, d = X.shape
    c = u.long()[support]
    rows = X.astype(LD)
    h = np.zeros(n, dtype=LD)
    most = LD(0)
    weight = np.abs(c)
    for begin in range(0, n, 256):
        part = slice(begin, begin + 256)
        K = block(kernel, rows, part, support)
        h[part] = K @ c
        most = max(most, np.max(np.abs(K) @ weight, initial=LD(0)))
    quad = np.sum(c * h[support])
    terms = 4 * d + 8 + 4 * kernel.degree + len(support)
    if kernel.name in ("rbf", "laplacian"):
        terms *= 64  # an error of the exponent is multiplied by the exponent; beyond 64 the value is nothing
    error = float(most) * terms * EPS
    middle = np.sort(h)[n // 2] if bias else LD(0)
    return Expansion(h - middle, middle, quad, error, float(weight.sum()) * error * 2)


def block(kernel: Kernel, rows: Long, part: slice, support: Any) -> Long:
    """Kernel values in long double, distances from differences."""
    if kernel.matrix is not None:
        return kernel.matrix[part][:, support].astype(LD)
    left, right = rows[part], rows[support]
    gamma = LD(kernel.gamma)
    if kernel.name in ("rbf", "laplacian"):
        total = np.zeros((len(left), len(right)), dtype=LD)
        for k in range(rows.shape[1]):
            apart = left[:, k, None] - right[None, :, k]
            total += apart * apart if kernel.name == "rbf" else np.abs(apart)
        return np.exp(-gamma * total)
    inner = left @ right.T
    if kernel.name == "linear":
        return inner
    if kernel.name == "poly":
        return (gamma * inner + LD(kernel.coef0)) ** kernel.degree
    return np.tanh(gamma * inner + LD(kernel.coef0))


def dense(kernel: Kernel, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """The whole kernel matrix, computed in long double and rounded."""
    every = np.arange(len(X))
    return block(kernel, X.astype(LD), slice(None), every).astype(np.float64)


def callable_kernel(gamma: float) -> Callable[[Any, Any], NDArray[np.float64]]:
    """A Laplacian plus a linear kernel as a user would write it."""

    def kernel(A: Any, B: Any) -> NDArray[np.float64]:
        A, B = np.asarray(A, dtype=np.float64), np.asarray(B, dtype=np.float64)
        apart = np.abs(A[:, None, :] - B[None, :, :]).sum(axis=2)
        return np.asarray(np.exp(-gamma * apart) + (A[:, None, :] * B[None, :, :]).sum(axis=2))

    return kernel
