import numpy as np
import pytest
from sklearn.metrics import get_scorer
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from maxmargin import SVC
from maxmargin.model_selection.scoring import FoldModel, check_scorers, is_accuracy, share


def model(trained=None):
    X, y = np.zeros((4, 2)), np.array([0, 0, 1, 1])
    known = {
        "predict": lambda: np.array([0, 1, 1, 1]),
        "decision_function": lambda: np.array([-1.0, 0.5, 2.0, 3.0]),
    }

    def train():
        if trained is None:
            raise AssertionError("must not be trained")
        return trained

    return FoldModel(SVC(), [(X, known)], train, {"classes_": np.array([0, 1])}), X, y


@pytest.mark.parametrize(("name", "score"), [("accuracy", 0.75), ("roc_auc", 1.0), ("recall", 1.0)])
def test_scorers_take_it_for_the_fitted_estimator(name, score):
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


def test_what_no_estimator_has_is_an_attribute_error():
    fold, _, _ = model(SVC().fit([[0.0], [1.0]], [0, 1]))
    with pytest.raises(AttributeError):
        fold.predict_proba  # noqa: B018


@pytest.mark.parametrize(("name", "is_it"), [("accuracy", True), ("f1", False), ("balanced_accuracy", False)])
def test_accuracy_is_recognised(name, is_it):
    assert is_accuracy(get_scorer(name), SVC()) is is_it


def test_share_counts_what_is_true():
    assert share(np.array([True, False, True, True])) == 0.75


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
