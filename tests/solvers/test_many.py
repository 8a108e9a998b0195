"""Several problems over one Gram matrix."""

import numpy as np
import pytest

from maxmargin import dual
from maxmargin._compiled.limits import Limit
from maxmargin.gram import Gram
from maxmargin.solvers import SMO, Batch, Stop
from maxmargin.solvers.many import Subproblem, Subproblems


def test_subproblems_are_made_once_and_iteration_over_them_ends():
    made = []
    problems = Subproblems(np.array([0, 5]), np.array([3, 5, 4]), lambda k: made.append(k) or f"problem {k}")
    assert sorted(made) == [0, 1]  # the first, and the largest
    assert list(problems) == ["problem 0", "problem 1", "problem 2"]
    assert list(problems) == [problems[0], problems[1], problems[2]]
    assert sorted(made) == [0, 1, 2]
    with pytest.raises(IndexError):
        problems[3]


def three_classes(sizes=(40, 30, 50), C=1.0, seed=0):
    """The Gram matrix of three classes, and the problems of their pairs."""
    rng = np.random.default_rng(seed)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    X = np.vstack([rng.normal(k, 1.0, (n, 3)) for k, n in enumerate(sizes)])
    pairs = [(0, 1), (0, 2), (1, 2)]

    def make(k):
        parts = [np.arange(bounds[c], bounds[c + 1]) for c in pairs[k]]
        problem = dual.c_svc(np.repeat([1, -1], [len(p) for p in parts]), C=C)
        return Subproblem(str(pairs[k]), problem, np.concatenate(parts), np.array(pairs[k]))

    n = np.array([sizes[a] + sizes[b] for a, b in pairs])
    return X, Subproblems(bounds, n, make)


def solved(solver, X, problems, **options):
    gram = Gram(X, gamma=0.5, dtype="float64")
    with Limit() as limit:
        return solver.solve_many(problems, gram, stop=Stop(1e-6), interrupt=limit, **options)


@pytest.mark.parametrize("solver", [SMO(), Batch(), Batch(working_set=16)])
def test_every_problem_has_the_solution_that_it_has_alone(solver):
    X, problems = three_classes()
    found = solved(solver, X, problems)
    assert sorted(found) == [0, 1, 2]
    for k, sub in enumerate(problems):
        alone = SMO().solve(sub.problem, Gram(X[sub.samples], gamma=0.5, dtype="float64"), stop=Stop(1e-6))
        assert abs(alone.objective - found[k].objective) <= alone.gap + found[k].gap + 1e-9
        assert found[k].status == "solved"


@pytest.mark.parametrize(
    ("solver", "engine"), [(SMO(), "loop"), (Batch(), "whole"), (Batch(working_set=16), "loop")]
)
def test_the_solver_chooses_the_engine_and_solutions_tell_which(solver, engine):
    found = solved(solver, *three_classes())
    assert {solution.engine for solution in found.values()} == {engine}


@pytest.mark.parametrize("solver", [SMO(), Batch()])
def test_observers_see_every_problem_and_change_nothing(solver):
    X, problems = three_classes()
    seen = {}

    def observe(name):
        seen[name] = []
        return seen[name].append

    watched, plain = solved(solver, X, problems, observe=observe), solved(solver, X, problems)
    assert set(seen) == {sub.name for sub in problems} and all(seen.values())
    for k in plain:
        np.testing.assert_array_equal(watched[k].u, plain[k].u)
        assert (watched[k].engine, watched[k].n_iter) == (plain[k].engine, plain[k].n_iter)


def test_problems_that_run_side_by_side_have_the_same_solutions(monkeypatch):
    from maxmargin.solvers import many

    X, problems = three_classes()
    one_by_one = solved(Batch(), X, problems, n_jobs=2)
    monkeypatch.setattr(many, "WORTH_A_TEAM", 0)
    together = solved(Batch(), X, problems, n_jobs=2)
    for k, solution in one_by_one.items():
        np.testing.assert_array_equal(together[k].u, solution.u)


def test_problems_that_were_not_begun_in_time_are_missing():
    X, problems = three_classes()
    gram = Gram(X, gamma=0.5)
    with Limit(seconds=0.0) as limit:
        while not limit.late:
            pass
        assert Batch().solve_many(problems, gram, stop=Stop(), interrupt=limit) == {}
