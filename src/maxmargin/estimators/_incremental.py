"""Base of the estimators that learn and forget rows."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from maxmargin._compiled.threads import Threads
from maxmargin._sklearn import Interval, StrOptions
from maxmargin._types import Floats, Index
from maxmargin.estimators._validation import any_weights
from maxmargin.estimators.held_rows import HeldRows
from maxmargin.estimators.model import KernelModel, configured
from maxmargin.kernels.gamma import resolve_gamma
from maxmargin.kernels.kernel import NAMES, Kernel


class BaseIncremental(BaseEstimator):
    """Rows that come and go, over which a subclass has one or more problems."""

    _model: KernelModel
    _svm: Any
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

    @abstractmethod
    def _options(self) -> dict[str, Any]:
        """Whether slacks are squared, and the width of a tube, for `ExactSVM`."""

    @abstractmethod
    def _publish_solution(
        self, X: Any, at: Index, y: Floats, u: Floats, intercept: Floats, labels: NDArray[Any]
    ) -> None:
        """Set the fitted attributes.

        Parameters
        ----------
        X : array or CSR matrix
            Data.
        at : ndarray of shape (n,)
            The rows of X that are held.
        y : ndarray of shape (n,)
            Codes of their classes, or targets.
        u : ndarray of shape (n_problems, n)
            Multipliers.
        intercept : ndarray of shape (n_problems,)
            Constants of the problems' decision functions.
        labels : ndarray
            The labels of the codes; empty in regression.
        """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # -- learning and forgetting -----------------------------------------------------------------------

    def forget(self, indices: ArrayLike) -> Any:
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
            raise ValueError("All rows would be forgotten: call fit instead, or keep at least one.")
        self._svm.forget(self._svm.held[rows])
        self._publish(self._labels())
        return self

    def _checked(self, X: Any, y: Any, first: bool, **options: Any) -> tuple[Any, Any]:
        """Validated rows, in the storage of those that are held."""
        X, y = validate_data(
            self, X, y, reset=first, dtype=[np.float64, np.float32], order="C", accept_sparse="csr", **options
        )
        return (X if first else self._as_held(X)), y

    def _kept(self, X: Any, sample_weight: Any, alone: bool) -> tuple[Floats, Index]:
        """Weights, and the rows whose weight is not zero."""
        weight = any_weights(sample_weight, X, ensure_non_negative=True)
        kept = np.flatnonzero(weight > 0)
        if alone and not len(kept):
            raise ValueError("Invalid input - all samples have zero or negative weights.")
        return weight, kept

    def _add(self, X: Any, y: Floats, weight: Floats, first: bool, labels: NDArray[Any]) -> None:
        """Learn rows with codes of classes, or targets, and publish the model."""
        if first:
            gamma = 0.0 if callable(self.kernel) else resolve_gamma(self.gamma, X, weight)
            svm = self._empty_svm(gamma)
        else:
            gamma, svm = self.__dict__["gamma_"], self.__dict__["_svm"]
        svm.add(X, y, 1.0 / (2.0 * self.C * weight), len(labels))
        # Only now: rows may have been refused.
        self.gamma_, self._svm = gamma, svm
        self._publish(labels)

    def _empty_svm(self, gamma: float) -> Any:
        from maxmargin.solvers.incremental import ExactSVM  # compiled loops: not at import

        return ExactSVM(
            Kernel(self.kernel, gamma=gamma, degree=self.degree, coef0=self.coef0),
            **self._options(),
            most_bytes=int(self.cache_size * 1e6),
            factor_bytes=int(self.max_factor * 1e6),
            n_jobs=self.n_jobs,
        )

    def _labels(self) -> NDArray[Any]:
        """The labels of the codes of classes; none in regression."""
        return np.zeros(0)

    def _as_held(self, X: Any) -> Any:
        """Samples in the storage, dense or sparse, of the rows that are held."""
        if sp.issparse(X) == self._model.sparse:
            return X
        return sp.csr_array(X) if self._model.sparse else X.toarray()

    def _publish(self, labels: NDArray[Any]) -> None:
        """Set the model and the attributes from the present state of `_svm`."""
        svm = self._svm
        at = svm.held
        self._publish_solution(svm.samples.X, at, svm.y[at], svm.multipliers(), -svm.levels(), labels)

    def _publish_model(
        self, X: Any, at: Index, support: Index, coef: Floats, intercept: Floats, n_support: ArrayLike
    ) -> None:
        """The model and its attributes; its support vectors are the rows ``at[support]`` of X."""
        vectors = X[at[support]]
        self._model = model = KernelModel(
            self._svm.kernel,
            configured(vectors),
            support.astype(np.int32),
            np.asarray(n_support, dtype=np.int32),
            coef,
            intercept,
            (len(at), X.shape[1]),
            sp.issparse(vectors),
        )
        self.n_held_ = len(at)
        self._certificates: Floats | None = None
        self.support_, self.support_vectors_, self.n_support_ = model.support, model.vectors, model.n_support
        self.dual_coef_, self.intercept_ = model.dual_coef, model.intercept

    # -- certificates ----------------------------------------------------------------------------------

    @property
    def status_(self) -> str:
        """Always "solved": rows whose margins cannot be made exact are refused."""
        check_is_fitted(self)
        return "solved"

    @property
    def dual_gap_(self) -> Any:
        """Certified bound of the distance to the optimal value; computed when it is read."""
        return self._published(self._gaps()[:, 0])

    @property
    def relative_gap_(self) -> Any:
        """The same as a fraction of the optimal value."""
        return self._published(self._gaps()[:, 1])

    def _gaps(self) -> Floats:
        check_is_fitted(self)
        if self._certificates is None:
            self._certificates = self._svm.certificates()
        return self._certificates

    @abstractmethod
    def _published(self, gaps: Floats) -> Any:
        """The gaps of the problems as an attribute."""

    # -- state -----------------------------------------------------------------------------------------

    def get_model(self) -> KernelModel:
        """Return the kernel, support vectors and coefficients that predictions are made from.

        Returns
        -------
        maxmargin.estimators.model.KernelModel
            The model. Fitted attributes that were replaced since the last change of rows are in it.
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
            The rows, their classes or targets, ridges and multipliers.
        """
        check_is_fitted(self)
        X, y, ridge, u, _ = self._svm.rows()
        return HeldRows(X, y, ridge, u, self._labels(), self.gamma_, self._constants)

    def set_rows(self, rows: HeldRows) -> Any:
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
        from maxmargin.solvers.incremental.exact_svm import Rows  # compiled loops: not at import

        svm = self._empty_svm(rows.gamma)
        svm.restore(Rows(rows.X, rows.y, rows.ridge, rows.u, len(rows.labels)))
        self.gamma_, self._svm = rows.gamma, svm
        self.n_features_in_ = rows.X.shape[1]
        at = np.arange(len(rows.y))
        self._publish_solution(rows.X, at, rows.y, rows.u, rows.intercept, rows.labels)
        return self

    # -- prediction ------------------------------------------------------------------------------------

    def _expand(self, X: Any, *, by_class: bool = False) -> Floats:
        """Kernel expansions for samples, without intercepts; see `KernelModel.expand`."""
        check_is_fitted(self)
        X = validate_data(
            self, X, reset=False, dtype=[np.float64, np.float32], order="C", accept_sparse="csr"
        )
        model = self.get_model()
        if not len(self.support_):
            parts = len(model.n_support) if by_class else 1
            return np.zeros((parts, X.shape[0], len(model.coef)))
        return model.expand(
            self._as_held(X), threads=Threads(self.n_jobs), dtype=np.float64, by_class=by_class
        )
