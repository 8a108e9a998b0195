"""The beeswarm has a point for each row and feature, at its Shapley value, shaded by the feature."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from maxmargin import SVC
from maxmargin.inspection import BeeswarmDisplay, ShapleyValues, shapley

X, Y = load_iris(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def found():
    return shapley(SVC().fit(X, Y == 1), X, X[::10])


def test_points_are_the_values_and_the_features_that_add_most_are_on_top(found):
    display = BeeswarmDisplay.from_values(found)
    sizes = np.abs(found.values).mean(axis=0)
    assert (np.diff(sizes[display.features_]) <= 0).all() and len(display.points_) == 4
    for k, (points, j) in enumerate(zip(display.points_, display.features_, strict=True)):
        x, y = points.get_offsets().T
        np.testing.assert_allclose(x, found.values[:, j])
        assert (np.abs(y + k) <= 0.5).all()
        order = np.argsort(found.data[:, j], kind="stable")
        assert (np.diff(points.get_array()[order]) >= 0).all()
        assert points.get_array().min() == 0 and points.get_array().max() == 1
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels == [found.feature_names[j] for j in display.features_]
    ax = display.ax_
    assert ax.get_xlabel() == "Shapley value (True); left of 0 it lowers the output"
    assert ax.get_ylabel() == "feature"
    assert ax.get_title() == "What each feature adds, in 150 rows"
    assert display.colorbar_.ax.get_ylabel() == "value of the feature (by rank)"


def test_rows_with_the_same_value_lie_side_by_side():
    values = np.zeros((30, 2))
    values[:, 1] = np.linspace(-1, 1, 30)
    found = ShapleyValues(values, np.array(0.0), np.ones((30, 2)), ("a", "b"), ("prediction",))
    display = BeeswarmDisplay.from_values(found)
    y = display.points_[1].get_offsets()[:, 1]
    assert len(set(np.round(y, 6))) == 30 and abs(np.mean(y) + 1) < 0.05
    assert (display.points_[0].get_offsets()[:, 1] == 0).all()
    assert set(display.points_[0].get_array()) == {0.5}  # a constant feature is neither low nor high


def test_features_that_add_least_are_left_out(found):
    display = BeeswarmDisplay.from_values(found, max_features=1)
    assert list(display.features_) == [np.abs(found.values).mean(axis=0).argmax()]
    assert display.ax_.get_title().endswith("in 150 rows; the 3 that add less are left out")
    with pytest.raises(ValueError, match="max_features must be at least 1, got 0"):
        BeeswarmDisplay.from_values(found, max_features=0)


def test_the_shades_are_readable_in_grey(found):
    display = BeeswarmDisplay.from_values(found)
    grey = display.points_[0].cmap(np.linspace(0, 1, 9))[:, :3] @ [0.299, 0.587, 0.114]
    assert (np.diff(grey) > 0.02).all()


def test_models_with_several_outputs_need_one_and_names_are_enough():
    model = SVC(decision_function_shape="ovo").fit(X, Y)
    display = BeeswarmDisplay.from_estimator(model, X[::3], X[::10], output="0 against 2")
    expected = shapley(model, X[::3], X[::10]).values[:, :, 1]
    np.testing.assert_allclose(display.values.values, expected)
    with pytest.raises(ValueError, match="several outputs: give output"):
        BeeswarmDisplay.from_estimator(model, X[::3], X[::10])


def test_words_and_one_row_are_drawn():
    data = np.array([["red", 1.0], ["blue", 2.0], ["red", 3.0]], dtype=object)
    values = np.array([[0.1, 0.2], [0.3, -0.1], [0.1, 0.0]])
    for rows in (slice(None), slice(1)):
        found = ShapleyValues(values[rows], np.array(0.0), data[rows], ("a", "b"), ("prediction",))
        display = BeeswarmDisplay.from_values(found)
        display.figure_.canvas.draw()
        assert len(display.points_[0].get_offsets()) == len(values[rows])
