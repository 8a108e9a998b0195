"""Train the nodes of a chain, each from the solution of its parent, and score them.

A chain is the unit of parallel work: whatever starts from another node's solution does so inside a chain. An
`SVR`, or each pair of classes of a hinge `SVC`, is trained by one compiled call where C grows along the chain
(`maxmargin.solvers.c_path`); every other estimator by its own `fit` on the shared kernel matrix; what
neither can take, scikit-learn's own way.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from numbers import Real
from typing import Any

import numpy as np
from sklearn import config_context, get_config
from sklearn.base import clone
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from maxmargin._sklearn import (
    MultimetricScorer,
    fit_and_score,
    safe_indexing,
    safe_split,
    validate_parameters,
)
from maxmargin._types import Floats, Index
from maxmargin.estimators.base import BaseSVM
from maxmargin.estimators.svr import SVR, _targets
from maxmargin.model_selection.folds import Fold, Folds, kind_of, split_parameters, split_pipeline
from maxmargin.model_selection.scoring import (
    FoldModel,
    is_accuracy,
    regression_measure,
    regression_scores,
    share,
)

Result = dict[str, Any]
_TROUBLE = (ArithmeticError, AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError)
# Largest tolerance at which float32 matrices are not good enough.
_FINE = 1e-4
# Tolerance, relative to the largest target, below which they are not either.
_FINE_FOR_TARGETS = 1e-5


@dataclass(frozen=True)
class Chain:
    """Folds, nodes in the order in which they are trained, and the node that each starts from, or -1."""

    folds: tuple[int, ...]
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
    jobs: int = 1
    # scikit-learn's configuration, which every thread has its own of.
    config: dict[str, Any] = field(default_factory=get_config)


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


def run_chain(X: Any, y: Any, task: Task, chain: Chain) -> list[list[Result]]:
    """Results of a chain, for each fold those of its nodes, as scikit-learn's `cv_results_` is made of."""
    with config_context(**task.config):
        return _run_chain(X, y, task, chain)


def _run_chain(X: Any, y: Any, task: Task, chain: Chain) -> list[list[Result]]:
    try:
        nodes = _Nodes(task, chain)
        runs = [_Run(X, y, task, chain, nodes, fold) for fold in chain.folds]
        paths = _c_paths(runs)
        return [run.results() for run in runs] if paths is None else paths
    except _TROUBLE:
        pass
    # Whatever is wrong is found, reported and counted as scikit-learn does it; not inside the handler, as its
    # report would tell of this way too.
    return [[_usual(X, y, task, fold, node) for node in chain.nodes] for fold in chain.folds]


def _usual(X: Any, y: Any, task: Task, fold: int, node: int) -> Result:
    """Train and score one node in scikit-learn's own way."""
    train, test = task.splits[fold]
    result: Result = fit_and_score(
        clone(task.estimator), X, y, scorer=task.scorers, train=train, test=test, verbose=0,
        parameters=task.candidates[node], fit_params=task.fit_params, score_params=task.score_params,
        return_train_score=task.return_train_score, return_parameters=False, return_n_test_samples=True,
        return_times=True, error_score=task.error_score,
    )  # fmt: skip
    return result


def _overridden(estimator: Any) -> bool:
    """Whether a subclass of somebody else's has methods of its own that are given data."""
    names = ("fit", "predict", "decision_function", "score", "score_samples")
    for name in names:
        owner = next((cls for cls in type(estimator).__mro__ if name in vars(cls)), None)
        if owner is not None and owner.__module__.partition(".")[0] not in ("maxmargin", "sklearn"):
            return True
    return False


def _may_be_indefinite(estimator: Any) -> bool:
    return estimator.kernel == "sigmoid" or (estimator.kernel == "poly" and estimator.coef0 < 0)


class _Nodes:
    """The estimators of a chain's nodes, and what comes before them in a pipeline."""

    def __init__(self, task: Task, chain: Chain) -> None:
        self.before, last, self.prefix = split_pipeline(task.estimator)
        if not isinstance(last, BaseSVM):
            raise NotImplementedError("an estimator that keeps its own matrix")
        if _overridden(last):
            raise NotImplementedError("a subclass whose own methods must see the data")
        outer, _ = split_parameters(task.candidates[chain.nodes[0]], self.prefix)
        if self.before is not None and outer:
            self.before = clone(self.before).set_params(**outer)
        self.last = last
        names = set(last.get_params(deep=False))
        self.estimators: dict[int, Any] = {}
        for node in chain.nodes:
            _, own = split_parameters(task.candidates[node], self.prefix)
            if not names.issuperset(own):
                raise ValueError("a parameter that the estimator does not have")
            estimator = copy.copy(last)  # a clone costs as much as a fit of some hundred rows
            for name, value in own.items():
                setattr(estimator, name, value)
            self.estimators[node] = estimator
        self.first = self.estimators[chain.nodes[0]]
        validate_parameters(self.first)
        kinds = {kind_of(estimator) for estimator in self.estimators.values()}
        if len(kinds) > 1:
            raise NotImplementedError("a path between kernels that read X in different ways")
        self.kind = kinds.pop()
        if any(_may_be_indefinite(estimator) for estimator in self.estimators.values()):
            raise NotImplementedError("a kernel with several solutions: a start decides which is found")
        self.tol = min(estimator.tol for estimator in self.estimators.values())
        self.quick = is_accuracy(task.scorers, last) and not task.score_params
        self.regression = type(last) is SVR
        self.measure = None
        if self.regression and not task.score_params:
            self.measure = regression_measure(task.scorers, last)
        self.c_path = self._is_c_path(task, chain)

    def _is_c_path(self, task: Task, chain: Chain) -> bool:
        """Whether it is a hinge `SVC`, or an `SVR`, in which nothing but C changes, upwards."""
        from maxmargin.estimators.svc import SVC

        first = self.first
        hinge = type(first) is SVC and first.loss == "hinge" and first.probability in ("deprecated", False)
        tube = self.regression and first.loss == "epsilon_insensitive"
        if not (hinge or tube) or first.solver not in ("auto", "batch"):
            return False
        if first.max_iter != -1 or first.max_time is not None:
            return False
        base = task.candidates[chain.nodes[0]]
        for node in chain.nodes:
            params = task.candidates[node]
            if any(k != f"{self.prefix}C" and not _same(v, base.get(k)) for k, v in params.items()):
                return False
        Cs = [self.estimators[node].C for node in chain.nodes]
        if not all(isinstance(C, Real) for C in Cs):
            return False
        return bool(Cs[0] > 0 and np.all(np.diff(Cs) > 0) and np.isfinite(Cs).all())


class _Run:
    """One chain at work on one fold."""

    def __init__(self, X: Any, y: Any, task: Task, chain: Chain, nodes: _Nodes, fold: int) -> None:
        self.X, self.y, self.task, self.chain, self.nodes = X, y, task, chain, nodes
        self.split, self.prefix = task.splits[fold], nodes.prefix
        self.weight = self._training_weights()
        self._parts: tuple[Any, Any, Any] | None = None
        self.labels = None if y is None else np.asarray(safe_indexing(y, self.split[0]))
        self.test_labels = None if y is None else np.asarray(safe_indexing(y, self.split[1]))
        least = _FINE
        if nodes.regression:
            least = max(least, _FINE_FOR_TARGETS * float(np.max(np.abs(_targets(self.labels)), initial=0.0)))
        self.fold = folds_of(task).get(
            X, y, fold, self.split, nodes.before, np.float32 if nodes.tol >= least else np.float64, nodes.kind
        )  # fmt: skip

    def _training_weights(self) -> Floats | None:
        given = dict(self.task.fit_params)
        weight = given.pop(f"{self.prefix}sample_weight", None)
        if any(value is not None for value in given.values()):
            raise NotImplementedError("other parameters of fit")
        return None if weight is None else np.asarray(weight, dtype=np.float64)[self.split[0]]

    # -- hinge SVC, or SVR, along C, see `_c_paths` ------------------------------------------------

    def training_targets(self) -> tuple[Index, Floats, Floats]:
        """Rows of the matrix that train, their targets and factors of C."""
        assert self.labels is not None
        if self.labels.ndim != 1:
            raise NotImplementedError("targets in a column")
        weight = np.ones(len(self.fold.train)) if self.weight is None else self.weight
        kept = np.flatnonzero(weight > 0)
        if not len(kept):
            raise ValueError("no row with a positive weight")
        return self.fold.train[kept], _targets(self.labels)[kept], weight[kept]

    def scored_targets(self, values: Floats, trained: float) -> list[Result]:
        """Results from `values`: for every C and row of the matrix a prediction."""
        began = time.perf_counter()
        halves = [(self.fold.test, self.test_labels), (self.fold.train, self.labels)]
        halves = halves[: 1 + self.task.return_train_score]
        if self.nodes.measure is not None:
            quick = [
                regression_scores(self.nodes.measure, values[:, rows], _targets(targets))
                for rows, targets in halves
            ]
            known = [part for part in quick if part is not None]
            if len(known) == len(halves):
                scored = (time.perf_counter() - began) / len(values)
                return [
                    self._result([float(part[c]) for part in known], trained, scored)
                    for c in range(len(values))
                ]
        out = []
        for value, node in zip(values, self.chain.nodes, strict=True):
            began = time.perf_counter()
            methods = [{"predict": lambda rows=rows, value=value: value[rows]} for rows, _ in halves]
            scores = self._score_by(self.nodes.estimators[node], methods, {}, node)
            out.append(self._result(scores, trained, time.perf_counter() - began))
        return out

    def training_rows(self) -> tuple[Index, Index, Floats, Any]:
        """Rows of the matrix that train, their classes and factors of C, and the labels."""
        assert self.labels is not None
        weight = np.ones(len(self.fold.train)) if self.weight is None else self.weight
        kept = np.flatnonzero(weight > 0)
        classes, label = np.unique(self.labels[kept], return_inverse=True)
        if len(classes) < 2:
            raise ValueError("a fold with one class")
        factors = compute_class_weight(self.nodes.first.class_weight, classes=classes, y=self.labels[kept])
        if (factors < 0).any():
            raise ValueError("class_weight must not be negative.")
        return self.fold.train[kept], label, weight[kept] * factors[label], classes

    def scored_path(self, values: Floats, classes: Any, trained: float) -> list[Result]:
        """Results from `values`: for every C and row of the matrix one column per pair of classes."""
        began = time.perf_counter()
        halves = [(self.fold.test, self.test_labels), (self.fold.train, self.labels)]
        halves = halves[: 1 + self.task.return_train_score]
        if self.nodes.quick and len(classes) == 2:
            shares = [_shares(values[:, rows, 0] >= 0, labels, classes) for rows, labels in halves]
            scored = (time.perf_counter() - began) / len(values)
            return [
                self._result([float(part[c]) for part in shares], trained, scored) for c in range(len(values))
            ]
        out, scores = [], []
        for value, node in zip(values, self.chain.nodes, strict=True):
            began = time.perf_counter()
            estimator = copy.copy(self.nodes.estimators[node])
            estimator.classes_ = classes
            methods = [_from_values(estimator, value[rows]) for rows, _ in halves]
            if self.nodes.quick:
                pairs = zip(methods, halves, strict=True)
                scores = [share(answers["predict"]() == labels) for answers, (_, labels) in pairs]
            else:
                scores = self._score_by(self.nodes.estimators[node], methods, {"classes_": classes}, node)
            out.append(self._result(scores, trained, time.perf_counter() - began))
        return out

    # -- every other estimator -----------------------------------------------------------------

    def results(self) -> list[Result]:
        """Train by the estimator's own `fit`."""
        fold = self.fold
        models: dict[int, Any] = {}
        children = {p: sum(q == p for q in self.chain.parents) for p in self.chain.parents}
        out = []
        for node, parent in zip(self.chain.nodes, self.chain.parents, strict=True):
            began = time.perf_counter()
            fresh = clone(self.nodes.estimators[node])
            validate_parameters(fresh)
            model = fresh
            warm = parent in models
            if warm:
                model = copy.copy(models[parent]).set_params(**fresh.get_params(deep=False))
                children[parent] -= 1
                if not children[parent]:
                    del models[parent]
            # It tells `fit` both to start from the last solution and to keep its own for the next.
            if warm or children.get(node, 0):
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
        if model.n_jobs is None and self.task.jobs > 1:
            model.set_params(n_jobs=1)  # chains run side by side already
        if fold.kernels is None:
            inner, outer = fold.rows(self.nodes.kind == "given")
        else:
            K = fold.kernels.matrix(fold.kernel_of(fresh, self.weight))
            model.set_params(kernel="precomputed")
            if self._parts is None or self._parts[0] is not K:
                self._parts = (K, K[np.ix_(fold.train, fold.train)], K[np.ix_(fold.test, fold.train)])
            _, inner, outer = self._parts
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
        if self.nodes.quick:
            pairs = zip(halves, (self.test_labels, self.labels), strict=False)
            scores: Any = [share(methods["predict"]() == labels) for methods, labels in pairs]
        else:
            known = {"classes_": model.classes_} if hasattr(model, "classes_") else {}
            scores = self._score_by(fresh, halves, known, node)
        return self._result(scores, trained, time.perf_counter() - began)

    # -- scores --------------------------------------------------------------------------------

    def _score_by(self, estimator: Any, halves: list[Any], known: dict[str, Any], node: int) -> list[Any]:
        """Any scorer, on the held-out rows and, if asked for, on the training rows."""
        data = self._data
        truth = [self.test_labels, self.labels]

        def train() -> Any:
            model = clone(self.task.estimator).set_params(**clone(self.task.candidates[node], safe=False))
            labels = () if self.labels is None else (self.labels,)
            given = {} if self.weight is None else {f"{self.prefix}sample_weight": self.weight}
            return model.fit(data[1], *labels, **given)

        model = FoldModel(estimator, list(zip(data, halves, strict=False)), train, known)
        out = []
        for k in range(len(halves)):
            arguments = (data[k],) if truth[k] is None else (data[k], truth[k])
            scores = self.task.scorers(model, *arguments, **self._score_params(k))
            if isinstance(scores, dict):
                if isinstance(self.task.scorers, MultimetricScorer):
                    failed = [v for v in scores.values() if isinstance(v, str)]
                    if failed:
                        raise ValueError(failed[0])
                scores = {name: _number(value) for name, value in scores.items()}
            else:
                scores = _number(scores)
            out.append(scores)
        return out

    @cached_property
    def _data(self) -> list[Any]:
        """Held-out and training rows as a scorer gets them."""
        train, test = self.split
        whole = (self.task.estimator, self.X, None)
        return [safe_split(*whole, test, train)[0], safe_split(*whole, train)[0]]

    def _score_params(self, k: int) -> dict[str, Any]:
        rows = self.split[1 - k]
        return {
            name: safe_indexing(value, rows) if hasattr(value, "__len__") else value
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


def _shares(second: Any, labels: Any, classes: Any) -> Floats:
    """Of two classes, for every C the share of rows that are given the right one."""
    right = np.where(second, labels == classes[1], labels == classes[0])
    return np.count_nonzero(right, axis=1) / right.shape[1]


def _number(score: Any) -> Any:
    value = score.item() if hasattr(score, "item") else score
    if not isinstance(value, int | float | bool | np.number):
        raise ValueError(f"scoring must return a number, got {score!r} ({type(score)}) instead.")
    return value


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and bool(np.all(a == b)))


def _methods(model: Any) -> list[str]:
    return [name for name in ("predict", "decision_function", "score_samples") if hasattr(model, name)]


def _c_paths(runs: list[_Run]) -> list[list[Result]] | None:
    """Results of hinge SVCs, or SVRs, along C on folds of one matrix; None if that is not what they are."""
    nodes = runs[0].nodes
    if not nodes.c_path or any(run.fold.kernels is None for run in runs):
        return None
    began = time.perf_counter()
    first = runs[0]
    if not nodes.regression:
        check_classification_targets(first.y)
    kernels = [run.fold.kernel_of(nodes.first, run.weight) for run in runs]
    together = all(
        r.fold.kernels is first.fold.kernels and k == kernels[0] for r, k in zip(runs, kernels, strict=True)
    )
    if not together:
        return [found[0] for run in runs if (found := _c_paths([run])) is not None]
    assert first.fold.kernels is not None
    K = first.fold.kernels.matrix(kernels[0])
    Cs = np.array([nodes.estimators[node].C for node in first.chain.nodes], dtype=np.float64)
    if nodes.regression:
        predictions = _tube_values(K, runs, Cs)
        trained = (time.perf_counter() - began) / (len(runs) * len(Cs))
        return [run.scored_targets(part, trained) for run, part in zip(runs, predictions, strict=True)]
    parts = [run.training_rows() for run in runs]
    groups: dict[Any, list[int]] = {}
    for k, (*_, classes) in enumerate(parts):
        groups.setdefault(tuple(classes.tolist()), []).append(k)
    values: dict[int, Floats] = {}
    for members in groups.values():
        of_folds = _pair_values(K, [parts[k] for k in members], Cs, float(nodes.first.tol))
        values.update(zip(members, of_folds, strict=True))
    trained = (time.perf_counter() - began) / (len(runs) * len(Cs))
    return [run.scored_path(values[k], parts[k][3], trained) for k, run in enumerate(runs)]


def _tube_values(K: Any, runs: list[_Run], Cs: Floats) -> list[Floats]:
    """For each fold the predictions (n_C, n) of an SVR for all rows of K."""
    from maxmargin.solvers.c_path.path import solve_folds  # compiled: not at import

    first = runs[0].nodes.first
    n = len(K)
    masks, y, weight = np.zeros((len(runs), n), np.bool_), np.zeros(n), np.ones(n)
    for mask, run in zip(masks, runs, strict=True):
        rows, targets, factors = run.training_targets()
        mask[rows], y[rows], weight[rows] = True, targets, factors
    found = solve_folds(K, y, masks, Cs, tol=float(first.tol), weight=weight, epsilon=float(first.epsilon))
    if not all(path.solved.all() for path in found):
        raise RuntimeError("not solved within the engine's budget")
    return [path.decision for path in found]


def _pair_values(K: Any, parts: list[Any], Cs: Floats, tol: float) -> list[Floats]:
    """For each fold the values (n_C, n, n_pairs) of all rows of K; the folds have the same classes."""
    from maxmargin.solvers.c_path.path import solve_folds  # compiled: not at import

    n, k = len(K), len(parts[0][3])
    pairs = list(combinations(range(k), 2))
    out = [np.empty((len(pairs), len(Cs), n)) for _ in parts]
    classes, factors = np.full((len(parts), n), -1), np.ones((len(parts), n))
    for f, (rows, label, weight, _) in enumerate(parts):
        classes[f, rows], factors[f, rows] = label, weight
    # A row has the same class in all folds that it is in; its factor may differ ("balanced").
    whose = classes.max(axis=0)
    same = bool(np.all((classes < 0) | (factors == factors.max(axis=0, where=classes >= 0, initial=0.0))))
    for p, (a, b) in enumerate(pairs):
        rows = np.flatnonzero((whose == a) | (whose == b))
        # scikit-learn's signs: the second class is positive if there are two, else the first.
        y = np.where(whose[rows] == a, 1.0, -1.0) * (-1.0 if k == 2 else 1.0)
        block = K if len(rows) == n else np.ascontiguousarray(K[np.ix_(rows, rows)])
        masks = classes[:, rows] >= 0
        if same:
            weight = factors[:, rows].max(axis=0, where=masks, initial=0.0)
            found = solve_folds(block, y, masks, Cs, tol=tol, weight=np.where(weight > 0, weight, 1.0))
        else:
            each = zip(masks, factors[:, rows], strict=True)
            found = [solve_folds(block, y, mask[None], Cs, tol=tol, weight=w)[0] for mask, w in each]
        if not all(path.solved.all() for path in found):
            raise RuntimeError("not solved within the engine's budget")
        if len(rows) == n:
            for f, path in enumerate(found):
                out[f][p] = path.decision
            continue
        columns = K[rows].astype(np.float64, copy=False)  # K is symmetric
        u, offset = np.stack([path.u for path in found]), np.stack([path.offset for path in found])
        values = u.reshape(-1, len(rows)) @ columns - offset.reshape(-1, 1)
        for f, value in enumerate(values.reshape(len(found), len(Cs), n)):
            out[f][p] = value
    return [np.moveaxis(values, 0, 2) for values in out]


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
