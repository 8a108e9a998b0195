"""Properties that all displays have."""

import re
import subprocess
import sys

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.artist import Artist
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
from maxmargin.inspection._style import COLOURS, FACES, LINES, MARKERS, REGIONS, legend_below, titled

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
def test_a_display_has_a_title_names_of_its_axes_and_a_legend_or_a_colour_bar(displays, kind):
    display = displays[kind]()
    bars = [ax for ax in display.figure_.axes if ax.get_label() == "<colorbar>"]
    panels = [ax for ax in display.figure_.axes if ax not in bars]
    assert panels[0] is display.ax_
    for ax in panels:
        assert ax.get_title() and ax.get_xlabel() and ax.get_ylabel()
        assert ax.get_legend() is not None or bars
        if ax.get_legend() is not None:
            assert all(text.get_text() for text in ax.get_legend().get_texts())
    assert all(bar.get_ylabel() for bar in bars)


@pytest.mark.parametrize("kind", KINDS)
def test_titles_legends_and_numbers_do_not_overlap_and_are_within_the_figure(displays, kind):
    display = displays[kind]()
    figure = display.figure_
    figure.canvas.draw()
    for ax in figure.axes:
        area = ax.get_window_extent()
        for text in (ax.title, ax.xaxis.label, ax.yaxis.label):
            if text.get_text():
                box = text.get_window_extent()
                assert not box.overlaps(area)
                assert figure.bbox.x0 - 1 <= box.x0 and box.x1 <= figure.bbox.x1 + 1
        legend = ax.get_legend()
        if legend is not None:
            box = legend.get_window_extent()
            others = (ax.title, ax.xaxis.label)
            assert not box.overlaps(area)
            assert not any(box.overlaps(text.get_window_extent()) for text in others)
            assert figure.bbox.y0 - 1 <= box.y0 and box.x1 <= figure.bbox.x1 + 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_title_that_the_axes_have_is_kept(displays, kind):
    _, ax = plt.subplots()
    ax.set_title("mine")
    display = displays[kind](ax=ax)
    assert ax.get_title() == "mine" and (display.ax_ is not ax or display.ax_.get_title() == "mine")


@pytest.mark.parametrize("kind", KINDS)
def test_attributes_that_end_in_an_underscore_are_artists_of_the_figure(displays, kind):
    """scikit-learn's convention for displays: `from_estimator`, `plot`, `ax_`, `figure_`, artists."""
    assert callable(kind.from_estimator) and isinstance(kind.__dict__["from_estimator"], classmethod)
    display = displays[kind]()
    assert isinstance(display, kind)
    found = {name: value for name, value in vars(display).items() if name.endswith("_")}
    assert {"ax_", "figure_"} < set(found)
    artists = []
    for value in found.values():
        values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
        artists += [one for one in values if isinstance(one, Artist)]
    assert len(artists) >= 3
    assert {artist.get_figure(root=True) for artist in artists} == {display.figure_}
    documented = kind.__doc__.split("Attributes\n")[1]
    assert all(name in documented for name in found)


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


def simulated(colours):
    """Colours as readers without receptors for green see them (Machado, Oliveira, Fernandes 2009), linear."""
    rgb = np.array([[int(c, 16) for c in re.findall("[0-9a-f]{2}", colour)] for colour in colours]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
    return np.clip(linear @ np.transpose(seen), 0, 1) ** (1 / 2.2)


@pytest.mark.parametrize("colours", [FACES[:4], COLOURS])
def test_colours_differ_for_readers_who_do_not_distinguish_red_from_green(colours):
    seen = simulated(colours)
    distance = np.linalg.norm(seen[:, None] - seen[None], axis=-1)
    assert distance[np.triu_indices(len(colours), 1)].min() > 0.1


def test_a_title_is_not_replaced_and_a_legend_below_is_lower_than_the_axes():
    figure, ax = plt.subplots(layout="constrained")
    titled(ax, "first")
    titled(ax, "second")
    assert ax.get_title() == "first"
    ax.plot([1, 2], label="line")
    ax.set_xlabel("x")
    legend = legend_below(ax)
    figure.canvas.draw()
    assert legend.get_window_extent().y1 < ax.xaxis.label.get_window_extent().y0


def test_looks_do_not_repeat_and_no_sample_has_the_mark_of_a_bound():
    for looks in (COLOURS, FACES, LINES, MARKERS, REGIONS):
        assert len(set(looks)) == len(looks) >= 6
    assert "s" not in MARKERS
