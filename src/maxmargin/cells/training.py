"""The model of one cell, an exact one or a constant: functions of arrays, for threads and other processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

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
        The number of the class, or the target, that it predicts.
    status_ : str
        "solved", or why the cell was not trained: "max_time", "interrupted".
    """

    value: Any
    status_: str = str(Status.SOLVED)

    @property
    def relative_gap_(self) -> float:
        """0 if one class or target is all that there is; else nothing is known."""
        return 0.0 if self.status_ == Status.SOLVED else np.inf


#: A fitted `SVC` or `SVR`, or a constant.
Model: TypeAlias = Any


def constant_of(y: NDArray[Any], weight: Floats, status: Any = Status.SOLVED) -> Constant:
    """The class with the largest sum of weights, or the weighted mean of the targets."""
    if y.dtype.kind == "f":
        return Constant(float(np.average(y, weights=weight)), str(status))
    return Constant(int(np.argmax(np.bincount(y, weights=weight))), str(status))


def train_cell(estimator: Any, X: Any, y: NDArray[Any], weight: Floats) -> Model:
    """Train the model of one cell.

    Parameters
    ----------
    estimator : SVC or SVR
        With a number for gamma, which all cells share; it is cloned.
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        The rows of the cell.
    y : ndarray of shape (n_rows,)
        Numbers of their classes (integers), or their targets.
    weight : ndarray of shape (n_rows,)
        Positive factors of C.

    Returns
    -------
    Model
        A fitted clone, or a `Constant` where all classes or targets are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import SVC
    >>> from maxmargin.cells.training import train_cell
    >>> train_cell(SVC(), np.ones((3, 2)), np.array([1, 1, 1]), np.ones(3)).value
    1
    """
    if (y == y[0]).all():
        return constant_of(y[:1], weight[:1])
    return clone(estimator).fit(X, y, sample_weight=weight)


def predict_cell(model: Model, X: Any) -> NDArray[Any]:
    """Numbers of classes or targets of rows of the cell."""
    return np.full(X.shape[0], model.value) if isinstance(model, Constant) else model.predict(X)


def decide_cell(model: Model, X: Any, n_classes: int) -> Floats:
    """Decision values of rows of the cell: one column for two classes, else one for each of `n_classes`.

    A constant cell has -1 or 1, with more classes 1 for its own. Classes that a cell lacks have 1 less than
    the least of the others.
    """
    if n_classes == 2:
        if isinstance(model, Constant):
            return np.full(X.shape[0], CERTAIN if model.value else -CERTAIN)
        return np.asarray(model.decision_function(X))
    if isinstance(model, Constant):
        own, values = np.atleast_1d(model.value), np.full((X.shape[0], 1), CERTAIN)
    else:
        own, values = model.classes_, model.decision_function(X)
        if len(own) == 2:
            values = ovr_decision_function((values > 0)[:, None], values[:, None], 2)
    if len(own) == n_classes:
        return np.asarray(values)
    out = np.repeat(values.min(axis=1, keepdims=True) - ABSENT, n_classes, axis=1)
    out[:, own] = values
    return out
