"""Paths along C against scikit-learn, and where they are hard."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_friedman1
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel, sigmoid_kernel
from sklearn.svm import SVC

from maxmargin import SVR
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.shared import SharedKernels
from maxmargin.solvers.c_path import path as module
from maxmargin.solvers.c_path.path import solve_c_path, solve_folds, solve_regression

KERNELS = {
    "rbf": lambda X: rbf_kernel(X, gamma=0.1),
    "narrow": lambda X: rbf_kernel(X, gamma=3.0),
    "linear": linear_kernel,
    "poly": lambda X: polynomial_kernel(X, degree=2, gamma=0.3, coef0=1.0),
}


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(300, 6, n_informative=4, flip_y=0.1, class_sep=0.7, random_state=3)
    train = np.random.default_rng(0).random(300) < 0.8
    return X, 2.0 * y - 1, train


def violation_of(K, y, train, C, u, weight=1.0):
    """The largest violation, from scratch."""
    g = K.astype(np.float64) @ u - y
    bound = C * weight * np.ones(len(y))
    hi, lo = np.where(train & (y > 0), bound, 0.0), np.where(train & (y < 0), -bound, 0.0)
    assert np.all(u <= hi) and np.all(u >= lo)
    assert abs(u.sum()) <= 1e-9 * np.abs(u).sum() + 1e-300
    return g[u > lo].max(initial=-np.inf) - g[u < hi].min(initial=np.inf)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_path_equals_scikit_learn(data, kernel):
    X, y, train = data
    K = KERNELS[kernel](X)
    Cs = np.logspace(-2, 2, 5) if kernel in ("rbf", "narrow") else np.logspace(-3, 0, 4)
    path = solve_c_path(K, y, train, Cs, tol=1e-7)
    assert path.solved.all()
    for C, decision, u, reported in zip(Cs, path.decision, path.u, path.violation, strict=True):
        assert violation_of(K, y, train, C, u) == pytest.approx(max(reported, 0), abs=1e-8)
        ref = SVC(kernel="precomputed", C=C, tol=1e-8).fit(K[np.ix_(train, train)], y[train])
        free = (u != 0) & (np.abs(u) < C)
        # LIBSVM keeps kernel values in float32; without a free variable the offset is any of an interval.
        at = 1e-5 + 6e-8 * (np.abs(K) @ np.abs(u)).max() if free.any() else 2.0
        np.testing.assert_allclose(decision, ref.decision_function(K[:, train]), atol=at)


@pytest.mark.parametrize("C", [0.05, 1.0, 30.0, 1000.0])
def test_errors_on_rows_held_out_equal_those_of_scikit_learn(data, C):
    X, y, train = data
    K = KERNELS["rbf"](X).astype(np.float32)
    path = solve_c_path(K, y, train, [C / 10, C])
    ref = SVC(kernel="precomputed", C=C).fit(K[np.ix_(train, train)], y[train])
    there = ref.predict(K[np.ix_(~train, train)])
    assert path.solved.all()
    assert np.count_nonzero(np.sign(path.decision[1, ~train]) != there) <= 1


def test_reported_violations_are_true_in_float32(data):
    X, y, train = data
    K = KERNELS["rbf"](X).astype(np.float32)
    Cs = np.logspace(-2, 4, 10)
    path = solve_c_path(K, y, train, Cs)
    assert path.solved.all()
    for C, u, reported in zip(Cs, path.u, path.violation, strict=True):
        assert violation_of(K, y, train, C, u) == pytest.approx(max(reported, 0), abs=1e-7)


def test_decision_values_belong_to_u_and_offset(data):
    X, y, train = data
    K = KERNELS["rbf"](X)
    path = solve_c_path(K, y, train, [0.1, 1.0, 10.0])
    np.testing.assert_allclose(path.decision, path.u @ K - path.offset[:, None], atol=1e-9)
    assert np.all(path.u[:, ~train] == 0)


def test_weights_are_factors_of_C(data):
    X, y, train = data
    K = KERNELS["rbf"](X)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, len(y))
    path = solve_c_path(K, y, train, [0.3, 3.0], tol=1e-7, weight=weight)
    assert path.solved.all()
    ref = SVC(kernel="precomputed", C=3.0, tol=1e-8)
    ref.fit(K[np.ix_(train, train)], y[train], sample_weight=weight[train])
    np.testing.assert_allclose(path.decision[1], ref.decision_function(K[:, train]), atol=2e-5)


@pytest.mark.parametrize("kind", ["near", "noise", "infeasible"])
def test_any_warm_start_leads_to_the_same_solution(data, kind):
    X, y, train = data
    K = KERNELS["rbf"](X)
    rng = np.random.default_rng(2)
    cold = solve_c_path(K, y, train, [1.0, 10.0], tol=1e-7)
    warm = {"near": cold.u[0], "noise": rng.normal(size=len(y)), "infeasible": 1e6 * y}[kind]
    path = solve_c_path(K, y, train, [1.0, 10.0], tol=1e-7, warm=warm)
    assert path.solved.all()
    np.testing.assert_allclose(path.decision, cold.decision, atol=2e-5)
    if kind == "near":
        assert path.steps[0] <= cold.steps[0]


def test_folds_in_a_row_equal_folds_alone(data):
    X, y, _ = data
    K = KERNELS["rbf"](X)
    part = np.random.default_rng(4).integers(0, 4, len(y))
    trains = part != np.arange(4)[:, None]
    Cs = np.logspace(-2, 2, 5)
    for train, chained in zip(trains, solve_folds(K, y, trains, Cs, tol=1e-7), strict=True):
        alone = solve_c_path(K, y, train, Cs, tol=1e-7)
        assert chained.solved.all()
        free = ((alone.u != 0) & (np.abs(alone.u) < Cs[:, None])).any(axis=1)
        np.testing.assert_allclose(chained.decision[free], alone.decision[free], atol=2e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("Cs", [[1e-6, 1.0], [1.0, 1e8]])
def test_equal_points_with_opposite_labels_and_extreme_C(dtype, Cs):
    X = np.repeat(np.random.default_rng(5).normal(size=(40, 2)), 3, axis=0)
    y = np.where(np.arange(120) % 3 == 0, -1.0, 1.0)
    K = rbf_kernel(X, gamma=0.5).astype(dtype)
    train = np.ones(120, bool)
    path = solve_c_path(K, y, train, Cs, tol=1e-3)
    for C, u, reported, solved in zip(Cs, path.u, path.violation, path.solved, strict=True):
        assert solved == (reported <= 1e-3)
        assert violation_of(K, y, train, C, u) == pytest.approx(reported, abs=1e-5 * max(1.0, C / 1e6))
    assert path.solved[0]


def test_one_row_of_a_class_and_none(data):
    X, y, _ = data
    K = KERNELS["rbf"](X)
    train = y > 0
    none = solve_c_path(K, y, train, [1.0, 10.0])
    assert none.solved.all() and np.all(none.u == 0) and np.all(none.decision > 0)
    train[np.flatnonzero(y < 0)[0]] = True
    one = solve_c_path(K, y, train, [1.0, 10.0], tol=1e-6)
    ref = SVC(kernel="precomputed", C=10.0, tol=1e-8).fit(K[np.ix_(train, train)], y[train])
    assert one.solved.all()
    np.testing.assert_allclose(one.decision[1], ref.decision_function(K[:, train]), atol=2e-5)


def test_an_exhausted_budget_is_reported(data):
    X, y, train = data
    path = solve_c_path(KERNELS["rbf"](X), y, train, [1.0, 10.0, 100.0], tol=1e-6, max_steps=20)
    assert not path.solved.any()
    assert path.steps.sum() <= 20


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_indefinite_kernels_come_to_an_end(data, dtype):
    X, y, train = data
    K = sigmoid_kernel(X, gamma=0.5, coef0=-1.0).astype(dtype)
    path = solve_c_path(K, y, train, [0.1, 1.0, 10.0], max_steps=200_000)
    assert np.isfinite(path.decision).all()


def test_a_zero_kernel_comes_to_an_end(data):
    _, y, train = data
    path = solve_c_path(np.zeros((300, 300)), y, train, [1.0, 10.0], max_steps=10_000)
    assert np.isfinite(path.decision).all()


def test_nothing_at_the_bound_holds_for_every_larger_C(data):
    X, y, train = data
    path = solve_c_path(KERNELS["narrow"](X), y, train, [100.0, 1000.0, 1e4])
    assert np.abs(path.u[0]).max() < 100
    assert np.all(path.steps[1:] == 0) and np.all(path.u[1:] == path.u[0])


def test_threads_get_what_one_gets(data):
    X, y, train = data
    K = KERNELS["rbf"](X).astype(np.float32)
    masks = [train, ~train, train]
    Cs = np.logspace(-1, 3, 6)
    alone = [solve_c_path(K, y, m, Cs) for m in masks]
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(lambda m: solve_c_path(K, y, m, Cs), masks))
    for a, b in zip(alone, together, strict=True):
        np.testing.assert_allclose(a.decision, b.decision, atol=1e-9)


def test_kernels_come_from_one_matrix_of_distances(data):
    X = data[0] + 100.0
    shared = SharedKernels(X)
    for gamma in (0.01, 1.0, 50.0):
        K = shared.matrix(Kernel("rbf", gamma=gamma))
        np.testing.assert_allclose(K, rbf_kernel(X, gamma=gamma), atol=5e-6)


@pytest.mark.parametrize("Cs", [[1.0, 1.0], [2.0, 1.0], [0.0, 1.0]])
def test_Cs_must_ascend(data, Cs):
    X, y, train = data
    with pytest.raises(ValueError, match="ascending"):
        solve_c_path(KERNELS["rbf"](X), y, train, Cs)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_paths_of_regressors_on_folds_are_those_of_fits_one_by_one(epsilon, dtype):
    X, y = make_friedman1(160, noise=1.0, random_state=0)
    y = (y - y.mean()) / y.std()
    rng = np.random.default_rng(0)
    K, weight = rbf_kernel(X, gamma=0.5).astype(dtype), rng.uniform(0.3, 2.0, 160)
    masks = np.array([np.arange(160) % 3 != k for k in range(3)])
    Cs, tol = np.logspace(-2, 3, 6), 1e-7 if dtype == np.float64 else 1e-3
    for mask, path in zip(
        masks, solve_folds(K, y, masks, Cs, tol=tol, weight=weight, epsilon=epsilon), strict=True
    ):
        assert path.solved.all()
        for C, u, values in zip(Cs, path.u, path.decision, strict=True):
            assert not u[~mask].any() and (np.abs(u) <= C * weight).all()
            own = SVR(kernel="precomputed", C=C, epsilon=epsilon, tol=tol)
            own.fit(K[np.ix_(mask, mask)], y[mask], weight[mask])
            np.testing.assert_allclose(values, own.predict(K[:, mask]), atol=5 * tol)


def test_a_regressor_without_multipliers_at_the_bound_is_the_same_for_every_larger_c():
    X, y = make_friedman1(60, noise=0.0, random_state=0)
    K = rbf_kernel(X, gamma=2.0)
    path = solve_folds(K, y / 5, np.ones((1, 60), bool), [1e3, 1e4], epsilon=0.5)[0]
    assert path.steps[1] == 0
    np.testing.assert_array_equal(path.u[0], path.u[1])


def test_repeated_rows_leave_sums_at_zero_on_every_node():
    # Of 1,000 random problems of this kind the one on which Newton steps once broke the sum of every node.
    rng = np.random.default_rng(299)
    n = int(rng.integers(20, 160))
    X = rng.normal(size=(n, 2))
    X = X[rng.integers(0, n // 3, n)]
    y = np.where(X[:, 0] + rng.normal(size=n) * rng.choice([0.1, 1.0]) > 0, 1.0, -1.0)
    K = rbf_kernel(X, gamma=10 ** rng.uniform(-2, 1.5)).astype(np.float32)
    masks = rng.random((3, n)) < 0.7
    Cs = np.logspace(-2, 4, 7)
    for mask, path in zip(masks, solve_folds(K, y, masks, Cs), strict=True):
        assert path.solved.all()
        for C, u, reported in zip(Cs, path.u, path.violation, strict=True):
            assert violation_of(K, y, mask, C, u) == pytest.approx(max(reported, 0), abs=1e-6)


@pytest.mark.parametrize("damage", ["sum", "box", "nan"])
def test_a_machine_with_a_wrong_sum_or_box_is_not_reported_as_solved(data, monkeypatch, damage):
    X, y, train = data
    true = module.solve_all

    def damaged(K, diag, grid, found, flag):
        true(K, diag, grid, found, flag)
        us = found.u
        assert us.shape == (1, 3, len(y))
        positive = np.flatnonzero(train & (y > 0))[:2]
        us[0, 1, positive] += {"sum": [0.0, -1e-3], "box": [1e3, -1e3], "nan": [np.nan, 0.0]}[damage]

    monkeypatch.setattr(module, "solve_all", damaged)
    path = solve_c_path(KERNELS["rbf"](X), y, train, [0.1, 1.0, 10.0])
    assert path.solved.tolist() == [True, False, True]
    assert np.isinf(path.violation[1])


@pytest.mark.parametrize("damage", ["sum", "box", "nan"])
def test_a_machine_with_a_wrong_sum_or_box_is_repaired_and_trained(data, damage):
    X, y, _ = data
    K, bound = KERNELS["rbf"](X), np.full(len(y), 2.0)
    wrong = np.zeros(len(y))
    wrong[:3] = {"sum": [1.0, 1.0, 0.5], "box": [9.0, -5.0, -4.0], "nan": [np.nan, 0.0, 0.0]}[damage]
    right, g, _ = solve_regression(K, y, np.zeros(len(y)), -bound, bound, 0.1, 1e-6, 10**6)
    u, h, _ = solve_regression(K, y, wrong, -bound, bound, 0.1, 1e-6, 10**6)
    assert abs(u.sum()) < 1e-9 and np.abs(u).max() <= 2.0
    np.testing.assert_allclose(K @ u - h, K @ right - g, atol=1e-9)
    np.testing.assert_allclose(h - h.mean(), g - g.mean(), atol=1e-4)
