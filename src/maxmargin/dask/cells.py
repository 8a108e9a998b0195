"""Estimators on cells that are trained on the workers of a cluster."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, ClassVar

import numpy as np

from maxmargin._compiled.limits import Limit
from maxmargin._sklearn import validate_parameters
from maxmargin.cells import svc, svr
from maxmargin.dask.base import DaskEstimator, with_client
from maxmargin.dask.cells_rows import CellRows
from maxmargin.dask.clients import find_client
from maxmargin.dask.data import TrainingData
from maxmargin.dask.estimators import _Classifier, _Regressor
from maxmargin.dask.inputs import is_lazy
from maxmargin.dask.waiting import wait_for_workers
from maxmargin.estimators._scales import UnscaledDataWarning
from maxmargin.estimators._validation import UNSCALED


class _Cells(DaskEstimator):
    """Training of both estimators."""

    def _train(self: Any, X: Any, y: Any, sample_weight: Any) -> Any:
        validate_parameters(self)
        cells, shared = self._unfitted(), self._shared()
        lazy = any(map(is_lazy, (X, y, sample_weight)))
        client = find_client(self.client) if self.distribute is not False or lazy else None
        if client is None:
            self._check_without_client(X)
        else:
            wait_for_workers(client)
        if not lazy and client is None:
            return self._become(cells.fit(X, y, sample_weight))
        data = TrainingData.load(client, X, y, sample_weight)
        on_workers = client is not None and self.distribute is not False
        self._say(
            f"{type(self).__name__}: {data.shape[0]:,} rows, training "
            + ("on all workers" if on_workers else "in this process")
        )
        if on_workers:
            if data.summary.unscaled:
                warnings.warn(UNSCALED, UnscaledDataWarning, stacklevel=3)
            cells.n_features_in_ = data.shape[1]
            weight = np.ones(data.shape[0]) if data.weight is None else data.weight
            gamma = 1.0 if shared.kernel == "linear" else data.summary.gamma(shared.gamma)
            limit = Limit(self.max_time, shared=True)
            cells._fit_cells(partial(CellRows, data, self.n_jobs), data.y, weight, shared, gamma, limit)
        else:
            cells.fit(data.here(), data.y, data.weight)
        if data.feature_names is not None:
            cells.feature_names_in_ = data.feature_names
        self._become(cells)
        self.distributed_ = on_workers
        return self


class CellSVC(_Cells, _Classifier, svc.CellSVC):
    """Classification on cells, which are trained on the workers of a dask cluster.

    The cells and their models are those of `maxmargin.CellSVC` for the same rows in one array, whatever the
    chunks and the number of workers. A sample of rows comes to this process, where the centres are found and
    the cost is measured; tasks find the cell of each row, and train some cells each.

    Parameters
    ----------
    estimator, cell_size, overlap, tune, report_cost, random_state, max_time, n_jobs, verbose
        See `maxmargin.CellSVC`; `n_jobs` is about the work in this process.
    client : distributed.Client, default=None
        The cluster to train on; None for the current client.
    distribute : bool or "auto", default="auto"
        Whether to train on the workers; False trains in this process. "auto" trains on them if there is a
        client.

    Attributes
    ----------
    distributed_ : bool
        Whether the cells were trained on workers.
    cost_, n_cells_, cell_sizes_, centres_, models_, estimator_, status_, relative_gap_
        See `maxmargin.CellSVC`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    maxmargin.CellSVC : The ordinary estimator.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import make_moons
    >>> from maxmargin.dask import CellSVC
    >>> X, y = make_moons(2000, random_state=0)
    >>> X = da.from_array(X, chunks=(1000, -1))
    >>> model = CellSVC(cell_size=1000, report_cost=False, distribute=False).fit(X, y)
    >>> model.status_, model.predict(X).chunks
    ('solved', ((1000, 1000),))
    """

    _local_class = svc.CellSVC
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **svc.CellSVC._parameter_constraints,
        **DaskEstimator._added_constraints,
    }
    __init__ = with_client(svc.CellSVC)


class CellSVR(_Cells, _Regressor, svr.CellSVR):
    """Regression on cells, which are trained on the workers of a dask cluster.

    The cells and their models are those of `maxmargin.CellSVR` for the same rows in one array, whatever the
    chunks and the number of workers. A sample of rows comes to this process, where the centres are found and
    the cost is measured; tasks find the cell of each row, and train some cells each.

    Parameters
    ----------
    estimator, cell_size, overlap, tune, report_cost, random_state, max_time, n_jobs, verbose
        See `maxmargin.CellSVR`; `n_jobs` is about the work in this process.
    client : distributed.Client, default=None
        The cluster to train on; None for the current client.
    distribute : bool or "auto", default="auto"
        Whether to train on the workers; False trains in this process. "auto" trains on them if there is a
        client.

    Attributes
    ----------
    distributed_ : bool
        Whether the cells were trained on workers.
    cost_, n_cells_, cell_sizes_, centres_, models_, estimator_, status_, relative_gap_
        See `maxmargin.CellSVR`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    maxmargin.CellSVR : The ordinary estimator.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import make_friedman1
    >>> from maxmargin.dask import CellSVR
    >>> X, y = make_friedman1(2000, random_state=0)
    >>> X = da.from_array(X, chunks=(1000, -1))
    >>> model = CellSVR(cell_size=1000, report_cost=False, distribute=False).fit(X, y)
    >>> model.status_, model.predict(X).chunks
    ('solved', ((1000, 1000),))
    """

    _local_class = svr.CellSVR
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **svr.CellSVR._parameter_constraints,
        **DaskEstimator._added_constraints,
    }
    __init__ = with_client(svr.CellSVR)
