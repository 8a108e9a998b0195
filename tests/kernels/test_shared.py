import threading

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.shared import SharedKernels

KERNELS = [
    Kernel("rbf", gamma=0.01),
    Kernel("rbf", gamma=100.0),
    Kernel("laplacian", gamma=0.3),
    Kernel("linear"),
    Kernel("poly", gamma=0.5, degree=3, coef0=1.0),
    Kernel("sigmoid", gamma=0.1, coef0=-0.5),
]


def data(n=60):
    return np.random.default_rng(0).normal(size=(n, 5))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_matrices_are_those_of_the_kernel(kernel, dtype):
    X = data()
    K = SharedKernels(X, dtype).matrix(kernel)
    assert K.dtype == dtype
    np.testing.assert_allclose(K, kernel.block(X, X), atol=1e-5 if dtype == "float32" else 1e-12, rtol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS[:1] + KERNELS[3:], ids=str)
def test_sparse_data_give_the_same_matrices(kernel):
    X = data() * (np.random.default_rng(1).random((60, 5)) < 0.3)
    dense, sparse = (SharedKernels(Z, "float64").matrix(kernel) for Z in (X, sp.csr_matrix(X)))
    np.testing.assert_allclose(sparse, dense, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_entries_that_are_stored_in_parts_count_as_their_sums(kernel):
    X = sp.csr_matrix(data())
    halves = sp.csr_matrix((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)
    found, expected = (SharedKernels(Z, "float64").matrix(kernel) for Z in (halves, X))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert halves.nnz == 2 * X.nnz


def test_rows_far_from_the_origin_lose_no_digits():
    X = data() + 1e6
    K = SharedKernels(X, "float32").matrix(Kernel("rbf", gamma=0.5))
    np.testing.assert_allclose(K, Kernel("rbf", gamma=0.5).block(data(), data()), atol=1e-4)


def test_a_matrix_is_computed_once_however_many_ask():
    calls = []

    def kernel(A, B):
        calls.append(1)
        return A @ B.T

    shared = SharedKernels(data(), "float64")
    found = []
    threads = [threading.Thread(target=lambda: found.append(shared.matrix(Kernel(kernel)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
    assert all(K is found[0] for K in found)


def test_only_the_last_matrices_are_kept():
    shared = SharedKernels(data(), "float64", keep=2)
    first = shared.matrix(Kernel("rbf", gamma=1.0))
    assert shared.matrix(Kernel("rbf", gamma=1.0)) is first
    for gamma in (2.0, 3.0):
        shared.matrix(Kernel("rbf", gamma=gamma))
    assert shared.matrix(Kernel("rbf", gamma=1.0)) is not first


def test_a_callable_that_returns_no_square_matrix_is_refused():
    with pytest.raises(ValueError, match="square"):
        SharedKernels(data(), "float64").matrix(Kernel(lambda A, B: A))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_distances_are_accurate_beside_distant_rows(layout):
    X = np.random.default_rng(0).standard_normal((50, 3))
    X[::10, 1] = 1e8
    X[5] = 1e160
    D = np.square(X[:, None].astype(np.longdouble) - X[None]).sum(axis=2)
    for gamma in (1e-3, 1.0):
        K = SharedKernels(layout(X), "float64").matrix(Kernel("rbf", gamma=gamma))
        np.testing.assert_allclose(K, np.exp(-gamma * D).astype(float), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_distances_of_several_tiles_are_symmetric_and_complete(dtype, monkeypatch):
    monkeypatch.setattr("maxmargin.kernels.shared.costs.DISTANCE_TILE", 16)
    X = data(61)
    K = SharedKernels(X, dtype).matrix(Kernel("rbf", gamma=0.1))
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(K, Kernel("rbf", gamma=0.1).block(X, X), atol=1e-6, rtol=0)
    assert (np.diagonal(K) == 1).all()
