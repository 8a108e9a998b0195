import numpy as np
import pytest

from maxmargin.solvers.c_path.starts import carried

WEIGHT = np.array([1.0, 2.0, 1.0, 1.0])


def test_variables_at_a_bound_are_exactly_at_the_new_one():
    u = np.array([[3.0, -6.0, 1.0, 0.0]])
    start = carried(u, 3.0, 7.0, WEIGHT)
    assert start[0, 0] == 7.0 and start[0, 1] == -14.0
    assert start[0, 2] == pytest.approx(7.0 / 3.0) and start[0, 3] == 0.0


def test_a_solution_with_nothing_at_a_bound_is_kept_where_C_grows():
    u = np.array([[1.0, -1.5, 0.5, 0.0]])
    np.testing.assert_array_equal(carried(u, 3.0, 30.0, WEIGHT), u)


def test_a_solution_is_scaled_where_C_falls():
    u = np.array([[1.0, -1.5, 0.5, 0.0]])
    np.testing.assert_allclose(carried(u, 3.0, 1.5, WEIGHT), 0.5 * u)


def test_every_fold_has_its_own_weights():
    u = np.array([[3.0, 0.0], [3.0, 0.0]])
    start = carried(u, 3.0, 6.0, np.array([[1.0, 1.0], [2.0, 1.0]]))
    assert start[0, 0] == 6.0  # at the bound
    np.testing.assert_array_equal(start[1], u[1])
