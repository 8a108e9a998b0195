"""Loops over the values of a function that a user wrote, which are compiled with it.

Nothing of them is kept on disk: a function has no name by which its code could be found again with certainty.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numba as nb
import numpy as np
from numba import types
from numba.core.errors import NumbaError
from numba.extending import overload
from numpy.typing import NDArray

from maxmargin._compiled.intrinsics import bits64, float_of_bits64
from maxmargin.kernels.own import exp, name_of

Array = NDArray[Any]

# No reordering: a function means what it says.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}

_compiling = threading.RLock()
_loops: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()


def of_products(function: Any, products: Array, a: Array, b: Array, out: Array) -> None:
    """``out[r, t] = function(products[r, t], a[r], b[r, t])``; b may have one row for all."""
    _run(function, "products", _products_loop, "of_products", (products, a, b, out))
    _check(function, out)


def of_rows(function: Any, A: Array, B: Array, out: Array) -> None:
    """``out[r, t] = function(A[r], B[t])``."""
    _run(function, "rows", _rows_loop, "of_rows", (A, B, out))
    _check(function, out)


def _run(
    function: Any, kind: str, make: Callable[[Any], Any], what: str, arguments: tuple[Array, ...]
) -> None:
    loops = _loops.get(function)
    if loops is None or kind not in loops:
        with _compiling:
            loop = make(function if hasattr(function, "py_func") else nb.njit(**_OPTIONS)(function))
            try:
                loop(*arguments)
            except NumbaError as error:
                raise ValueError(
                    f"Numba cannot compile {name_of(function)} for {what}: use numbers, arithmetic and "
                    "functions of math and NumPy only, or pass a function of two data sets as the kernel, "
                    f"which is not compiled. Numba says: {_shortened(error)}"
                ) from error
            _loops.setdefault(function, {})[kind] = loop
        return
    loops[kind](*arguments)


def _shortened(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(line for line in lines if not line.startswith(("During", "Failed in")))[:400]


def _check(function: Any, out: Array) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(out.sum()) or np.isfinite(out).all()
    if not finite:
        raise ValueError(f"The function {name_of(function)} returned NaN or infinity.")


def _products_loop(function: Any) -> Any:
    @nb.njit(**_OPTIONS)
    def loop(products, a, b, out):  # type: ignore[no-untyped-def]
        for r in range(products.shape[0]):
            line, target, ar, bs = products[r], out[r], a[r], b[min(r, b.shape[0] - 1)]
            for t in range(products.shape[1]):
                target[t] = function(line[t], ar, bs[t])

    return loop


def _rows_loop(function: Any) -> Any:
    @nb.njit(**_OPTIONS)
    def loop(A, B, out):  # type: ignore[no-untyped-def]
        for r in range(A.shape[0]):
            for t in range(B.shape[0]):
                out[r, t] = function(A[r], B[t])

    return loop


# Beyond them the result is infinite, or 0.
_LARGEST, _SMALLEST = 709.4, -708.0


def _exp(x: Any) -> Any:
    """2**n exp(t) with x = n log(2) + t, |t| <= log(2) / 2: Taylor's series and a shift, which vectorise."""
    x = np.float64(x)
    y = _LARGEST if x > _LARGEST else (_SMALLEST if x < _SMALLEST else x)
    n = np.rint(y * 1.4426950408889634)
    t = (y - n * 0.6931471803691238) - n * 1.9082149292705877e-10
    p = 1.605904383682161e-10
    p = p * t + 2.08767569878681e-09
    p = p * t + 2.505210838544172e-08
    p = p * t + 2.755731922398589e-07
    p = p * t + 2.7557319223985893e-06
    p = p * t + 2.48015873015873e-05
    p = p * t + 0.0001984126984126984
    p = p * t + 0.001388888888888889
    p = p * t + 0.008333333333333333
    p = p * t + 0.041666666666666664
    p = p * t + 0.16666666666666666
    p = p * t + 0.5
    p = p * t + 1.0
    p = p * t + 1.0
    shifted = n + 6755399441055744.0  # 1.5 * 2**52: the low bits are the integer
    value = float_of_bits64(np.int64(np.int64(bits64(shifted) << np.int64(52)) + bits64(p)))
    value = np.inf if x > _LARGEST else (0.0 if x < _SMALLEST else value)
    return value if x == x else x


@overload(exp, jit_options={"fastmath": {"contract"}})
def _overload_exp(x: Any) -> Any:
    return _exp if isinstance(x, types.Float | types.Integer) else None
