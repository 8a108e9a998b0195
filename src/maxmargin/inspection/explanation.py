"""Shapley values: what each feature adds to a decision value, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from maxmargin._compiled.threads import Threads
from maxmargin._types import Floats
from maxmargin.inspection._fitted import last_step, refitted
from maxmargin.inspection._outputs import Outputs
from maxmargin.kernels.attribution import attribute
from maxmargin.kernels.composed import scaled
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.terms import Term, terms

DISTRIBUTIONS = ("joint", "independent")


@dataclass(frozen=True, eq=False)
class ShapleyValues:
    """Shapley values of the rows of a table.

    ``base_values + values.sum(axis=1)`` are the values of the model.

    Parameters
    ----------
    values : ndarray of shape (n, d) or (n, d, n_outputs)
        The values, with a third axis where the model has several outputs.
    base_values : ndarray of shape () or (n_outputs,)
        The values of the model without any feature: its mean over the background.
    data : ndarray of shape (n, d)
        The values of the features.
    feature_names, output_names : tuple of str
        Names of features and outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.inspection import ShapleyValues
    >>> values, base, data = np.array([[0.5, -0.2]]), np.array(1.0), np.array([[7.0, 3.0]])
    >>> ShapleyValues(values, base, data, ("height", "weight"), ("prediction",)).predicted
    array([1.3])
    """

    values: Floats
    base_values: Floats
    data: Floats
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...]

    @property
    def predicted(self) -> Floats:
        """The values of the model, ``base_values + values.sum(axis=1)``."""
        return np.asarray(self.base_values + self.values.sum(axis=1))

    def of_output(self, output: int | str | None = None) -> ShapleyValues:
        """Return the values of one output.

        Parameters
        ----------
        output : int or str, optional
            Its index or its name; may be left out if there is only one.

        Returns
        -------
        ShapleyValues
            Values of shape (n, d).
        """
        names = self.output_names
        if output is None and len(names) > 1:
            raise ValueError(f"There are several outputs: give output, one of {', '.join(map(repr, names))}.")
        if isinstance(output, str) and output not in names:
            raise ValueError(f"There is no output {output!r}: use one of {', '.join(map(repr, names))}.")
        k = names.index(output) if isinstance(output, str) else int(output or 0)
        if not -len(names) <= k < len(names):
            raise ValueError(f"output must be less than the number of outputs, {len(names)}; got {output!r}.")
        if self.values.ndim == 2:
            return self
        base = np.asarray(self.base_values[k])
        return ShapleyValues(self.values[:, :, k], base, self.data, self.feature_names, (names[k],))

    def to_shap(self) -> Any:
        """Return a `shap.Explanation`, for the plots of the package shap.

        Returns
        -------
        shap.Explanation
            The same values, with the base values repeated for each row.

        Raises
        ------
        ImportError
            If shap is not installed.
        """
        try:
            from shap import Explanation
        except ImportError as error:
            raise ImportError(
                "to_shap needs shap, which is not installed: pip install shap. WaterfallDisplay and "
                "BeeswarmDisplay of maxmargin.inspection do not need it."
            ) from error
        shape = (len(self.values), *self.base_values.shape)
        return Explanation(
            values=self.values,
            base_values=np.array(np.broadcast_to(self.base_values, shape)),
            data=self.data,
            feature_names=list(self.feature_names),
            output_names=list(self.output_names) if self.values.ndim == 3 else self.output_names[0],
        )


def shapley(
    model: Any,
    X: ArrayLike,
    background: ArrayLike,
    *,
    distribution: str = "joint",
    n_jobs: int | None = None,
) -> ShapleyValues:
    r"""Exact Shapley values of the decision values of a support vector machine.

    The value of feature i for a row x is

    .. math:: \varphi_i(x) = \sum_{S \not\ni i} \frac{|S|!\,(d - |S| - 1)!}{d!} (v(S \cup i) - v(S)),

    where v(S) is the mean value of the model if the features in S are those of x and the others are drawn
    from the background. For kernels that are products over the features the sum over all coalitions S is an
    integral of a polynomial, which Gauss quadrature computes up to rounding: for each support vector in time
    of order d^2 at most, and of order d where no feature decides alone, instead of 2^d.

    Parameters
    ----------
    model : object
        A fitted support vector machine of this library or of scikit-learn with the kernel "rbf", "laplacian"
        or "linear", a sum of these, or a product of one kind of the first two (`maxmargin.kernels`); a
        pipeline that ends with one, or a search. Pipelines are explained in the features that their last
        step sees.
    X : {array-like, sparse matrix} of shape (n, n_features)
        Rows to explain.
    background : {array-like, sparse matrix} of shape (m, n_features)
        Rows that stand for a feature that is not known: for example a sample of 100 training rows.
    distribution : {"joint", "independent"}
        What is drawn from the background. With "joint" whole rows: the interventional values that
        `KernelExplainer` of the package shap estimates; the time grows with m. With "independent" each
        feature on its own, from all rows; the time hardly depends on m.
    n_jobs : int, optional
        Threads; None means all cores. The result does not depend on it.

    Returns
    -------
    ShapleyValues
        Values that add up to `decision_function`, or `predict` of a regression; of several quantiles to the
        functions before their values are sorted. Classifiers with more than
        two classes that are trained one-vs-one have an output for each pair, as with
        ``decision_function_shape="ovo"``; `CrammerSingerSVC` and `AllDistancesSVC` one for each class.

    See Also
    --------
    maxmargin.inspection.WaterfallDisplay : One row.
    maxmargin.inspection.BeeswarmDisplay : All rows.

    References
    ----------
    .. [1] S. Lundberg and S.-I. Lee, "A Unified Approach to Interpreting Model Predictions", 2017.
    .. [2] G. Owen, "Multilinear Extensions of Games", 1972.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC
    >>> from maxmargin.inspection import shapley
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = SVC().fit(X, y == 0)
    >>> found = shapley(model, X[:2], X[::10])
    >>> found.values.shape, found.feature_names[2]
    ((2, 4), 'petal length (cm)')
    >>> bool(abs(found.predicted - model.decision_function(X[:2])).max() < 1e-9)
    True
    """
    if distribution not in DISTRIBUTIONS:
        raise ValueError(f"distribution must be 'joint' or 'independent', got {distribution!r}.")
    fitted = refitted(model)
    svm = last_step(fitted)
    outputs = Outputs.of(svm)
    parts = terms(outputs.kernel)
    if parts is None:
        raise ValueError(
            "Exact Shapley values need kernel='rbf', 'laplacian' or 'linear', got "
            f"{outputs.kernel.name!r}; or sums of these, and products of rbf with rbf or laplacian with "
            "laplacian. For other kernels use shap.KernelExplainer(model.decision_function, background), "
            "which is approximate."
        )
    rows, known = _features(fitted, X), _features(fitted, background)
    names, data = _described(fitted, X, rows)
    values, base = np.zeros((*rows.shape, len(outputs.names))), outputs.intercept.copy()
    for part in parts:
        added, constant = _of_term(part, svm, outputs, rows, known, distribution, n_jobs)
        values += added
        base += constant
    if len(outputs.names) == 1:
        values, base = values[:, :, 0], base[0]
    return ShapleyValues(values, np.asarray(base), data, names, outputs.names)


# -- data ---------------------------------------------------------------------------------------------


def _features(fitted: Any, X: Any) -> Any:
    """The features that the last step sees, dense or CSR, in float64."""
    if isinstance(fitted, Pipeline):
        X = fitted[:-1].transform(X)
    return validate_data(
        last_step(fitted), X, reset=False, dtype=np.float64, order="C", accept_sparse="csr", copy=False
    )


def _described(fitted: Any, X: Any, rows: Any) -> tuple[tuple[str, ...], Floats]:
    """Names and values of the features, in the units of the input if these are the same features."""
    given = tuple(map(str, X.columns)) if hasattr(X, "columns") else None
    seen = given
    if isinstance(fitted, Pipeline):
        try:
            seen = tuple(map(str, fitted[:-1].get_feature_names_out(given)))
        except (AttributeError, ValueError):  # a step without names
            return _numbered(rows.shape[1]), _dense(rows)
        if given is None and seen == tuple(f"x{k}" for k in range(len(seen))):
            seen = None
    if seen != given:
        assert seen is not None
        return seen, _dense(rows)
    if not isinstance(fitted, Pipeline):
        return seen or _numbered(rows.shape[1]), _dense(rows)
    data = check_array(X, accept_sparse="csr", dtype=None, ensure_all_finite=False)
    return seen or _numbered(rows.shape[1]), _dense(data)


def _numbered(d: int) -> tuple[str, ...]:
    return tuple(f"feature {k}" for k in range(d))


def _dense(X: Any) -> Any:
    return X.toarray() if sp.issparse(X) else X


def _of_term(
    term: Term, svm: Any, outputs: Outputs, rows: Any, known: Any, distribution: str, n_jobs: int | None
) -> tuple[Any, Floats]:
    """The values of one term of the kernel: those of a sum are the sums of those of its terms."""
    coef = term.coefficient * outputs.coef
    if not term.name:
        return 0.0, coef.sum(axis=1)
    if term.name == "linear":
        return _linear(svm, coef, outputs.vectors, rows, known)
    vectors, gamma = outputs.vectors, term.gamma
    if isinstance(gamma, tuple):  # a scale for each feature
        scale = np.asarray(gamma) if term.name == "laplacian" else np.sqrt(gamma)
        rows, known = scaled(rows, scale), scaled(known, scale)
        vectors, gamma = scaled(vectors.astype(np.float64), scale), 1.0
    return attribute(
        Kernel(term.name, gamma=gamma), rows, known, vectors, coef,
        independent=distribution == "independent", threads=Threads(n_jobs),
    )  # fmt: skip


def _linear(svm: Any, coef: Floats, vectors: Any, rows: Any, known: Any) -> tuple[Floats, Floats]:
    """``w_i (x_i - mean of b_i)``: features do not interact, and both distributions agree."""
    if not coef.shape[1]:
        weights = np.zeros((len(coef), rows.shape[1]))
    else:
        weights = svm.get_model().combine(coef) if hasattr(svm, "get_model") else coef @ vectors
    weights = np.asarray(_dense(weights), dtype=np.float64)
    middle = np.asarray(known.mean(axis=0)).ravel()
    return (_dense(rows) - middle)[:, :, None] * weights.T, weights @ middle
