import numpy as np
import pytest

import qp
from maxmargin import dual
from maxmargin.gram.gram import Gram
from maxmargin.solvers import DirectSVM, GeometricSVM, Stop

every_solver = pytest.mark.parametrize("make", [GeometricSVM, DirectSVM])


def data(n, seed=0, apart=1.5):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    return rng.normal(size=(n, 2)) + apart * y[:, None], y


@every_solver
def test_only_the_squared_hinge_is_accepted(make):
    assert make().accepts(dual.squared_c_svc([1, -1], 1.0))
    assert not make().accepts(dual.c_svc([1, -1], 1.0))
    assert not make().accepts(dual.one_class_l2(4, 1.0))


@every_solver
def test_where_nothing_blocks_the_exact_solution_is_found(make):
    X, y = data(60)
    problem = dual.squared_c_svc(y, 10.0)  # nearly all are support vectors: nothing to drop
    gram = Gram(X, gamma=0.5, dtype="float64")
    solution = make().solve(problem, gram, stop=Stop(1e-8))
    assert solution.status == "solved"
    assert solution.objective == pytest.approx(qp.reference(problem, qp.rbf(X))[1], rel=1e-8)
    assert solution.details["wrong"] == 0


@every_solver
def test_where_it_fails_it_says_so_and_leaves_a_feasible_point(make):
    X, y = data(80, apart=0.2)
    problem = dual.squared_c_svc(y, 1e-3)
    solution = make(restarts=1).solve(problem, Gram(X, gamma=0.5, dtype="float64"), stop=Stop(1e-3))
    assert solution.status == "stalled"
    assert solution.details == {"restarts": 1, "wrong": pytest.approx(40, abs=40)}
    assert solution.details["wrong"] > 0
    qp.assert_feasible(problem, solution.u, 1e-9)


def test_direct_computes_what_geometric_keeps():
    X, y = data(60)
    problem = dual.squared_c_svc(y, 10.0)
    evals = {}
    for make in (GeometricSVM, DirectSVM):
        evals[make] = make().solve(problem, Gram(X, gamma=0.5, dtype="float64")).n_kernel_evals
    assert evals[DirectSVM] > 5 * evals[GeometricSVM]
