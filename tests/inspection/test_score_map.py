"""The display of a search shows its scores, its path and its best node."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, ParameterGrid

from maxmargin import SVC
from maxmargin.inspection import SearchDisplay
from maxmargin.model_selection import Grid, heuristic


def searched(param_grid, scores=None, path=None, **more):
    """Something with the attributes of a fitted search."""
    nodes = list(ParameterGrid(param_grid))
    scores = np.arange(len(nodes), dtype=float) if scores is None else np.array(scores, dtype=float)
    found = SimpleNamespace(cv_results_={"params": nodes, "mean_test_score": scores, **more})
    if path is not None:
        found.path_ = path
    return found


def test_the_mesh_has_the_scores_at_their_values():
    grid = {"C": [100, 1, 10], "gamma": [0.1, 0.01]}
    display = SearchDisplay.from_estimator(searched(grid, [5, 4, 1, 0, 3, 2]))
    np.testing.assert_array_equal(display.y, [1, 10, 100])
    np.testing.assert_array_equal(display.x, [0.01, 0.1])
    expected = [[0, 1], [2, 3], [4, 5]]
    np.testing.assert_array_equal(display.scores, expected)
    np.testing.assert_array_equal(display.mesh_.get_array().reshape(3, 2), expected)
    assert display.ax_.figure is display.figure_
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("gamma", "C")
    assert display.colorbar_.ax.get_ylabel() == "mean test score"
    np.testing.assert_array_equal(display.best_.get_xydata(), [[0.1, 100]])
    assert display.arrows_ == [] and display.cold_ is None


def test_every_value_lies_within_its_cell_and_scales_follow_the_values():
    grid = {"C": [1, 10, 100, 1000], "gamma": [0.1, 0.2, 0.3, 0.4], "nu": [0.0, 0.5, 1.0]}
    for x, y, scales in (("gamma", "C", ["linear", "log"]), ("C", "nu", ["log", "linear"])):
        display = SearchDisplay.from_estimator(searched(grid), param_x=x, param_y=y)
        assert [display.ax_.get_xscale(), display.ax_.get_yscale()] == scales
        corners = display.mesh_.get_coordinates()
        for values, edges in ((display.x, corners[0, :, 0]), (display.y, corners[:, 0, 1])):
            assert len(edges) == len(values) + 1
            assert (edges[:-1] < values).all() and (values < edges[1:]).all()


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([1, 2], "linear"),
        ([1, 10], "log"),
        ([-1, 0, 1], "linear"),
        ([1, 2, 4, 8], "log"),
        ([1, 2, 3], "linear"),
    ],
)
def test_logarithmic_axes_are_for_values_that_are_evenly_spaced_in_logs(values, scale):
    display = SearchDisplay.from_estimator(searched({"a": values, "b": [1, 2]}), param_x="a")
    assert display.ax_.get_xscale() == scale


def test_the_path_is_drawn_from_parent_to_node():
    grid = {"C": [1, 10, 100], "sigma": [0.1, 1, 10]}
    path = heuristic(Grid(grid), spine="sigma")
    display = SearchDisplay.from_estimator(searched(grid, path=path.pairs()))
    nodes = list(ParameterGrid(grid))
    expected = {
        ((nodes[p]["sigma"], nodes[p]["C"]), (nodes[i]["sigma"], nodes[i]["C"]))
        for p, i in path.pairs()
        if p >= 0
    }
    drawn = {(arrow.xyann, arrow.xy) for arrow in display.arrows_}
    assert drawn == expected and len(display.arrows_) == 8
    np.testing.assert_array_equal(display.cold_.get_xydata(), [[10, 100]])
    again = display.plot(path=False)
    assert again is display and display.arrows_ == [] and display.cold_ is None


def test_the_best_of_nodes_that_share_a_cell_is_shown():
    grid = {"C": [1, 10], "gamma": [1, 2], "kernel": ["rbf", "laplacian"]}
    scores = [1, 5, 2, np.nan, np.nan, np.nan, 7, 3]
    path = [(-1, 0), (0, 1), (0, 2), (1, 3), (-1, 4), (-1, 5), (2, 6), (3, 7)]
    display = SearchDisplay.from_estimator(searched(grid, scores, path))
    np.testing.assert_array_equal(display.scores, [[5, 2], [np.nan, 7]])
    assert np.ma.getmaskarray(display.mesh_.get_array()).sum() == 1
    assert len(display.arrows_) == 2  # both kernels' arrows are the same
    assert len(display.cold_.get_xydata()) == 2
    np.testing.assert_array_equal(display.best_.get_xydata(), [[2, 10]])


def test_scores_that_are_all_nan_have_no_best():
    display = SearchDisplay.from_estimator(searched({"C": [1, 2], "gamma": [1, 2]}, [np.nan] * 4))
    assert display.best is None and display.best_ is None


def test_another_metric_and_given_axes():
    found = searched({"C": [1, 2], "gamma": [1, 2]}, mean_test_f1=np.array([4.0, 3.0, 2.0, 1.0]))
    _, ax = plt.subplots()
    display = SearchDisplay.from_estimator(found, metric="f1", ax=ax, cmap="Greys")
    assert display.ax_ is ax
    np.testing.assert_array_equal(display.scores, [[4, 3], [2, 1]])
    assert display.mesh_.get_cmap().name == "Greys"
    assert display.colorbar_.ax.get_ylabel() == "mean test f1"


def test_a_search_of_scikit_learn():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    search = GridSearchCV(SVC(), {"C": [0.1, 1, 10], "gamma": [0.1, 1]}, cv=2).fit(X + y[:, None], y)
    display = SearchDisplay.from_estimator(search)
    np.testing.assert_allclose(display.scores.ravel(), search.cv_results_["mean_test_score"])
    at = (search.best_params_["gamma"], search.best_params_["C"])
    np.testing.assert_array_equal(display.best_.get_xydata(), [at])


def test_wrong_searches_are_refused():
    with pytest.raises(NotFittedError, match="fit it first"):
        SearchDisplay.from_estimator(GridSearchCV(SVC(), {"C": [1]}))
    plane = searched({"C": [1, 2], "gamma": [1, 2], "kernel": ["rbf", "poly"], "nu": [0.5]})
    with pytest.raises(ValueError, match="no metric 'f1': use one of score"):
        SearchDisplay.from_estimator(plane, metric="f1")
    for name in ("kernel", "nu", "degree"):
        with pytest.raises(ValueError, match=f"'{name}' is not a numeric parameter .* use two of C, gamma"):
            SearchDisplay.from_estimator(plane, param_x=name)
    with pytest.raises(ValueError, match="both 'C'"):
        SearchDisplay.from_estimator(plane, param_x="C", param_y="C")
    with pytest.raises(ValueError, match=r"Two numeric parameters .* has C"):
        SearchDisplay.from_estimator(searched({"C": [1, 2], "kernel": ["rbf"]}))
    with pytest.raises(ValueError, match=r"scores must have the shape \(1, 2\)"):
        SearchDisplay([[1.0]], [1, 2], [1], param_x="a", param_y="b")


def test_from_search_is_another_name():
    found = searched({"C": [1, 2], "gamma": [1, 2]}, [1, 2, 3, 4])
    one, other = (
        SearchDisplay.from_search(found, param_x="C"),
        SearchDisplay.from_estimator(found, param_x="C"),
    )
    np.testing.assert_array_equal(one.scores, other.scores)
    assert one.ax_.get_xlabel() == other.ax_.get_xlabel() == "C"
