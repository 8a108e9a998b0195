import numpy as np
import pytest

from maxmargin.solvers.c_path.held_out import held_out_values, matrix_of_rows


def problem(dtype, n=40, n_rows=15, n_C=4):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(n, n))
    K = (A @ A.T).astype(dtype)
    rows = rng.permutation(n)[:n_rows]
    u, offset = rng.normal(size=(3, n_C, n_rows)), rng.normal(size=(3, n_C))
    u[rng.random(u.shape) < 0.4] = 0.0
    u[:, :, 2] = 0.0
    return K, rows, u, offset


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_matrix_of_rows_is_a_part_of_the_matrix(dtype):
    K, rows, _, _ = problem(dtype)
    part = matrix_of_rows(K, rows.astype(np.uint64))
    np.testing.assert_array_equal(part, K[np.ix_(rows, rows)])
    assert part.dtype == dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [4, 512])
def test_values_are_those_of_each_pairs_and_folds_own_rows(dtype, size):
    K, rows, u, offset = problem(dtype)
    u[1, 2], offset[1, 2] = u[1, 1], offset[1, 1]  # the same solution for two C
    u[2, 3] = u[2, 2]  # the same but for the offset
    u[2, 0] = 0.0
    begins = np.array([0, 6, len(rows)])  # two pairs
    offsets = np.stack([offset, offset + 1.0], axis=2)
    scored, ends = np.random.default_rng(1).integers(0, len(K), 25), np.array([0, 7, 7, 25])
    out = np.full((2, 4, 25), np.nan)
    held_out_values(K, rows, begins, u, offsets, scored.astype(np.uint64), ends, size, out)
    for p in range(2):
        part = slice(begins[p], begins[p + 1])
        for f in range(3):
            some = scored[ends[f] : ends[f + 1]]
            values = u[f][:, part] @ K[np.ix_(rows[part], some)].astype(np.float64)
            found = out[p, :, ends[f] : ends[f + 1]]
            np.testing.assert_allclose(found, values - offsets[f, :, p][:, None], atol=1e-12, rtol=1e-12)
