r"""Surfaces of estimators with nu, which are trained by their own `fit` on shared kernel matrices.

A tuner walks along a number that grows with how closely a model fits, as C does. Here it is the s of
:math:`\nu = \nu_{\max} / (1 + s)`: decades of s cover all of :math:`(0, \nu_{\max})`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from maxmargin._compiled.limits import Stopped, current
from maxmargin._types import Floats, Index, Mask
from maxmargin.model_selection.starts import Start
from maxmargin.model_selection.tuning.classes import ClassSurface
from maxmargin.model_selection.tuning.surface import Setting, Surface, Trained, Walk

# Below the largest nu by so much, against rounding.
_MARGIN = 1e-9
# The tolerance, relative to that of the others, of models whose hulls seem to intersect.
_FINER = 1e-3


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

    def values(
        self,
        K: Any,
        setting: Setting,
        steps: Floats,
        k: int,
        rows: Index,
        most: float,
        evaluate: Callable[[Any, Any], Floats],
        width: int,
    ) -> tuple[Floats, Mask]:
        """Values of the held-out rows of fold k for each step, and whether its problem was solved.

        The models are trained on `rows` of the matrix, which allow a nu of at most `most`. Values are
        ``evaluate(model, kernel values)``, of `width` columns; zeros where there was no time for them.
        """
        other = K[np.ix_(self._surface.splits[k][1], rows)]
        values, solved = np.zeros((len(steps), len(other), width)), np.zeros(len(steps), np.bool_)
        for c, (model, ok) in enumerate(self._models(K, setting, steps, k, rows, most)):
            try:
                values[c] = evaluate(model, other) if ok else 0.0
                solved[c] = ok
            except Stopped:
                pass  # the time was up between training and prediction
        return values, solved

    def _models(
        self, K: Any, setting: Setting, steps: Floats, k: int, rows: Index, most: float
    ) -> Iterator[tuple[Any, bool]]:
        """The fitted model of each step, and whether it was solved."""
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
            model.fit(own, labels, **given)
            if getattr(model, "_touches", False):  # or it is not accurate enough to decide
                model.set_params(tol=_FINER * surface.estimator.tol).fit(own, labels, **given)
            # Where hulls intersect predictions are arbitrary, and so are their scores.
            arbitrary = getattr(model, "_touches", False)
            yield model, model.status_ not in ("max_time", "interrupted") and not arbitrary
        self._last[k] = (setting, model)


class QuietSurface(Surface):
    """A surface whose models are trained without warnings.

    They would be of a margin that vanishes, or of too little time: the score says so. Filters belong to all
    threads, so they are set around those that train.
    """

    def scores(self, setting: Setting, Cs: Sequence[float]) -> Floats:
        """The score of each fold, see `Surface.scores`."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return super().scores(setting, Cs)

    def scores_of(self, walks: Sequence[Walk]) -> list[Floats]:
        """The scores of several chains, see `Surface.scores_of`."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return super().scores_of(walks)


class NuClassSurface(QuietSurface, ClassSurface):
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
            n_classes = len(np.unique(of_fold.label))
            of_values, of_solved = self._chains.values(
                K, setting, Cs, k, of_fold.rows, largest_nu(of_fold.label, of_fold.factors), _pair_values,
                n_classes * (n_classes - 1) // 2,
            )  # fmt: skip
            values.append(of_values)
            solved.append(of_solved)
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


class OneClassSurface(QuietSurface):
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
            of_values, of_solved = self._chains.values(K, setting, Cs, k, rows, 1.0, _one_class_values, 2)
            values.append(of_values)
            solved.append(of_solved)
        return Trained(values, solved, [])

    def _constant(self, k: int) -> Floats:
        return np.ones((len(self.splits[k][1]), 2))

    def _scored(self, k: int, values: Floats, setting: Setting, Cs: Sequence[float]) -> Floats:
        return self._by_scorer(k, [OneClassAnswers(part) for part in values], setting, Cs, {})

    def predictions(self, setting: Setting, C: float) -> Any:
        """1 for inliers and -1 for outliers among the held-out rows, fold by fold."""
        return np.concatenate([OneClassAnswers(part).predict() for part in self.values_of(setting, C)])


def _pair_values(model: Any, K: Any) -> Floats:
    """One column per pair of classes."""
    return np.asarray(model._pair_values(K)).reshape(len(K), -1)


def _one_class_values(model: Any, K: Any) -> Floats:
    """Decision values, and those without the offset."""
    return np.column_stack([model.decision_function(K), model.score_samples(K)])


def _with_nu(parameters: dict[str, Any], nu: float) -> dict[str, Any]:
    """The parameters with nu in place of C."""
    return {"nu": nu, **{name: value for name, value in parameters.items() if name != "C"}}
