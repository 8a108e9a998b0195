import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import qp
from maxmargin import L2OneClassSVM, dual

SOLVERS = [
    "auto",
    "batch",
    "smo",
    "smo-accelerated",
    "mdm",
    "mdm-accelerated",
    "mdm-second-order",
    "npa",
    "maxminover",
    "maxminover-doubling",
]


def data(loader):
    return StandardScaler().fit_transform(loader(return_X_y=True)[0])


def alpha_by_qp(K, ridge):
    """The paper's dual by clarabel: no equality, max sum(alpha) - alpha'(K + ridge)alpha / 2."""
    n = len(K)
    return qp.solve_qp(
        K + np.diag(ridge), np.ones(n), np.zeros(n), np.full(n, np.inf), np.zeros((0, n)), np.zeros(0)
    )


def full(model, n):
    alpha = np.zeros(n)
    alpha[model.support_] = model.get_model().coef[0]
    return alpha


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.1, 10.0, 1e4])
def test_solution_is_that_of_the_paper_s_dual_by_an_independent_solver(C, weighted):
    X = data(load_wine)
    K = qp.rbf(X, gamma=0.1)
    w = np.random.default_rng(0).uniform(0.5, 2.0, len(X)) if weighted else np.ones(len(X))
    ridge = 1.0 / (C * w)
    alpha = alpha_by_qp(K, ridge)
    model = L2OneClassSVM(C=C, gamma=0.1, tol=1e-8).fit(X, sample_weight=w if weighted else None)
    assert model.status_ == "solved"
    assert full(model, len(X)) == pytest.approx(alpha, abs=1e-5 * alpha.max())
    assert model.score_samples(X) == pytest.approx(K @ alpha, abs=1e-6)
    # The certificate: primal and dual value of the fitted machine differ by no more.
    ours = full(model, len(X))
    value = alpha.sum() - 0.5 * alpha @ (K + np.diag(ridge)) @ alpha
    assert value - (ours.sum() - 0.5 * ours @ (K + np.diag(ridge)) @ ours) <= model.dual_gap_ + 1e-9 * value
    assert model.dual_gap_ <= 1e-4 * value


@pytest.mark.parametrize("loader", [load_iris, load_wine])
def test_primal_conditions_hold(loader):
    X, C = data(loader), 50.0
    model = L2OneClassSVM(C=C, gamma=0.2, tol=1e-9).fit(X)
    alpha, score = full(model, len(X)), model.score_samples(X)
    xi = alpha / C
    assert (score >= 1 - xi - 1e-7).all()
    assert score[alpha > 0] == pytest.approx(1 - xi[alpha > 0], abs=1e-7)


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_finds_the_same_machine(solver):
    X = data(load_wine)
    kind = {"C": 30.0, "gamma": 0.1}
    model = L2OneClassSVM(solver=solver, tol=1e-4, **kind).fit(X)
    exact = L2OneClassSVM(tol=1e-9, **kind).fit(X)
    assert model.status_ == "solved"
    assert model.decision_function(X) == pytest.approx(exact.decision_function(X), abs=1e-3)
    assert full(model, len(X)) == pytest.approx(full(exact, len(X)), abs=1e-2 * exact.dual_coef_.max())
    assert model.dual_gap_ >= 0


def test_training_outliers_are_the_support_vectors():
    X = data(load_breast_cancer)
    shares = []
    for C in (1.0, 100.0, 1e4):
        model = L2OneClassSVM(C=C, gamma=0.1, tol=1e-9, contamination="margin").fit(X)
        outside = np.flatnonzero(model.predict(X) == -1)
        # Up to samples that lie on the boundary to the tolerance.
        odd = np.setxor1d(outside, model.support_)
        assert np.abs(model.decision_function(X)[odd]).max(initial=0.0) <= 1e-7
        shares.append(len(outside) / len(X))
    assert shares[0] > shares[1] > shares[2]


def test_everything_is_an_outlier_where_C_is_small():
    X = data(load_iris)
    model = L2OneClassSVM(C=1e-3, contamination="margin").fit(X)
    assert (model.fit_predict(X) == -1).all() and len(model.support_) == len(X)


def test_fit_predict_marks_the_outlier_and_ranks_it_last():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(100, 2)), [[20.0, 20.0]]])
    for kind in ({"contamination": "margin"}, {"contamination": 0.01}, {"C": 1.0}):
        model = L2OneClassSVM(**{"C": 100.0, "gamma": 0.1, **kind})
        assert model.fit_predict(X)[-1] == -1
    assert model.predict([[0.0, 0.0], [-20.0, 20.0]]).tolist() == [1, -1]
    assert model.score_samples([[0.0, 0.0]]) > model.score_samples([[5.0, 5.0]])


def test_decision_is_score_less_offset_and_offset_of_the_margin_is_one():
    X = data(load_iris)
    model = L2OneClassSVM(contamination="margin").fit(X)
    np.testing.assert_array_equal(model.offset_, [1.0])
    np.testing.assert_array_equal(model.intercept_, [-1.0])
    np.testing.assert_allclose(model.decision_function(X), model.score_samples(X) - 1.0)
    assert model.dual_coef_.shape == (1, len(model.support_)) and (model.dual_coef_ > 0).all()


@pytest.mark.parametrize("C", [1e-12, 1e-3, 1e6, 1e12])
@pytest.mark.parametrize("solver", ["auto", "mdm-accelerated"])
def test_tiny_and_huge_C_are_solved(C, solver):
    X = data(load_iris)
    model = L2OneClassSVM(C=C, gamma=0.5, solver=solver).fit(X)
    assert model.status_ == "solved"
    alpha = full(model, len(X))
    # The machine has margin 1 in the ridged space.
    s = qp.rbf(X) @ alpha + alpha / C
    assert s.min() >= 1 - 2e-3 and s[alpha > 0].max() <= 1 + 2e-3


def test_weight_zero_equals_a_removed_row():
    X = data(load_wine)
    w = np.ones(len(X))
    w[::4] = 0.0
    a = L2OneClassSVM(C=10.0, tol=1e-9).fit(X, sample_weight=w)
    b = L2OneClassSVM(C=10.0, tol=1e-9).fit(X[w > 0])
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("solver", ["auto", "maxminover"])
def test_weights_equal_repetition(solver):
    X = data(load_wine)
    w = np.random.default_rng(0).integers(1, 4, len(X))
    tol = 1e-10 if solver == "auto" else 1e-4
    model = L2OneClassSVM(C=10.0, gamma=0.1, tol=tol, solver=solver)
    a = clone(model).fit(X, sample_weight=w)
    b = clone(model).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=10 * tol + 1e-7)


@pytest.mark.parametrize("solver", ["auto", "maxminover"])
def test_sparse_precomputed_and_callable_agree(solver):
    X = np.maximum(data(load_wine), 0.0)
    kind = {"C": 10.0, "tol": 1e-6 if solver == "auto" else 1e-3, "solver": solver}
    expected = L2OneClassSVM(kernel="linear", **kind).fit(X).decision_function(X)
    K = X @ X.T
    for model, Z in (
        (L2OneClassSVM(kernel="linear", **kind).fit(sp.csr_matrix(X)), sp.csr_matrix(X)),
        (L2OneClassSVM(kernel="precomputed", **kind).fit(K), K),
        (L2OneClassSVM(kernel=lambda A, B: A @ B.T, **kind).fit(X), X),
    ):
        np.testing.assert_allclose(model.decision_function(Z), expected, atol=10 * kind["tol"])


def test_coef_of_the_linear_kernel_gives_the_scores():
    X = np.abs(data(load_iris)) + 0.5
    model = L2OneClassSVM(kernel="linear", C=10.0).fit(X)
    np.testing.assert_allclose(X @ model.coef_.ravel(), model.score_samples(X), rtol=1e-9)


@pytest.mark.parametrize("solver", ["auto", "maxminover"])
def test_float32_data_give_the_same_machine(solver):
    X = data(load_breast_cancer)
    model = L2OneClassSVM(C=10.0, gamma=0.05, solver=solver, tol=1e-3)
    a = clone(model).fit(X.astype(np.float32)).decision_function(X.astype(np.float32))
    np.testing.assert_allclose(a, clone(model).fit(X).decision_function(X), atol=1e-2)


@pytest.mark.parametrize("solver", ["auto", "maxminover", "mdm-accelerated"])
def test_warm_start_takes_fewer_steps(solver):
    X = data(load_breast_cancer)
    model = L2OneClassSVM(C=100.0, gamma=0.1, solver=solver, warm_start=True).fit(X)
    cold, before = model.n_iter_, model.decision_function(X)
    assert model.fit(X).n_iter_ < 0.2 * cold
    np.testing.assert_allclose(model.decision_function(X), before, atol=5e-3)
    assert model.set_params(C=50.0).fit(X).status_ == "solved"


def test_warm_start_along_a_grid_takes_fewer_steps_than_cold_starts():
    X = data(load_wine)
    warm = L2OneClassSVM(gamma=0.1, solver="maxminover", warm_start=True)
    steps = {"warm": 0, "cold": 0}
    for C in (1e4, 3e3, 1e3, 3e2, 1e2):
        steps["warm"] += warm.set_params(C=C).fit(X).n_iter_
        steps["cold"] += clone(warm).fit(X).n_iter_
    assert steps["warm"] < 0.7 * steps["cold"]


def test_warm_start_with_other_weights_and_after_pickling():
    X = data(load_wine)
    w = np.ones(len(X))
    w[:20] = 0.0
    model = L2OneClassSVM(C=10.0, gamma=0.1, solver="maxminover", warm_start=True).fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    expected = L2OneClassSVM(C=10.0, gamma=0.1, tol=1e-8).fit(X[20:]).decision_function(X)
    np.testing.assert_allclose(again.fit(X, sample_weight=w).decision_function(X), expected, atol=5e-3)


def test_duplicates_and_equal_rows_are_solved():
    model = L2OneClassSVM(C=4.0, gamma=1.0, tol=1e-6).fit(np.ones((5, 3)))
    # u = 1/5 each, rho = 1 + 1/(5 C): every score is 1 / rho.
    np.testing.assert_allclose(model.score_samples(np.ones((1, 3))), [1.0 / 1.05], rtol=1e-6)
    assert model.fit([[1.0]]).score_samples([[1.0]]) == pytest.approx(1.0 / 1.25)


@pytest.mark.parametrize("solver", ["auto", "maxminover"])
def test_budgets_end_with_a_status_and_a_warning(solver):
    X = data(load_breast_cancer)
    for limit, status in (({"max_iter": 1}, "max_iter"), ({"max_time": 0.0}, "max_time")):
        model = L2OneClassSVM(C=1e4, solver=solver, tol=1e-9, **limit)
        with pytest.warns(ConvergenceWarning, match=status):
            model.fit(X)
        assert model.status_ == status and model.fit_status_ == 1
        assert np.isfinite(model.decision_function(X)).all() and model.dual_gap_ > 0


def test_data_around_the_origin_are_kept_feasible_by_the_slacks():
    X = data(load_iris)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = L2OneClassSVM(kernel="linear", C=10.0).fit(X)
    # w = 0 is all but optimal: nobody reaches the margin.
    assert model.status_ == "solved"
    problem = dual.one_class_l2(len(X), ridge=0.1)
    _, best = qp.reference(problem, X @ X.T)
    alpha = full(model, len(X))
    assert alpha.sum() == pytest.approx(1.0 / (2.0 * best), rel=1e-2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"C": 0.0}, "'C' parameter"),
        ({"C": -1.0}, "'C' parameter"),
        ({"C": np.inf}, "'C' parameter"),
        ({"tol": 0.0}, "'tol' parameter"),
        ({"contamination": 0.0}, "'contamination' parameter"),
        ({"contamination": 0.6}, "'contamination' parameter"),
        ({"contamination": "nu"}, "'contamination' parameter"),
        ({"solver": "nearest"}, "Unknown solver 'nearest'"),
        ({"kernel": "cubic"}, "'kernel' parameter"),
    ],
)
def test_bad_parameters_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        L2OneClassSVM(**arguments).fit([[0.0], [1.0]])


def test_a_solver_of_other_problems_is_refused_with_those_that_can():
    with pytest.raises(TypeError, match=r"one_class_l2.*maxminover"):
        L2OneClassSVM(solver="crammer-singer").fit([[0.0], [1.0]])


def test_bad_weights_are_refused():
    with pytest.raises(ValueError, match="weights"):
        L2OneClassSVM().fit([[0.0], [1.0]], sample_weight=[0.0, 0.0])
    with pytest.raises(ValueError, match="too small"):
        L2OneClassSVM(C=1e-200).fit([[0.0], [1.0]], sample_weight=[1.0, 1e-200])


@pytest.mark.parametrize("tol", [0.5, 0.1, 1e-3])
def test_the_gap_is_that_of_the_returned_model(tol):
    X = np.random.default_rng(0).normal(size=(80, 2))
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    model = L2OneClassSVM(C=2.0, gamma=1.0, tol=tol).fit(X)
    alpha = np.zeros(80)
    alpha[model.support_] = model.dual_coef_[0]
    values = K @ alpha
    primal = 0.5 * alpha @ values + np.sum(np.maximum(0.0, 1.0 - values) ** 2)
    dual_value = alpha.sum() - 0.5 * alpha @ values - np.sum(alpha**2) / 4.0
    assert primal - dual_value == pytest.approx(model.dual_gap_, rel=1e-6, abs=1e-9)
    assert model.relative_gap_ == pytest.approx(model.dual_gap_ / primal, rel=1e-6, abs=1e-9)
