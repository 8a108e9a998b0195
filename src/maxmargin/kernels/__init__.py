"""Step 1, from data to kernel values: the kernels, their data, their rounding, and sums over many samples.

>>> from maxmargin.kernels import Kernel
"""

from maxmargin.kernels.functions import laplacian, linear, of_products, of_rows, poly, rbf, sigmoid
from maxmargin.kernels.gamma import resolve_gamma
from maxmargin.kernels.kernel import NAMES, Kernel
from maxmargin.kernels.own import exp
from maxmargin.kernels.parts import KernelFunction
from maxmargin.kernels.points import Points

__all__ = [
    "NAMES",
    "Kernel",
    "KernelFunction",
    "Points",
    "exp",
    "laplacian",
    "linear",
    "of_products",
    "of_rows",
    "poly",
    "rbf",
    "resolve_gamma",
    "sigmoid",
]
