r"""Kernels as objects: named ones with their parameters, and functions of one's own.

Sums and products of kernels are kernels: with :math:`k(x, z) = \langle\varphi(x), \varphi(z)\rangle` a sum
has the features of all its terms, a product all products of their features (Shawe-Taylor and Cristianini,
"Kernel Methods for Pattern Analysis", 2004, section 3.4). A difference need not be one.

>>> from maxmargin import SVC
>>> from maxmargin.kernels import linear, rbf
>>> kernel = rbf(0.1) + 0.5 * linear()
>>> kernel
rbf(gamma=0.1) + 0.5 * linear()
>>> kernel([[0.0], [1.0]], [[2.0]]).round(3)
array([[0.67 ],
       [1.905]])
>>> SVC(kernel=kernel).fit([[0.0], [1.0], [2.0]], [0, 1, 1]).predict([[1.5]])
array([1])
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np

from maxmargin.kernels.own import callable_with
from maxmargin.kernels.parts import KernelFunction, Named, OfProducts, OfRows


def linear() -> KernelFunction:
    r"""Linear kernel :math:`\langle x, z\rangle`.

    Examples
    --------
    >>> from maxmargin.kernels import linear
    >>> linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """
    return Named("linear")


def poly(degree: int = 3, gamma: float = 1.0, coef0: float = 0.0) -> KernelFunction:
    r"""Polynomial kernel :math:`(\gamma\langle x, z\rangle + c_0)^{degree}`.

    Parameters
    ----------
    degree : int
        The degree, at least 0.
    gamma : float
        Factor of the product, at least 0.
    coef0 : float
        The constant; the function is a kernel if it is not negative.

    Examples
    --------
    >>> from maxmargin.kernels import poly
    >>> poly(2, coef0=1.0)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    """
    if isinstance(degree, bool) or not isinstance(degree, Integral) or degree < 0:
        raise ValueError(f"degree must be an integer that is at least 0, got {degree!r}.")
    return Named("poly", _number("gamma", gamma, 0.0), int(degree), _number("coef0", coef0))


def sigmoid(gamma: float = 1.0, coef0: float = 0.0) -> KernelFunction:
    r"""Sigmoid kernel :math:`\tanh(\gamma\langle x, z\rangle + c_0)`, which is not positive semidefinite.

    Parameters
    ----------
    gamma : float
        Factor of the product, at least 0.
    coef0 : float
        The constant.

    Examples
    --------
    >>> from maxmargin.kernels import sigmoid
    >>> sigmoid(0.1)([[1.0, 2.0]], [[3.0, 4.0]]).round(4)
    array([[0.8005]])
    """
    return Named("sigmoid", _number("gamma", gamma, 0.0), coef0=_number("coef0", coef0))


def rbf(gamma: Any) -> KernelFunction:
    r"""Gaussian kernel :math:`\exp(-\sum_j \gamma_j (x_j - z_j)^2)`.

    Parameters
    ----------
    gamma : float or array-like of shape (n_features,)
        One coefficient, or one for each feature, at least 0. The second is the same as a scale for each
        feature: ``rbf(gamma)(X)`` is ``rbf(1.0)(X * np.sqrt(gamma))``; a feature with 0 is not used.

    Examples
    --------
    >>> from maxmargin.kernels import rbf
    >>> rbf(0.5)([[0.0, 0.0]], [[1.0, 2.0]]).round(4)
    array([[0.0821]])
    >>> rbf([0.5, 0.0])([[0.0, 0.0]], [[1.0, 2.0]]).round(4)
    array([[0.6065]])
    """
    return Named("rbf", _gammas(gamma))


def laplacian(gamma: Any) -> KernelFunction:
    r"""Laplacian kernel :math:`\exp(-\sum_j \gamma_j |x_j - z_j|)`.

    Parameters
    ----------
    gamma : float or array-like of shape (n_features,)
        One coefficient, or one for each feature, at least 0.

    Examples
    --------
    >>> from maxmargin.kernels import laplacian
    >>> laplacian(0.5)([[0.0, 0.0]], [[1.0, 2.0]]).round(4)
    array([[0.2231]])
    """
    return Named("laplacian", _gammas(gamma))


def of_products(function: Callable[[float, float, float], float]) -> KernelFunction:
    r"""Kernel from a function of a product and two squared norms, which is compiled.

    The products come from a matrix product, so that this takes hardly longer than a named kernel, while a
    function of whole matrices is called by the interpreter for every block of rows.

    Parameters
    ----------
    function : callable
        ``f(dot, xx, zz)`` with numbers :math:`\langle x, z\rangle`, :math:`\|x\|^2`, :math:`\|z\|^2`, that
        returns a number. Numba must be able to compile it: numbers, arithmetic, `if`, and functions of `math`
        and NumPy. `maxmargin.kernels.exp` takes a fraction of the time of `math.exp` there. It must be
        symmetric in the norms; training needs a positive semidefinite kernel to reach the global optimum.
        A function that was compiled by ``numba.njit`` is used as it is.

    Notes
    -----
    It is compiled when it is first used in a process, which takes about a second. Values are float64; their
    errors are taken to be those of the products, as for a function of whole matrices, and the values that are
    computed count as the definition. Products are of the rows as they are given: where these are far from the
    origin compared with their distances, a function of :math:`\|x\|^2 + \|z\|^2 - 2\langle x, z\rangle` loses
    digits, unless the features are centred.

    Examples
    --------
    >>> from maxmargin import SVC
    >>> from maxmargin.kernels import of_products
    >>> def rational(dot, xx, zz):
    ...     return 1.0 / (1.0 + xx + zz - 2.0 * dot)
    >>> of_products(rational)([[0.0], [1.0]], [[3.0]])
    array([[0.1],
           [0.2]])
    >>> SVC(kernel=of_products(rational)).fit([[0.0], [1.0], [3.0]], [0, 0, 1]).predict([[2.5]])
    array([1])
    """
    return OfProducts(callable_with(function, 3, "(dot, xx, zz): a product and two squared norms"))


def of_rows(function: Callable[[Any, Any], float]) -> KernelFunction:
    r"""Kernel from a function of two rows, which is compiled.

    Parameters
    ----------
    function : callable
        ``f(x, z)`` with two arrays of float64 of shape (n_features,), which it must not change, that returns
        a number; see `of_products` for what it may contain. It must be symmetric.

    Notes
    -----
    X must be dense. The function is called for each pair of rows: where it can be written with products and
    norms, `of_products` takes less time.

    Examples
    --------
    >>> from maxmargin.kernels import of_rows
    >>> def intersection(x, z):
    ...     total = 0.0
    ...     for k in range(len(x)):
    ...         total += min(x[k], z[k])
    ...     return total
    >>> of_rows(intersection)([[3.0, 1.0]], [[2.0, 5.0], [0.0, 1.0]])
    array([[3., 1.]])
    """
    return OfRows(callable_with(function, 2, "(x, z): two rows"))


def opaque(kernel: Any) -> bool:
    """Whether a kernel is a function about which nothing is known, which may be given data of any kind.

    Examples
    --------
    >>> from maxmargin.kernels.functions import linear, opaque
    >>> opaque(linear()), opaque("linear"), opaque(lambda X, Z: X @ Z.T)
    (False, False, True)
    """
    return callable(kernel) and not isinstance(kernel, KernelFunction)


def _number(name: str, given: Any, low: float = -math.inf) -> float:
    if isinstance(given, bool) or not isinstance(given, Real):
        also = ": 'scale' and 'auto' are known for kernel names only" if isinstance(given, str) else ""
        raise TypeError(f"{name} must be a number, got {given!r}{also}.")
    value = float(given)
    if not low <= value < math.inf or math.isinf(value):
        least = f" and at least {low:g}" if math.isfinite(low) else ""
        raise ValueError(f"{name} must be finite{least}, got {given!r}.")
    return value


def _gammas(gamma: Any) -> float | tuple[float, ...]:
    """One gamma, or a tuple of one per feature."""
    if np.ndim(gamma) == 0:
        return _number("gamma", gamma.item() if isinstance(gamma, np.ndarray) else gamma, 0.0)
    if np.ndim(gamma) != 1 or not len(gamma):
        raise ValueError(
            f"gamma must be a number or one per feature, got an array of shape {np.shape(gamma)}."
        )
    return tuple(_number("gamma", g, 0.0) for g in np.asarray(gamma).tolist())
