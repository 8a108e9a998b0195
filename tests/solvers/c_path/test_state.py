"""Bounds, sums and offsets of machines on a path."""

import numpy as np
import pytest

from maxmargin.dual.feasible import AT_BOUND
from maxmargin.solvers.c_path.state import Point, is_feasible, make_feasible, offset_of, snap

LO, HI = np.array([0.0, 0.0, -2.0, -2.0]), np.array([2.0, 2.0, 0.0, 0.0])


def test_what_rounding_leaves_beside_a_bound_is_put_on_it():
    u = np.array([2.0 * (1 - 1e-15), 1e-13, -2.0 * (1 - 1e-14), -1.0])
    snap(u, LO, HI, AT_BOUND)
    np.testing.assert_array_equal(u, [2.0, 0.0, -2.0, -1.0])


def test_in_a_wide_box_small_variables_are_not_taken_for_zero():
    u = np.array([1e-3, 2e-3, -3e-3])
    wide = np.full(3, 1e12)
    snap(u, -wide, wide, AT_BOUND)
    np.testing.assert_array_equal(u, [1e-3, 2e-3, -3e-3])


def test_the_offset_is_the_mean_gradient_of_the_free_variables():
    u, g = np.array([1.0, 2.0, -1.0, -2.0]), np.array([0.3, -5.0, 0.1, 4.0])
    assert offset_of(Point(u, g, LO, HI, 0.0)) == pytest.approx((0.2, 0.2))


@pytest.mark.parametrize("off", [0.0, 1e-15, 1e-14])
def test_without_free_variables_the_offset_is_the_middle_of_its_interval_whatever_rounding_does(off):
    u, g = np.array([2.0 - off, 2.0, -2.0, -2.0 + off]), np.array([-0.5, -3.0, 0.7, 2.0])
    snap(u, LO, HI, AT_BOUND)
    offset, violation = offset_of(Point(u, g, LO, HI, 0.0))
    assert offset == pytest.approx(0.5 * (-0.5 + 0.7))
    assert violation == pytest.approx(-0.5 - 0.7)


def test_with_a_kink_a_variable_at_zero_is_not_free():
    u, g = np.array([0.0, 2.0, -2.0]), np.array([0.1, -4.0, 4.0])
    lo, hi = np.full(3, -2.0), np.full(3, 2.0)
    offset, violation = offset_of(Point(u, g, lo, hi, 0.5))
    assert offset == pytest.approx(0.1)
    assert violation == pytest.approx(-1.0)


@pytest.mark.parametrize(
    "u", [[2.0, 0.0, -1.0, 0.0], [3.0, 0.0, -2.0, -1.0], [np.nan, 0.0, 0.0, 0.0], [-1.0, 1.0, 0.0, 0.0]]
)
def test_a_wrong_sum_or_box_is_seen_and_repaired(u):
    u = np.array(u)
    assert not is_feasible(u, LO, HI)
    make_feasible(Point(u, np.zeros(4), LO, HI, 0.0), 0.0)
    assert is_feasible(u, LO, HI)


def test_rounding_of_a_sum_is_no_violation():
    assert is_feasible(np.array([2.0 * (1 - 1e-14), 0.0, -2.0, 0.0]), LO, HI)
    assert is_feasible(np.zeros(4), LO, HI)
