from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification

from maxmargin import SVC, dual
from maxmargin.dual._certify import RIGHT, certify
from maxmargin.gram.gram import Gram
from maxmargin.solvers import Batch, Status, Stop
from maxmargin.solvers.batch import whole as module
from maxmargin.solvers.batch.whole import WholeProblems, solve_whole, steps_on_all

ALL = np.zeros(1, np.intp)


def problem_on(X, kind="c_svc", seed=0):
    rng = np.random.default_rng(seed)
    n = X.shape[0]
    y = np.where(rng.random(n) > 0.4, 1.0, -1.0)
    return {
        "c_svc": lambda: dual.c_svc(y, bounds=rng.uniform(0.5, 5.0, n)),
        "squared_c_svc": lambda: dual.squared_c_svc(y, ridge=rng.uniform(0.05, 1.0, n)),
        "one_class": lambda: dual.one_class(n, nu=0.3),
    }[kind]()


def attempt(problem, gram, bounds=None, touched=ALL, samples=None, warm=None, stop=None):
    bounds = np.array([0, gram.n]) if bounds is None else bounds
    machines = WholeProblems.over(gram, bounds, [problem], stop or Stop())
    samples = np.arange(gram.n) if samples is None else samples
    return None if machines is None else machines.attempt(problem, samples, touched, warm)


def solve(*arguments, **options):
    """The solution, where there must be one."""
    solution = attempt(*arguments, **options).solution
    assert solution is not None
    assert solution.engine == "whole"
    return solution


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("storage", ["dense", "sparse", "float32", "shuffled"])
@pytest.mark.parametrize("kind", ["c_svc", "squared_c_svc", "one_class"])
def test_reaches_the_solution_of_the_working_set(kind, storage, dtype):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 40)) * (rng.random((300, 40)) < 0.15)
    if storage != "sparse":
        X = X + 3.0 + 0.1 * rng.normal(size=X.shape)
    X = {"sparse": sp.csr_array, "float32": np.float32}.get(storage, np.asarray)(X)
    index = rng.permutation(300)[:280] if storage == "shuffled" else None
    stop = Stop(1e-3 if dtype == "float32" else 1e-8)
    gram = Gram(X, gamma=0.3, dtype=dtype, index=index)
    problem = problem_on(np.empty((gram.n, 0)), kind)
    quick = solve(problem, gram, stop=stop)
    slow = Batch(working_set=64).solve(problem, Gram(X, gamma=0.3, dtype=dtype, index=index), stop=stop)
    assert quick.status is slow.status is Status.SOLVED
    assert quick.objective == pytest.approx(slow.objective, rel=1e-3 if dtype == "float32" else 1e-7)
    assert quick.objective == pytest.approx(problem.objective(quick.u, quick.gradient), rel=1e-12)
    np.testing.assert_allclose(quick.offset, slow.offset, atol=2e-3 if dtype == "float32" else 1e-7)
    exact = problem.gradient(quick.u, Gram(X, gamma=0.3, dtype="float64", index=index))
    assert problem.violation(quick.u, exact) <= stop.tol * 1.001
    assert problem.violation(quick.u, exact) <= quick.violation + 1e-12
    np.testing.assert_allclose(quick.gradient, exact, atol=1e-4 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("noise", [0.0, 1e-4])
def test_gap_is_a_bound_and_hardly_larger_than_the_best_one(noise):
    from maxmargin.dual._certify import gap_for

    X = np.random.default_rng(0).normal(size=(200, 3))
    problem, gram = problem_on(X), Gram(X, gamma=0.5, dtype="float64")
    exact = Batch().solve(problem, gram, stop=Stop(1e-10)).objective
    for tol in (0.3, 1e-2, 1e-4):
        found = solve(problem, gram, stop=Stop(tol))
        box = problem.lo, problem.hi, problem.ridge, 0.0
        bound = gap_for(found.u, found.gradient, *box, -found.offset[0], noise)
        best = problem.gap(found.u, found.gradient, noise)
        assert found.objective - exact <= best + 1e-12
        assert best <= bound * (1 + 1e-9) + 1e-12 and bound <= 1.5 * best + 1e-9
        if not noise:
            assert found.gap == pytest.approx(bound, rel=1e-6, abs=1e-9)  # it allows for rounding


def test_class_pairs_share_the_parts_of_their_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 5))
    gram = Gram(X, gamma=0.5, dtype="float64")
    machines = WholeProblems.over(gram, np.array([0, 30, 60, 90]), [], Stop(1e-8))
    total = 0
    for a, b in ((0, 1), (0, 2), (1, 2), (0, 1)):
        samples = np.r_[30 * a : 30 * a + 30, 30 * b : 30 * b + 30]
        problem = dual.c_svc(np.repeat([1.0, -1.0], 30), C=10.0)
        solution = machines.attempt(problem, samples, np.array([a, b]), None).solution
        alone = Batch().solve(problem, Gram(X[samples], gamma=0.5, dtype="float64"), stop=Stop(1e-8))
        np.testing.assert_allclose(solution.u, alone.u, atol=1e-6)
        total += solution.n_kernel_evals
    assert solution.n_kernel_evals == 0  # the last pair was the first again
    assert total <= 90 * 90


def test_pairs_in_several_threads_are_those_of_one():
    X, y = make_classification(1200, 6, n_informative=6, n_redundant=0, n_classes=6, random_state=0)
    order = np.argsort(y, kind="stable")
    bounds = np.searchsorted(y[order], np.arange(7))
    pairs = [np.array(pair) for pair in combinations(range(6), 2)]

    def run(threads):
        machines = WholeProblems.over(Gram(X[order], gamma=0.5), bounds, [], Stop(1e-3))

        def one(pair):
            parts = [np.arange(bounds[k], bounds[k + 1]) for k in pair]
            problem = dual.c_svc(np.repeat([1.0, -1.0], [len(part) for part in parts]), C=5.0)
            return machines.attempt(problem, np.concatenate(parts), pair, None).solution

        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(one, pairs))

    for alone, together in zip(run(1), run(4), strict=True):
        np.testing.assert_array_equal(alone.u, together.u)
        np.testing.assert_array_equal(alone.gradient, together.gradient)


@pytest.mark.parametrize(
    ("change", "stop"),
    [({"kernel": lambda a, b: a @ b.T}, Stop()), ({}, Stop(max_iter=100)), ({}, Stop(criterion="gap"))],
)
def test_callables_budgets_and_criteria_are_left_alone(change, stop):
    X = np.random.default_rng(0).normal(size=(50, 3))
    gram = Gram(X, **{"gamma": 0.5, **change})
    assert WholeProblems.over(gram, np.array([0, 50]), [problem_on(X)], stop) is None
    assert not gram.lent


def test_large_and_several_group_problems_are_left_alone():
    X = np.random.default_rng(0).normal(size=(5000, 2))
    assert attempt(problem_on(X), Gram(X, gamma=0.5)) is None
    small = Gram(X[:50], gamma=0.5)
    y = np.where(np.arange(50) % 2, 1.0, -1.0)
    assert attempt(dual.reduced_hulls(y, mu=0.1), small) is None
    assert attempt(dual.minimum_norm(y), small) is None
    assert attempt(dual.nearest_points(y), small) is None
    assert attempt(dual.c_svc(y, rows=np.arange(50)[::-1]), small) is None


def test_a_pool_that_is_too_small_gives_back_a_feasible_point_that_others_go_on_from():
    X = np.random.default_rng(0).normal(size=(300, 3))
    problem = problem_on(X)
    gram = Gram(X, gamma=0.5, cache_bytes=20 * 384 * 4)
    u, solution = attempt(problem, gram)
    assert solution is None
    assert ((u >= problem.lo) & (u <= problem.hi)).all() and abs(u.sum()) < 1e-9
    rest = Batch().solve(problem, gram, warm=u)
    assert rest.status is Status.SOLVED
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, 0)
    tight, roomy = (SVC(gamma=0.5, cache_size=size).fit(X, y) for size in (0.02, 200))
    assert tight.status_ == "solved"
    np.testing.assert_allclose(tight.decision_function(X), roomy.decision_function(X), atol=2e-3)


def test_a_solution_is_a_start_from_which_nothing_is_left_to_do():
    X = np.random.default_rng(0).normal(size=(300, 3))
    problem, gram = problem_on(X), Gram(X, gamma=0.5, dtype="float64")
    first = solve(problem, gram)
    again = solve(problem, gram, warm=first.u)
    assert again.n_iter == 0
    np.testing.assert_array_equal(again.u, first.u)


def test_rounding_that_is_too_large_for_the_tolerance_is_noticed_and_refined():
    # Away from the origin in one feature, and not centred: float32 exponents are off by some 1e-5.
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=(200, 2)), np.zeros((200, 98))]
    X[:, 50] = np.where(np.arange(200) % 2, 18.0, 18.5)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    problem = dual.c_svc(y, C=1e4)
    for tol in (1e-3, 1e-4, 1e-5):
        gram = Gram(sp.csr_array(X), gamma=0.5)
        refined = solve(problem, gram, stop=Stop(tol))
        exact = problem.exact_gradient(refined.u, np.arange(200), gram)
        assert np.abs(problem.gradient(refined.u, gram) - exact).max() > tol  # of the rows
        assert np.abs(refined.gradient - exact).max() <= refined.noise <= 0.25 * tol
        assert problem.violation(refined.u, exact) <= refined.violation <= tol
    model = SVC(C=1e4, gamma=0.5, tol=1e-5).fit(sp.csr_array(X), y)
    assert model.status_ == "solved"


def test_a_pair_of_equal_points_with_opposite_labels_ends():
    solution = solve(dual.c_svc([1, -1], C=3.0), Gram(np.zeros((2, 1)), gamma=1.0))
    assert solution.status is Status.SOLVED
    np.testing.assert_allclose(solution.u, [3.0, -3.0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 3, 15, 16, 17, 33])
def test_sizes_around_a_panel_are_solved(n, dtype):
    X = np.random.default_rng(n).normal(size=(n, 3))
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    exact = Gram(X, gamma=0.5, dtype="float64")
    for problem in (dual.c_svc(y, C=3.0), dual.squared_c_svc(y, ridge=0.2), dual.one_class(n, nu=0.5)):
        found = attempt(problem, Gram(X, gamma=0.5, dtype=dtype)).solution
        if found is None:  # nothing that both rises and falls: no offset
            assert n == 1
            continue
        best = Batch(finish=None).solve(problem, exact, stop=Stop(1e-9))
        g = problem.gradient(found.u, exact)
        assert -1e-9 <= problem.objective(found.u, g) - best.objective <= found.gap + 1e-9
        assert problem.violation(found.u, g) <= 1e-3 * 1.001


def test_samples_that_cannot_move_stay_where_they_are():
    X = np.random.default_rng(0).normal(size=(120, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    bounds = np.where(np.arange(120) % 3, 5.0, 0.0)
    found = solve(dual.c_svc(y, bounds=bounds), Gram(X, gamma=0.5, dtype="float64"), stop=Stop(1e-8))
    assert not found.u[::3].any()
    rest = np.flatnonzero(bounds)
    alone = solve(dual.c_svc(y[rest], C=5.0), Gram(X[rest], gamma=0.5, dtype="float64"), stop=Stop(1e-8))
    np.testing.assert_allclose(found.u[rest], alone.u, atol=1e-5)
    assert found.objective == pytest.approx(alone.objective, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_a_warm_start_anywhere_leads_to_the_same_objective(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 3))
    for kind in ("c_svc", "squared_c_svc", "one_class"):
        problem, gram = problem_on(X, kind, seed), Gram(X, gamma=0.5, dtype="float64")
        cold = solve(problem, gram, stop=Stop(1e-8))
        far = 10 * rng.normal(size=150)
        before = far.copy()
        warm = solve(problem, gram, stop=Stop(1e-8), warm=far)
        np.testing.assert_array_equal(far, before)
        assert warm.objective == pytest.approx(cold.objective, rel=1e-8)
        assert abs(warm.u.sum() - problem.sums[0]) <= 1e-10 * max(1.0, np.abs(warm.u).sum())


@pytest.mark.parametrize("rows", [0, 1, 7, 60, 120])
def test_the_pool_is_never_larger_than_the_budget(rows):
    X = np.random.default_rng(0).normal(size=(120, 3))
    problem = problem_on(X)
    gram = Gram(X, gamma=0.5, dtype="float64", cache_bytes=rows * 128 * 8)
    machines = WholeProblems.over(gram, np.array([0, 120]), [problem], Stop())
    u, solution = machines.attempt(problem, np.arange(120), ALL, None)
    assert machines.rows.pool.nbytes <= gram.cache_bytes
    assert machines.bytes_used <= gram.cache_bytes
    assert ((u >= problem.lo) & (u <= problem.hi)).all() and abs(u.sum()) <= 1e-9
    assert (solution is not None) == (rows == 120)
    assert gram.lent
    gram.reopen()
    assert gram.capacity == min(120, gram.cache_bytes // (120 * 8))


def broken(u, problem, damage):
    """Break a point by so little that its violation stays below the tolerance."""
    outer = np.flatnonzero(u == problem.hi)[0]
    inner = np.flatnonzero((u > problem.lo) & (u < problem.hi))[0]
    u[[outer, inner]] += {"sum": [0.0, 1e-7], "box": [1e-7, -1e-7], "nan": [0.0, np.nan]}[damage]


@pytest.mark.parametrize("damage", ["sum", "box", "nan"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_machine_with_a_wrong_sum_or_box_is_not_reported_as_solved(monkeypatch, damage, dtype):
    X, y = make_classification(150, 5, flip_y=0.2, random_state=0)
    problem, calls = dual.c_svc(np.where(y > 0, 1.0, -1.0), C=1.0), []
    expected = SVC(gamma=0.2).fit(X, y)

    def damaged(rows, whole, u, g, near, accuracy, loop, report):
        solve_whole(rows, whole, u, g, near, accuracy, loop, report)
        assert report[RIGHT]
        broken(u, problem, damage)
        box = whole.lo, whole.hi, whole.p, whole.ridge, whole.ranges, whole.sums
        certify(u, g, *box, 1e-7, 1e-7, report)
        calls.append(True)

    monkeypatch.setattr(module, "solve_whole", damaged)
    reached, solution = attempt(problem, Gram(X, gamma=0.2, dtype=dtype))
    assert solution is None
    assert np.isfinite(reached).all()  # from where the loop goes on
    model = SVC(gamma=0.2).fit(X, y)
    assert model.status_ == "solved" and len(calls) == 2
    assert abs(model.dual_coef_.sum()) <= 1e-10 and np.abs(model.dual_coef_).max() <= 1.0
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-2)


@pytest.mark.parametrize("damage", ["sum", "box", "nan"])
def test_a_machine_that_refinement_breaks_is_not_reported_as_solved(monkeypatch, damage):
    X, y = make_classification(150, 5, flip_y=0.2, random_state=0)
    problem, calls = dual.c_svc(np.where(y > 0, 1.0, -1.0), C=1.0), []

    def damaged(rows, whole, u, g, target, loop):
        counts = steps_on_all(rows, whole, u, g, target, loop)
        if not calls:
            broken(u, problem, damage)
        calls.append(True)
        return counts

    monkeypatch.setattr(module, "steps_on_all", damaged)
    reached, solution = attempt(problem, Gram(X, gamma=0.2, dtype="float32"), stop=Stop(1e-5))
    assert calls and solution is None
    assert np.isfinite(reached).all()
