"""Kernels that are objects as JSON, and back."""

from __future__ import annotations

from math import isfinite
from typing import Any

from maxmargin.kernels import functions
from maxmargin.kernels.parts import Constant, KernelFunction, Named, Product, Sum

# Sums in products in sums: more levels have not been written by hand.
_DEEPEST = 20


def encode_kernel(kernel: KernelFunction, what: str) -> Any:
    """Named kernels, their sums and products; ValueError for functions."""
    if isinstance(kernel, Constant):
        return kernel.value
    if isinstance(kernel, Named):
        gamma = list(kernel.gamma) if isinstance(kernel.gamma, tuple) else kernel.gamma
        return {"name": kernel.name, "gamma": gamma, "degree": kernel.degree, "coef0": kernel.coef0}
    for kind, name in ((Sum, "sum"), (Product, "product")):
        if isinstance(kernel, kind):
            return {name: [encode_kernel(part, what) for part in kernel.parts]}
    raise ValueError(
        f"{what} is {kernel!r}, and a model file holds no functions: use a kernel of named ones, or pickle "
        "the model, and keep the module of the function."
    )


def decode_kernel(value: Any, level: int = 0) -> KernelFunction:
    """The kernel that `encode_kernel` encoded; ValueError for anything else."""
    if isinstance(value, float | int) and not isinstance(value, bool) and value >= 0 and isfinite(value):
        return Constant(float(value))
    if isinstance(value, dict) and len(value) == 1 and level < _DEEPEST:
        (name, parts), *_ = value.items()
        if name in ("sum", "product") and isinstance(parts, list) and len(parts) >= 2:
            kernels = tuple(decode_kernel(part, level + 1) for part in parts)
            return Sum(kernels) if name == "sum" else Product(kernels)
    if isinstance(value, dict) and set(value) == {"name", "gamma", "degree", "coef0"}:
        try:
            return _named(**value)
        except TypeError as error:
            raise ValueError(str(error)) from None
    raise ValueError("a kernel of an unknown form")


def _named(name: Any, gamma: Any, degree: Any, coef0: Any) -> KernelFunction:
    """A named kernel through the checks of its function."""
    if name == "linear":
        return functions.linear()
    if name == "poly":
        return functions.poly(degree, gamma, coef0)
    if name == "sigmoid":
        return functions.sigmoid(gamma, coef0)
    if name in ("rbf", "laplacian"):
        return functions.rbf(gamma) if name == "rbf" else functions.laplacian(gamma)
    raise ValueError("a kernel of an unknown name")
