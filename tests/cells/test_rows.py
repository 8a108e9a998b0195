"""Rows of cells: those of a file are read in its order, some cells at a time."""

import numpy as np
import pytest

from maxmargin import SVC
from maxmargin._compiled.limits import Limit
from maxmargin.cells.partition import Partition
from maxmargin.cells.rows import LocalRows, file_of, release


@pytest.fixture
def mapped(tmp_path):
    np.save(tmp_path / "X.npy", np.random.default_rng(0).normal(size=(300, 3)))
    return np.load(tmp_path / "X.npy", mmap_mode="r")


def test_the_file_of_a_part_of_a_memory_map_is_found(mapped):
    assert file_of(np.asarray(mapped[10:20])) is not None
    assert file_of(np.zeros(3)) is None and file_of([1]) is None


def test_memory_that_is_given_back_is_read_again(mapped):
    before = np.array(mapped)
    release(file_of(mapped))
    assert np.array_equal(before, mapped)
    release(None)


@pytest.mark.parametrize("rows_per_pass", [1, 100, 1000])
def test_every_cell_gets_its_own_rows_once(mapped, rows_per_pass):
    cells = [np.arange(0, 300, 3), np.array([5, 7]), np.arange(1, 300, 3)]
    rows = LocalRows(mapped, 1)
    found = {}
    for numbers, take in rows._batches(cells, rows_per_pass * 3 * 8):
        for c in numbers:
            assert c not in found
            found[c] = take(cells[c])
    assert all(np.array_equal(found[c], mapped[own]) for c, own in enumerate(cells))


@pytest.mark.parametrize("kind", ["file", "array"])
def test_rows_that_do_not_count_have_no_number(mapped, kind):
    X = mapped if kind == "file" else np.array(mapped)
    kept = np.arange(1, 300, 2)
    rows = LocalRows(X, 1, kept)
    assert rows.shape == (150, 3)
    assert np.array_equal(rows.take(np.array([0, 2])), X[[1, 5]])
    partition = Partition(np.array(X[:4]))
    assert np.array_equal(rows.nearest(partition).own, partition.nearest(X[kept]).own)


def test_all_rows_of_an_array_are_not_copied():
    X = np.zeros((10, 2))
    assert LocalRows(X, 1).take(np.arange(10)) is X


def test_cells_that_begin_after_the_end_are_not_trained():
    X, y = np.arange(20.0)[:, None], np.arange(20) % 2
    cells, limit = [np.arange(10), np.arange(10, 20)], Limit(shared=True)

    def done(count):
        limit.pulled = True

    with limit:
        first, second = LocalRows(X, 1).train(SVC(gamma=1.0), cells, y, np.ones(20), done)
    assert first.status_ == "solved" and second is None
