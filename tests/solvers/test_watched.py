"""What a watched solver does."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from maxmargin import SVC, dual
from maxmargin.gram.gram import Gram
from maxmargin.inspection import Watched
from maxmargin.solvers import Stop, get

X, Y = make_moons(150, noise=0.2, random_state=0)


def solved(solver, tol=1e-6):
    gram = Gram(X, "rbf", gamma=1.0, dtype="float64", n_jobs=1)
    return solver.solve(dual.nearest_points(2.0 * Y - 1, ridge=0.1), gram, stop=Stop(tol))


@pytest.mark.parametrize("name", ["smo-first-order", "mdm"])
def test_a_watched_first_order_solver_makes_the_same_steps(name):
    plain, seen = solved(get(name)), solved(Watched(name))
    assert seen.n_iter == plain.n_iter > 100
    np.testing.assert_allclose(seen.u, plain.u, atol=1e-12)


@pytest.mark.parametrize("name", ["smo", "mdm-accelerated", "npa", "batch", "rosen-conjugate"])
def test_a_watched_solver_finds_the_same_solution(name):
    plain, seen = solved(get(name)), solved(Watched(name))
    assert seen.status == plain.status == "solved"
    assert seen.objective - plain.objective <= seen.gap + 1e-12


def test_records_are_evenly_spaced_in_the_logarithm_of_iterations():
    iterations = np.array([record.n_iter for record in solved(Watched("mdm")).trace])
    assert len(iterations) > 5 * len(solved(get("mdm")).trace)
    steps = np.diff(iterations)
    assert (steps <= np.maximum(1, 0.2 * iterations[:-1])).all()
    assert (steps[:-1] >= np.maximum(1, 0.2 * iterations[:-2] - 1)).all()


def test_all_that_a_solver_can_do_is_passed_on():
    solver = Watched("mdm", pace=0.5)
    assert not solver.accepts(dual.c_svc(2.0 * Y - 1)) and solver.accepts(dual.nearest_points(2.0 * Y - 1))
    assert repr(solver) == "Watched(MDM(accelerate=False, selection='margin'))"
    gram = Gram(X, "rbf", gamma=1.0, dtype="float64", n_jobs=1)
    problem = dual.nearest_points(2.0 * Y - 1, ridge=0.1)
    rule = [get("mdm"), solver]
    paper = [one.solve(problem, gram, stop=Stop(1e-3, "paper")).n_iter for one in rule]
    assert paper[0] == paper[1] > 0
    assert SVC(solver=Watched("batch")).fit(X, Y).status_ == "solved"


def test_a_pace_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="pace must be positive, got 0"):
        Watched("smo", pace=0)
