"""Coordinate descent for linear kernels with sparse samples of many features."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import dual
from maxmargin._compiled import limits
from maxmargin._compiled.limits import Limit
from maxmargin.gram import Gram
from maxmargin.solvers import Batch, Status, Stop, costs
from maxmargin.solvers.batch import coordinates, weights
from maxmargin.solvers.batch.coordinates import _slow, descend


def texts(n=1500, d=3000, seed=0):
    """Rows of unit length with a few of many features, some of which depend on the label."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.4, 1, -1)
    columns = (rng.pareto(1.0, size=(n, 15)) * 40).astype(int) % d
    columns[:, :3] = rng.integers(0, 100, size=(n, 3)) + np.where(y > 0, 0, 100)[:, None]
    X = sp.csr_matrix((rng.random(n * 15) + 0.5, columns.ravel(), np.arange(0, 15 * n + 1, 15)), shape=(n, d))
    X.sum_duplicates()
    X = sp.csr_matrix(sp.diags(1.0 / np.sqrt(X.multiply(X).sum(axis=1)).A1) @ X)
    y[rng.random(n) < 0.1] *= -1
    return X, y


def problems(n=1500):
    _, y = texts(n)
    t = np.random.default_rng(2).normal(size=n)
    return {
        "c_svc": dual.c_svc(y, C=1.0),
        "weighted": dual.c_svc(y, C=np.random.default_rng(1).random(n) + 0.1),
        "squared": dual.squared_c_svc(y, 1.0),
        "svr": dual.epsilon_svr(t, C=1.0, epsilon=0.1),
    }


@pytest.mark.parametrize("form", [sp.csr_matrix, lambda X: X.toarray()])
@pytest.mark.parametrize("name", list(problems(60)))
def test_a_few_passes_come_close_to_the_solution(name, form):
    X, _ = texts()
    problem, gram = problems()[name], Gram(form(X), "linear", n_jobs=1)
    u, passes = descend(problem, gram, problem.start(), 5e-4 / problem.scale, 1000)
    u = weights._with_sums(problem, u)
    assert problem.feasible(u) and 0 < passes < 150
    g = problem.exact_gradient(u, np.arange(problem.m), gram)
    assert problem.violation(u, g) <= 2e-3


@pytest.mark.parametrize("name", list(problems(60)))
def test_batch_takes_it_first_for_texts_and_certifies_the_result(name):
    X, _ = texts()
    problem = problems()[name]
    first = Batch().solve(problem, Gram(X, "linear", n_jobs=1))
    pairs = Batch(finish=None).solve(problem, Gram(X, "linear", n_jobs=1))
    assert first.status is pairs.status is Status.SOLVED
    assert first.n_iter < 0.5 * pairs.n_iter
    assert abs(first.objective - pairs.objective) <= first.gap + pairs.gap


@pytest.mark.parametrize("most", [1, 3])
def test_it_takes_no_more_passes_than_allowed(most):
    X, y = texts()
    problem, gram = dual.c_svc(y, C=1.0), Gram(X, "linear", n_jobs=1)
    assert descend(problem, gram, problem.start(), 1e-6, most)[1] == most
    solution = Batch().solve(problem, gram, stop=Stop(tol=1e-6, max_iter=most))
    assert solution.status is Status.MAX_ITER and solution.n_iter == most


def test_passes_without_an_active_variable_do_not_divide_by_zero():
    assert not _slow([np.inf, *[1.0] * 20, 0.0, 1.0], 1e-3)


def test_runs_repeat_exactly():
    X, y = texts()
    problem, gram = dual.c_svc(y, C=1.0), Gram(X, "linear", n_jobs=1)
    one, other = (descend(problem, gram, problem.start(), 1e-4, 1000)[0] for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_a_solution_as_start_takes_few_passes():
    X, y = texts()
    problem, gram = dual.c_svc(y, C=1.0), Gram(X, "linear", n_jobs=1)
    good = Batch().solve(problem, gram, stop=Stop(tol=1e-6)).u
    u, passes = descend(problem, gram, good, 1e-2, 1000)
    assert passes <= 6
    assert np.abs(u - good).max() < 0.05


def test_it_ends_early_where_it_is_slow():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3)) + 10.0  # nearly parallel rows
    y = np.where(X[:, 0] > 10.0, 1, -1)
    problem, gram = dual.c_svc(y, C=1e4), Gram(X, "linear", n_jobs=1)
    _, passes = descend(problem, gram, problem.start(), 1e-6, 1000)
    assert passes < costs.DESCENT_PASSES


def test_a_limit_ends_it():
    X, y = texts()
    problem, gram = dual.c_svc(y, C=1.0), Gram(X, "linear", n_jobs=1)
    with Limit(seconds=0.0):
        u, passes = descend(problem, gram, problem.start(), 1e-6, 1000)
    assert passes == 0 and not u.any()


def test_zero_rows_and_duplicates_do_no_harm():
    X, y = texts()
    X = sp.vstack([X, sp.csr_matrix((20, X.shape[1])), X[:30]], format="csr")
    y = np.concatenate([y, np.ones(20, int), -y[:30]])
    solution = Batch().solve(dual.c_svc(y, C=1.0), Gram(X, "linear", n_jobs=1))
    assert solution.status is Status.SOLVED and solution.violation <= 1e-3


def test_a_pass_over_millions_of_entries_leaves_the_main_thread_free_for_signals(monkeypatch):
    X, y = texts()
    threads, steps = [], coordinates._one_pass

    def watched(*given):
        threads.append(threading.current_thread())
        return steps(*given)

    monkeypatch.setattr(coordinates, "_one_pass", watched)
    monkeypatch.setattr(limits, "_SLICE", 1e3)
    monkeypatch.setattr(limits, "_CALL", 15 * 15.0 * len(y))  # less than the time of so many entries
    limit = Limit()
    limit.signals = True
    with limit:
        descend(dual.c_svc(y, C=1.0), Gram(X, "linear", n_jobs=1), np.zeros(len(y)), 1e-3, 1)
    assert threads and threading.main_thread() not in threads
