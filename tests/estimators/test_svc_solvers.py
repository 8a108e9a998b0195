"""SVC with the geometric solvers: the nearest points of two hulls, reported as a squared-hinge machine."""

import pickle
import warnings
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
    make_moons,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from expected_failures import failures_of_scikit_learns_own_class
from maxmargin import SVC, NuSVC, OneClassSVM, solvers
from maxmargin.solvers import MDM, NPA, Gilbert, registry

QUICK = ["mdm", "mdm-accelerated", "mdm-second-order", "npa"]
# Gilbert's algorithm is slow by nature: it gets a few rows and small penalties only.
ALL = [*QUICK, "gilbert"]
LOADERS = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer, "digits": load_digits}

each_quick = pytest.mark.parametrize("solver", QUICK)
each = pytest.mark.parametrize("solver", ALL)


def data(name, n=300):
    X, y = LOADERS[name](return_X_y=True)
    # Equal rows (iris has some) would bring support vectors that only just are some.
    first = np.sort(np.unique(X, axis=0, return_index=True)[1])
    first = first[:: max(1, len(first) // n)][:n]
    return StandardScaler().fit_transform(X[first]), y[first]


def tiny(n_classes=2):
    X, y = make_classification(
        20, 4, n_redundant=0, n_informative=3, n_classes=n_classes, n_clusters_per_class=1, random_state=0
    )
    return X, y


def weights(y):
    return np.random.default_rng(0).uniform(0.5, 2.0, len(y))


def machine(solver="auto", **parameters):
    return SVC(**{"loss": "squared_hinge", "solver": solver, "tol": 1e-8, **parameters})


def dense(x):
    return x.toarray() if sp.issparse(x) else np.asarray(x)


def assert_same_machine(ours, auto, X, *, rtol=1e-6):
    assert ours.status_ == auto.status_ == "solved"
    for name in ("classes_", "class_weight_", "support_", "n_support_"):
        a, b = getattr(ours, name), getattr(auto, name)
        np.testing.assert_array_equal(a, b, err_msg=name)
        assert a.dtype == b.dtype, name
    for name in ("dual_coef_", "intercept_", "support_vectors_", "dual_gap_", "n_iter_"):
        a, b = getattr(ours, name), getattr(auto, name)
        assert type(a) is type(b) and a.shape == b.shape and a.dtype == b.dtype, name
    for name in ("dual_coef_", "intercept_", "support_vectors_"):
        a, b = dense(getattr(ours, name)), dense(getattr(auto, name))
        np.testing.assert_allclose(a, b, atol=rtol * max(1.0, np.abs(b).max(initial=0)), err_msg=name)
    expected = auto.decision_function(X)
    np.testing.assert_allclose(ours.decision_function(X), expected, atol=rtol * np.abs(expected).max())
    np.testing.assert_array_equal(ours.predict(X), auto.predict(X))
    assert ours.shape_fit_ == auto.shape_fit_ and ours.fit_status_ == auto.fit_status_ == 0


# -- the primal and the dual, from their definitions -------------------------------------------


def kernel_matrix(model, X):
    """The float64 kernel matrix of scikit-learn."""
    X = np.asarray(X, dtype=np.float64)
    if model.kernel == "precomputed":
        return X
    gamma = 1.0 / (X.shape[1] * X.var()) if model.gamma == "scale" else model.gamma
    kind = {"linear": {}, "rbf": {"gamma": gamma}}
    kind["poly"] = {"gamma": gamma, "degree": model.degree, "coef0": model.coef0}
    return pairwise_kernels(X, metric=model.kernel, **kind[model.kernel])


def pairs(model, X, y, penalty=None):
    """Of every pair of classes: K, the signs, the penalties, the signed coefficients, the intercept."""
    K, label = kernel_matrix(model, X), np.searchsorted(model.classes_, y)
    coef = np.zeros((len(model.classes_) - 1, len(y)))
    coef[:, model.support_] = dense(model.dual_coef_)
    c = np.full(len(y), float(model.C)) if penalty is None else np.asarray(penalty, dtype=float)
    for p, (a, b) in enumerate(combinations(range(len(model.classes_)), 2)):
        rows = np.flatnonzero(((label == a) | (label == b)) & (c > 0))
        first = label[rows] == a
        u = np.where(first, coef[b - 1, rows], coef[a, rows])
        sign = np.where(first, 1.0, -1.0) * (-1.0 if len(model.classes_) == 2 else 1.0)
        yield K[np.ix_(rows, rows)], sign, c[rows], u, float(model.intercept_[p])


def dual_value(K, c, u):
    return np.abs(u).sum() - 0.5 * u @ K @ u - (u**2 / (4.0 * c)).sum()


def primal_value(K, sign, c, u):
    """With the best bias, at which the slacks of both classes weigh the same."""
    f = K @ u

    def slope(b):
        return -2.0 * (c * sign * np.maximum(0.0, 1.0 - sign * (f + b))).sum()

    reach = np.abs(f).max() + 2.0
    b = brentq(slope, -reach, reach, xtol=1e-14, rtol=1e-15)
    return 0.5 * u @ K @ u + (c * np.maximum(0.0, 1.0 - sign * (f + b)) ** 2).sum()


def true_gaps(model, X, y, penalty=None):
    return np.array(
        [
            primal_value(K, sign, c, u) - dual_value(K, c, u)
            for K, sign, c, u, _ in pairs(model, X, y, penalty)
        ]
    )


def kkt_violation(model, X, y, penalty=None):
    """The largest violation of any pair, with the best bias and with the model's own."""
    worst = 0.0
    for K, sign, c, u, b in pairs(model, X, y, penalty):
        assert (sign * u >= 0).all()
        assert abs(u.sum()) <= 1e-9 * np.abs(u).sum()
        g = K @ u + u / (2.0 * c) - sign
        may_rise, may_fall = (sign > 0) | (u < 0), (sign < 0) | (u > 0)
        own = max((g + b)[may_fall].max(), -(g + b)[may_rise].min())
        worst = max(worst, g[may_fall].max() - g[may_rise].min(), own)
    return worst


# -- the same machine as that of the default solver --------------------------------------------


@each_quick
@pytest.mark.parametrize(
    ("kernel", "weighted"), [("rbf", True), ("linear", True), ("poly", False), ("laplacian", False)]
)
@pytest.mark.parametrize("name", list(LOADERS))
def test_equals_the_default_solver_at_tight_tolerance(name, kernel, weighted, solver):
    X, y = data(name, 200)
    w = weights(y) if weighted else None
    kind = {"kernel": kernel, "class_weight": "balanced" if weighted else None}
    assert_same_machine(machine(solver, **kind).fit(X, y, w), machine(**kind).fit(X, y, w), X)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_gilbert_equals_the_default_solver_on_a_few_rows(kernel, n_classes):
    X, y = tiny(n_classes)
    kind = {"kernel": kernel, "C": 0.3, "class_weight": "balanced"}
    w = weights(y)
    assert_same_machine(machine("gilbert", **kind).fit(X, y, w), machine(**kind).fit(X, y, w), X)


@each
def test_equals_scikit_learns_hard_margin_on_the_ridged_kernel(solver):
    # Squared slacks are a hard margin under the kernel K + diag(1 / 2C).
    X, y = tiny()
    w = weights(y)
    K = pairwise_kernels(X, metric="rbf", gamma=0.3)
    theirs = sklearn.svm.SVC(C=1e9, kernel="precomputed", tol=1e-10).fit(K + np.diag(0.25 / w), y)
    ours = machine(solver, C=2.0, gamma=0.3).fit(X, y, w)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    # (LIBSVM keeps its kernel values as float32.)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)


@each_quick
@pytest.mark.parametrize("name", ["cancer", "wine"])
def test_linear_kernel_equals_linear_svc(name, solver):
    X, y = data(name)
    y = y == y[0]
    # LinearSVC penalises its intercept; a large scaling makes that penalty vanish.
    theirs = sklearn.svm.LinearSVC(C=0.1, tol=1e-12, max_iter=10**6, intercept_scaling=1e4, dual=False).fit(
        X, y
    )
    ours = machine(solver, kernel="linear", C=0.1).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5 * np.abs(theirs.coef_).max())
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)


@each_quick
def test_linear_coef_of_several_classes_equals_the_default_solvers(solver):
    X, y = data("wine")
    ours, auto = (machine(s, kernel="linear").fit(X, y) for s in (solver, "auto"))
    assert ours.coef_.shape == (3, X.shape[1])
    np.testing.assert_allclose(ours.coef_, auto.coef_, atol=1e-7)


@pytest.mark.parametrize(
    "solver",
    [
        MDM(selection="second-order"),
        MDM(accelerate=True, selection="second-order"),
        MDM(accelerate=True, by_pair=True),
        NPA(),
        Gilbert(),
    ],
    ids=repr,
)
def test_solver_objects_train_the_same_machine(solver):
    X, y = tiny()
    assert_same_machine(machine(solver).fit(X, y), machine().fit(X, y), X)
    again = clone(machine(solver)).fit(X, y)
    assert repr(again.solver) == repr(solver)
    np.testing.assert_array_equal(again.dual_coef_, machine(solver).fit(X, y).dual_coef_)


def test_a_registered_geometric_solver_is_found_by_its_name(monkeypatch):
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    solvers.register("mdm-of-mine", lambda: MDM(selection="second-order"))
    X, y = data("iris")
    assert_same_machine(machine("mdm-of-mine").fit(X, y), machine().fit(X, y), X)


# -- what users bring --------------------------------------------------------------------------


@each
@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [-3, 7], [2.0, 1.0]])
def test_labels_of_any_kind_come_back(labels, solver):
    X, y = tiny()
    target = np.array(labels)[y]
    ours, auto = (machine(s, C=0.5).fit(X, target) for s in (solver, "auto"))
    assert ours.predict(X).dtype == target.dtype
    assert_same_machine(ours, auto, X)
    assert ours.score(X, target) > 0.7


@each_quick
def test_string_labels_of_several_classes_come_back(solver):
    X, y = data("iris")
    names = np.array(["versicolor", "setosa", "virginica"])[y]
    ours = machine(solver).fit(X, names)
    assert_same_machine(ours, machine().fit(X, names), X)
    assert list(ours.classes_) == sorted(set(names)) and ours.score(X, names) > 0.9


@each
def test_weight_zero_equals_a_removed_row(solver):
    X, y = tiny(3)
    w = weights(y)
    w[::4] = 0.0
    keep = w > 0
    whole, part = machine(solver).fit(X, y, w), machine(solver).fit(X[keep], y[keep], w[keep])
    np.testing.assert_array_equal(whole.support_, np.flatnonzero(keep)[part.support_])
    np.testing.assert_allclose(whole.decision_function(X), part.decision_function(X), atol=1e-10)
    assert_same_machine(whole, machine().fit(X, y, w), X)
    # a class without weight is a class without rows
    assert list(machine(solver).fit(X, y, np.where(y == 1, 0.0, 1.0)).classes_) == [0, 2]


@each
def test_weights_scale_c(solver):
    X, y = tiny()
    a = machine(solver, C=0.1).fit(X, y, np.full(len(y), 4.0))
    b = machine(solver, C=0.4).fit(X, y)
    c = machine(solver, C=0.1, class_weight={0: 4.0, 1: 4.0}).fit(X, y)
    np.testing.assert_allclose(a.dual_coef_, b.dual_coef_, atol=1e-7)
    np.testing.assert_allclose(c.dual_coef_, b.dual_coef_, atol=1e-7)
    assert np.abs(machine(solver, C=0.1).fit(X, y).dual_coef_).sum() < np.abs(b.dual_coef_).sum()


@each_quick
def test_class_weight_moves_the_boundary_as_with_the_default_solver(solver):
    X, y = make_classification(150, 4, flip_y=0.2, random_state=0)
    kind = {"class_weight": {0: 0.01, 1: 3.0}}
    ours = machine(solver, **kind).fit(X, y)
    assert_same_machine(ours, machine(**kind).fit(X, y), X)
    assert (ours.predict(X) == 1).sum() > (machine(solver).fit(X, y).predict(X) == 1).sum() + 20


@each_quick
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
def test_sparse_input_gives_the_model_of_dense_input(kind, kernel, solver):
    X, y = data("wine")
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    S = kind(X)
    sparse, auto = (machine(s, kernel=kernel, gamma=0.1).fit(S, y) for s in (solver, "auto"))
    assert_same_machine(sparse, auto, S)
    assert sp.issparse(sparse.dual_coef_) and sp.issparse(sparse.support_vectors_)
    plain = machine(solver, kernel=kernel, gamma=0.1).fit(X, y)
    np.testing.assert_allclose(sparse.decision_function(S), plain.decision_function(X), atol=1e-6)
    if kernel == "linear":
        np.testing.assert_allclose(sparse.coef_.toarray(), plain.coef_, atol=1e-6)


@each_quick
def test_float32_input_is_taken_as_it_is(solver):
    X, y = data("cancer")
    X = X.astype(np.float32)
    ours = machine(solver, gamma=0.05, tol=1e-6).fit(X, y)
    assert ours.support_vectors_.dtype == np.float32 and ours.dual_coef_.dtype == np.float64
    auto = machine(gamma=0.05).fit(X.astype(float), y)
    np.testing.assert_allclose(
        ours.decision_function(X.astype(float)), auto.decision_function(X.astype(float)), atol=1e-4
    )
    assert kkt_violation(ours, X, y) <= 1e-6 * 1.01


@each_quick
def test_pandas_frames_keep_their_feature_names(solver):
    X, y = load_iris(return_X_y=True, as_frame=True)
    ours = machine(solver).fit(X, y.map({0: "a", 1: "b", 2: "c"}))
    assert list(ours.feature_names_in_) == list(X.columns)
    assert set(ours.predict(X)) == {"a", "b", "c"}
    np.testing.assert_allclose(ours.decision_function(X), machine().fit(X, y).decision_function(X), atol=1e-6)
    with pytest.raises(ValueError, match="feature names"):
        ours.predict(X.rename(columns={X.columns[0]: "other"}))


@each_quick
@pytest.mark.parametrize("name", ["cancer", "iris"])
def test_precomputed_and_callable_kernels_equal_the_named_one(name, solver):
    X, y = data(name)
    K = X @ X.T
    named = machine(kernel="linear").fit(X, y)
    for kernel, Z in (("precomputed", K), (lambda A, B: A @ B.T, X)):
        model = machine(solver, kernel=kernel).fit(Z, y)
        np.testing.assert_array_equal(model.support_, named.support_)
        np.testing.assert_allclose(model.dual_coef_, named.dual_coef_, atol=1e-6)
        np.testing.assert_allclose(model.decision_function(Z), named.decision_function(X), atol=1e-6)
        assert model.support_vectors_.size == 0


@each
def test_callable_kernels_take_any_data(solver):
    words = ["aa", "ab", "ba", "bb", "aab", "bba"] * 2
    y = [w.count("a") > w.count("b") for w in words]

    def shared(A, B):
        return np.array([[x.count("a") * z.count("a") + x.count("b") * z.count("b") for z in B] for x in A])

    ours, auto = (machine(s, kernel=shared, tol=1e-6).fit(words, y) for s in (solver, "auto"))
    np.testing.assert_allclose(ours.decision_function(words), auto.decision_function(words), atol=1e-4)


@each
def test_input_is_never_modified(solver):
    X, y = tiny()
    w = weights(y)
    K = pairwise_kernels(X, metric="rbf")
    copies = X.copy(), y.copy(), w.copy(), K.copy()
    for given_ in (X, y, w, K):
        given_.flags.writeable = False
    machine(solver, C=0.3).fit(X, y, w)
    machine(solver, C=0.3, kernel="precomputed").fit(K, y, w)
    for now, before in zip((X, y, w, K), copies, strict=True):
        np.testing.assert_array_equal(now, before)


@each_quick
def test_pickle_and_clone_round_trip(solver):
    X, y = data("wine")
    model = machine(solver, C=3.0, warm_start=True).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(again.dual_gap_, model.dual_gap_)
    assert (again.fit(X, y).n_iter_ <= 2).all()  # what a warm start needs is kept
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    assert not hasattr(fresh, "support_")


def test_grid_search_finds_the_same_score_for_every_solver():
    X, y = load_breast_cancer(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), machine(tol=1e-6))
    grid = {"svc__solver": ["auto", *QUICK, MDM(selection="second-order")], "svc__C": [0.1, 1.0]}
    search = GridSearchCV(pipe, grid, cv=3, error_score="raise").fit(X, y)
    scores = search.cv_results_["mean_test_score"].reshape(2, -1)
    assert (scores > 0.95).all()
    np.testing.assert_array_equal(scores, np.repeat(scores[:, :1], len(grid["svc__solver"]), axis=1))
    assert search.predict(X).shape == y.shape


@parametrize_with_checks(
    [machine("mdm-accelerated", tol=1e-3), machine("npa", tol=1e-3)],
    expected_failed_checks=failures_of_scikit_learns_own_class,
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


# -- tolerance and gap -------------------------------------------------------------------------


@each_quick
@pytest.mark.parametrize("tol", [0.1, 1e-3, 1e-6])
@pytest.mark.parametrize(("name", "kernel"), [("cancer", "rbf"), ("wine", "linear"), ("digits", "poly")])
def test_kkt_conditions_hold_to_tol_in_float64(name, kernel, tol, solver):
    X, y = data(name)
    w = weights(y)
    model = machine(solver, kernel=kernel, C=2.0, tol=tol).fit(X, y, w)
    assert model.status_ == "solved"
    assert kkt_violation(model, X, y, 2.0 * w) <= tol * (1 + 1e-6) + 1e-12
    assert all(trace[-1].violation <= tol for trace in model.trace_)


@pytest.mark.parametrize("tol", [0.1, 1e-3, 1e-6])
def test_gilbert_holds_the_kkt_conditions_to_tol(tol):
    X, y = tiny(3)
    model = machine("gilbert", C=0.3, tol=tol).fit(X, y)
    assert model.status_ == "solved"
    assert kkt_violation(model, X, y) <= tol * (1 + 1e-6)


@each_quick
def test_kkt_conditions_hold_to_tol_for_more_rows_than_the_cache_holds(solver):
    X, y = make_classification(700, 10, flip_y=0.1, random_state=0)
    model = machine(solver, tol=1e-3, cache_size=1.0).fit(X, y)
    assert model.status_ == "solved"
    assert kkt_violation(model, X, y) <= 1e-3 * (1 + 1e-6)


@each_quick
@pytest.mark.parametrize("tol", [0.3, 1e-2, 1e-4])
@pytest.mark.parametrize("name", ["cancer", "wine"])
def test_dual_gap_is_primal_minus_dual(name, tol, solver):
    X, y = data(name)
    w = weights(y)
    model = machine(solver, C=2.0, tol=tol).fit(X, y, w)
    gaps = true_gaps(model, X, y, 2.0 * w)
    values = [dual_value(K, c, u) for K, _, c, u, _ in pairs(model, X, y, 2.0 * w)]
    np.testing.assert_allclose(model.dual_gap_, gaps, rtol=1e-4, atol=1e-11 * max(values))
    assert (model.dual_gap_ <= tol * np.array(values)).all()


@each
@pytest.mark.parametrize("max_iter", [1, 7, 40])
def test_dual_gap_is_true_when_the_budget_is_used_up(max_iter, solver):
    X, y = data("wine")
    with pytest.warns(ConvergenceWarning, match="3 of 3 class pairs"):
        model = machine(solver, C=5.0, max_iter=max_iter).fit(X, y)
    gaps = true_gaps(model, X, y)
    assert (gaps > 1e-3).all()
    np.testing.assert_allclose(model.dual_gap_, gaps, rtol=1e-6)


@each
def test_gap_bounds_the_distance_to_the_optimum(solver):
    X, y = tiny()
    tight = dual_value(*_coefficients(machine(C=0.5, tol=1e-10).fit(X, y), X, y))
    distances = []
    for tol in (1.0, 0.1, 1e-2):
        loose = machine(solver, C=0.5, tol=tol).fit(X, y)
        distances.append(tight - dual_value(*_coefficients(loose, X, y)))
        assert -1e-12 * tight <= distances[-1] <= loose.dual_gap_[0]
    assert distances[0] > 0


def _coefficients(model, X, y):
    ((K, _, c, u, _),) = pairs(model, X, y)
    return K, c, u


@each
def test_no_multiple_of_an_unfinished_solution_has_a_better_dual_value(solver):
    X, y = data("cancer")
    with pytest.warns(ConvergenceWarning):
        model = machine(solver, max_iter=15).fit(X, y)
    K, c, u = _coefficients(model, X, y)
    assert np.abs(u).sum() == pytest.approx(u @ K @ u + (u**2 / (2 * c)).sum(), rel=1e-9)


@each_quick
def test_order_of_rows_does_not_matter(solver):
    X, y = data("wine")
    order = np.random.default_rng(3).permutation(len(y))
    a, b = machine(solver).fit(X, y), machine(solver).fit(X[order], y[order])
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(a.support_, _class_by_class(order[b.support_], y))


def _class_by_class(rows, y):
    rows = np.sort(rows)
    return rows[np.argsort(y[rows], kind="stable")]


# -- penalties, large and small ----------------------------------------------------------------


@each
def test_tiny_penalty_makes_every_row_a_support_vector(solver):
    X, y = tiny()
    ours, auto = (machine(s, C=1e-4).fit(X, y) for s in (solver, "auto"))
    assert_same_machine(ours, auto, X)
    assert len(ours.support_) == len(y)
    assert np.abs(ours.dual_coef_).max() <= 2e-4 * 2.0  # 2 C times the largest slack


@each_quick
def test_huge_penalty_comes_near_the_hard_margin(solver):
    X, y = make_moons(100, noise=0.05, random_state=0)
    ours, auto = (machine(s, C=1e6, gamma=2.0, tol=1e-6).fit(X, y) for s in (solver, "auto"))
    assert_same_machine(ours, auto, X, rtol=1e-4)
    assert kkt_violation(ours, X, y) <= 1e-6 * 1.001
    hard = machine(solver, C=np.inf, gamma=2.0, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), hard.decision_function(X), atol=1e-2)


@each_quick
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_hard_margin_separates_with_margin_one(loss, solver):
    X, y = make_moons(200, noise=0.05, random_state=0)
    kind = {"loss": loss, "C": np.inf, "gamma": 2.0, "tol": 1e-7}
    ours, auto = machine(solver, **kind).fit(X, y), machine(**kind).fit(X, y)
    assert_same_machine(ours, auto, X, rtol=1e-4)
    margin = np.where(y == 1, 1, -1) * ours.decision_function(X)
    assert margin.min() == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_allclose(margin[ours.support_], 1.0, atol=1e-6)
    theirs = sklearn.svm.SVC(C=1e10, gamma=2.0, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)


@each
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_hard_margin_of_a_few_points_is_known(loss, solver):
    X, y = [[0.0, 0.0], [0.0, 1.0], [3.0, 0.0], [2.0, 0.5]], [0, 0, 1, 1]
    model = machine(solver, loss=loss, C=np.inf, kernel="linear").fit(X, y)
    np.testing.assert_allclose(model.coef_, [[1.0, 0.0]], atol=1e-6)
    np.testing.assert_allclose(model.intercept_, [-1.0], atol=1e-6)
    assert 0 <= model.dual_gap_[0] < 1e-6  # ||w||^2 / 2 is 0.5


@each_quick
def test_hard_margin_gap_bounds_the_distance_to_the_optimum(solver):
    X, y = make_moons(200, noise=0.05, random_state=0)
    best = 0.5 * np.abs(machine(C=np.inf, gamma=2.0, tol=1e-10).fit(X, y).dual_coef_).sum()
    for tol in (0.1, 1e-3):
        model = machine(solver, C=np.inf, gamma=2.0, tol=tol).fit(X, y)
        K, u = kernel_matrix(model, X)[:, model.support_], model.dual_coef_[0]
        value = np.abs(u).sum() - 0.5 * u @ K[model.support_] @ u
        assert -1e-9 * best <= best - value <= model.dual_gap_[0] <= 100 * tol * best


@each
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_hard_margin_without_a_margin_is_reported_as_infeasible(loss, solver):
    X = np.array([[0.0], [1.0], [1.0], [2.0]])
    with pytest.warns(ConvergenceWarning, match="finite C"):
        model = machine(solver, loss=loss, C=np.inf).fit(X, [0, 0, 1, 1])
    assert model.status_ == "infeasible" and model.fit_status_ == 1
    assert np.isfinite(model.decision_function(X)).all()


@each_quick
def test_overlapping_classes_have_no_hard_margin(solver):
    X, y = make_classification(200, 5, flip_y=0.3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="finite C"):
        model = machine(solver, C=np.inf, kernel="linear", tol=1e-3).fit(X, y)
    assert model.status_ == "infeasible"
    assert model.predict(X).shape == y.shape


def hard_to_separate():
    X, y = make_classification(150, 5, flip_y=0.2, random_state=0)
    yield "large features", X * 1e6, y, 1.0
    yield "large features and penalty", X * 1e3, y, 1e6
    yield "far from the origin", X + 1e6, y, 1.0
    yield "equal points", np.repeat(X[:30] * 1e5, 2, axis=0), np.tile([0, 1], 30), 100.0


@each_quick
@pytest.mark.parametrize(
    ("X", "y", "C"), [p[1:] for p in hard_to_separate()], ids=[p[0] for p in hard_to_separate()]
)
def test_a_finite_penalty_is_never_called_infeasible(X, y, C, solver):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = machine(solver, kernel="linear", C=C, tol=1e-6, max_iter=200_000).fit(X, y)
    assert model.status_ in ("solved", "max_iter", "stalled")
    assert not [w for w in caught if "finite C" in str(w.message)]


@each_quick
@pytest.mark.parametrize(("scale", "max_iter"), [(1e4, 500), (1e4, 200_000), (1e6, 500)])
def test_dual_gap_is_no_smaller_than_the_true_one_where_features_are_not_scaled(scale, max_iter, solver):
    X, y = make_classification(150, 5, flip_y=0.2, random_state=0)
    X = X * scale
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = machine(solver, kernel="linear", C=1e4, max_iter=max_iter).fit(X, y)
    assert model.dual_gap_[0] >= 0.5 * true_gaps(model, X, y)[0]  # give or take rounding


@each_quick
@pytest.mark.parametrize("coef0", [-1.0, 0.0])
def test_an_indefinite_kernel_is_not_taken_for_a_missing_margin(coef0, solver):
    X, y = make_classification(150, 5, flip_y=0.2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = machine(solver, kernel="sigmoid", gamma=1.0, coef0=coef0, max_iter=200_000).fit(X, y)
    assert model.status_ in ("solved", "max_iter", "stalled")
    assert np.isfinite(model.decision_function(X)).all()


# -- degenerate data ---------------------------------------------------------------------------


@each_quick
def test_duplicates_share_their_coefficient(solver):
    X, y = data("cancer", 40)
    model = machine(solver).fit(np.repeat(X, 5, axis=0), np.repeat(y, 5))
    once = machine(C=5.0).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), once.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(np.unique(model.support_ // 5), np.sort(once.support_))
    shares = model.dual_coef_[0].reshape(-1, 5)  # squared slacks make equal rows equal
    np.testing.assert_allclose(shares, np.repeat(shares[:, :1], 5, axis=1), atol=1e-6)


@each
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_equal_points_with_opposite_labels_cancel(C, solver):
    X, y = np.repeat(tiny()[0][:8], 2, axis=0), np.tile([0, 1], 8)
    model = machine(solver, C=C).fit(X, y)
    assert model.status_ == "solved"
    # slack 1 everywhere, and alpha = 2 C times that
    np.testing.assert_allclose(np.abs(model.dual_coef_), 2 * C, atol=1e-6)
    np.testing.assert_allclose(model.decision_function(X), 0.0, atol=1e-6)


@each
@pytest.mark.parametrize("X", [[[0.0], [1.0]], [[0.0], [0.0]], [[1e-8], [2e-8]]])
def test_two_rows_are_enough(X, solver):
    ours, auto = (machine(s).fit(X, ["a", "b"]) for s in (solver, "auto"))
    assert_same_machine(ours, auto, X)


@each
def test_constant_features_predict_the_larger_class(solver):
    X, y = np.ones((15, 2)), np.array([0, 0, 1] * 5)
    model = machine(solver, gamma=1.0).fit(X, y)
    assert model.status_ == "solved"
    assert (model.predict(X) == 0).all()
    # the mean of the labels minimises the sum of squared slacks
    np.testing.assert_allclose(model.decision_function(X), -1.0 / 3.0, atol=1e-6)


# -- resources and budgets ---------------------------------------------------------------------


def limited(most):
    """A linear kernel that refuses to be called without end."""
    calls = 0

    def kernel(A, B):
        nonlocal calls
        calls += 1
        if calls > most:
            raise RuntimeError(f"the kernel was called more than {most} times")
        return np.asarray(A) @ np.asarray(B).T

    return kernel


@pytest.mark.parametrize("rows", [2, 3, 4, 6, 11])
@pytest.mark.parametrize(
    "solver",
    [*QUICK, MDM(selection="second-order"), MDM(accelerate=True, selection="second-order")],
    ids=str,
)
def test_a_cache_of_a_few_rows_is_enough_or_refused(rows, solver):
    X, y = data("wine", 160)
    X, y = X[:120], y[:120] > 0
    model = machine(solver, kernel=limited(5_000), tol=1e-6, cache_size=rows * 120 * 8 / 2**20)
    try:
        model.fit(X, y)
    except ValueError as error:
        assert "rows that MDM needs at once" in str(error)  # noqa: PT017  (an answer, not the only one)
        assert rows == 2
    else:
        auto = machine(kernel="linear").fit(X, y)
        assert model.status_ == "solved"
        np.testing.assert_allclose(model.dual_coef_, auto.dual_coef_, atol=1e-4)


@each_quick
def test_a_cache_that_holds_no_two_rows_is_refused_with_the_bytes_to_give(solver):
    X, y = data("cancer")
    rows = 3 if solver == "mdm-second-order" else 2
    with pytest.raises(ValueError, match=rf"needs at once: give it at least {rows * len(y) * 8} bytes"):
        machine(solver, cache_size=1e-5).fit(X, y)


@each_quick
@pytest.mark.parametrize("cache_size", [0.005, 0.05])
def test_a_small_cache_changes_nothing_but_the_time(cache_size, solver):
    X, y = data("iris")
    small, large = machine(solver, cache_size=cache_size).fit(X, y), machine(solver).fit(X, y)
    assert_same_machine(small, large, X)
    assert small.n_kernel_evals_ > large.n_kernel_evals_


@each_quick
@pytest.mark.parametrize("n", [300, 1500])  # one after the other, and side by side
def test_the_number_of_threads_changes_nothing(n, solver):
    X, y = make_classification(n, 20, n_informative=10, n_classes=3, random_state=0)
    one, two = (machine(solver, n_jobs=n_jobs, tol=1e-5).fit(X, y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.support_, two.support_)
    np.testing.assert_allclose(one.dual_coef_, two.dual_coef_, atol=1e-9)
    np.testing.assert_allclose(one.intercept_, two.intercept_, atol=1e-9)
    np.testing.assert_array_equal(one.n_iter_.shape, two.n_iter_.shape)


@each
def test_one_step_leaves_a_usable_model_and_a_warning_that_says_what_to_do(solver):
    X, y = data("cancer")
    with pytest.warns(ConvergenceWarning, match="max_iter") as caught:
        model = machine(solver, max_iter=1).fit(X, y)
    assert len(caught) == 1
    assert model.status_ == "max_iter" and model.fit_status_ == 1 and model.n_iter_[0] == 1
    assert 2 <= len(model.support_) <= 4
    assert set(model.predict(X)) == {0, 1} and model.score(X, y) > 0.6
    np.testing.assert_allclose(model.dual_gap_, true_gaps(model, X, y), rtol=1e-6)


@each
def test_max_iter_bounds_the_steps_of_every_machine(solver):
    X, y = data("iris")
    with pytest.warns(ConvergenceWarning, match="of 3 class pairs"):
        model = machine(solver, max_iter=10).fit(X, y)
    assert (model.n_iter_ <= 10).all()


@each
def test_no_time_leaves_a_usable_model(solver):
    X, y = data("iris")
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = machine(solver, max_time=0.0).fit(X, y)
    assert model.status_ == "max_time"
    assert model.predict(X).shape == y.shape
    np.testing.assert_allclose(model.dual_gap_, true_gaps(model, X, y), rtol=1e-6)


@each_quick
def test_fitted_attributes_tell_how_training_went(solver):
    X, y = data("wine")
    model = machine(solver, tol=1e-3).fit(X, y)
    assert model.dual_gap_.shape == model.n_iter_.shape == (3,)
    assert 0 < model.n_kernel_evals_ <= 3 * len(y) ** 2
    assert model.n_kernel_calls_ >= 2 * model.n_iter_.sum()
    assert [trace[-1].n_iter for trace in model.trace_] == list(model.n_iter_)


def test_acceleration_saves_steps_where_plain_ones_zigzag():
    X, y = data("cancer")
    plain, quick = (machine(s, kernel="linear", C=10.0).fit(X, y) for s in ("mdm", "mdm-accelerated"))
    assert quick.n_iter_[0] <= 0.7 * plain.n_iter_[0]
    assert quick.n_kernel_calls_ < plain.n_kernel_calls_


# -- warm starts -------------------------------------------------------------------------------


@each_quick
def test_warm_start_continues_from_the_previous_solution(solver):
    X, y = make_classification(200, 10, n_informative=5, n_classes=3, random_state=0)
    model = machine(solver, warm_start=True, tol=1e-6).fit(X, y)
    assert (model.n_iter_ > 50).all()
    assert (model.fit(X, y).n_iter_ <= 2).all()
    for C in (1.3, 0.8):
        model.set_params(C=C).fit(X, y)
        fresh = machine(solver, C=C, tol=1e-6).fit(X, y)
        assert model.n_iter_.sum() < fresh.n_iter_.sum()
        assert kkt_violation(model, X, y) <= 1e-6 * 1.001
        np.testing.assert_allclose(model.decision_function(X), fresh.decision_function(X), atol=1e-4)


def test_gilbert_has_nothing_left_to_do_after_a_warm_start():
    X, y = tiny()
    model = machine("gilbert", C=0.3, warm_start=True).fit(X, y)
    assert model.n_iter_[0] > 50
    assert model.fit(X, y).n_iter_[0] <= 2


@each_quick
def test_warm_starts_from_anything_end_at_the_same_machine(solver):
    X, y = data("wine")
    w = weights(y)
    w[::5] = 0.0
    model = machine(solver, warm_start=True)
    expected = machine().fit(X, y)
    for change in (
        lambda: model.fit(X, y, w),  # rows come and go
        lambda: model.set_params(solver="auto").fit(X, y),  # another solver, another problem
        lambda: model.set_params(C=np.inf).fit(X, y),
        lambda: model.fit(X, y[::-1]),  # other labels
        lambda: model.fit(X[:100], y[:100]),  # other data: a cold start, not an error
        lambda: model.set_params(kernel="linear").fit(X, y),
    ):
        change()
        model.set_params(solver=solver, C=1.0, kernel="rbf")
        assert_same_machine(model.fit(X, y), expected, X)


@each
def test_a_warm_start_continues_an_unfinished_fit(solver):
    X, y = tiny()
    model = machine(solver, C=0.3, warm_start=True, max_iter=15)
    gaps = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for _ in range(5):
            gaps.append(model.fit(X, y).dual_gap_[0])
    assert gaps[-1] < 0.5 * gaps[0]
    assert_same_machine(model.set_params(max_iter=-1).fit(X, y), machine(C=0.3).fit(X, y), X)


# -- clear errors ------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [*ALL, MDM(selection="second-order"), NPA()], ids=str)
def test_hinge_with_a_finite_penalty_names_the_solvers_that_can(solver):
    X, y = tiny(3)
    with pytest.raises(ValueError, match=r"loss='squared_hinge'.*auto, batch.*smo") as caught:
        SVC(solver=solver).fit(X, y)
    assert str(solver) in str(caught.value)
    assert "npa" not in str(caught.value).split("one of the solvers")[1]


@each
@pytest.mark.parametrize("n", [20, 1500])
def test_nu_svc_names_the_solvers_that_can(n, solver):
    X, y = make_classification(n, 20, n_informative=10, n_classes=3, random_state=0)
    with pytest.raises((TypeError, ValueError), match=r"solvers.*auto, batch, .*smo"):
        NuSVC(nu=0.1, solver=solver, n_jobs=2).fit(X, y)


@each
def test_one_class_svm_names_the_solvers_that_can(solver):
    with pytest.raises((TypeError, ValueError), match=r"solvers.*auto, batch, .*smo"):
        OneClassSVM(solver=solver).fit(tiny()[0])


@pytest.mark.parametrize("solver", ["MDM", "mdm_accelerated", "nearest", ""])
def test_unknown_names_are_answered_with_the_known_ones(solver):
    with pytest.raises(
        ValueError,
        match=r"Unknown solver.*gilbert, maxminover, maxminover-doubling, mdm, mdm-accelerated, .*npa",
    ):
        machine(solver).fit(*tiny())


@pytest.mark.parametrize("solver", [MDM, None, 3])
def test_what_is_no_solver_is_refused(solver):
    with pytest.raises(ValueError, match="'solver' parameter of SVC"):
        machine(solver).fit(*tiny())


def test_a_refused_fit_leaves_the_model_as_it_was():
    X, y = tiny()
    model = machine("mdm", C=0.5).fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="squared_hinge"):
        model.set_params(loss="hinge").fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), before)


# -- any data ----------------------------------------------------------------------------------


def random_problem(seed, n, d, zeros):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(1)  # equal rows among them, also of opposite labels
    y = rng.integers(0, 2, n)
    y[:2] = [0, 1]
    w = rng.uniform(0.2, 3.0, n)
    if zeros:
        w[2:][rng.random(n - 2) < 0.3] = 0.0
    return X, y, w


@settings(max_examples=80)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 40),
    d=st.integers(1, 5),
    C=st.floats(1e-3, 50.0),
    gamma=st.floats(0.05, 5.0),
    zeros=st.booleans(),
    solver=st.sampled_from(QUICK),
)
def test_any_problem_is_solved_to_tol_with_a_true_gap(seed, n, d, C, gamma, zeros, solver):
    X, y, w = random_problem(seed, n, d, zeros)
    ours, auto = (machine(s, C=C, gamma=gamma, tol=1e-6).fit(X, y, w) for s in (solver, "auto"))
    assert ours.status_ == "solved"
    assert kkt_violation(ours, X, y, C * w) <= 1e-6 * (1 + 1e-6) + 1e-12
    ((K, sign, c, u, _),) = pairs(ours, X, y, C * w)
    ((_, _, _, v, _),) = pairs(auto, X, y, C * w)
    value = dual_value(K, c, u)
    rounding = 1e-11 * (1.0 + abs(value))
    gap = primal_value(K, sign, c, u) - value
    assert ours.dual_gap_[0] == pytest.approx(gap, rel=1e-3, abs=rounding)
    # Half the squared distance to the optimum is at most the gap: two solutions lie within both.
    distance = np.sqrt((u - v) @ K @ (u - v) + ((u - v) ** 2 / (2 * c)).sum())
    assert distance <= np.sqrt(2 * (ours.dual_gap_[0] + rounding)) + np.sqrt(
        2 * (auto.dual_gap_[0] + rounding)
    )


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 40),
    C=st.floats(1e-3, 1e6),
    max_iter=st.integers(0, 60),
    kernel=st.sampled_from(["rbf", "linear", "poly"]),
    solver=st.sampled_from(ALL),
)
def test_any_budget_leaves_a_feasible_model_with_a_true_gap(seed, n, C, max_iter, kernel, solver):
    X, y, w = random_problem(seed, n, 2, True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = machine(solver, C=C, kernel=kernel, gamma=0.5, max_iter=max_iter).fit(X, y, w)
    ((K, sign, c, u, _),) = pairs(model, X, y, C * w)
    assert (sign * u >= 0).all() and abs(u.sum()) <= 1e-9 * np.abs(u).sum()
    primal, value = primal_value(K, sign, c, u), dual_value(K, c, u)
    assert model.dual_gap_[0] == pytest.approx(primal - value, rel=1e-6, abs=1e-8 * (1 + primal))


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), gamma=st.floats(1.0, 10.0), solver=st.sampled_from(QUICK))
def test_any_separable_problem_gets_margin_one(seed, gamma, solver):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 3))
    y = rng.integers(0, 2, 20)
    y[:2] = [0, 1]
    model = machine(solver, loss="hinge", C=np.inf, gamma=gamma, tol=1e-6).fit(X, y)
    assert model.status_ == "solved"
    margin = np.where(y == 1, 1, -1) * model.decision_function(X)
    assert margin.min() == pytest.approx(1.0, abs=1e-5)
    np.testing.assert_allclose(margin[model.support_], 1.0, atol=1e-5)
