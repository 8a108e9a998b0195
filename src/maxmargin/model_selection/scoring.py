"""Scores of a node from decision values that are there already.

A scorer of scikit-learn gets an estimator and data. What it gets here stands for the fitted estimator: asked
for the values of the held-out (or the training) rows, it answers with those that training has left behind.
Asked for anything else, it trains the estimator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.metrics import accuracy_score, mean_squared_error, r2_score
from sklearn.utils import get_tags

from maxmargin._sklearn import MultimetricScorer

_METHODS = ("predict", "decision_function", "score_samples")


class FoldModel:
    """Stands for an estimator that was fitted on the training rows of a fold.

    Parameters
    ----------
    estimator : estimator
        The one that it stands for, not fitted.
    known : list of (data, dict)
        Data by identity, and what the methods return for them: name to function without arguments.
    train : callable
        Returns the fitted estimator.
    attributes : dict
        Fitted attributes that are known, such as ``classes_``.
    """

    def __init__(
        self,
        estimator: Any,
        known: list[tuple[Any, dict[str, Callable[[], Any]]]],
        train: Callable[[], Any],
        attributes: dict[str, Any],
    ) -> None:
        self._estimator, self._known, self._train = estimator, known, train
        self._fitted: Any = None
        self.__dict__.update(attributes)

    def __sklearn_tags__(self) -> Any:
        return get_tags(self._estimator)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _answer(self, method: str, X: Any) -> Any:
        for data, methods in self._known:
            if data is X and method in methods:
                return methods[method]()
        return getattr(self._real(), method)(X)

    def _real(self) -> Any:
        if self._fitted is None:
            self._fitted = self._train()
        return self._fitted

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in _METHODS and hasattr(self._estimator, name):

            def answer(X: Any) -> Any:
                return self._answer(name, X)

            answer.__name__ = name  # by which scorers know what they have got
            return answer
        if name == "score":
            return lambda X, y=None, **kw: type(self._estimator).score(self, X, y, **kw)
        if not name.endswith("_") and not hasattr(self._estimator, name):
            raise AttributeError(f"{type(self._estimator).__name__} has no attribute {name!r}")
        return getattr(self._real(), name)


def check_scorers(scorers: Any, scoring: Any, estimator: Any, candidates: Sequence[dict[str, Any]]) -> None:
    """Refuse a scorer that needs a method that no candidate has, before anything is trained.

    Functions that are no scorers of scikit-learn do not say what they need.
    """
    several = isinstance(scorers, MultimetricScorer)
    for name, scorer in scorers._scorers.items() if several else [(scoring, scorers)]:
        wanted = getattr(scorer, "_response_method", None)
        methods = (wanted,) if isinstance(wanted, str) else tuple(wanted or ())
        if not methods or _has_one_of(estimator, methods):
            continue
        if any(_has_one_of(_with(estimator, params), methods) for params in candidates):
            continue
        kind = type(estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator).__name__
        advice = "choose another score"
        if any("proba" in method for method in methods):
            advice = (
                "choose a score of labels or of decision values (such as 'accuracy' or 'roc_auc'), or search "
                f"CalibratedClassifierCV({kind}(), ensemble=False) with sklearn.model_selection.GridSearchCV"
            )
        raise ValueError(
            f"scoring={name!r} needs {' or '.join(methods)}, which {kind} does not have: {advice}."
        )


def _has_one_of(estimator: Any, methods: Sequence[str]) -> bool:
    return any(hasattr(estimator, method) for method in methods)


def _with(estimator: Any, params: dict[str, Any]) -> Any:
    try:
        return clone(estimator).set_params(**clone(params, safe=False))
    except (TypeError, ValueError):
        return None  # a bad candidate is reported when its turn comes


def is_accuracy(scorer: Any, estimator: Any) -> bool:
    """Whether a scorer of one metric is the share of right predictions, without weights."""
    kind = type(scorer).__name__
    if kind == "_PassthroughScorer":
        return getattr(type(estimator), "score", None) is ClassifierMixin.score
    return (
        kind == "_Scorer"
        and scorer._score_func is accuracy_score
        and not scorer._kwargs
        and scorer._sign == 1
    )


def regression_measure(scorer: Any, estimator: Any) -> str | None:
    """Which of "r2" and "mse" a scorer of one metric is, without weights; None if it is another."""
    kind = type(scorer).__name__
    if kind == "_PassthroughScorer":
        return "r2" if getattr(type(estimator), "score", None) is RegressorMixin.score else None
    if kind != "_Scorer" or scorer._kwargs:
        return None
    if scorer._score_func is r2_score and scorer._sign == 1:
        return "r2"
    return "mse" if scorer._score_func is mean_squared_error and scorer._sign == -1 else None


def regression_scores(measure: str, values: NDArray[Any], targets: NDArray[Any]) -> NDArray[Any] | None:
    """The scores of several predictions, one per row; None where R^2 is not defined."""
    squares = np.square(values - targets).sum(axis=1)
    if measure == "mse":
        return -squares / len(targets)
    spread = float(np.square(targets - targets.mean()).sum())
    return 1.0 - squares / spread if spread > 0 and len(targets) > 1 else None


def share(right: Any) -> float:
    """The mean of truth values."""
    return float(np.count_nonzero(right)) / len(right)
