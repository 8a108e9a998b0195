"""Given kernel values are read in place, in any order and precision, and only where they are needed."""

import numpy as np
import pytest

from maxmargin._compiled.threads import Threads
from maxmargin.kernels.expansion import expand
from maxmargin.kernels.given import Given, as_floats
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.points import Points

RNG = np.random.default_rng(0)
ROWS, COLUMNS = np.array([3, 0, 7]), np.array([5, 5, 2, 9])


def symmetric(n=12):
    A = RNG.normal(size=(n, n))
    return A + A.T


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_symmetric_matrix_is_not_copied(order, dtype):
    K = np.array(symmetric(), dtype=dtype, order=order)
    given = Given.of_training(K)
    assert np.shares_memory(given.K, K) and given.dtype == dtype and given.K.flags.c_contiguous
    np.testing.assert_array_equal(given.block(ROWS, COLUMNS), K[np.ix_(ROWS, COLUMNS)])


@pytest.mark.parametrize("n", [12, 300])
def test_an_asymmetric_matrix_is_the_same_in_either_order(n):
    K = RNG.normal(size=(n, n))
    got = Given.of_training(np.asfortranarray(K)).block(ROWS, COLUMNS)
    np.testing.assert_array_equal(got, K[np.ix_(ROWS, COLUMNS)])


def test_one_huge_value_does_not_hide_an_asymmetry():
    K = symmetric(80)
    K[0, 0], K[4, 7] = 1e6, K[4, 7] + 0.2
    got = Given.of_training(np.asfortranarray(K)).block(ROWS, COLUMNS)
    np.testing.assert_array_equal(got, K[np.ix_(ROWS, COLUMNS)])
    given = Given.of_training(np.asfortranarray(K))
    assert given.block(np.array([4]), np.array([7]))[0, 0] == K[4, 7]


def test_a_matrix_that_is_symmetric_but_for_rounding_is_read_by_columns():
    K = np.asfortranarray(symmetric(300))
    K[3, 5] *= 1 + 1e-15
    given = Given.of_training(K)
    assert np.shares_memory(given.K, K)
    assert given.block(np.array([5]), np.array([3]))[0, 0] == K[3, 5]


def test_a_slice_and_integers_have_their_values():
    K = symmetric(24)
    part = Given.of_training(K[::2, ::2])
    np.testing.assert_array_equal(part.block(ROWS, COLUMNS), K[::2, ::2][np.ix_(ROWS, COLUMNS)])
    assert as_floats(np.eye(3, dtype=int)).dtype == np.float64


def test_a_read_only_matrix_is_read_and_stays_so():
    K = symmetric()
    K.flags.writeable = False
    np.testing.assert_array_equal(Given.of_training(K).block(ROWS, COLUMNS), K[np.ix_(ROWS, COLUMNS)])
    assert not K.flags.writeable


def test_rows_of_rows_are_found_through_both_numbers():
    K = symmetric()
    outer, inner = np.array([4, 8, 1, 0]), np.array([2, 3])
    given = Given.of_training(K, outer)[inner]
    at = outer[inner]
    assert given.shape == (2, 12) and given.table(np.dtype("f8")) is None
    np.testing.assert_array_equal(given.block(np.arange(2), np.arange(2)), K[np.ix_(at, at)])
    np.testing.assert_array_equal(given.diagonal(), K[at, at])


def test_only_values_that_are_asked_for_are_read():
    K = np.full((6, 6), np.nan)
    K[np.ix_([1, 4], [2, 3])] = 1.0
    given = Given.of_training(K)
    assert np.isfinite(given.block(np.array([1, 4]), np.array([3, 2]))).all()
    assert np.isfinite(given.sums(np.array([1, 4]), np.array([3, 2]), np.ones(2))).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_are_those_of_the_values_as_they_are_given(dtype):
    K = symmetric(60).astype(dtype)
    coef = RNG.normal(size=4)
    got = Given.of_training(K).sums(ROWS, COLUMNS, coef)
    np.testing.assert_allclose(got, K.astype(np.float64)[np.ix_(ROWS, COLUMNS)] @ coef, rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_train", [40, 5000])
def test_expansions_over_given_values_need_no_copy_in_another_order(n_train, order, dtype):
    K = np.array(RNG.normal(size=(30, n_train)), dtype=dtype, order=order)
    support = RNG.permutation(n_train)[:20]
    coef = RNG.normal(size=(2, 20))
    vectors = Points(Given(np.empty((0, n_train), dtype), support), 20)
    got = expand(Kernel("precomputed"), K, vectors, coef, np.array([0, 8, 20]), threads=Threads(1))
    values, rtol = K[:, support].astype(np.float64), 1e-4 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(got[0], values[:, :8] @ coef[:, :8].T, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(got[1], values[:, 8:] @ coef[:, 8:].T, rtol=rtol, atol=rtol)
