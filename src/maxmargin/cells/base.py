"""The base of estimators on cells: parameters, checks of data, the statement of cost, prediction."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from maxmargin._compiled.limits import Limit
from maxmargin._compiled.threads import effective_n_jobs
from maxmargin._sklearn import Interval, fit_context
from maxmargin._types import Floats, Index
from maxmargin.cells.cost import Cost, Predictor, measured_cost
from maxmargin.cells.model import CellModel, Options
from maxmargin.cells.partition import sample_rows
from maxmargin.cells.rows import LocalRows, Rows, file_of, release
from maxmargin.cells.training import predict_cell, train_cell
from maxmargin.estimators._scales import UnscaledDataWarning, disparity
from maxmargin.estimators._validation import UNSCALED, any_weights
from maxmargin.kernels.gamma import gamma_of_rows
from maxmargin.solvers.interrupt import watch_interrupt
from maxmargin.solvers.solution import Status

# Rows of the sample that parameters are chosen on; the cost is measured on so many cells' rows at least.
_TUNED_ON, _COST_CELLS = 5_000, 6
_TUNED = ("rbf", "linear", "laplacian")
# Share of `max_time` that the choice of parameters may take.
_FOR_TUNING = 0.3
_WORST_FIRST = ("interrupted", "infeasible", "max_time", "max_iter", "stalled")
_CHECKS: dict[str, Any] = {
    "dtype": [np.float64, np.float32],
    "order": "C",
    "accept_sparse": "csr",
    "accept_large_sparse": True,
}


class BaseCells(BaseEstimator):
    """See `CellSVC`; a subclass says what a cell predicts."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [BaseEstimator, None],
        "cell_size": [Interval(Integral, 2, None, closed="left")],
        "overlap": [Interval(Real, 0.0, None, closed="left")],
        "tune": ["boolean"],
        "report_cost": ["boolean"],
        "random_state": ["random_state"],
        "max_time": [Interval(Real, 0, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }
    #: The class of `estimator`, and the parameters of it that have no meaning for a cell.
    _kind: ClassVar[Any]
    _fixed: ClassVar[dict[str, Any]]

    def __init__(
        self,
        estimator: Any = None,
        *,
        cell_size: int = 5000,
        overlap: float = 0.0,
        tune: bool = False,
        report_cost: bool = True,
        random_state: Any = None,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.cell_size = cell_size
        self.overlap = overlap
        self.tune = tune
        self.report_cost = report_cost
        self.random_state = random_state
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @abstractmethod
    def _tuner(self) -> Any:
        """The estimator that chooses parameters."""

    @abstractmethod
    def _encoded(self, y: Any, weight: Floats, shared: Any) -> tuple[NDArray[Any], Floats]:
        """Numbers of classes, or targets, and weights; sets the attributes that describe them."""

    # -- training ----------------------------------------------------------------------------------

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit one model for each cell.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data; of a memory-mapped array only the rows of some cells are in memory at a time.
        y : array-like of shape (n_samples,)
            Labels or targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of C per sample; 0 is the same as leaving the row out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        limit = Limit(self.max_time, shared=True)
        effective_n_jobs(self.n_jobs)
        shared = self._shared()
        X, y = validate_data(self, X, y, **_CHECKS)
        weight = any_weights(sample_weight, X)
        if disparity(X) is not None:
            warnings.warn(UNSCALED, UnscaledDataWarning, stacklevel=3)
        kept = np.flatnonzero(weight > 0)
        if not len(kept):
            raise ValueError("Invalid input - all samples have zero or negative weights.")
        gamma = 1.0 if shared.kernel == "linear" else gamma_of_rows(shared.gamma, X, kept)
        release(file_of(X))
        return self._fit_cells(partial(LocalRows, X, self.n_jobs), y, weight, shared, gamma, limit)

    def _shared(self) -> Any:
        """The estimator whose parameters all cells have."""
        given: Any = self._kind() if self.estimator is None else self.estimator
        name = self._kind.__name__
        if not isinstance(given, self._kind):
            raise TypeError(f"estimator must be an instance of maxmargin.{name}, got {given!r}.")
        if callable(given.kernel) or given.kernel == "precomputed":
            raise ValueError("Cells need a kernel of features: use one of the named kernels.")
        if getattr(given, "probability", False) is True:
            raise ValueError(
                "Models on cells have no probabilities: leave out probability=True, and calibrate the fitted "
                f"Cell{name} with sklearn.calibration.CalibratedClassifierCV."
            )
        if self.tune and given.kernel not in _TUNED:
            raise ValueError(
                f"tune=True needs one of the kernels {', '.join(_TUNED)}, got {given.kernel!r}: choose the "
                "parameters of other kernels with a search on a part of the rows."
            )
        return clone(given)

    def _fit_cells(
        self,
        rows_of: Callable[[Index], Rows],
        y: Any,
        weight: Floats,
        shared: Any,
        gamma: float,
        limit: Limit,
    ) -> Any:
        """Train on the rows with a positive weight, and set all attributes; `gamma` is a number."""
        y, weight = self._encoded(y, weight, shared)
        kept = np.flatnonzero(weight > 0)
        if not len(kept):
            raise ValueError("Invalid input - class_weight leaves no sample with a positive weight.")
        rows = rows_of(kept)
        if len(kept) < len(weight):
            y, weight = y[kept], weight[kept]
        seed = _seed(self.random_state)
        options = Options(self.cell_size, self.overlap, seed, self.n_jobs, bool(self.verbose))
        with watch_interrupt(limit), limit, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about all cells at the end
            shared.set_params(gamma=gamma)
            if self.tune and not limit.over:
                shared.set_params(**self._tuned(shared, rows, y, weight, seed))
            self.estimator_ = clone(shared)
            self._model = CellModel.train(rows, y, weight, shared.set_params(**self._fixed), options)
            self.cost_ = None
            if self.report_cost and self.n_cells_ > 1 and not limit.over:
                cost = self._cost(shared, rows, y, weight, options)
                self.cost_ = None if limit.over else cost
        self._report()
        return self

    def _tuned(self, shared: Any, rows: Rows, y: NDArray[Any], weight: Floats, seed: int) -> dict[str, Any]:
        """Parameters that were chosen on a sample; none if there was no time."""
        some = sample_rows(rows.shape[0], _TUNED_ON, seed)
        limit = None if self.max_time is None else _FOR_TUNING * self.max_time
        tuner = self._tuner().set_params(
            kernel=shared.kernel, max_time=limit, n_jobs=self.n_jobs, random_state=seed
        )
        with suppress(TimeoutError):
            try:
                tuner.fit(rows.take(some), y[some], sample_weight=weight[some])
            except ValueError as error:  # a sample may have too few rows of a rare class
                raise ValueError(
                    f"tune=True could not choose parameters on a sample of {len(some):,} rows: {error} With "
                    "tune=False the parameters of `estimator` are used."
                ) from error
            return {k: v for k, v in tuner.best_params_.items() if k in shared.get_params()}
        return {}

    def _cost(self, shared: Any, rows: Rows, y: NDArray[Any], weight: Floats, options: Options) -> Cost:
        """The statement of cost, on a sample.

        An exact fit of m rows takes time in proportion to m², that of n rows in cells of s rows to n s: so
        the statement takes about as long as the fit, and compares on more cells the more there are.
        """
        n = rows.shape[0]
        size = max(_COST_CELLS * self.cell_size, int(np.sqrt(float(n) * self.cell_size)))
        some, quiet = sample_rows(n, size, options.seed + 1), replace(options, verbose=False)

        def by_cells(X: Any, y: NDArray[Any], weight: Floats) -> Predictor:
            found = CellModel.train(LocalRows(X, self.n_jobs), y, weight, shared, quiet)
            return lambda rows: found.values(rows, self.n_jobs)

        def exact(X: Any, y: NDArray[Any], weight: Floats) -> Predictor:
            model = train_cell(clone(shared).set_params(n_jobs=self.n_jobs), X, y, weight)
            return lambda rows: predict_cell(model, rows)

        return measured_cost(
            by_cells, exact, rows.take(some), y[some], weight[some], is_classifier(self), options.seed
        )

    def _report(self) -> None:
        """Set the status and the gap; warn about cells that were not solved."""
        statuses = [str(model.status_) for model in self.models_]
        bad = [s for s in statuses if s != Status.SOLVED]
        self.status_ = next((s for s in _WORST_FIRST if s in bad), str(Status.SOLVED))
        self.relative_gap_ = max(float(np.max(model.relative_gap_)) for model in self.models_)
        if bad:
            advice = ": raise max_time or max_iter, scale the features, or lower C"
            advice = "" if self.status_ == "interrupted" else advice
            warnings.warn(
                f"{len(bad):,} of {len(statuses):,} cells ended with a status other than 'solved', the worst "
                f"with {self.status_!r}{advice}. Cells that were not trained predict a constant.",
                ConvergenceWarning,
                stacklevel=5,  # past the wrapper of fit
            )

    # -- the fitted model ----------------------------------------------------------------------------

    @property
    def models_(self) -> list[Any]:
        """The model of each cell."""
        return self._model.models

    @property
    def n_cells_(self) -> int:
        """Number of cells."""
        return len(self._model.models)

    @property
    def cell_sizes_(self) -> Index:
        """Rows that each cell was trained on."""
        return self._model.sizes

    @property
    def centres_(self) -> Floats:
        """The centres."""
        return self._model.partition.centres

    def _check_fitted(self) -> None:
        check_is_fitted(self, "_model")

    def _by_cell(self, X: Any, of_cell: Callable[..., NDArray[Any]] = predict_cell, columns: int = 0) -> Any:
        """Values of rows from the models of their cells."""
        self._check_fitted()
        X = validate_data(self, X, reset=False, **_CHECKS)
        return self._model.values(X, self.n_jobs, of_cell, columns)


def _seed(random_state: Any) -> int:
    """A seed; always the same without a `random_state`."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return 0 if random_state is None else int(random_state)
