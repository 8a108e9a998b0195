"""Cross-validated scores of single parameter combinations, which share matrices and starts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.validation import indexable

from maxmargin._compiled.threads import Threads
from maxmargin._types import Floats
from maxmargin.model_selection.folds import FOLDS_AT_A_TIME, Folds
from maxmargin.model_selection.jobs import Job, Key, Result, SearchSetup
from maxmargin.model_selection.pipelines import split_parameters, split_pipeline
from maxmargin.model_selection.plan import jobs_of, parents_of
from maxmargin.model_selection.runner import run_job
from maxmargin.model_selection.scoring import check_scorers
from maxmargin.model_selection.settings import keys_of
from maxmargin.model_selection.starts import Starts
from maxmargin.model_selection.supported import check_estimator, row_indices


class Evaluation(NamedTuple):
    """The scores of a parameter combination.

    Attributes
    ----------
    params : dict
        The combination.
    scores : ndarray of shape (n_splits,)
        The score of each fold.
    mean, std : float
        Their mean and standard deviation.
    seconds : float
        Time of training and scoring, all folds together.
    trainer : str
        What trained it, see `SVMSearchCV.trainers_`.
    values : list of ndarray or None
        For each fold the values of the held-out rows, where they were asked for: for a classifier of shape
        (n_held_out, n_pairs), for a regressor its predictions.
    """

    params: dict[str, Any]
    scores: Floats
    mean: float
    std: float
    seconds: float
    trainer: str
    values: list[Floats] | None = None


class Evaluator:
    """Cross-validated scores of one parameter combination after the other.

    The part of `SVMSearchCV` for programs that choose the next combination by themselves, such as Optuna:
    kernel values of all rows are computed once, a combination starts from the solutions of the nearest C with
    the same kernel, and held-out rows are scored from values that training leaves behind. The scores are
    those of fits to `tol`, whatever came before.

    Parameters
    ----------
    estimator : estimator
        An estimator of this library, or a pipeline that ends in one.
    X, y : array-like
        The data, as for `fit`.
    scoring : str or callable, default=None
        A score as in `sklearn.model_selection.cross_val_score`; None for the estimator's own.
    cv : int, splitter or iterable of splits, default=None
        As in scikit-learn: five folds by default.
    groups : array-like of shape (n_samples,), default=None
        For the splitter.
    sample_weight : array-like of shape (n_samples,), default=None
        For the estimator's `fit`.
    n_jobs : int, default=None
        Threads; None for all cores.
    memory : float, default=2000
        Megabytes that kernel matrices may take.
    keep_values : bool, default=False
        Whether evaluations have the values of held-out rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC
    >>> from maxmargin.model_selection import Evaluator
    >>> evaluator = Evaluator(SVC(), *load_iris(return_X_y=True))
    >>> round(evaluator.evaluate({"C": 1.0, "gamma": 0.1}).mean, 2)
    0.98
    >>> [round(e.mean, 2) for e in evaluator.evaluate_all([{"C": 0.01}, {"C": 10.0}])]
    [0.93, 0.98]
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        scoring: Any = None,
        cv: Any = None,
        groups: Any = None,
        sample_weight: Any = None,
        n_jobs: int | None = None,
        memory: float = 2000.0,
        keep_values: bool = False,
    ) -> None:
        check_estimator(estimator, type(self).__name__)
        self.X, self.y = indexable(X, y)
        splitter = check_cv(cv, self.y, classifier=is_classifier(estimator))
        splits = [(row_indices(a), row_indices(b)) for a, b in splitter.split(self.X, self.y, groups)]
        self.n_jobs = int(effective_n_jobs(-1 if n_jobs is None else n_jobs))
        _, _, prefix = split_pipeline(estimator)
        scorer = check_scoring(estimator, scoring)
        check_scorers(scorer, scoring, estimator, [])
        self._setup = SearchSetup(
            estimator=clone(estimator), candidates=[], splits=splits, scorers=scorer,
            fit_params={} if sample_weight is None else {f"{prefix}sample_weight": sample_weight},
            score_params={}, return_train_score=False, error_score="raise",
            folds=Folds(memory * 1e6, min(FOLDS_AT_A_TIME, self.n_jobs)), workers=self.n_jobs,
            starts=Starts(), keep_values=keep_values,
        )  # fmt: skip
        self._settings: dict[Hashable, int] = {}
        self._threads = Threads(self.n_jobs)

    @property
    def splits(self) -> list[tuple[Any, Any]]:
        """Training and held-out rows of the folds."""
        return self._setup.splits

    def evaluate(self, params: dict[str, Any]) -> Evaluation:
        """Score one parameter combination.

        Parameters
        ----------
        params : dict
            Parameters of the estimator, by name.

        Returns
        -------
        Evaluation
            Raises whatever the estimator's `fit` raises for these parameters.
        """
        return self.evaluate_all([params])[0]

    def evaluate_all(self, candidates: Sequence[dict[str, Any]]) -> list[Evaluation]:
        """Score several combinations, those with the same kernel one from the other.

        Parameters
        ----------
        candidates : sequence of dict
            The combinations.

        Returns
        -------
        list of Evaluation
            In the order of the candidates.
        """
        setup = replace(self._setup, candidates=[dict(params) for params in candidates])
        parents = parents_of(setup.estimator, setup.candidates, "auto")
        jobs = jobs_of(setup.estimator, setup.candidates, parents, len(setup.splits), self.n_jobs)
        found: dict[Key, Result] = {}

        def run(job: Job) -> None:
            results = run_job(self.X, self.y, setup, job)
            for fold, of_fold in zip(job.folds, results, strict=True):
                found.update({(fold, node): r for node, r in zip(job.nodes, of_fold, strict=True)})
            setup.counts.end(job)

        with ExitStack() as stack:
            stack.enter_context(self._threads)
            self._threads.run(run, [(self._numbered(job, setup),) for job in jobs])
        return [_evaluation(params, self._of(found, k)) for k, params in enumerate(setup.candidates)]

    def _of(self, found: dict[Key, Result], node: int) -> list[Result]:
        return [found[fold, node] for fold in range(len(self._setup.splits))]

    def _numbered(self, job: Job, setup: SearchSetup) -> Job:
        """A job with the number of its preprocessing among those of all calls."""
        _, _, prefix = split_pipeline(setup.estimator)
        key = keys_of(split_parameters(setup.candidates[job.nodes[0]], prefix)[0])
        return replace(job, setting=self._settings.setdefault(key, len(self._settings)))

    def release(self) -> None:
        """Give back the memory of the kernel matrices; they are computed again when they are needed."""
        self._setup.folds.release()


def _evaluation(params: dict[str, Any], results: list[Result]) -> Evaluation:
    scores = np.array([float(result["test_scores"]) for result in results])
    values = [result["values"] for result in results if "values" in result]
    return Evaluation(
        params=params,
        scores=scores,
        mean=float(scores.mean()),
        std=float(scores.std()),
        seconds=float(sum(result["fit_time"] + result["score_time"] for result in results)),
        trainer="; ".join(dict.fromkeys(str(result["trainer"]) for result in results)),
        values=values if len(values) == len(results) else None,
    )
