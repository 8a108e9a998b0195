import numpy as np
import pytest

from maxmargin.model_selection.tuning.stages import part_of, splits_of


def test_most_rows_are_all_rows():
    rng = np.random.default_rng(0)
    assert len(part_of(1200, 1000, None, 5, rng)) == 1200
    assert len(part_of(1400, 1000, None, 5, rng)) == 1000


def test_parts_have_the_classes_in_proportion():
    label = np.repeat([0, 1, 2], [6000, 3000, 1000])
    rows = part_of(10_000, 1000, label, 5, np.random.default_rng(0))
    assert np.all(np.diff(rows) > 0)
    np.testing.assert_allclose(np.bincount(label[rows]) / len(rows), [0.6, 0.3, 0.1], atol=0.005)


def test_a_rare_class_makes_the_part_larger():
    label = np.zeros(20_000, np.intp)
    label[:200] = 1
    rows = part_of(20_000, 1000, label, 5, np.random.default_rng(0))
    assert len(rows) == pytest.approx(2000, abs=5) and np.count_nonzero(label[rows]) >= 20


def test_every_class_is_in_a_part():
    label = np.zeros(50_000, np.intp)
    label[:3] = [1, 2, 3]
    rows = part_of(50_000, 1000, label, 5, np.random.default_rng(0))
    assert set(label[rows]) == {0, 1, 2, 3} and len(rows) <= 4003


def test_splits_of_a_part_name_the_same_rows():
    splits = [
        (np.arange(5, 10), np.arange(5)),
        (np.arange(5), np.arange(5, 10)),
        (np.arange(9), np.array([9])),
    ]
    rows = np.array([1, 3, 5, 8])
    found = splits_of(splits, rows, 10)
    assert len(found) == 2  # the held-out row of the last fold is not in the part
    for (train, test), (all_train, all_test) in zip(found, splits, strict=False):
        assert set(rows[train]) == set(all_train) & set(rows)
        assert set(rows[test]) == set(all_test) & set(rows)
