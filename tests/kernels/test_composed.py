"""Values of sums and products of kernels: rounding errors, precisions, distant rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from badly_scaled import KINDS, data
from long_double import LONG, long_kernel
from maxmargin.gram.gram import Gram
from maxmargin.kernels import laplacian, linear, of_products, poly, rbf, sigmoid
from maxmargin.kernels.kernel import Kernel

COEF0 = 1.0
# With the values in long double, from those of the named kernels with gamma = 0.5.
COMPOSED = {
    "sum": (rbf(0.5) + 0.1 * linear() + 2, lambda k: k("rbf") + LONG(0.1) * k("linear") + 2),
    "product": (
        3 * rbf(0.5) * (poly(3, 0.5, COEF0) + 1) * linear(),
        lambda k: 3 * k("rbf") * (k("poly") + 1) * k("linear"),
    ),
    "distances": (rbf(0.5) * laplacian(0.5) + rbf(0.5), lambda k: k("rbf") * k("laplacian") + k("rbf")),
    "sigmoid": (sigmoid(0.5, COEF0) * laplacian(0.5), lambda k: k("sigmoid") * k("laplacian")),
}


def true_values(X, formula):
    return formula(lambda name: long_kernel(X, name, 0.5, coef0=COEF0))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", COMPOSED)
@pytest.mark.parametrize("kind", KINDS)
def test_no_sum_of_kernel_values_is_further_off_than_its_bound(kind, kernel, dtype, sparse):
    X = data(kind, 0)
    X = sp.csr_array(X * (np.random.default_rng(1).random(X.shape) < 0.3)) if sparse else X
    function, formula = COMPOSED[kernel]
    gram = Gram(X, function, dtype=dtype)
    coef = np.random.default_rng(2).normal(size=gram.n)
    all_ = np.arange(gram.n)
    true = true_values(X, formula) @ coef.astype(LONG)
    out = np.zeros(gram.n)
    gram.add(out, all_, coef)
    assert (np.abs(out - true) <= gram.bound(all_, all_, coef)).all()
    exact = gram.exact(all_, all_, coef)
    assert (np.abs(exact - true) <= gram.bound(all_, all_, coef, double=True)).all()
    accurate = gram.accurate(all_, all_, coef, np.ones(gram.n))
    error = gram.accurate_bound(gram.bound(all_, all_, coef, double=True), np.abs(coef).sum())
    assert (np.abs(accurate - true) <= error + 2e-16 * np.abs(true)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", COMPOSED)
def test_the_bound_is_not_far_above_the_errors_of_plain_data(kernel, dtype):
    X = data("plain", 0)
    function, formula = COMPOSED[kernel]
    gram = Gram(X, function, dtype=dtype)
    coef = np.random.default_rng(2).normal(size=gram.n)
    all_ = np.arange(gram.n)
    size = np.sqrt(np.diag(true_values(X, formula)).astype(float))
    largest = size * (size @ np.abs(coef))
    assert (gram.bound(all_, all_, coef) <= 300 * np.finfo(dtype).eps * largest.max()).all()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_values_of_distances_are_accurate_whatever_the_data(kind, sparse):
    X = data(kind, 0)
    function, formula = COMPOSED["distances"]
    gram = Gram(sp.csr_array(X) if sparse else X, function)
    assert np.abs(gram.rows(np.arange(gram.n)) - true_values(X, formula)).max() <= 1e-6
    scaled = rbf(np.full(4, 0.5)) * laplacian(np.full(4, 0.5)) + rbf(0.5)
    again = Gram(sp.csr_array(X) if sparse else X, scaled)
    assert np.abs(again.rows(np.arange(gram.n)) - true_values(X, formula)).max() <= 1e-6


def test_a_named_kernel_alone_is_the_kernel_of_that_name():
    assert Kernel(rbf(0.3)) == Kernel("rbf", gamma=0.3)
    assert Kernel(poly(2, 0.3, 1.0), gamma=7.0) == Kernel("poly", gamma=0.3, degree=2, coef0=1.0)
    assert Kernel(rbf([0.3, 0.3])).name == rbf([0.3, 0.3])


def test_functions_have_float64_values_and_rows_of_the_precision_asked_for():
    X = data("plain", 0)
    kernel = of_products(lambda dot, xx, zz: (1.0 + dot) ** 2)
    gram = Gram(X, kernel, dtype="float32")
    assert gram.dtype == np.float32 and gram.points.X.dtype == np.float64
    expected = (1.0 + X @ X.T) ** 2
    assert gram.rows(np.arange(gram.n)) == pytest.approx(expected, rel=1e-7)
    all_ = np.arange(gram.n)
    assert gram.exact(all_, all_, np.ones(gram.n)) == pytest.approx(expected.sum(axis=1), rel=1e-14)
    assert gram.diag == pytest.approx(np.diag(expected), rel=1e-14)


def test_rows_beyond_the_range_are_refused_and_new_ones_are_far_from_all():
    X = 1e200 * np.array([[1.0, 1.0], [-1.0, 0.5], [0.0, 2.0]])
    with pytest.raises(ValueError, match="too large for float64: scale the features"):
        Gram(X, rbf(0.1) + laplacian(1.0))
    assert (rbf(0.1) + laplacian(1.0))([[1e200, 0.0]], [[0.0, 1.0], [2.0, 0.0]]).max() < 1e-300


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sparse", [False, True])
def test_tiles_rows_and_blocks_agree(dtype, sparse):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 40)) * (rng.random((1500, 40)) < 0.2)
    kernel = rbf(0.05) * (linear() + 1) + laplacian(0.1)
    gram = Gram(sp.csr_array(X) if sparse else X, kernel, dtype=dtype, cache_bytes=1 << 20)
    expected = kernel(X)
    some, columns = np.array([3, 1400, 77]), np.array([1, 1499, 700, 2])
    rel = 1e-5 if dtype == "float32" else 1e-12
    assert gram.rows(some) == pytest.approx(expected[some], rel=rel, abs=rel)
    assert gram.block(some, columns) == pytest.approx(expected[np.ix_(some, columns)], rel=rel, abs=rel)
    out, coef = np.zeros(1500), rng.normal(size=1500)
    gram.add(out, np.arange(1500), coef)
    assert out == pytest.approx(expected @ coef, rel=100 * rel, abs=1000 * rel)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", COMPOSED)
def test_accurate_sums_survive_cancellation_that_float64_does_not(kernel, sparse):
    rng = np.random.default_rng(0)
    X = data("zero-or-huge", 0, n=40)
    coef = rng.normal(size=40)
    coef[1::2] = -coef[::2]  # huge terms that nearly cancel
    function, formula = COMPOSED[kernel]
    gram = Gram(sp.csr_array(X) if sparse else X, function)
    all_ = np.arange(40)
    K = true_values(X, formula)
    true = K @ coef.astype(LONG)
    size = np.abs(K) @ np.abs(coef).astype(LONG)
    error = np.abs(gram.accurate(all_, all_, coef, np.ones(40)) - true)
    factor = 3e-16 if kernel == "product" else 1e-18  # values of a part are rounded, and multiplied by others
    assert (error <= 4e-16 * np.abs(true) + factor * size + 1e-15 * np.abs(coef).sum()).all()
