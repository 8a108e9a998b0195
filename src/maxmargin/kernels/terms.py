"""Kernels as sums of terms that are products of one factor for each feature, or sums over the features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.parts import Constant, KernelFunction, Named, Product, Sum

#: Products of a factor for each feature.
_PRODUCTS = ("rbf", "laplacian")


@dataclass(frozen=True)
class Term:
    """A coefficient times "rbf", "laplacian", "linear" or, with an empty name, 1.

    Parameters
    ----------
    coefficient : float
        The coefficient.
    name : str
        The kernel.
    gamma : float or tuple of float
        Its coefficient, or one for each feature.
    """

    coefficient: float
    name: str = ""
    gamma: float | tuple[float, ...] = 0.0


def terms(kernel: Kernel) -> list[Term] | None:
    """The terms of a kernel, or None if it is not such a sum.

    Examples
    --------
    >>> from maxmargin.kernels import Kernel, linear, rbf
    >>> from maxmargin.kernels.terms import terms
    >>> terms(Kernel(rbf(0.5) * rbf(1.0) + 2 * linear()))
    [Term(coefficient=1.0, name='rbf', gamma=1.5), Term(coefficient=2.0, name='linear', gamma=0.0)]
    >>> terms(Kernel("poly")) is None
    True
    """
    if kernel.name in _PRODUCTS:
        return [Term(1.0, str(kernel.name), kernel.gamma)]
    if kernel.name == "linear":
        return [Term(1.0, "linear")]
    return _of_part(kernel.name) if isinstance(kernel.name, KernelFunction) else None


def _of_part(part: KernelFunction) -> list[Term] | None:
    if isinstance(part, Constant):
        return [Term(part.value)]
    if isinstance(part, Named) and part.name in _PRODUCTS:
        return [Term(1.0, part.name, part.gamma)]
    if isinstance(part, Named) and part.name == "linear":
        return [Term(1.0, "linear")]
    inner = [_of_part(each) for each in part.parts]
    if any(each is None for each in inner):
        return None
    lists: list[Any] = inner
    if isinstance(part, Sum):
        return [term for each in lists for term in each]
    return reduce(_multiplied, lists) if isinstance(part, Product) else None


def _multiplied(a: list[Term] | None, b: list[Term]) -> list[Term] | None:
    """All products of two sums, or None."""
    found = [_product(one, other) for one in a or () for other in b]
    return None if a is None or None in found else [term for term in found if term is not None]


def _product(a: Term, b: Term) -> Term | None:
    coefficient = a.coefficient * b.coefficient
    if not a.name or not b.name:
        one = a if a.name else b
        return Term(coefficient, one.name, one.gamma)
    if a.name != b.name or a.name not in _PRODUCTS:
        return None
    gamma = np.add(a.gamma, b.gamma)
    return Term(coefficient, a.name, tuple(gamma.tolist()) if gamma.ndim else float(gamma))
