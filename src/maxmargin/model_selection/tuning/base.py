"""The base of estimators that choose their own parameters."""

from __future__ import annotations

import time
import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from maxmargin._compiled.limits import Limit
from maxmargin._compiled.threads import Threads
from maxmargin._sklearn import Interval, StrOptions, check_sample_weight, fit_context
from maxmargin._types import Floats, Index
from maxmargin.model_selection.checkpoint import Checkpoint, fingerprint
from maxmargin.model_selection.jobs import Job, Key, Result
from maxmargin.model_selection.supported import row_indices
from maxmargin.model_selection.tuning.progress import TunerProgress
from maxmargin.model_selection.tuning.recipe import Climb, Node, explore, refine
from maxmargin.model_selection.tuning.scaling import SCALINGS, scaled, scaler_for
from maxmargin.model_selection.tuning.stages import FIRST, SECOND, part_of, splits_of
from maxmargin.model_selection.tuning.surface import Split, Surface
from maxmargin.solvers.interrupt import watch_interrupt

# Tolerance of the first stage, relative to `tol`.
_ROUGH = 10.0
# Share of `max_time` that tuning may take; the rest is for the final fit.
_FOR_TUNING = 0.7
# Seconds that another stage with more rows may take, by an estimate from the last one.
_STAGE_SECONDS = 15.0
# Rows of the largest kernel matrices; the time of a stage with twice the rows, relative to the last one.
_MOSTROWS, _GROWTH = 13_000, 6.0
#: How rows are checked.
ROWS: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}
# Kernels that are tried by "auto", the simplest first.
_AUTO = ("linear", "rbf", "laplacian")


class Tried(NamedTuple):
    """A parameter combination that was tried.

    Attributes
    ----------
    stage : int
        Counts from 1.
    n_rows : int
        Rows that were used, held-out ones included.
    params : dict
        The combination.
    score : float
        Mean score of the folds.
    """

    stage: int
    n_rows: int
    params: dict[str, Any]
    score: float


class Units(NamedTuple):
    """The unit of C, that of the tolerance, and the width of the tube to begin with (0 for none)."""

    C: float
    tol: float = 1.0
    epsilon: float = 0.0


class _Ended(Exception):
    """The time is up, or the user has interrupted the tuning."""


class BaseTuner(BaseEstimator, metaclass=ABCMeta):
    """Choose parameters by cross-validation, then fit."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions({"rbf", "linear", "laplacian", "auto"})],
        "scale": [StrOptions(set(SCALINGS)), None],
        "scoring": [str, callable, None],
        "cv": ["cv_object"],
        "refine": [Interval(Integral, 0, 2, closed="both")],
        "select": [StrOptions({"best", "1se"})],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "cache_size": [Interval(Real, 0, None, closed="neither")],
        "max_time": [Interval(Real, 0, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "checkpoint": [object],
        "progress": ["boolean", None],
        "verbose": ["verbose"],
    }

    # -- what a subclass supplies ----------------------------------------------------------------

    @abstractmethod
    def _untrained(self, **params: Any) -> Any:
        """The estimator that is tuned, with these parameters."""

    @abstractmethod
    def _surface(self, estimator: Any, X: Any, y: Any, splits: Sequence[Split], **shared: Any) -> Surface:
        """The surface of some rows."""

    @abstractmethod
    def _units(self, y: Any, weight: Floats | None) -> Units:
        """The units of the parameters."""

    def _targets(self, y: Any) -> Index | None:
        """Class numbers by which parts of the rows are stratified; None for a regression."""
        return None

    def _default_cv(self, y: Any) -> Any:
        """The splitter, where none is given."""
        return 5

    def _finish(self, run: Run, y: Any, weight: Floats | None) -> None:
        """Use the values of held-out rows, after the choice."""

    def _explore_more(self, climb: Climb, units: Units) -> None:
        """Try further parameters at the end of the first stage."""

    def _refine_more(self, climb: Climb, units: Units) -> None:
        """Try further parameters at the end of the second stage."""

    def _validated(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Rows and targets, checked; the number and names of features are set."""
        X, y = validate_data(self, X, y, y_numeric=not is_classifier(self), **ROWS)
        return X, y

    def _final_rows(self, X: Any, y: Any, weight: Floats | None) -> tuple[Any, Any, Floats | None]:
        """The rows that the final model is trained on."""
        return X, y, weight

    def _equip(self, model: Any) -> None:
        """Give the final model what tuning has found beside the parameters."""

    # -- fit --------------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Any:
        """Choose the parameters, then fit with them on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Labels or targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of C per sample.
        groups : array-like of shape (n_samples,), default=None
            Groups for a splitter that needs them.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        began = time.perf_counter()
        limit = Limit(None if self.max_time is None else _FOR_TUNING * self.max_time)
        X, y = self._validated(X, y)
        weight = None
        if sample_weight is not None:
            weight = check_sample_weight(sample_weight, X, dtype=np.float64)
            if not (weight >= 0).all() or not (weight > 0).any():
                raise ValueError("Sample weights must not be negative, and at least one must be positive.")
        y = self._checked_targets(y, weight)
        scaler = scaler_for(self.scale, X)
        rows = scaled(scaler, X)
        given = self._default_cv(y) if self.cv is None else self.cv
        cv = check_cv(given, y, classifier=self._targets(y) is not None)
        splits = [(row_indices(a), row_indices(b)) for a, b in cv.split(X, y, groups)]
        self.n_splits_ = len(splits)
        self.scorer_ = check_scoring(self._untrained(), self.scoring)
        run = Run(self, rows, y, splits, weight, limit)
        with ExitStack() as stack:
            stack.enter_context(watch_interrupt(limit, owner="maxmargin.model_selection"))
            stack.enter_context(limit)
            stack.enter_context(run.threads)
            run.bar = stack.enter_context(TunerProgress(self.progress, self.verbose, limit))
            with suppress(_Ended):
                run.tune()
            self._publish(run, limit)
            self._finish(run, y, weight)
            run.bar.phase = "final fit"
        self.tuning_time_ = time.perf_counter() - began
        self._refit(rows, y, weight, scaler, run, began)
        return self

    @abstractmethod
    def _checked_targets(self, y: Any, weight: Floats | None) -> Any:
        """The labels or targets as they are trained with."""

    def _publish(self, run: Run, limit: Limit) -> None:
        """Set the attributes that say what was tried and chosen."""
        if not run.tried:
            early = "Tuning ended before the first parameter combination was scored"
            raise KeyboardInterrupt(early) if limit.pulled else TimeoutError(f"{early}: raise max_time.")
        self.interrupted_ = limit.pulled
        self.path_ = [tried for tried, _ in run.tried]
        self.cv_results_ = _results(run.tried, self.n_splits_)
        node = run.chosen(self.select)
        self.best_score_ = node.mean
        if not np.isfinite(node.mean):
            warnings.warn(
                "No parameter combination has a finite score on every fold, and the choice is arbitrary: "
                "look at cv_results_, and use larger folds or another score.",
                stacklevel=4,
            )
        self.best_params_ = run.params(node)
        for name, value in self.best_params_.items():
            setattr(self, f"{name}_", value)
        self.n_rows_ = run.climb.surface.n_rows
        tests = [test for _, test in run.climb.surface.splits]
        self.held_out_rows_ = run.rows[np.concatenate(tests)]
        self.held_out_predictions_ = run.climb.surface.predictions(node.setting, node.C)
        if limit.flag[0]:
            why = "interrupted" if limit.pulled else "ended by max_time"
            warnings.warn(
                f"Tuning was {why} after {len(run.tried)} parameter combinations; the best of them is used.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _refit(self, rows: Any, y: Any, weight: Floats | None, scaler: Any, run: Run, began: float) -> None:
        left = None
        if self.max_time is not None:  # its own share at least, even if tuning took longer than it should
            spent = time.perf_counter() - began
            left = max((1.0 - _FOR_TUNING) * self.max_time, self.max_time - spent)
        model = self._untrained(**self.best_params_, tol=self.tol * run.units.tol, max_time=left)
        start = time.perf_counter()
        rows, y, weight = self._final_rows(rows, y, weight)
        model.fit(rows, y, **({} if weight is None else {"sample_weight": weight}))
        self.refit_time_ = time.perf_counter() - start
        model.max_time = None
        self._equip(model)
        self.status_ = model.status_
        if scaler is None:
            self.best_estimator_ = model
        else:
            self.best_estimator_ = Pipeline([("scale", scaler), (type(model).__name__.lower(), model)])
        if hasattr(self, "feature_names_in_"):
            first = model if scaler is None else scaler
            first.feature_names_in_ = self.feature_names_in_

    # -- prediction --------------------------------------------------------------------------------

    def predict(self, X: Any) -> Any:
        """Predict by the final model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels or targets.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """The score `scoring` of the final model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Labels or targets; None for a score that needs none.
        **params : dict
            Parameters of the scorer, such as `sample_weight`.

        Returns
        -------
        float
            The higher the better.
        """
        check_is_fitted(self, "best_estimator_")
        if self.scoring is None:
            return float(self.best_estimator_.score(X, y, **params))
        return float(self.scorer_(self, X, *(() if y is None else (y,)), **params))


class Run:
    """The course of one tuning."""

    def __init__(
        self, tuner: BaseTuner, X: Any, y: Any, splits: list[Split], weight: Floats | None, limit: Limit
    ) -> None:
        self.tuner, self.X, self.y, self.splits, self.weight, self.limit = tuner, X, y, splits, weight, limit
        self.n = X.shape[0]
        self.threads = Threads(tuner.n_jobs)
        self.rng = np.random.default_rng(_seed(tuner.random_state))
        self.label = tuner._targets(y)
        self.tried: list[tuple[Tried, Node]] = []
        self.stage = 0
        #: The last climb that has tried something, and its rows; the one that has begun, and its rows.
        self.climb: Climb
        self.rows: Index
        self._next: Climb | None = None
        self._next_rows = np.arange(self.n)
        self.bar: Any = None
        self.units = tuner._units(y, weight)
        self.store: Checkpoint | None = None
        self._known: dict[Key, Result] = {}
        if tuner.checkpoint is not None:
            own = {k: repr(v) for k, v in tuner.get_params(deep=False).items() if k not in _NOT_RESULTS}
            self.store = Checkpoint(tuner.checkpoint, fingerprint(sorted(own.items()), X, y, splits, weight))
            self._known = self.store.load()

    # -- stages ------------------------------------------------------------------------------------

    def tune(self) -> None:
        """Explore on few rows, refine on more."""
        tuner = self.tuner
        climb = self._begin(FIRST, rough=tuner.refine > 0)
        kernels = _AUTO if tuner.kernel == "auto" else (tuner.kernel,)
        for kernel in kernels:
            explore(climb, kernel, self._unit(climb.surface, kernel), self.units.C, self.units.epsilon)
        tuner._explore_more(climb, self.units)
        if tuner.refine == 0:
            return
        best = climb.best
        climb = self._begin(SECOND, before=climb)
        refine(climb, best)
        for step in range(1, tuner.refine):
            refine(climb, climb.best, 0.5 ** (step + 1))
        tuner._refine_more(climb, self.units)
        self._more_rows()

    def _begin(self, size: int, rough: bool = False, before: Climb | None = None) -> Climb:
        """A climb on about `size` rows; on the same rows as before the matrices are kept."""
        self.stage += 1
        tol = self.tuner.tol * (_ROUGH if rough else 1.0)
        rows = part_of(self.n, size, self.label, len(self.splits), self.rng)
        estimator = self.tuner._untrained(tol=tol * self.units.tol)
        if before is not None and before.surface.n_rows == len(rows):
            surface = before.surface
            surface.estimator = estimator
        else:
            X, y, splits = self.X, self.y, self.splits
            if len(rows) < self.n:
                X, y = X[rows], None if y is None else y[rows]
                splits = splits_of(splits, rows, self.n)
            surface = self.tuner._surface(
                estimator, X, y, splits, scorer=self.tuner.scorer_, threads=self.threads,
                weight=None if self.weight is None else self.weight[rows],
            )  # fmt: skip
        self._next, self._next_rows = Climb(surface, self._watch, self._from_checkpoint), rows
        return self._next

    def _unit(self, surface: Surface, kernel: str) -> float:
        if kernel == "linear":
            return 0.0
        distance = surface.median_distance(kernel)
        unit = 1.0 / distance if distance > 0 else np.inf
        if not 0.0 < unit < np.inf:
            raise ValueError(
                f"Half of the distances between rows are {'infinite' if distance > 0 else 'not numbers'}: "
                "the features are too large, divide them by a large number or use scale='robust'."
            )
        return unit

    def _more_rows(self) -> None:
        """Go on with twice the rows while they change the choice, and there is time."""
        while self.climb.surface.n_rows < self.n:
            before = self.climb
            rows = 2 * before.surface.n_rows
            if min(rows, self.n) > _MOSTROWS or _GROWTH * self._stage_seconds() > _STAGE_SECONDS:
                return
            best = before.best
            climb = self._begin(rows, before=before)
            refine(climb, best)
            if climb.best.setting == best.setting and climb.best.C == best.C:
                return

    def _stage_seconds(self) -> float:
        return float(sum(node.seconds for tried, node in self.tried if tried.stage == self.stage))

    # -- nodes -------------------------------------------------------------------------------------

    def params(self, node: Node) -> dict[str, Any]:
        """The parameters of a node."""
        return self.climb.surface.parameters(node.setting, node.C)

    def _from_checkpoint(self) -> Floats | None:
        """The scores of the next node, if an earlier run has tried it: the order is the same."""
        assert self._next is not None
        found = [self._known.get((k, len(self.tried))) for k in range(len(self._next.surface.splits))]
        return None if None in found else np.array([r["test_scores"] for r in found])  # type: ignore[index]

    def _watch(self, node: Node) -> None:
        assert self._next is not None
        if not np.isfinite(node.mean) and self.limit.over:
            self._next.nodes.pop((node.setting, node.C))
            raise _Ended
        if not self.tried or self.climb is not self._next:
            if self.tried and self.climb.surface is not self._next.surface:
                self.climb.surface.release()
            self.climb, self.rows = self._next, self._next_rows
        tried = Tried(self.stage, self.climb.surface.n_rows, self.params(node), node.mean)
        number = len(self.tried)
        if self.store is not None and (0, number) not in self._known:
            job = Job(tuple(range(len(node.scores))), (number,), (-1,))
            self.store.add(job, [[{"test_scores": float(score)}] for score in node.scores])
        self.tried.append((tried, node))
        self.bar.update(tried, max(n.mean for t, n in self.tried if t.stage == self.stage))
        if self.limit.over:
            raise _Ended

    def chosen(self, select: str) -> Node:
        """The choice among the nodes of the last stage."""
        climb = self.climb
        best = climb.best
        if select == "best":
            return best
        least = best.mean - climb.error(best)
        near = [node for node in climb.nodes.values() if node.mean >= least]
        return min(near, key=lambda node: node.size)


# Parameters that do not change the scores.
_NOT_RESULTS = (
    "n_jobs",
    "max_time",
    "progress",
    "verbose",
    "checkpoint",
    "select",
    "cache_size",
    "calibrate",
)


def _seed(random_state: Any) -> Any:
    """A seed for NumPy's generator; 0 for None, so that results repeat."""
    if random_state is None:
        return 0
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return random_state


def _column(values: list[Any]) -> Any:
    """Values of a parameter as in scikit-learn: an array of objects unless all are numbers."""
    return np.ma.array(values, dtype=None if all(isinstance(v, float) for v in values) else object)


def _results(tried: Sequence[tuple[Tried, Node]], n_splits: int) -> dict[str, Any]:
    """The nodes in the form of scikit-learn's `cv_results_`, with their stage and number of rows."""
    nodes = [node for _, node in tried]
    scores = np.full((len(nodes), n_splits), np.nan)
    for line, node in zip(scores, nodes, strict=True):
        line[: len(node.scores)] = node.scores
    params = [t.params for t, _ in tried]
    out: dict[str, Any] = {
        "stage": np.array([t.stage for t, _ in tried]),
        "n_rows": np.array([t.n_rows for t, _ in tried]),
        "mean_fit_time": np.array([node.seconds for node in nodes]) / n_splits,
        **{f"param_{name}": _column([p[name] for p in params]) for name in params[0]},
        "params": params,
        **{f"split{k}_test_score": scores[:, k] for k in range(n_splits)},
    }
    out["mean_test_score"] = np.array([node.mean for node in nodes])
    out["std_test_score"] = np.array([float(np.std(node.scores)) for node in nodes])
    # The last stage comes first: scores on other rows are not comparable.
    last = out["stage"] == out["stage"].max()
    rank = np.empty(len(nodes), np.int32)
    rank[last] = rankdata(-out["mean_test_score"][last], method="min")
    rank[~last] = last.sum() + rankdata(-out["mean_test_score"][~last], method="min")
    out["rank_test_score"] = rank
    return out
