from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, make_classification

from maxmargin import SVC, dual
from maxmargin._compiled import limits
from maxmargin._compiled.limits import Limit, Stopped, under
from maxmargin.gram.gram import Gram
from maxmargin.solvers import SMO, Batch, Rosen, Stop, costs
from maxmargin.solvers.precision import Precision, exact_entries, measured, near_boundary
from maxmargin.solvers.state import State


def overlapping(n, seed=0):
    X, y = make_classification(n, 8, n_informative=5, flip_y=0.1, random_state=seed)
    return X.astype(np.float32).astype(np.float64), np.where(y > 0, 1, -1)


def exact_gradient(problem, X, gamma, u):
    gram = Gram(X, gamma=gamma, dtype="float64")
    with gram.threads:
        return problem.gradient(u, gram)


@pytest.mark.parametrize("solver", [Batch(), SMO("second-order"), Rosen("conjugate")], ids=repr)
@pytest.mark.parametrize("tol", [1e-5, 1e-7, 1e-9])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_float32_rows_are_refined_to_any_tolerance_and_the_claim_holds_in_float64(solver, tol, C):
    X, y = overlapping(900)
    problem = dual.c_svc(y, C)
    solution = solver.solve(problem, Gram(X, gamma=0.1, dtype="float32"), stop=Stop(tol))
    assert solution.status == "solved"
    assert problem.violation(solution.u, exact_gradient(problem, X, 0.1, solution.u)) <= tol
    assert solution.violation <= tol


def test_refinement_needs_no_float64_rows(monkeypatch):
    X, y = overlapping(3000)
    monkeypatch.setattr(Gram, "double", lambda self: pytest.fail("float64 rows"))
    problem = dual.c_svc(y, 1.0)
    solution = Batch().solve(problem, Gram(X, gamma=0.1, dtype="float32"), stop=Stop(1e-8))
    assert solution.status == "solved"


@pytest.mark.parametrize(("n", "C", "gamma"), [(4000, 30.0, 5.0), (3000, 1000.0, 1.0)])
def test_entries_that_were_made_exact_are_not_judged_by_the_errors_of_the_others(n, C, gamma, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    y = np.where((X[:, 0] * X[:, 1] > 0) ^ (rng.random(n) < 0.1), 1.0, -1.0)
    problem, refreshed = dual.c_svc(y, C=C), []
    refresh = Precision._refresh
    monkeypatch.setattr(Precision, "_refresh", lambda self, some: (refreshed.append(1), refresh(self, some)))
    monkeypatch.setattr(Gram, "double", lambda *_: pytest.fail("float64 rows are not needed"))
    solution = Batch(finish=None).solve(problem, Gram(X, gamma=gamma))
    assert solution.status == "solved"
    assert refreshed
    exact = problem.exact_gradient(solution.u, np.arange(n), Gram(X, gamma=gamma, dtype="float64"))
    assert problem.violation(solution.u, exact) <= 1e-3
    assert problem.gap(solution.u, exact) <= solution.gap
    near = near_boundary(problem, solution.u, exact, 1e-3)
    assert (np.abs(solution.gradient - exact) <= solution.noise)[near].all()


@pytest.mark.parametrize("tol", [1e-5, 1e-8])
def test_the_gap_criterion_is_refined_too(tol):
    X, y = overlapping(1500, 1)
    problem = dual.c_svc(y, 10.0)
    solution = Batch().solve(problem, Gram(X, gamma=0.1, dtype="float32"), stop=Stop(tol, criterion="gap"))
    assert solution.status == "solved"
    assert problem.relative_gap(solution.u, exact_gradient(problem, X, 0.1, solution.u)) <= tol


@pytest.mark.parametrize("n", [600, 2500, 4500])  # float64 rows; small machines; large ones
def test_the_estimator_keeps_a_tight_tolerance_at_every_size(n):
    X, y = overlapping(n, 2)
    model = SVC(C=10.0, gamma=0.1, tol=1e-7).fit(X, y)
    assert model.status_ == "solved"
    problem = dual.c_svc(y, 10.0)
    u = np.zeros(n)
    u[model.support_] = model.dual_coef_[0]
    assert problem.violation(u, exact_gradient(problem, X, 0.1, u)) <= 1.01e-7


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-8])
def test_pair_steps_that_crawl_are_helped_by_gradient_projection(tol):
    X, y = load_breast_cancer(return_X_y=True)  # unscaled: very ill-conditioned
    helped = SVC(C=1e4, tol=tol).fit(X, y)
    alone = SVC(C=1e4, tol=tol, solver=Batch(finish=None)).fit(X, y)
    assert helped.status_ == alone.status_ == "solved"
    np.testing.assert_allclose(
        helped.decision_function(X), alone.decision_function(X), atol=max(1e-5, 50 * tol)
    )
    if tol < 1e-3:
        assert helped.n_iter_[0] < 0.5 * alone.n_iter_[0]


@pytest.mark.parametrize("solver", [Batch(), SMO("second-order")], ids=repr)
def test_the_rough_tolerance_is_never_taken_for_the_one_asked_for(solver):
    X, y = overlapping(900, 3)
    # At u = 0 nothing is rounded, and the violation is below what float32 rows are asked for at first.
    problem = replace(dual.c_svc(y, 1.0), p=4e-5 * y)
    solution = solver.solve(problem, Gram(X, gamma=0.1, dtype="float32"), stop=Stop(1e-6))
    assert solution.status == "solved"
    assert problem.violation(solution.u, exact_gradient(problem, X, 0.1, solution.u)) <= 1e-6


@pytest.mark.parametrize("refreshed", [False, True])
def test_a_sample_allows_for_the_error_of_the_values_that_it_is_compared_with(refreshed):
    # The gradient has the very errors of the values by which it is judged: the difference is 0.
    rng = np.random.default_rng(0)
    n = 900
    X = rng.normal(size=(n, 3)) + 1e3 * rng.integers(0, 2, size=(n, 3))
    y = np.where(rng.random(n) > 0.5, 1.0, -1.0)
    problem = dual.c_svc(y, C=1.0)
    u = problem.repair(np.where(rng.random(n) < 0.6, rng.random(n) * y, 0.0))
    assert n * np.count_nonzero(u) > costs.RECOMPUTE_ALWAYS
    # The linear kernel, without its weights.
    gram = Gram(X, kernel="poly", degree=1, gamma=1.0, dtype="float64")
    everything = np.arange(n)
    g = problem.exact_gradient(u, everything, gram)
    marked = rng.random(n) < 0.5 if refreshed else None
    found = measured(problem, u, g, gram, np.inf, 0.0, marked)
    assert found.exact is None
    Z = X.astype(np.longdouble)
    error = np.abs(g - (Z @ (Z.T @ u.astype(np.longdouble)) - problem.p)).astype(np.float64)
    assert error.max() > 0.0
    assert (error <= found.noise).all()
    # Not as if it was unknown, either: within a factor of what float64 values may be wrong by.
    assert found.noise.max() <= 10.0 * problem.rounding(u, everything, gram, double=True).max()


def test_the_gradient_of_a_linear_kernel_is_always_recomputed():
    rng = np.random.default_rng(0)
    n = 900
    X = rng.normal(size=(n, 3)) + 1e3 * rng.integers(0, 2, size=(n, 3))
    y = np.where(rng.random(n) > 0.5, 1.0, -1.0)
    problem = dual.c_svc(y, C=1.0)
    u = problem.repair(np.where(rng.random(n) < 0.6, rng.random(n) * y, 0.0))
    gram = Gram(X, kernel="linear", dtype="float32")
    g = problem.exact_gradient(u, np.arange(n), gram)
    found = measured(problem, u, g + rng.normal(size=n), gram, np.inf, 0.0)
    assert found.exact is not None
    Z = X.astype(np.longdouble)
    error = np.abs(found.exact - (Z @ (Z.T @ u.astype(np.longdouble)) - problem.p)).astype(np.float64)
    assert (error <= found.noise).all()


def test_twice_the_digits_are_not_used_after_the_end(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = 1e6 + rng.normal(size=(300, 5)), np.where(rng.random(300) < 0.5, 1.0, -1.0)
    problem, gram = dual.c_svc(y, 1.0), Gram(X, "linear", dtype="float64")
    u, some = problem.repair(0.5 * y), np.arange(300)
    calls = []
    accurate = Gram.accurate
    monkeypatch.setattr(Gram, "accurate", lambda *given: calls.append(1) or accurate(*given))
    g, error = exact_entries(problem, u, some, gram, 1e-6)
    assert calls
    calls.clear()
    monkeypatch.setattr(limits, "_SLICE", 10)
    with Limit(seconds=0.0) as limit:
        assert limit.over
        monkeypatch.setattr(limits, "check", lambda: None)
        rough, larger = exact_entries(problem, u, some, gram, 1e-6)
    assert not calls and (larger >= error).all()
    assert (np.abs(rough - g) <= larger + error).all()


def test_a_rough_solution_is_not_refined_after_the_end(monkeypatch):
    X, y = overlapping(300)
    problem, gram = dual.c_svc(y, 1.0), Gram(X, gamma=0.1, dtype="float32")
    u = problem.start()
    state = State(problem, gram, u, problem.gradient(u, gram), Stop(1e-8))
    precision = Precision(state)
    assert state.tol > state.stop.tol
    refined = []
    monkeypatch.setattr(Precision, "_refine", lambda *_: refined.append(1))
    with Limit(seconds=0.0):
        assert not precision.confirmed(lambda *_: True, 1.0)
    assert not refined
    assert not precision.confirmed(lambda *_: True, 1.0)
    assert refined


@pytest.mark.parametrize(("most", "measured"), [(100, True), (10, False)])
def test_rounding_of_a_run_that_is_late_is_measured_unless_it_is_large(most, measured, monkeypatch):
    monkeypatch.setattr(costs, "MEASURED_LATE", most)
    rng = np.random.default_rng(0)
    problem = dual.c_svc(np.where(rng.random(40) < 0.5, 1, -1), C=1.0)
    gram = Gram(rng.normal(size=(40, 3)), gamma=0.5)
    u = problem.start()
    state = State(problem, gram, u, problem.gradient(u, gram), Stop(1e-3))
    limit = Limit(0.0)
    assert limit.over
    limit._ended = -np.inf
    with under(limit):
        if measured:
            Precision(state).measure(quickly=True)
        else:
            with pytest.raises(Stopped):
                Precision(state).measure(quickly=True)
