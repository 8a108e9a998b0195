"""Training along C by compiled code: hinge SVCs and SVRs, all folds of a kernel matrix in one call.

The engine is `maxmargin.solvers.c_path`. It keeps the decision values of all rows of the matrix, so that
held-out rows need no prediction.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._types import Floats
from maxmargin.estimators.svc import SVC
from maxmargin.estimators.svr import SVR
from maxmargin.estimators.targets import regression_targets
from maxmargin.model_selection.counts import JobCounts
from maxmargin.model_selection.jobs import Key, Result
from maxmargin.model_selection.measures import (
    class_shares,
    regression_measure,
    regression_scores,
    two_class_shares,
)
from maxmargin.model_selection.nodes import Nodes
from maxmargin.model_selection.overrides import overridden
from maxmargin.model_selection.pipelines import split_pipeline
from maxmargin.model_selection.refusal import Refused
from maxmargin.model_selection.scoring import PairAnswers, TargetAnswers, asks_for_probabilities
from maxmargin.model_selection.settings import keys_of
from maxmargin.model_selection.starts import Start, Starts
from maxmargin.model_selection.trainers.class_pairs import ClassPairs, FoldLabels
from maxmargin.model_selection.work import ClassRows, FoldWork, Work

_UNSOLVED = Refused("not solved within the budget of the C path")


class Trained(NamedTuple):
    """A fold for every C: values of the rows of each half that is scored, and which C were solved.

    The values have the shape (n_C, n_rows, n_pairs) of a classifier or (n_C, n_rows) of a regressor;
    `winners`, of shape (n_C, n_rows), are the classes with the most votes, where there are more than two.
    """

    values: list[Floats]
    solved: NDArray[np.bool_]
    winners: list[NDArray[np.intp]] | None = None


def has_c_path(estimator: Any) -> bool:
    """Whether an estimator is of a kind that compiled code can train along C."""
    return isinstance(estimator, SVC | SVR) and not overridden(type(estimator))


class CPath:
    """One compiled call for a chain of ascending C and all its folds."""

    name = "C path"

    def can_take(self, work: Work) -> str | None:
        """None if the nodes are hinge SVCs or SVRs in which nothing but C changes, upwards."""
        if isinstance(work.nodes, Refused):
            return work.nodes.reason
        problem = _problem_of_nodes(work.nodes)
        if problem is not None:
            return problem
        if asks_for_probabilities(work.setup.scorers):
            return "the scorer asks for probabilities, which a fit has"
        if isinstance(work.folds, Refused):
            return work.folds.reason
        if np.ndim(work.y) > 1:
            return "the C path trains one target"
        for fold in work.folds:
            if fold.fold.kernels is None:
                return "the kernel matrices would take more than `memory`"
            if isinstance(fold.kernel, Refused):
                return fold.kernel.reason
            if isinstance(work.nodes.first, SVC) and isinstance(fold.class_rows, Refused):
                return fold.class_rows.reason
        return None

    def train(self, work: Work, keys: Sequence[Key]) -> dict[Key, Result | Refused]:
        """Train and score nodes on folds."""
        nodes, folds = work.prepared
        Cs = np.array([nodes.estimators[node].C for node in work.job.nodes], dtype=np.float64)
        shared = all(f.fold.kernels is folds[0].fold.kernels and f.kernel == folds[0].kernel for f in folds)
        out: dict[Key, Result | Refused] = {}
        for group in [folds] if shared else [[fold] for fold in folds]:
            began = time.perf_counter()
            trained = _trained(nodes, group, Cs, _Chain.of(work, [fold.k for fold in group]))
            seconds = (time.perf_counter() - began) / (len(group) * len(Cs))
            for k, fold in enumerate(group):
                if isinstance(trained, Refused):
                    found: Sequence[Result | Refused] = [trained] * len(Cs)
                elif isinstance(nodes.first, SVR):
                    found = _scored_targets(fold, work.job.nodes, trained[k], seconds)
                else:
                    found = _scored_classes(fold, work.job.nodes, trained[k], seconds)
                out.update({(fold.k, node): r for node, r in zip(work.job.nodes, found, strict=True)})
        return {key: out[key] for key in keys}


def _problem_of_nodes(nodes: Nodes) -> str | None:
    """The reason why the nodes are not a path along C."""
    first = nodes.first
    if not has_c_path(first):
        return f"the C path trains SVC and SVR, not {type(first).__name__}"
    loss = "hinge" if isinstance(first, SVC) else "epsilon_insensitive"
    if first.loss != loss:
        return f"the C path trains loss={loss!r}, not {first.loss!r}"
    if getattr(first, "bias", "free") != "free":
        return f"the C path trains bias='free', not {first.bias!r}"
    if first.solver not in ("auto", "batch"):
        return f"the C path belongs to the solver 'auto', not to {first.solver!r}"
    if first.max_iter != -1 or first.max_time is not None:
        return "max_iter and max_time are limits of single fits"
    if not nodes.only_c:
        return "other parameters than C change along the chain"
    Cs = [estimator.C for estimator in nodes.estimators.values()]
    if not all(isinstance(C, Real) and 0 < float(C) < np.inf for C in Cs):
        return "C must be a positive number, and finite"
    if not np.all(np.diff(np.array(Cs, dtype=np.float64)) > 0):
        return "C does not ascend along the chain"
    return None


class _Chain(NamedTuple):
    """Where the solutions of a chain are kept, for jobs that go on along C."""

    starts: Starts | None
    key: Hashable

    @staticmethod
    def of(work: Work, folds: Sequence[int]) -> _Chain:
        starts = work.setup.starts
        if starts is None:
            return _Chain(None, None)
        _, _, prefix = split_pipeline(work.setup.estimator)
        common = {k: v for k, v in work.setup.candidates[work.job.nodes[0]].items() if k != f"{prefix}C"}
        return _Chain(starts, (keys_of(common), work.job.setting, tuple(folds)))

    def begin(self, Cs: Floats) -> Start | None:
        return None if self.starts is None else self.starts.nearest(self.key, float(Cs[0]))

    def end(self, Cs: Floats, u: list[Floats]) -> None:
        if self.starts is not None:
            self.starts.add(self.key, Start(float(Cs[-1]), u))


def _trained(nodes: Nodes, folds: list[FoldWork], Cs: Floats, chain: _Chain) -> list[Trained] | Refused:
    """Train all C of folds that share a kernel matrix."""
    kernel = folds[0].kernel
    assert not isinstance(kernel, Refused)
    K = folds[0].fold.matrix(kernel)
    if isinstance(K, Refused):
        return K
    counts = folds[0].counts
    counts.training = True
    first = nodes.first
    if isinstance(first, SVR):
        return _regression(K, folds, Cs, float(first.tol), float(first.epsilon), counts, chain)
    # Folds with the same classes are trained together.
    groups: dict[Any, list[int]] = {}
    for k, fold in enumerate(folds):
        groups.setdefault(tuple(_classes_of(fold).tolist()), []).append(k)
    found: dict[int, Trained] = {}
    for members in groups.values():
        part = chain._replace(key=(chain.key, *members))
        trained = _classification(K, [folds[k] for k in members], Cs, float(first.tol), counts, part)
        found.update(zip(members, trained, strict=True))
    return [found[k] for k in range(len(folds))]


def _class_rows(fold: FoldWork) -> ClassRows:
    part = fold.class_rows
    assert not isinstance(part, Refused)
    return part


def _classes_of(fold: FoldWork) -> NDArray[Any]:
    return _class_rows(fold).classes


def _regression(
    K: Any,
    folds: list[FoldWork],
    Cs: Floats,
    tol: float,
    epsilon: float,
    counts: JobCounts,
    chain: _Chain,
) -> list[Trained]:
    """For each fold the predictions of an SVR for all rows of K."""
    from maxmargin.solvers.c_path.path import solve_folds  # compiled: not at import
    from maxmargin.solvers.c_path.starts import carried

    n = len(K)
    masks, y, weight = np.zeros((len(folds), n), np.bool_), np.zeros(n), np.ones(n)
    for mask, fold in zip(masks, folds, strict=True):
        rows = fold.fold.train[fold.kept]
        mask[rows], y[rows] = True, regression_targets(fold.labels)[fold.kept]
        weight[rows] = 1.0 if fold.weight is None else fold.weight[fold.kept]
    start = chain.begin(Cs)
    warm = None if start is None else carried(start.u[0], start.C, float(Cs[0]), weight)
    found = solve_folds(
        K, y, masks, Cs, tol=tol, weight=weight, warm=warm, epsilon=epsilon, monitor=counts.follow
    )
    chain.end(Cs, [np.stack([path.u[-1] for path in found])])
    return [
        Trained([path.decision[:, rows] for rows, _ in fold.halves], path.solved)
        for fold, path in zip(folds, found, strict=True)
    ]


def _classification(
    K: Any, folds: list[FoldWork], Cs: Floats, tol: float, counts: JobCounts, chain: _Chain
) -> list[Trained]:
    """For each fold the values of all class pairs; the folds have the same classes."""
    training, keep = [_class_rows(fold) for fold in folds], chain.starts is not None
    labels = FoldLabels(training, len(K))
    pairs = ClassPairs(K, labels, Cs, tol, counts, chain.begin(Cs), keep)
    halves = [[rows for rows, _ in fold.halves] for fold in folds]
    scored = np.concatenate([rows for of_fold in halves for rows in of_fold]).astype(np.int64, copy=False)
    ends = np.cumsum([0, *(sum(map(len, of_fold)) for of_fold in halves)])
    values, solved = pairs.values(scored, ends)
    chain.end(Cs, pairs.last)
    winners = None
    if labels.n_classes > 2 and all(fold.by_accuracy for fold in folds):
        from maxmargin.estimators._votes import winners_of_pairs  # compiled: not at import

        winners = winners_of_pairs(values, labels.n_classes)
    out, at = [], 0
    for of_fold, of_solved in zip(halves, solved, strict=True):
        parts = []
        for rows in of_fold:
            parts.append(slice(at, at + len(rows)))
            at += len(rows)
        voted = None if winners is None else [winners[:, part] for part in parts]
        out.append(Trained([np.moveaxis(values[:, :, part], 0, 2) for part in parts], of_solved, voted))
    return out


def _scored_classes(
    fold: FoldWork, nodes: Sequence[int], trained: Trained, seconds: float
) -> list[Result | Refused]:
    """Results of an SVC on a fold, for every C."""
    began = time.perf_counter()
    classes, values = _classes_of(fold), trained.values
    labels = [labels for _, labels in fold.halves]
    by_votes = len(classes) == 2 or not fold.nodes.first.break_ties
    if fold.by_accuracy and by_votes:
        if trained.winners is None:
            pairs = zip(values, labels, strict=True)
            shares = [two_class_shares(part[:, :, 0], right, classes) for part, right in pairs]
        else:
            votes = zip(trained.winners, labels, strict=True)
            shares = [class_shares(winners, right, classes) for winners, right in votes]
        return _results(fold, shares, trained, seconds, (time.perf_counter() - began) / len(nodes))
    estimators = [fold.nodes.estimators[node] for node in nodes]
    answers = (
        [PairAnswers(estimator, classes, part[c]) for part in values]
        for c, estimator in enumerate(estimators)
    )
    return _one_by_one(fold, nodes, answers, {"classes_": classes}, trained, seconds)


def _scored_targets(
    fold: FoldWork, nodes: Sequence[int], trained: Trained, seconds: float
) -> list[Result | Refused]:
    """Results of an SVR on a fold, for every C."""
    began, values = time.perf_counter(), trained.values
    measure = None
    if not fold.setup.score_params:
        measure = regression_measure(fold.setup.scorers, fold.nodes.first)
    if measure is not None:
        quick = [
            regression_scores(measure, part, regression_targets(targets))
            for part, (_, targets) in zip(values, fold.halves, strict=True)
        ]
        known = [part for part in quick if part is not None]
        if len(known) == len(quick):
            return _results(fold, known, trained, seconds, (time.perf_counter() - began) / len(nodes))
    answers = ([TargetAnswers(part[c]) for part in values] for c in range(len(nodes)))
    return _one_by_one(fold, nodes, answers, {}, trained, seconds)


def _results(
    fold: FoldWork, scores: Sequence[Floats], trained: Trained, seconds: float, scored: float
) -> list[Result | Refused]:
    """Results from the scores of each half, for every C."""
    return [
        fold.result([float(part[c]) for part in scores], seconds, scored, trained.values[0][c])
        if solved
        else _UNSOLVED
        for c, solved in enumerate(trained.solved)
    ]


def _one_by_one(
    fold: FoldWork,
    nodes: Sequence[int],
    answers: Iterable[Sequence[Any]],
    attributes: dict[str, Any],
    trained: Trained,
    seconds: float,
) -> list[Result | Refused]:
    """Results by the scorer, which is called for every C."""
    out: list[Result | Refused] = []
    for c, (node, of_node, solved) in enumerate(zip(nodes, answers, trained.solved, strict=True)):
        began = time.perf_counter()
        scores = fold.scores(node, of_node, attributes) if solved else _UNSOLVED
        if not isinstance(scores, Refused):
            scored = time.perf_counter() - began
            out.append(fold.result(scores, seconds, scored, trained.values[0][c]))
        else:
            out.append(scores)
    return out
