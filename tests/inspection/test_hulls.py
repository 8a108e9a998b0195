"""The display of hulls shows their nearest points and the paths of solvers."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import sklearn.svm
from scipy.optimize import linprog
from scipy.spatial import ConvexHull
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, AllDistancesSVC, CrammerSingerSVC, IncrementalSVC, NuSVC, dual
from maxmargin.gram.gram import Gram
from maxmargin.inspection import HullDisplay
from maxmargin.inspection._hull_paths import SHOWN
from maxmargin.inspection._polygons import difference, hull, reduced_hull
from maxmargin.solvers import MDM, Stop

APART = make_blobs(40, centers=[[0, 0], [6, 3]], random_state=0)
MIXED = make_blobs(40, centers=[[0, 0], [3, 1.5]], random_state=0)
RHOMBUS = np.array([[-1.0, 2.2], [1.2, 0.0], [2.6, -1.15], [0.4, 1.05]])


# -- polygons --------------------------------------------------------------------------------


def test_the_corners_of_a_hull_are_those_of_qhull_in_their_order():
    points = np.random.default_rng(0).normal(size=(50, 2))
    ours, theirs = hull(points), points[ConvexHull(points).vertices]
    first = int(np.flatnonzero((theirs == ours[0]).all(axis=1))[0])
    np.testing.assert_array_equal(ours, np.roll(theirs, -first, axis=0))


@pytest.mark.parametrize(
    ("points", "corners"),
    [
        ([[1, 1]], [[1, 1]]),
        ([[1, 1], [1, 1], [1, 1]], [[1, 1]]),
        ([[2, 2], [0, 0], [1, 1], [3, 3]], [[0, 0], [3, 3]]),
    ],
)
def test_hulls_without_an_inside(points, corners):
    np.testing.assert_array_equal(hull(np.array(points, dtype=float)), corners)


@pytest.mark.parametrize("n", [7, 80])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.37, 1.0])
def test_a_reduced_hull_reaches_as_far_as_the_linear_programme(n, share):
    rng = np.random.default_rng(n)
    points, mu = rng.normal(size=(n, 2)), 1 / n + share * (1 - 1 / n)
    corners = reduced_hull(points, mu)
    for angle in rng.uniform(0, 2 * np.pi, 20):
        d = np.array([np.cos(angle), np.sin(angle)])
        best = linprog(-points @ d, A_eq=np.ones((1, n)), b_eq=[1], bounds=(0, mu))
        assert (corners @ d).max() == pytest.approx(-best.fun, abs=1e-9 if n < 60 else 1e-4)


def test_the_difference_of_hulls_holds_all_differences():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(9, 2)), rng.normal(size=(5, 2))
    corners = difference(hull(a), hull(b))
    for angle in np.linspace(0, 6, 11):
        d = np.array([np.cos(angle), np.sin(angle)])
        assert (corners @ d).max() == pytest.approx((a @ d).max() - (b @ d).min())


# -- nearest points and boundary -------------------------------------------------------------


def test_the_boundary_of_separable_classes_is_the_hard_margin_machine():
    X, y = APART
    display = HullDisplay.from_points(X, y, solvers=())
    machine = SVC(C=np.inf, kernel="linear", tol=1e-8).fit(X, y)
    w = display.nearest[0] - display.nearest[1]
    np.testing.assert_allclose(w / (w @ w) * 2, machine.coef_[0], rtol=1e-5)
    on_it = np.array([display.boundary_.get_xy1(), display.boundary_.get_xy2()])
    np.testing.assert_allclose(machine.decision_function(on_it), 0, atol=1e-5)
    np.testing.assert_allclose(machine.decision_function(display.nearest), [1, -1], atol=1e-5)
    np.testing.assert_array_equal(display.nearest_.get_xydata(), display.nearest)
    assert display.path_ax_ is None and display.paths_ == {}


@pytest.mark.parametrize(
    "model",
    [
        SVC(C=0.3, kernel="linear"),
        NuSVC(nu=0.3, kernel="linear"),
        AllDistancesSVC(nu=0.4, kernel="linear"),
        sklearn.svm.SVC(C=0.3, kernel="linear"),
        make_pipeline(StandardScaler(), SVC(C=0.3, kernel="linear")),
    ],
)
def test_a_machine_is_perpendicular_to_the_nearest_points_of_its_reduced_hulls(model):
    X, y = MIXED
    model.set_params(**{name: 1e-9 for name in model.get_params() if name.split("__")[-1] == "tol"}).fit(X, y)
    display = HullDisplay.from_estimator(model, X, y, max_steps=5)
    w = display.nearest[0] - display.nearest[1]
    machine = model[-1] if hasattr(model, "steps") else model
    coef = np.diff(machine.coef_, axis=0)[0] if len(machine.coef_) > 1 else machine.coef_[0]
    assert abs(coef @ [-w[1], w[0]]) < 1e-5 * np.linalg.norm(coef) * np.linalg.norm(w)
    assert coef @ w > 0
    on_it = np.array([display.boundary_.get_xy1(), display.boundary_.get_xy2()])
    np.testing.assert_allclose(machine.decision_function(on_it), 0, atol=1e-4)
    assert len(display.hulls_) == 4
    # The nearest points are in the reduced hulls, on the sides that face each other.
    for polygon, point, way in zip(display.hulls_[2:], display.nearest[::-1], (1, -1), strict=True):
        assert (polygon.get_xy() @ w * way).max() == pytest.approx(point @ w * way, abs=1e-6)


def test_hulls_of_squared_slacks_are_not_in_the_plane():
    X, y = MIXED
    model = AllDistancesSVC(loss="squared_hinge", kernel="linear").fit(X, y)
    with pytest.raises(ValueError, match="not in the plane"):
        HullDisplay.from_estimator(model, X, y)


def test_hulls_that_overlap_have_nearest_points_but_no_boundary():
    square = np.array([[0.0, 0], [2, 0], [0, 2], [2, 2]])
    display = HullDisplay.from_points(np.vstack([square, square + 0.5]), np.repeat([0, 1], 4))
    np.testing.assert_allclose(*display.nearest, atol=1e-4)
    assert display.boundary_ is None
    assert all(np.linalg.norm(path[-1]) < 1e-3 for path in display.paths.values())


# -- paths -----------------------------------------------------------------------------------


def test_paths_lead_from_the_start_to_the_least_norm_in_ever_smaller_steps_of_the_norm():
    start = [0.0, 0.0, 1.0, 0.0]
    display = HullDisplay.from_points(RHOMBUS, start=start, tol=1e-6)
    assert list(display.paths) == ["mdm", "mdm-accelerated"]
    least = display.nearest[0]
    np.testing.assert_allclose(least, [0.6, 0.6], atol=1e-6)
    for label, line in display.paths_.items():
        path = display.paths[label]
        np.testing.assert_array_equal(path[0], RHOMBUS[2])
        np.testing.assert_allclose(path[-1], least, atol=1e-3)
        norms = np.linalg.norm(path, axis=1)
        assert (np.diff(norms) <= 1e-12).all()
        np.testing.assert_array_equal(line.get_xydata(), path[: SHOWN + 1])
        distance = display.distances_[label]
        assert distance.get_label() == f"{label}: {display.steps[label]} steps"
        np.testing.assert_array_equal(distance.get_xdata(), np.arange(1, len(path)))
        above = norms[1:] - np.linalg.norm(least)
        low, _ = display.distance_ax_.get_ylim()
        seen = above >= low
        assert seen.any()
        np.testing.assert_allclose(np.asarray(distance.get_ydata())[seen], above[seen])
        assert (np.asarray(distance.get_ydata())[~seen] < low).all()  # they leave the plot at its bottom
    assert display.paths_["mdm"].get_label() == f"mdm (first {SHOWN} steps)"
    assert display.paths_["mdm-accelerated"].get_label() == "mdm-accelerated"
    assert display.steps["mdm-accelerated"] < 10 < 80 < display.steps["mdm"]
    assert display.boundary_ is None


def test_a_path_has_every_step_of_the_solver():
    X, y = APART
    display = HullDisplay.from_points(X, y, solvers={"plain": MDM()}, tol=1e-5)
    problem = dual.nearest_points(np.where(y == 1, 1.0, -1.0))
    gram = Gram(X, "linear", dtype="float64")
    solution = MDM().solve(problem, gram, stop=Stop(1e-5))
    assert display.steps == {"plain": solution.n_iter}
    path = display.paths["plain"]
    assert len(path) == solution.n_iter + 1
    np.testing.assert_allclose(path[-1], (np.where(y == 1, 1.0, -1.0) * solution.u) @ X)
    # Weight moves between two samples of a class: each step is parallel to the line through them.
    ways = np.vstack([(part[:, None] - part[None]).reshape(-1, 2) for part in (X[y == 0], X[y == 1])])
    ways = ways[np.hypot(*ways.T) > 0]
    for step in np.diff(path, axis=0):
        sine = (ways[:, 0] * step[1] - ways[:, 1] * step[0]) / np.hypot(*ways.T) / np.hypot(*step)
        assert np.abs(sine).min() < 1e-6


def test_a_path_that_is_cut_off_says_so():
    display = HullDisplay.from_points(RHOMBUS, start=[0, 0, 1, 0], tol=1e-6, max_steps=20)
    assert display.distances_["mdm"].get_label() == "mdm: over 20 steps"
    assert display.distances_["mdm-accelerated"].get_label() == "mdm-accelerated: 5 steps"


def test_paths_are_told_apart_without_colours():
    display = HullDisplay.from_points(RHOMBUS, start=[0, 0, 1, 0], solvers=("mdm", "npa", "gilbert", "smo"))
    for lines in (display.paths_, display.distances_):
        looks = {(line.get_linewidth(), line.get_marker(), line.get_linestyle()) for line in lines.values()}
        assert len(looks) == 4


def test_reduced_hulls_are_found_by_smo():
    X, y = MIXED
    display = HullDisplay.from_points(X, y, mu=0.1, tol=1e-6)
    assert list(display.paths) == ["smo-first-order", "smo"]
    w = display.nearest[0] - display.nearest[1]
    for path in display.paths.values():
        np.testing.assert_allclose(path[-1], w, atol=1e-3)
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert "whole hulls" in labels and display.ax_.get_title() == "Nearest points of two reduced hulls"
    with pytest.raises(TypeError, match="MDM cannot take the problem 'reduced_hulls'"):
        HullDisplay.from_points(X, y, mu=0.1, solvers=("mdm",))


# -- axes and errors -------------------------------------------------------------------------


def test_axes_may_be_one_or_two_or_three():
    X, y = APART
    _, pair = plt.subplots(1, 2)
    display = HullDisplay.from_points(X, y, ax=pair)
    assert (display.ax_, display.path_ax_) == tuple(pair) and display.distance_ax_ is None
    _, three = plt.subplots(1, 3)
    display.plot(three)
    assert (display.ax_, display.path_ax_, display.distance_ax_) == tuple(three)
    _, ax = plt.subplots()
    display.plot(ax)
    assert set(ax.child_axes) == {display.ax_, display.path_ax_, display.distance_ax_}
    _, ax = plt.subplots()
    display.plot(ax, paths=False)
    assert display.ax_ is ax and display.path_ax_ is None and ax.child_axes == []
    with pytest.raises(ValueError, match="one Axes or a sequence of two or three of them, got 4"):
        display.plot(plt.subplots(1, 4)[1])


def test_the_axis_of_many_steps_is_logarithmic_and_that_of_few_has_whole_numbers():
    many = HullDisplay.from_points(RHOMBUS, start=[0, 0, 1, 0], tol=1e-6)
    assert many.distance_ax_.get_xscale() == "log"
    few = HullDisplay.from_points(*APART)
    assert max(few.steps.values()) < 20 and few.distance_ax_.get_xscale() == "linear"
    assert all(tick == round(tick) for tick in few.distance_ax_.get_xticks())


def test_one_unit_is_as_long_up_as_it_is_across():
    X, y = APART
    display = HullDisplay.from_points(X, y)
    for ax in (display.ax_, display.path_ax_):
        assert ax.get_aspect() == 1
        assert np.ptp(ax.get_xlim()) == pytest.approx(np.ptp(ax.get_ylim()))


def test_wrong_samples_are_refused():
    X, y = MIXED
    with pytest.raises(ValueError, match=r"two features, because .* it has 3"):
        HullDisplay.from_points(np.ones((4, 3)), [0, 0, 1, 1])
    with pytest.raises(ValueError, match="Two classes are needed, y has 3"):
        HullDisplay.from_points(X[:3], [0, 1, 2])
    with pytest.raises(ValueError, match=r"mu must be in \[0\.05, 1\]"):
        HullDisplay.from_points(X, y, mu=0.01)
    with pytest.raises(ValueError, match="need two classes: pass y"):
        HullDisplay.from_points(X, mu=0.1)
    with pytest.raises(ValueError, match="max_steps must be positive, got 0"):
        HullDisplay.from_points(X, y, max_steps=0)
    with pytest.raises(ValueError, match="Unknown solver 'other'"):
        HullDisplay.from_points(X, y, solvers=("other",))


def test_machines_without_hulls_in_the_plane_are_refused():
    X, y = MIXED
    with pytest.raises(NotFittedError):
        HullDisplay.from_estimator(SVC(kernel="linear"), X, y)
    with pytest.raises(ValueError, match="for the linear kernel only: train this SVC"):
        HullDisplay.from_estimator(SVC().fit(X, y), X, y)
    many = make_blobs(30, centers=3, random_state=0)
    with pytest.raises(ValueError, match="for two classes only: train this SVC"):
        HullDisplay.from_estimator(SVC(kernel="linear").fit(*many), *many)
    for model in (SVC(kernel="linear", loss="squared_hinge"), IncrementalSVC(kernel="linear"),
                  CrammerSingerSVC(kernel="linear")):  # fmt: skip
        with pytest.raises(ValueError, match="not in the plane: use an SVC with loss='hinge'"):
            HullDisplay.from_estimator(model.fit(X, y), X, y)
    for C in (1.0, np.inf):
        with pytest.raises(ValueError, match="train this SVC with bias='free'"):
            HullDisplay.from_estimator(SVC(C=C, kernel="linear", bias="penalised").fit(*APART), *APART)
    model = SVC(kernel="linear", class_weight={0: 2.0}).fit(X, y)
    with pytest.raises(ValueError, match="Class weights"):
        HullDisplay.from_estimator(model, X, y)
    with pytest.raises(TypeError, match="mu follows from the estimator"):
        HullDisplay.from_estimator(SVC(kernel="linear").fit(X, y), X, y, mu=0.5)


def test_a_hard_margin_has_whole_hulls():
    X, y = APART
    display = HullDisplay.from_estimator(SVC(C=np.inf, kernel="linear").fit(X, y), X, y)
    assert display.mu is None and list(display.paths) == ["mdm", "mdm-accelerated"]
