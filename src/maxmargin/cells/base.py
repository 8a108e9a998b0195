"""The base of estimators on cells: partition, training side by side, prediction by the cell's own model."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from maxmargin._compiled.limits import Limit, under
from maxmargin._compiled.threads import Threads, effective_n_jobs
from maxmargin._sklearn import Interval, fit_context
from maxmargin._types import Floats, Index
from maxmargin.cells.cost import Cost, measured_cost
from maxmargin.cells.partition import Partition, n_cells_for, sample_rows, sample_size
from maxmargin.cells.rows import batches, release, take
from maxmargin.cells.training import Model, constant_of, predict_cell, train_cell
from maxmargin.estimators._validation import any_weights
from maxmargin.kernels.gamma import resolve_gamma
from maxmargin.solvers.interrupt import watch_interrupt
from maxmargin.solvers.solution import Status, ended

# Rows of the sample that parameters are chosen on, and that the cost is measured on in units of cells.
_TUNED_ON, _COST_CELLS = 5_000, 6
# Rows whose cells are found at a time.
_ASSIGNED = 1 << 16
_WORST_FIRST = ("interrupted", "infeasible", "max_time", "max_iter", "stalled")


class BaseCells(BaseEstimator):
    """See `CellSVC`; a subclass says what a cell predicts."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [BaseEstimator, None],
        "cell_size": [Interval(Integral, 2, None, closed="left")],
        "overlap": [Interval(Real, 0.0, None, closed="left")],
        "tune": ["boolean"],
        "report_cost": ["boolean"],
        "random_state": [Interval(Integral, 0, None, closed="left"), None],
        "max_time": [Interval(Real, 0, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }
    _classifies: ClassVar[bool]

    def __init__(
        self,
        estimator: Any = None,
        *,
        cell_size: int = 5000,
        overlap: float = 0.0,
        tune: bool = False,
        report_cost: bool = True,
        random_state: int | None = None,
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
    def _default(self) -> Any:
        """The estimator whose parameters all cells share, if none is given."""

    @abstractmethod
    def _tuner(self) -> Any:
        """The estimator that chooses parameters."""

    @abstractmethod
    def _encoded(self, y: Any, kept: Index) -> NDArray[Any]:
        """Labels as numbers, or targets; sets the attributes that describe them."""

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
        limit = Limit(self.max_time)
        effective_n_jobs(self.n_jobs)
        shared = self._default() if self.estimator is None else clone(self.estimator)
        if not isinstance(shared, type(self._default())):
            raise TypeError(
                f"estimator must be an instance of maxmargin.{type(self._default()).__name__}, got {shared!r}."
            )
        if callable(shared.kernel) or shared.kernel == "precomputed":
            raise ValueError("Cells need a kernel of features: use one of the named kernels.")
        X, y = validate_data(
            self,
            X,
            y,
            dtype=[np.float64, np.float32],
            order="C",
            accept_sparse="csr",
            accept_large_sparse=True,
        )
        weight = any_weights(sample_weight, X)
        if not (weight > 0).any():
            raise ValueError("Invalid input - all samples have zero or negative weights.")
        kept = np.flatnonzero(weight > 0)
        y = self._encoded(y, kept)
        if len(kept) < len(weight):
            X, y, weight = X[kept], y[kept], weight[kept]
        seed = 0 if self.random_state is None else int(self.random_state)
        with watch_interrupt(limit), limit:
            if self.tune:
                shared = self._tuned(shared, X, y, weight, seed)
            shared.set_params(
                gamma=resolve_gamma(shared.gamma, X) if shared.kernel != "linear" else shared.gamma
            )
            release(X)
            self.estimator_ = shared
            self.partition_, self.models_, self.cell_sizes_ = self._trained(X, y, weight, seed, limit)
            self.centres_, self.n_cells_ = self.partition_.centres, len(self.models_)
            self.cost_ = None
            if self.report_cost and self.n_cells_ > 1 and not limit.over:
                self.cost_ = self._cost(X, y, weight, seed)
        self._report()
        return self

    def _tuned(self, shared: Any, X: Any, y: NDArray[Any], weight: Floats, seed: int) -> Any:
        """The shared estimator with parameters that were chosen on a sample."""
        rows = sample_rows(X.shape[0], _TUNED_ON, seed)
        tuner = self._tuner().set_params(kernel=shared.kernel, scale=None, calibrate=None)
        tuner.fit(take(X, rows), y[rows], sample_weight=weight[rows])
        names = set(shared.get_params())
        return shared.set_params(**{k: v for k, v in tuner.best_params_.items() if k in names})

    def _trained(
        self, X: Any, y: NDArray[Any], weight: Floats, seed: int, limit: Limit
    ) -> tuple[Partition, list[Model], Index]:
        """The partition, the model of each cell, and the rows that each was trained on."""
        n = X.shape[0]
        if n_cells_for(n, self.cell_size) == 1:
            alone = clone(self.estimator_).set_params(n_jobs=self.n_jobs, max_time=_left(limit))
            model = train_cell(alone, X, y, None if (weight == 1).all() else weight)
            return Partition(np.zeros((1, X.shape[1]))), [model], np.array([n])
        sample = take(X, sample_rows(n, sample_size(n, self.cell_size), seed))
        partition = Partition.of_sample(sample, n, self.cell_size, seed)
        partition, cells = self._rows_of_cells(X, partition)
        models: list[Any] = [None] * len(cells)
        estimator = clone(self.estimator_).set_params(n_jobs=1)

        def train(c: int, rows: Any) -> None:
            own = cells[c]
            if limit.over:
                models[c] = constant_of(y[own], weight[own], self._classifies, ended(limit))
                return
            part = X[own] if rows is None else rows
            w = weight[own]
            with under(Limit()), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about all cells at the end
                model = (
                    estimator
                    if limit.deadline is None
                    else clone(estimator).set_params(max_time=_left(limit))
                )
                models[c] = train_cell(model, part, y[own], None if (w == 1).all() else w)

        with Threads(self.n_jobs) as threads:
            for numbers, parts in batches(X, cells):
                threads.run(train, list(zip(numbers, parts, strict=True)))
                if self.verbose:
                    print(f"{type(self).__name__}: {numbers[-1] + 1:,} of {len(cells):,} cells", flush=True)
        return partition, models, np.array([len(own) for own in cells])

    def _rows_of_cells(self, X: Any, partition: Partition) -> tuple[Partition, list[Index]]:
        """The rows that each cell is trained on, ascending; cells without rows are left out."""
        n = X.shape[0]
        own = np.empty(n, np.int32)
        second, far = (np.empty(n, np.int32), np.empty(n)) if self.overlap else (None, None)

        def assign(start: int) -> None:
            part = slice(start, min(n, start + _ASSIGNED))
            if second is None or far is None:
                own[part] = partition.assign(X[part])
            else:
                own[part], second[part], far[part] = partition.assign_two(X[part])

        with Threads(self.n_jobs) as threads:
            threads.run(assign, [(s,) for s in range(0, n, _ASSIGNED)])
        release(X)
        count = np.bincount(own, minlength=len(partition))
        order = np.argsort(own, kind="stable").astype(np.intp)
        cells = np.split(order, np.cumsum(count)[:-1])
        if second is not None and far is not None:
            neighbours = np.argsort(second, kind="stable").astype(np.intp)
            near = np.split(neighbours, np.cumsum(np.bincount(second, minlength=len(partition)))[:-1])
            for c, rows in enumerate(near):
                more = min(len(rows), int(self.overlap * len(cells[c])))
                if more and len(cells[c]):
                    closest = rows[np.argsort(far[rows], kind="stable")[:more]]
                    cells[c] = np.sort(np.concatenate([cells[c], closest]))
        return partition.only(count > 0), [cell for cell, k in zip(cells, count, strict=True) if k]

    def _cost(self, X: Any, y: NDArray[Any], weight: Floats, seed: int) -> Cost:
        """The statement of cost, on a sample of a few cells' rows."""
        rows = sample_rows(X.shape[0], _COST_CELLS * self.cell_size, seed + 1)

        def by_cells(X: Any, y: NDArray[Any], weight: Floats) -> Callable[[Any], NDArray[Any]]:
            model = clone(self).set_params(report_cost=False, max_time=None, tune=False, verbose=False)
            model.estimator_ = self.estimator_
            model.partition_, model.models_, _ = model._trained(X, y, weight, seed, Limit())
            return model._by_cell

        def exact(X: Any, y: NDArray[Any], weight: Floats) -> Callable[[Any], NDArray[Any]]:
            model = train_cell(clone(self.estimator_).set_params(n_jobs=self.n_jobs), X, y, weight)
            return lambda rows: predict_cell(model, rows)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return measured_cost(
                by_cells, exact, take(X, rows), y[rows], weight[rows], self._classifies, seed
            )

    def _report(self) -> None:
        """Set the status; warn about cells that were not solved."""
        statuses = [str(model.status_) for model in self.models_]
        bad = [s for s in statuses if s != Status.SOLVED]
        self.status_ = next((s for s in _WORST_FIRST if s in bad), str(Status.SOLVED))
        if bad:
            warnings.warn(
                f"{len(bad):,} of {len(statuses):,} cells ended with status {self.status_!r}: raise max_time or "
                "max_iter, scale the features, or lower C. Cells that were not trained predict a constant.",
                ConvergenceWarning,
                stacklevel=3,
            )

    # -- prediction ------------------------------------------------------------------------------

    def _samples(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(
            self,
            X,
            reset=False,
            dtype=[np.float64, np.float32],
            order="C",
            accept_sparse="csr",
            accept_large_sparse=True,
        )

    def _by_cell(
        self, X: Any, values: Callable[[Model, Any], NDArray[Any]] = predict_cell, columns: int = 0
    ) -> NDArray[Any]:
        """Values of rows, each from the model of its own cell."""
        n = X.shape[0]
        if len(self.models_) == 1:
            return values(self.models_[0], X)
        own = np.empty(n, np.int32)
        out: NDArray[Any] = np.empty((n, columns) if columns else n)

        def assign(start: int) -> None:
            part = slice(start, min(n, start + _ASSIGNED))
            own[part] = self.partition_.assign(X[part])

        with Threads(self.n_jobs) as threads:
            threads.run(assign, [(s,) for s in range(0, n, _ASSIGNED)])
            order = np.argsort(own, kind="stable")
            ends = np.searchsorted(own[order], np.arange(len(self.models_) + 1))

            def fill(c: int) -> None:
                rows = order[ends[c] : ends[c + 1]]
                out[rows] = values(self.models_[c], X[rows])

            threads.run(fill, [(c,) for c in range(len(self.models_)) if ends[c + 1] > ends[c]])
        return out


def _left(limit: Limit) -> float | None:
    """Seconds until the deadline."""
    import time

    return None if limit.deadline is None else max(0.0, limit.deadline - time.perf_counter())
