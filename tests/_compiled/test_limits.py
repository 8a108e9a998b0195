"""Deadlines of computations, and what is reserved before them."""

from __future__ import annotations

import time

import pytest

from maxmargin._compiled.limits import Limit


def test_the_longest_reservation_counts_and_takes_half_of_the_time_at_most():
    limit = Limit(seconds=100.0)
    first = limit.deadline
    limit.reserve(10.0)
    limit.reserve(4.0)
    assert limit.deadline == pytest.approx(first - 10.0)
    limit.reserve(30.0)
    assert limit.deadline == pytest.approx(first - 30.0)
    limit.reserve(1000.0)
    assert limit.deadline == pytest.approx(first - 50.0)


def test_a_limit_without_an_end_has_nothing_to_reserve():
    limit = Limit()
    limit.reserve(10.0)
    assert limit.deadline is None and not limit.over


def test_the_flag_of_compiled_loops_is_raised_at_the_new_deadline():
    with Limit(seconds=60.0) as limit:
        limit.reserve(30.0)
        assert not limit.flag[0]
        limit.deadline = time.perf_counter() + 1.0
        limit._most_reserved, limit._reserved = 60.0, 0.0
        limit.reserve(0.95)
        ends = time.perf_counter() + 20.0
        while not limit.flag[0] and time.perf_counter() < ends:
            time.sleep(0.01)
        assert limit.flag[0]


def test_limits_within_a_shared_one_end_with_it_for_the_same_reason():
    with Limit(shared=True) as outer:
        with Limit() as first, Limit() as nested:
            outer.pulled = True
            assert first.pulled and first.flag[0]
            assert not nested.flag[0], "it is under the first, which is not shared"
        with Limit(seconds=60.0) as late:
            assert late.pulled
    with Limit() as after:
        assert not after.over


def test_a_limit_that_has_been_left_is_not_ended():
    with Limit(shared=True) as outer:
        with Limit() as inner:
            pass
        outer.pulled = True
    assert not inner.over
