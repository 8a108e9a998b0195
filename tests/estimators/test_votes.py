"""Votes of class pairs against plain Python."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from maxmargin.estimators._votes import pair_values, reordered, winners, winners_of_pairs

CLASSES = pytest.mark.parametrize("k", [2, 3, 4, 7, 26])


def elected(row, k):
    pairs = combinations(range(k), 2)
    votes = Counter(a if value > 0 else b for (a, b), value in zip(pairs, row, strict=True))
    return min(range(k), key=lambda c: (-votes[c], c))


@CLASSES
@pytest.mark.parametrize("n", [0, 1, 50])
def test_pair_values_take_row_b_minus_1_of_the_first_class_and_row_a_of_the_second(k, n):
    rng = np.random.default_rng(0)
    parts, intercept = rng.normal(size=(k, n, k - 1)), rng.normal(size=k * (k - 1) // 2)
    got = pair_values(parts, intercept)
    assert got.shape == (n, len(intercept)) and got.dtype == np.float64
    for p, (a, b) in enumerate(combinations(range(k), 2)):
        np.testing.assert_allclose(got[:, p], parts[a, :, b - 1] + parts[b, :, a] + intercept[p], rtol=1e-14)


@CLASSES
@pytest.mark.parametrize("levels", [1, 2, 3, 1000])
def test_winners_have_the_most_votes_and_the_first_of_several_wins(k, levels):
    rng = np.random.default_rng(k)
    values = rng.integers(-(levels // 2), (levels + 1) // 2, (200, k * (k - 1) // 2)).astype(float)
    got = winners(values, k)
    assert got.dtype == np.intp
    np.testing.assert_array_equal(got, [elected(row, k) for row in values])


def test_a_circle_of_three_goes_to_the_first():
    np.testing.assert_array_equal(winners(np.array([[1.0, -1.0, 1.0], [-1.0, 1.0, -1.0]]), 3), [0, 0])


def test_a_value_of_zero_is_a_vote_for_the_second_class():
    np.testing.assert_array_equal(winners(np.array([[0.0], [-0.0], [5e-324], [-5e-324]]), 2), [1, 1, 0, 1])
    assert winners(np.zeros((1, 6)), 4) == [3]


def test_infinite_values_vote_as_others_do():
    assert winners(np.array([[np.inf, np.inf, -np.inf]]), 3) == [0]
    assert winners(np.array([[-np.inf, np.inf, np.inf]]), 3) == [1]


def test_no_samples_have_no_winners():
    assert winners(np.empty((0, 3)), 3).shape == (0,)


def test_the_input_is_not_changed():
    parts, intercept = np.ones((3, 4, 2)), np.ones(3)
    values = pair_values(parts, intercept)
    winners(values, 3)
    assert (parts == 1).all() and (intercept == 1).all() and (values == 3).all()


@CLASSES
def test_reordered_values_are_those_of_the_pairs_in_the_other_order(k):
    rng = np.random.default_rng(k)
    order = rng.permutation(k)
    pairs = list(combinations(range(k), 2))
    values = rng.normal(size=(5, len(pairs)))
    value = {pair: values[:, p] for p, pair in enumerate(pairs)}
    value |= {(b, a): -v for (a, b), v in value.items()}
    got = reordered(values, order)
    assert got.flags.c_contiguous
    for p, (a, b) in enumerate(pairs):
        np.testing.assert_array_equal(got[:, p], value[order[a], order[b]])


@pytest.mark.parametrize("k", [3, 5])
def test_winners_of_pairs_are_those_of_the_values_sample_by_sample(k):
    rng = np.random.default_rng(k)
    values = rng.integers(-1, 2, (k * (k - 1) // 2, 4, 50)).astype(float)  # with many ties, and zeros
    values[0, 0, :5] = np.nan
    expected = [winners(np.ascontiguousarray(values[:, c].T), k) for c in range(4)]
    np.testing.assert_array_equal(winners_of_pairs(values, k), expected)
