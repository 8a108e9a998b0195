import numpy as np
import pytest
from sklearn.metrics import get_scorer
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from maxmargin import SVC
from maxmargin.model_selection.refusal import Refused
from maxmargin.model_selection.scoring import FoldModel, PairAnswers, call_scorers, check_scorers

CLASSES = np.array([0, 1])


def model(trained=None, answers=None):
    X, y = np.zeros((4, 2)), np.array([0, 0, 1, 1])
    known = PairAnswers(SVC(), CLASSES, np.array([[-1.0], [0.5], [2.0], [3.0]]))

    def train():
        if trained is None:
            raise AssertionError("must not be trained")
        return trained

    return FoldModel(SVC(), [(X, answers or known)], train, {"classes_": CLASSES}), X, y


@pytest.mark.parametrize(("name", "score"), [("accuracy", 0.75), ("roc_auc", 1.0), ("recall", 1.0)])
def test_scorers_accept_it_as_the_fitted_estimator(name, score):
    fold, X, y = model()
    assert get_scorer(name)(fold, X, y) == score


def test_score_and_tags_are_the_estimators():
    fold, X, y = model()
    assert fold.score(X, y) == 0.75
    assert get_tags(fold).estimator_type == "classifier"


def test_other_data_and_other_attributes_are_answered_by_a_fitted_estimator():
    fitted = SVC().fit([[0.0], [1.0]], [0, 1])
    fold, _, _ = model(fitted)
    assert list(fold.predict(np.array([[0.0], [1.0]]))) == [0, 1]
    assert fold.support_ is fitted.support_


def test_an_attribute_that_the_estimator_does_not_have_is_an_attribute_error():
    fold, _, _ = model(SVC().fit([[0.0], [1.0]], [0, 1]))
    with pytest.raises(AttributeError):
        fold.predict_proba  # noqa: B018


@pytest.mark.parametrize(
    "options",
    [{}, {"break_ties": True}, {"decision_function_shape": "ovo"}],
)
@pytest.mark.parametrize("k", [2, 3])
def test_pair_answers_are_those_of_a_fitted_estimator(options, k):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % k
    fitted = SVC(**options).fit(X, y)
    answers = PairAnswers(fitted, fitted.classes_, fitted._pair_values(X))
    np.testing.assert_array_equal(answers.predict(), fitted.predict(X))
    np.testing.assert_array_equal(answers.decision_function(), fitted.decision_function(X))


def test_a_scorer_that_fails_or_returns_no_number_is_refused_with_a_reason():
    def failing(estimator, X, y):
        raise ZeroDivisionError("by zero")

    for scorer, reason in (
        (failing, "the scorer failed (ZeroDivisionError: by zero)"),
        (lambda estimator, X, y: "high", "a scorer failed (high)"),
        (lambda estimator, X, y: np.ones(2), "the scorer returned ndarray, not a number"),
        (lambda estimator, X, y: {"a": 1.0, "b": None}, "the scorer returned NoneType, not a number"),
    ):
        fold, X, y = model()
        assert call_scorers(scorer, fold, X, y) == Refused(reason, final=True)
    fold, X, y = model()
    assert call_scorers(lambda estimator, X, y: {"a": np.float32(0.5)}, fold, X, y) == {"a": 0.5}


class Broken:
    """Answers with a bug."""

    def predict(self):
        raise IndexError("a bug")


@pytest.mark.parametrize("swallowed", [False, True])
def test_an_exception_of_the_answers_is_raised_and_not_counted_as_the_scorers(swallowed):
    def scorer(estimator, X, y):
        try:
            return get_scorer("accuracy")(estimator, X, y)
        except IndexError:
            if not swallowed:
                raise
            return 0.0

    fold, X, y = model(answers=Broken())
    with pytest.raises(IndexError, match="a bug"):
        call_scorers(scorer, fold, X, y)


class Calibrated(SVC):
    """Has probabilities if asked for."""

    @available_if(lambda self: self.probability is True)
    def predict_proba(self, X):
        raise NotImplementedError


def test_a_scorer_is_refused_only_if_no_candidate_has_what_it_needs():
    scorer = get_scorer("neg_log_loss")
    check_scorers(get_scorer("roc_auc"), "roc_auc", SVC(), [{}])
    check_scorers(lambda estimator, X, y: 0.0, None, SVC(), [{}])
    check_scorers(scorer, "neg_log_loss", Calibrated(), [{"probability": False}, {"probability": True}])
    with pytest.raises(ValueError, match="'neg_log_loss' needs predict_proba, which Calibrated"):
        check_scorers(scorer, "neg_log_loss", Calibrated(), [{"probability": False}, {"nonsense": 1}])
