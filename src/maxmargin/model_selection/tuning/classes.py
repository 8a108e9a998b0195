"""The surface of a classifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight

from maxmargin._types import Floats
from maxmargin.estimators.calibration import CALIBRATORS
from maxmargin.model_selection.measures import class_shares, is_accuracy, two_class_shares
from maxmargin.model_selection.scoring import FoldModel, PairAnswers
from maxmargin.model_selection.starts import Start
from maxmargin.model_selection.trainers.class_pairs import ClassPairs, FoldLabels
from maxmargin.model_selection.tuning.surface import NOT_COUNTED, Setting, Surface, Trained
from maxmargin.model_selection.work import ClassRows


class ProbabilityAnswers(PairAnswers):
    """The answers of an `SVC` for some rows, probabilities included."""

    def __init__(self, estimator: Any, classes: Any, values: Floats, calibrator: Callable[[], Any]) -> None:
        super().__init__(estimator, classes, values)
        self._calibrator = calibrator

    def predict_proba(self) -> Floats:
        """Probabilities by sigmoids that were fitted to other held-out rows."""
        return np.asarray(self._calibrator().predict_proba(self._values))

    def predict_log_proba(self) -> Floats:
        """Their logarithms."""
        return np.log(self.predict_proba())


class ProbabilityModel(FoldModel):
    """A fold's model that has probabilities for the rows that are known."""

    def predict_proba(self, X: Any) -> Any:
        """The probabilities of the classes."""
        return self._answer("predict_proba", X)

    def predict_log_proba(self, X: Any) -> Any:
        """Their logarithms."""
        return self._answer("predict_log_proba", X)


class ClassSurface(Surface):
    """The scores of an `SVC`."""

    _model = ProbabilityModel

    @cached_property
    def _labels(self) -> dict[tuple[int, ...], FoldLabels]:
        """Classes of the folds that were trained together."""
        return {}

    @cached_property
    def rows(self) -> list[ClassRows]:
        """The training rows of each fold that have a weight."""
        found = []
        for k, (train, _) in enumerate(self.splits):
            kept = train if self.weight is None else train[self.weight[train] > 0]
            y = self.y[kept]
            classes, label = np.unique(y, return_inverse=True)
            if len(classes) < 2:
                raise ValueError(
                    f"Fold {k} has training rows of one class only: every class needs at least two rows, in "
                    "different folds. Add rows of the rare class, or use a splitter that keeps the classes "
                    "in proportion (StratifiedKFold)."
                )
            factors = np.ones(len(y))
            if self.estimator.class_weight is not None:
                factors = compute_class_weight(self.estimator.class_weight, classes=classes, y=y)[label]
            if self.weight is not None:
                factors = factors * self.weight[kept]
            found.append(ClassRows(kept, label, factors, classes))
        return found

    @cached_property
    def counts_rows(self) -> bool:
        """Whether the score is the accuracy."""
        return is_accuracy(self.scorer, self.estimator)

    def _trained(
        self, K: Any, setting: Setting, Cs: Floats, folds: list[int], start: Start | None
    ) -> Trained:
        same: dict[Any, list[int]] = {}
        for k in folds:
            same.setdefault(tuple(self.rows[k].classes.tolist()), []).append(k)
        if len(same) > 1:  # folds without one of the classes are trained apart, from zero
            alone = [self._trained(K, setting, Cs, [k], None) for k in folds]
            return Trained([part.values[0] for part in alone], [part.solved[0] for part in alone], [])
        labels = self._labels.get(tuple(folds))
        if labels is None:
            labels = self._labels[tuple(folds)] = FoldLabels([self.rows[k] for k in folds], len(K))
        pairs = ClassPairs(K, labels, Cs, self.estimator.tol, NOT_COUNTED, start, keep=True)
        tests = [self.splits[k][1] for k in folds]
        scored = np.concatenate(tests).astype(np.int64, copy=False)
        ends = np.cumsum([0, *map(len, tests)])
        values, solved = pairs.values(scored, ends)
        found = [np.moveaxis(values[:, :, a:b], 0, 2) for a, b in zip(ends, ends[1:], strict=False)]
        return Trained(found, list(solved), pairs.last)

    def _constant(self, k: int) -> Floats:
        """The class with the largest weight wins against all others."""
        rows = self.rows[k]
        largest = int(np.argmax(np.bincount(rows.label, rows.factors)))
        if len(rows.classes) == 2:  # of two classes the second is positive
            pairs = np.array([2.0 * largest - 1.0])
        else:
            first, second = np.triu_indices(len(rows.classes), 1)
            pairs = (first == largest) - (second == largest).astype(np.float64)
        return np.tile(pairs, (len(self.splits[k][1]), 1))

    def _scored(self, k: int, values: Floats, setting: Setting, Cs: Sequence[float]) -> Floats:
        classes, labels = self.rows[k].classes, self.y[self.splits[k][1]]
        if not self.counts_rows:
            answers = [
                ProbabilityAnswers(self.estimator, classes, part, partial(self._calibrator, k, setting, C))
                for C, part in zip(Cs, values, strict=True)
            ]
            return self._by_scorer(k, answers, setting, Cs, {"classes_": classes})
        if len(classes) == 2:
            return two_class_shares(values[:, :, 0], labels, classes)
        from maxmargin.estimators._votes import winners_of_pairs  # compiled: not at import

        return class_shares(winners_of_pairs(np.moveaxis(values, 2, 0), len(classes)), labels, classes)

    def _calibrator(self, k: int, setting: Setting, C: float) -> Any:
        """Sigmoids for the values of fold k, from those of the other folds with the same classes."""
        classes, values = self.rows[k].classes, self.held_out[setting, C]
        others = [f for f in range(len(self.splits)) if np.array_equal(self.rows[f].classes, classes)]
        others = [f for f in others if f != k] or [k]
        labels = self.y[np.concatenate([self.splits[f][1] for f in others])]
        known = np.isin(labels, classes)
        numbers = np.searchsorted(classes, labels[known])
        return CALIBRATORS["sigmoid"].fit(
            np.concatenate([values[f] for f in others])[known], numbers, len(classes)
        )

    def predictions(self, setting: Setting, C: float) -> Any:
        """Labels of the held-out rows, fold by fold."""
        parts = zip(self.rows, self.values_of(setting, C), strict=True)
        return np.concatenate([PairAnswers(self.estimator, rows.classes, v).predict() for rows, v in parts])
