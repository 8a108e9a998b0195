"""The model of one cell: an exact one, or a constant. Functions of arrays, for threads and for other processes.

They start no threads, and what they take and return can be pickled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from maxmargin._sklearn import ovr_decision_function
from maxmargin._types import Floats
from maxmargin.solvers.solution import Status

#: Value of the class of a constant cell, and how much less the classes have that a cell does not know.
CERTAIN, ABSENT = 1.0, 1.0


@dataclass(frozen=True)
class Constant:
    """The model of a cell with one class, one target, or no training.

    Attributes
    ----------
    value : object
        The label or target that it predicts.
    status_ : str
        "solved", or why the cell was not trained: "max_time", "interrupted".
    """

    value: Any
    status_: str = str(Status.SOLVED)


#: A fitted `SVC` or `SVR`, or a constant.
Model: TypeAlias = Any


def constant_of(
    y: NDArray[Any], weight: Floats | None, classify: bool, status: Any = Status.SOLVED
) -> Constant:
    """The label with the largest sum of weights, or the weighted mean of the targets."""
    if not classify:
        return Constant(float(np.average(y, weights=weight)), str(status))
    classes, label = np.unique(y, return_inverse=True)
    return Constant(classes[np.argmax(np.bincount(label, weights=weight))], str(status))


def train_cell(estimator: Any, X: Any, y: NDArray[Any], weight: Floats | None = None) -> Model:
    """Train the model of one cell.

    Parameters
    ----------
    estimator : SVC or SVR
        With a number for gamma, which all cells share; it is cloned. Set ``n_jobs=1`` if cells run side by side.
    X : ndarray or sparse matrix of shape (n_rows, n_features)
        The rows of the cell.
    y : ndarray of shape (n_rows,)
        Their labels or targets.
    weight : ndarray of shape (n_rows,), optional
        Positive factors of C.

    Returns
    -------
    Model
        A fitted clone, or a `Constant` where all labels or targets are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import SVC
    >>> from maxmargin.cells.training import train_cell
    >>> train_cell(SVC(), np.ones((3, 2)), np.array(["a", "a", "a"])).value
    np.str_('a')
    """
    if (y == y[0]).all():
        return constant_of(y[:1], None, is_classifier(estimator))
    return clone(estimator).fit(X, y, **({} if weight is None else {"sample_weight": weight}))


def predict_cell(model: Model, X: Any) -> NDArray[Any]:
    """Labels or targets of rows of the cell."""
    return np.full(X.shape[0], model.value) if isinstance(model, Constant) else model.predict(X)


def decide_cell(model: Model, X: Any, classes: NDArray[Any]) -> Floats:
    """Decision values of rows of the cell for all `classes`: one column for two of them, else one for each.

    A constant cell has -1 or 1, with more classes 1 for its own. Classes that a cell lacks have 1 less than the
    least of the others.
    """
    if len(classes) == 2:
        if isinstance(model, Constant):
            return np.full(X.shape[0], CERTAIN if model.value == classes[1] else -CERTAIN)
        return np.asarray(model.decision_function(X))
    if isinstance(model, Constant):
        own, values = np.atleast_1d(model.value), np.full((X.shape[0], 1), CERTAIN)
    else:
        own, values = model.classes_, model.decision_function(X)
        if len(own) == 2:
            values = ovr_decision_function((values > 0)[:, None], values[:, None], 2)
    if len(own) == len(classes):
        return np.asarray(values)
    out = np.repeat(values.min(axis=1, keepdims=True) - ABSENT, len(classes), axis=1)
    out[:, np.searchsorted(classes, own)] = values
    return out
