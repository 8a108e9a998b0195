"""The questions of a search to an estimator: along which parameters to train, and the kernel of some rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from maxmargin._types import Index
from maxmargin.estimators._elsewhere import SamplesElsewhere
from maxmargin.kernels.gamma import gamma_of_rows
from maxmargin.kernels.kernel import Kernel


@dataclass(frozen=True)
class Axis:
    """A parameter along which a search starts each fit from the solution of the fit before.

    Parameters
    ----------
    parameter : str
        The name of a numeric parameter of the estimator.
    ascending : bool
        Whether the fits go from the smallest value to the largest, or the other way round. The directions
        were measured, see docs/model_selection.md.
    """

    parameter: str
    ascending: bool


def kernel_of(estimator: Any, X: Any, kept: Index) -> Kernel:
    """The kernel that an estimator has when it is trained on rows of X, with its numbers.

    Parameters
    ----------
    estimator : estimator
        Not changed; need not be fitted.
    X : array-like or sparse matrix
        The training rows; anything if the kernel is linear, a function or precomputed.
    kept : ndarray of int
        The rows with a positive weight, from which ``gamma="scale"`` is estimated.

    Returns
    -------
    Kernel
        Raises ValueError if gamma cannot be estimated.
    """
    plain = callable(estimator.kernel) or estimator.kernel in ("precomputed", "linear")
    if isinstance(X, SamplesElsewhere):
        gamma = 0.0 if plain else X.gamma(estimator.gamma)
        return Kernel(estimator.kernel, gamma=gamma, degree=estimator.degree, coef0=estimator.coef0)
    gamma = 0.0 if plain else gamma_of_rows(estimator.gamma, X, kept)
    return Kernel(estimator.kernel, gamma=gamma, degree=estimator.degree, coef0=estimator.coef0)
