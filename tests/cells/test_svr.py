"""Regression on cells."""

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

from maxmargin import SVR, CellSVR


def test_each_cell_has_a_regression_of_its_own():
    X, y = make_friedman1(1000, random_state=0)
    model = CellSVR(SVR(C=100.0), cell_size=150, report_cost=False).fit(X, y)
    assert model.n_cells_ > 3 and model.score(X, y) > 0.95


def test_a_cell_with_equal_targets_predicts_them():
    X = np.concatenate([np.zeros((100, 1)), np.full((100, 1), 9.0)]) + 1e-3 * np.arange(200)[:, None] % 0.1
    y = np.where(X[:, 0] > 5, 3.0, -1.0)
    assert np.array_equal(CellSVR(cell_size=60).fit(X, y).predict(X), y)


def test_parameters_with_the_width_of_the_tube_are_chosen_for_all_cells():
    X, y = make_friedman1(600, noise=1.0, random_state=0)
    model = CellSVR(cell_size=200, tune=True, report_cost=False).fit(X, y)
    assert {(m.C, m.gamma, m.epsilon) for m in model.models_} == {
        (model.estimator_.C, model.estimator_.gamma, model.estimator_.epsilon)
    }
    assert model.estimator_.epsilon != 0.1


def test_several_targets_are_refused():
    with pytest.raises(ValueError, match="1d array"):
        CellSVR().fit(np.zeros((4, 1)), np.zeros((4, 2)))
