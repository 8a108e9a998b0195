"""A job with its data: the rows, labels and weights of each fold, and the scores of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from maxmargin._sklearn import check_method_params, num_samples, safe_indexing, safe_split
from maxmargin._types import Floats, Index
from maxmargin.estimators._regressor import BaseSVR
from maxmargin.estimators.targets import has_columns, regression_targets
from maxmargin.kernels.kernel import Kernel
from maxmargin.model_selection.folds import Fold
from maxmargin.model_selection.jobs import Job, Result, SearchSetup
from maxmargin.model_selection.measures import is_accuracy, share
from maxmargin.model_selection.nodes import Nodes, nodes_of
from maxmargin.model_selection.refusal import Refused, because
from maxmargin.model_selection.scoring import FoldModel, call_scorers
from maxmargin.solvers import costs

# Tolerance, relative to the largest target, below which float32 matrices are not precise enough.
_FINE_FOR_TARGETS = 1e-5
# Sample weights beyond which `fit` decides whether it takes them.
_LARGEST_WEIGHT = 1e100


class Work:
    """A job with its data, in the form that the trainers need; each part is made when it is asked for."""

    def __init__(self, X: Any, y: Any, setup: SearchSetup, job: Job) -> None:
        self.X, self.y, self.setup, self.job = X, y, setup, job
        self.counts = setup.counts.begin(job, len(job.keys))

    @cached_property
    def nodes(self) -> Nodes | Refused:
        """The estimators of the job."""
        return nodes_of(self.setup, self.job)

    @cached_property
    def folds(self) -> list[FoldWork] | Refused:
        """The folds of the job; Refused if one of them cannot be trained on prepared rows."""
        nodes = self.nodes
        if isinstance(nodes, Refused):
            return nodes
        weight = self._weights(nodes)
        if isinstance(weight, Refused):
            return weight
        # The nodes of a search are of one kind.
        problem = self.setup.memo.get("targets", lambda: self._problem_of_targets(nodes))
        if problem is not None:
            return Refused(problem)
        folds = []
        for k in self.job.folds:
            fold = _fold_work(self, nodes, k, weight)
            if isinstance(fold, Refused):
                return fold
            folds.append(fold)
        return folds

    @property
    def prepared(self) -> tuple[Nodes, list[FoldWork]]:
        """Nodes and folds, where neither is refused."""
        assert not isinstance(self.nodes, Refused) and not isinstance(self.folds, Refused)
        return self.nodes, self.folds

    def _weights(self, nodes: Nodes) -> Floats | Refused | None:
        given = dict(self.setup.fit_params)
        weight = given.pop(f"{nodes.prefix}sample_weight", None)
        others = [name for name, value in given.items() if value is not None]
        if others:
            return Refused(f"fit gets other parameters than sample_weight ({', '.join(sorted(others))})")
        if weight is None:
            return None
        try:
            weight = np.asarray(weight, dtype=np.float64)
        except (TypeError, ValueError) as error:
            return Refused(f"the sample weights are not numbers ({because(error)})")
        if weight.shape != (num_samples(self.X),) or not (np.abs(weight) <= _LARGEST_WEIGHT).all():
            return Refused("the sample weights are not one finite number per row")
        return weight

    def _problem_of_targets(self, nodes: Nodes) -> str | None:
        """The reason why y does not suit the estimator; None if it does."""
        if self.y is None:
            required = nodes.first.__sklearn_tags__().target_tags.required
            return "the estimator needs y" if required else None
        try:
            several = isinstance(nodes.first, BaseSVR) and has_columns(self.y)
            if np.ndim(self.y) != 1 and not several:
                return "y is not one-dimensional"
            if is_classifier(nodes.first):
                check_classification_targets(self.y)
            elif is_regressor(nodes.first):
                regression_targets(np.asarray(self.y), multi_output=several)
        except (TypeError, ValueError) as error:
            return f"y cannot be used ({because(error)})"
        return None


class ClassRows(NamedTuple):
    """Rows of the matrix that train, their classes by number, their factors of C, and the labels."""

    rows: Index
    label: Index
    factors: Floats
    classes: NDArray[Any]


class FoldWork:
    """A job on one fold."""

    def __init__(self, work: Work, nodes: Nodes, k: int, fold: Fold, weight: Floats | None) -> None:
        self._work, self.setup, self.nodes, self.k, self.fold = work, work.setup, nodes, k, fold
        self.counts = work.counts
        self.weight = weight
        self.split = self.setup.splits[k]
        self.labels, self.test_labels = self.setup.memo.get(("labels", k), self._labels)

    def _labels(self) -> list[NDArray[Any] | None]:
        """Labels of the training and of the held-out rows."""
        y = self._work.y
        return [None if y is None else np.asarray(safe_indexing(y, rows)) for rows in self.split]

    @cached_property
    def kept(self) -> Index:
        """Positions among the training rows of those with a positive weight."""
        n = len(self.fold.train)
        return np.arange(n) if self.weight is None else np.flatnonzero(self.weight > 0)

    @cached_property
    def kernel(self) -> Kernel | Refused:
        """The kernel of the first node."""
        return self.fold.kernel_of(self.nodes.first, self.weight)

    @cached_property
    def class_rows(self) -> ClassRows | Refused:
        """The training rows of a classifier that has `class_weight`."""
        given = self.nodes.first.class_weight
        by_name = given is None or isinstance(given, str)
        found = self.setup.memo.get(("classes", self.k, given), self._classes) if by_name else self._classes()
        return found if isinstance(found, Refused) else ClassRows(self.fold.train[self.kept], *found)

    def _classes(self) -> tuple[Index, Floats, NDArray[Any]] | Refused:
        """Classes by number and factors of C of the rows that are kept, and the labels."""
        assert self.labels is not None
        y = self.labels[self.kept]
        classes, label = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            return Refused("a fold has a single class")
        try:
            factors = compute_class_weight(self.nodes.first.class_weight, classes=classes, y=y)
        except ValueError as error:
            return Refused(f"class_weight does not suit a fold ({because(error)})")
        if (factors < 0).any():
            return Refused("class_weight has negative numbers")
        weight = factors[label] if self.weight is None else self.weight[self.kept] * factors[label]
        return label, weight, classes

    @property
    def halves(self) -> list[tuple[Index, Any]]:
        """Rows and labels that are scored: the held-out ones and, if asked for, those that train."""
        both = [(self.fold.test, self.test_labels), (self.fold.train, self.labels)]
        return both[: 1 + self.setup.return_train_score]

    @cached_property
    def by_accuracy(self) -> bool:
        """Whether the score is the accuracy, without weights."""
        if self.labels is None or self.setup.score_params:
            return False
        return is_accuracy(self.setup.scorers, self.nodes.first)

    def scores(self, node: int, answers: Sequence[Any], attributes: dict[str, Any]) -> list[Any] | Refused:
        """Scores of a node from its answers for each of the halves, and from known fitted attributes."""
        if self.by_accuracy and not any(getattr(part, "calls_user_code", False) for part in answers):
            pairs = zip(answers, self.halves, strict=True)
            return [share(part.predict() == labels) for part, (_, labels) in pairs]
        # New for every node: scorers, and steps that they call, may write into the rows that they get.
        data = [self._rows(k) for k in range(len(self.halves))]
        model = FoldModel(
            self.nodes.estimators[node],
            list(zip(data, answers, strict=True)),
            self._training_of(node, data),
            attributes,
        )
        found = []
        for k, (_, labels) in enumerate(self.halves):
            arguments = (data[k],) if labels is None else (data[k], labels)
            scores = call_scorers(self.setup.scorers, model, *arguments, **self._score_params(k))
            if isinstance(scores, Refused):
                return scores
            found.append(scores)
        return found

    def result(self, scores: Sequence[Any], trained: float, scored: float, values: Any = None) -> Result:
        """The result of a node, as that of scikit-learn's `fit_and_score`, and values of held-out rows."""
        result: Result = {"fit_error": None, "test_scores": scores[0]}
        if self.setup.return_train_score:
            result["train_scores"] = scores[1]
        result["n_test_samples"] = len(self.split[1])
        result["fit_time"], result["score_time"] = trained, scored
        if self.setup.keep_values and values is not None:
            result["values"] = values
        return result

    def _training_of(self, node: int, data: Sequence[Any]) -> Callable[[], Any]:
        """A function that fits a node's estimator, for scorers that ask for more than decision values.

        Of the rows `data` that are scored it takes the training rows, if they are among them: in scikit-learn
        too, rows that `fit` writes into are scored as it leaves them.
        """

        def train() -> Any:
            model = clone(self.setup.estimator).set_params(**clone(self.setup.candidates[node], safe=False))
            labels = () if self.labels is None else (self.labels,)
            given = {} if self.weight is None else {f"{self.nodes.prefix}sample_weight": self.weight}
            return model.fit(data[1] if len(data) > 1 else self._rows(1), *labels, **given)

        return train

    def _rows(self, k: int) -> Any:
        """A copy of the held-out (0) or the training rows (1) as a scorer gets them."""
        train, test = self.split
        rows = (train,) if k else (test, train)
        return safe_split(self.setup.estimator, self._work.X, None, *rows)[0]

    def _score_params(self, k: int) -> dict[str, Any]:
        return check_method_params(self._work.X, params=self.setup.score_params, indices=self.split[1 - k])


def _fold_work(work: Work, nodes: Nodes, k: int, weight: Floats | None) -> FoldWork | Refused:
    train, test = work.setup.splits[k]
    if not (len(train) and len(test)):
        return Refused("a fold has no rows")
    finest = costs.ROUGH
    if isinstance(nodes.first, BaseSVR):
        targets = regression_targets(np.asarray(safe_indexing(work.y, train)), multi_output=True)
        finest = max(finest, _FINE_FOR_TARGETS * float(np.max(np.abs(targets), initial=0.0)))
    dtype = np.float32 if nodes.tol >= finest else np.float64
    fold = work.setup.folds.get(
        work.X, work.y, k, (train, test), nodes.before, dtype, nodes.kind, work.job.setting
    )
    if isinstance(fold, Refused):
        return fold
    found = FoldWork(work, nodes, k, fold, None if weight is None else weight[train])
    if not len(found.kept):
        return Refused("no training row of a fold has a positive weight")
    if is_classifier(nodes.first) and found.labels is not None:
        y = found.labels[found.kept]
        if (y == y[0]).all():
            return Refused("a fold has a single class")
    return found
