"""Kernels in compiled code: their numbers, and how a kernel value follows from a product of two samples."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

LINEAR, POLY, SIGMOID, RBF, LAPLACIAN = range(5)
KINDS = {"linear": LINEAR, "poly": POLY, "sigmoid": SIGMOID, "rbf": RBF, "laplacian": LAPLACIAN}


class Form(NamedTuple):
    """The last step of a kernel value, after the product was scaled.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.kernels import Kernel
    >>> from maxmargin.kernels._form import POLY, Form
    >>> Form.of(Kernel("poly", coef0=1.0, degree=2), np.float64) == (POLY, 1.0, 2)
    True
    """

    kind: int
    #: Added to the product, in the precision of the values.
    shift: Any
    degree: int

    @staticmethod
    def of(kernel: Any, dtype: Any) -> Form:
        """The form of a kernel, for values of type `dtype`."""
        shift = kernel.coef0 if kernel.name in ("poly", "sigmoid") else 0.0
        return Form(KINDS[kernel.name], np.dtype(dtype).type(shift), int(kernel.degree))

    @staticmethod
    def none(dtype: Any) -> Form:
        """In place of a form where no value is computed."""
        return Form(LINEAR, np.dtype(dtype).type(0.0), 1)
