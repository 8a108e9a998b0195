"""Training on a cluster or in this process, and lazy predictions: what all estimators of the package share."""

from __future__ import annotations

import copy
import inspect
import logging
import pickle
import sys
import warnings
from collections.abc import Callable
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np
from sklearn.base import clone

from maxmargin._sklearn import StrOptions, validate_parameters
from maxmargin.dask import lazy
from maxmargin.dask.clients import find_client
from maxmargin.dask.data import TrainingData, rows_known
from maxmargin.dask.inputs import is_lazy, joined_vector, vector_blocks
from maxmargin.dask.parts import joined
from maxmargin.dask.waiting import gather, wait_for_workers

# Rows from which on `distribute="auto"` trains on all workers. A fit of 500,000 rows takes 80 s on two cores,
# where rounds over the network save little (lab notes, covtype): below a fraction of it nothing is saved.
FEW_ROWS = 200_000
# Not attributes of the estimator, but of its object in this process.
_HERE = ("_models",)
# What an ordinary estimator does not have.
_OF_TRAINING = ("distributed_", "traffic_")
_log = logging.getLogger("maxmargin.dask")


def with_client(local: type) -> Callable[..., None]:
    """The method ``__init__`` of a class with the parameters of `local`, a client and where to train.

    scikit-learn reads the names of parameters from the signature.
    """

    def __init__(
        self: Any, *, client: Any = None, distribute: bool | str = "auto", **parameters: Any
    ) -> None:
        local.__init__(self, **parameters)  # type: ignore[misc]
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

    # -- training ----------------------------------------------------------------------------

    def _fit(self: Any, X: Any, y: Any, sample_weight: Any) -> Any:
        validate_parameters(self)
        if self.kernel == "precomputed":
            raise ValueError(
                "kernel='precomputed' is not possible with maxmargin.dask: a kernel matrix has as many columns as "
                f"rows. Name a kernel, or use maxmargin.{self._local_class.__name__}."
            )
        client = find_client(self.client)
        if client is None:
            self._check_without_client(X)
        elif self.distribute is not False or is_lazy(X):
            wait_for_workers(client)
        client = client if self.distribute is not False or is_lazy(X) else None
        data = TrainingData.load(client, X, y, sample_weight)
        estimator = self._to_train()
        where = self._where(client, data.shape[0])
        if where == "all workers" and getattr(self, "_with_probabilities", False):
            raise ValueError(
                "probability=True is only possible on one worker: use distribute=False, or calibrate the fitted "
                "estimator with sklearn.calibration.CalibratedClassifierCV."
            )
        self._say(f"{type(self).__name__}: {data.shape[0]:,} rows, training {_places[where]}")
        traffic = None
        if where == "all workers":
            from maxmargin.dask.training import fit_distributed

            traffic = fit_distributed(estimator, data, report=self._say)
        elif where == "one worker":
            estimator = _fit_on_worker(client, estimator, data)
        else:
            estimator.fit(data.here(), data.y, data.weight)
        if data.feature_names is not None:
            estimator.feature_names_in_ = data.feature_names
        names = set(self.get_params(deep=False))
        for name in [name for name in vars(self) if name not in names and name[0] != "_" and name[-1] == "_"]:
            delattr(self, name)
        vars(self).update(
            {name: value for name, value in vars(estimator).items() if name not in names}, _models={}
        )
        self.distributed_ = where == "all workers"
        self.traffic_ = traffic
        return self

    def _check_without_client(self, X: Any) -> None:
        """Refuse what cannot be trained in this process."""
        n = rows_known(X)
        if self.distribute is True:
            reason = "distribute=True needs a cluster"
        elif self.distribute == "auto" and is_lazy(X) and (n is None or n >= FEW_ROWS):
            reason = f"X has {'an unknown number of' if n is None else f'{n:,}'} rows"
        else:
            return
        raise ValueError(
            f"{reason}, and there is no dask client: start one with distributed.Client(), or use "
            "distribute=False to train in this process."
        )

    def _where(self, client: Any, n: int) -> str:
        if client is None or self.distribute is False:
            return "here"
        return "all workers" if self.distribute is True or n >= FEW_ROWS else "one worker"

    def _to_train(self: Any) -> Any:
        """An ordinary estimator; it has the last solution if `warm_start` asks for it."""
        return self.to_local() if self.warm_start and hasattr(self, "_model") else self._unfitted()

    def _unfitted(self: Any) -> Any:
        parameters = self.get_params(deep=False)
        return self._local_class(**{k: v for k, v in parameters.items() if k not in ("client", "distribute")})

    def _say(self: Any, text: str) -> None:
        """Write a line where progress is shown, and to the log."""
        _log.info(text)
        if self.verbose or sys.stderr.isatty():
            print(text, file=sys.stderr)

    # -- prediction --------------------------------------------------------------------------

    def _values(self: Any, method: str, X: Any) -> Any:
        """The values of a method: lazy for a dask collection, else as those of the ordinary estimator."""
        if not is_lazy(X):
            return getattr(super(DaskEstimator, self), method)(X)
        self._check_fitted()
        columns = None
        if method == "predict_proba" or getattr(self, "decision_function_shape", None) == "ovr":
            columns = getattr(self, "classes_", None)
        return lazy.apply(X, self._model_task(), self, method, columns)

    def _model_task(self: Any) -> Any:
        """The fitted estimator as the result of a task, made once for each client."""
        import dask

        client = find_client(self.client)
        models: dict[Any, Any] = vars(self).setdefault("_models", {})
        key = None if client is None else client.id
        future = models.get(key)
        if future is None or getattr(future, "status", None) in ("cancelled", "error"):
            local = self.to_local()
            local._solutions = None  # of training
            local.n_jobs = 1 if local.n_jobs is None else local.n_jobs  # a worker has several blocks at once
            stored, name = pickle.dumps(local), f"model-{uuid4().hex[:12]}"
            if client is None:
                future = dask.delayed(pickle.loads, pure=False)(stored, dask_key_name=name)
            else:
                with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
                    future = client.submit(pickle.loads, stored, key=name, pure=False)
            models[key] = future
        return future

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

    def _score(self: Any, measure: Callable[..., Any], X: Any, y: Any, sample_weight: Any) -> float:
        """A measure of the predictions, which are computed block by block and compared here."""
        client = find_client(self.client) if any(map(is_lazy, (X, y, sample_weight))) else None
        predicted = joined(_computed(client, self.predict(X)))
        n = [len(predicted)]
        truth = joined_vector(_computed(client, y), n, "y")
        if sample_weight is not None:
            sample_weight = joined_vector(_computed(client, sample_weight), n, "sample_weight")
        return float(measure(truth, predicted, sample_weight=sample_weight))

    # -- copies ------------------------------------------------------------------------------

    def to_local(self: Any) -> Any:
        """The ordinary estimator, fitted if this one is; it does not need dask.

        Returns
        -------
        estimator of `maxmargin`
            With the same parameters. Arrays are shared with this estimator, not copied.
        """
        local, names = self._unfitted(), set(self.get_params(deep=False))
        fitted = {k: v for k, v in vars(self).items() if k not in names and k not in (*_HERE, *_OF_TRAINING)}
        vars(local).update(fitted)
        return local

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()  # type: ignore[misc]
        return {**{k: v for k, v in state.items() if k not in _HERE}, "client": None}

    def __sklearn_clone__(self: Any) -> Any:
        parameters = self.get_params(deep=False)
        client = parameters.pop("client")  # refers to a connection: shared, not copied
        cloned = type(self)(**{k: clone(v, safe=False) for k, v in parameters.items()}, client=client)
        if hasattr(self, "_metadata_request"):
            cloned._metadata_request = copy.deepcopy(self._metadata_request)
        return cloned


_places = {"all workers": "on all workers", "one worker": "on one worker", "here": "in this process"}


def _computed(client: Any, values: Any) -> list[Any]:
    """The chunks of a vector, computed."""
    import dask

    if not is_lazy(values):
        return [np.asarray(values)]
    blocks = vector_blocks(values, "y")
    if client is None:
        return [np.asarray(each) for each in dask.compute(*blocks)]
    found = gather(client, client.compute(blocks), what="computing predictions")
    return [np.asarray(each) for each in found]


def fit_parts(estimator: Any, parts: list[Any], y: Any, weight: Any) -> tuple[Any, list[tuple[type, str]]]:
    """Fit an estimator to all parts, as a task on one worker; the warnings are for the client."""
    from distributed import get_worker

    parameters = {"n_jobs": estimator.n_jobs, "verbose": estimator.verbose}
    if estimator.n_jobs is None:
        estimator.n_jobs = get_worker().state.nthreads
    estimator.verbose = False  # nobody sees the output of a worker
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(joined(parts), y, weight)
    estimator.set_params(**parameters)
    return estimator, [(each.category, str(each.message)) for each in caught]


def _fit_on_worker(client: Any, estimator: Any, data: TrainingData) -> Any:
    """Fit an estimator on one worker; returns the fitted one."""
    import dask

    def submit(_: int = 0) -> Any:
        key = f"fit-{type(estimator).__name__}-{uuid4().hex[:12]}"
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            return client.submit(fit_parts, estimator, data.parts, data.y, data.weight, key=key, pure=False)

    [(fitted, caught)] = gather(client, [submit()], what="training on one worker", resubmit=submit)
    for category, message in caught:
        warnings.warn(message, category, stacklevel=4)
    return fitted
