"""Folds of a report, and what models that were trained without a fold say of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold, check_cv

from maxmargin._sklearn import num_samples, safe_indexing
from maxmargin._types import Floats, Index
from maxmargin.inspection._fitted import last_step
from maxmargin.inspection._report.budget import Budget, untrained
from maxmargin.inspection._report.subject import CLASSES, NUMBERS, Subject, with_values_of

Split = tuple[Index, Index]
#: Rows that take part in cross-validation at most.
MOST_ROWS = 5_000
# Rows of the fit that shows how long the others take, and the least number of rows for folds.
_PILOT, _LEAST = 500, 400


class NoFolds(Exception):
    """Cross-validation is not possible; the message is a clause that says why."""


@dataclass
class Folds:
    """Values of held-out rows.

    Attributes
    ----------
    rows : ndarray
        The rows, fold by fold.
    predicted, values, proba : ndarray or None
        What the models say of them; NaN where a model does not know all classes.
    n_splits : int
        Number of folds.
    model, test : object, ndarray
        The model of one fold, and the rows that it has not seen.
    """

    rows: Index
    predicted: Any
    values: Floats | None
    proba: Floats | None
    n_splits: int
    model: Any
    test: Index


def splits_for(subject: Subject, X: Any, y: Any, random_state: int, trained: bool) -> list[Split]:
    """The folds of the search, if there was one; otherwise five shuffled ones, stratified by class.

    Lists of rows are folds of the training rows only: `trained` says whether the rows are these.
    """
    n = num_samples(X)
    given = getattr(subject.given, "cv", None)
    found: list[Split] = []
    if subject.results is not None and (trained or hasattr(given, "split")):
        if given is None and hasattr(subject.given, "_default_cv"):
            given = subject.given._default_cv(y)
        try:
            cv = check_cv(given, y, classifier=subject.task == CLASSES)
            found = [(np.asarray(a), np.asarray(b)) for a, b in cv.split(X, y)]
        except (ValueError, TypeError) as error:
            raise NoFolds(f"the folds of the search cannot be repeated ({_clause(error)})") from error
        if any(part.max(initial=0) >= n for split in found for part in split):
            found = []
    if not found:
        found = _five(n, None if subject.task == NUMBERS else y, random_state)
    if subject.only_inliers and y is not None:
        found = [(train[y[train] > 0], test) for train, test in found]
    return found


def _five(n: int, label: Any, random_state: int) -> list[Split]:
    """Five shuffled folds, fewer if a class has fewer rows."""
    if n < 4:
        raise NoFolds(f"{n} rows are too few")
    if label is None:
        return list(KFold(min(5, n), shuffle=True, random_state=random_state).split(np.zeros(n)))
    rarest = int(np.unique(label, return_counts=True)[1].min())
    if rarest < 2:
        raise NoFolds("a class has a single row")
    splitter = StratifiedKFold(min(5, rarest), shuffle=True, random_state=random_state)
    return list(splitter.split(np.zeros(n), label))


def rows_for(subject: Subject, X: Any, y: Any, n_fits: int, most: int, budget: Budget, seed: int) -> Index:
    """As many rows as `n_fits` fits can be paid for, with classes in proportion."""
    from maxmargin.model_selection.tuning.stages import part_of

    n = num_samples(X)
    rng = np.random.default_rng(seed)
    label = None if y is None or subject.task == NUMBERS else np.unique(y, return_inverse=True)[1]
    size = min(n, most)
    if size > _PILOT:
        rows = part_of(n, _PILOT, label, 2, rng)
        began = time.perf_counter()
        try:
            untrained(subject.fitted, budget).fit(safe_indexing(X, rows), None if y is None else y[rows])
        except ValueError as error:
            raise NoFolds(f"a part of the rows cannot be trained on ({_clause(error)})") from error
        seconds = time.perf_counter() - began
        # Times grow at most about quadratically with the rows.
        affordable = len(rows) * (budget.left / max(n_fits * seconds, 1e-9)) ** 0.5
        if affordable < _LEAST:
            raise NoFolds(f"{n_fits} fits would take longer than the time that is left (max_time)")
        size = min(size, int(affordable))
    return np.arange(n) if size >= n else part_of(n, size, label, 5, rng)


def predict_folds(subject: Subject, X: Any, y: Any, splits: list[Split], budget: Budget) -> Folds:
    """Train on each fold's other rows, and predict the fold."""
    calibrator = _calibrator(subject)
    parts: list[tuple[Index, Any, Any, Any]] = []
    first: tuple[Any, Index] | None = None
    for train, test in splits:
        model = untrained(subject.fitted, budget)
        try:
            model.fit(safe_indexing(X, train), None if y is None else y[train])
        except ValueError as error:
            raise NoFolds(f"a fold cannot be trained ({_clause(error)})") from error
        if budget.left <= 0:
            raise NoFolds("the time was up (max_time)")
        held_out = safe_indexing(X, test)
        known = subject.task != CLASSES or len(last_step(model).classes_) == len(subject.classes)
        values = values_of(model, held_out) if known else None
        if calibrator is not None:  # values of pairs, of which probabilities are made below
            proba = np.asarray(with_values_of(model, "ovo").decision_function(held_out)) if known else None
        else:
            proba = proba_of(model, held_out) if known else None
        parts.append((test, model.predict(held_out), values, proba))
        first = first or (model, test)
    assert first is not None
    values = _joined([(len(test), v) for test, _, v, _ in parts])
    if calibrator is not None:
        proba = _cross_calibrated(type(calibrator), parts, y, subject.classes)
    else:
        proba = _joined([(len(test), p) for test, _, _, p in parts])
    return Folds(
        rows=np.concatenate([test for test, _, _, _ in parts]),
        predicted=np.concatenate([predicted for _, predicted, _, _ in parts]),
        values=values,
        proba=proba,
        n_splits=len(splits),
        model=first[0],
        test=first[1],
    )


def values_of(model: Any, X: Any) -> Floats | None:
    """Decision values: one per row for two classes or outliers, otherwise one per class."""
    if not hasattr(model, "decision_function"):
        return None
    return np.asarray(with_values_of(model, "ovr").decision_function(X), dtype=np.float64)


def proba_of(model: Any, X: Any) -> Floats | None:
    """Probabilities, if the model has them."""
    try:
        return np.asarray(model.predict_proba(X)) if hasattr(model, "predict_proba") else None
    except ValueError:  # a tuner without any fold that has all classes; also NotFittedError
        return None


def _calibrator(subject: Subject) -> Any:
    """The calibrator, if it was fitted beside the model: a clone does not have it."""
    get = getattr(subject.last, "get_calibrator", None)
    found = get() if get is not None else None
    return found if found is not None and not hasattr(clone(subject.last), "predict_proba") else None


def _cross_calibrated(kind: Any, parts: list[Any], y: Any, classes: Any) -> Floats | None:
    """Probabilities of each fold by a calibrator that was fitted to the values of the other folds."""
    known = [k for k, part in enumerate(parts) if part[3] is not None]
    if len(known) < 2:
        return None
    label = np.searchsorted(classes, y)
    out: list[tuple[int, Any]] = []
    for k, (test, _, _, values) in enumerate(parts):
        if values is None:
            out.append((len(test), None))
            continue
        others = [parts[j] for j in known if j != k]
        rows = np.concatenate([other[0] for other in others])
        calibrator = kind.fit(np.concatenate([other[3] for other in others]), label[rows], len(classes))
        out.append((len(test), calibrator.predict_proba(values)))
    return _joined(out)


def _joined(parts: list[tuple[int, Any]]) -> Floats | None:
    """Values of all folds, with NaN for the rows of folds that have none."""
    like = next((values for _, values in parts if values is not None), None)
    if like is None:
        return None
    empty = like.shape[1:]
    return np.concatenate([np.full((n, *empty), np.nan) if v is None else v for n, v in parts])


def _clause(error: BaseException) -> str:
    """An error message as a clause."""
    return " ".join(str(error).split()).rstrip(".")[:200]
