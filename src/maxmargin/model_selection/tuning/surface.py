"""Cross-validated scores as a function of the parameters: the surface that a tuner climbs.

A surface belongs to some rows and their folds. It is asked for a kernel and several values of the penalty C;
it computes distances once, each kernel matrix from them in one pass, and trains all folds along C with the
engine of the search (`maxmargin.solvers.c_path`), from the solutions of the nearest C with the same kernel.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from maxmargin._compiled.threads import Threads
from maxmargin._types import Floats, Index
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.shared import SharedKernels
from maxmargin.model_selection.counts import JobCounts
from maxmargin.model_selection.scoring import FoldModel
from maxmargin.model_selection.starts import Start, Starts

#: Training and held-out rows of a fold.
Split = tuple[Index, Index]


class Setting(NamedTuple):
    """The parameters that a chain along C has in common."""

    kernel: str
    gamma: float = 0.0
    epsilon: float = 0.0


#: A kernel, and ascending C.
Walk = tuple[Setting, Sequence[float]]
# Rows below which a second thread costs more than it gains, and settings whose solutions are kept.
_FEW_ROWS, _KEPT_SETTINGS = 500, 32


class Trained(NamedTuple):
    """Folds that were trained along C."""

    #: For each fold, values of its held-out rows: of shape (n_C, n_test, n_pairs), or (n_C, n_test).
    values: list[Floats]
    #: For each fold, which C were solved.
    solved: list[Any]
    #: One array (n_folds, n_variables) of solutions for the last C, or none.
    last: list[Floats]


class Surface(ABC):
    """The scores of an estimator on the folds of some rows.

    Parameters
    ----------
    estimator : estimator
        Has all parameters but those of the surface; not fitted.
    X, y : array-like
        The rows, scaled, and their labels or targets.
    splits : sequence of (train, test)
        The folds.
    scorer : callable
        A scorer of scikit-learn.
    weight : ndarray of shape (n_samples,) or None
        Sample weights.
    threads : Threads
        Those that train folds side by side.
    dtype : dtype
        Precision of the kernel matrices.
    """

    _model: type[FoldModel] = FoldModel

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        splits: Sequence[Split],
        scorer: Any,
        weight: Floats | None,
        threads: Threads,
        dtype: Any = np.float32,
    ) -> None:
        self.estimator, self.X, self.y, self.splits = estimator, X, y, splits
        self.scorer, self.weight, self.threads = scorer, weight, threads
        # Of each fold apart, as folds may be trained in other groups later.
        self.kernels, self.starts = SharedKernels(X, dtype), Starts(_KEPT_SETTINGS * len(splits))
        self.n_rows = X.shape[0]
        #: Decision values or predictions for the held-out rows of each fold, by setting and C.
        self.held_out: dict[tuple[Setting, float], list[Floats]] = {}
        # Threads that train folds side by side; few rows are trained faster by one.
        n_groups = min(threads.n, len(splits)) if self.n_rows >= _FEW_ROWS else 1
        self._groups = [group.tolist() for group in np.array_split(np.arange(len(splits)), n_groups)]

    @property
    def counts_rows(self) -> bool:
        """Whether a score is the share of rows that are right."""
        return False

    def median_distance(self, kernel: str) -> float:
        """The median of squared (rbf) or absolute (laplacian) distances, of the positive ones if it is 0."""
        D = self.kernels.distances(kernel)
        some = D[:: max(1, len(D) // 64)]
        middle = float(np.median(some))
        if middle <= 0:
            positive = some[some > 0]
            middle = float(np.median(positive)) if len(positive) else 1.0
        return middle

    def release(self) -> None:
        """Give back the memory of the matrices; scores cannot be asked for any more."""
        self.kernels = SharedKernels(self.X[:0], self.kernels.dtype)
        self.held_out.clear()

    def scores(self, setting: Setting, Cs: Sequence[float]) -> Floats:
        """The score of each fold, of shape (n_C, n_splits), for ascending C; NaN where it was not solved."""
        return self._scores(setting, Cs, self._groups)

    def scores_of(self, walks: Sequence[Walk]) -> list[Floats]:
        """The scores of several chains, side by side: each thread trains all folds of a chain."""
        out: list[Any] = [None] * len(walks)
        together = [list(range(len(self.splits)))]

        def train(k: int) -> None:
            out[k] = self._scores(*walks[k], together)

        if self.n_rows < _FEW_ROWS or len(walks) == 1:
            return [self.scores(*walk) for walk in walks]
        self.threads.run(train, [(k,) for k in range(len(walks))])
        return out

    def _scores(self, setting: Setting, Cs: Sequence[float], groups: list[list[int]]) -> Floats:
        K = self.kernels.matrix(Kernel(setting.kernel, gamma=setting.gamma))
        ascending = np.asarray(Cs, dtype=np.float64)
        values: list[Any] = [None] * len(self.splits)
        out = np.full((len(Cs), len(self.splits)), np.nan)
        solved = np.zeros(out.shape, np.bool_)

        def train(group: list[int]) -> None:
            found = self._trained(K, setting, ascending, group, self._start(setting, group, Cs[0]))
            for f, (k, of_fold, of_solved) in enumerate(zip(group, found.values, found.solved, strict=True)):
                values[k], solved[:, k] = of_fold, of_solved
                for last in found.last:
                    self.starts.add((setting, k), Start(float(Cs[-1]), [last[f : f + 1]]))

        self.threads.run(train, [(group,) for group in groups])
        for c, C in enumerate(Cs):
            self.held_out[setting, C] = [of_fold[c] for of_fold in values]
        for k, of_fold in enumerate(values):
            out[:, k] = self._scored(k, of_fold, setting, Cs)
        out[~solved] = np.nan
        return out

    def _start(self, setting: Setting, folds: list[int], C: float) -> Start | None:
        """Solutions of some folds for the nearest C; None if one of them has none for it."""
        found = [self.starts.nearest((setting, k), C) for k in folds]
        known = [start for start in found if start is not None]
        if len(known) < len(found) or len({start.C for start in known}) > 1:
            return None
        return Start(known[0].C, [np.concatenate([start.u[0] for start in known])])

    def baseline(self, setting: Setting) -> float:
        """The mean score of models that give all rows the same answer; -inf if the scorer refuses them."""
        key, folds = (setting, 0.0), range(len(self.splits))
        self.held_out[key] = [self._constant(k) for k in folds]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of scores that are not defined
                scores = [self._scored(k, self.held_out[key][k][None], setting, [0.0])[0] for k in folds]
        except Exception:  # it is no more than a hint, and may be anything that a user has written
            return -np.inf
        finally:
            del self.held_out[key]
        mean = float(np.mean(scores))
        return mean if np.isfinite(mean) else -np.inf

    def values_of(self, setting: Setting, C: float) -> list[Floats]:
        """Decision values or predictions for the held-out rows of each fold."""
        if (setting, C) not in self.held_out:
            self.scores(setting, [C])
        return self.held_out[setting, C]

    @abstractmethod
    def predictions(self, setting: Setting, C: float) -> Any:
        """Predictions for the held-out rows, fold by fold."""

    @abstractmethod
    def _trained(
        self, K: Any, setting: Setting, Cs: Floats, folds: list[int], start: Start | None
    ) -> Trained:
        """Train some folds for ascending C."""

    @abstractmethod
    def _constant(self, k: int) -> Floats:
        """Values for the held-out rows of fold k of a model that has learnt nothing but a constant."""

    @abstractmethod
    def _scored(self, k: int, values: Floats, setting: Setting, Cs: Sequence[float]) -> Floats:
        """Scores of fold k for every C."""

    def _by_scorer(
        self,
        k: int,
        answers: Sequence[Any],
        setting: Setting,
        Cs: Sequence[float],
        attributes: dict[str, Any],
    ) -> Floats:
        """The same by a scorer that gets a model."""
        train, test = self.training_rows(k), self.splits[k][1]
        rows, labels = self.X[test], () if self.y is None else (self.y[test],)
        out = np.empty(len(Cs))
        for c, (C, answer) in enumerate(zip(Cs, answers, strict=True)):
            model = clone(self.estimator).set_params(**self.parameters(setting, C))

            def fitted(model: Any = model) -> Any:
                given = {} if self.weight is None else {"sample_weight": self.weight[train]}
                return clone(model).fit(self.X[train], None if self.y is None else self.y[train], **given)

            stand_in = self._model(model, [(rows, answer)], fitted, attributes)
            out[c] = self.scorer(stand_in, rows, *labels)
            if stand_in.broken_ is not None:
                raise stand_in.broken_
        return out

    def parameters(self, setting: Setting, C: float) -> dict[str, Any]:
        """The parameters of a node's estimator; gamma is "scale" where the kernel has no width."""
        return {"C": float(C), "gamma": float(setting.gamma) or "scale", "kernel": setting.kernel}

    def training_rows(self, k: int) -> Index:
        """The rows that train on fold k."""
        return self.splits[k][0]


class _Counts(JobCounts):
    """Counts nothing."""

    def __init__(self) -> None:
        super().__init__(0)

    def follow(self, steps: Any, weight: float = 1.0) -> None:
        """Keep no reference."""


NOT_COUNTED = _Counts()
