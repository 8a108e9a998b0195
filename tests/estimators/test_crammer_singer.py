import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import qp
from maxmargin import CrammerSingerSVC, dual
from maxmargin.gram.gram import Gram
from maxmargin.solvers import Batch, CrammerSinger, Stop


def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_with_a_linear_kernel_it_is_linear_svc(C):
    X, y = iris()
    ours = CrammerSingerSVC(C=C, kernel="linear", tol=1e-8).fit(X, y)
    other = LinearSVC(
        C=C, multi_class="crammer_singer", fit_intercept=False, tol=1e-10, max_iter=10**6, random_state=0
    ).fit(X, y)
    assert ours.status_ == "solved"
    np.testing.assert_allclose(
        ours.coef_ - ours.coef_.mean(axis=0), other.coef_ - other.coef_.mean(axis=0), atol=1e-4
    )
    np.testing.assert_allclose(ours.decision_function(X), X @ ours.coef_.T, atol=1e-9)


@pytest.mark.parametrize("working_set", [1, 7, 256])
@pytest.mark.parametrize("seed", range(3))
def test_an_independent_solver_agrees(working_set, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(25, 2)), np.arange(25) % 3
    problem = dual.crammer_singer(y, 10 ** rng.uniform(-1, 1))
    best = qp.reference(problem, qp.rbf(X))[1]
    solution = CrammerSinger(working_set).solve(problem, qp.gram_of(X), stop=Stop(1e-8))
    assert solution.status == "solved"
    qp.assert_feasible(problem, solution.u, 1e-9)
    assert solution.objective == pytest.approx(best, rel=1e-6, abs=1e-9)
    assert best >= solution.objective - solution.gap - 1e-9


def test_batch_takes_the_same_dual():
    X, y = iris()
    problem = dual.crammer_singer(y, 2.0)
    a = CrammerSinger().solve(problem, Gram(X, gamma=0.3, dtype="float64"), stop=Stop(1e-7))
    b = Batch().solve(problem, Gram(X, gamma=0.3, dtype="float64"), stop=Stop(1e-7))
    assert a.objective == pytest.approx(b.objective, rel=1e-7)


def test_float32_rows_keep_a_tight_tolerance():
    X, y = make_classification(600, 8, n_informative=6, n_classes=4, random_state=0)
    problem = dual.crammer_singer(y, 5.0)
    solution = CrammerSinger().solve(problem, Gram(X, gamma=0.1, dtype="float32"), stop=Stop(1e-6))
    assert solution.status == "solved"
    exact = Gram(X, gamma=0.1, dtype="float64")
    with exact.threads:
        assert problem.violation(solution.u, problem.gradient(solution.u, exact)) <= 1e-6


def test_weights_equal_repetition():
    X, y = iris()
    weight = np.random.default_rng(0).integers(0, 3, 150).astype(float)
    repeated = np.repeat(np.arange(150), weight.astype(int))
    a = CrammerSingerSVC(gamma=0.3, tol=1e-8).fit(X, y, weight)
    b = CrammerSingerSVC(gamma=0.3, tol=1e-8).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-5)


def test_sparse_precomputed_strings_and_warm_starts():
    X, y = iris()
    names = np.array(["a", "b", "c"])[y]
    dense = CrammerSingerSVC(gamma=0.3, tol=1e-8).fit(X, names)
    expected = dense.decision_function(X)
    sparse = CrammerSingerSVC(gamma=0.3, tol=1e-8).fit(sp.csr_matrix(X), names)
    given = CrammerSingerSVC(kernel="precomputed", tol=1e-8).fit(qp.rbf(X, 0.3), names)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_matrix(X)), expected, atol=1e-6)
    np.testing.assert_allclose(given.decision_function(qp.rbf(X, 0.3)), expected, atol=1e-6)
    again = clone(dense).set_params(warm_start=True).fit(X, names).fit(X, names)
    assert again.n_iter_ == 1


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="number of classes has to be greater than one; got 1 class"):
        CrammerSingerSVC().fit([[0.0], [1.0]], [1, 1])
    with pytest.raises(ValueError, match="at least two classes"):
        dual.crammer_singer([1, 1], 1.0)


def test_other_duals_are_refused():
    with pytest.raises(TypeError, match="CrammerSinger cannot take the problem 'c_svc'"):
        CrammerSinger().solve(dual.c_svc([1, -1], 1.0), Gram([[0.0], [1.0]]))


def test_auto_is_its_own_solver_for_any_number_of_samples():
    X, y = load_iris(return_X_y=True)
    X, y = np.tile(X, (8, 1)) + np.random.default_rng(0).normal(scale=0.1, size=(1200, 4)), np.tile(y, 8)
    auto = CrammerSingerSVC(solver="auto").fit(X, y)
    assert auto.status_ == "solved"
    np.testing.assert_array_equal(auto.dual_coef_, CrammerSingerSVC().fit(X, y).dual_coef_)
    with pytest.raises(TypeError, match="these solvers can: crammer-singer"):
        CrammerSingerSVC(solver="batch").fit(X, y)
