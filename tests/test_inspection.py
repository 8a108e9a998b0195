"""What the displays draw."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, ParameterGrid

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from maxmargin import SVC, dual  # noqa: E402
from maxmargin.gram import Gram  # noqa: E402
from maxmargin.inspection import SearchDisplay, TraceDisplay  # noqa: E402
from maxmargin.model_selection import Grid, heuristic  # noqa: E402
from maxmargin.solvers import MDM, MaxMinOver, Stop  # noqa: E402


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def searched(param_grid, scores=None, path=None, **more):
    """Something with the attributes of a fitted search."""
    nodes = list(ParameterGrid(param_grid))
    scores = np.arange(len(nodes), dtype=float) if scores is None else np.array(scores, dtype=float)
    found = SimpleNamespace(cv_results_={"params": nodes, "mean_test_score": scores, **more})
    if path is not None:
        found.path_ = path
    return found


# -- searches --------------------------------------------------------------------------------


def test_the_mesh_has_the_scores_at_their_values():
    grid = {"C": [100, 1, 10], "gamma": [0.1, 0.01]}
    display = SearchDisplay.from_search(searched(grid, [5, 4, 1, 0, 3, 2]))
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
        display = SearchDisplay.from_search(searched(grid), param_x=x, param_y=y)
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
    display = SearchDisplay.from_search(searched({"a": values, "b": [1, 2]}), param_x="a")
    assert display.ax_.get_xscale() == scale


def test_the_path_is_drawn_from_parent_to_node():
    grid = {"C": [1, 10, 100], "sigma": [0.1, 1, 10]}
    path = heuristic(Grid(grid), spine="sigma")
    display = SearchDisplay.from_search(searched(grid, path=path.pairs()))
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
    display = SearchDisplay.from_search(searched(grid, scores, path))
    np.testing.assert_array_equal(display.scores, [[5, 2], [np.nan, 7]])
    assert np.ma.getmaskarray(display.mesh_.get_array()).sum() == 1
    assert len(display.arrows_) == 2  # both kernels' arrows are the same
    assert len(display.cold_.get_xydata()) == 2
    np.testing.assert_array_equal(display.best_.get_xydata(), [[2, 10]])


def test_scores_that_are_all_nan_have_no_best():
    display = SearchDisplay.from_search(searched({"C": [1, 2], "gamma": [1, 2]}, [np.nan] * 4))
    assert display.best is None and display.best_ is None


def test_another_metric_and_given_axes():
    found = searched({"C": [1, 2], "gamma": [1, 2]}, mean_test_f1=np.array([4.0, 3.0, 2.0, 1.0]))
    _, ax = plt.subplots()
    display = SearchDisplay.from_search(found, metric="f1", ax=ax, cmap="Greys")
    assert display.ax_ is ax
    np.testing.assert_array_equal(display.scores, [[4, 3], [2, 1]])
    assert display.mesh_.get_cmap().name == "Greys"
    assert display.colorbar_.ax.get_ylabel() == "mean test f1"


def test_a_search_of_scikit_learn():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    search = GridSearchCV(SVC(), {"C": [0.1, 1, 10], "gamma": [0.1, 1]}, cv=2).fit(X + y[:, None], y)
    display = SearchDisplay.from_search(search)
    np.testing.assert_allclose(display.scores.ravel(), search.cv_results_["mean_test_score"])
    at = (search.best_params_["gamma"], search.best_params_["C"])
    np.testing.assert_array_equal(display.best_.get_xydata(), [at])


def test_wrong_searches_are_refused():
    with pytest.raises(NotFittedError, match="fit it first"):
        SearchDisplay.from_search(GridSearchCV(SVC(), {"C": [1]}))
    plane = searched({"C": [1, 2], "gamma": [1, 2], "kernel": ["rbf", "poly"], "nu": [0.5]})
    with pytest.raises(ValueError, match="no metric 'f1': use one of score"):
        SearchDisplay.from_search(plane, metric="f1")
    for name in ("kernel", "nu", "degree"):
        with pytest.raises(ValueError, match=f"'{name}' is not a numeric parameter .* use two of C, gamma"):
            SearchDisplay.from_search(plane, param_x=name)
    with pytest.raises(ValueError, match="both 'C'"):
        SearchDisplay.from_search(plane, param_x="C", param_y="C")
    with pytest.raises(ValueError, match=r"Two numeric parameters .* has C"):
        SearchDisplay.from_search(searched({"C": [1, 2], "kernel": ["rbf"]}))
    with pytest.raises(ValueError, match=r"scores must have the shape \(1, 2\)"):
        SearchDisplay([[1.0]], [1, 2], [1], param_x="a", param_y="b")


# -- traces ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    gram = Gram(X, "rbf", gamma=0.5, dtype="float64", n_jobs=1)
    problem = dual.one_class_l2(80, ridge=0.1)

    def in_slices(solver):
        advance = solver.advance

        def short(state):
            state.left = min(state.left, 5)
            advance(state)

        solver.advance = short
        return solver.solve(problem, gram, stop=Stop(1e-2))

    return {"maxminover": in_slices(MaxMinOver()), "mdm": in_slices(MDM())}


@pytest.mark.parametrize(
    ("x", "attribute", "label"),
    [
        ("iterations", "n_iter", "iterations"),
        ("seconds", "seconds", "seconds"),
        ("kernel_calls", "n_kernel_calls", "kernel values used"),
    ],
)
def test_lines_are_the_records(runs, x, attribute, label):
    display = TraceDisplay.from_solution(runs, x=x)
    assert [line.get_label() for line in display.lines_] == list(runs)
    for line, run in zip(display.lines_, runs.values(), strict=True):
        records = [r for r in run.trace if getattr(r, attribute) > 0 and r.violation > 0]
        assert len(records) > 3
        np.testing.assert_array_equal(line.get_xdata(), [getattr(r, attribute) for r in records])
        np.testing.assert_array_equal(line.get_ydata(), [r.violation for r in records])
    ax = display.ax_
    assert (ax.get_xscale(), ax.get_yscale(), ax.get_xlabel()) == ("log", "log", label)
    assert ax.get_ylabel() == "KKT violation"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(runs)
    assert len({line.get_linestyle() for line in display.lines_}) == 2
    assert display.bound_ is None and display.figure_ is ax.figure


def test_the_objective_is_drawn_above_the_lowest(runs):
    display = TraceDisplay.from_solution(runs, y="objective")
    lowest = min(run.objective for run in runs.values())
    for line, run in zip(display.lines_, runs.values(), strict=True):
        expected = [r.objective - lowest for r in run.trace if r.n_iter > 0 and r.objective > lowest]
        np.testing.assert_allclose(line.get_ydata(), expected)


def test_the_gap_bounds_the_distance_to_the_minimum(runs):
    display = TraceDisplay.from_solution(runs["maxminover"], y="gap")
    run = runs["maxminover"]
    best = min(r.objective - r.gap for r in runs.values())
    (line,) = display.lines_
    records = [r for r in run.trace if r.n_iter > 0]
    np.testing.assert_allclose(line.get_ydata(), [r.objective - run.objective + run.gap for r in records])
    assert best <= min(r.objective for r in records)
    assert line.get_ydata()[-1] == pytest.approx(run.gap)
    assert display.ax_.get_legend() is None


def test_the_bound_touches_the_curves_from_above(runs):
    display = TraceDisplay.from_solution(runs["maxminover"], bound=True)
    (line,) = display.lines_
    t, values = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    ratio = values * np.sqrt(t) / display.constant
    assert ratio.max() == pytest.approx(1.0)
    np.testing.assert_allclose(
        display.bound_.get_ydata() * np.sqrt(display.bound_.get_xdata()), display.constant
    )
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == [r"$c/\sqrt{t}$"]


def test_given_axes_and_options_are_used(runs):
    _, ax = plt.subplots()
    display = TraceDisplay.from_solution(runs, ax=ax, color="black", lw=3)
    assert display.ax_ is ax
    assert {(line.get_color(), line.get_linewidth()) for line in display.lines_} == {("black", 3)}


def test_a_run_without_any_step_is_an_empty_line():
    gram = Gram([[1.0], [2.0]], kernel="linear", dtype="float64")
    run = MaxMinOver().solve(dual.one_class_l2(2, ridge=1.0), gram, stop=Stop(max_iter=0))
    display = TraceDisplay.from_solution(run, bound=True)
    assert len(display.lines_[0].get_xdata()) == 0 and display.bound_ is None


def test_wrong_arguments_are_refused(runs):
    with pytest.raises(ValueError, match="x must be one of iterations, seconds, kernel_calls, got 'steps'"):
        TraceDisplay.from_solution(runs, x="steps")
    with pytest.raises(ValueError, match="y must be one of violation, objective, gap, got 'loss'"):
        TraceDisplay.from_solution(runs, y="loss")
    with pytest.raises(ValueError, match="needs x='iterations'"):
        TraceDisplay.from_solution(runs, x="seconds", bound=True)
    with pytest.raises(ValueError, match="no solution"):
        TraceDisplay.from_solution({})
    with pytest.raises(TypeError, match="A Solution is needed, got 3 for 'a'"):
        TraceDisplay.from_solution({"a": 3})


# -- matplotlib ------------------------------------------------------------------------------


def test_without_matplotlib_the_extra_is_named(monkeypatch, runs):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"SearchDisplay needs matplotlib.*maxmargin\[plot\]"):
        SearchDisplay.from_search(searched({"C": [1, 2], "gamma": [1, 2]}))
    with pytest.raises(ImportError, match=r"TraceDisplay needs matplotlib.*maxmargin\[plot\]"):
        TraceDisplay.from_solution(runs)


def test_matplotlib_is_imported_only_to_draw():
    script = "import sys, maxmargin, maxmargin.inspection; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "False", done.stderr
