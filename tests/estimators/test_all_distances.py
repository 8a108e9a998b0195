import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import qp
from maxmargin import SVC, AllDistancesSVC, NuSVC, dual
from maxmargin.gram.gram import Gram
from maxmargin.solvers import SMO, Batch, Stop

TIGHT = {"tol": 1e-8, "gamma": 0.3}


def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def two_classes(n=80):
    return make_classification(n, 4, flip_y=0.1, weights=[0.4], random_state=0)


def centres(model, X, y):
    """c_r from u, in the feature space of the linear kernel."""
    u = np.zeros(len(y))
    u[model.support_] = model.dual_coef_[0]
    return np.array([u[y == c] @ X[y == c] for c in model.classes_])


@pytest.mark.parametrize("solver", ["batch", "smo", "rosen-conjugate"])
@pytest.mark.parametrize("nu", [0.1, 0.5, 0.9])
def test_an_independent_solver_agrees(solver, nu):
    X, y = iris()
    model = AllDistancesSVC(nu=nu, solver=solver, **TIGHT).fit(X, y)
    problem = dual.all_distances(y, 1 / (nu * 50))
    best = qp.reference(problem, qp.rbf(X, 0.3))[1]
    u = np.zeros(150)
    u[model.support_] = model.dual_coef_[0]
    Q = qp.dense_q(problem, qp.rbf(X, 0.3))
    assert model.status_ == "solved"
    assert qp.objective(Q, problem.p, u) == pytest.approx(best, rel=1e-6)


def test_smo_and_batch_find_the_same_solution():
    X, y = iris()
    problem = dual.all_distances(y, 0.1)
    gram = Gram(X, gamma=0.3, dtype="float64")
    a = SMO("second-order").solve(problem, gram, stop=Stop(1e-9))
    b = Batch().solve(problem, gram, stop=Stop(1e-9))
    assert a.objective == pytest.approx(b.objective, rel=1e-9)


@pytest.mark.parametrize("nu", [0.3, 0.7])
def test_for_two_classes_it_is_the_machine_of_nu_svc(nu):
    X, y = two_classes()
    smaller = min(np.bincount(y))
    ours = AllDistancesSVC(nu=nu, offset="kkt", **TIGHT).fit(X, y)
    other = NuSVC(nu=2 * nu * smaller / len(y), **TIGHT).fit(X, y)
    np.testing.assert_array_equal(np.sort(ours.support_), np.sort(other.support_))
    a, b = ours.decision_function(X), other.decision_function(X)
    np.testing.assert_allclose(a / np.abs(a).max(), b / np.abs(b).max(), atol=1e-4)
    weights = np.abs(other.dual_coef_[0]) / np.abs(other.dual_coef_[0]).sum() * 2
    np.testing.assert_allclose(ours.dual_coef_[0], weights, atol=1e-5)


def test_planes_offsets_and_norms_are_those_of_the_paper():
    X, y = iris()
    model = AllDistancesSVC(nu=0.3, kernel="linear", tol=1e-8).fit(X, y)
    c = centres(model, X, y)
    w = c - c.mean(axis=0)
    np.testing.assert_allclose(model.coef_, w, atol=1e-10)
    np.testing.assert_allclose(model.b_, -w @ c.mean(axis=0), atol=1e-10)
    np.testing.assert_allclose(model.rho_, (w**2).sum(axis=1), atol=1e-10)
    np.testing.assert_allclose(model.intercept_, model.b_ - model.rho_, atol=1e-7)
    np.testing.assert_allclose(model.decision_function(X), X @ w.T + model.b_ - model.rho_, atol=1e-7)


def test_with_kkt_offsets_the_planes_pass_through_free_support_vectors():
    X, y = iris()
    model = AllDistancesSVC(nu=0.3, offset="kkt", **TIGHT).fit(X, y)
    free = model.dual_coef_[0] < model.mu_ * (1 - 1e-9)
    values = model.decision_function(X)[model.support_[free], y[model.support_[free]]]
    assert len(values) > 3
    np.testing.assert_allclose(values, 0.0, atol=1e-7)


def test_sums_and_bounds_hold():
    X, y = iris()
    model = AllDistancesSVC(mu=0.05, **TIGHT).fit(X, y)
    u = model.dual_coef_[0]
    assert (u > 0).all()
    assert u.max() <= 0.05 * (1 + 1e-12)
    np.testing.assert_allclose([u[y[model.support_] == c].sum() for c in range(3)], 1.0, atol=1e-9)
    np.testing.assert_array_equal(model.n_support_, np.bincount(y[model.support_]))


def test_an_infeasible_mu_names_the_smallest_feasible_one():
    X, y = iris()
    with pytest.raises(ValueError, match=r"mu = 0.01 is infeasible.*smallest feasible mu is 0.02"):
        AllDistancesSVC(mu=0.01).fit(X, y)
    assert AllDistancesSVC(mu=0.02).fit(X, y).status_ == "solved"


def test_nu_works_in_every_fold():
    X, y = make_classification(150, 6, n_informative=4, n_classes=3, weights=[0.7, 0.2], random_state=0)
    scores = cross_val_score(make_pipeline(StandardScaler(), AllDistancesSVC(nu=1.0)), X, y, cv=5)
    assert np.isfinite(scores).all()


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="number of classes has to be greater than one; got 1 class"):
        AllDistancesSVC().fit([[0.0], [1.0]], [1, 1])


def test_weights_equal_repetition():
    X, y = iris()
    weight = np.random.default_rng(0).integers(0, 3, 150).astype(float)
    repeated = np.repeat(np.arange(150), weight.astype(int))
    a = AllDistancesSVC(mu=0.05, **TIGHT).fit(X, y, weight)
    b = AllDistancesSVC(mu=0.05, **TIGHT).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-5)


def test_sparse_precomputed_strings_and_warm_starts():
    X, y = iris()
    names = np.array(["a", "b", "c"])[y]
    dense = AllDistancesSVC(**TIGHT).fit(X, names)
    sparse = AllDistancesSVC(**TIGHT).fit(sp.csr_matrix(X), names)
    given = AllDistancesSVC(kernel="precomputed", tol=1e-8).fit(qp.rbf(X, 0.3), names)
    expected = dense.decision_function(X)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_matrix(X)), expected, atol=1e-6)
    np.testing.assert_allclose(given.decision_function(qp.rbf(X, 0.3)), expected, atol=1e-6)
    np.testing.assert_array_equal(given.predict(qp.rbf(X, 0.3)), dense.predict(X))
    assert set(dense.predict(X)) == {"a", "b", "c"}
    again = clone(dense).set_params(warm_start=True).fit(X, names).fit(X, names)
    assert again.n_iter_ == 1


def test_the_gap_bounds_the_distance_to_the_optimum():
    X, y = iris()
    problem = dual.all_distances(y, 1 / 25)
    best = qp.reference(problem, qp.rbf(X, 0.3))[1]
    for tol in (1e-1, 1e-3):
        model = AllDistancesSVC(nu=0.5, gamma=0.3, tol=tol).fit(X, y)
        u = np.zeros(150)
        u[model.support_] = model.dual_coef_[0]
        value = qp.objective(qp.dense_q(problem, qp.rbf(X, 0.3)), problem.p, u)
        assert best - 1e-9 <= value <= best + model.dual_gap_ + 1e-9


def test_more_classes_than_a_working_set_takes():
    X = np.random.default_rng(0).normal(size=(2100, 3))
    with pytest.warns(ConvergenceWarning):
        model = AllDistancesSVC(max_iter=3).fit(X, np.arange(len(X)) % 1050)
    assert model.status_ == "max_iter"
    assert model.predict(X[:2]).shape == (2,)


# -- squared slacks ---------------------------------------------------------------------------

SQUARED = {"loss": "squared_hinge", **TIGHT}
HULL_SOLVERS = ["batch", "smo", "rosen-conjugate", "mdm", "mdm-accelerated", "npa", "maxminover-doubling"]


def weights_of(model, n):
    u = np.zeros(n)
    u[model.support_] = model.dual_coef_[0]
    return u


@pytest.mark.parametrize("solver", HULL_SOLVERS)
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_squared_slacks_agree_with_an_independent_solver(solver, C):
    X, y = iris()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=150)
    model = AllDistancesSVC(**{**SQUARED, "tol": 1e-6}, C=C, solver=solver).fit(X, y, sample_weight=weight)
    problem = dual.squared_all_distances(y, 1 / (2 * C * weight))
    K = qp.rbf(X, 0.3)
    best = qp.reference(problem, K)[1]
    u = weights_of(model, 150)
    assert model.status_ == "solved" and model.mu_ == 1.0
    np.testing.assert_allclose(np.bincount(y, weights=u), 1.0)
    assert qp.objective(qp.dense_q(problem, K), problem.p, u) == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_squared_slacks_of_two_classes_are_those_of_svc(C):
    X, y = two_classes()
    ours = AllDistancesSVC(C=C, offset="kkt", **SQUARED).fit(X, y)
    other = SVC(C=C, loss="squared_hinge", **TIGHT).fit(X, y)
    np.testing.assert_array_equal(np.sort(ours.support_), np.sort(other.support_))
    a, b = ours.decision_function(X), other.decision_function(X)
    np.testing.assert_allclose(a / np.abs(a).max(), b / np.abs(b).max(), atol=1e-5)


def test_planes_with_squared_slacks_are_halfway_between_the_points_of_the_hulls():
    X, y = iris()
    model = AllDistancesSVC(loss="squared_hinge", C=5.0, kernel="linear", tol=1e-8).fit(X, y)
    c = centres(model, X, y)
    w = c - c.mean(axis=0)
    np.testing.assert_allclose(model.coef_, w, atol=1e-10)
    np.testing.assert_allclose(model.intercept_, model.b_ - model.rho_, atol=1e-7)
    np.testing.assert_allclose(model.intercept_, -(w * c).sum(axis=1), atol=1e-7)


def test_squared_slacks_have_kkt_offsets_that_include_the_slack():
    X, y = iris()
    model = AllDistancesSVC(C=2.0, offset="kkt", **SQUARED).fit(X, y)
    u = weights_of(model, 150)
    own = model.decision_function(X)[np.arange(150), y]
    slack = 2 / (2 * 2.0) * u / 3  # (K - 1) / (2 C) u, in units of f = gradient / K
    np.testing.assert_allclose((own + slack)[u > 0], 0.0, atol=1e-7)
    assert (own[u == 0] >= -1e-7).all()


def test_a_class_of_a_single_sample_is_no_obstacle_to_squared_slacks():
    X, y = iris()
    keep = np.r_[0:101]
    model = AllDistancesSVC(C=10.0, **SQUARED).fit(X[keep], y[keep])
    assert model.status_ == "solved" and model.score(X[keep], y[keep]) > 0.8


def test_without_slacks_the_hulls_are_whole():
    X, y = make_classification(60, 20, n_classes=2, class_sep=3.0, flip_y=0.0, random_state=0)
    hard = AllDistancesSVC(C=np.inf, loss="squared_hinge", kernel="linear", tol=1e-8).fit(X, y)
    whole = AllDistancesSVC(mu=1.0, kernel="linear", tol=1e-8).fit(X, y)
    assert hard.status_ == "solved"
    np.testing.assert_allclose(hard.coef_, whole.coef_, atol=1e-5)


def test_whole_hulls_that_touch_are_called_infeasible():
    X = np.random.default_rng(0).normal(size=(90, 2))
    model = AllDistancesSVC(C=np.inf, loss="squared_hinge", kernel="linear")
    with pytest.warns(ConvergenceWarning, match="infeasible"):
        model.fit(X, np.arange(90) % 3)
    assert model.status_ == "infeasible"


def test_weights_equal_repetition_with_squared_slacks():
    X, y = iris()
    weight = np.random.default_rng(1).integers(0, 3, size=150)
    weight[:3] = 1
    weighted = AllDistancesSVC(C=3.0, **SQUARED).fit(X, y, sample_weight=weight)
    repeated = AllDistancesSVC(C=3.0, **SQUARED).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-6)


@pytest.mark.parametrize(
    ("solver", "C"), [("auto", 1e-6), ("auto", 1e8), ("mdm", 1e-6), ("mdm", 1e3), ("npa", 1e-6), ("npa", 1e3)]
)
def test_tiny_and_huge_c_are_solved_on_difficult_data(solver, C):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(10, 2)), 3, axis=0)  # equal points in all classes
    X[0] = 1e8  # a sentinel
    y = np.tile(["a", "b", "c"], 10)
    model = AllDistancesSVC(loss="squared_hinge", C=C, gamma=1.0, solver=solver).fit(X, y)
    problem = dual.squared_all_distances(y, 1 / (2 * C))
    best = qp.reference(problem, qp.rbf(X, 1.0))[1]
    assert model.status_ == "solved"
    objective = model.trace_[0][-1].objective
    assert -1e-9 * best - 1e-15 <= objective - best <= model.dual_gap_ + 1e-9 * best + 1e-15


def test_squared_slacks_work_with_sparse_precomputed_float32_and_warm_starts():
    X, y = iris()
    model = AllDistancesSVC(C=3.0, **SQUARED).fit(X, y)
    expected = model.decision_function(X)
    sparse = AllDistancesSVC(C=3.0, **SQUARED).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.decision_function(X), expected, atol=1e-6)
    K = qp.rbf(X, 0.3)
    given = AllDistancesSVC(C=3.0, **{**SQUARED, "kernel": "precomputed"}).fit(K, y)
    np.testing.assert_allclose(given.decision_function(K), expected, atol=1e-6)
    single = AllDistancesSVC(C=3.0, loss="squared_hinge", gamma=0.3, tol=1e-4).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.decision_function(X), expected, atol=1e-3)
    warm = AllDistancesSVC(C=3.0, warm_start=True, **SQUARED).fit(X, y)
    steps = warm.n_iter_
    assert warm.set_params(C=3.1).fit(X, y).n_iter_ < steps
    # From one loss to the other, both ways.
    for loss in ("hinge", "squared_hinge"):
        assert warm.set_params(loss=loss).fit(X, y).status_ == "solved"


def test_a_search_along_c_gives_the_scores_of_single_fits():
    from maxmargin.model_selection import SVMSearchCV

    X, y = iris()
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}
    search = SVMSearchCV(AllDistancesSVC(loss="squared_hinge", tol=1e-6), grid, cv=3).fit(X, y)
    for parameters, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        alone = AllDistancesSVC(loss="squared_hinge", tol=1e-6, **parameters)
        assert score == pytest.approx(cross_val_score(alone, X, y, cv=3).mean())


def test_bounded_weights_are_refused_by_solvers_of_hulls_that_name_others():
    X, y = iris()
    with pytest.raises(TypeError, match="MDM cannot take"):
        AllDistancesSVC(solver="mdm").fit(X, y)


@pytest.mark.parametrize("parameters", [{"loss": "l2"}, {"C": 0.0}, {"C": -1.0}])
def test_bad_losses_and_c_are_refused(parameters):
    X, y = iris()
    with pytest.raises(ValueError, match=r"loss|C"):
        AllDistancesSVC(**parameters).fit(X, y)
