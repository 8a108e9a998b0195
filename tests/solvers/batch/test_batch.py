import numpy as np
import pytest

import qp
from maxmargin import dual
from maxmargin.gram.gram import Gram
from maxmargin.solvers import SMO, Batch, Stop

every_kind = pytest.mark.parametrize("kind", qp.KINDS)
# Every sample of Crammer-Singer is a group: these are the kinds with few groups.
few_groups = pytest.mark.parametrize("kind", [k for k in qp.KINDS if k != "crammer_singer"])


@pytest.mark.parametrize("size", [-1, 0, 1, 8193, 10**6])
def test_impossible_working_set_is_refused(size):
    with pytest.raises(ValueError, match="working_set"):
        Batch(working_set=size)


def test_repr_says_the_size_of_the_working_set():
    assert repr(Batch(working_set=64)) == "Batch(working_set=64, finish='auto')"


@few_groups
@pytest.mark.parametrize("size", [4, 8, 32])
def test_small_working_set_reaches_the_optimum_of_the_whole(kind, size):
    if kind == "nu_svr" and size == 4:
        pytest.skip("twins of two groups tie: two places in each can keep from being filled with a pair")
    for seed in range(2):
        problem, X, _, _, best = qp.solved_problem(kind, seed, 60)
        solution = Batch(working_set=size).solve(problem, qp.gram_of(X), stop=Stop(1e-7))
        assert solution.status == "solved"
        qp.assert_feasible(problem, solution.u)
        assert solution.objective == pytest.approx(best, rel=1e-6, abs=1e-9)


@few_groups
@pytest.mark.parametrize("size", [4, 16])
def test_small_working_set_with_float32_rows_keeps_the_tolerance_in_float64(kind, size):
    problem, X, K = qp.random_problem(kind, 2, 60)
    solution = Batch(working_set=size).solve(problem, qp.gram_of(X, dtype="float32"), stop=Stop(1e-3))
    assert solution.status == "solved"
    qp.assert_feasible(problem, solution.u)
    g = qp.dense_q(problem, K) @ solution.u - problem.p
    assert problem.violation(solution.u, g) <= 1e-3 * (1 + 1e-6)


@pytest.mark.parametrize("size", [4, 6])
def test_small_working_set_does_not_stall_where_pair_steps_reach_the_tolerance(size):
    # Nearly singular, so progress is slow: SMO needs about 2,000 steps.
    X = np.random.default_rng(1).normal(size=(60, 2))
    problem = dual.all_distances(np.concatenate([[0], [1, 1, 1], np.full(56, 2)]), mu=1.0)
    stop = Stop(1e-7)
    assert SMO().solve(problem, qp.gram_of(X), stop=stop).status == "solved"
    assert Batch(working_set=size).solve(problem, qp.gram_of(X), stop=stop).status == "solved"


@pytest.mark.parametrize("size", [2, 3])
def test_smallest_working_sets_work(size):
    problem, X, _, _, best = qp.solved_problem("c_svc", 0, 20)
    solution = Batch(working_set=size).solve(problem, qp.gram_of(X), stop=Stop(1e-7))
    assert solution.status == "solved"
    assert solution.objective == pytest.approx(best, rel=1e-6)


def test_one_group_per_sample_with_a_working_set_smaller_than_the_problem():
    problem, X, _, _, best = qp.solved_problem("crammer_singer", 0, 20)
    solution = Batch(working_set=40).solve(problem, qp.gram_of(X), stop=Stop(1e-7))
    assert solution.status == "solved"
    qp.assert_feasible(problem, solution.u)
    assert solution.objective == pytest.approx(best, rel=1e-6)


def test_more_groups_than_places_are_refused():
    n = 1100
    X = np.random.default_rng(0).normal(size=(n, 2))
    problem = qp.MAKERS["crammer_singer"](np.random.default_rng(0), n, None)
    with pytest.raises(TypeError, match=r"Batch cannot take .* these solvers can: .*smo"):
        Batch().solve(problem, qp.gram_of(X, dtype="float32"))


@every_kind
def test_no_cache_is_needed(kind):
    problem, X, _, _, best = qp.solved_problem(kind, 1)
    solution = Batch().solve(problem, qp.gram_of(X, cache_bytes=0), stop=Stop(1e-8))
    assert solution.status == "solved"
    assert solution.objective == pytest.approx(best, rel=1e-6, abs=1e-9)


@few_groups
def test_no_cache_is_needed_with_a_small_working_set(kind):
    problem, X, _, _, best = qp.solved_problem(kind, 0, 60)
    solution = Batch(working_set=8).solve(problem, qp.gram_of(X, cache_bytes=0), stop=Stop(1e-7))
    assert solution.status == "solved"
    assert solution.objective == pytest.approx(best, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("size", [None, 8])
def test_variables_over_rows_of_a_larger_gram(size):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 2))
    rows = rng.permutation(70)[:50]
    for maker in ("c_svc", "regression", "all_distances"):
        problem = qp.MAKERS[maker](rng, 50, rows)
        _, best = qp.reference(problem, qp.rbf(X))
        solution = Batch(working_set=size).solve(problem, qp.gram_of(X), stop=Stop(1e-7))
        assert solution.status == "solved"
        assert solution.objective == pytest.approx(best, rel=1e-6)


def test_groups_of_very_different_sizes():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 5))
    labels = np.concatenate([[0], [1, 1, 1], np.full(56, 2)])
    problem = dual.all_distances(labels, mu=1.0)
    _, best = qp.reference(problem, qp.rbf(X))
    for size in (None, 6, 30):
        solution = Batch(working_set=size).solve(problem, qp.gram_of(X), stop=Stop(1e-8))
        assert solution.status == "solved"
        qp.assert_feasible(problem, solution.u)
        assert solution.objective == pytest.approx(best, rel=1e-6)


def test_a_warm_working_set_solver_reaches_the_same_optimum_for_another_c():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(100, 2))
    y = np.where((X[:, 0] > 0) ^ (rng.random(100) < 0.2), 1.0, -1.0)
    gram = qp.gram_of(X)
    first = Batch(working_set=16).solve(dual.c_svc(y, C=1.0), gram, stop=Stop(1e-7))
    again = Batch(working_set=16).solve(dual.c_svc(y, C=0.5), gram, warm=first.u, stop=Stop(1e-7))
    _, best = qp.reference(dual.c_svc(y, C=0.5), qp.rbf(X))
    assert again.objective == pytest.approx(best, rel=1e-7)


def test_kernel_evaluations_are_counted_once_with_a_large_cache():
    problem, X, _ = qp.random_problem("c_svc", 0, 60)
    whole = Batch().solve(problem, qp.gram_of(X), stop=Stop(1e-6))
    assert whole.n_kernel_evals <= 60 * 60 and whole.n_kernel_evals % 60 == 0
    assert whole.n_kernel_calls >= whole.n_kernel_evals


@pytest.mark.parametrize("working_set", [64, 256, None])
def test_newcomers_of_many_groups_do_not_drive_out_who_could_make_room(working_set):
    rng = np.random.default_rng(0)
    y = np.arange(3000) % 10
    X = rng.normal(size=(3000, 6)) + 0.7 * rng.normal(size=(10, 6))[y]
    problem = dual.all_distances(y, 1 / 30)
    gram = Gram(X, gamma=0.1)
    solution = Batch(working_set).solve(problem, gram, stop=Stop(1e-3, max_time=60.0))
    assert solution.status == "solved"
    other = SMO("second-order").solve(problem, gram, stop=Stop(1e-3, max_time=60.0))
    assert solution.objective == pytest.approx(other.objective, rel=1e-4)
