"""Classification on cells: labels, classes that a cell does not have, weights of classes."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons
from sklearn.utils import compute_class_weight

from maxmargin import SVC, CellSVC
from maxmargin.cells.training import Constant


def cells(estimator=None, **more):
    return CellSVC(estimator, **{"cell_size": 150, "report_cost": False, **more})


def test_a_cell_with_one_class_predicts_it():
    X, y = make_blobs(800, centers=[[0, 0], [100, 0], [0, 100], [100, 100]], random_state=0)
    y = np.array(list("abcd"))[y]
    model = cells().fit(X, y)
    assert any(isinstance(each, Constant) for each in model.models_)
    assert model.score(X, y) == 1.0
    values = model.decision_function(X)
    assert values.shape == (800, 4)
    assert np.array_equal(model.classes_[values.argmax(axis=1)], model.predict(X))


def test_classes_that_a_cell_does_not_have_come_last():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(300, 2)), rng.normal(size=(300, 2)) + 50])
    y = np.concatenate([rng.integers(0, 2, 300), rng.integers(2, 4, 300)])
    model = cells(SVC(gamma=0.5), cell_size=200).fit(X, y)
    values = model.decision_function(X)
    assert (values[:300, :2].min(axis=1) > values[:300, 2:].max(axis=1)).all()
    assert set(model.predict(X[:300])) <= {0, 1}


def test_votes_of_pairs_have_no_shape_of_their_own():
    X, y = make_blobs(400, centers=3, random_state=0)
    one, two = (cells(SVC(decision_function_shape=s)).fit(X, y) for s in ("ovr", "ovo"))
    assert np.array_equal(one.decision_function(X), two.decision_function(X))


@pytest.mark.parametrize("class_weight", ["balanced", {"no": 1.0, "yes": 5.0}])
def test_weights_of_classes_are_those_of_all_rows(class_weight):
    X, y = make_moons(600, noise=0.3, random_state=0)
    y = np.array(["no", "yes"])[(y > 0) & (X[:, 0] > 1.0) * 1]
    factor = compute_class_weight(class_weight, classes=np.array(["no", "yes"]), y=y)
    weighted = cells(SVC(gamma=1.0)).fit(X, y, factor[(y == "yes").astype(int)])
    model = cells(SVC(gamma=1.0, class_weight=class_weight)).fit(X, y)
    assert np.array_equal(model.decision_function(X), weighted.decision_function(X))


def test_a_class_with_weight_zero_is_never_predicted():
    X, y = make_blobs(400, centers=3, random_state=0)
    model = cells(SVC(class_weight={0: 1, 1: 0, 2: 1})).fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2] and set(model.predict(X)) == {0, 2}


def test_weights_of_classes_that_leave_no_row_are_refused():
    X, y = make_moons(400, random_state=0)
    with pytest.raises(ValueError, match="class_weight leaves no sample with a positive weight"):
        cells(SVC(class_weight={0: 0.0, 1: 0.0})).fit(X, y)


def test_negative_weights_of_classes_are_refused():
    X, y = make_blobs(100, centers=2, random_state=0)
    with pytest.raises(ValueError, match="class_weight must not be negative"):
        cells(SVC(class_weight={0: 1, 1: -1})).fit(X, y)


def test_classes_without_weight_are_unknown():
    X, y = make_blobs(400, centers=3, random_state=0)
    model = cells().fit(X, y, (y != 1).astype(float))
    assert model.classes_.tolist() == [0, 2] and set(model.predict(X)) == {0, 2}


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="greater than one; got 1 class"):
        cells().fit([[0.0], [1.0]], [1, 1])
