"""Steps of a pipeline that transform every row on its own, and learn nothing from the others.

Their output for a row does not depend on the fold, so that all folds can share the transformed rows. A step
counts as such if

* it is `None` or ``"passthrough"``;
* its class is one of `_ROW_WISE` itself (a subclass may do anything);
* it is a `FunctionTransformer` itself whose function is None or a NumPy function of single numbers (a `ufunc`
  such as `numpy.log1p`), without arguments: of another function it is not known which rows it looks at;
* it is a `Pipeline` itself, of such steps only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer, PolynomialFeatures

from maxmargin.model_selection.pipelines import passes_rows_on

# Their `fit` checks parameters and counts columns.
_ROW_WISE = (Binarizer, Normalizer, PolynomialFeatures)


def is_row_wise(step: Any) -> bool:
    """Whether a step transforms every row on its own, whatever rows it was fitted on.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
    >>> from maxmargin.model_selection.row_wise import is_row_wise
    >>> is_row_wise(make_pipeline(FunctionTransformer(np.log1p), Normalizer()))
    True
    >>> is_row_wise(make_pipeline(StandardScaler(), Normalizer()))
    False
    """
    if passes_rows_on(step):
        return True
    kind = type(step)
    if kind is Pipeline:
        return all(is_row_wise(inner) for _, inner in step.steps)
    if kind is FunctionTransformer:
        return step.func is None or (_of_numbers(step.func) and not step.kw_args)
    return kind in _ROW_WISE


def _of_numbers(function: Any) -> bool:
    """Whether a function computes one number from one number."""
    one_each = isinstance(function, np.ufunc) and function.nin == function.nout == 1
    return one_each and function.signature is None
