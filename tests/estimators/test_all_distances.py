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
from maxmargin import AllDistancesSVC, NuSVC, dual
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
