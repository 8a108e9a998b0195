"""Support vector regression of conditional quantiles: the pinball loss."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from maxmargin import dual
from maxmargin._sklearn import Interval
from maxmargin._types import Floats, Index
from maxmargin.dual import Dual
from maxmargin.estimators._regressor import BaseSVR
from maxmargin.estimators.base import BaseSVM
from maxmargin.estimators.search_axes import Axis
from maxmargin.solvers.solution import Solution


class QuantileSVR(BaseSVR):
    r"""Support vector regression of one or several conditional quantiles.

    Minimises :math:`\tfrac12\|w\|^2 + C\sum_i \rho_q(y_i - \langle w, \phi(x_i)\rangle - b)` with the pinball
    loss :math:`\rho_q(r) = \max(q r, (q - 1) r)`. At the minimum at most the share q of the training rows is
    below the function, and at most 1 - q above: it is an estimate of the q-quantile of y given x. The
    coefficient of row i in the dual is in :math:`[C(q - 1), C q]`, see `maxmargin.dual.quantile_svr`.
    ``quantile=0.5`` with C is `SVR` with ``epsilon=0`` and C / 2.

    **Several quantiles** are trained over one kernel matrix. Functions that are estimated one by one may
    cross. So the predictions of each row are sorted, which never increases the sum of the pinball losses of
    all quantiles. `dual_coef_`, `intercept_` and `coef_` are those of the functions before sorting.

    Parameters
    ----------
    quantile : float, default=0.5
        The share of y that lies below the function, in (0, 1).
    quantiles : array-like of float, default=None
        Several quantiles, ascending, in place of `quantile`; `predict` then has a column for each.
    kernel, degree, gamma, coef0, tol
        See `maxmargin.SVC`.
    C : float, default=1.0
        Factor of the losses; finite.
    shrinking, cache_size, verbose, max_iter
        See `maxmargin.SVC`.
    solver, max_time, n_jobs, warm_start
        See `maxmargin.SVC`.

    Attributes
    ----------
    quantiles_ : ndarray of shape (n_quantiles,)
        The quantiles that were estimated.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, n_iter_, dual_gap_, relative_gap_
        See `SVR`; with a row or an entry for each of several quantiles.
    status_, fit_status_, n_kernel_evals_, n_kernel_calls_, trace_
        See `SVR`.
    n_features_in_, feature_names_in_, shape_fit_
        As in scikit-learn.

    See Also
    --------
    SVR : The mean-like centre of a tube, insensitive to small residuals.
    maxmargin.inspection.BandDisplay : A plot of the predictions over one feature.

    References
    ----------
    I. Takeuchi, Q. V. Le, T. D. Sears, A. J. Smola, "Nonparametric Quantile Estimation", JMLR 7, 2006.

    V. Chernozhukov, I. Fernández-Val, A. Galichon, "Quantile and Probability Curves Without Crossing",
    Econometrica 78, 2010 (sorting).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from maxmargin import QuantileSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> reg = QuantileSVR(quantile=0.9, C=10.0).fit(X, y)
    >>> reg.status_, round(float((y <= reg.predict(X)).mean()), 1)
    ('solved', 0.9)
    >>> band = QuantileSVR(quantiles=[0.05, 0.5, 0.95], C=10.0).fit(X, y)
    >>> low, median, high = band.predict(X).T
    >>> bool((low <= median).all() and (median <= high).all())
    True
    """

    _problems_are: ClassVar[str] = "problems"
    _search_axes: ClassVar[tuple[Axis, ...]] = (Axis("C", ascending=True), Axis("quantile", ascending=True))
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSVM._parameter_constraints,
        "quantile": [Interval(Real, 0.0, 1.0, closed="neither")],
        "quantiles": ["array-like", None],
        "C": [Interval(Real, 0.0, None, closed="neither")],
    }

    def __init__(
        self,
        *,
        quantile: float = 0.5,
        quantiles: Any = None,
        kernel: str | Callable[..., Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: bool = False,
        max_iter: int = -1,
        solver: Any = "auto",
        max_time: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
    ) -> None:
        self.quantile = quantile
        self.quantiles = quantiles
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.solver = solver
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.warm_start = warm_start

    def _problem(self, y: Floats, weight: Floats) -> Dual:
        return dual.quantile_svr(y, self.quantile, self.C * weight)

    def _problems(self, y: Floats, weight: Floats) -> dict[str, Dual]:
        if self.quantiles is None:
            return super()._problems(y, weight)
        if y.ndim > 1:
            raise ValueError(
                f"y has {y.shape[1]} columns, and several quantiles are estimated of one target only: fit a "
                "model for each column, or one quantile of all columns (quantiles=None)."
            )
        levels = _levels(self.quantiles)
        return {f"quantile {q}": dual.quantile_svr(y, q, self.C * weight) for q in levels.tolist()}

    def _assemble(self, X: Any, order: Index, solutions: list[Solution]) -> None:
        super()._assemble(X, order, solutions)
        self.quantiles_ = _levels([self.quantile] if self.quantiles is None else self.quantiles)

    def predict(self, X: Any) -> Floats:
        """Predict quantiles.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` of shape (n_samples, n_samples_train).

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_quantiles) or (n_samples, n_targets)
            One value per row for `quantile`, or a column for each of several targets; for `quantiles` a
            column for each, in ascending order in every row.
        """
        if self.quantiles is None:
            return super().predict(X)
        return np.sort(self._target_values(X), axis=1)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the fraction of the pinball loss that the model explains (D²).

        1 is best, and 0 is the loss of the quantile of y that does not depend on X. This is not R², the score
        of scikit-learn's `QuantileRegressor`, which would prefer functions that are near the mean.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        float
            `sklearn.metrics.d2_pinball_score`, the mean of all quantiles or targets.
        """
        from sklearn.metrics import d2_pinball_score

        predicted = np.asarray(self.predict(X))
        levels = self.quantiles_
        columns = predicted.T if len(levels) > 1 or predicted.shape[1:] == (1,) else [predicted]
        return float(
            np.mean(
                [
                    d2_pinball_score(y, column, sample_weight=sample_weight, alpha=float(q))
                    for q, column in zip(levels, columns, strict=True)
                ]
            )
        )


def _levels(quantiles: Any) -> Floats:
    """The quantiles as an array; ValueError unless they are ascending numbers in (0, 1)."""
    try:
        levels = np.asarray(quantiles, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"quantiles must be numbers in (0, 1), got {quantiles!r}.") from error
    if levels.ndim != 1 or not len(levels) or not ((levels > 0) & (levels < 1)).all():
        raise ValueError(
            f"quantiles must be a list of numbers in (0, 1), such as [0.05, 0.5, 0.95], got {quantiles!r}."
        )
    if (np.diff(levels) <= 0).any():
        raise ValueError(f"quantiles must ascend, without repetition, got {quantiles!r}: sort them.")
    return levels
