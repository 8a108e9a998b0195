import numpy as np
import pytest
from sklearn.datasets import load_iris

import qp
from maxmargin import AllDistancesSVC, dual
from maxmargin.gram.gram import Gram
from maxmargin.solvers import SMO, Batch, Stop

# Five points of three classes; the weights of the nearest points of their hulls, all distances counted,
# worked out by hand: c_0 = (a, 3a), c_1 = (4 + b, 2b), c_2 = (2, 2) with 20a - 7b = 12, 10b - 7a = -2.
POINTS = np.array([[0.0, 0.0], [1.0, 3.0], [4.0, 0.0], [5.0, 2.0], [2.0, 2.0]])
CLASSES = np.array([0, 0, 1, 1, 2])
WEIGHTS = np.array([45.0, 106.0, 107.0, 44.0, 151.0]) / 151.0
CENTRES = np.array([[106.0, 318.0], [648.0, 88.0], [302.0, 302.0]]) / 151.0


def iris_problem(mu=0.1):
    X, y = load_iris(return_X_y=True)
    return dual.all_distances(y, mu), Gram(X, gamma=0.5, dtype="float64")


def extremes(F, rises, falls, group):
    """Per class argmin F over what rises, argmax F over what falls, and how far they are apart."""
    out = {}
    for r in range(group.max() + 1):
        up, low = np.flatnonzero(rises & (group == r)), np.flatnonzero(falls & (group == r))
        if len(up) and len(low):
            i, j = up[np.argmin(F[up])], low[np.argmax(F[low])]
            out[r] = (i, j, F[j] - F[i])
    return out


def reference_steps(problem, K, steps, target, cooling, mirrored=True):
    """Algorithm 1.1 in plain NumPy, with the free variables of every class first."""
    Q = qp.dense_q(problem, K)
    u = problem.start()
    group, lo, hi = problem.group, problem.lo, problem.hi
    full, calls, history = np.inf, 0, []
    for _ in range(steps):
        F = Q @ u
        rises, falls = u < hi, u > lo
        free = rises & falls
        found = extremes(F, rises & free, falls & free, group)
        among_free = max((v for *_, v in found.values()), default=-np.inf) > max(target, cooling * full)
        allowed = free if among_free else np.ones(len(u), bool)
        if not among_free:
            found = extremes(F, rises, falls, group)
            full = max(v for *_, v in found.values())
            if full <= target:
                break
        best = (-1.0, -1, -1)
        for r, (i, j, v) in found.items():
            if v <= target:
                continue
            for t in np.flatnonzero(allowed & (group == r)):
                if falls[t] and F[t] > F[i]:
                    best = max(best, ((F[t] - F[i]) ** 2 / (Q[i, i] + Q[t, t] - 2 * Q[i, t]), i, t))
                    calls += 1
                if mirrored and rises[t] and F[t] < F[j]:
                    best = max(best, ((F[t] - F[j]) ** 2 / (Q[j, j] + Q[t, t] - 2 * Q[j, t]), t, j))
                    calls += 1
        _, i, j = best
        d = min((F[j] - F[i]) / (Q[i, i] + Q[j, j] - 2 * Q[i, j]), hi[i] - u[i], u[j] - lo[j])
        u[i], u[j] = u[i] + d, u[j] - d
        calls += 2 * problem.m
        history.append(u.copy())
    return history, calls


@pytest.mark.parametrize("solver", [SMO(), SMO(cooling=0.0), SMO("first-order"), Batch()])
def test_the_solution_of_five_points_of_three_classes_is_the_tabulated_one(solver):
    gram = Gram(POINTS, kernel="linear", dtype="float64")
    solution = solver.solve(dual.all_distances(CLASSES, 1.0), gram, stop=Stop(1e-12))
    np.testing.assert_allclose(solution.u, WEIGHTS, atol=1e-9)
    pairs = ((CENTRES[:, None] - CENTRES) ** 2).sum()
    assert solution.objective == pytest.approx(pairs / 4, rel=1e-9)


def test_the_estimator_reports_the_tabulated_planes():
    model = AllDistancesSVC(mu=1.0, kernel="linear", tol=1e-12).fit(POINTS, CLASSES)
    c = CENTRES.mean(axis=0)
    w = CENTRES - c
    np.testing.assert_allclose(model.coef_, w, atol=1e-7)
    np.testing.assert_allclose(model.b_, -w @ c, atol=1e-7)
    np.testing.assert_allclose(model.rho_, (w**2).sum(axis=1), atol=1e-7)
    values = POINTS @ w.T - w @ c - (w**2).sum(axis=1)
    np.testing.assert_allclose(model.decision_function(POINTS), values, atol=1e-7)


@pytest.mark.parametrize("cooling", [0.0, 0.5, 1.0])
def test_steps_and_kernel_calls_are_those_of_algorithm_1_1(cooling):
    X = np.random.default_rng(0).normal(size=(90, 3))
    problem = dual.all_distances(np.repeat([0, 1, 2], 30), 0.1)
    history, calls = reference_steps(problem, qp.rbf(X, 0.5), 30, 2e-3, cooling)
    assert len(history) == 30
    start = Gram(X, gamma=0.5, dtype="float64")
    problem.gradient(problem.start(), start)
    for t in (1, 2, 5, 20, len(history)):
        stop = Stop(1e-3, "paper", max_iter=t)
        found = SMO(cooling=cooling).solve(problem, Gram(X, gamma=0.5, dtype="float64"), stop=stop)
        np.testing.assert_allclose(found.u, history[t - 1], atol=1e-9)
    # A gradient may or may not equal another after rounding.
    assert found.n_kernel_calls - start.n_calls == pytest.approx(calls, rel=1e-3)


def test_the_selection_as_printed_pairs_the_argmin_only():
    X = np.random.default_rng(0).normal(size=(90, 3))
    problem = dual.all_distances(np.repeat([0, 1, 2], 30), 0.1)
    history, calls = reference_steps(problem, qp.rbf(X, 0.5), 17, 2e-3, 0.0, mirrored=False)
    both, _ = reference_steps(problem, qp.rbf(X, 0.5), 17, 2e-3, 0.0)
    assert len(history) == 17 and np.abs(history[-1] - both[-1]).max() > 1e-3
    # Then the two of a step that was not clipped are both the argmin, and rounding decides.
    start = Gram(X, gamma=0.5, dtype="float64")
    problem.gradient(problem.start(), start)
    for t in (1, 2, 5, 17):
        stop = Stop(1e-3, "paper", max_iter=t)
        found = SMO("paper").solve(problem, Gram(X, gamma=0.5, dtype="float64"), stop=stop)
        np.testing.assert_allclose(found.u, history[t - 1], atol=1e-9)
    assert found.n_kernel_calls - start.n_calls == pytest.approx(calls, rel=1e-3)


@pytest.mark.parametrize("rows", [4, 5, 20])
def test_the_selection_as_printed_finds_the_solution_with_a_small_cache(rows):
    X, _ = load_iris(return_X_y=True)
    problem, gram = iris_problem()
    small = Gram(X, gamma=0.5, dtype="float64", cache_bytes=rows * 150 * 8)
    found, other = (
        SMO("paper").solve(problem, small, stop=Stop(1e-8)),
        Batch().solve(problem, gram, stop=Stop(1e-8)),
    )
    assert found.status == "solved"
    assert found.objective == pytest.approx(other.objective, rel=1e-9)


@pytest.mark.parametrize("cooling", [0.0, 0.2, 1.0])
def test_cooling_changes_the_way_not_the_solution(cooling):
    problem, gram = iris_problem()
    found = SMO(cooling=cooling).solve(problem, gram, stop=Stop(1e-9))
    other = Batch().solve(problem, gram, stop=Stop(1e-9))
    assert found.status == "solved"
    assert found.objective == pytest.approx(other.objective, rel=1e-10)


def test_the_papers_rule_is_two_tau_in_every_class():
    problem, gram = iris_problem()
    found = SMO().solve(problem, gram, stop=Stop(1e-4, "paper"))
    least, most = problem.extremes(found.u, found.gradient)
    assert found.status == "solved"
    assert 0 < (most - least).max() <= 2e-4
    earlier = SMO().solve(problem, gram, stop=Stop(1e-4, "paper", max_iter=found.n_iter - 1))
    assert earlier.status == "max_iter"


def test_curvature_that_is_not_positive_becomes_a_small_number():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(10, 2)), 3, axis=0)
    y = np.tile([0, 1, 2], 10)  # equal points in all classes
    found = SMO().solve(dual.all_distances(y, 0.3), Gram(X, gamma=1.0, dtype="float64"), stop=Stop(1e-6))
    assert found.status == "solved"
    K = rng.normal(size=(30, 30))
    indefinite = Gram(K + K.T, kernel="precomputed", dtype="float64")
    found = SMO().solve(dual.all_distances(y, 0.3), indefinite, stop=Stop(1e-3, max_iter=10_000))
    assert np.isfinite(found.u).all()
    np.testing.assert_allclose(np.bincount(y, weights=found.u), 1.0)


@pytest.mark.parametrize("rows", [7, 8, 20])
def test_a_cache_of_few_rows_is_enough(rows):
    X, _ = load_iris(return_X_y=True)
    gram = Gram(X, gamma=0.5, dtype="float64", cache_bytes=rows * 150 * 8)
    problem, large = iris_problem()
    found = SMO().solve(problem, gram, stop=Stop(1e-6))
    assert found.objective == pytest.approx(SMO().solve(problem, large, stop=Stop(1e-6)).objective)


@pytest.mark.parametrize("cooling", [-0.1, 1.1, np.nan])
def test_cooling_outside_zero_to_one_is_refused(cooling):
    with pytest.raises(ValueError, match="cooling"):
        SMO(cooling=cooling)
