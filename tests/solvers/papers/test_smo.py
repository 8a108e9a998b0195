import numpy as np
import pytest

import qp
from maxmargin import dual
from maxmargin.gram.gram import Gram
from maxmargin.solvers import SMO, Stop

SELECTIONS = {"first-order": 2, "second-order": 3}  # and the rows that an iteration reads
every_selection = pytest.mark.parametrize("selection", SELECTIONS)
every_kind = pytest.mark.parametrize("kind", qp.KINDS)


def rows_of(count, n):
    """Bytes of a cache for `count` float64 rows."""
    return count * n * 8


def machine(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where((X[:, 0] * X[:, 1] > 0) ^ (rng.random(n) < 0.1), 1.0, -1.0)
    return X, y


def test_unknown_selection_is_refused():
    with pytest.raises(ValueError, match="selection"):
        SMO("third-order")


@every_selection
def test_repr_says_which_selection(selection):
    assert selection in repr(SMO(selection))


@every_selection
@every_kind
def test_kernel_calls_are_two_or_three_rows_per_iteration_beyond_the_start(selection, kind):
    if kind in ("all_distances", "squared_all_distances") and selection == "second-order":
        pytest.skip("counted one by one, see test_staged.py")
    problem, X, _ = qp.random_problem(kind, 3)
    start = qp.gram_of(X)
    problem.gradient(problem.start(), start)
    solution = SMO(selection).solve(problem, qp.gram_of(X), stop=Stop(1e-8))
    assert solution.n_iter > 0
    per_iteration = SELECTIONS[selection] * problem.m
    assert solution.n_kernel_calls - start.n_calls == per_iteration * solution.n_iter


@every_selection
@pytest.mark.parametrize("prefetch", [0, 1, 16, 1000])
def test_no_kernel_value_is_computed_twice_with_a_large_cache(selection, prefetch):
    X, y = machine(80)
    solution = SMO(selection, prefetch=prefetch).solve(dual.c_svc(y, C=10.0), qp.gram_of(X))
    assert 0 < solution.n_kernel_evals <= 80 * 80
    assert solution.n_kernel_evals % 80 == 0


def test_without_prefetch_only_rows_of_steps_are_computed():
    X, y = machine(80)
    stop = Stop(1e-3, max_iter=3)
    solution = SMO("first-order", prefetch=0).solve(dual.c_svc(y, C=10.0), qp.gram_of(X), stop=stop)
    assert solution.n_kernel_evals <= 2 * 3 * 80


@every_selection
@pytest.mark.parametrize("prefetch", [0, 1, 2, 16])
def test_prefetch_does_not_change_the_solution(selection, prefetch):
    X, y = machine(60)
    problem = dual.c_svc(y, C=10.0)
    one = SMO(selection, prefetch=prefetch).solve(problem, qp.gram_of(X), stop=Stop(1e-6))
    other = SMO(selection).solve(problem, qp.gram_of(X, cache_bytes=rows_of(20, 60)), stop=Stop(1e-6))
    assert one.status == other.status == "solved"
    assert one.objective == pytest.approx(other.objective, rel=1e-8)


@every_selection
@pytest.mark.parametrize("rows", [2, 3, 5])
@pytest.mark.timeout(10, func_only=True)
def test_cache_of_a_few_rows_is_enough(selection, rows):
    X, y = machine(40)
    problem = dual.c_svc(y, C=10.0)
    _, best = qp.reference(problem, qp.rbf(X))
    gram = qp.gram_of(X, cache_bytes=rows_of(rows, 40))
    solution = SMO(selection).solve(problem, gram, stop=Stop(1e-7))
    assert solution.status == "solved"
    assert solution.objective == pytest.approx(best, rel=1e-6)


@every_selection
@pytest.mark.parametrize("kind", ["all_distances", "nearest_points", "reduced_hulls", "crammer_singer"])
@pytest.mark.parametrize("rows", [2, 3])
@pytest.mark.timeout(10, func_only=True)
def test_cache_of_a_few_rows_solves_several_groups_or_says_what_it_needs(selection, kind, rows):
    problem, X, _, _, best = qp.solved_problem(kind, 0, 12)
    gram = qp.gram_of(X, cache_bytes=rows_of(rows, 12))
    needed = 2 if selection == "first-order" else problem.n_groups + 1  # the first of each group, and j
    if rows < needed:
        with pytest.raises(ValueError, match=r"cache of \d+ bytes cannot hold .* at least \d+ bytes"):
            SMO(selection).solve(problem, gram, stop=Stop(1e-8))
    else:
        solution = SMO(selection).solve(problem, gram, stop=Stop(1e-8))
        assert solution.status == "solved"
        assert solution.objective == pytest.approx(best, rel=1e-6, abs=1e-9)


@every_selection
@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.timeout(10, func_only=True)
def test_cache_below_two_rows_is_refused(selection, rows):
    X, y = machine(40)
    gram = qp.gram_of(X, cache_bytes=rows_of(rows, 40))
    with pytest.raises(ValueError, match=r"cache of \d+ bytes cannot hold .* at least \d+ bytes"):
        SMO(selection).solve(dual.c_svc(y, C=10.0), gram)


def test_second_order_takes_fewer_iterations_than_first_order():
    X, y = machine(150)
    problem = dual.c_svc(y, C=100.0)
    first, second = (SMO(s).solve(problem, qp.gram_of(X), stop=Stop(1e-6)) for s in SELECTIONS)
    assert second.n_iter < first.n_iter


def test_first_step_of_first_order_is_the_analytic_one_of_the_most_violating_pair():
    X = np.array([[0.0], [1.0], [3.0], [4.5]])
    problem = dual.c_svc([-1, -1, 1, 1], C=10.0)
    warm = np.array([-0.1, 0.0, 0.0, 0.1])
    # K u = 0.45 x, so g = 0.45 x - y = (1, 1.45, 0.35, 1.025): i = 2 rises, j = 1 falls,
    # and the curvature is (3 - 1)^2.
    gram = Gram(X, "linear", dtype="float64")
    solution = SMO("first-order").solve(problem, gram, warm=warm, stop=Stop(1e-9, max_iter=1))
    assert solution.u == pytest.approx([-0.1, -1.1 / 4, 1.1 / 4, 0.1])


def test_first_step_of_second_order_is_the_pair_of_largest_decrease():
    X = np.array([[0.0], [1.0], [3.0], [4.5]])
    problem = dual.c_svc([-1, -1, 1, 1], C=10.0)
    warm = np.array([-0.1, 0.0, 0.0, 0.1])
    # i = 2 as above; the decreases over j = 0, 1, 3 are 0.65^2/9, 1.1^2/4 and 0.675^2/2.25.
    gram = Gram(X, "linear", dtype="float64")
    solution = SMO("second-order").solve(problem, gram, warm=warm, stop=Stop(1e-9, max_iter=1))
    assert solution.u == pytest.approx([-0.1, -1.1 / 4, 1.1 / 4, 0.1])


@every_selection
def test_steps_stay_inside_their_group(selection):
    problem, X, _ = qp.random_problem("all_distances", 1, 12)
    seen = []
    for steps in range(1, 6):
        solution = SMO(selection).solve(problem, qp.gram_of(X), stop=Stop(1e-12, max_iter=steps))
        qp.assert_feasible(problem, solution.u)
        seen.append(solution.objective)
    assert seen == sorted(seen, reverse=True)
    assert seen[-1] < seen[0]
