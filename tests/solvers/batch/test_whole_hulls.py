"""Two groups, the reduced hulls of two classes, in one compiled call."""

import threading

import numpy as np
import pytest
import scipy.sparse as sp

from long_double import LONG, long_kernel
from maxmargin import AllDistancesSVC, NuSVC, dual
from maxmargin._compiled.limits import Limit
from maxmargin.dual._certify import RIGHT, certify
from maxmargin.estimators.base import BaseSVM
from maxmargin.gram.gram import Gram
from maxmargin.solvers import Batch, Status, Stop
from maxmargin.solvers.batch import whole as module
from maxmargin.solvers.batch.whole import WholeProblems, solve_whole, steps_on_all
from maxmargin.solvers.many import Subproblem, Subproblems

BOTH = np.array([0, 1])
N = 260


def data(n=N, d=4, seed=0):
    """Samples class by class, the first 45 % of one class."""
    rng = np.random.default_rng(seed)
    X, first = rng.normal(size=(n, d)), int(0.45 * n)
    X[:first, 0] += 2.0
    return X, first


def hulls(n, first, sign=1.0, mu=None, seed=0):
    y = np.where(np.arange(n) < first, sign, -sign)
    mu = np.random.default_rng(seed).uniform(2.6, 7.8, n) / n if mu is None else mu
    return dual.reduced_hulls(y, mu=mu)


def attempt(problem, gram, first, warm=None, stop=None):
    bounds = np.array([0, first, gram.n])
    engine = WholeProblems.over(gram, bounds, [problem], stop or Stop())
    return None if engine is None else engine.attempt(problem, np.arange(gram.n), BOTH, warm)


def solve(*arguments, **options):
    solution = attempt(*arguments, **options).solution
    assert solution is not None
    assert solution.engine == "whole" and solution.status is Status.SOLVED
    return solution


def assert_feasible(problem, u):
    assert ((u >= problem.lo) & (u <= problem.hi)).all()
    assert not np.signbit(u).any()
    np.testing.assert_allclose(np.bincount(problem.group, u), 1.0, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("storage", ["dense", "sparse", "given"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_reaches_the_solution_of_the_working_set(sign, storage, dtype):
    X, first = data()
    problem, tol = hulls(N, first, sign), 1e-3 if dtype == "float32" else 1e-8

    def gram(dtype):
        if storage == "given":
            K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2)).astype(np.float32)
            return Gram(K.astype(dtype), "precomputed", dtype=dtype)
        return Gram(sp.csr_array(X) if storage == "sparse" else X, gamma=0.3, dtype=dtype)

    quick = solve(problem, gram(dtype), first, stop=Stop(tol))
    slow = Batch(working_set=64).solve(problem, gram("float64"), stop=Stop(1e-9))
    assert quick.objective - slow.objective <= quick.gap + 1e-12
    assert quick.objective == pytest.approx(problem.objective(quick.u, quick.gradient), rel=1e-12)
    np.testing.assert_allclose(quick.offset, slow.offset, atol=tol / problem.scale)
    exact = problem.gradient(quick.u, gram("float64"))
    assert problem.violation(quick.u, exact) <= min(quick.violation, tol) * (1 + 1e-6) + 1e-12
    np.testing.assert_allclose(quick.gradient, exact, atol=1e-5 if dtype == "float32" else 1e-12)
    np.testing.assert_allclose(quick.offset, problem.offset(quick.u, quick.gradient), rtol=1e-10)
    assert_feasible(problem, quick.u)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "sigmoid", "laplacian"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_violation_and_gap_hold_in_long_double(kernel, dtype, tol):
    X, first = data()
    problem = hulls(N, first)
    gram = Gram(X, kernel, gamma=0.1, coef0=0.0 if kernel != "poly" else 1.0, dtype=dtype)
    found = attempt(problem, gram, first, stop=Stop(tol)).solution
    if found is None:  # the loop goes on
        assert kernel in ("linear", "poly") and tol == 1e-6
        return
    K = long_kernel(X, kernel, 0.1, coef0=0.0 if kernel != "poly" else 1.0)
    s, u = problem.signs.astype(LONG), found.u.astype(LONG)
    g = s * (K @ (s * u))
    least, most = problem.extremes(found.u, g.astype(np.float64))
    assert problem.scale * (most - least).max() <= found.violation * (1 + 1e-9) <= tol * (1 + 1e-9)
    # The best point of the linear function at u, group by group.
    gap = g @ u
    for member in problem.members:
        left = LONG(1.0)
        for i in member[np.argsort(g[member])]:
            step = min(left, LONG(problem.hi[i]))
            gap, left = gap - g[i] * step, left - step
    assert float(gap) <= found.gap * (1 + 1e-9)
    assert found.gap <= 10.0 * float(gap) + 4.0 * problem.m * problem.hi.max() * found.noise + 1e-12


def test_a_solution_is_a_start_from_which_nothing_is_left_to_do():
    X, first = data()
    problem, gram = hulls(N, first), Gram(X, gamma=0.3, dtype="float64")
    cold = solve(problem, gram, first)
    again = solve(problem, gram, first, warm=cold.u)
    assert again.n_iter == 0
    np.testing.assert_array_equal(again.u, cold.u)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_warm_start_anywhere_leads_to_the_same_objective(seed, sign):
    X, first = data(seed=seed)
    problem, gram = hulls(N, first, sign, seed=seed), Gram(X, gamma=0.3, dtype="float64")
    cold = solve(problem, gram, first, stop=Stop(1e-8))
    far = 10 * np.random.default_rng(seed).normal(size=N)
    before = far.copy()
    warm = solve(problem, gram, first, stop=Stop(1e-8), warm=far)
    np.testing.assert_array_equal(far, before)
    assert warm.objective == pytest.approx(cold.objective, rel=1e-7)
    assert_feasible(problem, warm.u)


def test_samples_without_weight_stay_at_zero():
    X, first = data()
    mu = np.where(np.arange(N) % 3, 0.04, 0.0)
    problem = dual.reduced_hulls(np.where(np.arange(N) < first, 1.0, -1.0), mu=0.04)
    problem = type(problem)(**{**vars_of(problem), "hi": mu})
    found = solve(problem, Gram(X, gamma=0.3, dtype="float64"), first, stop=Stop(1e-8))
    assert not found.u[::3].any()
    rest = np.flatnonzero(mu)
    count = int(np.count_nonzero(rest < first))
    alone = hulls(len(rest), count, mu=0.04)
    other = solve(alone, Gram(X[rest], gamma=0.3, dtype="float64"), count, stop=Stop(1e-8))
    assert found.objective == pytest.approx(other.objective, rel=1e-8)


def vars_of(problem):
    return {name: getattr(problem, name) for name in problem.__dataclass_fields__}


def test_classes_whose_bounds_leave_no_choice_are_solved():
    X, first = data(40)
    mu = np.where(np.arange(40) < first, 1.0 / first, 0.5)
    problem = hulls(40, first, mu=mu)
    found = solve(problem, Gram(X, gamma=0.3, dtype="float64"), first, stop=Stop(1e-8))
    np.testing.assert_allclose(found.u[:first], 1.0 / first, rtol=1e-12)
    slow = Batch(finish=None).solve(problem, Gram(X, gamma=0.3, dtype="float64"), stop=Stop(1e-9))
    assert found.objective == pytest.approx(slow.objective, rel=1e-8)


def test_equal_points_with_opposite_labels_leave_no_margin():
    X, _ = data(60)
    problem = hulls(120, 60, mu=0.1)
    found = solve(problem, Gram(np.vstack([X, X]), gamma=0.3, dtype="float64"), 60)
    assert problem.square(found.u, found.gradient) <= 2.0 * found.gap


@pytest.mark.parametrize("tol", [1e-5, 1e-7])
def test_rows_in_float32_are_refined_for_a_tight_tolerance(tol):
    X, first = data(700)
    problem, gram = hulls(700, first), Gram(X, gamma=0.3, dtype="float32")
    refined = solve(problem, gram, first, stop=Stop(tol))
    exact = problem.exact_gradient(refined.u, np.arange(700), gram)
    assert np.abs(refined.gradient - exact).max() <= refined.noise
    assert problem.violation(refined.u, exact) <= refined.violation <= tol


@pytest.mark.parametrize("damage", ["first sum", "second sum", "both sums", "box", "nan"])
@pytest.mark.parametrize("where", ["solve_whole", "steps_on_all"])
def test_a_point_with_a_wrong_sum_or_box_is_not_reported_as_solved(monkeypatch, damage, where):
    X, first = data()
    problem = hulls(N, first)

    def broken(whole, u):
        free = np.flatnonzero((u > whole.lo) & (u < whole.hi))
        a, b = free[free < first][0], free[free >= first][0]
        out = np.flatnonzero(u == whole.hi)
        change = {
            "first sum": {a: 1e-7},
            "second sum": {b: 1e-7},
            "both sums": {a: 1e-7, b: -1e-7},
            "box": {out[0]: 1e-7, free[0]: -1e-7},
            "nan": {b: np.nan},
        }[damage]
        for i, by in change.items():
            u[i] += by

    def whole_damaged(rows, whole, u, g, near, accuracy, loop, report):
        solve_whole(rows, whole, u, g, near, accuracy, loop, report)
        assert report[RIGHT]
        broken(whole, u)
        box = whole.lo, whole.hi, whole.p, whole.ridge, whole.ranges, whole.sums
        certify(u, g, *box, 1e-7, 1e-7, report)

    def steps_damaged(rows, whole, u, g, target, loop):
        counts = steps_on_all(rows, whole, u, g, target, loop)
        broken(whole, u)
        return counts

    monkeypatch.setattr(module, where, whole_damaged if where == "solve_whole" else steps_damaged)
    refined = where == "steps_on_all"
    gram = Gram(X, gamma=0.3, dtype="float32" if refined else "float64")
    reached, solution = attempt(problem, gram, first, stop=Stop(1e-6 if refined else 1e-3))
    assert solution is None
    assert np.isfinite(reached).all()  # from where the loop goes on


def test_a_pool_that_is_too_small_gives_back_a_feasible_point():
    X, first = data()
    problem, gram = hulls(N, first), Gram(X, gamma=0.5, cache_bytes=60 * 320 * 4)
    u, solution = attempt(problem, gram, first)
    assert solution is None
    assert_feasible(problem, u)
    assert Batch().solve(problem, gram, warm=u).status is Status.SOLVED


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_limit_ends_the_steps_at_a_feasible_point_with_a_valid_gap(interrupted):
    X, first = data(1200, 2)
    problem, gram = hulls(1200, first), Gram(X, gamma=1.0, dtype="float64")
    best = Batch().solve(problem, gram, stop=Stop(1e-5)).objective
    engine = WholeProblems.over(gram, np.array([0, first, 1200]), [problem], Stop(1e-15))
    engine.patience = 10**9
    with Limit() as limit:
        end = threading.Timer(0.1, limit._end, [1 if interrupted else 2])
        end.start()
        u, solution = engine.attempt(problem, np.arange(1200), BOTH, None)
        end.join()
    assert_feasible(problem, u)
    assert solution.status is (Status.INTERRUPTED if interrupted else Status.MAX_TIME)
    assert solution.engine == "whole"
    assert solution.objective - best <= solution.gap + 1e-12
    np.testing.assert_allclose(solution.offset, problem.offset(u, solution.gradient))


def test_groups_that_are_not_the_segments_are_left_to_the_loop():
    X, first = data(80)
    gram = Gram(X, gamma=0.3)
    mixed = dual.reduced_hulls(np.where(np.arange(80) % 2, 1.0, -1.0), mu=0.1)
    assert attempt(mixed, gram, first) is None
    assert attempt(dual.nearest_points(np.where(np.arange(80) < first, 1.0, -1.0)), gram, first) is None
    # Over one segment, or segments that end elsewhere.
    problem = hulls(80, first, mu=0.1)
    whole = Batch().solve_many(Subproblems.one(problem, 80), gram, stop=Stop(), interrupt=Limit())[0]
    assert whole.engine == "loop" and whole.status is Status.SOLVED
    reached, solution = attempt(problem, gram, first - 7)
    assert solution is None
    assert np.isfinite(reached).all()


def test_two_classes_of_other_models_are_left_to_the_loop():
    X, first = data(80)
    y = np.arange(80) < first
    assert AllDistancesSVC(nu=0.4).fit(X, y).status_ == "solved"


def test_three_classes_share_the_parts_of_their_rows():
    X, _ = data(120)
    X[:, 1] += 1.5 * (np.arange(120) // 40)
    gram, bounds = Gram(X, gamma=0.3, dtype="float64"), np.array([0, 40, 80, 120])

    def make(k):
        pair = np.array([(0, 1), (0, 2), (1, 2)][k])
        samples = np.concatenate([np.arange(40 * c, 40 * c + 40) for c in pair])
        return Subproblem(str(k), hulls(80, 40, mu=0.06), samples, pair)

    problems = Subproblems(bounds, np.full(3, 80), make)
    found = Batch().solve_many(problems, gram, stop=Stop(1e-8), interrupt=Limit())
    for k in range(3):
        alone = Batch().solve(problems[k].problem, Gram(X[problems[k].samples], gamma=0.3), stop=Stop(1e-8))
        assert found[k].engine == "whole"
        assert found[k].objective == pytest.approx(alone.objective, rel=1e-6)
    assert sum(found[k].n_kernel_evals for k in range(3)) <= 120 * 120


@pytest.mark.parametrize("classes", [2, 4])
def test_nu_svc_is_solved_in_one_call_by_threads_that_change_no_number(monkeypatch, classes):
    engines, original = [], BaseSVM._solve

    def recorded(*arguments, **options):
        solutions, lengths = original(*arguments, **options)
        engines.extend(solution.engine for solution in solutions.values())
        return solutions, lengths

    monkeypatch.setattr(BaseSVM, "_solve", recorded)
    monkeypatch.setattr("maxmargin.solvers.many.WORTH_A_TEAM", 0.0)
    X = np.random.default_rng(0).normal(size=(600, 4))
    y = np.arange(600) * classes // 600
    X[:, :2] += 1.5 * np.c_[y % 2, y // 2]
    one, two = (NuSVC(nu=0.4, gamma=0.3, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    assert set(engines) == {"whole"}
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)
