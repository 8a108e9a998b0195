"""Scores of a node from decision values that training has left behind.

A scorer of scikit-learn gets an estimator and data. The `FoldModel` that it gets here represents the fitted
estimator: asked for the values of the held-out (or the training) rows, it returns those that are known. Asked
for anything else, it trains the estimator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import get_tags

from maxmargin._sklearn import response_methods, scorers_by_name
from maxmargin._types import Floats
from maxmargin.estimators.decisions import decision_values, voted_classes
from maxmargin.model_selection.refusal import Refused, because

_METHODS = ("predict", "decision_function", "score_samples", "predict_proba", "predict_log_proba")


class PairAnswers:
    """The answers of an `SVC` for some rows, from the values of the class pairs."""

    def __init__(self, estimator: Any, classes: NDArray[Any], values: Floats) -> None:
        self._estimator, self._classes, self._values = estimator, classes, values

    def decision_function(self) -> Floats:
        """The values that `SVC.decision_function` returns."""
        shape = self._estimator.decision_function_shape
        return decision_values(self._values, len(self._classes), shape)

    def predict(self) -> NDArray[Any]:
        """The labels that `SVC.predict` returns."""
        k = len(self._classes)
        if self._estimator.break_ties and k > 2:
            return self._classes[np.argmax(self.decision_function(), axis=1)]
        return self._classes[voted_classes(self._values, k)]


class TargetAnswers:
    """The answers of a regressor for some rows."""

    def __init__(self, values: Floats) -> None:
        self._values = values

    def predict(self) -> Floats:
        """The predicted targets."""
        return self._values


class ModelAnswers:
    """The answers of a fitted estimator for some rows, in the form that it was trained with."""

    def __init__(self, model: Any, rows: Any) -> None:
        self._model, self._rows = model, rows
        #: Whether they call a function of the user, whose exceptions are not bugs of the search.
        self.calls_user_code = callable(model.kernel)

    def __getattr__(self, name: str) -> Callable[[], Any]:
        if name not in _METHODS:
            raise AttributeError(name)
        method = getattr(self._model, name)
        return lambda: method(self._rows)


class FoldModel:
    """Represents an estimator that was fitted on the training rows of a fold.

    Scorers of scikit-learn, and those that users write, take an estimator and data. The trainers leave values
    of rows behind and no estimator that could predict X: the C path has none at all, and that of a warm fit
    was trained on a kernel matrix. Making one would cost the support vectors of every node and their kernel
    values with the held-out rows, which is most of what a search saves. So scorers get this object, which is
    an estimator to them; what it does not know it asks of an estimator that is trained for the purpose.

    Parameters
    ----------
    estimator : estimator
        The estimator that is represented, not fitted.
    known : list of (data, answers)
        Data by identity, and objects whose methods `predict`, `decision_function` and so on return the values
        for them, without arguments.
    train : callable
        Returns the fitted estimator.
    attributes : dict
        Fitted attributes that are known, such as ``classes_``.

    Attributes
    ----------
    broken_ : Exception or None
        An exception of the known answers: a bug, and not an error of the scorer that asked for them.
    """

    def __init__(
        self,
        estimator: Any,
        known: Sequence[tuple[Any, Any]],
        train: Callable[[], Any],
        attributes: dict[str, Any],
    ) -> None:
        self._estimator, self._known, self._train = estimator, list(known), train
        self._fitted: Any = None
        self.broken_: Exception | None = None
        self.__dict__.update(attributes)

    def __sklearn_tags__(self) -> Any:
        return get_tags(self._estimator)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _answer(self, method: str, X: Any) -> Any:
        for data, answers in self._known:
            if data is X and hasattr(answers, method):
                try:
                    return getattr(answers, method)()
                except Exception as error:
                    if not getattr(answers, "calls_user_code", False):
                        self.broken_ = error
                    raise
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


def call_scorers(scorers: Any, model: FoldModel, *arguments: Any, **params: Any) -> Any:
    """The scores of a model as scikit-learn's search stores them, or Refused if the scorer fails.

    Scorers are code of the user. One that fails, or that does not return numbers, is called again by
    scikit-learn, with the estimator itself, for a report that is scikit-learn's.
    """
    try:
        scores = scorers(model, *arguments, **params)
    except Exception as error:
        if model.broken_ is not None:
            raise model.broken_ from None
        return Refused(f"the scorer failed ({because(error)})", final=True)
    if model.broken_ is not None:
        raise model.broken_
    if not isinstance(scores, dict):
        return _number(scores)
    numbers = {name: _number(score) for name, score in scores.items()}
    refused = [score for score in numbers.values() if isinstance(score, Refused)]
    return refused[0] if refused else numbers


def _number(score: Any) -> Any:
    """A score as a Python number, or Refused."""
    if isinstance(score, str):  # the traceback of one of several scorers
        return Refused(f"a scorer failed ({score.strip().splitlines()[-1]})", final=True)
    value = score.item() if getattr(score, "size", 1) == 1 and hasattr(score, "item") else score
    if not isinstance(value, int | float | bool | np.number):
        return Refused(f"the scorer returned {type(score).__name__}, not a number", final=True)
    return value


def asks_for_probabilities(scorers: Any) -> bool:
    """Whether a scorer says that it needs probabilities."""
    several = scorers_by_name(scorers)
    methods = [response_methods(s) for s in ([scorers] if several is None else several.values())]
    return any("proba" in of_scorer[0] for of_scorer in methods if of_scorer)


def check_scorers(scorers: Any, scoring: Any, estimator: Any, candidates: Sequence[dict[str, Any]]) -> None:
    """Refuse a scorer that needs a method that no candidate has, before anything is trained.

    Plain functions do not say which methods they need, and are not checked.
    """
    several = scorers_by_name(scorers)
    for name, scorer in [(scoring, scorers)] if several is None else several.items():
        methods = response_methods(scorer)
        if not methods or _has_one_of(estimator, methods):
            continue
        if any(_has_one_of(_with(estimator, params), methods) for params in candidates):
            continue
        kind = type(estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator).__name__
        advice = "choose another score"
        if any("proba" in method for method in methods):
            advice = (
                "choose a score of labels or of decision values (such as 'accuracy' or 'roc_auc'), set "
                "probability=True where the estimator has it (calibrate acts after the choice), use SVCCV, "
                f"or search CalibratedClassifierCV({kind}(), ensemble=False) with "
                "sklearn.model_selection.GridSearchCV"
            )
        named = f"{{{name!r}: {scoring[name]!r}}}" if isinstance(scoring, dict) else repr(name)
        raise ValueError(
            f"scoring={named} needs {' or '.join(methods)}, which {kind} does not have: {advice}."
        )


def _has_one_of(estimator: Any, methods: Sequence[str]) -> bool:
    return any(hasattr(estimator, method) for method in methods)


def _with(estimator: Any, params: dict[str, Any]) -> Any:
    try:
        return clone(estimator).set_params(**clone(params, safe=False))
    except (TypeError, ValueError):
        return None  # an invalid candidate is reported when it is trained
