import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, make_classification

import qp
from maxmargin import SVC, dual
from maxmargin.gram.gram import Gram
from maxmargin.solvers import SMO, Batch, SimpleSVM, Stop
from maxmargin.solvers.papers._closest import closest_pair

KINDS = [k for k in qp.KINDS if SimpleSVM().accepts(qp.random_problem(k, 0, 12)[0])]
every_kind = pytest.mark.parametrize("kind", KINDS)
both = pytest.mark.parametrize("block", [False, True], ids=["one by one", "block"])
limited = Stop(1e-8, max_time=20.0)


def test_the_duals_with_one_sum_are_accepted():
    assert {"c_svc", "squared_c_svc", "one_class"} <= set(KINDS)
    assert "nearest_points" not in KINDS
    assert "all_distances" not in KINDS


@every_kind
@both
def test_the_optimum_of_an_independent_solver_is_reached(kind, block):
    for seed in range(8):
        problem, X, _, _, best = qp.solved_problem(kind, seed, 30)
        solution = SimpleSVM(block).solve(problem, qp.gram_of(X), stop=limited)
        if "hard" in kind and solution.status == "infeasible":
            continue
        assert solution.status == "solved"
        qp.assert_feasible(problem, solution.u, 1e-9)
        assert solution.objective <= best + 1e-6 * (1 + abs(best))
        assert best >= solution.objective - solution.gap - 1e-6 * (1 + abs(best))


@both
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e5])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_duplicates_opposite_labels_and_rank_deficient_kernels(block, C, loss, kernel):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(15, 2)), 3, axis=0)
    y = np.where(np.arange(45) % 3 == 0, -1, 1)  # equal points with both labels
    problem = dual.c_svc(y, C) if loss == "hinge" else dual.squared_c_svc(y, 1 / (2 * C))
    gram = lambda: Gram(X, kernel, gamma=0.5, dtype="float64", n_jobs=1)  # noqa: E731
    solution = SimpleSVM(block).solve(problem, gram(), stop=Stop(1e-6, max_time=20.0))
    other = Batch().solve(problem, gram(), stop=Stop(1e-8, max_time=20.0))
    assert solution.objective == pytest.approx(other.objective, rel=1e-5, abs=1e-9)
    qp.assert_feasible(problem, solution.u, 1e-9 * max(1.0, C))


@both
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_svc_with_this_solver_equals_svc_with_another(block, loss):
    X, y = make_classification(400, flip_y=0.1, random_state=0)
    name = "simple-block" if block else "simple"
    ours = SVC(C=2.0, gamma=0.05, loss=loss, solver=name, tol=1e-6).fit(X, y)
    other = SVC(C=2.0, gamma=0.05, loss=loss, tol=1e-6).fit(X, y)
    assert ours.status_ == "solved"
    np.testing.assert_allclose(ours.decision_function(X), other.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(np.sort(ours.support_), np.sort(other.support_))


def test_the_start_is_the_closest_pair_and_needs_no_kernel_value():
    X, y = make_classification(200, random_state=3)
    y = 2 * y - 1
    gram = Gram(X, gamma=0.1, dtype="float64")
    i, j = closest_pair(dual.squared_c_svc(y, 1.0), gram)
    assert y[i] == 1
    assert y[j] == -1
    distances = ((X[y > 0][:, None] - X[y < 0][None]) ** 2).sum(axis=2)
    assert ((X[i] - X[j]) ** 2).sum() == pytest.approx(distances.min())
    assert gram.n_evals == 0


def test_rows_are_computed_at_most_once_for_each_variable_that_ever_joins():
    X, y = make_classification(300, flip_y=0.05, random_state=1)
    problem = dual.squared_c_svc(2 * y - 1, 1.0)
    gram = Gram(X, gamma=0.05, dtype="float64")
    solution = SimpleSVM().solve(problem, gram, stop=Stop(1e-3, criterion="paper"))
    assert solution.n_kernel_evals <= 300 * (solution.details["learnt"] + 2)


@both
def test_a_cache_that_is_too_small_changes_the_work_only(block):
    X, y = make_classification(300, flip_y=0.05, random_state=1)
    problem = dual.squared_c_svc(2 * y - 1, 1.0)
    small = Gram(X, gamma=0.05, dtype="float64", cache_bytes=8 * 300 * 10)
    solution = SimpleSVM(block).solve(problem, small, stop=Stop(1e-7, max_time=30.0))
    other = SimpleSVM(block).solve(problem, Gram(X, gamma=0.05, dtype="float64"), stop=Stop(1e-7))
    assert solution.status == "solved"
    np.testing.assert_allclose(solution.u, other.u, atol=1e-5)


def test_the_papers_rule_asks_for_margins_of_one_minus_eps():
    X, y = make_classification(300, flip_y=0.05, random_state=2)
    y = 2 * y - 1
    problem = dual.squared_c_svc(y, 0.5)
    gram = Gram(X, gamma=0.05, dtype="float64")
    solution = SimpleSVM().solve(problem, gram, stop=Stop(1e-3, criterion="paper"))
    assert solution.status == "solved"
    f = solution.gradient + y - solution.offset[0]  # in the ridged space
    assert (y * f).min() >= 1 - 1e-3


def test_steps_that_had_to_backtrack_are_counted():
    X, y = make_classification(300, flip_y=0.2, random_state=2)
    problem = dual.squared_c_svc(2 * y - 1, 0.01)
    solution = SimpleSVM().solve(problem, Gram(X, gamma=0.05, dtype="float64"))
    d = solution.details
    assert 0 < d["backtracked"] <= d["pruned"]
    assert d["learnt"] == solution.n_iter
    assert d["learnt"] + 2 - d["pruned"] == np.count_nonzero(solution.u)
    assert 0 <= d["drift"] < 1e-3


@pytest.mark.parametrize("ridge", [0.1, 1e-3])
def test_the_block_form_takes_few_rounds_from_a_coarse_run(ridge):
    X, y = make_classification(800, 20, flip_y=0.2, random_state=0)
    problem, gram = dual.squared_c_svc(2.0 * y - 1, ridge), Gram(X, gamma=0.02, dtype="float64")
    solution = SimpleSVM(block=True).solve(problem, gram, stop=Stop(1e-6))
    other = Batch().solve(problem, gram, stop=Stop(1e-8))
    assert solution.status == "solved" and 1 <= solution.details["learnt"] <= 5
    assert -1e-12 <= solution.objective - other.objective + other.gap <= solution.gap + other.gap + 1e-9


def test_a_large_active_set_is_left_to_batch(monkeypatch):
    from maxmargin.solvers import costs

    monkeypatch.setattr(costs, "BLOCK_MOST", 50)
    X, y = make_classification(300, flip_y=0.1, random_state=0)
    problem, gram = dual.squared_c_svc(2.0 * y - 1, 0.5), Gram(X, gamma=0.05, dtype="float64")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = SimpleSVM(block=True).solve(problem, gram, stop=Stop(1e-6))
    other = Batch().solve(problem, gram, stop=Stop(1e-6))
    assert solution.status == "solved" and solution.details["learnt"] == 0
    assert solution.objective == pytest.approx(other.objective, rel=1e-8)


@both
def test_without_memory_for_the_factor_another_solver_takes_over_with_a_warning(block):
    X, y = make_classification(300, flip_y=0.1, random_state=0)
    problem = dual.squared_c_svc(2 * y - 1, 0.5)
    gram = Gram(X, gamma=0.05, dtype="float64")
    with pytest.warns(RuntimeWarning, match="Batch goes on from here"):
        solution = SimpleSVM(block, factor_bytes=10_000).solve(problem, gram, stop=Stop(1e-6))
    assert solution.status == "solved"
    other = Batch().solve(problem, Gram(X, gamma=0.05, dtype="float64"), stop=Stop(1e-6))
    assert solution.objective == pytest.approx(other.objective, rel=1e-8)


@both
def test_a_warm_start_at_the_solution_learns_nothing(block):
    X, y = make_classification(200, flip_y=0.1, random_state=0)
    problem = dual.squared_c_svc(2 * y - 1, 0.5)
    gram = Gram(X, gamma=0.05, dtype="float64")
    best = SMO().solve(problem, gram, stop=Stop(1e-9)).u
    solution = SimpleSVM(block).solve(problem, gram, warm=best, stop=Stop(1e-6))
    assert solution.status == "solved"
    assert solution.n_iter == 0


@both
def test_a_warm_start_from_another_c_leads_to_the_same_solution(block):
    X, y = make_classification(200, flip_y=0.1, random_state=0)
    gram = Gram(X, gamma=0.05, dtype="float64")
    for C, other in ((1.0, 0.1), (0.1, 1.0)):
        warm = SMO().solve(dual.c_svc(2 * y - 1, other), gram, stop=Stop(1e-6)).u
        problem = dual.c_svc(2 * y - 1, C)
        solution = SimpleSVM(block).solve(problem, gram, warm=warm, stop=limited)
        cold = SMO().solve(problem, gram, stop=Stop(1e-8))
        assert solution.status == "solved"
        assert solution.objective == pytest.approx(cold.objective, rel=1e-8)


@both
@pytest.mark.parametrize("budget", [0, 1, 7])
def test_a_budget_ends_with_a_feasible_point(block, budget):
    problem, X, _ = qp.random_problem("squared_c_svc", 1, 300)
    solution = SimpleSVM(block).solve(problem, qp.gram_of(X), stop=Stop(1e-9, max_iter=budget))
    assert solution.n_iter <= max(budget, 1)
    qp.assert_feasible(problem, solution.u, 1e-9)


def test_float32_rows_and_bundled_data():
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    problem = dual.squared_c_svc(2 * y - 1, 0.05)
    solution = SimpleSVM().solve(problem, Gram(X, gamma=0.03, dtype="float32"), stop=Stop(1e-3))
    exact = Batch().solve(problem, Gram(X, gamma=0.03, dtype="float64"), stop=Stop(1e-8))
    assert solution.status == "solved"
    assert solution.objective == pytest.approx(exact.objective, rel=1e-5)


@both
@pytest.mark.parametrize("seed", range(8))
def test_more_free_variables_than_dimensions_are_no_dead_end(block, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(52, 1)).round(1)[rng.integers(0, 52, 52)]
    y = np.where(rng.random(52) < 0.5, 1, -1)
    problem = dual.c_svc(y, 4.0)
    gram = Gram(X, "linear", dtype="float64", n_jobs=1)
    warm = problem.repair(np.where(y > 0, 1.0, -1.0))  # all are free, in a space of one dimension
    for start in (None, warm):
        solution = SimpleSVM(block).solve(problem, gram, warm=start, stop=Stop(1e-6, max_time=20.0))
        assert solution.status == "solved"
        best = SMO().solve(problem, gram, stop=Stop(1e-8)).objective
        assert solution.objective == pytest.approx(best, rel=1e-7)
