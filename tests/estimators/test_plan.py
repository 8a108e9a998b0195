"""The plan of a fit: precision, budgets and tolerance, decided before the first step."""

import numpy as np
import pytest

from maxmargin import SVC, SVR, dual
from maxmargin.estimators._plan import Plan
from maxmargin.solvers.many import Subproblems


def of(estimator, problem, n, **options):
    return Plan.of(estimator, Subproblems.one(problem, n), **options)


def c_svc(n, C=1.0):
    return dual.c_svc(np.repeat([-1, 1], n // 2), C=C)


@pytest.mark.parametrize(("n", "dtype"), [(256, "float64"), (258, "float32")])
def test_rows_of_small_problems_are_float64(n, dtype):
    assert of(SVC(), c_svc(n), n).dtype == dtype


@pytest.mark.parametrize(("n", "dtype"), [(512, "float64"), (514, "float32")])
def test_rows_of_other_small_problems_are_float64_longer(n, dtype):
    assert of(SVC(solver="smo"), c_svc(n), n).dtype == dtype
    assert of(SVC(), dual.squared_c_svc(np.repeat([-1, 1], n // 2), 0.5), n).dtype == dtype
    several = Subproblems(np.array([0, n]), np.array([n, n]), lambda k: Subproblems.one(c_svc(n), n)[0])
    assert Plan.of(SVC(), several).dtype == dtype


@pytest.mark.parametrize(("options", "C"), [({"tol": 1e-5}, 1.0), ({}, 1e6)])
def test_rows_of_larger_problems_are_float64_where_float32_is_too_rough(options, C):
    assert of(SVC(**options), c_svc(1000, C), 1000).dtype == np.float64
    assert of(SVC(**options), c_svc(3000, C), 3000).dtype == np.float32


def test_the_rows_of_paired_variables_count_once():
    y = np.zeros(250)
    problem = dual.epsilon_svr(y, 0.1, 1.0)
    assert problem.m == 500
    assert of(SVR(), problem, 250).dtype == np.float64


def test_float64_rows_can_be_asked_for():
    assert of(SVC(), c_svc(3000), 3000, double=True).dtype == np.float64


def test_two_hulls_share_the_tolerance():
    y = np.repeat([-1, 1], 10)
    assert of(SVC(tol=0.01), dual.nearest_points(y), 20).stop.tol == 0.005
    assert of(SVC(tol=0.01), c_svc(20), 20).stop.tol == 0.01


def test_budgets_are_those_of_the_estimator():
    plan = of(SVC(cache_size=3, max_iter=7, n_jobs=1), c_svc(20), 20)
    assert (plan.cache_bytes, plan.stop.max_iter, plan.n_jobs) == (3 << 20, 7, 1)
    assert of(SVC(), c_svc(20), 20).stop.max_iter is None


def test_a_plan_can_be_printed():
    assert "dtype=dtype('float64')" in repr(of(SVC(), c_svc(20), 20))
