"""Problems in one compiled call: kernels other than rbf, with rows on demand or a complete matrix."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.datasets import load_digits

from maxmargin import SVC, SVR, dual
from maxmargin._compiled.limits import Limit
from maxmargin.gram.gram import Gram
from maxmargin.solvers import Batch, Status, Stop
from maxmargin.solvers.batch.shared_rows import SharedRows, need
from maxmargin.solvers.batch.whole import WholeProblems
from maxmargin.solvers.many import Subproblems

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 8))
y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=300) > 0, 1.0, -1.0)
KERNELS = {
    "linear": {},
    "poly": {"gamma": 0.2, "degree": 3, "coef0": 1.0},
    "sigmoid": {"gamma": 0.01},
    "laplacian": {"gamma": 0.2},
}


def solve(problem, gram, stop):
    return Batch().solve_many(Subproblems.one(problem, gram.n), gram, stop=stop, interrupt=Limit())[0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["c_svc", "one_class", "svr"])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_reaches_the_solution_of_the_loop(kernel, storage, kind, dtype):
    problem = {
        "c_svc": lambda: dual.c_svc(y, bounds=np.linspace(0.5, 2.0, 300)),
        "one_class": lambda: dual.one_class(300, nu=0.3),
        "svr": lambda: dual.epsilon_svr(X[:, 0] + 0.1 * y, 0.1, 1.0),
    }[kind]()
    data = storage(X)
    found = solve(problem, Gram(data, kernel, dtype=dtype, **KERNELS[kernel]), Stop(1e-3))
    slow = Batch(working_set=64).solve(
        problem, Gram(data, kernel, dtype=dtype, **KERNELS[kernel]), stop=Stop(1e-3)
    )
    assert found.status is slow.status is Status.SOLVED
    assert found.engine in ("whole", "path")
    assert found.violation <= 1e-3
    if kernel != "sigmoid":  # which is indefinite: there may be several solutions
        assert abs(found.objective - slow.objective) <= found.gap + slow.gap
    assert found.n_kernel_evals > 0
    exact = Gram(data, kernel, dtype="float64", **KERNELS[kernel])
    np.testing.assert_allclose(found.gradient, problem.gradient(found.u, exact), atol=1e-3)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_given_matrix_is_used_and_not_changed(order, dtype):
    K = np.asarray(np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2)), dtype=dtype, order=order)
    K.flags.writeable = False
    before = K.copy()
    model = SVC(kernel="precomputed", C=3.0).fit(K, y)
    np.testing.assert_array_equal(K, before)
    same = SVC(gamma=0.1, C=3.0).fit(X, y)
    assert abs(len(model.support_) - len(same.support_)) <= 3
    np.testing.assert_allclose(model.decision_function(K), same.decision_function(X), atol=3e-3)


def test_class_pairs_are_whole_problems_and_count_the_matrix_once():
    digits, labels = load_digits(return_X_y=True)
    digits, labels = digits[:400] / 16.0, labels[:400]
    model = SVC(kernel="laplacian", C=1.0).fit(digits, labels)
    assert model.n_kernel_evals_ == 400 * 400
    gram = Gram(digits[np.argsort(labels, kind="stable")], "laplacian", dtype="float64")
    assert WholeProblems.over(gram, np.array([0, 400]), [dual.c_svc(np.repeat([-1, 1], 200))], Stop())
    assert gram.holds_all


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_class_pairs_compute_only_rows_that_they_use(kernel):
    digits, labels = load_digits(return_X_y=True)
    digits, labels = digits[:600] / 16.0, labels[:600]
    options = {"kernel": kernel, "C": 1.0, "decision_function_shape": "ovo"}
    model = SVC(**options).fit(digits, labels)
    assert 0 < model.n_kernel_evals_ < 0.6 * 600 * 600
    same = sklearn.svm.SVC(**options, tol=1e-6).fit(digits, labels)
    np.testing.assert_allclose(model.decision_function(digits), same.decision_function(digits), atol=0.02)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("degree", [0, 1, 2, 3, 6, 11])
def test_rows_on_demand_are_those_of_the_kernel(degree, storage, dtype):
    data, bounds = X.copy(), np.array([0, 130, 300])
    data[np.abs(data) < 0.5] = 0.0
    gram = Gram(storage(data), "poly", gamma=0.1, coef0=0.5, degree=degree, dtype=dtype)
    rows = SharedRows.of(gram, gram.on_demand, bounds)
    some = [0, 129, 130, 299]
    for i in some:
        assert need(rows, i, np.array([0, 1]), np.zeros(1, np.int64)) == 300
    parts = [
        np.concatenate([rows.pool[rows.where[i, s] :][: np.diff(bounds)[s]] for s in (0, 1)]) for i in some
    ]
    expected = Gram(data, "poly", gamma=0.1, coef0=0.5, degree=degree, dtype="float64").rows(some)
    eps = float(np.finfo(dtype).eps)
    np.testing.assert_allclose(parts, expected, rtol=300 * eps, atol=10 * eps * np.abs(expected).max())


def test_places_without_a_sample_have_finite_values_for_any_degree():
    gram = Gram(X, "poly", gamma=0.1, degree=40, dtype="float32")
    rows = SharedRows.of(gram, gram.on_demand, np.array([0, 300]))
    need(rows, 0, np.array([0]), np.zeros(1, np.int64))
    assert np.isfinite(rows.pool[: rows.used[0]]).all()


@pytest.mark.filterwarnings("ignore:Some features vary")
def test_a_fit_with_huge_values_is_left_to_the_loop_and_certified():
    data = X.copy()
    data[0, 0] = 1e8
    model = SVC(kernel="linear", C=1e-3).fit(data, y)
    assert model.status_ == "solved"
    assert np.isfinite(model.dual_gap_).all()


@pytest.mark.parametrize("scale", [1e-6, 1e5])
def test_the_scale_of_the_data_does_not_matter(scale):
    model = SVC(kernel="linear", C=1.0 / scale**2).fit(X * scale, y)
    same = SVC(kernel="linear", C=1.0).fit(X, y)
    assert model.status_ == same.status_ == "solved"
    np.testing.assert_allclose(model.dual_coef_.sum(), 0.0, atol=1e-9 / scale**2)
    np.testing.assert_allclose(model.decision_function(X * scale), same.decision_function(X), atol=5e-3)


def test_rows_without_a_table_or_bounds_are_left_alone():
    bounds = np.array([0, 300])
    laplacian = Gram(X, "laplacian", cache_bytes=300 * 100)
    assert WholeProblems.over(laplacian, bounds, [dual.c_svc(y)], Stop()) is None
    linear = Gram(X, "linear")
    assert WholeProblems.over(linear, bounds, [dual.squared_c_svc(y, 0.5)], Stop()) is None
    call = Gram(X, lambda a, b: a @ b.T)
    assert WholeProblems.over(call, bounds, [dual.c_svc(y)], Stop()) is None


def test_a_regression_that_pair_steps_do_not_solve_goes_on():
    target = X @ np.arange(1.0, 9.0)
    model = SVR(kernel="linear", C=1e3, epsilon=0.01).fit(X, target)
    assert model.status_ == "solved"
    np.testing.assert_allclose(model.predict(X), target, atol=0.02)
