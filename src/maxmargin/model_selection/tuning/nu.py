r"""Surfaces of estimators with nu, which are trained by their own `fit` on shared kernel matrices.

A tuner walks along a number that grows with how closely a model fits, as C does. Here it is the s of
:math:`\nu = \nu_{\max} / (1 + s)`: decades of s cover all of :math:`(0, \nu_{\max})`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from maxmargin._compiled.limits import current
from maxmargin._types import Floats, Index
from maxmargin.model_selection.starts import Start
from maxmargin.model_selection.tuning.classes import ClassSurface
from maxmargin.model_selection.tuning.surface import Setting, Surface, Trained

# Below the largest nu by so much, against rounding.
_MARGIN = 1e-9


def largest_nu(label: Index, weight: Floats | None = None) -> float:
    """The largest nu for which every pair of classes has a solution.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.model_selection.tuning.nu import largest_nu
    >>> round(largest_nu(np.array([0, 0, 0, 1])), 6)
    0.5
    """
    size = np.bincount(label, weight)
    size = size[size > 0]
    return float((1.0 - _MARGIN) * 2.0 * size.min() / (size.min() + size.max()))


class NuChains:
    """Fits along nu on the folds of a surface, each from the solution before.

    Parameters
    ----------
    surface : Surface
        Has the estimator and the folds.
    largest : float
        The largest nu.
    """

    def __init__(self, surface: Surface, largest: float) -> None:
        self._surface, self.largest = surface, largest
        # The last model of each fold, with its kernel: the next one starts from its solution.
        self._last: dict[int, tuple[Setting, Any]] = {}

    def nu(self, step: float) -> float:
        """The value of nu at a step of the walk."""
        return self.largest / (1.0 + step)

    def models(
        self, K: Any, setting: Setting, steps: Floats, k: int, rows: Index, most: float
    ) -> Iterator[tuple[Any, bool]]:
        """The fitted model of each step, trained on `rows` of the matrix, and whether it was solved.

        `most` is the largest nu that these rows allow.
        """
        surface = self._surface
        before = self._last.get(k)
        model = before[1] if before is not None and before[0] == setting else clone(surface.estimator)
        own = K[np.ix_(rows, rows)]
        given: dict[str, Any] = {} if surface.weight is None else {"sample_weight": surface.weight[rows]}
        labels = None if surface.y is None else surface.y[rows]
        for step in steps:
            limit = current()
            left = None if limit.deadline is None else max(0.0, limit.deadline - time.perf_counter())
            model.set_params(
                nu=min(self.nu(step), most), kernel="precomputed", tol=surface.estimator.tol, n_jobs=1,
                max_time=0.0 if limit.over else left, warm_start=True,
            )  # fmt: skip
            with warnings.catch_warnings():
                # A margin that vanishes, or too little time: the score says so.
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(own, labels, **given)
            yield model, model.status_ not in ("max_time", "interrupted")
        self._last[k] = (setting, model)


class NuClassSurface(ClassSurface):
    """The scores of a `NuSVC`."""

    def __init__(self, *args: Any, largest: float, **shared: Any) -> None:
        super().__init__(*args, **shared)
        self._chains = NuChains(self, largest)

    def parameters(self, setting: Setting, C: float) -> dict[str, Any]:
        """Those of a `NuSVC`."""
        return _with_nu(super().parameters(setting, C), self._chains.nu(C))

    def _trained(
        self, K: Any, setting: Setting, Cs: Floats, folds: list[int], start: Start | None
    ) -> Trained:
        values, solved = [], []
        for k in folds:
            of_fold = self.rows[k]
            other = K[np.ix_(self.splits[k][1], of_fold.rows)]
            most = largest_nu(of_fold.label, of_fold.factors)
            found = [
                (model._pair_values(other).reshape(len(other), -1), ok)
                for model, ok in self._chains.models(K, setting, Cs, k, of_fold.rows, most)
            ]
            values.append(np.stack([v for v, _ in found]))
            solved.append(np.array([ok for _, ok in found]))
        return Trained(values, solved, [])


class OneClassAnswers:
    """The answers of a one-class SVM for some rows: decision values, and those without the offset."""

    def __init__(self, values: Floats) -> None:
        self._values = values

    def decision_function(self) -> Floats:
        """Positive for inliers."""
        return self._values[:, 0]

    def score_samples(self) -> Floats:
        """The decision values without the offset."""
        return self._values[:, 1]

    def predict(self) -> Any:
        """1 for inliers, -1 for outliers."""
        return np.where(self._values[:, 0] > 0, 1, -1)


class OneClassSurface(Surface):
    """The scores of a `OneClassSVM`.

    Parameters
    ----------
    *args, **shared
        See `Surface`; y is None, or 1 for inliers and -1 for outliers.
    only_inliers : bool
        Whether rows that are labelled as outliers do not train.
    """

    def __init__(self, *args: Any, only_inliers: bool, **shared: Any) -> None:
        super().__init__(*args, **shared)
        self._only_inliers = only_inliers
        self._chains = NuChains(self, 1.0)

    def parameters(self, setting: Setting, C: float) -> dict[str, Any]:
        """Those of a `OneClassSVM`."""
        return _with_nu(super().parameters(setting, C), self._chains.nu(C))

    def training_rows(self, k: int) -> Index:
        """The rows that train on fold k."""
        train = self.splits[k][0]
        if self._only_inliers:
            train = train[self.y[train] > 0]
        if self.weight is not None:
            train = train[self.weight[train] > 0]
        if not len(train):
            raise ValueError(f"Fold {k} has no inliers with a positive weight to train on: use fewer folds.")
        return train

    def _trained(
        self, K: Any, setting: Setting, Cs: Floats, folds: list[int], start: Start | None
    ) -> Trained:
        values, solved = [], []
        for k in folds:
            rows = self.training_rows(k)
            other = K[np.ix_(self.splits[k][1], rows)]
            found = [
                (np.column_stack([model.decision_function(other), model.score_samples(other)]), ok)
                for model, ok in self._chains.models(K, setting, Cs, k, rows, 1.0)
            ]
            values.append(np.stack([v for v, _ in found]))
            solved.append(np.array([ok for _, ok in found]))
        return Trained(values, solved, [])

    def _scored(self, k: int, values: Floats, setting: Setting, Cs: Sequence[float]) -> Floats:
        return self._by_scorer(k, [OneClassAnswers(part) for part in values], setting, Cs, {})

    def predictions(self, setting: Setting, C: float) -> Any:
        """1 for inliers and -1 for outliers among the held-out rows, fold by fold."""
        return np.concatenate([OneClassAnswers(part).predict() for part in self.values_of(setting, C)])


def _with_nu(parameters: dict[str, Any], nu: float) -> dict[str, Any]:
    """The parameters with nu in place of C."""
    return {"nu": nu, **{name: value for name, value in parameters.items() if name != "C"}}
