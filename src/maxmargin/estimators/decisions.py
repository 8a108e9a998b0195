"""Decision values and labels of one-vs-one classification, from the values of the class pairs.

`BaseSVC.decision_function` and `BaseSVC.predict` use these functions, and so do searches, whose training
leaves the pair values of held-out rows behind.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxmargin._sklearn import ovr_decision_function
from maxmargin._types import Floats, Index


def decision_values(values: Floats, n_classes: int, shape: str) -> Floats:
    """The decision function from pair values (n_samples, n_pairs).

    One value per sample for two classes; otherwise one column per class (`shape` "ovr") or per pair ("ovo").

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.estimators.decisions import decision_values
    >>> decision_values(np.array([[1.0, 2.0, -0.5]]), 3, "ovr").argmax(axis=1)
    array([0])
    """
    if n_classes == 2:
        return values.ravel()
    if shape == "ovr":
        return np.asarray(ovr_decision_function(values < 0, -values, n_classes))
    return values


def voted_classes(values: Floats, n_classes: int, order: Index | None = None) -> NDArray[np.intp]:
    """The class with the most votes, from pair values (n_samples, n_pairs).

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_pairs)
        Positive for the first class of a pair; with two classes for the second.
    n_classes : int
        Number of classes.
    order : ndarray of shape (n_classes,), optional
        The order of the classes in which ties are decided, where it is not ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.estimators.decisions import voted_classes
    >>> voted_classes(np.array([[1.0], [-2.0]]), 2)
    array([1, 0])
    """
    if n_classes == 2:
        second = values.ravel() >= 0 if order is None or order[0] == 0 else values.ravel() > 0
        return second.astype(np.intp)
    from maxmargin.estimators._votes import reordered, winners  # compiled: not at import

    if order is None:
        return winners(np.ascontiguousarray(values), n_classes)
    return order[winners(reordered(values, order), n_classes)]
