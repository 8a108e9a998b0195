"""Grid search with cross-validation that shares kernels and starts every node from its neighbour."""

from __future__ import annotations

import time
import warnings
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, ParameterGrid, ParameterSampler, check_cv
from sklearn.utils.validation import indexable
from threadpoolctl import threadpool_limits

from maxmargin._sklearn import (
    Interval,
    StrOptions,
    best_index,
    check_method_params,
    check_refit,
    fit_context,
    insert_error_scores,
    parameter_constraints,
    results_of_search,
    routed_parameters,
    safe_indexing,
    scorers_by_name,
    scorers_of_search,
    warn_or_raise_about_fit_failures,
)
from maxmargin.model_selection.calibrated import (
    CalibratedMixin,
    calibrator_of,
    check_calibration,
    equip,
    held_out_values,
)
from maxmargin.model_selection.checkpoint import Checkpoint, fingerprint
from maxmargin.model_selection.folds import FOLDS_AT_A_TIME, Folds
from maxmargin.model_selection.jobs import Job, Key, Result, SearchSetup
from maxmargin.model_selection.pipelines import split_pipeline
from maxmargin.model_selection.plan import jobs_of, parents_of
from maxmargin.model_selection.progress import ProgressBar
from maxmargin.model_selection.results import average_finished_folds, in_order, trainers_of
from maxmargin.model_selection.runner import run_job
from maxmargin.model_selection.scoring import check_scorers
from maxmargin.model_selection.supported import check_estimator, check_kernels, row_indices
from maxmargin.solvers.interrupt import watch_interrupt

# Parameters that do not change the scores.
_NOT_RESULTS = (
    "n_jobs", "verbose", "refit", "pre_dispatch", "progress", "checkpoint", "memory", "calibrate",
)  # fmt: skip
# How often jobs that were lost with their worker are sent again.
_ATTEMPTS = 3
# Jobs per worker that are sent together to a backend that returns no result before all are done.
_JOBS_AT_ONCE = 4


class SVMSearchCV(CalibratedMixin, GridSearchCV):
    r"""Search over parameters; takes the place of scikit-learn's `GridSearchCV` and `RandomizedSearchCV`.

    For the estimators of this library, and pipelines that end in one. All nodes and folds share one matrix of
    squared distances (or of inner products), from which the kernel of every width is one pass; every node
    starts from the solution of a neighbour; held-out rows are scored from the values that training leaves
    behind. The scores are those of fits to `tol`, whatever the path: with a small `tol` they equal those of
    `GridSearchCV`.

    Parameters
    ----------
    estimator : estimator
        An estimator of this library or of a subclass, or a pipeline that ends in one. The steps before it are
        fitted per fold.
    param_grid : dict or list of dict
        Names of parameters to values, as in scikit-learn; with `n_iter` also to distributions.
    scoring, refit, cv, verbose, error_score, return_train_score
        As in `sklearn.model_selection.GridSearchCV`.
    n_jobs : int, default=None
        Chains of nodes that are trained at a time; None for all cores. By default in threads, which share the
        matrices; ``joblib.parallel_config`` chooses another backend, such as ``"loky"`` or ``"dask"``.
    path : {"auto", "up", "down", "cold"} or sequence of int, default="auto"
        Which node starts from which: "auto" takes the path that was measured best for the estimator; "up" and
        "down" go along its C or nu; with "cold" no node starts from another. A sequence, or a
        `maxmargin.model_selection.Path`, names for each candidate the one it starts from, or -1.
    memory : float, default=2000
        Megabytes that kernel matrices may take in a process; if they need more, every fit uses its own cache
        of rows.
    checkpoint : str or path-like, default=None
        A file that takes the results as they come, in a folder that exists. A search that finds its own
        results there continues from them; a damaged file is an error.
    progress : bool, default=None
        Whether to show a progress bar on the standard error; None: if that is a terminal, the search takes
        half a second or more and the estimator is not `verbose` itself.
    pre_dispatch : int or str
        As in scikit-learn.
    n_iter : int, default=None
        Number of random combinations that are tried, as in `sklearn.model_selection.RandomizedSearchCV`; None
        for all combinations.
    random_state : int, RandomState or None, default=None
        Seed of the random combinations.
    calibrate : {"sigmoid", "isotonic", "temperature"} or None, default=None
        Whether `predict_proba` turns decision values into probabilities, by a function that is fitted to the
        values of held-out rows for the best combination; for `SVC` and `NuSVC`, with `refit`.

    Attributes
    ----------
    cv_results_, best_estimator_, best_score_, best_params_, best_index_, scorer_, n_splits_, refit_time_
        As in `sklearn.model_selection.GridSearchCV`. The fit times are those of a chain, divided evenly.
    multimetric_, classes_, n_features_in_, feature_names_in_
        As in `sklearn.model_selection.GridSearchCV`.
    path_ : list of (int, int)
        The node that each started from (-1: none) and the node.
    trainers_ : list of str
        For each candidate the name of its trainer: "C path" (compiled code along C), "warm fits" (the
        estimator's own `fit`, started from the parent's solution) or "scikit-learn" (fits without any of
        this), with the reason why no faster one could be used; several if the folds differ.
    calibrator_ : Calibrator
        What turns decision values into probabilities, with `calibrate`.
    interrupted_ : bool
        Whether the search was ended by Ctrl-C. Means are then over the folds that were done, and NaN where
        none was; candidates whose folds were all done rank before others.

    References
    ----------
    F. Timm, S. Klement, T. Martinetz, "Fast Model Selection for MaxMinOver-based Training of Support Vector
    Machines", 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC
    >>> from maxmargin.model_selection import SVMSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> search = SVMSearchCV(SVC(), {"C": [0.1, 1.0, 10.0], "gamma": [0.01, 0.1, 1.0]}).fit(X, y)
    >>> search.best_params_, round(float(search.best_score_), 2)
    ({'C': 1.0, 'gamma': 0.1}, 0.98)
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012  (scikit-learn declares it so)
        **parameter_constraints(GridSearchCV),
        "path": [object],
        "memory": [Interval(Real, 0, None, closed="left")],
        "checkpoint": [object],
        "progress": ["boolean", None],
        "n_iter": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
        "calibrate": [StrOptions({"sigmoid", "isotonic", "temperature"}), None],
    }

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        error_score: Any = np.nan,
        return_train_score: bool = False,
        path: Any = "auto",
        memory: float = 2000.0,
        checkpoint: Any = None,
        progress: bool | None = None,
        n_iter: int | None = None,
        random_state: Any = None,
        calibrate: str | None = None,
    ) -> None:
        super().__init__(
            estimator=estimator, param_grid=param_grid, scoring=scoring, n_jobs=n_jobs, refit=refit, cv=cv,
            verbose=verbose, pre_dispatch=pre_dispatch, error_score=error_score,
            return_train_score=return_train_score,
        )  # fmt: skip
        self.path = path
        self.memory = memory
        self.checkpoint = checkpoint
        self.progress = progress
        self.n_iter = n_iter
        self.random_state = random_state
        self.calibrate = calibrate

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, **params: Any) -> SVMSearchCV:
        """Train and score every node on every fold; refit the best on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training data.
        y : array-like of shape (n_samples,), default=None
            Labels; None for outlier detectors.
        **params : dict
            Parameters of the estimator's `fit` (such as `sample_weight`), the scorer and the splitter.

        Returns
        -------
        self : object
            The fitted search.
        """
        check_estimator(self.estimator, type(self).__name__)
        scorers, refit_metric = scorers_of_search(self)
        X, y = indexable(X, y)
        params = check_method_params(X, params=params)
        routed = routed_parameters(self, params)
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        self.n_splits_ = cv.get_n_splits(X, y, **routed.splitter.split)
        splits = [(row_indices(a), row_indices(b)) for a, b in cv.split(X, y, **routed.splitter.split)]
        if len(splits) != self.n_splits_:
            raise ValueError(
                "cv.split and cv.get_n_splits return inconsistent results. "
                f"Expected {self.n_splits_} splits, got {len(splits)}"
            )
        candidates = self._candidates()
        check_kernels(self.estimator, candidates)
        check_calibration(self.calibrate, self.estimator)
        check_scorers(scorers, self.scoring, self.estimator, candidates)
        parents = parents_of(self.estimator, candidates, self.path)
        jobs = jobs_of(self.estimator, candidates, parents, len(splits), self._workers())
        if self.verbose > 0:
            print(
                f"Fitting {len(splits)} folds for each of {len(candidates)} candidates, totalling "
                f"{len(splits) * len(candidates)} fits"
            )
        setup = SearchSetup(
            estimator=clone(self.estimator), candidates=candidates, splits=splits, scorers=scorers,
            fit_params=dict(routed.estimator.fit), score_params=dict(routed.scorer.score),
            return_train_score=self.return_train_score, error_score=self.error_score,
            folds=Folds(self.memory * 1e6, min(FOLDS_AT_A_TIME, self._workers()), self.return_train_score),
            workers=self._workers(),
        )  # fmt: skip
        with ProgressBar(self._progress(), len(candidates), len(splits), setup.counts) as bar:
            try:
                found = self._train(X, y, setup, jobs, bar)
            finally:
                setup.folds.release()
            self._report(found, jobs, len(candidates))
            out = in_order(found, len(candidates), self.n_splits_)
            warn_or_raise_about_fit_failures(out, self.error_score)
            if callable(self.scoring):
                insert_error_scores(out, self.error_score)
            results = results_of_search(self, candidates, len(splits), out)
            if self.interrupted_:
                average_finished_folds(results)
            bar.refitting = bool(self.refit)
            self._finish(X, y, scorers, refit_metric, results, out, routed)
            if self.calibrate is not None and self.refit:
                self._calibrate(X, y, setup)
        return self

    def _candidates(self) -> list[dict[str, Any]]:
        """The parameter combinations: all of a grid, or random draws."""
        if self.n_iter is not None:
            return list(ParameterSampler(self.param_grid, self.n_iter, random_state=self.random_state))
        grids = [self.param_grid] if isinstance(self.param_grid, Mapping) else self.param_grid
        for name, values in ((k, v) for grid in grids for k, v in dict(grid).items()):
            if hasattr(values, "rvs"):
                raise TypeError(
                    f"The values of {name} are a distribution: give n_iter, the number of random draws."
                )
        return list(ParameterGrid(self.param_grid))

    # -- training ------------------------------------------------------------------------------

    def _progress(self) -> bool | None:
        """Whether a progress bar is wanted; not beside the table of a verbose estimator."""
        _, last, _ = split_pipeline(self.estimator)
        return False if self.progress is None and getattr(last, "verbose", False) else self.progress

    def _train(
        self, X: Any, y: Any, setup: SearchSetup, jobs: list[Job], bar: ProgressBar
    ) -> dict[Key, Result]:
        found: dict[Key, Result] = {}
        store = None
        if self.checkpoint is not None:
            own = self.get_params(deep=False)
            for name in _NOT_RESULTS:
                own.pop(name)
            own_fingerprint = fingerprint(
                sorted((k, repr(v)) for k, v in own.items()), X, y, setup.splits, setup.fit_params
            )
            store = Checkpoint(self.checkpoint, own_fingerprint)
            found.update(store.load())
        pending = deque(job for job in jobs if any(key not in found for key in job.keys))
        self.interrupted_ = False
        with ExitStack() as stack:
            interrupt = stack.enter_context(watch_interrupt(owner="maxmargin.model_selection"))
            # Jobs run side by side: BLAS with threads of its own would compete with them.
            stack.enter_context(threadpool_limits(1, user_api="blas"))
            bar.limit = interrupt
            bar.update(found)
            for attempt in range(_ATTEMPTS):
                try:
                    with _closing(self._results(X, y, setup, list(pending))) as done:
                        for job, results in done:
                            pending.remove(job)
                            for fold, of_fold in zip(job.folds, results, strict=True):
                                found.update({(fold, n): r for n, r in zip(job.nodes, of_fold, strict=True)})
                            if store is not None:
                                store.add(job, results)
                            setup.counts.end(job)
                            bar.update(found)
                            if interrupt.pulled:
                                break
                except KeyboardInterrupt:
                    if interrupt.abandoned:
                        raise
                    interrupt.pulled = True
                except Exception as error:
                    # A worker was lost: jobs without results are sent again.
                    if attempt == _ATTEMPTS - 1 or not _lost(error):
                        raise
                    continue
                break
            if interrupt.pulled and pending:
                self.interrupted_ = True
        if not found:
            raise KeyboardInterrupt("The search was interrupted before the first fits were done.")
        if self.interrupted_:
            wanted = len(setup.candidates) * len(setup.splits)
            warnings.warn(
                f"The search was interrupted: {len(found)} of {wanted} fits are done, the scores of the "
                "others are NaN." + ("" if store is None else " It can be resumed from its checkpoint."),
                ConvergenceWarning,
                stacklevel=3,
            )
        return found

    def _results(
        self, X: Any, y: Any, setup: SearchSetup, jobs: list[Job]
    ) -> Iterator[tuple[Job, list[list[Result]]]]:
        """Jobs and their results as they come."""
        workers = self._workers()
        setup.folds.expect((job.folds, job.setting) for job in jobs)
        if workers == 1 or len(jobs) <= 1:
            for job in jobs:
                yield job, run_job(X, y, setup, job)
            return
        backend, _ = get_active_backend(prefer="threads")
        options = {"n_jobs": workers, "prefer": "threads", "pre_dispatch": self.pre_dispatch}
        if getattr(backend, "supports_return_generator", False):
            parallel = Parallel(**options, return_as="generator_unordered")
            yield from parallel(delayed(_tagged)(X, y, setup, job) for job in jobs)
            return
        # Some backends (Ray's) return lists only: some jobs at a time, so that results come in between.
        step = _JOBS_AT_ONCE * workers
        with Parallel(**options) as parallel:
            for s in range(0, len(jobs), step):
                yield from parallel(delayed(_tagged)(X, y, setup, job) for job in jobs[s : s + step])

    def _workers(self) -> int:
        return int(effective_n_jobs(-1 if self.n_jobs is None else self.n_jobs))

    # -- results -------------------------------------------------------------------------------

    def _calibrate(self, X: Any, y: Any, setup: SearchSetup) -> None:
        """Fit the calibrator to the values of held-out rows for the best candidate."""
        values = held_out_values(X, y, setup, self.best_params_)
        labels = [np.asarray(safe_indexing(y, test)) for _, test in setup.splits]
        assert self.calibrate is not None
        self.calibrator_ = calibrator_of(self.calibrate, values, labels, self.classes_)
        equip(self.best_estimator_, self.calibrator_)

    def _has_probabilities(self) -> bool:
        if self.calibrate is None:
            model = self.best_estimator_ if hasattr(self, "best_estimator_") else self.estimator
            return callable(model.predict_proba)  # or raises AttributeError, with the reason
        return True

    def _probabilities(self, X: Any) -> Any:
        if self.calibrate is None:
            return self.best_estimator_.predict_proba(X)
        return super()._probabilities(X)

    def _report(self, found: dict[Key, Result], jobs: list[Job], n_candidates: int) -> None:
        """`trainers_` and `path_`; with `verbose` how many candidates each trainer has trained."""
        self.trainers_ = trainers_of(found, n_candidates, self.n_splits_)
        starts = {node: parent for job in jobs for node, parent in zip(job.nodes, job.parents, strict=True)}
        cold = {node for node, trainers in enumerate(self.trainers_) if trainers.startswith("scikit-learn")}
        self.path_ = [(-1 if node in cold else starts[node], node) for node in range(n_candidates)]
        if self.verbose > 0:
            for trainer, count in Counter(self.trainers_).items():
                print(f"{count} of {n_candidates} candidates trained by {trainer or 'an unknown trainer'}")

    def _finish(
        self, X: Any, y: Any, scorers: Any, refit_metric: str, results: Any, out: list[Result], routed: Any
    ) -> None:
        """The best node, and its estimator fitted on all rows."""
        self.multimetric_ = isinstance(out[0]["test_scores"], dict)
        if callable(self.scoring) and self.multimetric_:
            check_refit(self, out[0]["test_scores"])
            refit_metric = self.refit
        if self.refit or not self.multimetric_:
            self.best_index_ = best_index(self, refit_metric, results)
            if not callable(self.refit):
                self.best_score_ = results[f"mean_test_{refit_metric}"][self.best_index_]
            self.best_params_ = results["params"][self.best_index_]
        if self.refit:
            self.best_estimator_ = clone(self.estimator).set_params(**clone(self.best_params_, safe=False))
            began = time.time()
            labels = () if y is None else (y,)
            self.best_estimator_.fit(X, *labels, **routed.estimator.fit)
            self.refit_time_ = time.time() - began
            if hasattr(self.best_estimator_, "feature_names_in_"):
                self.feature_names_in_ = self.best_estimator_.feature_names_in_
        several = scorers_by_name(scorers)
        self.scorer_ = scorers if several is None else several
        self.cv_results_ = results


@contextmanager
def _closing(results: Iterator[Any]) -> Iterator[Iterator[Any]]:
    """End what is left of the results, without joblib's warning about tasks that are cancelled."""
    try:
        yield results
    finally:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="joblib")
            warnings.filterwarnings("ignore", message=r"(?s).*tasks.*(cancelled|processed)")
            results.close()  # type: ignore[attr-defined]


def _tagged(X: Any, y: Any, setup: SearchSetup, job: Job) -> tuple[Job, list[list[Result]]]:
    return job, run_job(X, y, setup, job)


def _lost(error: BaseException) -> bool:
    """Whether an error says that a worker is lost, not that a job has failed."""
    names = {cls.__name__ for cls in type(error).__mro__}
    return bool(
        names
        & {
            "KilledWorker",
            "CancelledError",
            "FutureCancelledError",
            "TerminatedWorkerError",
            "CommClosedError",
        }
    )
