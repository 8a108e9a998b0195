import numpy as np
import pytest
from sklearn.datasets import load_digits, make_classification
from sklearn.svm import LinearSVC

import qp
from maxmargin import dual
from maxmargin.gram.gram import Gram
from maxmargin.solvers import CrammerSinger, Status, Stop, costs
from maxmargin.solvers.papers import crammer_singer
from maxmargin.solvers.papers._sample_steps import solve_sample, violation


def digits(n=400, k=10):
    X, y = load_digits(return_X_y=True)
    some = y < k
    return X[some][:n] / 16.0, y[some][:n]


def wide(n=400, gamma=0.01, **options):
    X, y = digits(n)
    return X, y, Gram(X, gamma=gamma, **options)


def test_a_working_set_has_at_least_one_sample():
    with pytest.raises(ValueError, match="working_set must be at least 1, or None, got 0"):
        CrammerSinger(0)
    assert repr(CrammerSinger(7)) == "CrammerSinger(working_set=7)"


@pytest.mark.parametrize("seed", range(20))
def test_a_sample_is_solved_exactly(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 9))
    A, B, true, C = (
        rng.uniform(0.1, 2),
        rng.normal(size=k).round(1),
        int(rng.integers(k)),
        10 ** rng.uniform(-2, 2),
    )
    tau = np.empty(k)
    solve_sample(A, B, true, C, tau, np.empty(k), np.empty(k, np.int64))
    assert abs(tau.sum()) < 1e-12 * max(1.0, C)
    assert (tau <= C * (np.arange(k) == true)).all()
    assert violation(0, tau[:, None], (A * tau + B)[:, None], true, C) <= 1e-12 * max(1.0, A * C)


@pytest.mark.parametrize("C", [0.1, 10.0, 1e4])
@pytest.mark.parametrize("gamma", [1e-3, 0.1])
def test_wide_and_narrow_kernels_agree_with_an_independent_solver(gamma, C):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 3
    K, problem = qp.rbf(X, gamma), dual.crammer_singer(y, C)
    best = qp.reference(problem, K)[1]
    solution = CrammerSinger().solve(problem, Gram(X, gamma=gamma, dtype="float64"), stop=Stop(1e-7))
    assert solution.status is Status.SOLVED
    qp.assert_feasible(problem, solution.u, 1e-9 * C)
    assert solution.objective == pytest.approx(best, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("C", [1.0, 1e8])
def test_equal_points_with_the_same_and_with_other_labels(C):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(12, 2)), 3, axis=0)
    y = np.arange(36) % 3  # each point with all three labels
    y[18:] = np.arange(18) // 3 % 3
    problem = dual.crammer_singer(y, C)
    best = qp.reference(dual.crammer_singer(y, 1.0), qp.rbf(X))[1]
    solution = CrammerSinger().solve(problem, qp.gram_of(X), stop=Stop(1e-4, criterion="both"))
    qp.assert_feasible(problem, solution.u, 1e-9 * C)
    assert solution.status is Status.SOLVED and solution.relative_gap <= 1e-3
    if C == 1.0:
        assert solution.objective == pytest.approx(best, rel=1e-3)


def test_a_kernel_of_low_rank_is_solved():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.argmax(X @ rng.normal(size=(2, 4)) + 0.5 * rng.normal(size=(300, 4)), axis=1)
    for C in (0.1, 100.0):
        problem = dual.crammer_singer(y, C)
        gram = Gram(X, kernel="linear", dtype="float64")
        solution = CrammerSinger().solve(problem, gram, stop=Stop(1e-6, criterion="both"))
        other = LinearSVC(C=C, multi_class="crammer_singer", fit_intercept=False, tol=1e-9, max_iter=10**6,
                          random_state=0).fit(X, y)  # fmt: skip
        values = X @ other.coef_.T
        mine = values[np.arange(300), y]
        others = np.where(np.arange(4) == y[:, None], -np.inf, values).max(axis=1)
        primal = 0.5 * np.sum(other.coef_**2) + C * np.maximum(0.0, 1.0 + others - mine).sum()
        assert solution.status is Status.SOLVED
        assert -solution.objective == pytest.approx(primal, rel=1e-5)


@pytest.mark.parametrize("C", [1e-3, 10.0, 1e4, 1e8])
def test_solved_means_that_the_objective_is_known_whatever_C(C):
    _, y, gram = wide(gamma=0.002)
    found = CrammerSinger().solve(dual.crammer_singer(y, C), gram, stop=Stop(1e-3, criterion="both"))
    assert found.status is Status.SOLVED and found.relative_gap <= 1e-3
    best = CrammerSinger().solve(dual.crammer_singer(y, C), gram.double(), stop=Stop(1e-6, criterion="both"))
    assert found.objective - best.objective <= found.relative_gap * abs(found.objective) + best.gap


def test_faces_need_far_fewer_steps_than_single_samples():
    _, y, gram = wide(dtype="float64")
    problem = dual.crammer_singer(y, 100.0)
    faces = CrammerSinger().solve(problem, gram, stop=Stop(1e-4))
    single = CrammerSinger(len(y)).solve(problem, gram, stop=Stop(1e-4))
    assert faces.status is single.status is Status.SOLVED
    assert faces.objective == pytest.approx(single.objective, rel=1e-5)
    assert 3 * faces.n_iter < single.n_iter


@pytest.mark.parametrize("cache_bytes", [1 << 14, 1 << 26], ids=["few rows", "all rows"])
def test_working_sets_and_blocks_smaller_than_the_problem(cache_bytes, monkeypatch):
    X, y = digits(300)
    problem = dual.crammer_singer(y, 10.0)
    whole = CrammerSinger().solve(problem, Gram(X, gamma=0.01, dtype="float64"), stop=Stop(1e-6))
    monkeypatch.setattr(costs, "SAMPLES_VALUES", 60**2)
    monkeypatch.setattr(costs, "SAMPLES", 20)
    monkeypatch.setattr(costs, "SAMPLES_ROWS", 7)
    sizes = []
    values = CrammerSinger._values

    def recorded(state, work, chosen):
        K = values(state, work, chosen)
        rows = problem.row[::10][chosen]
        np.testing.assert_allclose(K, state.gram.rows(rows)[:, rows], atol=1e-12)
        sizes.append(len(chosen))
        return K

    monkeypatch.setattr(CrammerSinger, "_values", staticmethod(recorded))
    gram = Gram(X, gamma=0.01, dtype="float64", cache_bytes=cache_bytes)
    parts = CrammerSinger().solve(problem, gram, stop=Stop(1e-6))
    assert parts.status is Status.SOLVED and max(sizes) == 60
    assert parts.objective == pytest.approx(whole.objective, rel=1e-8)


def test_rows_of_the_kernel_matrix_may_be_in_any_order():
    X, y = digits(200)
    order = np.random.default_rng(0).permutation(200)
    plain = CrammerSinger().solve(dual.crammer_singer(y, 5.0), qp.gram_of(X), stop=Stop(1e-7))
    problem = dual.crammer_singer(y[order], 5.0, rows=order)
    other = CrammerSinger().solve(problem, qp.gram_of(X), stop=Stop(1e-7))
    assert other.objective == pytest.approx(plain.objective, rel=1e-9)
    np.testing.assert_allclose(other.u.reshape(200, -1), plain.u.reshape(200, -1)[order], atol=1e-4)


@pytest.mark.parametrize("most", [1, 50, 3000])
def test_the_budget_of_iterations_is_kept(most):
    _, y, gram = wide(dtype="float64")
    problem = dual.crammer_singer(y, 100.0)
    solution = CrammerSinger().solve(problem, gram, stop=Stop(1e-9, max_iter=most))
    assert solution.status is Status.MAX_ITER and solution.n_iter == most
    qp.assert_feasible(problem, solution.u, 1e-9)


def test_a_run_repeats_exactly_and_starts_from_a_solution():
    X, y, _ = wide(200)
    problem = dual.crammer_singer(y, 10.0)
    a, b = (CrammerSinger().solve(problem, Gram(X, gamma=0.01)) for _ in range(2))
    np.testing.assert_array_equal(a.u, b.u)
    assert CrammerSinger().solve(problem, Gram(X, gamma=0.01), warm=a.u).n_iter == 0


def test_classes_without_free_variables_have_empty_blocks():
    members = crammer_singer._Members(
        np.eye(2), np.zeros((4, 2)), np.zeros((4, 2)), np.ones(2), np.array([0, 1])
    )
    Q = members._blocks(np.array([0, 1, 1]), np.array([0, 2, 2, 3, 3]))
    np.testing.assert_array_equal(Q.values, [1, 0, 0, 1, 1])


def test_unbalanced_classes_with_weights_agree_with_an_independent_solver():
    X, y = make_classification(60, 4, n_informative=4, n_redundant=0, n_classes=3, n_clusters_per_class=1,
                               weights=[0.8, 0.15], random_state=0)  # fmt: skip
    C = 10 ** np.random.default_rng(0).uniform(-2, 2, 60)
    problem = dual.crammer_singer(y, C)
    best = qp.reference(problem, qp.rbf(X))[1]
    solution = CrammerSinger().solve(problem, qp.gram_of(X), stop=Stop(1e-8))
    assert solution.objective == pytest.approx(best, rel=1e-6)
