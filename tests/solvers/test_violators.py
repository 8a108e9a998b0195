"""The choice of violators: the worst of all, and the extreme ones of a part."""

import numpy as np
import pytest

from maxmargin.solvers.violators import extreme_ends, worst_violators

N = 300


def case(seed, groups=1, n=N):
    """Random variables in their boxes, and their gradients."""
    rng = np.random.default_rng(seed)
    u = rng.choice([0.0, 0.4, 1.0], size=n)
    group = np.sort(rng.integers(groups, size=n)).astype(np.intp)
    inside = rng.random(n) < 0.2
    return rng.normal(size=n), u, np.zeros(n), np.ones(n), group, inside


def ends(case, k=0, wanted=20, low=-1e300, high=1e300):
    g, u, lo, hi, group, inside = case
    out = np.empty(2 * wanted, np.int64)
    rising, falling = extreme_ends(g, u, lo, hi, group, inside, k, wanted, low, high, out)
    return out[:rising], out[wanted : wanted + falling]


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("seed", range(5))
def test_the_ends_are_variables_that_may_move_from_outside_the_working_set(seed, groups):
    _, u, lo, hi, group, inside = made = case(seed, groups)
    for k in range(groups):
        rising, falling = ends(made, k)
        assert len(set(rising)) == len(rising) <= 20 and len(set(falling)) == len(falling) <= 20
        assert (u[rising] < hi[rising]).all() and (u[falling] > lo[falling]).all()
        for some in (rising, falling):
            assert not inside[some].any() and (group[some] == k).all() and len(some) >= 15


@pytest.mark.parametrize("seed", range(5))
def test_the_ends_hold_the_most_extreme_ones_up_to_the_width_of_a_bin(seed):
    g, u, lo, hi, _, inside = made = case(seed)
    # Between these bounds, as of the last step: a bin has a thousandth of the distance to them.
    rising, falling = ends(made, low=-2.0, high=2.0)
    may_rise = np.flatnonzero(~inside & (u < hi) & (g < 2.0))
    may_fall = np.flatnonzero(~inside & (u > lo) & (g > -2.0))
    width = (max(2.0 - g[may_rise].min(), g[may_fall].max() + 2.0)) / 1000
    assert len(rising) >= 19 and len(falling) >= 19
    assert g[rising].max() <= np.sort(g[may_rise])[len(rising) - 1] + width
    assert g[falling].min() >= np.sort(g[may_fall])[-len(falling)] - width
    assert g[may_rise].min() in g[rising] and g[may_fall].max() in g[falling]


def test_what_lies_beyond_the_known_extremes_is_no_violator():
    g, *_ = made = case(0)
    rising, falling = ends(made, low=0.5, high=-0.5)
    assert (g[rising] < -0.5).all() and (g[falling] > 0.5).all()
    assert [len(some) for some in ends(made, low=1e9, high=-1e9)] == [0, 0]


def test_no_violators_are_found_where_none_are_wanted():
    assert [len(some) for some in ends(case(0), wanted=0)] == [0, 0]


def test_of_equal_gradients_an_evenly_spread_choice_is_taken():
    n = 1000
    g, u = np.full(n, 0.25), np.full(n, 0.5)
    made = g, u, np.zeros(n), np.ones(n), np.zeros(n, np.intp), np.zeros(n, bool)
    for some in ends(made, wanted=50, low=-1.0, high=1.0):
        assert len(some) >= 49
        assert np.diff(some).max() <= 2 * n // 50


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_the_worst_of_all_are_among_the_ends_of_the_parts(parts):
    g, u, lo, hi, group, inside = case(3)
    least = np.array([g[u < hi].min()])
    most = np.array([g[u > lo].max()])
    out = np.empty(60, np.int64)
    worst = out[: worst_violators(g, u, lo, hi, group, inside, least, most, 30, out)]
    proposed = []
    for own in np.array_split(np.arange(N), parts):
        part = tuple(each[own] for each in (g, u, lo, hi, group, inside))
        proposed += [own[some] for some in ends(part, wanted=45, low=least[0], high=most[0])]
    worst_of_proposed = np.concatenate(proposed)
    # A few in the bin at the threshold may be others.
    assert len(np.setdiff1d(worst, worst_of_proposed)) <= 2
