"""Functions of the user that are compiled: what is known about them without compiling."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np


def exp(x: Any) -> Any:
    """The exponential function; in functions for `of_products` and `of_rows` in vector code.

    Examples
    --------
    >>> from maxmargin.kernels import exp
    >>> round(float(exp(1.0)), 4)
    2.7183
    """
    return np.exp(x)


def name_of(function: Any) -> str:
    """The name of a function, also of one that Numba compiled."""
    return str(getattr(getattr(function, "py_func", function), "__qualname__", function))


def callable_with(function: Any, count: int, what: str) -> Any:
    """The function, if it can be called with so many arguments."""
    if not callable(function):
        raise TypeError(f"A function {what} is needed, got {function!r}.")
    try:
        signature = inspect.signature(getattr(function, "py_func", function))
    except (TypeError, ValueError):  # of some built-in functions
        return function
    try:
        signature.bind(*range(count))
    except TypeError:
        raise TypeError(
            f"The function must have the {count} arguments {what}; {name_of(function)} has {signature}."
        ) from None
    return function
