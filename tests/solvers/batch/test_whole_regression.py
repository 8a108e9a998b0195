"""Regressors of moderate size in one call."""

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.preprocessing import StandardScaler

from maxmargin import SVR, dual
from maxmargin.gram.gram import Gram
from maxmargin.solvers import Batch, Stop, costs
from maxmargin.solvers.batch.whole_regression import WholeRegression
from maxmargin.solvers.c_path import path as path_module


def data(n):
    X, y = make_friedman1(n, n_features=6, noise=1.0, random_state=0)
    return StandardScaler().fit_transform(X), (y - y.mean()) / y.std()


def attempt(problem, gram, stop, warm=None):
    n = gram.n
    machine = WholeRegression.over(gram, np.array([0, n]), [problem], stop)
    with gram.threads:
        return machine.attempt(problem, np.tile(np.arange(n), 2), np.zeros(2, np.intp), warm)


@pytest.mark.parametrize("n", [150, 700])
@pytest.mark.parametrize(("C", "epsilon"), [(1.0, 0.1), (300.0, 0.1), (10.0, 0.0), (10.0, 1.0)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_it_finds_the_solution_of_the_loop(n, C, epsilon, dtype):
    X, y = data(n)
    problem = dual.epsilon_svr(y, epsilon, C)
    exact = Gram(X, gamma=0.1, dtype="float64")
    found = attempt(problem, Gram(X, gamma=0.1, dtype=dtype), Stop(1e-3)).solution
    if found is None:  # float32 may be too rough: it says so, and is a good start
        assert dtype == "float32" and C == 300.0
        return
    expected = Batch().solve(problem, exact, stop=Stop(1e-3))
    slack = 1e-9 * abs(expected.objective)
    assert abs(found.objective - expected.objective) <= found.gap + expected.gap + slack
    assert found.violation <= 1e-3
    assert problem.violation(found.u, problem.gradient(found.u, exact)) <= 1e-3


def test_a_problem_that_takes_too_many_steps_goes_on_in_the_loop(monkeypatch):
    X, y = data(600)
    expected = SVR(C=100.0, tol=1e-5).fit(X, y)
    monkeypatch.setattr(costs, "REGRESSION_PATIENCE", 0)
    problem = dual.epsilon_svr(y, 0.1, 100.0)
    assert attempt(problem, Gram(X, gamma=0.1, dtype="float64"), Stop(1e-5)).solution is None
    model = SVR(C=100.0, tol=1e-5).fit(X, y)
    assert model.status_ == "solved"
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-4)


def test_a_start_at_the_solution_takes_no_steps():
    X, y = data(600)
    problem, gram = dual.epsilon_svr(y, 0.1, 10.0), Gram(X, gamma=0.1, dtype="float64")
    found = attempt(problem, gram, Stop(1e-4)).solution
    assert found.n_iter > 100 and found.engine == "path"
    assert attempt(problem, gram, Stop(1e-3), found.u).solution.n_iter == 0


def test_what_does_not_suit_is_left_alone():
    X, y = data(50)
    gram = Gram(X, gamma=0.1)
    bounds = np.array([0, 50])
    for problem in (
        dual.nu_svr(y),
        dual.squared_epsilon_svr(y),
        dual.epsilon_svr(y, C=np.inf),
        dual.c_svc(np.sign(y)),
    ):
        assert WholeRegression.over(gram, bounds, [problem], Stop()) is None
    problem = dual.epsilon_svr(y)
    assert WholeRegression.over(gram, bounds, [problem], Stop(max_iter=5)) is None
    assert WholeRegression.over(gram, bounds, [problem], Stop(criterion="gap")) is None
    assert WholeRegression.over(Gram(X, cache_bytes=0), bounds, [problem], Stop()) is None


@pytest.mark.parametrize("damage", ["sum", "box", "nan"])
@pytest.mark.parametrize("C", [1.0, 1e4])  # the latter without variables at C, from which a repair moves them
def test_a_machine_with_a_wrong_sum_or_box_is_not_reported_as_solved(monkeypatch, damage, C):
    X, y = data(600)
    problem, calls = dual.epsilon_svr(y, 0.1, C), []
    true = path_module.solve_regression

    def damaged(*arguments):
        beta, g, steps = true(*arguments)
        most, inner = np.argmax(beta), np.flatnonzero((beta != 0.0) & (np.abs(beta) < C))[0]
        by, out = 1e-8 * np.abs(beta).sum(), 1e-6 + C - beta[most]
        beta[[most, inner]] += {"sum": [0.0, by], "box": [out, -out], "nan": [0.0, np.nan]}[damage]
        calls.append(True)
        return beta, g, steps

    expected = SVR(gamma=0.5, C=C).fit(X, y)
    monkeypatch.setattr(path_module, "solve_regression", damaged)
    reached, solution = attempt(problem, Gram(X, gamma=0.5, dtype="float64"), Stop(1e-3))
    assert solution is None
    assert problem.feasible(reached)  # from where the loop goes on
    model = SVR(gamma=0.5, C=C).fit(X, y)
    assert model.status_ == "solved" and len(calls) == 2
    size = np.abs(model.dual_coef_).sum()
    assert abs(model.dual_coef_.sum()) <= 1e-10 * size and np.abs(model.dual_coef_).max() <= C
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=5e-3)
