import numpy as np
import pytest

from maxmargin.solvers.papers import _factor as factor


def definite(n, rng):
    A = rng.normal(size=(n, n))
    return A @ A.T + np.eye(n)


def packed_of(H):
    packed = np.empty(len(H) * (len(H) + 1) // 2)
    factor.factorise(H.copy(), packed)
    return packed


@pytest.mark.parametrize("n", [1, 2, 5, 17, 64])
def test_substitutions_solve_the_system(n):
    rng = np.random.default_rng(n)
    H, b = definite(n, rng), rng.normal(size=n)
    x = b.copy()
    factor.forward(packed_of(H), n, x)
    factor.backward(packed_of(H), n, x)
    np.testing.assert_allclose(H @ x, b, atol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 13, 40])
def test_a_deleted_variable_leaves_the_factor_of_the_others_and_their_vectors(n):
    rng = np.random.default_rng(n)
    H, b = definite(n, rng), rng.normal(size=(2, n))
    for p in range(n):
        packed, y = packed_of(H), b.copy()
        for row in y:
            factor.forward(packed, n, row)
        factor.delete(packed, n, p, y)
        rest = np.delete(np.arange(n), p)
        expected = packed_of(H[np.ix_(rest, rest)]) if n > 1 else np.empty(0)
        np.testing.assert_allclose(packed[: len(expected)], expected, atol=1e-10)
        for k in range(2):
            z = b[k, rest].copy()
            factor.forward(expected, n - 1, z)
            np.testing.assert_allclose(y[k, : n - 1], z, atol=1e-9)


def test_appending_variables_one_by_one_gives_the_factor_of_all():
    rng = np.random.default_rng(0)
    H = definite(12, rng)
    packed = np.empty(0)
    for k in range(12):
        packed = factor.room_for(packed, k + 1)
        a = H[k, :k].copy()
        factor.forward(packed, k, a)
        factor.append(packed, k, a, H[k, k] - a @ a)
    np.testing.assert_allclose(packed[:78], packed_of(H), atol=1e-10)


def test_thousands_of_changes_leave_no_drift():
    rng = np.random.default_rng(0)
    H = definite(60, rng)
    members = list(range(30))
    packed = factor.room_for(packed_of(H[:30, :30]), 60)
    for _ in range(3000):
        k = len(members)
        if k > 40 or (k > 5 and rng.random() < 0.5):
            p = int(rng.integers(k))
            factor.delete(packed, k, p, np.zeros((1, k)))
            members.pop(p)
        else:
            new = int(rng.choice(np.setdiff1d(np.arange(60), members)))
            a = H[new, members].copy()
            factor.forward(packed, k, a)
            factor.append(packed, k, a, H[new, new] - a @ a)
            members.append(new)
    k = len(members)
    np.testing.assert_allclose(packed[: k * (k + 1) // 2], packed_of(H[np.ix_(members, members)]), atol=1e-10)


def test_an_indefinite_matrix_is_refused():
    with pytest.raises(np.linalg.LinAlgError):
        packed_of(np.array([[1.0, 2.0], [2.0, 1.0]]))


def test_the_memory_is_known_before_it_is_taken():
    assert factor.bytes_for(10_000) == 8 * 50_005_000
    assert factor.room_for(np.empty(0), 100).nbytes >= factor.bytes_for(100)
