"""Newton steps for the weights of a linear kernel."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import qp
from maxmargin import dual
from maxmargin._compiled.limits import Limit
from maxmargin.gram import Gram
from maxmargin.solvers import SMO, Batch, Rosen, Status, Stop, costs
from maxmargin.solvers.batch import weights
from maxmargin.solvers.batch.proximal import ProximalNewton
from maxmargin.solvers.batch.weights import newton_cost
from maxmargin.solvers.state import State


def labelled(n=3000, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.linspace(0.2, 3.0, d)
    y = np.where(X[:, 5] - X[:, 3] + X[:, 0] + rng.normal(size=n) > 0.5, 1, -1)
    return X, y


def problems(n=3000):
    X, y = labelled(n)
    weight = np.random.default_rng(1).random(n) * 3.0
    weight[:50] = 0.0
    t = X @ np.arange(6.0) + np.random.default_rng(2).normal(size=n)
    return {
        "c_svc": dual.c_svc(y, C=10.0),
        "weighted": dual.c_svc(y, C=2.0 * weight),
        "large C": dual.c_svc(y, C=1e4),
        "reduced hulls": dual.reduced_hulls(y, 4.0 / n),
        "one_class": dual.one_class(n, nu=0.2),
        "svr": dual.epsilon_svr(t, C=2.0, epsilon=0.5),
        "squared": dual.squared_c_svc(y, ridge=0.05),
        "squared, large C": dual.squared_c_svc(y, ridge=5e-5),
        "squared svr": dual.squared_epsilon_svr(t, ridge=0.5, epsilon=0.5),
        "penalised": dual.penalised_bias(dual.c_svc(y, C=10.0), 2.0),
        "penalised, squared": dual.penalised_bias(dual.squared_c_svc(y, ridge=0.05)),
        "penalised svr": dual.penalised_bias(dual.epsilon_svr(t, C=2.0, epsilon=0.5), 3.0),
    }


def begun(problem, gram, tol=1e-3):
    state = State(problem, gram, problem.start(), problem.gradient(problem.start(), gram), Stop(tol=tol))
    state.left, state.target = 10_000, tol / problem.scale
    return state


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("name", list(problems(100)))
def test_newton_steps_alone_solve_every_kind_of_problem(name, form):
    X, _ = labelled()
    if form == "sparse":
        X = sp.csr_matrix(np.where(np.random.default_rng(3).random(X.shape) < 0.4, X, 0.0))
    problem, gram = problems()[name], Gram(X, "linear", n_jobs=1)
    state = begun(problem, gram)
    assert np.isfinite(newton_cost(state, gram.features)) and weights._newton(state)
    assert problem.feasible(state.u)
    exact = problem.exact_gradient(state.u, np.arange(problem.m), gram)
    assert problem.violation(state.u, exact) <= 1e-3
    np.testing.assert_allclose(state.g, exact, rtol=0, atol=1e-9 * max(1.0, np.abs(exact).max()))
    assert 0 < state.n_iter < 200


def test_the_number_of_steps_hardly_depends_on_c():
    X, y = labelled()
    gram = Gram(X, "linear", n_jobs=1)
    steps = [
        ProximalNewton(p, gram).solve(p.start(), 5e-4 / p.scale, 1000)[1]
        for p in (dual.c_svc(y, C=C) for C in (0.1, 1e1, 1e3, 1e5))
    ]
    assert max(steps) < 150


@pytest.mark.parametrize("scale", [None, 0.1, 10.0])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e5])
def test_squared_slacks_take_few_steps_to_the_solution_of_pair_steps(C, scale):
    X, y = labelled(1500)
    X[:100], y[:100] = X[0], np.where(np.arange(100) % 3 == 0, 1, -1)
    gram, problem = Gram(X, "linear", n_jobs=1), dual.squared_c_svc(y, ridge=0.5 / C)
    problem = problem if scale is None else dual.penalised_bias(problem, scale)
    u, steps = ProximalNewton(problem, gram).solve(problem.start(), 1e-8, 100)
    assert steps < 25
    g = problem.gradient(u, gram)
    pairs = Rosen("conjugate") if C == 1e5 else SMO()
    rival = pairs.solve(problem, Gram(X, "linear", dtype="float64", n_jobs=1), stop=Stop(tol=1e-4))
    assert rival.status is Status.SOLVED and rival.gap <= 1e-4 * abs(rival.objective)
    assert problem.objective(u, g) - rival.objective <= 1e-9 * abs(rival.objective)
    assert rival.objective - problem.objective(u, g) <= rival.gap


@pytest.mark.parametrize("loss", ["hinge", "squared"])
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_a_penalised_bias_is_one_more_feature_without_a_sum(scale, loss):
    X, y = labelled(300, 6)
    plain = dual.c_svc(y, C=2.0) if loss == "hinge" else dual.squared_c_svc(y, ridge=0.25)
    u = qp.solve_qp(
        X @ X.T + scale**2 + np.diag(plain.ridge),
        plain.p,
        plain.lo,
        plain.hi,
        np.zeros((0, 300)),
        np.zeros(0),
    )
    problem = dual.penalised_bias(plain, scale)
    found, _ = ProximalNewton(problem, Gram(X, "linear", n_jobs=1)).solve(problem.start(), 1e-8, 300)
    np.testing.assert_allclose(X.T @ found[:-1], X.T @ u, atol=1e-5)
    assert found[-1] == pytest.approx(-u.sum(), abs=1e-4)


def test_batch_takes_them_first_where_features_are_few():
    X, y = labelled()
    problem = dual.c_svc(y, C=100.0)
    first = Batch().solve(problem, Gram(X, "linear", n_jobs=1))
    pairs = Batch(finish=None).solve(problem, Gram(X, "linear", n_jobs=1))
    assert first.status is pairs.status is Status.SOLVED
    assert first.n_iter < 200 < pairs.n_iter
    assert abs(first.objective - pairs.objective) <= first.gap + pairs.gap
    assert first.violation <= 1e-3


def test_a_warm_start_is_kept_if_it_is_better(monkeypatch):
    X, y = labelled()
    problem, gram = dual.c_svc(y, C=1.0), Gram(X, "linear", n_jobs=1)
    state = begun(problem, gram)
    good = Batch().solve(problem, gram).u
    state.u[:] = good
    state.g[:] = problem.gradient(good, gram)
    monkeypatch.setattr(ProximalNewton, "solve", lambda self, u, target, most: (np.zeros(len(u)), 1))
    assert weights._newton(state)
    np.testing.assert_array_equal(state.u, good)


def test_steps_that_fail_leave_the_state_as_it_is(monkeypatch):
    X, y = labelled()
    problem, gram = dual.c_svc(y, C=1.0), Gram(X, "linear", n_jobs=1)
    state = begun(problem, gram)

    def fail(self, u, target, most):
        raise np.linalg.LinAlgError

    for broken in (fail, lambda self, u, target, most: (np.full(len(u), np.nan), 1)):
        monkeypatch.setattr(ProximalNewton, "solve", broken)
        assert not weights._newton(state)
        assert not state.u.any()
        assert Batch().solve(problem, gram).status is Status.SOLVED  # by pair steps


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_features_of_very_different_scales_are_solved(scale):
    X, y = labelled()
    X[:, 2] *= scale
    X[::7, 3] = 0.0
    for problem in (
        dual.c_svc(y, C=1.0),
        dual.squared_c_svc(y, ridge=0.5),
        dual.penalised_bias(dual.c_svc(y)),
    ):
        solution = Batch().solve(problem, Gram(X, "linear", n_jobs=1), stop=Stop(max_iter=10**6))
        assert solution.gap >= 0 and np.isfinite(solution.gap)
        if scale < 1:
            assert solution.status is Status.SOLVED


def test_duplicates_constant_columns_and_zero_rows_do_no_harm():
    X, y = labelled(2000)
    X = np.column_stack([X, np.ones(2000), np.zeros(2000)])
    X[:600], y[:600] = X[0], np.where(np.arange(600) % 3 == 0, 1, -1)
    X[600:700] = 0.0
    squared = dual.squared_c_svc(y, ridge=0.05)
    for problem in (
        dual.c_svc(y, C=10.0),
        dual.penalised_bias(dual.c_svc(y)),
        squared,
        dual.penalised_bias(squared),
    ):
        solution = Batch().solve(problem, Gram(X, "linear", n_jobs=1))
        assert solution.status is Status.SOLVED and solution.violation <= 1e-3


def test_they_are_not_taken_where_the_problem_has_another_form():
    X, y = labelled(400)
    gram = Gram(X, "linear", n_jobs=1)
    several = dual.squared_c_svc(y, np.where(np.arange(400) < 9, 1.0, 2.0))
    for problem in (several, dual.penalised_bias(several), dual.c_svc(y, C=np.inf)):
        assert newton_cost(begun(problem, gram), gram.features) == np.inf
    assert Gram(X, "rbf", n_jobs=1).features is None


def test_a_tight_tolerance_is_reached():
    X, y = labelled()
    solution = Batch().solve(dual.c_svc(y, C=10.0), Gram(X, "linear", n_jobs=1), stop=Stop(tol=1e-8))
    assert solution.status is Status.SOLVED and solution.violation <= 1e-8


def test_a_limit_ends_them_between_two_steps():
    X, y = labelled(20_000)
    problem, gram = dual.c_svc(y, C=1e3), Gram(X, "linear", n_jobs=1)
    with Limit(seconds=0.0):
        u, steps = ProximalNewton(problem, gram).solve(problem.start(), 1e-6, 100)
    assert steps == 0 and len(u) == problem.m


def test_many_features_wait_for_the_pair_steps(monkeypatch):
    monkeypatch.setattr(costs, "PROXIMAL_AT_ONCE", 3)
    X, y = labelled()
    solution = Batch().solve(dual.c_svc(y, C=0.01), Gram(X, "linear", n_jobs=1))
    assert solution.status is Status.SOLVED and solution.n_iter > 200
