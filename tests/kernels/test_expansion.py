"""Decision values against dense algebra."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import _costs
from maxmargin._compiled.threads import Threads
from maxmargin.kernels.expansion import expand, linear
from maxmargin.kernels.given import Given
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.points import Points

KERNELS = ("linear", "poly", "rbf", "sigmoid", "laplacian")


def data(n, m, storage="dense", d=5, seed=0):
    rng = np.random.default_rng(seed)
    if storage == "csr":
        return tuple(sp.random(k, 60, 0.1, format="csr", random_state=rng) for k in (n, m))
    return rng.normal(size=(n, d)), rng.normal(size=(m, d))


def dense(kernel, X, V, coef, classes):
    K = kernel.block(X, V)
    return np.stack([K[:, a:b] @ coef[:, a:b].T for a, b in zip(classes[:-1], classes[1:], strict=True)])


def compare(kernel, X, V, coef, classes, dtype=np.float64, n_jobs=1):
    got = expand(kernel, X, kernel.prepare(V, dtype), coef, np.asarray(classes), threads=Threads(n_jobs))
    expected = dense(kernel, X, V, coef, classes)
    assert got.shape == expected.shape == (len(classes) - 1, X.shape[0], len(coef))
    assert got.dtype == np.float64
    error = 1e-9 if dtype == np.float64 else 2e-5
    np.testing.assert_allclose(got, expected, atol=error * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("name", KERNELS)
def test_expand_equals_dense_algebra_per_class(name, storage, dtype):
    X, V = data(30, 45, storage)
    coef = np.random.default_rng(1).normal(size=(3, 45))
    compare(Kernel(name, gamma=0.2, coef0=0.5), X, V, coef, [0, 10, 10, 30, 45], dtype)


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_expand_over_chunk_borders_equals_dense_algebra(storage, n_jobs, monkeypatch):
    monkeypatch.setattr(_costs, "WORTH_A_THREAD", 0)
    n, m = 2 * _costs.EXPANSION_ROWS + 57, 2 * _costs.EXPANSION_COLUMNS + 300
    X, V = data(n, m, storage)
    coef = np.random.default_rng(1).normal(size=(2, m))
    classes = [0, 100, _costs.EXPANSION_COLUMNS + 500, m]
    compare(Kernel("rbf", gamma=0.2), X, V, coef, classes, n_jobs=n_jobs)


@pytest.mark.parametrize("n", [256, 257, 255, 512])
def test_expand_at_and_next_to_a_chunk_border_equals_dense_algebra(n):
    assert _costs.EXPANSION_ROWS == 256
    X, V = data(n, 11)
    compare(Kernel("rbf", gamma=0.2), X, V, np.ones((1, 11)), [0, 11])


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_and_two_threads_give_the_same_values(name, dtype, monkeypatch):
    monkeypatch.setattr(_costs, "WORTH_A_THREAD", 0)
    X, V = data(900, 80)
    kernel, coef = Kernel(name, gamma=0.2), np.random.default_rng(1).normal(size=(2, 80))
    vectors = kernel.prepare(V, dtype)
    one, two = (expand(kernel, X, vectors, coef, np.array([0, 30, 80]), threads=Threads(k)) for k in (1, 2))
    np.testing.assert_allclose(two, one, rtol=1e-6, atol=1e-6)


def test_large_expansions_run_in_threads():
    entered = []

    class Watched(Threads):
        def run(self, function, calls):
            calls = list(calls)
            entered.append((self.n, len(calls)))
            super().run(function, calls)

    kernel = Kernel("rbf", gamma=0.2)
    X, V = data(600, 3000)
    vectors, coef, ends = kernel.prepare(V), np.ones((1, 3000)), np.array([0, 3000])
    expand(kernel, X, vectors, coef, ends, threads=Watched(2))
    assert entered == [(2, 3)]
    expand(kernel, X[:200], vectors, coef, ends, threads=Watched(2))
    assert entered == [(2, 3)]


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("name", KERNELS)
def test_a_single_row_equals_its_place_among_many(name, storage):
    X, V = data(20, 33, storage)
    kernel, coef = Kernel(name, gamma=0.2), np.random.default_rng(1).normal(size=(2, 33))
    compare(kernel, X[7:8], V, coef, [0, 12, 33])


def test_no_rows_give_an_empty_result():
    kernel = Kernel("rbf")
    _, V = data(1, 8)
    assert expand(
        kernel, V[:0], kernel.prepare(V), np.ones((2, 8)), np.array([0, 3, 8]), threads=Threads(1)
    ).shape == (2, 0, 2)


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("name", KERNELS)
def test_no_support_vectors_give_zeros_without_a_warning(name, storage):
    X, V = data(20, 33, storage)
    kernel = Kernel(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = expand(
            kernel, X, kernel.prepare(V[:0]), np.ones((2, 0)), np.array([0, 0, 0]), threads=Threads(1)
        )
    assert got.shape == (2, 20, 2) and (got == 0).all()


def test_offset_data_are_centred_as_the_support_vectors_were():
    X, V = (x + 1e5 for x in data(40, 30))
    compare(Kernel("rbf", gamma=0.2), X, V, np.ones((1, 30)), [0, 30], np.float32)


def test_a_given_matrix_is_used_as_it_is():
    rng = np.random.default_rng(0)
    K, coef = rng.normal(size=(300, 40)), rng.normal(size=(2, 40))
    vectors = Points(Given(np.empty((0, 40)), np.arange(40)), 40)
    got = expand(Kernel("precomputed"), K, vectors, coef, np.array([0, 15, 40]), threads=Threads(1))
    np.testing.assert_allclose(got[0], K[:, :15] @ coef[:, :15].T)
    np.testing.assert_allclose(got[1], K[:, 15:] @ coef[:, 15:].T)


def test_a_callable_over_a_list_equals_dense_algebra():
    def common(a, b):
        return np.array([[len(set(s) & set(t)) for t in b] for s in a], dtype=float)

    words = ["abc", "abd", "xyz", "bx"] * 100
    kernel, vectors = Kernel(common), ["ab", "z", "bcd"]
    coef = np.array([[1.0, -2.0, 0.5]])
    got = expand(kernel, words, kernel.prepare(vectors), coef, np.array([0, 1, 3]), threads=Threads(1))
    K = common(words, vectors)
    np.testing.assert_allclose(got[0], K[:, :1] @ coef[:, :1].T)
    np.testing.assert_allclose(got[1], K[:, 1:] @ coef[:, 1:].T)


def test_the_input_is_not_changed():
    X, V = data(20, 9)
    before = X.copy()
    compare(Kernel("rbf"), X, V, np.ones((1, 9)), [0, 9])
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("weights", [np.asarray, sp.csr_matrix, sp.csr_array])
def test_linear_is_the_product_plus_the_intercept(storage, weights):
    if storage is np.asarray and weights is sp.csr_matrix:
        pytest.skip("dense data never meet sparse weights")
    rng = np.random.default_rng(0)
    X, coef, intercept = rng.normal(size=(30, 6)), rng.normal(size=(3, 6)), rng.normal(size=3)
    got = linear(storage(X), weights(coef), intercept)
    assert type(got) is np.ndarray and got.dtype == np.float64
    np.testing.assert_allclose(got, X @ coef.T + intercept)


def test_linear_of_float32_data_is_float64():
    X = np.ones((3, 2), np.float32)
    got = linear(X, np.array([[1.0, 2.0]]), np.array([0.5]))
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, np.full((3, 1), 3.5))
