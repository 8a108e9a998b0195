"""Kernels as objects: their algebra, values, copies and errors."""

import copy
import math
import pickle

import numba as nb
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import pairwise

from maxmargin import SVC
from maxmargin.kernels import exp, laplacian, linear, of_products, of_rows, poly, rbf, sigmoid
from maxmargin.kernels.functions import opaque


def gaussian(dot, xx, zz):
    return math.exp(-0.2 * (xx + zz - 2.0 * dot))


def quick_gaussian(dot, xx, zz):
    return exp(-0.2 * (xx + zz - 2.0 * dot))


def common(x, z):
    total = 0.0
    for k in range(len(x)):
        total += min(x[k], z[k])
    return total


@nb.njit
def compiled_gaussian(dot, xx, zz):
    return np.exp(-0.2 * (xx + zz - 2.0 * dot))


def rows(n=40, d=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


A, B = rows(31), rows(43, seed=1)
GAMMAS = np.array([0.1, 0.0, 0.3, 2.0, 0.7])
NAMED = [
    (linear(), A @ B.T),
    (poly(2, 0.5, 1.0), pairwise.polynomial_kernel(A, B, 2, 0.5, 1.0)),
    (poly(5, 0.5), pairwise.polynomial_kernel(A, B, 5, 0.5, 0.0)),
    (sigmoid(0.1, -0.3), pairwise.sigmoid_kernel(A, B, 0.1, -0.3)),
    (rbf(0.2), pairwise.rbf_kernel(A, B, 0.2)),
    (laplacian(0.2), pairwise.laplacian_kernel(A, B, 0.2)),
]
KERNELS = [
    *NAMED,
    (rbf(GAMMAS), pairwise.rbf_kernel(A * np.sqrt(GAMMAS), B * np.sqrt(GAMMAS), 1.0)),
    (laplacian(GAMMAS), pairwise.laplacian_kernel(A * GAMMAS, B * GAMMAS, 1.0)),
    (rbf(0.1) + 0.5 * linear(), pairwise.rbf_kernel(A, B, 0.1) + 0.5 * (A @ B.T)),
    (
        rbf(0.1) * laplacian(0.3) + 1,
        pairwise.rbf_kernel(A, B, 0.1) * pairwise.laplacian_kernel(A, B, 0.3) + 1,
    ),
    (
        2 * (linear() + 3) * poly(2) * (rbf(GAMMAS) + rbf(1.0)),
        2 * (A @ B.T + 3) * (A @ B.T) ** 2
        * (
            pairwise.rbf_kernel(A * np.sqrt(GAMMAS), B * np.sqrt(GAMMAS), 1.0)
            + pairwise.rbf_kernel(A, B, 1.0)
        ),
    ),
    (of_products(gaussian), pairwise.rbf_kernel(A, B, 0.2)),
    (of_products(quick_gaussian), pairwise.rbf_kernel(A, B, 0.2)),
    (of_products(compiled_gaussian), pairwise.rbf_kernel(A, B, 0.2)),
    (of_rows(common), np.minimum(A[:, None], B).sum(axis=2)),
    (
        of_products(gaussian) * linear() + 2 * of_rows(common),
        pairwise.rbf_kernel(A, B, 0.2) * (A @ B.T) + 2 * np.minimum(A[:, None], B).sum(axis=2),
    ),
]  # fmt: skip
SPARSE = [(kernel, expected) for kernel, expected in KERNELS if not kernel.reads_rows]


@pytest.mark.parametrize(("kernel", "expected"), KERNELS, ids=lambda k: repr(k)[:30] if callable(k) else "")
def test_values_are_those_of_the_formula(kernel, expected):
    assert kernel(A, B) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert kernel(A).shape == (31, 31)
    assert kernel(A) == pytest.approx(kernel(A).T, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize(("kernel", "expected"), SPARSE, ids=lambda k: repr(k)[:30] if callable(k) else "")
@pytest.mark.parametrize("both", [True, False])
def test_sparse_rows_have_the_same_values(kernel, expected, both):
    keep = np.random.default_rng(3).random(A.shape) < 0.2, np.random.default_rng(4).random(B.shape) < 0.2
    X, Z = A * keep[0], B * keep[1]
    sparse = kernel(sp.csr_array(X), sp.csr_array(Z) if both else Z)
    assert sparse == pytest.approx(kernel(X, Z), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_gamma_for_each_feature_is_a_scale_of_the_features(name, sparse):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(90, 60)) * (rng.random((90, 60)) < (0.1 if sparse else 1.0))
    gamma = rng.uniform(0.0, 0.5, 60)
    kernel, plain = (rbf, rbf(1.0)) if name == "rbf" else (laplacian, laplacian(1.0))
    kernel = kernel(gamma)
    by_hand = X * (np.sqrt(gamma) if name == "rbf" else gamma)
    data, scaled = (sp.csr_array(X), sp.csr_array(by_hand)) if sparse else (X, by_hand)
    assert kernel(data) == pytest.approx(plain(scaled), abs=1e-13)
    y = np.where(X[:, :5].sum(axis=1) > 0, "b", "a")
    one, other = SVC(kernel=kernel, tol=1e-6).fit(data, y), SVC(kernel=plain, tol=1e-6).fit(scaled, y)
    assert one.decision_function(data) == pytest.approx(other.decision_function(scaled), abs=1e-4)


def test_a_gamma_for_another_number_of_features_is_refused():
    with pytest.raises(ValueError, match="gamma has 2 values, and X has 3 features"):
        rbf([0.1, 0.2])([[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="gamma has 2 values"):
        SVC(kernel=rbf([0.1, 0.2]) + linear()).fit([[0.0], [1.0]], [0, 1])


def test_sums_and_products_are_flat_and_coefficients_are_joined():
    assert repr(rbf(0.1) + (linear() + 1)) == "rbf(gamma=0.1) + linear() + 1"
    assert repr(2 * (linear() * 3)) == "6 * linear()"
    assert repr((rbf(0.5) + 1) * 0.1) == "0.1 * (rbf(gamma=0.5) + 1)"
    assert 1 * linear() == linear() and 0.5 * (2 * linear()) == linear()
    assert sum([linear(), rbf(1.0)]) == linear() + rbf(1.0)
    assert np.float64(2.0) * linear() == 2 * linear() == linear() * np.int64(2)
    assert 0 * linear() + rbf(1.0) == rbf(1.0)


def test_the_text_of_a_kernel_makes_it():
    kernel = 0.3 * (rbf([0.1, 2.0]) + 1e-9) * poly(2, 0.1, 1.0) + sigmoid(0.1) + laplacian(3) + 0.1 * linear()
    names = {"rbf": rbf, "poly": poly, "sigmoid": sigmoid, "laplacian": laplacian, "linear": linear}
    assert eval(repr(kernel), names) == kernel


def test_kernels_with_equal_parts_are_equal_and_copies_too():
    kernel = rbf([0.1, 0.2]) + 0.5 * of_products(gaussian) * of_rows(common)
    assert kernel == rbf((0.1, 0.2)) + 0.5 * of_products(gaussian) * of_rows(common)
    assert kernel != rbf([0.1, 0.3]) + 0.5 * of_products(gaussian) * of_rows(common)
    assert kernel != 5 and kernel != "rbf"
    for other in (
        pickle.loads(pickle.dumps(kernel)),
        copy.deepcopy(kernel),
        clone(SVC(kernel=kernel)).kernel,
    ):
        assert other == kernel and hash(other) == hash(kernel)
    with pytest.raises(AttributeError):
        kernel.parts = ()


def test_a_lambda_can_be_used_and_copied_but_not_pickled():
    kernel = of_products(lambda dot, xx, zz: dot + 1.0)
    assert copy.deepcopy(kernel) == kernel
    assert kernel(A, B) == pytest.approx(A @ B.T + 1.0)
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(kernel)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: -0.5 * linear(), ValueError, "-0.5: use a finite number that is at least 0"),
        (lambda: linear() * np.inf, ValueError, "inf"),
        (lambda: linear() + -1, ValueError, "constant -1"),
        (lambda: rbf(1.0) - linear(), ValueError, r"rbf\(gamma=1.0\) - \(linear\(\)\) is not a kernel"),
        (lambda: -linear(), ValueError, "coefficients must not be negative"),
        (lambda: 1 - linear(), ValueError, "not a kernel"),
        (lambda: linear() * "2", TypeError, "operand|sequence"),
        (lambda: linear() + np.eye(2), TypeError, "operand|sequence"),
        (lambda: rbf(-1.0), ValueError, "gamma must be finite and at least 0, got -1.0"),
        (lambda: rbf("scale"), TypeError, "'scale' and 'auto' are known for kernel names only"),
        (lambda: rbf([]), ValueError, "one per feature"),
        (lambda: rbf([[1.0]]), ValueError, r"shape \(1, 1\)"),
        (lambda: laplacian([1.0, np.nan]), ValueError, "got nan"),
        (lambda: poly(1.5), ValueError, "degree must be an integer"),
        (lambda: poly(-1), ValueError, "at least 0, got -1"),
        (lambda: sigmoid(coef0=np.nan), ValueError, "coef0 must be finite"),
        (lambda: of_products(common), TypeError, r"3 arguments \(dot, xx, zz\).* common has \(x, z\)"),
        (lambda: of_rows(3), TypeError, "function .* is needed, got 3"),
        (lambda: linear()([[1.0]], [[1.0, 2.0]]), ValueError, "equally many features"),
        (lambda: linear()([1.0]), ValueError, "equally many features"),
    ],
)  # fmt: skip
def test_bad_parts_are_refused_with_the_value_and_the_reason(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_function_that_cannot_be_compiled_is_refused_with_a_way_out():
    def formatted(dot, xx, zz):
        return open(str(dot))

    with pytest.raises(
        ValueError, match=r"cannot compile .*formatted for of_products: .*function of two data sets"
    ):
        of_products(formatted)(A, B)


@pytest.mark.parametrize(
    "kernel", [of_products(lambda dot, xx, zz: np.log(dot)), of_rows(lambda x, z: x[0] / 0.0)]
)
def test_values_that_are_not_finite_are_refused(kernel):
    with pytest.raises(ValueError, match=r"lambda.* returned NaN or infinity"):
        kernel(A, B)


def test_a_kernel_of_rows_needs_dense_rows():
    with pytest.raises(TypeError, match=r"need dense rows: pass X.toarray\(\)"):
        of_rows(common)(sp.csr_array(A))
    zeros = A * (np.random.default_rng(0).random((31, 5)) < 0.1)
    wide = np.hstack([zeros] * 10)  # otherwise stored as a sparse matrix
    assert of_rows(common)(wide) == pytest.approx(np.minimum(wide[:, None], wide).sum(axis=2))


def test_exp_in_compiled_functions_is_that_of_numpy():
    kernel = of_products(lambda dot, xx, zz: exp(dot))
    x = np.concatenate([np.linspace(-708.0, 709.0, 3001), [0.0, -1e-300, -800.0, -np.inf, -1e10, 1.0, -0.0]])
    found = kernel(np.array([[1.0]]), x[np.isfinite(x), None])[0]
    expected = np.exp(x[np.isfinite(x)])
    assert np.abs(found - expected).max() > -1 and found == pytest.approx(expected, rel=4e-16, abs=1e-307)
    with pytest.raises(ValueError, match="infinity"):
        kernel([[1.0]], [[710.0]])


def test_objects_are_not_functions_of_unknown_data():
    assert opaque(gaussian) and not opaque(of_rows(common)) and not opaque("rbf")
