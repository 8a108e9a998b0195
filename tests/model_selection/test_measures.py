import numpy as np
import pytest
from sklearn.metrics import accuracy_score, get_scorer

from maxmargin import SVC, SVR
from maxmargin.model_selection.measures import (
    class_shares,
    is_accuracy,
    regression_measure,
    regression_scores,
    share,
    two_class_shares,
)


@pytest.mark.parametrize(("name", "is_it"), [("accuracy", True), ("f1", False), ("balanced_accuracy", False)])
def test_accuracy_is_recognised(name, is_it):
    assert is_accuracy(get_scorer(name), SVC()) is is_it


def test_share_counts_true_values():
    assert share(np.array([True, False, True, True])) == 0.75


def test_shares_of_two_classes_are_scikit_learns_accuracies():
    rng = np.random.default_rng(0)
    classes = np.array(["a", "b"])
    values, labels = rng.normal(size=(4, 20)), classes[rng.integers(0, 2, 20)]
    values[0, :3] = 0.0  # counts for the second class
    expected = [accuracy_score(labels, classes[(row >= 0).astype(int)]) for row in values]
    np.testing.assert_array_equal(two_class_shares(values, labels, classes), expected)


def test_shares_of_several_classes_are_scikit_learns_accuracies():
    rng = np.random.default_rng(0)
    classes = np.array(["a", "b", "c"])
    winners, labels = rng.integers(0, 3, (4, 20)), classes[rng.integers(0, 3, 20)]
    expected = [accuracy_score(labels, classes[row]) for row in winners]
    np.testing.assert_array_equal(class_shares(winners, labels, classes), expected)


def test_quick_scores_of_a_regression_are_scikit_learns():
    rng = np.random.default_rng(0)
    values, y = rng.normal(size=(4, 20)), rng.normal(size=20)

    for name in ("r2", "neg_mean_squared_error"):
        measure = regression_measure(get_scorer(name), SVR())
        scorer = get_scorer(name)
        expected = [scorer._sign * scorer._score_func(y, row) for row in values]
        np.testing.assert_allclose(regression_scores(measure, values, y), expected)
    assert regression_measure(get_scorer("neg_root_mean_squared_error"), SVR()) is None
    assert regression_scores("r2", values, np.ones(20)) is None
