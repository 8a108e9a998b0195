"""Models of single cells: exact ones, constants, and their values for all classes."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from maxmargin import SVC, SVR
from maxmargin.cells.training import Constant, constant_of, decide_cell, predict_cell, train_cell

X, y = load_iris(return_X_y=True)
WEIGHT = np.ones(len(y))


def test_a_cell_has_the_exact_model_of_its_rows():
    model = train_cell(SVC(gamma=0.5), X, y, WEIGHT)
    assert np.array_equal(model.dual_coef_, SVC(gamma=0.5).fit(X, y).dual_coef_)


@pytest.mark.parametrize(("estimator", "target"), [(SVC(), 2), (SVR(), 2.5)])
def test_equal_targets_give_a_constant_that_is_certain(estimator, target):
    model = train_cell(estimator, X, np.full(len(X), target), WEIGHT)
    assert model == Constant(target) and model.relative_gap_ == 0.0
    assert (predict_cell(model, X) == target).all()


def test_a_cell_without_training_has_the_heaviest_class_or_the_weighted_mean():
    classes, weight = np.array([0, 2, 2]), np.array([3.0, 1.0, 1.0])
    assert constant_of(classes, weight, "max_time") == Constant(0, "max_time")
    assert constant_of(classes, np.ones(3), "max_time").value == 2
    assert constant_of(np.array([1.0, 2.0]), np.array([1.0, 3.0])).value == 1.75
    assert constant_of(classes, weight, "interrupted").relative_gap_ == np.inf


@pytest.mark.parametrize("known", [[0], [2], [0, 2], [1, 2], [0, 1, 2]])
def test_values_choose_the_class_that_is_predicted_and_unknown_classes_come_last(known):
    own = np.isin(y, known)
    model = train_cell(SVC(gamma=0.5), X[own], y[own], WEIGHT[own])
    values = decide_cell(model, X, 3)
    assert values.shape == (len(X), 3)
    assert np.array_equal(values.argmax(axis=1), predict_cell(model, X))
    unknown = [c for c in range(3) if c not in known]
    if unknown:
        assert (values[:, unknown].max(axis=1) < values[:, known].min(axis=1)).all()


@pytest.mark.parametrize("value", [0, 1])
def test_a_constant_of_two_classes_has_one_value_with_its_sign(value):
    values = decide_cell(Constant(value), X, 2)
    assert values.shape == (len(X),) and (values == (1.0 if value else -1.0)).all()
