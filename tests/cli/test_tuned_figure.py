"""The figure of tune has titles, legends, and colours in which good scores differ."""

from types import SimpleNamespace

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from maxmargin.cli.tuned_figure import _draw_classes, _draw_numbers, draw, draw_scores  # noqa: E402


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def tuner(kernel="rbf", stages=(1, 1, 1, 2, 2)):
    n = len(stages)
    return SimpleNamespace(
        kernel_=kernel, C_=10.0, gamma_=0.1, best_score_=0.9,
        cv_results_={
            "param_kernel": np.array([kernel] * (n - 1) + ["laplacian"], dtype=object),
            "param_C": np.ma.array(np.geomspace(0.1, 1000, n), dtype=object),
            "param_gamma": np.ma.array(np.geomspace(0.01, 1, n), dtype=object),
            "mean_test_score": np.array([0.1, 0.88, 0.89, 0.9, 0.95])[-n:],
            "stage": np.array(stages), "n_rows": 100 * np.array(stages),
        },
    )  # fmt: skip


def words(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_combinations_of_the_chosen_kernel_have_the_marker_of_their_stage():
    _, ax = plt.subplots()
    draw_scores(ax, tuner())
    first, last = ax.collections
    assert len(first.get_offsets()) == 3 and len(last.get_offsets()) == 1
    assert words(ax) == [
        "first stages, on 100 rows",
        "last stage, on 200 rows",
        "chosen: C = 10, gamma = 0.1",
    ]
    assert ax.get_title() == "Scores of the combinations tried, rbf kernel"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("C", "gamma")


def test_a_very_bad_combination_does_not_take_the_colours_and_the_bar_says_so():
    figure, ax = plt.subplots()
    draw_scores(ax, tuner())
    low, high = ax.collections[0].get_clim()
    assert 0.1 < low < 0.88 and high == 0.9
    assert figure.axes[1].get_ylabel() == "score by cross-validation (arrow: down to 0.1)"


def test_a_linear_kernel_has_scores_over_C_and_one_stage_has_one_marker():
    figure, ax = plt.subplots()
    draw_scores(ax, tuner("linear", (2, 2, 2)))
    assert len(ax.collections) == 1 and len(figure.axes) == 1
    assert (ax.get_ylabel(), ax.get_yscale()) == ("score by cross-validation", "linear")
    assert words(ax) == ["tried, on 200 rows", "chosen: C = 10"]


def test_predictions_of_classes_are_counted_and_coloured_by_their_share():
    figure, ax = plt.subplots()
    _draw_classes(ax, np.array(["a", "a", "a", "b"]), np.array(["a", "a", "b", "b"]))
    assert [text.get_text() for text in ax.texts] == ["2", "1", "0", "1"]
    np.testing.assert_allclose(ax.images[0].get_array(), [[2 / 3, 1 / 3], [0, 1]])
    assert ax.get_title() and figure.axes[1].get_ylabel() == "share of the true class"


def test_predictions_of_numbers_have_the_line_of_perfect_ones():
    _, ax = plt.subplots()
    _draw_numbers(ax, np.array([1.0, 2.0, 5.0]), np.array([0.5, 2.5, 4.0]))
    assert words(ax) == ["held-out rows", "perfect predictions"] and ax.get_title()
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), [[0.5, 0.5], [5.0, 5.0]])


@pytest.mark.parametrize("numeric", [True, False])
def test_the_figure_is_written_and_closed(tmp_path, numeric):
    draw(tuner(), np.array([1, 2, 2]), np.array([1, 2, 1]), numeric, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG") and not plt.get_fignums()
