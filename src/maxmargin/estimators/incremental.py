"""A classifier that learns and forgets rows, exactly."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from maxmargin._compiled.threads import Threads
from maxmargin._sklearn import Interval, StrOptions, fit_context
from maxmargin._types import Floats, Index
from maxmargin.estimators._validation import any_weights
from maxmargin.estimators.held_rows import HeldRows, merged_labels
from maxmargin.estimators.model import KernelModel, configured
from maxmargin.kernels.gamma import resolve_gamma
from maxmargin.kernels.kernel import NAMES, Kernel


class IncrementalSVC(ClassifierMixin, BaseEstimator):
    r"""Two-class SVC with squared hinge that learns and forgets rows, and knows its leave-one-out values.

    After any sequence of `fit`, `partial_fit` and `forget` the model is that of a training from scratch on
    the rows that are held: :math:`\min \tfrac12\|w\|^2 + C\sum_i\xi_i^2` has one solution, and it is kept
    up exactly. The steps are described in `maxmargin.solvers.incremental`.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of the squared slacks, as in ``SVC(loss="squared_hinge")``.
    kernel : {"rbf", "linear", "poly", "sigmoid", "laplacian"} or callable, default="rbf"
        The kernel; a callable is given two arrays of samples.
    degree, gamma, coef0
        See `maxmargin.SVC`. "scale" and "auto" are taken from the first rows and kept (`gamma_`): with
        another gamma all rows would be other points.
    cache_size : float, default=1000
        Megabytes for the kernel matrix of the rows that are held (8 n^2 bytes). With more rows kernel
        values are computed when they are needed, which is slower.
    max_factor : float, default=4000
        Megabytes that the factor of the support vectors may take (4 n_SV^2 bytes); more raises `MemoryError`.
    n_jobs : int, default=None
        Threads; None for all cores.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels; of shape (1,) while only one has been seen.
    support_ : ndarray of shape (n_SV,)
        Positions of the support vectors among the rows that are held, in the order of their arrival.
    support_vectors_, dual_coef_, intercept_, n_support_
        As `sklearn.svm.SVC` has them.
    n_held_ : int
        Rows that are held.
    gamma_ : float
        The kernel coefficient in use.

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

    _model: KernelModel
    # Labels of the negative and the positive side in `_svm`.
    _sides: NDArray[Any]
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "kernel": [StrOptions(set(NAMES) - {"precomputed"}), callable],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "cache_size": [Interval(Real, 0, None, closed="left")],
        "max_factor": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
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
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.cache_size = cache_size
        self.max_factor = max_factor
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags

    # -- learning and forgetting -----------------------------------------------------------------------

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> IncrementalSVC:
        """Learn from these rows alone.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Two class labels.
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
            Their labels. A third label is refused. As long as all rows have the same label, that label is
            predicted.
        classes : array-like of shape (2,), default=None
            Both labels, if the first rows may have one only; otherwise they are taken as they come.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of C per sample; rows with 0 are not held.

        Returns
        -------
        self : object
        """
        return self._learn(X, y, classes, sample_weight, first=not hasattr(self, "_svm"))

    def forget(self, indices: ArrayLike) -> IncrementalSVC:
        """Unlearn rows that are held.

        Parameters
        ----------
        indices : int, array-like of int or of bool
            Positions among the rows that are held, in the order of their arrival, counted before anything is
            forgotten; negative ones count from the end. A mask has one entry per row.

        Returns
        -------
        self : object
        """
        check_is_fitted(self)
        rows = np.atleast_1d(np.asarray(indices))
        if rows.dtype == bool:
            if rows.shape != (self.n_held_,):
                raise ValueError(
                    f"A mask must have one entry for each of the {self.n_held_} rows, got {rows.shape}."
                )
            rows = np.flatnonzero(rows)
        if not len(rows):
            return self
        if rows.ndim != 1 or not np.issubdtype(rows.dtype, np.integer):
            raise ValueError("indices must be positions of held rows: integers in one dimension, or a mask.")
        if (rows < -self.n_held_).any() or (rows >= self.n_held_).any():
            raise IndexError(f"There are {self.n_held_} rows, at positions 0 to {self.n_held_ - 1}.")
        rows = np.unique(rows % self.n_held_)
        if len(rows) == self.n_held_:
            raise ValueError("All rows would be forgotten: fit anew instead, or keep at least one.")
        self._svm.forget(self._svm.held[rows])
        self._publish()
        return self

    def leave_one_out(self) -> Floats:
        """The decision value of each held row by the model that is trained on all others.

        Returns
        -------
        ndarray of shape (n_held_,)
            In the order of arrival. For a row that is the only one of its class: the side of the other class.

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
        check_is_fitted(self)
        return self._svm.leave_one_out()

    def _learn(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, *, first: bool, alone: bool = False
    ) -> IncrementalSVC:
        X, y = validate_data(
            self, X, y, reset=first, dtype=[np.float64, np.float32], order="C", accept_sparse="csr"
        )
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        if not first:
            X = self._as_held(X)
        weight = any_weights(sample_weight, X, ensure_non_negative=True)
        kept = np.flatnonzero(weight > 0)
        if alone and not len(kept):
            raise ValueError("Invalid input - all samples have zero or negative weights.")
        labels = merged_labels(y[kept], classes, None if first else self._sides, both=alone)
        if not len(kept):
            return self
        if len(kept) < len(y):
            X, y, weight = X[kept], y[kept], weight[kept]
        if first:
            gamma = 0.0 if callable(self.kernel) else resolve_gamma(self.gamma, X, weight)
            svm = self._empty_svm(gamma)
        else:
            gamma, svm = self.__dict__["gamma_"], self.__dict__["_svm"]
        # The first label that was seen alone is negative until the other is known to be smaller.
        side = np.where(y == labels[0], -1.0, 1.0)
        svm.add(X, side, 1.0 / (2.0 * self.C * weight))
        # Only now: rows may have been refused.
        self.gamma_, self._svm, self._sides = gamma, svm, labels
        self.classes_ = np.sort(labels)
        self._publish()
        return self

    def _empty_svm(self, gamma: float) -> Any:
        from maxmargin.solvers.incremental import ExactSVM  # compiled loops: not at import

        return ExactSVM(
            Kernel(self.kernel, gamma=gamma, degree=self.degree, coef0=self.coef0),
            most_bytes=int(self.cache_size * 1e6),
            factor_bytes=int(self.max_factor * 1e6),
            n_jobs=self.n_jobs,
        )

    def _as_held(self, X: Any) -> Any:
        """Samples in the storage, dense or sparse, of the rows that are held."""
        if sp.issparse(X) == self._model.sparse:
            return X
        return sp.csr_array(X) if self._model.sparse else X.toarray()

    def _publish(self) -> None:
        """Set the model and the attributes from the present state of `_svm`."""
        svm = self._svm
        held = svm.held
        used = np.flatnonzero(svm.u[held])
        at = held[used]
        self._publish_support(len(held), used, svm.X[at], svm.y[at], svm.u[at], svm.level)

    def _publish_support(self, n: int, used: Index, vectors: Any, y: Floats, u: Floats, level: float) -> None:
        """The model of n rows of which `used` are support vectors, with sides y and multipliers u."""
        sign = self._sign()
        sides = sign * y
        self._model = model = KernelModel(
            self._svm.kernel,
            configured(vectors),
            used.astype(np.int32),
            np.array([np.count_nonzero(sides < 0), np.count_nonzero(sides > 0)], dtype=np.int32),
            (sign * u)[None],
            np.array([-sign * level]),
            (n, vectors.shape[1]),
            sp.issparse(vectors),
        )
        self.n_held_ = n
        self.support_, self.support_vectors_, self.n_support_ = model.support, model.vectors, model.n_support
        self.dual_coef_, self.intercept_ = model.dual_coef, model.intercept

    def _sign(self) -> float:
        """Sign of the sides in `_svm` relative to scikit-learn's, where the larger label is positive."""
        return 1.0 if self._sides[0] == self.classes_[0] else -1.0

    # -- state -----------------------------------------------------------------------------------------

    def get_model(self) -> KernelModel:
        """Return the kernel, support vectors and coefficients that predictions are made from.

        Returns
        -------
        maxmargin.estimators.model.KernelModel
            The model, with its support vectors in the order of their arrival. Fitted attributes that were
            replaced since the last change of rows are in it.
        """
        check_is_fitted(self)
        self._model = self._model.updated(
            support=self.support_, vectors=self.support_vectors_, intercept=self.intercept_
        )
        return self._model

    def get_rows(self) -> HeldRows:
        """Return the rows that are held and the solution, from which `set_rows` restores the estimator.

        Returns
        -------
        maxmargin.estimators.held_rows.HeldRows
            The rows, their sides, ridges and multipliers.
        """
        check_is_fitted(self)
        X, y, ridge, u = self._svm.rows()
        return HeldRows(X, y, ridge, u, self._sides, self.gamma_, float(self.intercept_[0]))

    def set_rows(self, rows: HeldRows) -> IncrementalSVC:
        """Make this a fitted estimator that holds the given rows, without training.

        Parameters
        ----------
        rows : maxmargin.estimators.held_rows.HeldRows
            The result of `get_rows` of an estimator with the same parameters.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        svm = self._empty_svm(rows.gamma)
        svm.restore(rows.X, rows.y, rows.ridge, rows.u)
        self.gamma_, self._svm, self._sides = rows.gamma, svm, rows.labels
        self.classes_ = np.sort(rows.labels)
        self.n_features_in_ = rows.X.shape[1]
        used = np.flatnonzero(rows.u)
        level = -self._sign() * rows.intercept
        self._publish_support(len(rows.y), used, rows.X[used], rows.y[used], rows.u[used], level)
        return self

    # -- prediction ------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """Values of the decision function, positive for the second label.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        X = validate_data(
            self, X, reset=False, dtype=[np.float64, np.float32], order="C", accept_sparse="csr"
        )
        if not len(self.support_):
            return np.full(X.shape[0], self.intercept_[0])
        model = self.get_model()
        values = model.expand(self._as_held(X), threads=Threads(self.n_jobs), dtype=np.float64)
        return np.asarray(values[0].ravel() + self.intercept_[0])

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
        values = self.decision_function(X)
        if len(self.classes_) == 1:
            return np.full(len(values), self.classes_[0])
        return self.classes_[(values >= 0).astype(np.intp)]
