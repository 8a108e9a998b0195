"""Probabilities from the values of class pairs: what is fitted to held-out values, and what it predicts.

Three ways to calibrate, by name in `CALIBRATORS`. Each is fitted to the values that `BaseSVC` has for pairs
of classes (positive for the first class of a pair; with two classes for the second), at rows that the values
were not trained on, and turns such values of other rows into probabilities of the classes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import log_softmax, softmax

from maxmargin._types import Floats, Index
from maxmargin.estimators.decisions import decision_values

#: Probabilities of pairs stay as far away from 0 and 1, as in LIBSVM.
LEAST = 1e-7


@dataclass(frozen=True, eq=False)
class Calibrator(ABC):
    """A fitted map from pair values to probabilities; its fields but the number of classes are plain arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.estimators.calibration import CALIBRATORS
    >>> values, labels = np.array([[-2.0], [-1.0], [0.5], [1.0], [3.0]]), np.array([0, 0, 1, 0, 1])
    >>> calibrator = CALIBRATORS["sigmoid"].fit(values, labels, 2)
    >>> calibrator.predict_proba(values).argmax(axis=1)
    array([0, 0, 0, 0, 1])
    """

    name: ClassVar[str]
    n_classes: int

    @classmethod
    @abstractmethod
    def fit(cls, values: Floats, labels: Index, n_classes: int, sample_weight: Floats | None = None) -> Self:
        """Fit to held-out values.

        Parameters
        ----------
        values : ndarray of shape (n_samples, n_pairs)
            Values of the class pairs; for two classes also of shape (n_samples,).
        labels : ndarray of int of shape (n_samples,)
            Numbers of the classes, from 0 on.
        n_classes : int
            Number of classes.
        sample_weight : ndarray of shape (n_samples,), optional
            Weights.

        Returns
        -------
        Calibrator
        """

    @abstractmethod
    def predict_proba(self, values: Floats) -> Floats:
        """Probabilities of shape (n_samples, n_classes), from pair values as in `fit`."""

    def arrays(self) -> dict[str, Any]:
        """The fields as plain arrays, for files; `from_arrays` makes the same calibrator of them."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "n_classes"}

    @classmethod
    def from_arrays(cls, n_classes: int, arrays: dict[str, Any]) -> Self:
        """The calibrator with these fields."""
        return cls(n_classes, **arrays)


@dataclass(frozen=True, eq=False)
class SigmoidCalibrator(Calibrator):
    """Platt's sigmoid for each pair, P(first | f) = 1 / (1 + exp(A f + B)), then pairwise coupling.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    A, B : ndarray of shape (n_pairs,)
        Slopes and constants, for f positive for the first class of a pair, with two classes too (LIBSVM's
        probA and probB).
    """

    name: ClassVar[str] = "sigmoid"
    A: Floats
    B: Floats

    @classmethod
    def fit(cls, values: Floats, labels: Index, n_classes: int, sample_weight: Floats | None = None) -> Self:
        """See `Calibrator.fit`."""
        rows = _rows_of_pairs(labels, n_classes)
        first = _for_first(values, n_classes)
        return cls.of_pairs(
            n_classes,
            [first[of, p] for p, (of, _) in enumerate(rows)],
            [is_first for _, is_first in rows],
            None if sample_weight is None else [sample_weight[of] for of, _ in rows],
        )

    @classmethod
    def of_pairs(
        cls, n_classes: int, values: list[Floats], first: list[Any], weight: list[Floats] | None = None
    ) -> Self:
        """Fit to values of each pair's own rows, positive for its first class, whose rows are `first`."""
        from maxmargin.estimators._sigmoids import fit_sigmoids  # compiled: not at import

        starts = np.append(0, np.cumsum([len(v) for v in values]))
        of_rows = np.ones(starts[-1]) if weight is None else np.concatenate(weight).astype(np.float64)
        A, B = fit_sigmoids(np.concatenate(values), np.concatenate(first), of_rows, starts)
        return cls(n_classes, A, B)

    def in_order(self, order: Index) -> SigmoidCalibrator:
        """The sigmoids of the pairs of ``classes[order]``; B changes its sign with the order of a pair."""
        k = len(order)
        place = np.zeros((k, k), np.intp)
        place[np.triu_indices(k, 1)] = np.arange(len(self.A))
        first, second = (np.asarray(order)[c] for c in np.triu_indices(k, 1))
        at = place[np.minimum(first, second), np.maximum(first, second)]
        return SigmoidCalibrator(k, self.A[at], np.where(first < second, 1.0, -1.0) * self.B[at])

    def predict_proba(self, values: Floats) -> Floats:
        """See `Calibrator.predict_proba`."""
        from maxmargin.estimators._sigmoids import sigmoids  # compiled: not at import

        first = sigmoids(_for_first(values, self.n_classes), self.A, self.B, LEAST)
        return _classes_from(first, self.n_classes)


@dataclass(frozen=True, eq=False)
class IsotonicCalibrator(Calibrator):
    """An increasing function for each pair, by `sklearn.isotonic`, then pairwise coupling.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    x, y : ndarray of shape (n_knots,)
        The knots of P(first | f) of one pair after the other, linear between them and constant beyond.
    ends : ndarray of int of shape (n_pairs + 1,)
        Pair p has the knots ``ends[p] : ends[p + 1]``.
    """

    name: ClassVar[str] = "isotonic"
    x: Floats
    y: Floats
    ends: Index

    @classmethod
    def fit(cls, values: Floats, labels: Index, n_classes: int, sample_weight: Floats | None = None) -> Self:
        """See `Calibrator.fit`."""
        from sklearn.isotonic import IsotonicRegression

        first = _for_first(values, n_classes)
        x: list[Floats] = []
        y: list[Floats] = []
        for p, (of, is_first) in enumerate(_rows_of_pairs(labels, n_classes)):
            if not len(of):  # nothing is known about the pair
                x, y = [*x, np.zeros(1)], [*y, np.full(1, 0.5)]
                continue
            weight = None if sample_weight is None else sample_weight[of]
            model = IsotonicRegression(y_min=0.0, y_max=1.0).fit(first[of, p], is_first, weight)
            x.append(np.asarray(model.X_thresholds_, dtype=np.float64))
            y.append(np.asarray(model.y_thresholds_, dtype=np.float64))
        ends = np.append(0, np.cumsum([len(knots) for knots in x]))
        return cls(n_classes, np.concatenate(x), np.concatenate(y), ends)

    def predict_proba(self, values: Floats) -> Floats:
        """See `Calibrator.predict_proba`."""
        first, ends = _for_first(values, self.n_classes), self.ends
        parts = [slice(ends[p], ends[p + 1]) for p in range(len(ends) - 1)]
        of_pairs = [np.interp(first[:, p], self.x[part], self.y[part]) for p, part in enumerate(parts)]
        return _classes_from(np.column_stack(of_pairs), self.n_classes)


@dataclass(frozen=True, eq=False)
class TemperatureCalibrator(Calibrator):
    """The softmax of decision values times one number, as in `sklearn.calibration` from 1.8 on.

    The decision values are those of `decision_function_shape` "ovr"; of two classes they are -f and f.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    beta : ndarray of shape (1,)
        The inverse temperature.
    """

    name: ClassVar[str] = "temperature"
    beta: Floats

    @classmethod
    def fit(cls, values: Floats, labels: Index, n_classes: int, sample_weight: Floats | None = None) -> Self:
        """See `Calibrator.fit`."""
        from scipy.optimize import minimize_scalar

        logits, rows = _logits(values, n_classes), np.arange(len(labels))

        def loss(log_beta: float) -> float:
            each = log_softmax(np.exp(log_beta) * logits, axis=1)[rows, labels]
            return -float(np.average(each, weights=sample_weight))

        best = minimize_scalar(loss, bounds=(-10.0, 10.0), options={"xatol": 64 * np.finfo(np.float64).eps})
        return cls(n_classes, np.array([np.exp(best.x)]))

    def predict_proba(self, values: Floats) -> Floats:
        """See `Calibrator.predict_proba`."""
        return np.asarray(softmax(self.beta[0] * _logits(values, self.n_classes), axis=1))


#: The kinds of calibrators, by name.
CALIBRATORS: dict[str, type[Calibrator]] = {
    kind.name: kind for kind in (SigmoidCalibrator, IsotonicCalibrator, TemperatureCalibrator)
}


def _for_first(values: Floats, n_classes: int) -> Floats:
    """The values with one column per pair, positive for the first class."""
    values = np.asarray(values, dtype=np.float64)
    return np.ascontiguousarray(-values.reshape(-1, 1) if n_classes == 2 else values)


def _classes_from(first: Floats, n_classes: int) -> Floats:
    """Probabilities of the classes from those of the first class of each pair."""
    if n_classes == 2:
        return np.column_stack([first[:, 0], 1.0 - first[:, 0]])
    from maxmargin.estimators._coupling import coupled  # compiled: not at import

    return np.asarray(coupled(first, n_classes, LEAST))


def _logits(values: Floats, n_classes: int) -> Floats:
    found = decision_values(np.asarray(values, dtype=np.float64), n_classes, "ovr")
    return np.column_stack([-found, found]) if n_classes == 2 else found


def _rows_of_pairs(labels: Index, n_classes: int) -> list[tuple[Index, Any]]:
    """For each pair the rows of its classes, and which of them are of the first."""
    labels = np.asarray(labels)
    of_class = [np.flatnonzero(labels == c) for c in range(n_classes)]
    out = []
    for a, b in zip(*np.triu_indices(n_classes, 1), strict=True):
        rows = np.concatenate([of_class[a], of_class[b]])
        out.append((rows, np.arange(len(rows)) < len(of_class[a])))
    return out
