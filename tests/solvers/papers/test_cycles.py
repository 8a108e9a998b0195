"""Cycles of updates, fed by hand and compared with plain Python."""

import numpy as np
import pytest

from maxmargin.solvers.papers import _cycles as cy
from maxmargin.solvers.papers._cycles import Cycles

M = 9
every_rule = pytest.mark.parametrize("by_pair", [False, True], ids=["by-vector", "by-pair"])
every_seed = pytest.mark.parametrize("seed", range(8))


class Reference:
    """What `Cycles` promises, from a plain list of all updates."""

    def __init__(self, memory, by_pair):
        self.updates, self.memory, self.by_pair = [], memory, by_pair
        self.begin = self.wait = 0

    def remember(self, lower, upper, step, gain):
        self.updates.append((lower, upper, step, gain))

    def forget(self):
        self.begin = len(self.updates)

    def dismiss(self, k):
        self.wait = len(self.updates) + k

    def closed(self, lower, upper):
        now = len(self.updates)
        if now < self.wait:
            return 0
        for t in reversed(range(self.begin, now)):
            if self.updates[t][0] == lower and (not self.by_pair or self.updates[t][1] == upper):
                k = now - t
                return k if 2 <= k <= self.memory else 0
        return 0

    def last(self, k):
        """The last k - 1 updates."""
        return self.updates[len(self.updates) - k + 1 :]

    def direction(self, k, lower, upper, step):
        V = np.zeros(M)
        for i, j, amount, _ in [*self.last(k), (lower, upper, step, 0.0)]:
            V[i] += amount
            V[j] -= amount
        return V


def pair(rng, m=M):
    i, j = rng.choice(m, size=2, replace=False)
    return int(i), int(j)


def dyadic(rng):
    """A positive number whose sums are exact."""
    return float(rng.integers(1, 33)) / 16.0


def fed(rng, count, memory=64, by_pair=False, m=M):
    """Cycles and their reference after `count` random updates."""
    cycles, reference = Cycles.of(m, memory, by_pair), Reference(memory, by_pair)
    for _ in range(count):
        update = (*pair(rng, m), dyadic(rng), dyadic(rng))
        cy.remember(cycles, *update)
        reference.remember(*update)
    return cycles, reference


def filled(members, mu, m=M):
    """Cycles whose last collapsed direction is the given one."""
    cycles = Cycles.of(m)
    cycles.members[: len(members)], cycles.mu[: len(mu)] = members, mu
    return cycles


# -- when a cycle closes ---------------------------------------------------------------------


@every_rule
def test_without_updates_nothing_is_closed(by_pair):
    cycles = Cycles.of(M, by_pair=by_pair)
    assert all(cy.closed(cycles, i, j) == 0 for i in range(M) for j in range(M) if i != j)


def test_same_vector_that_enters_again_closes_a_cycle_whichever_leaves():
    cycles = Cycles.of(M)
    for update in ((0, 1), (2, 1), (3, 4)):
        cy.remember(cycles, *update, 1.0, 1.0)
    assert cy.closed(cycles, 0, 1) == 3
    assert cy.closed(cycles, 0, 8) == 3
    assert cy.closed(cycles, 2, 8) == 2
    assert cy.closed(cycles, 1, 0) == 0  # it has only left so far


def test_by_pair_a_cycle_closes_only_when_both_come_again():
    cycles = Cycles.of(M, by_pair=True)
    for update in ((0, 1), (0, 2), (2, 1), (0, 3), (3, 4)):
        cy.remember(cycles, *update, 1.0, 1.0)
    assert cy.closed(cycles, 0, 1) == 5
    assert cy.closed(cycles, 0, 2) == 4
    assert cy.closed(cycles, 0, 3) == 2
    assert cy.closed(cycles, 0, 8) == 0
    assert cy.closed(cycles, 1, 0) == 0


@every_rule
def test_same_update_twice_in_a_row_is_no_cycle(by_pair):
    cycles = Cycles.of(M, by_pair=by_pair)
    cy.remember(cycles, 5, 6, 1.0, 1.0)
    assert cy.closed(cycles, 5, 6) == 0


@every_rule
@every_seed
@pytest.mark.parametrize("memory", [3, 8, 64])
def test_cycles_close_where_the_reference_says(by_pair, seed, memory):
    rng = np.random.default_rng(seed)
    cycles, reference = fed(rng, 0, memory, by_pair, m=5)
    lengths = set()
    for _ in range(400):
        lower, upper = pair(rng, 5) if rng.random() < 0.7 else (0, 1)
        for asked in ((lower, upper), pair(rng, 5)):
            k, expected = cy.closed(cycles, *asked), reference.closed(*asked)
            # Whether one that fills the memory exactly is still seen is left open.
            assert k == expected or (expected == memory and k == 0)
            lengths.add(k)
        what = rng.random()
        if what < 0.02:
            cy.forget(cycles)
            reference.forget()
        elif what < 0.06:
            cy.dismiss(cycles, 3)
            reference.dismiss(3)
        update = (lower, upper, dyadic(rng), dyadic(rng))
        cy.remember(cycles, *update)
        reference.remember(*update)
    assert {0, 2} <= lengths and len(lengths) >= min(memory - 1, 4)


@every_rule
def test_cycles_longer_than_the_memory_are_not_seen(by_pair):
    memory = 6
    for between in range(1, 3 * memory):
        cycles = Cycles.of(50, memory, by_pair)
        cy.remember(cycles, 0, 1, 1.0, 1.0)
        for t in range(between):
            cy.remember(cycles, 2 + t, 1, 1.0, 1.0)
        k = between + 1
        if k != memory:
            assert cy.closed(cycles, 0, 1) == (k if k < memory else 0)


@every_rule
def test_forget_starts_afresh(by_pair):
    cycles = Cycles.of(M, by_pair=by_pair)
    cy.remember(cycles, 0, 1, 1.0, 1.0)
    cy.remember(cycles, 2, 1, 1.0, 1.0)
    assert cy.closed(cycles, 0, 1) == 2
    cy.forget(cycles)
    assert cy.closed(cycles, 0, 1) == 0
    cy.remember(cycles, 0, 1, 1.0, 1.0)
    cy.remember(cycles, 3, 1, 1.0, 1.0)
    assert cy.closed(cycles, 0, 1) == 2


@every_rule
def test_dismiss_hides_cycles_for_one_more_round(by_pair):
    cycles = Cycles.of(M, by_pair=by_pair)
    round_ = ((0, 1), (2, 1), (3, 1))
    for update in round_:
        cy.remember(cycles, *update, 1.0, 1.0)
    assert cy.closed(cycles, 0, 1) == 3
    cy.dismiss(cycles, 3)
    for update in round_:
        assert cy.closed(cycles, *update) == 0
        cy.remember(cycles, *update, 1.0, 1.0)
    assert cy.closed(cycles, 0, 1) == 3


# -- the direction ---------------------------------------------------------------------------


@every_seed
def test_collapse_is_the_exact_sum_of_the_updates(seed):
    rng = np.random.default_rng(seed)
    for _ in range(40):
        cycles, reference = fed(rng, int(rng.integers(2, 30)), memory=16)
        k = int(rng.integers(2, min(16, len(reference.updates) + 1)))
        lower, upper, step = *pair(rng), dyadic(rng)
        size = cy.collapse(cycles, k, lower, upper, step)
        members, mu = cycles.members[:size], cycles.mu[:size]
        V = np.zeros(M)
        V[members] = mu
        assert len(set(members)) == size
        assert np.array_equal(V, reference.direction(k, lower, upper, step))
        assert mu.sum() == 0.0


@every_seed
def test_collapse_puts_the_given_pair_first_and_leaves_no_trace(seed):
    rng = np.random.default_rng(seed)
    cycles, _ = fed(rng, 20)
    for k in range(2, 20):
        lower, upper = pair(rng)
        cy.collapse(cycles, k, lower, upper, 0.5)
        assert (cycles.members[0], cycles.members[1]) == (lower, upper)
        assert (cycles.place == -1).all()


def test_collapse_drops_members_that_cancel_out_but_never_the_given_pair():
    cycles = Cycles.of(M)
    cy.remember(cycles, 0, 1, 1.0, 1.0)
    cy.remember(cycles, 1, 2, 1.0, 1.0)  # 1 cancels out
    cy.remember(cycles, 3, 4, 0.1, 1.0)
    cy.remember(cycles, 4, 3, 0.1, 1.0)  # 3 and 4 as well
    size = cy.collapse(cycles, 5, 2, 0, 0.25)
    assert list(cycles.members[:size]) == [2, 0]
    assert list(cycles.mu[:size]) == [-0.75, 0.75]
    size = cy.collapse(cycles, 5, 2, 0, 1.0)  # now the given pair does, too
    assert list(cycles.members[:size]) == [2, 0]
    assert list(cycles.mu[:size]) == [0.0, 0.0]


def test_collapse_drops_what_rounding_leaves_of_a_member():
    cycles = Cycles.of(M)
    for step in (0.1, 0.2):
        cy.remember(cycles, 5, 6, step, 1.0)
    cy.remember(cycles, 6, 5, 0.3, 1.0)  # 0.1 + 0.2 - 0.3 = 5.6e-17
    size = cy.collapse(cycles, 4, 0, 1, 1.0)
    assert list(cycles.members[:size]) == [0, 1]


def test_collapse_can_be_repeated():
    cycles, _ = fed(np.random.default_rng(3), 12)
    first = cy.collapse(cycles, 7, 0, 1, 0.5)
    members, mu = cycles.members[:first].copy(), cycles.mu[:first].copy()
    assert cy.collapse(cycles, 7, 0, 1, 0.5) == first
    assert np.array_equal(cycles.members[:first], members)
    assert np.array_equal(cycles.mu[:first], mu)


@every_seed
def test_decrease_is_the_sum_of_the_gains_of_the_cycle(seed):
    rng = np.random.default_rng(seed)
    cycles, reference = fed(rng, 50, memory=16)
    for k in range(2, 16):
        gain = dyadic(rng)
        assert cy.decrease(cycles, k, gain) == gain + sum(update[3] for update in reference.last(k))


# -- how far ---------------------------------------------------------------------------------


def boxed(rng, m=M):
    """A box with infinite sides, a point of it (some entries at a bound) and a direction with zeros."""
    lo = np.where(rng.random(m) < 0.3, -np.inf, rng.uniform(-2, -1, m))
    hi = np.where(rng.random(m) < 0.3, np.inf, rng.uniform(1, 2, m))
    u = rng.uniform(-0.9, 0.9, m)
    at = rng.random(m)
    u = np.where((at < 0.1) & np.isfinite(lo), lo, np.where((at > 0.9) & np.isfinite(hi), hi, u))
    members = rng.permutation(m)[: int(rng.integers(2, m + 1))]
    mu = rng.normal(size=len(members)) * (rng.random(len(members)) < 0.8)
    return lo, hi, u, members, mu


@every_seed
def test_room_is_the_longest_step_inside_the_box(seed):
    rng = np.random.default_rng(seed)
    kinds = set()
    for _ in range(200):
        lo, hi, u, members, mu = boxed(rng)
        limit = cy.room(filled(members, mu), len(members), u, lo, hi)
        V = np.zeros(M)
        V[members] = mu
        assert limit >= 0.0
        kinds.add("none" if limit == 0 else "some" if np.isfinite(limit) else "all")
        inside = u + min(limit, 1e9) * V
        assert (inside >= lo - 1e-12).all() and (inside <= hi + 1e-12).all()
        if np.isfinite(limit):
            outside = u + (limit + 1e-6) * V
            assert (outside < lo).any() or (outside > hi).any()
        assert limit == min(
            [(hi[i] - u[i]) / a for i, a in zip(members, mu, strict=True) if a > 0]
            + [(lo[i] - u[i]) / a for i, a in zip(members, mu, strict=True) if a < 0],
            default=np.inf,
        )
    assert kinds == {"none", "some", "all"}


def test_room_of_a_direction_of_zeros_is_infinite_even_at_a_bound():
    cycles, u = filled([0, 1], [0.0, 0.0]), np.zeros(M)
    assert cy.room(cycles, 2, u, np.zeros(M), np.zeros(M)) == np.inf


def test_room_is_zero_where_rounding_has_left_the_box():
    cycles, u = filled([0, 1], [1.0, -1.0]), np.zeros(M)
    u[1] = -1e-18
    assert cy.room(cycles, 2, u, np.zeros(M), np.full(M, np.inf)) == 0.0


def rounds(seed, m=M, count=6):
    """Exact pair steps on a random quadratic function: f, its matrix, start, end, and the sums over them."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, m)) * np.logspace(0, -2, m)
    Q, p = A @ A.T + 1e-3 * np.eye(m), rng.normal(size=m)
    u = rng.normal(size=m)
    cycles = Cycles.of(m)
    start, members = u.copy(), set()

    def f(x):
        return 0.5 * x @ Q @ x - p @ x

    for t in range(count):
        g = Q @ u - p
        i, j = pair(rng, m)
        i, j = (i, j) if g[i] < g[j] else (j, i)
        step = (g[j] - g[i]) / (Q[i, i] + Q[j, j] - 2 * Q[i, j])
        gain = 0.5 * step * (g[j] - g[i])
        if t == count - 1:
            size, total = cy.collapse(cycles, count, i, j, step), cy.decrease(cycles, count, gain)
        else:
            cy.remember(cycles, i, j, step, gain)
        u[[i, j]] += [step, -step]
        members |= {i, j}
    V = np.zeros(m)
    V[cycles.members[:size]] = cycles.mu[:size]
    assert set(cycles.members[:size]) == members
    slope = -(Q @ u - p) @ V
    return f, Q, start, u, V, size, slope, total


@pytest.mark.parametrize("seed", range(40))
def test_curvature_follows_from_decrease_and_slope(seed):
    f, Q, start, end, V, _, slope, total = rounds(seed)
    assert end == pytest.approx(start + V, abs=1e-12)
    assert total == pytest.approx(f(start) - f(end), rel=1e-9)
    assert 2.0 * (total - slope) == pytest.approx(V @ Q @ V, rel=1e-9)


def test_length_is_the_exact_minimiser_along_the_direction():
    taken = 0
    for seed in range(300):
        f, Q, _, end, V, size, slope, total = rounds(seed)
        # As many updates as one likes: then any gain is worth it.
        step, gain = cy.length(10**9, size, slope, total, np.inf)
        if slope <= 0:
            assert (step, gain) == (0.0, 0.0)
            continue
        taken += 1
        best = slope / (V @ Q @ V)
        assert step == pytest.approx(best, rel=1e-7)
        assert gain == pytest.approx(f(end) - f(end + best * V), rel=1e-6)
        assert f(end + step * V) <= min(f(end + factor * best * V) for factor in (0.9, 1.1))
    assert taken > 30


def test_length_ends_at_the_limit():
    taken = 0
    for seed in range(100):
        f, Q, _, end, V, size, slope, total = rounds(seed)
        if slope <= 0:
            continue
        taken += 1
        limit = 0.3 * slope / (V @ Q @ V)
        step, gain = cy.length(10**9, size, slope, total, limit)
        assert step == limit
        assert gain == pytest.approx(f(end) - f(end + limit * V), rel=1e-6)
        assert cy.length(10**9, size, slope, total, 0.0) == (0.0, 0.0)
    assert taken > 10


def test_length_is_zero_where_the_direction_does_not_descend():
    for slope in (0.0, -1e-300, -1.0, np.nan):
        assert cy.length(2, 2, slope, 1.0, np.inf) == (0.0, 0.0)


@pytest.mark.parametrize(("k", "size"), [(2, 3), (4, 4), (6, 7), (20, 3)])
def test_length_is_zero_exactly_where_plain_steps_with_the_same_rows_gain_more(k, size):
    curvature, answers = 0.01, set()
    for slope in np.linspace(0.0005, 0.994, 400):
        # V'QV = 2 (G - s): the decrease that belongs to this slope.
        decrease = slope + 0.5 * curvature
        worth = 0.5 * (size - 2) * decrease / k
        gain = 0.5 * slope**2 / curvature
        step, said = cy.length(k, size, float(slope), float(decrease), np.inf)
        if abs(gain - worth) > 1e-9:
            assert (step > 0) == (gain > worth)
            answers.add(step > 0)
        assert said == pytest.approx(gain if step > 0 else 0.0)
    assert answers == {False, True}


def test_length_along_a_direction_without_curvature_is_finite_unless_it_leads_to_a_bound():
    # G = s: f falls along V without end, as far as these numbers can tell.
    step, gain = cy.length(3, 4, 1.0, 1.0, np.inf)
    assert 1.0 < step < np.inf and 0.0 < gain < np.inf
    assert cy.length(3, 4, 1.0, 1.0, 7.0)[0] == 7.0
    step, gain = cy.length(3, 4, 1.0 + 1e-12, 1.0, np.inf)  # rounding: a negative curvature
    assert 1.0 < step < np.inf and 0.0 < gain < np.inf


# -- the step --------------------------------------------------------------------------------


def balanced(rng):
    """A box, a point of it and a direction whose sum is zero."""
    while True:
        lo, hi, u, members, mu = boxed(rng)
        mu[0] -= mu.sum()
        limit = cy.room(filled(members, mu), len(members), u, lo, hi)
        if limit > 0 and mu.any():
            return lo, hi, u, members, mu, limit


@every_seed
def test_move_keeps_the_sum_and_the_box_and_records_the_actual_change(seed):
    rng = np.random.default_rng(seed)
    for _ in range(200):
        lo, hi, u, members, mu, limit = balanced(rng)
        cycles, before = filled(members, mu), u.copy()
        step = min(limit, 5.0) * rng.choice([0.3, 1.0])
        cy.move(cycles, len(members), step, u, lo, hi)
        assert (u >= lo).all() and (u <= hi).all()
        scale = np.abs(before).sum() + step * np.abs(mu).sum()
        assert abs(u.sum() - before.sum()) <= 1e-15 * scale * M
        change = np.zeros(M)
        change[members] = cycles.mu[: len(members)]
        assert np.abs(u - before - change).max() <= 4e-16 * scale
        asked = np.zeros(M)
        asked[members] = step * mu
        assert np.abs(change - asked).max() <= 1e-14 * scale
        untouched = np.setdiff1d(np.arange(M), members)
        assert np.array_equal(u[untouched], before[untouched])


@every_seed
def test_move_to_the_limit_puts_somebody_exactly_at_a_bound(seed):
    rng = np.random.default_rng(seed)
    reached = 0
    for _ in range(100):
        lo, hi, u, members, mu, limit = balanced(rng)
        if not np.isfinite(limit):
            continue
        cy.move(filled(members, mu), len(members), limit, u, lo, hi)
        moved = members[mu != 0]
        assert ((u == lo) | (u == hi))[moved].any()
        reached += 1
    assert reached > 20


@every_seed
def test_move_a_little_too_far_is_cut_at_the_box_and_recorded_as_it_was(seed):
    rng = np.random.default_rng(seed)
    balanced_again = 0
    for _ in range(200):
        lo, hi, u, members, mu, limit = balanced(rng)
        if not np.isfinite(limit):
            continue
        cycles, before = filled(members, mu), u.copy()
        step = limit * (1.0 + 1e-6)
        cy.move(cycles, len(members), step, u, lo, hi)
        assert (u >= lo).all() and (u <= hi).all()
        change = np.zeros(M)
        change[members] = cycles.mu[: len(members)]
        scale = np.abs(before).sum() + step * np.abs(mu).sum()
        assert np.abs(u - before - change).max() <= 4e-16 * scale
        room = np.minimum(u - lo, hi - u)[members]
        if (room[room > 0] > 1e-5 * scale).all() and (room > 0).any():  # somebody can make up for it
            balanced_again += 1
            assert abs(u.sum() - before.sum()) <= 1e-15 * scale * M
    assert balanced_again > 50


def test_move_that_rounds_past_a_bound_stays_in_the_box_and_keeps_the_sum():
    lo, hi = np.zeros(3), np.full(3, np.inf)
    u = np.array([0.1, 0.3, 0.6])
    cycles = filled([0, 1, 2], [-0.3, 0.1, 0.2], m=3)
    limit = cy.room(cycles, 3, u, lo, hi)
    cy.move(cycles, 3, limit, u, lo, hi)
    assert u[0] == 0.0
    assert u == pytest.approx([0.0, 0.3 + 0.1 / 3, 0.6 + 0.2 / 3], rel=1e-15)
    assert abs(u.sum() - 1.0) <= 2e-16
