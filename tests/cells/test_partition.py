"""Cells have about the wanted size, and depend on the sample only."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs, make_moons

from maxmargin.cells.partition import Partition, n_cells_for, sample_rows, sample_size


def test_samples_are_drawn_without_repetition_from_number_size_and_seed():
    rows = sample_rows(1000, 100, seed=3)
    assert np.array_equal(rows, sample_rows(1000, 100, seed=3))
    assert len(np.unique(rows)) == 100 and (np.diff(rows) > 0).all() and rows.max() < 1000
    assert not np.array_equal(rows, sample_rows(1000, 100, seed=4))


def test_the_sample_has_enough_rows_for_each_centre():
    assert sample_size(300, 100) == 300
    assert sample_size(10_000_000, 5_000) == 50 * n_cells_for(10_000_000, 5_000)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_centres_do_not_depend_on_threads(n_jobs):
    X, _ = make_moons(2000, noise=0.2, random_state=0)
    expected = Partition.of_sample(X, 2000, 100)
    assert np.array_equal(Partition.of_sample(X, 2000, 100, n_jobs=n_jobs).centres, expected.centres)
    assert not np.array_equal(Partition.of_sample(X, 2000, 100, seed=1).centres, expected.centres)


def test_dense_and_sparse_samples_give_the_same_cells():
    X, _ = make_blobs(600, 8, centers=6, random_state=0)
    dense, sparse = (Partition.of_sample(sample, 600, 100) for sample in (X, sp.csr_matrix(X)))
    np.testing.assert_allclose(dense.centres, sparse.centres, atol=1e-12)


def test_a_dense_region_is_split_and_a_few_rows_far_away_have_no_cell():
    rng = np.random.default_rng(0)
    X = np.concatenate([0.01 * rng.normal(size=(2900, 2)), rng.normal(size=(100, 2)) * 3, [[900.0, 900.0]]])
    partition = Partition.of_sample(X, len(X), 200)
    sizes = np.bincount(partition.nearest(X).own, minlength=len(partition))
    assert sizes.max() <= 600 and sizes.min() >= 20


def test_copies_of_one_row_are_one_cell():
    assert len(Partition.of_sample(np.ones((500, 3)), 500, 50)) == 1


def test_a_part_of_the_centres_is_a_partition():
    partition = Partition(np.array([[0.0], [1.0], [5.0]]))
    assert partition.only(np.array([True, False, True])).nearest(np.array([[2.0]])).own.tolist() == [0]
