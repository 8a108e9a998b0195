"""Bands of quantiles: what is drawn where, and what is refused."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVR, QuantileSVR
from maxmargin.inspection import BandDisplay
from maxmargin.model_selection import SVMSearchCV

x = np.linspace(0.0, 6.0, 60)[:, None]
y = np.sin(x[:, 0]) + 0.1 * np.cos(7.0 * np.arange(60)) * x[:, 0]
LEVELS = [0.1, 0.25, 0.5, 0.75, 0.9]


def texts(display):
    return [text.get_text() for text in display.legend_.get_texts()]


@pytest.mark.parametrize("scaled", [False, True])
def test_bands_are_between_pairs_of_quantiles_and_the_middle_is_a_line(scaled):
    model = QuantileSVR(quantiles=LEVELS, C=10.0)
    model = (make_pipeline(StandardScaler(), model) if scaled else model).fit(x, y)
    display = BandDisplay.from_estimator(model, x, y, grid_resolution=50, eps=0.1)
    assert display.x[0] == pytest.approx(-0.6) and display.x[-1] == pytest.approx(6.6)
    expected = model.predict(display.x[:, None])
    for k, line in enumerate(display.lines_):
        np.testing.assert_array_equal(line.get_ydata(), expected[:, k])
    assert len(display.bands_) == 2 and display.lines_[2].get_linestyle() == "-"
    widest = display.bands_[0].get_paths()[0].vertices
    assert widest[:, 1].max() == pytest.approx(expected[:, 4].max())
    assert widest[:, 1].min() == pytest.approx(expected[:, 0].min())
    np.testing.assert_array_equal(display.points_.get_offsets()[:, 1], y)
    assert texts(display) == ["10 % to 90 %", "25 % to 75 %", "median", "samples"]
    shades = [float(np.mean(band.get_facecolor()[0][:3])) for band in display.bands_]
    assert shades[0] > shades[1] + 0.05  # darker inside, in grey too
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("feature 0", "target")


def test_one_quantile_is_a_line_and_two_are_a_band():
    one = BandDisplay.from_estimator(QuantileSVR(quantile=0.9).fit(x, y), x)
    assert texts(one) == ["quantile 90 %"] and not one.bands_ and one.points_ is None
    two = BandDisplay.from_estimator(QuantileSVR(quantiles=[0.1, 0.95]).fit(x, y), x, y)
    assert texts(two) == ["10 % to 95 %", "samples"] and len(two.lines_) == 2


def test_without_bands_each_quantile_has_a_name_and_without_a_legend_there_is_none():
    display = BandDisplay.from_estimator(QuantileSVR(quantiles=[0.1, 0.5]).fit(x, y), x, y, bands=False)
    assert not display.bands_ and texts(display) == ["quantile 10 %", "median", "samples"]
    assert display.plot(plt.figure().subplots(), legend=False).legend_ is None


def test_searches_and_data_frames_are_plotted():
    frame = pd.DataFrame(x, columns=["time"])
    search = SVMSearchCV(QuantileSVR(quantiles=[0.2, 0.8]), {"C": [0.1, 1.0]}, progress=False).fit(frame, y)
    assert BandDisplay.from_estimator(search, frame, y).ax_.get_xlabel() == "time"


def test_what_is_no_model_of_quantiles_over_one_feature_is_refused():
    with pytest.raises(TypeError, match="A band needs a model of quantiles, QuantileSVR, got SVR"):
        BandDisplay.from_estimator(SVR().fit(x, y), x, y)
    with pytest.raises(ValueError, match="one feature"):
        BandDisplay.from_estimator(QuantileSVR().fit(np.hstack([x, x]), y), np.hstack([x, x]), y)
    with pytest.raises(ValueError, match="one target, and the model predicts 2"):
        BandDisplay.from_estimator(QuantileSVR().fit(x, np.column_stack([y, y])), x)
    model = QuantileSVR().fit(x, y)
    for options, message in (({"grid_resolution": 1}, "grid_resolution"), ({"eps": -1.0}, "eps")):
        with pytest.raises(ValueError, match=message):
            BandDisplay.from_estimator(model, x, **options)
    with pytest.raises(ValueError, match="inconsistent"):
        BandDisplay.from_estimator(model, x, y[1:])
    with pytest.raises(ValueError, match="shape"):
        BandDisplay([0.0, 1.0], [[1.0], [2.0]], [0.1, 0.9])
    with pytest.raises(ValueError, match="ascend"):
        BandDisplay([0.0, 1.0], [[1.0, 2.0], [2.0, 3.0]], [0.9, 0.1])
