"""Regression on cells."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from maxmargin._types import Floats
from maxmargin.cells.base import BaseCells
from maxmargin.estimators.svr import SVR
from maxmargin.estimators.targets import regression_targets


class CellSVR(RegressorMixin, BaseCells):
    """Support vector regression on cells: an approximation for very many rows that states its cost.

    As `CellSVC`, with an exact `SVR` for each cell. The regression function jumps at the borders of cells.

    Parameters
    ----------
    estimator : SVR, default=None
        The parameters that all cells share; None for ``SVR()``.
    cell_size, overlap, report_cost, random_state, max_time, n_jobs, verbose
        See `CellSVC`; a cell that is not trained predicts its mean.
    tune : bool, default=False
        Whether to choose C, gamma and epsilon with `SVRCV` on a sample of 5,000 rows, for all cells.

    Attributes
    ----------
    cost_, n_cells_, cell_sizes_, centres_, models_, estimator_, status_, relative_gap_
        See `CellSVC`; the score of `cost_` is R².
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    SVR : The exact model.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from maxmargin import SVR, CellSVR
    >>> X, y = make_friedman1(3000, random_state=0)
    >>> reg = CellSVR(SVR(C=100.0), cell_size=500).fit(X, y)
    >>> reg.status_, reg.n_cells_ > 4, reg.score(X, y) > 0.95
    ('solved', True, True)
    """

    _kind: ClassVar[Any] = SVR
    _fixed: ClassVar[dict[str, Any]] = {"verbose": False, "warm_start": False}

    def _tuner(self) -> Any:
        from maxmargin.model_selection.tuning.svr_cv import SVRCV  # takes long to import

        return SVRCV(scale=None)

    def _encoded(self, y: Any, weight: Floats, shared: Any) -> tuple[NDArray[Any], Floats]:
        return np.asarray(regression_targets(y), dtype=np.float64), weight

    def predict(self, X: Any) -> Floats:
        """Predict targets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Targets.
        """
        return self._by_cell(X)
