import numpy as np
import pytest
from sklearn.svm import SVC as Reference

from maxmargin.estimators.decisions import decision_values, voted_classes


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_decision_values_and_votes_are_those_of_scikit_learn(k, shape):
    rng = np.random.default_rng(k)
    X, y = rng.normal(size=(80, 3)), np.arange(80) % k
    pairs = Reference(decision_function_shape="ovo").fit(X, y)
    values = pairs.decision_function(X).reshape(len(X), -1)
    expected = pairs.set_params(decision_function_shape=shape).decision_function(X)
    np.testing.assert_array_equal(decision_values(values, k, shape), expected)
    np.testing.assert_array_equal(voted_classes(values, k), pairs.predict(X))


def test_a_value_of_zero_belongs_to_the_second_of_two_classes_in_the_order_of_training():
    zero = np.zeros((1, 1))
    assert voted_classes(zero, 2) == [1]
    assert voted_classes(zero, 2, np.array([0, 1])) == [1]
    assert voted_classes(zero, 2, np.array([1, 0])) == [0]
    assert voted_classes(np.zeros((1, 3)), 3) == [2]
    assert voted_classes(np.zeros((1, 3)), 3, np.array([2, 1, 0])) == [0]
