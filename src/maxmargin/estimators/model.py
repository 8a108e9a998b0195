"""The result of a fit: a kernel, support vectors, their coefficients and the intercepts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from maxmargin._compiled.threads import Threads
from maxmargin._sklearn import num_samples, safe_indexing
from maxmargin._types import Floats, Index
from maxmargin.kernels._columns import product
from maxmargin.kernels.expansion import expand
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.layout import squared_norms
from maxmargin.kernels.points import Points

# Sum of coefficients up to which float32 kernel values predict to four digits.
_LARGEST_SUM = 1000.0
# Error of a linear decision value, whose margin is 1, from which on weights are summed with twice the digits.
_ROUGH_VALUE = 1e-8


@dataclass(frozen=True, eq=False)
class KernelModel:
    """Kernel expansions over support vectors, the common result of all estimators.

    An estimator derives its fitted attributes and its predictions from a model; model files and exports are
    written from it.

    Parameters
    ----------
    kernel : Kernel
        The kernel with the number that was used for gamma.
    vectors : ndarray, CSR matrix, rows of any kind or None
        The support vectors: rows as they were given for a callable kernel, None for a precomputed one.
    support : ndarray of int32 of shape (n_SV,)
        Their indices among the training samples.
    n_support : ndarray of int32 of shape (n_classes,)
        Number of support vectors of each class; one number without classes.
    coef : ndarray of shape (n_rows, n_SV)
        Coefficients, dense even if the vectors are sparse.
    intercept : ndarray
        The constants that are added to the expansions.
    shape : tuple of int
        Shape of the training data.
    sparse : bool
        Whether the training data were sparse.
    vote_order : ndarray of int of shape (n_classes,), optional
        The order of classes in which ties of votes are broken, if it is not ascending (LIBSVM files).

    Examples
    --------
    >>> from maxmargin import SVC
    >>> model = SVC(kernel="linear").fit([[0.0], [2.0]], ["a", "b"]).get_model()
    >>> model.coef, model.intercept, model.kernel.name
    (array([[-0.5,  0.5]]), array([-1.]), 'linear')
    """

    kernel: Kernel
    vectors: Any
    support: NDArray[np.int32]
    n_support: NDArray[np.int32]
    coef: Floats
    intercept: Floats
    shape: tuple[int, ...]
    sparse: bool = False
    vote_order: Index | None = None
    # The precision of the last prediction and the vectors prepared for it, so that small ones are quick.
    _prepared: tuple[np.dtype[Any], Points] | None = field(default=None, init=False, repr=False)
    # Lengths of the vectors, and accurate weights of features, with the coefficients that they belong to.
    _lengths: Floats | None = field(default=None, init=False, repr=False)
    _accurate: dict[tuple[int, ...], tuple[Floats, Any]] | None = field(default=None, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name[0] != "_"}

    @classmethod
    def from_training(
        cls,
        kernel: Kernel,
        X: Any,
        support: Index,
        *,
        n_support: Any,
        coef: Floats,
        intercept: Floats,
        shape: tuple[int, ...],
    ) -> KernelModel:
        """Build a model whose vectors are the rows `support` of the validated training data.

        Parameters
        ----------
        kernel, n_support, coef, intercept, shape
            See `KernelModel`.
        X : array, CSR matrix or rows of any kind
            Training data.
        support : ndarray of int
            Indices of the support vectors.

        Returns
        -------
        KernelModel

        Raises
        ------
        ValueError
            If a coefficient or an intercept is not finite.
        """
        if kernel.name == "precomputed":
            vectors = None
        elif kernel.opaque:
            vectors = safe_indexing(X, support)
        else:
            vectors = configured(X[support])
        sparse = sp.issparse(vectors) and not kernel.opaque
        if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
            raise ValueError(
                "The dual coefficients or intercepts are not finite. The input data may contain "
                "large values and need to be preprocessed."
            )
        return cls(
            kernel,
            vectors,
            support.astype(np.int32),
            np.asarray(n_support, dtype=np.int32),
            coef,
            intercept,
            shape,
            sparse,
        )

    # -- attributes of estimators --------------------------------------------------------------

    @property
    def of_features(self) -> bool:
        """Whether the kernel is a function of feature vectors: neither precomputed nor a callable."""
        return not self.kernel.opaque and self.kernel.name != "precomputed"

    @property
    def support_vectors(self) -> Any:
        """The vectors as scikit-learn has them; empty for precomputed and callable kernels."""
        return self.vectors if self.of_features else np.empty((0, 0))

    @property
    def dual_coef(self) -> Any:
        """The coefficients as scikit-learn has them; sparse where the training data were."""
        return configured(sp.csr_array(self.coef)) if self.sparse else self.coef

    def updated(self, **fields: Any) -> KernelModel:
        """Return a model with other fields; the model itself if none of them differs.

        Arrays are compared by identity, so an array that was changed in place counts as the same.
        """
        for name, value in fields.items():
            now = getattr(self, name)
            if value is not now and not (name == "kernel" and value == now):
                return replace(self, **fields)
        return self

    def check(self) -> None:
        """Raise `ValueError` if the fields contradict each other."""
        n = len(self.support)
        if int(self.n_support.sum(dtype=np.int64)) != n:
            raise ValueError(f"the numbers of support vectors do not add up to {n}")
        if n and not 0 <= int(self.support.min()) <= int(self.support.max()) < self.shape[0]:
            raise ValueError(f"an index of a support vector is beyond the {self.shape[0]} training samples")
        if self.coef.ndim != 2 or self.coef.shape[1] != n:
            raise ValueError(f"coefficients of shape {self.coef.shape} do not fit {n} support vectors")
        if (self.vectors is None) != (self.kernel.name == "precomputed"):
            raise ValueError("only a precomputed kernel has no support vectors")
        if self.vectors is not None and num_samples(self.vectors) != n:
            raise ValueError(f"there are {num_samples(self.vectors)} support vectors for {n} indices")
        if sp.issparse(self.vectors) != self.sparse and not self.kernel.opaque:
            raise ValueError("the support vectors are sparse and the training data were not, or vice versa")
        order = self.vote_order
        if order is not None and not np.array_equal(np.sort(order), np.arange(len(self.n_support))):
            raise ValueError("the order of votes does not contain each class once")

    # -- values --------------------------------------------------------------------------------

    def expand(
        self, X: Any, *, threads: Threads, by_class: bool = False, dtype: DTypeLike | None = None
    ) -> Floats:
        """Evaluate the kernel expansions, without intercepts.

        Parameters
        ----------
        X : array, CSR matrix or rows of any kind
            Samples; for a precomputed kernel their kernel values with all training samples.
        threads : Threads
            Threads for large predictions.
        by_class : bool
            Whether to keep the sums over the support vectors of each class apart.
        dtype : dtype, optional
            Precision of the kernel values; by default that of X, or float64 where float32 would not suffice.

        Returns
        -------
        ndarray of shape (n_classes, n_samples, n_rows)
            Of shape (1, n_samples, n_rows) unless `by_class`.
        """
        if self.kernel.name == "precomputed":
            from maxmargin.kernels.given import Given  # compiled: not at import

            nothing = np.empty((0, X.shape[1]))  # sums of given values are float64
            vectors = Points(Given(nothing, self.support.astype(np.intp)), len(self.support))
        elif self.kernel.opaque:
            vectors = self.kernel.prepare(self.vectors)
        else:
            vectors = self._points(np.dtype(X.dtype if dtype is None else dtype))
        parts = self.n_support if by_class else [len(self.support)]
        ends = np.concatenate([[0], np.cumsum(parts)])
        return expand(self.kernel, X, vectors, self.coef, ends, threads=threads)

    def _points(self, dtype: np.dtype[Any]) -> Points:
        """The vectors prepared for the kernel; kept for the next prediction."""
        if dtype == np.float32 and np.abs(self.coef).sum(axis=1).max(initial=0.0) > _LARGEST_SUM:
            dtype = np.dtype(np.float64)
        kept = self._prepared
        if kept is None or kept[0] != dtype:
            points = self.kernel.prepare(self.vectors, dtype)
            if dtype == np.float32 and not self.kernel.float32_suffices(points):
                points = self.kernel.prepare(self.vectors, np.float64)
            kept = (dtype, self.kernel.lay_out(points))
            object.__setattr__(self, "_prepared", kept)
        return kept[1]

    def combine(self, coef: Any, rows: Index | None = None) -> Any:
        """``coef @ vectors[rows]``, sparse where the vectors are: weights of features for the linear kernel.

        Of vectors far from the origin the terms cancel, and what rounding leaves is multiplied by samples as
        far away: such sums have twice the digits of float64.
        """
        coef = coef.toarray() if sp.issparse(coef) else np.asarray(coef)
        lengths = self._lengths
        if lengths is None:
            lengths = np.sqrt(squared_norms(self.vectors))
            object.__setattr__(self, "_lengths", lengths)
        vectors = self.vectors
        if rows is not None:
            vectors, lengths = vectors[rows], lengths[rows]
        with np.errstate(over="ignore"):
            error = 2.0**-52 * np.max(np.abs(coef) @ lengths, initial=0.0) * np.max(lengths, initial=0.0)
        if not _ROUGH_VALUE < error < np.inf:
            return configured(product(coef, vectors)) if self.sparse else np.asarray(coef @ vectors)
        key = (-1,) if rows is None else tuple(rows[[0, -1]])
        earlier = self._accurate
        if earlier is None:
            earlier = {}
            object.__setattr__(self, "_accurate", earlier)
        kept = earlier.get(key)
        if kept is None or not np.array_equal(kept[0], coef):
            from maxmargin.kernels._accurate import combination  # compiled: not at import

            parts = [combination(part, vectors) for part in np.atleast_2d(coef)]
            found = configured(sp.vstack(parts, format="csr")) if self.sparse else np.vstack(parts)
            kept = earlier[key] = (np.array(coef), found)
        return kept[1].copy()


def configured(matrix: Any) -> Any:
    """Return a sparse matrix in the interface (matrix or array) that scikit-learn is configured for."""
    if not sp.issparse(matrix):
        return matrix
    from sklearn import get_config

    arrays = get_config().get("sparse_interface", "spmatrix") == "sparray"
    return sp.csr_array(matrix) if arrays else sp.csr_matrix(matrix)
