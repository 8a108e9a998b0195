"""The pair loop: its steps are those of second-order SMO in plain NumPy, wherever the rows are."""

import numpy as np
import pytest

from maxmargin.solvers.pairs import LONGEST, move_pair
from pair_loop import TAU, matrix, places_of, run


def reference(Q, u, lo, hi, g, group, kink, tol, most):
    """The steps by their definition; returns their number."""
    for steps in range(most):
        up = np.where(u < hi, g + np.where(u >= 0, kink, -kink), np.inf)
        down = np.where(u > lo, g + np.where(u > 0, kink, -kink), -np.inf)
        widths = [down[group == k].max() - up[group == k].min() for k in range(group.max() + 1)]
        worst = int(np.argmax(widths))
        if widths[worst] < tol:
            return steps
        i = int(np.argmin(np.where(group == worst, up, np.inf)))
        b = np.maximum(down - up[i], 0.0)
        gain = np.where(group == worst, b**2 / np.maximum(Q[i, i] + np.diag(Q) - 2 * Q[i], TAU), -1.0)
        j = int(np.argmax(gain))
        top = hi[i] if kink == 0 or u[i] >= 0 else 0.0
        bottom = lo[j] if kink == 0 or u[j] <= 0 else 0.0
        d = min(b[j] / max(Q[i, i] + Q[j, j] - 2 * Q[i, j], TAU), top - u[i], u[j] - bottom)
        u[i] = top if d == top - u[i] else u[i] + d
        u[j] = bottom if d == u[j] - bottom else u[j] - d
        g += d * (Q[i] - Q[j])
    return most


@pytest.mark.parametrize("kink", [0.0, 0.3])
@pytest.mark.parametrize("parts", [1, 3])
def test_steps_are_those_of_the_definition(parts, kink):
    n = 60
    Q, rng = matrix(n)
    group = np.repeat(np.arange(parts), n // parts)
    lo, hi = np.full(n, -2.0), np.full(n, 2.0)
    p = rng.normal(size=n)
    u, expected = np.zeros(n), np.zeros(n)
    ranges = np.linspace(0, n, parts + 1).astype(np.intp)
    places = places_of(n, np.diag(Q).copy(), ranges, np.arange(parts + 1))
    for most in (1, 5, 20):  # later on pairs that were just moved tie
        steps = run(Q, places, u, lo, hi, Q @ u - p, kink, 1e-8, most)
        assert steps == reference(Q, expected, lo, hi, Q @ expected - p, group, kink, 1e-8, most)
        np.testing.assert_allclose(u, expected, atol=1e-10)


def test_a_group_may_have_several_ranges():
    n = 50
    Q, rng = matrix(n)
    lo, hi, p = np.zeros(n), np.full(n, 3.0), rng.normal(size=n)
    u, split = np.zeros(n), np.zeros(n)
    u[:10] = split[:10] = 1.0
    run(Q, places_of(n, np.diag(Q).copy()), u, lo, hi, Q @ u - p)
    ranges = np.array([0, 25, 40, n])
    run(Q, places_of(n, np.diag(Q).copy(), ranges), split, lo, hi, Q @ split - p)
    np.testing.assert_allclose(split, u, atol=1e-7)


def test_more_places_than_an_index_has_bits_for_take_several_ranges():
    n = LONGEST + 300
    rng = np.random.default_rng(0)
    A = rng.normal(size=(n, 4))
    Q = A @ A.T + np.eye(n)
    lo, hi, p = np.full(n, -1.0), np.full(n, 1.0), rng.normal(size=n)
    u, expected = np.zeros(n), np.zeros(n)
    places = places_of(n, np.diag(Q).copy(), np.array([0, LONGEST, n]), np.array([0, 2]))
    run(Q, places, u, lo, hi, -p, most=30)
    reference(Q, expected, lo, hi, -p.copy(), np.zeros(n, np.intp), 0.0, 1e-8, 30)
    np.testing.assert_allclose(u, expected, atol=1e-9)


@pytest.mark.parametrize(("step", "taken"), [(0.25, 0.25), (5.0, 1.0)])
def test_a_pair_that_meets_a_bound_is_put_there_exactly(step, taken):
    u = np.array([0.1, 0.7])
    d, moved = move_pair(u, 0, 1, step, 1.1, -0.9)
    assert moved
    assert d == pytest.approx(taken)
    if step > 1:
        assert u[0] == 1.1
    assert u.sum() == pytest.approx(0.8)


def test_a_step_below_the_precision_moves_nothing():
    u = np.array([1.0, 1.0])
    _, moved = move_pair(u, 0, 1, 1e-20, 2.0, 0.0)
    assert not moved
    assert (u == 1.0).all()
