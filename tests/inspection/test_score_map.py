"""The display of a search shows its scores, the nodes to choose from, and on request its path."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC
from maxmargin.inspection import SearchDisplay
from maxmargin.inspection._score_grid import robust_range, simplest_within_error, standard_errors
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
    display = SearchDisplay.from_estimator(searched(grid, path=path.pairs()), path=True)
    nodes = list(ParameterGrid(grid))
    expected = {
        ((nodes[p]["sigma"], nodes[p]["C"]), (nodes[i]["sigma"], nodes[i]["C"]))
        for p, i in path.pairs()
        if p >= 0
    }
    drawn = {(arrow.xyann, arrow.xy) for arrow in display.arrows_}
    assert drawn == expected and len(display.arrows_) == 8
    np.testing.assert_array_equal(display.cold_.get_xydata(), [[10, 100]])
    labels = [text.get_text() for text in display.legend_.get_texts()]
    assert {"from a node to one that starts from its solution", "trained without a warm start"} < set(labels)
    again = display.plot()  # the scores are hidden on request only
    assert again is display and display.arrows_ == [] and display.cold_ is None


def test_the_best_of_nodes_that_share_a_cell_is_shown():
    grid = {"C": [1, 10], "gamma": [1, 2], "kernel": ["rbf", "laplacian"]}
    scores = [1, 5, 2, np.nan, np.nan, np.nan, 7, 3]
    path = [(-1, 0), (0, 1), (0, 2), (1, 3), (-1, 4), (-1, 5), (2, 6), (3, 7)]
    display = SearchDisplay.from_estimator(searched(grid, scores, path), path=True)
    np.testing.assert_array_equal(display.scores, [[5, 2], [np.nan, 7]])
    assert np.ma.getmaskarray(display.mesh_.get_array()).sum() == 1
    assert "no score" in [text.get_text() for text in display.legend_.get_texts()]
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


# -- the nodes to choose from ----------------------------------------------------------------


def folds(param_grid, scores):
    """A search with the given scores of each fold, in rows."""
    scores = np.asarray(scores, dtype=float)
    parts = {f"split{k}_test_score": fold for k, fold in enumerate(scores)}
    return searched(param_grid, scores.mean(axis=0), std_test_score=scores.std(axis=0), **parts)


def test_the_simplest_node_within_one_standard_error_has_a_mark_of_its_own():
    grid = {"C": [1, 10, 100], "gamma": [0.1, 1, 10]}
    mean = np.array([0.50, 0.60, 0.60, 0.70, 0.80, 0.75, 0.78, 0.82, 0.70])
    # The folds of the best node, the eighth, have the standard error 0.04 / sqrt(4) = 0.02.
    offsets = np.outer([-1, -1, 1, 1], np.where(mean == 0.82, 0.04, 0.5))
    display = SearchDisplay.from_estimator(folds(grid, mean + offsets))
    np.testing.assert_array_equal(display.best_.get_xydata(), [[1, 100]])
    np.testing.assert_array_equal(display.simplest_.get_xydata(), [[1, 10]])
    labels = [text.get_text() for text in display.legend_.get_texts()]
    assert "best: 0.82 at C = 100, gamma = 1" in labels
    assert "simplest within one standard error:\n0.8 at C = 10, gamma = 1" in labels
    assert display.colorbar_.ax.get_ylabel().startswith("mean test score of 4 folds")


def test_the_best_node_may_be_the_simplest_and_without_folds_no_node_is():
    grid = {"C": [1, 10, 100], "gamma": [0.1, 1, 10]}
    mean = np.array([0.5, 0.6, 0.6, 0.7, 0.9, 0.7, 0.7, 0.8, 0.7])
    display = SearchDisplay.from_estimator(folds(grid, [mean - 0.01, mean + 0.01]))
    assert display.simplest == display.best and display.simplest_ is None
    assert display.best_.get_label().startswith("best, also the simplest within one standard error")
    assert SearchDisplay.from_estimator(searched(grid, mean)).simplest is None


def test_nodes_of_other_kernels_and_of_unknown_parameters_are_not_called_simpler():
    grid = {"C": [1, 10], "gamma": [1, 10], "kernel": ["rbf", "laplacian"]}
    nodes = list(ParameterGrid(grid))
    scores = np.array([0.9 if node["kernel"] == "rbf" else 0.8 for node in nodes])
    best = max(range(8), key=lambda k: (scores[k], nodes[k]["C"] * nodes[k]["gamma"]))
    errors = np.full(8, 0.5)
    assert nodes[simplest_within_error(nodes, scores, errors, best)] == {"C": 1, "gamma": 1, "kernel": "rbf"}
    assert simplest_within_error(nodes, scores, None, best) is None
    others = [{"C": node["C"], "epsilon": node["gamma"]} for node in nodes]
    assert simplest_within_error(others, scores, errors, best) is None
    with_nu = [{"nu": node["C"] / 100, "gamma": node["gamma"]} for node in nodes]
    assert with_nu[simplest_within_error(with_nu, scores, errors, best)] == {"nu": 0.1, "gamma": 1}


def test_standard_errors_are_those_of_the_means_of_the_folds():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    search = GridSearchCV(SVC(), {"C": [1, 10], "gamma": [0.1, 1]}, cv=4).fit(X + y[:, None], y)
    parts = np.array([search.cv_results_[f"split{k}_test_score"] for k in range(4)])
    expected = parts.std(axis=0) / 2
    np.testing.assert_allclose(standard_errors(search.cv_results_, "score"), expected)
    assert standard_errors({"std_test_score": expected, "split0_test_score": expected}, "score") is None


@pytest.mark.parametrize(
    ("best", "words"),
    [
        ((0, 1), ["gamma is at the edge: try smaller"]),
        ((2, 2), ["gamma is at the edge: try larger", "C is at the edge: try larger"]),
        ((1, 1), []),
    ],
)
def test_the_edge_of_the_grid_is_marked_if_the_best_node_is_there(best, words):
    grid = {"C": [1, 10, 100], "gamma": [0.1, 1, 10]}
    scores = np.zeros((3, 3))
    scores[best[1], best[0]] = 1.0
    display = SearchDisplay.from_estimator(searched(grid, scores.ravel()))
    labels = [line.get_label() for line in display.edges_]
    assert labels == [f"the best {word} values" for word in words]
    for line in display.edges_:
        ends = np.asarray(line.get_xydata())
        along = 0 if "gamma" in line.get_label() else 1
        assert set(ends[:, along]) == {best[along] / 2} and set(ends[:, 1 - along]) == {0.0, 1.0}
    assert display.ax_.get_xlim()[0] < 0.1  # the line is not counted as data


def test_two_values_of_a_parameter_have_no_edge():
    assert SearchDisplay.from_estimator(searched({"C": [1, 2], "gamma": [1, 2]}, [0, 1, 2, 3])).edges_ == []


# -- colours and names -----------------------------------------------------------------------


def test_a_few_very_bad_scores_do_not_take_the_colour_range():
    grid = {"C": [1, 2, 4, 8, 16], "gamma": [1, 2, 4, 8]}
    scores = np.r_[np.linspace(0.90, 0.95, 17), 0.1, 0.2, 0.3]
    display = SearchDisplay.from_estimator(searched(grid, scores))
    low, high = display.mesh_.get_clim()
    assert 0.8 < low < 0.95 and high == 0.95
    assert display.colorbar_.extend == "min"
    assert display.colorbar_.ax.get_ylabel() == "mean test score\n(beyond the arrow: down to 0.1)"
    display.plot(score_range="full")
    assert display.mesh_.get_clim() == (0.1, 0.95) and display.colorbar_.extend == "neither"
    display.plot(score_range=(0.25, 0.94))
    assert display.mesh_.get_clim() == (0.25, 0.94) and display.colorbar_.extend == "both"
    assert display.colorbar_.ax.get_ylabel().endswith("down to 0.1, up to 0.95)")
    for wrong in ("robsut", (1.0, 0.5)):
        with pytest.raises(ValueError, match="score_range must"):
            display.plot(score_range=wrong)


@pytest.mark.parametrize(
    "scores", [np.linspace(-3, 7, 50), np.full(9, 0.5), [0.9] * 7 + [0.2], [0.5, np.nan], [1e-3, 2e-3, 3e-3]]
)
def test_evenly_spread_or_equal_scores_keep_the_whole_range(scores):
    assert robust_range(np.array(scores)) == (np.nanmin(scores), np.nanmax(scores))


def test_no_score_at_all_has_a_range():
    low, high = robust_range(np.full(3, np.nan))
    assert low < high


def test_axes_have_the_names_of_parameters_without_the_steps_of_the_pipeline():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    search = GridSearchCV(
        make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 1, 10], "svc__gamma": [0.1, 1]}, cv=2
    ).fit(X + y[:, None], y)
    display = SearchDisplay.from_estimator(search)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("gamma", "C")
    assert display.param_x == "svc__gamma" and display.ax_.get_title() == "SVC: scores over C and gamma"
    turned = SearchDisplay.from_estimator(search, param_x="C")
    assert (turned.ax_.get_xlabel(), turned.param_x) == ("C", "svc__C")
    both = searched({"a__C": [1, 2], "b__C": [1, 2]})
    assert SearchDisplay.from_estimator(both).ax_.get_xlabel() == "b__C"  # C alone would be ambiguous
    with pytest.raises(ValueError, match="'C' is not a numeric parameter"):
        SearchDisplay.from_estimator(both, param_x="C")
