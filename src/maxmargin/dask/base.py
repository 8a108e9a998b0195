"""The base of the estimators of the package: training on a cluster or here, and lazy predictions."""

from __future__ import annotations

import copy
import inspect
import logging
import sys
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import dask
import numpy as np

from maxmargin._sklearn import StrOptions, parameter_names, share_callbacks, validate_parameters
from maxmargin.dask.clients import find_client
from maxmargin.dask.data import TrainingData, rows_known
from maxmargin.dask.inputs import check_collection, is_lazy
from maxmargin.dask.lazy import Models, apply
from maxmargin.dask.one_worker import fit_on_worker
from maxmargin.dask.vectors import joined_vector, vector_blocks
from maxmargin.dask.waiting import gather, wait_for_workers

# Rows from which on `distribute="auto"` trains on all workers. A fit of 500,000 rows takes 80 s on two cores,
# where rounds over the network save little (lab notes, covtype): below a fraction of it nothing is saved.
FEW_ROWS = 200_000
# Attributes that an ordinary estimator does not have.
_OF_DASK = ("client", "distribute", "distributed_", "traffic_", "_models")
_PLACES = {"all workers": "on all workers", "one worker": "on one worker", "here": "in this process"}
_log = logging.getLogger("maxmargin.dask")


def with_client(local: type) -> Callable[..., None]:
    """The method ``__init__`` of a class with the parameters of `local`, a client and where to train.

    scikit-learn reads the names of parameters from the signature.
    """

    def __init__(
        self: Any, *own: Any, client: Any = None, distribute: bool | str = "auto", **parameters: Any
    ) -> None:
        local.__init__(self, *own, **parameters)  # type: ignore[misc]
        self.client = client
        self.distribute = distribute

    keyword = inspect.Parameter.KEYWORD_ONLY
    signature = inspect.signature(local.__init__)  # type: ignore[misc]
    added = [
        inspect.Parameter(name, keyword, default=d) for name, d in (("client", None), ("distribute", "auto"))
    ]
    __init__.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), *added]
    )
    return __init__


class DaskEstimator:
    """Mixin in front of an estimator of `maxmargin`, which it trains on a cluster.

    After `fit` it has all attributes of a fitted estimator of that class.
    """

    #: The class of the ordinary estimator.
    _local_class: ClassVar[type]
    _added_constraints: ClassVar[dict[str, Any]] = {
        "client": "no_validation",
        "distribute": [StrOptions({"auto"}), "boolean"],
    }
    client: Any
    distribute: Any
    #: What predictions of dask collections send to workers; belongs to this object, and is not copied.
    _models: Models | None = None

    # -- training ----------------------------------------------------------------------------

    def _train(self: Any, X: Any, y: Any, sample_weight: Any) -> Any:
        validate_parameters(self)
        lazy = any(map(is_lazy, (X, y, sample_weight)))
        client = find_client(self.client) if lazy or self.distribute is not False else None
        if client is None:
            self._check_without_client(X)
            if not lazy:
                return self._become(self._to_train().fit(X, y, sample_weight))
        else:
            wait_for_workers(client)
        if self.kernel == "precomputed":
            raise ValueError(
                "kernel='precomputed' is not possible on a cluster: a kernel matrix has as many columns as "
                f"rows. Name a kernel, or use maxmargin.{self._local_class.__name__}."
            )
        data = TrainingData.load(client, X, y, sample_weight)
        estimator = self._to_train()
        where, reason = self._where(client, data.shape[0])
        if where == "all workers" and getattr(self, "_with_probabilities", False):
            raise ValueError(
                "probability=True is only possible on one worker: use distribute=False, or calibrate the "
                "fitted estimator with sklearn.calibration.CalibratedClassifierCV."
            )
        self._say(f"{type(self).__name__}: {data.shape[0]:,} rows, {reason}training {_PLACES[where]}")
        traffic = None
        if where == "all workers":
            from maxmargin.dask.training import fit_distributed

            traffic = fit_distributed(estimator, data, report=self._say)
        elif where == "one worker":
            estimator = fit_on_worker(estimator, data)
        else:
            estimator.fit(data.here(), data.y, data.weight)
        if data.feature_names is not None:
            estimator.feature_names_in_ = data.feature_names
        return self._become(estimator, traffic)

    def _become(self: Any, estimator: Any, traffic: Any = None) -> Any:
        """Take over the fitted attributes of an ordinary estimator."""
        fitted = _fitted(estimator, self._local_class)
        if "feature_names_in_" not in fitted:
            vars(self).pop("feature_names_in_", None)  # of the last fit
        vars(self).update(fitted, distributed_=traffic is not None, traffic_=traffic, _models=None)
        return self

    def _check_without_client(self, X: Any) -> None:
        """Refuse what cannot be trained in this process."""
        if self.distribute is True:
            reason = "distribute=True needs a cluster"
        elif self.distribute == "auto" and is_lazy(X) and ((n := rows_known(X)) is None or n >= FEW_ROWS):
            reason = f"X has {'an unknown number of' if n is None else f'{n:,}'} rows"
        else:
            return
        raise ValueError(
            f"{reason}, and there is no dask client: start one with distributed.Client(), or use "
            "distribute=False to train in this process."
        )

    def _where(self, client: Any, n: int) -> tuple[str, str]:
        """Where to train, and why if the user did not say."""
        if client is None or self.distribute is False:
            return "here", ""
        if self.distribute is True or n >= FEW_ROWS:
            return "all workers", ""
        return "one worker", f"fewer than {FEW_ROWS:,}, where distribute=True saves no time: "

    def _to_train(self: Any) -> Any:
        """An ordinary estimator; it has the last solution if `warm_start` asks for it."""
        if self.warm_start and hasattr(self, "_model"):
            return self.to_local()
        estimator = self._unfitted()
        share_callbacks(self, estimator)
        return estimator

    def _unfitted(self: Any) -> Any:
        return self._local_class(**{name: getattr(self, name) for name in parameter_names(self._local_class)})

    def _say(self: Any, text: str) -> None:
        """Write a line to the log, or where progress is shown if the log does not show it."""
        _log.info(text)
        if (self.verbose or sys.stderr.isatty()) and not _log.isEnabledFor(logging.INFO):
            print(text, file=sys.stderr)

    # -- prediction --------------------------------------------------------------------------

    def _values(self: Any, method: str, X: Any) -> Any:
        """The values of a method: lazy for a dask collection, else as those of the ordinary estimator."""
        if not is_lazy(X):
            return getattr(super(), method)(X)
        self._check_fitted()
        columns = None
        if method != "decision_function" or getattr(self, "decision_function_shape", "ovr") == "ovr":
            columns = getattr(self, "classes_", None)
        local = self._to_send()
        if self._models is None or not self._models.made_from(local):
            self._models = Models(local)
        return apply(X, self._models.task(self.client), self, method, columns)

    def _to_send(self) -> Any:
        """The ordinary estimator without what predictions do not need."""
        local = self.to_local()
        local._solutions, local.n_jobs = None, local.n_jobs or 1  # a worker has several blocks at once
        vars(local).pop("feature_names_in_", None)  # compared here
        vars(local).pop("trace_", None)
        return local

    def predict(self, X: Any) -> Any:
        """Predict labels or targets.

        Parameters
        ----------
        X : dask or local array, sparse matrix or data frame of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray, or lazy dask Array or Series of shape (n_samples,)
            A dask array for a dask array, with its chunks; a series for a dask data frame, with its index.
        """
        return self._values("predict", X)

    def _measured(self: Any, measure: Callable[..., Any], X: Any, y: Any, sample_weight: Any) -> float:
        """A measure of the predictions, which are computed block by block and compared here."""
        if not any(map(is_lazy, (X, y, sample_weight))):
            return float(super().score(X, y, sample_weight))  # type: ignore[misc]
        for name, vector in (("y", y), ("sample_weight", sample_weight)):
            if is_lazy(vector):
                check_collection(vector, name)
        # Together, so that what X and y have in common is computed once.
        predicted, y, sample_weight = _computed(find_client(self.client), [self.predict(X), y, sample_weight])
        sizes = [len(predicted)]
        y = joined_vector(vector_blocks(y, "y"), sizes, "y")
        if sample_weight is not None:
            sample_weight = joined_vector(
                vector_blocks(sample_weight, "sample_weight"), sizes, "sample_weight"
            )
        return float(measure(y, np.asarray(predicted), sample_weight=sample_weight))

    # -- copies ------------------------------------------------------------------------------

    def to_local(self: Any) -> Any:
        """The ordinary estimator, fitted if this one is; it does not need dask.

        Returns
        -------
        estimator of `maxmargin`
            With the same parameters. Arrays are shared with this estimator, not copied.
        """
        local = self._unfitted()
        vars(local).update(_fitted(self, self._local_class))
        return local

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        return {**state, "client": None, "_models": None}

    def __sklearn_clone__(self: Any) -> Any:
        # A client is a connection, which is shared and not copied: `copy` leaves it out.
        cloned = super(DaskEstimator, copy.copy(self)).__sklearn_clone__()  # type: ignore[misc]
        cloned.client = self.client
        return cloned


def _fitted(estimator: Any, kind: Any) -> dict[str, Any]:
    """The attributes of an estimator that an ordinary one of this class gets from training."""
    names = {*parameter_names(kind), *_OF_DASK}
    return {
        name: value
        for name, value in vars(estimator).items()
        if name not in names and (name[0] == "_" or name[-1] == "_")
    }


def _computed(client: Any, values: list[Any]) -> list[Any]:
    """The values, of which dask collections are computed."""
    lazy = [i for i, each in enumerate(values) if is_lazy(each)]
    some = [values[i] for i in lazy]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Computing mixed collections")  # X may be a data frame, y an array
        if client is None:
            found = list(dask.compute(*some))
        else:
            found = gather(client, client.compute(some), what="computing predictions")
    return [found[lazy.index(i)] if i in lazy else each for i, each in enumerate(values)]
