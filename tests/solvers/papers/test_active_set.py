import numpy as np
import pytest

import qp
from maxmargin.solvers.papers._active_set import ENDLESS, JOINED, STOPPED, ActiveSet


def box(y, C):
    return np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0)


def started(n=20, C=np.inf, ridge=0.3, seed=0, most_bytes=1 << 30):
    """An active set with one pair learnt, and everything needed to go on."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    H = qp.rbf(X) + ridge * np.eye(n)
    lo, hi = box(y, C)
    u = np.zeros(n)
    active = ActiveSet(u, lo, hi, 1.0, most_bytes)
    active.seed(0, H[0, 0], -y[0])
    active.learn(1, H[[0], 1], H[1, 1], -y[1] + y[0])
    return active, H, y, u


def learn(active, H, y, c):
    excess = H[c] @ active.u - y[c] - active.level
    return active.learn(c, H[active.members, c], H[c, c], excess)


def excesses(active, H, y):
    return (H @ active.u - y - active.level)[active.members]


@pytest.mark.parametrize("C", [np.inf, 0.4])
@pytest.mark.parametrize("seed", range(5))
def test_members_keep_one_gradient_and_the_sum_whatever_is_learnt(C, seed):
    active, H, y, u = started(C=C, seed=seed)
    for c in range(2, len(y)):
        if not active.size:
            break
        excess = H[c] @ u - y[c] - active.level
        if excess * y[c] < 0:
            learn(active, H, y, c)
        np.testing.assert_allclose(excesses(active, H, y), 0.0, atol=1e-12)
        assert abs(u.sum()) < 1e-12
        assert (u >= active.lo).all()
        assert (u <= active.hi).all()


def test_a_violator_joins_with_zero_excess():
    active, H, y, _ = started()
    outcome, gone, left = learn(active, H, y, 2)
    assert outcome == JOINED
    assert active.members[-1] == 2
    assert left == 0.0
    assert not len(gone)


def test_a_variable_stops_at_its_bound_and_stays_outside():
    active, H, y, u = started(C=0.05)
    outcome, _, _ = learn(active, H, y, 2)
    assert outcome == STOPPED or 2 in active.members
    assert abs(u[2]) <= 0.05


def test_unlearning_the_last_one_gives_back_the_solution_before():
    active, H, y, u = started()
    for c in (2, 3, 4):
        learn(active, H, y, c)
    before, level = u.copy(), active.level
    _, gone, _ = learn(active, H, y, 5)
    assert not len(gone)
    others = active.members[active.members != 5]
    active.unlearn(5, H[others, 5], H[5, 5])
    assert u[5] == 0.0
    np.testing.assert_allclose(u, before, atol=1e-12)
    assert active.level == pytest.approx(level, abs=1e-12)


def test_relaxing_finds_the_common_gradient_from_any_feasible_point():
    active, H, y, u = started(n=12)
    rng = np.random.default_rng(3)
    u[:] = y * rng.uniform(0.5, 1.0, 12)
    u[y > 0] *= -u[y < 0].sum() / u[y > 0].sum()
    active.load(np.arange(12), H)
    gone = active.relax(H @ u - y)
    np.testing.assert_allclose(excesses(active, H, y), 0.0, atol=1e-12)
    assert abs(u.sum()) < 1e-12
    assert (u[gone] == 0).all()


def test_two_equal_points_of_opposite_classes_without_a_bound_never_meet():
    H = np.ones((2, 2))
    active = ActiveSet(np.zeros(2), np.array([-np.inf, 0.0]), np.array([0.0, np.inf]), 1.0, 1 << 20)
    active.seed(0, 1.0, 1.0)
    assert active.learn(1, H[[0], 1], 1.0, -2.0)[0] == ENDLESS


def test_too_little_memory_is_an_error_with_numbers():
    active, H, y, _ = started(most_bytes=8 * 3)
    assert not active.has_room()
    with pytest.raises(MemoryError, match="factor of 3 support vectors takes 0 MB"):
        learn(active, H, y, 2)


def test_a_copy_is_independent():
    active, H, y, _ = started()
    twin = active.copy()
    learn(active, H, y, 2)
    assert twin.size == 2
    assert active.size == 3
