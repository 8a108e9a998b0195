"""Properties that follow from the parts of a problem."""

import numpy as np
import pytest

from maxmargin import dual
from maxmargin.gram import Gram

X = np.random.default_rng(0).normal(size=(60, 3))


@pytest.mark.parametrize("order", ["first", "second", "mixed"])
def test_a_problem_without_signs_has_the_same_objective_gradient_and_certificate(order):
    y = {"first": np.repeat([1.0, -1.0], 30), "second": np.repeat([-1.0, 1.0], 30)}.get(
        order, np.where(np.arange(60) % 2, 1.0, -1.0)
    )
    problem = dual.reduced_hulls(y, mu=np.random.default_rng(1).uniform(0.05, 0.1, 60))
    plain, signs, gram = problem.without_signs, problem.signs, Gram(X, gamma=0.5, dtype="float64")
    assert plain.plain and plain.without_signs is plain
    u = problem.repair(np.random.default_rng(2).uniform(0.0, 0.1, 60))
    assert plain.feasible(signs * u)
    g, h = problem.gradient(u, gram), plain.gradient(signs * u, gram)
    np.testing.assert_allclose(signs * h, g, atol=1e-14)
    assert plain.objective(signs * u, h) == pytest.approx(problem.objective(u, g))
    assert plain.violation(signs * u, h) == pytest.approx(problem.violation(u, g))
    assert plain.gap(signs * u, h, 1e-6) == pytest.approx(problem.gap(u, g, 1e-6))
    np.testing.assert_allclose(plain.offset(signs * u, h) * [1, -1], problem.offset(u, g))
    np.testing.assert_allclose(signs * plain.start(), problem.start())


def test_signs_within_a_group_or_none_at_all_cannot_be_left_out():
    y = np.repeat([1.0, -1.0], 30)
    assert dual.minimum_norm(y).without_signs is None
    assert dual.all_distances(np.arange(60) % 3, mu=0.2).without_signs is None
    same = dual.c_svc(y)
    assert same.without_signs is same


def test_ranges_are_those_of_groups_whose_variables_follow_each_other():
    y = np.repeat([-1.0, 1.0], [20, 40])
    np.testing.assert_array_equal(dual.reduced_hulls(y, mu=0.1).ranges, [0, 20, 60])
    np.testing.assert_array_equal(dual.c_svc(y).ranges, [0, 60])
    assert dual.reduced_hulls(np.where(np.arange(60) % 2, 1.0, -1.0), mu=0.1).ranges is None
