"""Kernel values from products and distances, against long double."""

import numpy as np
import pytest

from long_double import LONG
from maxmargin.gram.gram import Gram
from maxmargin.kernels._form import LAPLACIAN, LINEAR, POLY, SIGMOID
from maxmargin.kernels._tiles import transform

TYPES = ["float32", "float64"]


def transformed(kind, x, dtype, *, slope=1.0, shift=0.0, degree=1):
    tile = np.asarray(x, dtype=dtype).reshape(1, -1)
    out = np.full_like(tile, 9.0)
    number = tile.dtype.type
    transform(kind, tile, number(slope), number(shift), degree, out, np.zeros(1, np.intp), 0)
    return tile[0], out[0]


def units(got, true):
    """Relative error in units in the last place."""
    unit = np.finfo(got.dtype).eps / 2
    error = np.abs(got.astype(LONG) - true)
    return float(np.max(error / np.maximum(np.abs(true), np.finfo(got.dtype).tiny)) / unit)


@pytest.mark.parametrize("dtype", TYPES)
def test_tanh_has_the_relative_precision_of_its_type_from_zero_to_saturation(dtype):
    rng = np.random.default_rng(0)
    size = np.concatenate([10.0 ** rng.uniform(-30, 2, 20_000), np.linspace(1e-3, 25.0, 20_000)])
    x, got = transformed(SIGMOID, np.concatenate([size, -size]), dtype)
    assert units(got, np.tanh(x.astype(LONG))) < 6


@pytest.mark.parametrize("dtype", TYPES)
def test_tanh_keeps_zero_infinity_and_nan(dtype):
    _, got = transformed(SIGMOID, [0.0, np.inf, -np.inf, np.nan, 1e30, -1e30], dtype)
    np.testing.assert_array_equal(got, [0.0, 1.0, -1.0, np.nan, 1.0, -1.0])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("degree", [0, 1, 2, 3, 4, 5, 6, 7, 16, 31])
def test_a_power_loses_about_one_unit_per_factor(degree, dtype):
    x, got = transformed(POLY, np.random.default_rng(1).normal(size=999), dtype, degree=degree)
    assert units(got, x.astype(LONG) ** degree) <= max(degree, 0.1)


@pytest.mark.parametrize("degree", [2, 3, 4, 9])
def test_a_power_beyond_the_range_is_infinite_with_its_sign(degree):
    _, got = transformed(POLY, [1e38, -1e38, 0.0], "float32", degree=degree)
    np.testing.assert_array_equal(got, [np.inf, (-1.0) ** degree * np.inf, 0.0])


def test_the_largest_power_in_range_does_not_overflow_on_the_way():
    _, got = transformed(POLY, [1e4], "float32", degree=9)
    assert np.isfinite(got).all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", [LINEAR, POLY, SIGMOID])
def test_products_are_scaled_and_shifted_first(kind, dtype):
    x, got = transformed(kind, [-2.0, 0.5, 3.0], dtype, slope=0.25, shift=0.5, degree=3)
    inner = 0.25 * x + (0.0 if kind == LINEAR else 0.5)
    expected = {LINEAR: inner, POLY: inner**3, SIGMOID: np.tanh(inner)}[kind]
    np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize("kind", [LINEAR, POLY, SIGMOID, LAPLACIAN])
def test_only_the_asked_place_is_written_and_the_tile_is_not(kind):
    tile = np.random.default_rng(2).random((2, 3))
    before, out = tile.copy(), np.full((4, 6), -9.0)
    transform(kind, tile, -1.0, 0.0, 4, out, np.array([3, 1]), 2)
    np.testing.assert_array_equal(tile, before)
    assert (out[[1, 3], 2:5] != -9.0).all()
    assert (out != -9.0).sum() == 6


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("degree", [0, 1, 2, 3, 4, 5, 12])
def test_sums_of_powers_are_within_their_bound(degree, dtype):
    X = np.random.default_rng(3).normal(size=(50, 7))
    gram = Gram(X, "poly", gamma=0.4, coef0=-0.5, degree=degree, dtype=dtype)
    coef, all_ = np.random.default_rng(4).normal(size=50), np.arange(50)
    inner = LONG(0.4) * (X.astype(LONG) @ X.astype(LONG).T) - LONG(0.5)
    true = inner**degree @ coef.astype(LONG)
    out = np.zeros(50)
    gram.add(out, all_, coef)
    assert (np.abs(out - true) <= gram.bound(all_, all_, coef)).all()
