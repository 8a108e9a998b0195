"""The waterfall leads from the mean over the background to the value of a row."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from maxmargin import SVC
from maxmargin.inspection import ShapleyValues, WaterfallDisplay, shapley

X, Y = load_iris(return_X_y=True, as_frame=True)
VALUES = np.array([[0.5, -2.0, 0.25, 1.0], [0.0, 0.0, 0.0, 0.0]])


@pytest.fixture
def found():
    data = np.array([[1.0, 20000.0, 0.1234567, "red"], [1.0, 2.0, 3.0, "blue"]], dtype=object)
    return ShapleyValues(VALUES, np.array(1.0), data, ("a", "b", "c", "d"), ("prediction",))


def test_bars_start_where_the_one_below_ends_and_the_largest_is_on_top(found):
    display = WaterfallDisplay.from_values(found)
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels == ["c = 0.1235", "a = 1", "d = red", "b = 2e+04"]
    steps = [0.25, 0.5, 1.0, -2.0]
    ends = 1.0 + np.cumsum(steps)
    for bar, start, step in zip(display.bars_, [1.0, *ends], steps, strict=False):
        assert (bar.get_x(), bar.get_width()) == (start, step)
    assert [text.get_text() for text in display.texts_] == ["+0.25", "+0.5", "+1", "-2"]
    assert display.base_.get_xdata()[0] == 1.0 and display.value_.get_xdata()[0] == ends[-1] == 0.75
    names = [text.get_text() for text in display.legend_.get_texts()]
    assert names == ["mean over the background: 1", "this row: 0.75", "raises the value", "lowers the value"]
    ax = display.ax_
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == (
        "prediction",
        "feature",
        "What each feature adds to the value of one row",
    )


def test_directions_differ_without_colours(found):
    bars = WaterfallDisplay.from_values(found).bars_
    up, down = bars[0], bars[-1]
    assert not up.get_hatch() and down.get_hatch()
    grey = [np.dot(bar.get_facecolor()[:3], [0.299, 0.587, 0.114]) for bar in (up, down)]
    assert abs(grey[0] - grey[1]) > 0.2


@pytest.mark.parametrize("most", [1, 2, 3, 4, 9])
def test_features_without_a_bar_share_one(found, most):
    display = WaterfallDisplay.from_values(found, max_features=most)
    assert len(display.bars_) == min(most + 1, 4)
    left = sorted(VALUES[0], key=abs)[: 4 - min(most, 4)]
    if left:
        assert display.bars_[0].get_width() == pytest.approx(sum(left))
        label = display.ax_.get_yticklabels()[0].get_text()
        assert label == (f"{len(left)} other features" if len(left) > 1 else "1 other feature")
    assert sum(bar.get_width() for bar in display.bars_) == pytest.approx(VALUES[0].sum())


def test_a_row_without_any_effect_is_drawn(found):
    display = WaterfallDisplay.from_values(found, row=-1)
    assert [bar.get_width() for bar in display.bars_] == [0.0] * 4
    display.figure_.canvas.draw()


def test_one_row_of_a_model_is_explained():
    model = SVC(decision_function_shape="ovo").fit(X, Y)
    display = WaterfallDisplay.from_estimator(model, X, X[::10], row=100, output="1 against 2")
    expected = shapley(model, X[100:101], X[::10]).of_output("1 against 2")
    assert display.value_.get_xdata()[0] == pytest.approx(model.decision_function(X[100:101])[0, 2])
    assert sorted(bar.get_width() for bar in display.bars_) == pytest.approx(sorted(expected.values[0]))
    assert display.ax_.get_xlabel() == "decision value, 1 against 2"
    assert any(label.startswith("petal length (cm) = ") for label in display.labels)
    plain = SVC(decision_function_shape="ovo").fit(X.to_numpy(), Y)
    again = WaterfallDisplay.from_estimator(plain, X.to_numpy(), X[::10].to_numpy(), row=100, output=2)
    np.testing.assert_allclose(again.values, display.values)


def test_data_frames_with_other_dtypes_are_shown():
    frame = pd.DataFrame({"whole": np.arange(30), "single": np.linspace(0, 1, 30, dtype=np.float32)})
    model = SVC().fit(frame, np.arange(30) > 14)
    display = WaterfallDisplay.from_estimator(model, frame, frame, row=3)
    assert sorted(display.labels) == ["single = 0.1034", "whole = 3"]


def test_wrong_arguments_are_refused(found):
    for row in (2, -3):
        with pytest.raises(ValueError, match=f"row must be one of 0 to 1, got {row}"):
            WaterfallDisplay.from_values(found, row=row)
    with pytest.raises(ValueError, match="max_features must be at least 1, got 0"):
        WaterfallDisplay.from_values(found, max_features=0)
    with pytest.raises(ValueError, match=r"values must have the shape \(2,\), got \(3,\)"):
        WaterfallDisplay([1.0, 2.0, 3.0], 0.0, ["a", "b"], output="prediction")
    model = SVC().fit(X, Y)
    with pytest.raises(ValueError, match="several outputs: give output"):
        WaterfallDisplay.from_estimator(model, X, X[:3])
    with pytest.raises(ValueError, match="row must be one of 0 to 149, got 150"):
        WaterfallDisplay.from_estimator(model, X, X[:3], row=150, output=0)
    assert not plt.get_fignums()
