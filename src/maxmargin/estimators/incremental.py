"""A classifier that learns and forgets rows, exactly."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from maxmargin._sklearn import StrOptions, fit_context
from maxmargin._types import Floats, Index
from maxmargin.estimators._incremental import BaseIncremental
from maxmargin.estimators.decisions import decision_values, voted_classes
from maxmargin.estimators.held_rows import merged_labels
from maxmargin.solvers.arrival import pairs_of


class IncrementalSVC(ClassifierMixin, BaseIncremental):
    r"""SVC with the squared hinge loss, or ``loss="hinge"``, that learns and forgets rows, exactly.

    After any sequence of `fit`, `partial_fit` and `forget` the model is that of a training from scratch on
    the rows that are held, and it knows its leave-one-out values. For each pair of classes

    .. math:: \min_{w,b} \tfrac12\|w\|^2 + C\sum_i\xi_i^2 \quad\text{or}\quad
              \min_{w,b} \tfrac12\|w\|^2 + C\sum_i\xi_i,\qquad
              \xi_i = \max(0, 1 - y_i(\langle w, \phi(x_i)\rangle + b)),

    is kept up, over one set of stored rows. The default is the first, the squared hinge: its values differ
    from those of `sklearn.svm.SVC`, which has the second. The steps are described in
    `maxmargin.solvers.incremental`.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of the slacks.
    kernel : {"rbf", "linear", "poly", "sigmoid", "laplacian"} or callable, default="rbf"
        The kernel; a callable is given two arrays of samples.
    degree, gamma, coef0
        See `maxmargin.SVC`. "scale" and "auto" are taken from the first rows and kept (`gamma_`): with
        another gamma all rows would be other points.
    cache_size : float, default=1000
        Megabytes for the kernel matrix of the rows that are held (8 n^2 bytes). With more rows kernel
        values are computed when they are needed, which is slower.
    max_factor : float, default=4000
        Megabytes that the factor of the support vectors of a pair may take (4 n_SV^2 bytes, with the hinge
        those between the bounds); more raises `MemoryError`.
    n_jobs : int, default=None
        Threads; None for all cores.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        Penalty of a margin that is missed, as in ``SVC(loss=...)``.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        With three or more classes, whether `decision_function` has a column per class or per pair.
    break_ties : bool, default=False
        With three or more classes and "ovr", whether ties of votes are decided by the decision values.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, those of `classes` that have not been seen included.
    support_ : ndarray of shape (n_SV,)
        Positions of the support vectors among the rows that are held. In the order of their arrival; with
        three or more classes class by class.
    support_vectors_, dual_coef_, intercept_, n_support_
        As `sklearn.svm.SVC` has them.
    n_held_ : int
        Rows that are held.
    gamma_ : float
        The kernel coefficient in use.
    status_, dual_gap_, relative_gap_
        As `maxmargin.SVC` has them; the gaps are computed when they are read, and the status is "solved".

    See Also
    --------
    IncrementalSVR : The same for regression.
    maxmargin.model_selection.leave_one_out : Leave-one-out values of other estimators.

    References
    ----------
    G. Cauwenberghs, T. Poggio, "Incremental and Decremental Support Vector Machine Learning", 2000.
    S. V. N. Vishwanathan, M. N. Murty, "SSVM: A Simple SVM Algorithm", 2002.

    Examples
    --------
    >>> from maxmargin import IncrementalSVC
    >>> clf = IncrementalSVC(gamma=1.0).fit([[0.0], [1.0], [2.0]], [0, 0, 1])
    >>> clf.partial_fit([[1.4], [3.0]], [1, 1]).predict([[1.3]])
    array([1])
    >>> clf.forget([3]).n_held_  # the row 1.4
    4
    >>> clf.leave_one_out().round(2)
    array([-0.1 ,  0.09, -0.09,  0.1 ])
    """

    # Labels of the codes in `_svm`: in the order in which they came.
    _sides: NDArray[Any]
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseIncremental._parameter_constraints,
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str | Callable[..., Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        cache_size: float = 1000,
        max_factor: float = 4000,
        n_jobs: int | None = None,
        loss: str = "squared_hinge",
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.cache_size = cache_size
        self.max_factor = max_factor
        self.n_jobs = n_jobs
        self.loss = loss
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties

    def _options(self) -> dict[str, Any]:
        return {"squared": self.loss == "squared_hinge"}

    # -- learning and forgetting -----------------------------------------------------------------------

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> IncrementalSVC:
        """Learn from these rows alone.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Class labels, two or more.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of C per sample; rows with 0 are not held.

        Returns
        -------
        self : object
        """
        return self._learn(X, y, None, sample_weight, first=True, alone=True)

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> IncrementalSVC:
        """Learn more rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; from one on.
        y : array-like of shape (n_samples,)
            Their labels, any part of the classes. As long as all rows have the same label, that label is
            predicted.
        classes : array-like of shape (n_classes,), default=None
            All labels, if some may come later; otherwise they are taken as they come.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of C per sample; rows with 0 are not held.

        Returns
        -------
        self : object
        """
        return self._learn(X, y, classes, sample_weight, first=not hasattr(self, "_svm"))

    def leave_one_out(self) -> Floats:
        """The decision values of each held row by the model that is trained on all others.

        Returns
        -------
        ndarray of shape (`n_held_`,), (`n_held_`, n_classes) or (`n_held_`, n_pairs)
            In the order of arrival, shaped as by `decision_function`. For a row that is the only one of its
            class: the side of the other class, in each pair.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.preprocessing import scale
        >>> from maxmargin import IncrementalSVC
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> values = IncrementalSVC().fit(scale(X), y).leave_one_out()
        >>> round(float(((values > 0) == y).mean()), 4)  # leave-one-out accuracy
        0.9754
        """
        return decision_values(self._held_out(), len(self.classes_), self.decision_function_shape)

    def leave_one_out_predict(self) -> NDArray[Any]:
        """The label of each held row by the model that is trained on all others.

        Returns
        -------
        ndarray of shape (`n_held_`,)
            In the order of arrival.
        """
        return self._labels_of(self._held_out())

    def _held_out(self) -> Floats:
        """Pair values of each held row by the model that is trained without it."""
        check_is_fitted(self)
        if len(self.classes_) == 1:
            return np.full((self.n_held_, 1), -1.0)
        return self._sorted_pairs(self._svm.leave_one_out().T, self._sides).T

    def _learn(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, *, first: bool, alone: bool = False
    ) -> IncrementalSVC:
        X, y = self._checked(X, y, first)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        weight, kept = self._kept(X, sample_weight, alone)
        labels = merged_labels(y[kept], classes, None if first else self._sides, several=alone)
        if not len(kept):
            return self
        if len(kept) < len(y):
            X, y, weight = X[kept], y[kept], weight[kept]
        order = np.argsort(labels)
        codes = order[np.searchsorted(labels, y, sorter=order)]
        self._add(X, codes.astype(np.float64), weight, first, labels)
        return self

    def _labels(self) -> NDArray[Any]:
        return self._sides

    def _publish_solution(
        self, X: Any, at: Index, y: Floats, u: Floats, intercept: Floats, labels: NDArray[Any]
    ) -> None:
        k, rank = len(labels), np.argsort(np.argsort(labels))
        used = np.flatnonzero(u.any(axis=0))
        label = rank[y[used].astype(np.intp)]
        if k == 1:
            coef, constants = np.zeros((1, 0)), np.array([-1.0])
        elif k == 2:
            coef, constants = self._sorted_pairs(u[:, used], labels), self._sorted_pairs(intercept, labels)
        else:
            by_class = np.argsort(label, kind="stable")
            used, label = used[by_class], label[by_class]
            constants, each = self._sorted_pairs(intercept, labels), self._sorted_pairs(u[:, used], labels)
            coef = np.zeros((k - 1, len(used)))
            for (i, j), row in zip(combinations(range(k), 2), each, strict=True):
                coef[j - 1, label == i] = row[label == i]
                coef[i, label == j] = row[label == j]
        self._sides, self._constants = labels, intercept
        self.classes_ = np.sort(labels)
        self._publish_model(X, at, used, coef, constants, np.bincount(label, minlength=max(k, 2)))

    def _published(self, gaps: Floats) -> Floats:
        return np.abs(self._sorted_pairs(gaps, self._sides)) if len(gaps) else np.zeros(1)

    @staticmethod
    def _sorted_pairs(values: Floats, labels: NDArray[Any]) -> Floats:
        """Rows per pair of codes as rows per pair of sorted classes, with scikit-learn's signs.

        With two classes the larger label is positive, otherwise the first of a pair.
        """
        k, rank = len(labels), np.argsort(np.argsort(labels))
        place = {pair: at for at, pair in enumerate(combinations(range(k), 2))}
        out = np.empty_like(values)
        for row, (a, b) in zip(values, pairs_of(k), strict=True):
            ascending = bool(rank[a] < rank[b])
            sign = 1.0 if ascending == (k == 2) else -1.0
            pair = (rank[a], rank[b]) if ascending else (rank[b], rank[a])
            out[place[int(pair[0]), int(pair[1])]] = sign * row + 0.0
        return out

    @classmethod
    def in_order_of_arrival(cls, intercept: Floats, labels: NDArray[Any]) -> Floats:
        """The constants of the problems from `intercept_`; the labels are in the order in which they came."""
        k = len(labels)
        places = cls._sorted_pairs(np.arange(1.0, k * (k - 1) // 2 + 1.0), labels)
        out = np.empty_like(intercept)
        out[np.abs(places).astype(np.intp) - 1] = np.sign(places) * intercept
        return out

    # -- prediction ------------------------------------------------------------------------------------

    def _pair_values(self, X: Any) -> Floats:
        """One column per pair of classes, positive for the first; two classes: for the second."""
        check_is_fitted(self)
        k = len(self.classes_)
        parts = self._expand(X, by_class=k > 2)
        if k <= 2:
            return np.asarray(parts[0] + self.intercept_)
        from maxmargin.estimators._votes import pair_values  # compiled: not at import

        return np.asarray(pair_values(parts, self.intercept_))

    def _labels_of(self, values: Floats) -> NDArray[Any]:
        """Labels from pair values."""
        k = len(self.classes_)
        if k == 1:
            return np.full(len(values), self.classes_[0])
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        if self.break_ties and k > 2:
            return self.classes_[np.argmax(decision_values(values, k, "ovr"), axis=1)]
        return self.classes_[voted_classes(values, k)]

    def decision_function(self, X: Any) -> Floats:
        """Values of the decision function; for two classes positive for the second label.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            One value for two classes; otherwise one column per class ("ovr") or per pair ("ovo").
        """
        values = self._pair_values(X)
        if len(self.classes_) == 1:
            return values.ravel()
        return decision_values(values, len(self.classes_), self.decision_function_shape)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._labels_of(self._pair_values(X))
