"""The penalised bias, as one more variable of a problem with one sum."""

import numpy as np
import pytest

import qp
from maxmargin import dual
from maxmargin.gram.gram import Gram
from maxmargin.solvers import MDM, SMO, Batch, Rosen, Stop

SCALES = (0.1, 1.0, 10.0)


def data(seed, n=40):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] + 0.7 * rng.normal(size=n) > -0.5, 1.0, -1.0)


def optimum(problem, K, scale):
    """clarabel's optimal value of the problem over K + scale^2, without any sum."""
    Q = K + scale**2 + np.diag(problem.ridge)
    u = qp.solve_qp(Q, problem.p, problem.lo, problem.hi, np.zeros((0, problem.m)), np.zeros(0))
    return u, qp.objective(Q, problem.p, u)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("solver", [Batch(), SMO(), SMO("first-order"), Rosen()], ids=repr)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_optimum_is_that_of_the_kernel_with_a_constant_and_no_sum(loss, solver, scale):
    X, y = data(0)
    plain = dual.c_svc(y, C=2.0) if loss == "hinge" else dual.squared_c_svc(y, ridge=0.25)
    u, value = optimum(plain, qp.rbf(X), scale)
    problem = dual.penalised_bias(plain, scale)
    solution = solver.solve(problem, Gram(X, gamma=0.5, dtype="float64"), stop=Stop(1e-9))
    assert solution.status == "solved"
    assert solution.objective == pytest.approx(value, rel=1e-9)
    assert solution.u[:-1] == pytest.approx(u, abs=1e-6)
    assert -solution.offset[0] == pytest.approx(scale**2 * u.sum(), abs=1e-6)
    assert solution.gap >= solution.objective - value - 1e-12 * abs(value)
    assert solution.gap <= 1e-6


@pytest.mark.parametrize("scale", SCALES)
def test_the_gap_bounds_the_distance_to_the_optimum_at_any_point(scale):
    X, y = data(1, 12)
    K, rng = qp.rbf(X), np.random.default_rng(0)
    for plain in (dual.c_svc(y, C=3.0), dual.squared_c_svc(y, ridge=0.1)):
        value = optimum(plain, K, scale)[1]
        problem = dual.penalised_bias(plain, scale)
        for _ in range(20):
            u = problem.repair(rng.normal(size=problem.m))
            g = qp.dense_q(problem, K) @ u - problem.p
            assert problem.gap(u, g) >= problem.objective(u, g) - value - 1e-9 * abs(value)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("scale", SCALES)
def test_the_point_of_least_norm_is_a_multiple_of_the_solution(scale, ridge):
    X, y = data(2, 30)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)  # separable: there is a hard margin
    gram = Gram(X, gamma=0.5, dtype="float64")
    hull = dual.minimum_norm(y, ridge, scale=scale)
    nearest = MDM(accelerate=True).solve(hull, gram, stop=Stop(1e-9, max_iter=10**7))
    problem = dual.penalised_bias(dual.squared_c_svc(y, ridge) if ridge else dual.c_svc(y, C=np.inf), scale)
    solution = Batch().solve(problem, gram, stop=Stop(1e-9))
    square = hull.square(nearest.u, nearest.gradient)
    assert y * nearest.u / square == pytest.approx(solution.u[:-1], abs=1e-5)
    assert 0.5 / square == pytest.approx(-solution.objective, rel=1e-7)


def test_the_gap_of_a_hard_margin_is_finite_and_a_bound():
    X, _ = data(3, 12)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    K = qp.rbf(X)
    problem = dual.penalised_bias(dual.c_svc(y, C=np.inf))
    best = Batch().solve(problem, Gram(X, gamma=0.5, dtype="float64"), stop=Stop(1e-10))
    assert 0 <= best.gap <= 1e-6 * abs(best.objective)
    for factor in (0.5, 0.9, 0.99):
        u = problem.repair(factor * best.u)
        g = qp.dense_q(problem, K) @ u - problem.p
        gap = problem.gap(u, g)
        assert problem.objective(u, g) - best.objective - best.gap <= gap < np.inf


def test_margins_below_zero_have_no_finite_gap():
    problem = dual.penalised_bias(dual.c_svc([1.0, -1.0], C=np.inf))
    u = problem.repair([1.0, -1.0, 0.0])
    K = np.ones((2, 2))  # equal points with opposite labels
    assert problem.gap(u, qp.dense_q(problem, K) @ u - problem.p) == np.inf


def test_the_offset_is_the_gradient_of_the_variable_of_the_bias_even_where_others_are_free():
    problem = dual.penalised_bias(dual.c_svc([1.0, -1.0, 1.0], C=1.0), scale=3.0)
    u = problem.repair([0.5, -0.25, 1.0, 0.0])
    g = np.array([0.3, -0.1, 0.0, problem.ridge[-1] * u[-1]])
    assert problem.offset(u, g) == -9.0 * 1.25


def test_repair_gives_the_bias_what_the_samples_say():
    problem = dual.penalised_bias(dual.c_svc([1.0, -1.0, 1.0], C=1.0))
    assert problem.repair([0.5, -0.25, 7.0, 99.0]).tolist() == [0.5, -0.25, 1.0, -1.25]


@pytest.mark.parametrize("scale", [0.0, np.inf, np.nan, 1e200])
def test_impossible_scales_are_refused(scale):
    with pytest.raises(ValueError, match="scale of the bias must be positive"):
        dual.penalised_bias(dual.c_svc([1, -1]), scale)
    with pytest.raises(ValueError, match="scale of the bias must be positive"):
        dual.minimum_norm([1, -1], scale=scale)


@pytest.mark.parametrize(
    "problem", [dual.one_class(4), dual.nearest_points([1, -1]), dual.nu_svr([0.0, 1.0], nu=0.5, C=1.0)]
)
def test_problems_with_another_sum_are_refused(problem):
    with pytest.raises(ValueError, match=f"one sum, which is 0: '{problem.name}' is another one"):
        dual.penalised_bias(problem)


def test_only_penalised_problems_say_so():
    for kind in qp.KINDS:
        problem, _, _ = qp.random_problem(kind, 0)
        assert problem.penalised == kind.startswith("penalised"), kind
        assert problem.one_hull == (kind == "minimum_norm"), kind
