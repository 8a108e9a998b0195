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
