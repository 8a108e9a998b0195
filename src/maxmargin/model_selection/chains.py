"""Train the nodes of a chain on a fold, each from the solution of its parent, and score them.

A chain is the unit of parallel work: whatever starts from another node's solution does so inside a chain. A
hinge `SVC` whose C grows along the chain is trained by one compiled call per pair of classes
(`maxmargin.model_selection.c_path`); every other estimator by its own `fit` on the shared kernel matrix; what
neither can take, scikit-learn's own way.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics._scorer import _MultimetricScorer
from sklearn.model_selection._validation import _fit_and_score
from sklearn.utils import _safe_indexing
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from maxmargin.model_selection.folds import Fold, Folds, split_parameters, split_pipeline
from maxmargin.model_selection.scoring import FoldModel, is_accuracy, share

Floats = NDArray[np.float64]
Index = NDArray[np.intp]
Result = dict[str, Any]
# Largest tolerance at which float32 matrices are not good enough.
_FINE = 1e-4


@dataclass(frozen=True)
class Chain:
    """Nodes of a fold in the order in which they are trained, and the node that each starts from, or -1."""

    fold: int
    nodes: tuple[int, ...]
    parents: tuple[int, ...]


@dataclass(frozen=True)
class Task:
    """What all chains of a search have in common, but for the data."""

    estimator: Any
    candidates: list[dict[str, Any]]
    splits: list[tuple[Index, Index]]
    scorers: Any
    fit_params: dict[str, Any]
    score_params: dict[str, Any]
    return_train_score: bool
    error_score: Any
    memory: float
    token: str
    caller: Any = field(default=None, repr=False)


# The folds of the search that runs in this process; a new search forgets those of the last one.
_folds: dict[str, Folds] = {}


def folds_of(task: Task) -> Folds:
    """The folds of a search, made once per process."""
    found = _folds.get(task.token)
    if found is None:
        _folds.clear()
        found = _folds.setdefault(task.token, Folds(task.memory))
    return found


def forget(token: str) -> None:
    """Give back the memory of a search."""
    _folds.pop(token, None)


def run_chain(X: Any, y: Any, task: Task, chain: Chain) -> list[Result]:
    """Results of a chain's nodes, in the chain's order, as scikit-learn's `cv_results_` is made of."""
    try:
        return _Run(X, y, task, chain).results()
    except (ArithmeticError, AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError):
        # Whatever is wrong is found, reported and counted as scikit-learn does it.
        return [_usual(X, y, task, chain.fold, node) for node in chain.nodes]


def _usual(X: Any, y: Any, task: Task, fold: int, node: int) -> Result:
    """Train and score one node in scikit-learn's own way."""
    train, test = task.splits[fold]
    result: Result = _fit_and_score(
        clone(task.estimator), X, y, scorer=task.scorers, train=train, test=test, verbose=0,
        parameters=task.candidates[node], fit_params=task.fit_params, score_params=task.score_params,
        return_train_score=task.return_train_score, return_parameters=False, return_n_test_samples=True,
        return_times=True, error_score=task.error_score,
    )  # fmt: skip
    return result


class _Run:
    """One chain at work."""

    def __init__(self, X: Any, y: Any, task: Task, chain: Chain) -> None:
        self.X, self.y, self.task, self.chain = X, y, task, chain
        self.split = task.splits[chain.fold]
        self.before, last, self.prefix = split_pipeline(task.estimator)
        self.last = clone(last)
        self.weight = self._training_weights()
        outer, _ = split_parameters(task.candidates[chain.nodes[0]], self.prefix)
        if self.before is not None and outer:
            self.before = clone(self.before).set_params(**outer)
        self.labels = None if y is None else np.asarray(_safe_indexing(y, self.split[0]))
        self.test_labels = None if y is None else np.asarray(_safe_indexing(y, self.split[1]))

    def _training_weights(self) -> Floats | None:
        given = dict(self.task.fit_params)
        weight = given.pop(f"{self.prefix}sample_weight", None)
        if any(value is not None for value in given.values()):
            raise NotImplementedError("other parameters of fit")
        return None if weight is None else np.asarray(weight, dtype=np.float64)[self.split[0]]

    def _estimator(self, node: int) -> Any:
        _, own = split_parameters(self.task.candidates[node], self.prefix)
        return clone(self.last).set_params(**clone(own, safe=False))

    def results(self) -> list[Result]:
        first = self._estimator(self.chain.nodes[0])
        first._validate_params()
        dtype = np.float32 if first.tol >= _FINE else np.float64
        fold = folds_of(self.task).get(
            self.X, self.y, self.chain.fold, self.split, self.before, dtype, callable(first.kernel)
        )
        if self._is_path(first, fold):
            return self._c_path(first, fold)
        return self._one_by_one(fold)

    # -- hinge SVC along C ---------------------------------------------------------------------

    def _is_path(self, first: Any, fold: Fold) -> bool:
        from maxmargin.svc import SVC

        plain = type(first) is SVC and first.loss == "hinge" and first.solver in ("auto", "batch")
        unlimited = plain and first.max_iter == -1 and first.max_time is None
        if not unlimited or fold.kernels is None or first.probability not in ("deprecated", False):
            return False
        varying = set()
        for node in self.chain.nodes:
            params = self.task.candidates[node]
            base = self.task.candidates[self.chain.nodes[0]]
            varying |= {k for k in params if not _same(params[k], base.get(k))}
        Cs = [self._estimator(node).C for node in self.chain.nodes]
        return varying <= {f"{self.prefix}C"} and bool(np.all(np.diff(Cs) > 0) and np.isfinite(Cs).all())

    def _c_path(self, first: Any, fold: Fold) -> list[Result]:
        began = time.perf_counter()
        assert fold.kernels is not None and self.labels is not None
        estimators = [self._estimator(node) for node in self.chain.nodes]
        for estimator in estimators:
            estimator._validate_params()
        check_classification_targets(self.labels)
        K = fold.kernels.matrix(fold.kernel_of(first, self.weight))
        weight = np.ones(len(fold.train)) if self.weight is None else self.weight
        kept = np.flatnonzero(weight > 0)
        classes, label = np.unique(self.labels[kept], return_inverse=True)
        if len(classes) < 2:
            raise ValueError("a fold with one class")
        factors = compute_class_weight(first.class_weight, classes=classes, y=self.labels[kept])
        weight = weight[kept] * factors[label]
        values = _pair_paths(K, fold, fold.train[kept], label, weight, estimators, len(classes))
        trained = (time.perf_counter() - began) / len(estimators)
        return [
            self._scored(estimator, classes, value, trained, node)
            for estimator, value, node in zip(estimators, values, self.chain.nodes, strict=True)
        ]

    def _scored(self, estimator: Any, classes: Any, values: Any, trained: float, node: int) -> Result:
        """`values`: those of held-out and of training rows, per pair of classes, one column for two."""
        began = time.perf_counter()
        estimator.classes_ = classes
        quick = is_accuracy(self.task.scorers, self.last) and not self.task.score_params
        halves = []
        for value, labels in zip(values, (self.test_labels, self.labels), strict=True):
            if value is None:
                continue
            methods = _from_values(estimator, value)
            halves.append(share(methods["predict"]() == labels) if quick else methods)
        scores = halves if quick else self._score_by(estimator, halves, {"classes_": classes}, node)
        return self._result(scores, trained, time.perf_counter() - began)

    # -- every other estimator -----------------------------------------------------------------

    def _one_by_one(self, fold: Fold) -> list[Result]:
        models: dict[int, Any] = {}
        children = {p: sum(q == p for q in self.chain.parents) for p in self.chain.parents}
        out = []
        for node, parent in zip(self.chain.nodes, self.chain.parents, strict=True):
            began = time.perf_counter()
            fresh = self._estimator(node)
            model = fresh
            if parent in models:
                model = copy.copy(models[parent]).set_params(**fresh.get_params(deep=False))
                children[parent] -= 1
                if not children[parent]:
                    del models[parent]
            if "warm_start" in fresh.get_params() and children.get(node, 0):
                model.set_params(warm_start=True)
            rows = self._fit(model, fresh, fold)
            trained = time.perf_counter() - began
            if children.get(node, 0):
                models[node] = model
            out.append(self._judged(model, fresh, rows, trained, node))
        return out

    def _fit(self, model: Any, fresh: Any, fold: Fold) -> tuple[Any, Any]:
        """Train; what the model must be given to speak of the held-out and of the training rows."""
        given = {} if self.weight is None else {"sample_weight": self.weight}
        labels = () if self.labels is None else (self.labels,)
        if fold.kernels is None:
            inner, outer = (_safe_indexing(fold.X, rows) for rows in (fold.train, fold.test))
        else:
            K = fold.kernels.matrix(fold.kernel_of(fresh, self.weight))
            model.set_params(kernel="precomputed")
            inner, outer = K[np.ix_(fold.train, fold.train)], K[np.ix_(fold.test, fold.train)]
        if self.labels is not None and fresh.__sklearn_tags__().target_tags.required:
            model.fit(inner, *labels, **given)
        else:
            model.fit(inner, **given)
        return outer, inner

    def _judged(self, model: Any, fresh: Any, rows: tuple[Any, Any], trained: float, node: int) -> Result:
        began = time.perf_counter()
        halves = [
            {name: (lambda name=name, data=data: getattr(model, name)(data)) for name in _methods(model)}
            for data in (rows if self.task.return_train_score else rows[:1])
        ]
        if is_accuracy(self.task.scorers, self.last) and not self.task.score_params:
            pairs = zip(halves, (self.test_labels, self.labels), strict=False)
            scores: Any = [share(methods["predict"]() == labels) for methods, labels in pairs]
        else:
            known = {"classes_": model.classes_} if hasattr(model, "classes_") else {}
            scores = self._score_by(fresh, halves, known, node)
        return self._result(scores, trained, time.perf_counter() - began)

    # -- scores --------------------------------------------------------------------------------

    def _score_by(self, estimator: Any, halves: list[Any], known: dict[str, Any], node: int) -> list[Any]:
        """Any scorer, on the held-out rows and, if asked for, on the training rows."""
        data = [_safe_indexing(self.X, rows) for rows in (self.split[1], self.split[0])]
        truth = [self.test_labels, self.labels]

        def train() -> Any:
            model = clone(self.task.estimator).set_params(**clone(self.task.candidates[node], safe=False))
            labels = () if self.labels is None else (self.labels,)
            given = {} if self.weight is None else {f"{self.prefix}sample_weight": self.weight}
            return model.fit(_safe_indexing(self.X, self.split[0]), *labels, **given)

        model = FoldModel(estimator, list(zip(data, halves, strict=False)), train, known)
        out = []
        for k in range(len(halves)):
            arguments = (data[k],) if truth[k] is None else (data[k], truth[k])
            scores = self.task.scorers(model, *arguments, **self._score_params(k))
            if isinstance(scores, dict):
                if isinstance(self.task.scorers, _MultimetricScorer):
                    failed = [v for v in scores.values() if isinstance(v, str)]
                    if failed:
                        raise ValueError(failed[0])
                scores = {name: _number(value) for name, value in scores.items()}
            else:
                scores = _number(scores)
            out.append(scores)
        return out

    def _score_params(self, k: int) -> dict[str, Any]:
        rows = self.split[1 - k]
        return {
            name: _safe_indexing(value, rows) if hasattr(value, "__len__") else value
            for name, value in self.task.score_params.items()
            if value is not None
        }

    def _result(self, scores: Any, trained: float, scored: float) -> Result:
        result: Result = {"fit_error": None, "test_scores": scores[0]}
        if self.task.return_train_score:
            result["train_scores"] = scores[1]
        result["n_test_samples"] = len(self.split[1])
        result["fit_time"], result["score_time"] = trained, scored
        return result


def _number(score: Any) -> Any:
    value = score.item() if hasattr(score, "item") else score
    if not isinstance(value, int | float | bool | np.number):
        raise ValueError(f"scoring must return a number, got {score!r} ({type(score)}) instead.")
    return value


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and bool(np.all(a == b)))


def _methods(model: Any) -> list[str]:
    return [name for name in ("predict", "decision_function", "score_samples") if hasattr(model, name)]


def _pair_paths(
    K: Any, fold: Fold, rows: Index, label: Index, weight: Floats, estimators: list[Any], k: int
) -> list[tuple[Any, Any]]:
    """For every C the values of held-out and of training rows, one column per pair of classes."""
    from maxmargin.model_selection.c_path import solve_c_path  # compiled: not at import

    Cs = np.array([estimator.C for estimator in estimators], dtype=np.float64)
    tol = float(estimators[0].tol)
    pairs = list(combinations(range(k), 2))
    test = np.empty((len(Cs), len(fold.test), len(pairs)))
    train = np.empty((len(Cs), len(fold.train), len(pairs)))
    for p, pair in enumerate(pairs):
        own = np.flatnonzero((label == pair[0]) | (label == pair[1]))
        # scikit-learn's signs: the second class is positive if there are two, else the first.
        sign = np.where(label[own] == pair[0], 1.0, -1.0) * (-1.0 if k == 2 else 1.0)
        y, factor, mask = np.ones(len(K)), np.ones(len(K)), np.zeros(len(K), np.bool_)
        y[rows[own]], factor[rows[own]], mask[rows[own]] = sign, weight[own], True
        found = solve_c_path(K, y, mask, Cs, tol=tol, weight=factor)
        if not found.solved.all():
            raise RuntimeError("not solved within the engine's budget")
        test[:, :, p], train[:, :, p] = found.decision[:, fold.test], found.decision[:, fold.train]
    return [(test[c], train[c]) for c in range(len(Cs))]


def _from_values(estimator: Any, values: Floats) -> dict[str, Callable[[], Any]]:
    """`SVC.decision_function` and `SVC.predict` from the values of the pairs."""
    answers = copy.copy(estimator)
    answers._pair_values = lambda X: values
    answers._sklearn_output_config = {}
    answers.n_features_in_ = 0
    return {
        "predict": lambda: answers.predict(None),
        "decision_function": lambda: answers.decision_function(None),
    }
