"""Bounds of rounding errors hold against long double, for every kernel."""

import numpy as np
import pytest
import scipy.sparse as sp

from badly_scaled import KINDS, data
from long_double import LONG, long_kernel
from maxmargin.gram.gram import Gram


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "laplacian", "sigmoid"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_sum_of_kernel_values_is_further_off_than_its_bound(kind, kernel, dtype, sparse):
    X = data(kind, 0)
    X = sp.csr_array(X * (np.random.default_rng(1).random(X.shape) < 0.3)) if sparse else X
    gram = Gram(X, kernel, gamma=0.5, coef0=1.0, dtype=dtype)
    coef = np.random.default_rng(2).normal(size=gram.n)
    all_ = np.arange(gram.n)
    true = long_kernel(X, kernel, 0.5, coef0=1.0) @ coef.astype(LONG)
    out = np.zeros(gram.n)
    gram.add(out, all_, coef)
    assert (np.abs(out - true) <= gram.bound(all_, all_, coef)).all()
    exact = gram.exact(all_, all_, coef)
    assert (np.abs(exact - true) <= gram.bound(all_, all_, coef, double=True)).all()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("kind", KINDS)
def test_kernel_values_of_distances_are_accurate_whatever_the_data(kind, kernel, sparse):
    X = data(kind, 0)
    given = sp.csr_array(X) if sparse else X
    gram = Gram(given, kernel, gamma=0.5, dtype="float64")
    true = long_kernel(X, kernel, 0.5)
    assert np.abs(gram.rows(np.arange(gram.n)) - true).max() <= (1e-8 if kernel == "rbf" else 1e-6)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "laplacian", "sigmoid", "precomputed", "own"])
def test_accurate_sums_survive_cancellation_that_float64_does_not(kernel, sparse):
    rng = np.random.default_rng(0)
    X = data("zero-or-huge", 0, n=40)
    if kernel == "precomputed":
        X = X @ X.T
    X = sp.csr_array(X) if sparse and kernel not in ("precomputed", "own") else X
    coef = rng.normal(size=40)
    coef[1::2] = -coef[::2]  # huge terms that nearly cancel
    own = (lambda A, B: A @ B.T) if kernel == "own" else kernel
    gram = Gram(X, own, gamma=1e-3, coef0=1.0, dtype="float64")
    all_ = np.arange(40)
    name = {"own": "linear", "precomputed": "linear"}.get(kernel, kernel)
    K = np.asarray(X, LONG) if kernel == "precomputed" else long_kernel(X, name, 1e-3, coef0=1.0)
    true = K @ coef.astype(LONG)
    size = np.abs(K) @ np.abs(coef).astype(LONG)
    error = np.abs(gram.accurate(all_, all_, coef, np.ones(len(coef))) - true)
    given = 1e-16 * size if kernel == "own" else 0.0  # values of one's own function are rounded already
    assert (error <= 4e-16 * np.abs(true) + 1e-18 * size + 1e-15 * np.abs(coef).sum() + given).all()


def test_rows_that_float32_cannot_hold_are_float64():
    X = np.array([[1e10, 0.0], [1e10, 1.0], [0.0, 1.0]])
    assert Gram(X, "linear", dtype="float32").dtype == np.float64
    assert Gram(X / 1e10, "linear", dtype="float32").dtype == np.float32


def test_kernel_values_beyond_float64_are_refused_with_advice():
    with pytest.raises(ValueError, match="too large for float64: scale the features"):
        Gram(np.full((3, 2), 1e120), "poly", gamma=1.0)
