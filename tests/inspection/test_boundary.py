"""The display of a boundary shows regions, margins, samples and support vectors."""

import io

import matplotlib.pyplot as plt
import numpy as np
import pytest
import sklearn.svm
from matplotlib.patches import Patch
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_moons
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import (
    SVC,
    SVR,
    AllDistancesSVC,
    CrammerSingerSVC,
    IncrementalSVC,
    L2OneClassSVM,
    NuSVC,
    NuSVR,
    OneClassSVM,
)
from maxmargin.inspection import BoundaryDisplay
from maxmargin.model_selection import SVMSearchCV
from maxmargin.persistence import load_libsvm, save_libsvm

X, Y = make_moons(80, noise=0.25, random_state=0)
IRIS, KINDS = load_iris(return_X_y=True, as_frame=True)
IRIS = IRIS.iloc[:, 2:]


def draw(*args, **options):
    return BoundaryDisplay.from_estimator(*args, grid_resolution=60, **options)


def rings(display):
    """Where support vectors are marked: free ones, those at their bound."""
    return [
        np.empty((0, 2)) if marks is None else np.asarray(marks.get_offsets())
        for marks in (display.support_, display.bounded_)
    ]


def wave():
    """A noisy sine over one feature."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 6, 50))[:, None]
    return x, np.sin(x[:, 0]) + rng.normal(0, 0.2, 50)


def rows(points):
    return {tuple(point) for point in np.round(points, 6)}


def on(contour):
    return np.vstack([path.vertices for path in contour.get_paths()])


# -- two classes -----------------------------------------------------------------------------


def test_the_boundary_is_where_the_decision_function_is_zero_and_the_margins_where_it_is_one():
    model = SVC(kernel="linear").fit(X, Y)
    display = draw(model, X, Y)
    for contour, level in zip(display.lines_, (0.0, -1.0, 1.0), strict=True):
        np.testing.assert_allclose(model.decision_function(on(contour)), level, atol=1e-6)
    labels = [text.get_text() for text in display.legend_.get_texts()]
    marks = ["support vectors", "support vectors\nat the bound"]
    assert labels == ["boundary", "margins", "class 0", "class 1", *marks]
    assert display.legend_.get_title().get_text() == "marker: class, shade: prediction"
    assert display.ax_.get_title() == "SVC: boundary, margins and support vectors"


def test_the_legend_has_the_shade_of_every_area_under_the_marker_of_its_class():
    iris = load_iris(return_X_y=True)
    display = draw(SVC().fit(iris[0][:, 2:], iris[1]), iris[0][:, 2:], iris[1])
    shades = [tuple(patch.get_facecolor()) for patch in display.legend_.findobj(Patch)]
    assert set(map(tuple, display.regions_.get_cmap()(np.arange(3)))) <= set(shades)
    labels = [text.get_text() for text in display.legend_.get_texts()]
    assert labels[:3] == ["class 0", "class 1", "class 2"]
    assert display.ax_.get_title() == "SVC: areas of the classes and support vectors"


def test_without_classes_of_samples_the_legend_names_the_areas():
    display = draw(SVC().fit(X, Y), X)
    labels = [text.get_text() for text in display.legend_.get_texts()]
    assert labels[-2:] == ["predicted: class 0", "predicted: class 1"] and "samples" in labels
    found = draw(OneClassSVM(nu=0.2).fit(X), X, np.where(Y, 1, -1))
    labels = [text.get_text() for text in found.legend_.get_texts()]
    assert labels[-2:] == ["predicted: inliers", "predicted: outliers"]
    assert found.ax_.get_title() == "OneClassSVM: boundary around the inliers and support vectors"


def test_samples_are_drawn_class_by_class_with_markers_of_their_own():
    names = np.array(["left", "right"])[Y]
    display = draw(SVC().fit(X, names), X, names)
    assert [points.get_label() for points in display.points_] == ["left", "right"]
    for c, points in enumerate(display.points_):
        np.testing.assert_array_equal(points.get_offsets(), X[c == Y])
    shapes = [points.get_paths()[0].vertices for points in display.points_]
    assert len(shapes[0]) != len(shapes[1])
    display = draw(SVC().fit(X, Y), X)
    assert [points.get_label() for points in display.points_] == ["samples"]


@pytest.mark.parametrize(
    "model",
    [
        SVC(C=2.0),
        SVC(C=2.0, class_weight={0: 3.0}),
        NuSVC(nu=0.4),
        sklearn.svm.SVC(),
        sklearn.svm.NuSVC(nu=0.4),
    ],
)
def test_free_support_vectors_are_on_the_margin_and_those_at_the_bound_within_it(model):
    model.set_params(tol=1e-8).fit(X, Y)
    free, bounded = rings(draw(model, X, Y))
    assert len(free) and len(bounded)
    assert rows(free) | rows(bounded) == rows(model.support_vectors_)
    np.testing.assert_allclose(np.abs(model.decision_function(free)), 1, atol=1e-5)
    where = [int(np.flatnonzero((point == X).all(axis=1))[0]) for point in bounded]
    assert (model.decision_function(X[where]) * (2 * Y[where] - 1) < 1 - 1e-6).all()


@pytest.mark.parametrize("model", [SVC(loss="squared_hinge"), IncrementalSVC(), SVC(C=np.inf, gamma=20.0)])
def test_without_bounds_no_support_vector_is_at_one(model):
    display = draw(model.fit(X, Y), X, Y)
    assert display.bounded_ is None
    assert rows(rings(display)[0]) == rows(model.support_vectors_)


def test_a_pipeline_is_drawn_in_the_units_of_its_input():
    wide = X * [100.0, 0.01] + [3.0, 5.0]
    model = make_pipeline(StandardScaler(), SVC()).fit(wide, Y)
    display = draw(model, wide, Y)
    assert rows(np.vstack(rings(display))) == rows(wide[model[-1].support_])
    grid = np.stack(np.meshgrid(display.x, display.y), axis=-1).reshape(-1, 2)
    np.testing.assert_allclose(display.response.ravel(), model.decision_function(grid))
    with pytest.raises(
        ValueError, match=r"not the rows support_ of X: pass the training .* or support=False"
    ):
        draw(model, wide[::-1], Y[::-1])
    assert draw(model, wide[::-1], Y[::-1], support=False).support_ is None


def test_the_best_estimator_of_a_search_is_drawn():
    search = SVMSearchCV(SVC(), {"C": [0.1, 1, 10]}, cv=2).fit(X, Y)
    display = draw(search, X, Y)
    assert rows(np.vstack(rings(display))) == rows(search.best_estimator_.support_vectors_)
    with pytest.raises(NotFittedError, match="refit=False"):
        draw(SVMSearchCV(SVC(), {"C": [0.1, 1]}, cv=2, refit=False).fit(X, Y), X, Y)


@pytest.mark.parametrize("model", [AllDistancesSVC(nu=0.3), CrammerSingerSVC()])
def test_machines_for_many_classes_draw_two_as_well(model):
    display = draw(model.fit(X, Y), X, Y)
    assert display.kind == "margin" and display.bounded_ is not None
    # All-Distances values are not scaled to a margin.
    assert len(display.lines_) == (1 if isinstance(model, AllDistancesSVC) else 3)
    np.testing.assert_allclose(model.decision_function(on(display.lines_[0])), 0, atol=0.05)


def test_rows_that_were_forgotten_have_no_ring():
    model = IncrementalSVC().fit(X, Y).forget(np.arange(10))
    assert rows(rings(draw(model, X, Y))[0]) == rows(model.support_vectors_)


def test_callable_kernels_and_sparse_samples_find_their_support_vectors():
    import scipy.sparse as sp

    model = SVC(kernel=lambda a, b: a @ b.T).fit(X, Y)
    assert rows(np.vstack(rings(draw(model, X, Y)))) == rows(X[model.support_])
    sparse = sp.csr_matrix(X)
    model = make_pipeline(StandardScaler(with_mean=False), SVC()).fit(sparse, Y)
    assert rows(np.vstack(rings(draw(model, sparse, Y)))) == rows(X[model[-1].support_])


# -- other machines --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model", [SVC(), AllDistancesSVC(), CrammerSingerSVC(), sklearn.svm.SVC(), sklearn.svm.LinearSVC()]
)
def test_regions_are_the_predictions(model):
    names = load_iris().target_names[KINDS]
    display = draw(model.fit(IRIS, names), IRIS, names)
    assert display.kind == "classes" and display.classes == ["setosa", "versicolor", "virginica"]
    grid = np.stack(np.meshgrid(display.x, display.y), axis=-1).reshape(-1, 2)
    predicted = model.predict(IRIS.__class__(grid, columns=IRIS.columns))
    drawn = np.asarray(display.classes)[np.asarray(display.regions_.get_array()).ravel().astype(int)]
    assert (drawn == predicted).all()
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == tuple(IRIS.columns)
    assert (display.support_ is None) == isinstance(model, sklearn.svm.LinearSVC)


@pytest.mark.parametrize(
    "model",
    [OneClassSVM(nu=0.2), L2OneClassSVM(C=10.0, contamination="margin"), sklearn.svm.OneClassSVM(nu=0.2)],
)
def test_one_class_machines_mark_inliers_and_outliers(model):
    display = draw(model.set_params(tol=1e-6).fit(X), X)
    assert display.kind == "one-class" and len(display.lines_) == 1
    np.testing.assert_allclose(model.decision_function(on(display.lines_[0])), 0, atol=0.05)
    inliers, outliers = (np.asarray(points.get_offsets()) for points in display.points_)
    np.testing.assert_array_equal(inliers, X[model.predict(X) > 0])
    np.testing.assert_array_equal(outliers, X[model.predict(X) < 0])
    free, bounded = rings(display)
    assert rows(np.vstack([free, bounded])) == rows(model.support_vectors_)
    if not isinstance(model, L2OneClassSVM):
        assert (model.decision_function(bounded) < 1e-4).all() and len(bounded)
        np.testing.assert_allclose(model.decision_function(free), 0, atol=1e-4)
    assert [p.get_label() for p in draw(model, X, Y).points_] == ["class 0", "class 1"]


@pytest.mark.parametrize("make", [sklearn.svm.SVR, SVR])
@pytest.mark.parametrize("scaled", [False, True])
def test_a_regression_has_a_curve_with_a_tube(scaled, make):
    x, y = wave()
    machine = make(epsilon=0.15, tol=1e-8)
    model = (make_pipeline(StandardScaler(), machine) if scaled else machine).fit(x, y)
    display = draw(model, x, y)
    curve, high, low = (np.asarray(line.get_ydata()) for line in display.lines_)
    np.testing.assert_allclose(curve, model.predict(display.x[:, None]))
    np.testing.assert_allclose(high - curve, 0.15)
    np.testing.assert_allclose(curve - low, 0.15)
    free, bounded = rings(display)
    assert len(free) and len(bounded) and len(free) + len(bounded) == len(machine.support_)
    np.testing.assert_allclose(np.abs(model.predict(free[:, :1]) - free[:, 1]), 0.15, atol=1e-5)
    assert (np.abs(model.predict(bounded[:, :1]) - bounded[:, 1]) > 0.15 - 1e-5).all()
    assert display.ax_.get_ylabel() == "target"
    assert draw(model, x).points is None


def test_the_tube_of_a_nu_regression_is_the_one_that_was_found():
    x, y = wave()
    model = NuSVR(nu=0.4, tol=1e-8).fit(x, y)
    display = draw(model, x, y)
    curve, high, low = (np.asarray(line.get_ydata()) for line in display.lines_)
    np.testing.assert_allclose([high - curve, curve - low], model.epsilon_)
    free, bounded = rings(display)
    np.testing.assert_allclose(np.abs(model.predict(free[:, :1]) - free[:, 1]), model.epsilon_, atol=1e-5)
    assert (np.abs(model.predict(bounded[:, :1]) - bounded[:, 1]) > model.epsilon_ - 1e-5).all()
    file = io.BytesIO()
    save_libsvm(model, file)
    file.seek(0)
    assert len(draw(load_libsvm(file), x, y, support=False).lines_) == 1  # the file does not tell the width


@pytest.mark.parametrize("options", [{"loss": "squared_epsilon_insensitive"}, {"C": np.inf, "gamma": 10.0}])
def test_without_bounds_no_support_vector_of_a_regression_is_at_one(options):
    x, y = wave()
    model = SVR(epsilon=0.15, **options).fit(x, y)
    display = draw(model, x, y)
    assert display.bounded_ is None and len(rings(display)[0]) == len(model.support_)


def test_a_regression_of_several_targets_is_refused():
    X = np.arange(6.0)[:, None]
    with pytest.raises(ValueError, match="one target, and the model predicts 2"):
        BoundaryDisplay.from_estimator(SVR().fit(X, np.column_stack([X, -X])), X)


def test_a_regression_without_a_tube_is_a_curve():
    x = np.linspace(0, 1, 30)[:, None]
    display = draw(sklearn.svm.NuSVR().fit(x, x[:, 0]), x, x[:, 0])
    assert len(display.lines_) == 1 and display.regions_ is None


# -- options and errors ----------------------------------------------------------------------


def test_options_leave_parts_out():
    _, ax = plt.subplots()
    display = draw(SVC().fit(X, Y), X, Y, ax=ax, regions=False, legend=False, size=5)
    assert display.ax_ is ax and display.regions_ is None and display.legend_ is None
    assert {points.get_sizes()[0] for points in display.points_} == {5}


def test_the_legend_is_beside_the_axes():
    display = draw(SVC().fit(X, Y), X, Y)
    display.figure_.canvas.draw()
    assert display.legend_.get_window_extent().x0 >= display.ax_.get_window_extent().x1


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(NotFittedError):
        draw(SVC(), X, Y)
    full = load_iris().data
    with pytest.raises(ValueError, match="needs samples with two features, X has 4: select two"):
        draw(SVC().fit(full, KINDS), full, KINDS)
    with pytest.raises(ValueError, match="one feature, X has 2"):
        draw(sklearn.svm.SVR().fit(X, Y), X, Y)
    with pytest.raises(ValueError, match="precomputed kernel has no features"):
        draw(SVC(kernel="precomputed").fit(X @ X.T, Y), X @ X.T, Y)
    with pytest.raises(ValueError, match="was not trained with: 2"):
        draw(SVC().fit(X, Y), X, Y + 1)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        draw(SVC().fit(X, Y), X, Y[1:])
    with pytest.raises(TypeError, match="needed, got KMeans"):
        draw(KMeans(2, n_init=1).fit(X), X)
    for option in ({"grid_resolution": 1}, {"eps": -1.0}):
        with pytest.raises(ValueError, match=next(iter(option))):
            BoundaryDisplay.from_estimator(SVC().fit(X, Y), X, Y, **option)
    with pytest.raises(ValueError, match="kind must be one of"):
        BoundaryDisplay([0, 1], [0, 1], np.zeros((2, 2)), kind="other")
    with pytest.raises(ValueError, match=r"must have the shape \(2, 3\), got \(2, 2\)"):
        BoundaryDisplay([0, 1, 2], [0, 1], np.zeros((2, 2)))


def test_the_machine_behind_a_projection_is_drawn_alone():
    full = load_iris().data
    model = make_pipeline(PCA(2), SVC()).fit(full, KINDS)
    plane = model[:-1].transform(full)
    display = draw(model[-1], plane, KINDS)
    assert rows(np.vstack(rings(display))) == rows(plane[model[-1].support_])
