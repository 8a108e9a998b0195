"""Training by the estimator's own `fit` on the shared kernel matrix, each node from its parent's solution."""

from __future__ import annotations

import copy
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from maxmargin.estimators.one_vs_one import BaseSVC
from maxmargin.kernels.kernel import Kernel
from maxmargin.model_selection.jobs import Key, Result
from maxmargin.model_selection.nodes import invalid_parameters
from maxmargin.model_selection.refusal import Refused, because
from maxmargin.model_selection.scoring import ModelAnswers
from maxmargin.model_selection.work import FoldWork, Work


class WarmFits:
    """The estimator's own `fit`, warm-started along the chain."""

    name = "warm fits"

    def can_take(self, work: Work) -> str | None:
        """None if the nodes are estimators of this library, with parameters and data that can be used."""
        if isinstance(work.nodes, Refused):
            return work.nodes.reason
        if isinstance(work.folds, Refused):
            return work.folds.reason
        return invalid_parameters(work.nodes.estimators.values()) if work.nodes.only_c else None

    def train(self, work: Work, keys: Sequence[Key]) -> dict[Key, Result | Refused]:
        """Train and score nodes on folds."""
        wanted, out = set(keys), {}
        for fold in work.prepared[1]:
            nodes = [
                (node, parent)
                for node, parent in zip(work.job.nodes, work.job.parents, strict=True)
                if (fold.k, node) in wanted
            ]
            out.update({(fold.k, node): result for node, result in _FoldFits(fold).results(nodes).items()})
        return out


class _FoldFits:
    """The fits of a chain on one fold."""

    def __init__(self, fold: FoldWork) -> None:
        self.fold = fold
        # The kernel of the node before, and the parts of its matrix that `fit` and `predict` get.
        self._last: tuple[Kernel, tuple[Any, Any]] | None = None

    def results(self, nodes: Sequence[tuple[int, int]]) -> dict[int, Result | Refused]:
        """Results of (node, parent), parents first; a parent that is not among them is not started from."""
        models: dict[int, Any] = {}
        children = Counter(parent for _, parent in nodes)
        out: dict[int, Result | Refused] = {}
        for node, parent in nodes:
            began = time.perf_counter()
            start = models.get(parent)
            children[parent] -= 1
            if not children[parent]:
                models.pop(parent, None)
            model = self._fitted(node, start, keep=bool(children[node]))
            if isinstance(model, Refused):
                out[node] = model
                continue
            trained = time.perf_counter() - began
            if children[node]:
                models[node] = model[0]
            out[node] = self._scored(node, *model, trained)
            self.fold.counts.add()
        return out

    def _fitted(self, node: int, start: Any, keep: bool) -> tuple[Any, tuple[Any, Any]] | Refused:
        """The fitted model of a node, and what it must be given to predict held-out and training rows."""
        fold = self.fold
        fresh = clone(fold.nodes.estimators[node])
        rows = self._rows(fresh)
        if isinstance(rows, Refused):
            return rows
        fold.counts.training = True
        model = fresh
        if start is not None:
            model = copy.copy(start).set_params(**fresh.get_params(deep=False))
        # Attributes, as a subclass need not have a parameter for each.
        if start is not None or keep:
            model.warm_start = True  # both to start from the last solution and to keep the own one
        if model.n_jobs is None and fold.setup.workers > 1:
            model.n_jobs = 1  # jobs run side by side already
        if fold.fold.kernels is not None:
            model.kernel = "precomputed"
        given = {} if fold.weight is None else {"sample_weight": fold.weight}
        needs_labels = fold.labels is not None and fresh.__sklearn_tags__().target_tags.required
        labels = (fold.labels,) if needs_labels else ()
        try:
            model.fit(rows[1], *labels, **given)
        except Exception as error:
            # Not swallowed: the runner raises it unless a fit in scikit-learn's own way fails in the same
            # way, which is then reported as `GridSearchCV` does (`error_score`).
            return Refused(f"fit failed ({because(error)})", final=True, error=error)
        return model, rows

    def _rows(self, fresh: Any) -> tuple[Any, Any] | Refused:
        """Held-out and training rows as the model of a node gets them."""
        fold = self.fold.fold
        if fold.kernels is None:
            train, test = fold.rows(self.fold.nodes.kind == "given")
            return test, train
        kernel = fold.kernel_of(fresh, self.fold.weight)
        if isinstance(kernel, Refused):
            return kernel
        if self._last is None or self._last[0] != kernel:
            K = fold.matrix(kernel)
            if isinstance(K, Refused):
                return K
            parts = (K[np.ix_(fold.test, fold.train)], K[np.ix_(fold.train, fold.train)])
            self._last = (kernel, parts)
        return self._last[1]

    def _scored(self, node: int, model: Any, rows: tuple[Any, Any], trained: float) -> Result | Refused:
        began = time.perf_counter()
        answers = [ModelAnswers(model, data) for data in rows[: len(self.fold.halves)]]
        known = {name: vars(model)[name] for name in ("classes_", "quantiles_") if name in vars(model)}
        scores = self.fold.scores(node, answers, known)
        if isinstance(scores, Refused):
            return scores
        values = None
        if self.fold.setup.keep_values and isinstance(model, BaseSVC):
            values = model._pair_values(rows[0])
        return self.fold.result(scores, trained, time.perf_counter() - began, values)
