"""Newton steps of the C path where matrices are singular."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from maxmargin.solvers.c_path.newton import newton
from maxmargin.solvers.c_path.state import Matrix, Point


def machine(rng, dtype):
    """Some rows, many of them equal, with a feasible start."""
    m = int(rng.integers(2, 14))
    X = rng.normal(size=(m, 2))[rng.integers(0, m, m)]
    K = rbf_kernel(X, gamma=10 ** rng.uniform(-3, 1)).astype(dtype)
    y = np.where(rng.random(m) < 0.5, 1.0, -1.0)
    C = 10 ** rng.uniform(-3, 2)
    u = np.zeros(m)
    for i, k in zip(np.flatnonzero(y > 0), np.flatnonzero(y < 0), strict=False):
        u[i] = rng.choice([0.0, C, rng.uniform(0, C)])
        u[k] = -u[i]
    return K, y, u, np.where(y < 0, -C, 0.0), np.where(y > 0, C, 0.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_steps_on_equal_rows_keep_sum_box_and_gradient_and_descend(dtype):
    rng = np.random.default_rng(0)
    taken = 0
    for _ in range(500):
        K, y, u, lo, hi = machine(rng, dtype)
        g = K.astype(np.float64) @ u - y
        before = 0.5 * u @ (g - y)
        ridge = 1e-7 if dtype == np.float32 else 1e-15
        matrix, point = Matrix(K, K.diagonal().copy(), 1.0), Point(u, g, lo, hi, 0.0)
        done, _ = newton(matrix, point, 0.0, np.arange(len(u)), ridge, np.zeros(1, np.int64))
        taken += done
        bound = max(hi.max(), -lo.min())
        assert abs(u.sum()) <= 1e-11 * bound
        assert np.all(u >= lo) and np.all(u <= hi)
        np.testing.assert_allclose(g, K.astype(np.float64) @ u - y, atol=1e-10 * max(1.0, bound))
        assert 0.5 * u @ (g - y) <= before + 1e-5 * bound
    assert taken > 300


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [4, 9, 12, 53])
def test_a_step_does_not_depend_on_where_arrays_are_in_memory(m, dtype):
    rng, n = np.random.default_rng(m), 300
    K = (rbf_kernel(rng.normal(size=(n, 3)), gamma=0.3) + 0.1 * np.eye(n)).astype(dtype)
    y = rng.normal(size=n)
    found, others = set(), [np.empty(0)] * 200
    for _ in range(200):
        for k in rng.integers(0, len(others), 20):  # leaves holes of all sizes
            others[k] = np.empty(rng.integers(1, 3 * m))
        u = np.zeros(n)
        point = Point(u, -y, np.full(n, -0.3), np.full(n, 0.3), 0.1)
        newton(Matrix(K, K.diagonal().copy(), 1.0), point, 0.0, np.arange(m) * 4, 1e-6, np.zeros(1, np.int64))
        found.add(u.tobytes())
    assert len(found) == 1 and u.any()
