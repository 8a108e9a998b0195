"""Training along C by compiled code: hinge SVCs and SVRs, all folds of a kernel matrix in one call.

The engine is `maxmargin.solvers.c_path`. It keeps the decision values of all rows of the matrix, so that
held-out rows need no prediction.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import combinations
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
from maxmargin.model_selection.measures import regression_measure, regression_scores, two_class_shares
from maxmargin.model_selection.nodes import Nodes
from maxmargin.model_selection.overrides import overridden
from maxmargin.model_selection.refusal import Refused
from maxmargin.model_selection.scoring import PairAnswers, TargetAnswers
from maxmargin.model_selection.work import ClassRows, FoldWork, Work

_UNSOLVED = Refused("not solved within the budget of the C path")


class Trained(NamedTuple):
    """Values of all rows of a matrix on one fold, for every C, and which C were solved.

    The values have the shape (n_C, n, n_pairs) of a classifier or (n_C, n) of a regressor.
    """

    values: Floats
    solved: NDArray[np.bool_]


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
        if isinstance(work.folds, Refused):
            return work.folds.reason
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
            trained = _trained(nodes, group, Cs)
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
    if isinstance(first, SVC) and first.probability not in ("deprecated", False):
        return "probability=True is not supported"
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


def _trained(nodes: Nodes, folds: list[FoldWork], Cs: Floats) -> list[Trained] | Refused:
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
        return _regression(K, folds, Cs, float(first.tol), float(first.epsilon), counts)
    parts = [fold.class_rows for fold in folds]
    # Folds with the same classes are trained together.
    groups: dict[Any, list[int]] = {}
    known: list[ClassRows] = [part for part in parts if not isinstance(part, Refused)]
    for k, part in enumerate(known):
        groups.setdefault(tuple(part.classes.tolist()), []).append(k)
    found: dict[int, Trained] = {}
    for members in groups.values():
        trained = _classification(K, [known[k] for k in members], Cs, float(first.tol), counts)
        found.update(zip(members, trained, strict=True))
    return [found[k] for k in range(len(folds))]


def _regression(
    K: Any, folds: list[FoldWork], Cs: Floats, tol: float, epsilon: float, counts: JobCounts
) -> list[Trained]:
    """For each fold the predictions of an SVR for all rows of K."""
    from maxmargin.solvers.c_path.path import solve_folds  # compiled: not at import

    n = len(K)
    masks, y, weight = np.zeros((len(folds), n), np.bool_), np.zeros(n), np.ones(n)
    for mask, fold in zip(masks, folds, strict=True):
        rows = fold.fold.train[fold.kept]
        mask[rows], y[rows] = True, regression_targets(fold.labels)[fold.kept]
        weight[rows] = 1.0 if fold.weight is None else fold.weight[fold.kept]
    found = solve_folds(K, y, masks, Cs, tol=tol, weight=weight, epsilon=epsilon, monitor=counts.follow)
    return [Trained(path.decision, path.solved) for path in found]


def _classification(
    K: Any, parts: list[ClassRows], Cs: Floats, tol: float, counts: JobCounts
) -> list[Trained]:
    """For each fold the pair values of all rows of K; the folds have the same classes."""
    from maxmargin.solvers.c_path.path import solve_folds  # compiled: not at import

    n, k = len(K), len(parts[0].classes)
    pairs = list(combinations(range(k), 2))
    # A node is finished when all its pairs are.
    options: dict[str, Any] = {"tol": tol, "monitor": partial(counts.follow, weight=1.0 / len(pairs))}
    out = [np.empty((len(pairs), len(Cs), n)) for _ in parts]
    solved = np.ones((len(parts), len(Cs)), np.bool_)
    classes, factors = np.full((len(parts), n), -1), np.ones((len(parts), n))
    for f, part in enumerate(parts):
        classes[f, part.rows], factors[f, part.rows] = part.label, part.factors
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
            found = solve_folds(block, y, masks, Cs, weight=np.where(weight > 0, weight, 1.0), **options)
        else:
            each = zip(masks, factors[:, rows], strict=True)
            found = [solve_folds(block, y, mask[None], Cs, weight=w, **options)[0] for mask, w in each]
        solved &= np.stack([path.solved for path in found])
        if len(rows) == n:
            for f, path in enumerate(found):
                out[f][p] = path.decision
            continue
        columns = K[rows].astype(np.float64, copy=False)  # K is symmetric
        u, offset = np.stack([path.u for path in found]), np.stack([path.offset for path in found])
        values = u.reshape(-1, len(rows)) @ columns - offset.reshape(-1, 1)
        for f, value in enumerate(values.reshape(len(found), len(Cs), n)):
            out[f][p] = value
    return [Trained(np.moveaxis(values, 0, 2), solved[f]) for f, values in enumerate(out)]


def _scored_classes(
    fold: FoldWork, nodes: Sequence[int], trained: Trained, seconds: float
) -> list[Result | Refused]:
    """Results of an SVC on a fold, for every C."""
    began = time.perf_counter()
    part, values = fold.class_rows, trained.values
    assert not isinstance(part, Refused)
    classes = part.classes
    if fold.by_accuracy and len(classes) == 2:
        shares = [two_class_shares(values[:, rows, 0], labels, classes) for rows, labels in fold.halves]
        return _results(fold, shares, trained, seconds, (time.perf_counter() - began) / len(values))
    estimators = [fold.nodes.estimators[node] for node in nodes]
    answers = (
        [PairAnswers(estimator, classes, value[rows]) for rows, _ in fold.halves]
        for estimator, value in zip(estimators, values, strict=True)
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
            regression_scores(measure, values[:, rows], regression_targets(targets))
            for rows, targets in fold.halves
        ]
        known = [part for part in quick if part is not None]
        if len(known) == len(quick):
            return _results(fold, known, trained, seconds, (time.perf_counter() - began) / len(values))
    answers = ([TargetAnswers(value[rows]) for rows, _ in fold.halves] for value in values)
    return _one_by_one(fold, nodes, answers, {}, trained, seconds)


def _results(
    fold: FoldWork, scores: Sequence[Floats], trained: Trained, seconds: float, scored: float
) -> list[Result | Refused]:
    """Results from the scores of each half, for every C."""
    return [
        fold.result([float(part[c]) for part in scores], seconds, scored) if solved else _UNSOLVED
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
    for node, of_node, solved in zip(nodes, answers, trained.solved, strict=True):
        began = time.perf_counter()
        scores = fold.scores(node, of_node, attributes) if solved else _UNSOLVED
        if not isinstance(scores, Refused):
            out.append(fold.result(scores, seconds, time.perf_counter() - began))
        else:
            out.append(scores)
    return out
