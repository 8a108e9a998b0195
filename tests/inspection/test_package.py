"""Properties that all displays have."""

import re
import subprocess
import sys

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.model_selection import GridSearchCV

from maxmargin import SVC, QuantileSVR
from maxmargin.inspection import (
    BandDisplay,
    BeeswarmDisplay,
    BoundaryDisplay,
    HullDisplay,
    SearchDisplay,
    TraceDisplay,
    Watched,
    WaterfallDisplay,
)
from maxmargin.inspection._style import FACES, LINES, MARKERS, REGIONS

X, Y = make_blobs(30, centers=2, random_state=0)


@pytest.fixture(scope="module")
def displays():
    model = SVC(kernel="linear", solver=Watched("smo")).fit(X, Y)
    search = GridSearchCV(SVC(), {"C": [1, 10], "gamma": [0.1, 1]}, cv=2).fit(X, Y)
    band = QuantileSVR(quantiles=[0.1, 0.5, 0.9]).fit(X[:, :1], X[:, 1])
    return {
        BandDisplay: lambda **k: BandDisplay.from_estimator(band, X[:, :1], X[:, 1], **k),
        BoundaryDisplay: lambda **k: BoundaryDisplay.from_estimator(model, X, Y, **k),
        HullDisplay: lambda **k: HullDisplay.from_estimator(model, X, Y, max_steps=20, **k),
        SearchDisplay: lambda **k: SearchDisplay.from_estimator(search, **k),
        TraceDisplay: lambda **k: TraceDisplay.from_estimator(model, **k),
        WaterfallDisplay: lambda **k: WaterfallDisplay.from_estimator(model, X, X[:5], **k),
        BeeswarmDisplay: lambda **k: BeeswarmDisplay.from_estimator(model, X, X[:5], **k),
    }


KINDS = (
    BandDisplay,
    BeeswarmDisplay,
    BoundaryDisplay,
    HullDisplay,
    SearchDisplay,
    TraceDisplay,
    WaterfallDisplay,
)


@pytest.mark.parametrize("kind", KINDS)
def test_given_axes_are_drawn_in_and_the_state_of_pyplot_is_left_alone(displays, kind):
    figure, (ax, last) = plt.subplots(1, 2)
    settings = dict(matplotlib.rcParams)
    display = displays[kind](ax=ax)
    assert display.figure_ is figure
    assert plt.get_fignums() == [figure.number] and plt.gcf() is figure
    assert figure._axstack.current() is last
    assert dict(matplotlib.rcParams) == settings
    assert ax.has_data() or any(child.has_data() for child in ax.child_axes)
    assert not last.has_data()


@pytest.mark.parametrize("kind", KINDS)
def test_plot_can_be_called_again_and_makes_a_new_figure(displays, kind):
    display = displays[kind]()
    before = display.figure_
    assert display.plot() is display
    assert display.figure_ is not before and display.ax_.figure is display.figure_
    assert display.ax_.get_xlabel() and display.ax_.get_ylabel()


@pytest.mark.parametrize("kind", KINDS)
def test_without_matplotlib_the_extra_is_named(monkeypatch, displays, kind):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=rf"{kind.__name__} needs matplotlib.*maxmargin\[plot\]"):
        displays[kind]()


def test_matplotlib_is_imported_only_to_draw():
    script = "import sys, maxmargin, maxmargin.inspection; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "False", done.stderr


@pytest.mark.parametrize("colours", [FACES, REGIONS])
def test_classes_that_follow_each_other_differ_in_grey(colours):
    rgb = np.array([[int(c, 16) for c in re.findall("[0-9a-f]{2}", colour)] for colour in colours]) / 255
    grey = rgb @ [0.299, 0.587, 0.114]
    assert np.abs(np.diff(grey)).min() > 0.08
    assert np.abs(grey[0] - grey[2]) > 0.08


def test_looks_do_not_repeat_and_no_sample_has_the_mark_of_a_bound():
    for looks in (FACES, LINES, MARKERS, REGIONS):
        assert len(set(looks)) == len(looks) >= 6
    assert "s" not in MARKERS
