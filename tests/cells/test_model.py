"""Partition and training together: which rows a cell gets, and whose model predicts."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from maxmargin import SVC
from maxmargin._compiled.limits import Limit
from maxmargin.cells.model import CellModel, Options, rows_of_cells
from maxmargin.cells.nearest import Nearest, nearest_centres
from maxmargin.cells.rows import LocalRows
from maxmargin.cells.training import Constant


@pytest.fixture(scope="module")
def moons():
    return make_moons(600, noise=0.2, random_state=0)


def trained(X, y, **options):
    given = {"cell_size": 100, "overlap": 0.0, "seed": 0, "n_jobs": 1, **options}
    return CellModel.train(LocalRows(X, 1), y, np.ones(len(y)), SVC(gamma=1.0), Options(**given))


def test_every_row_is_in_the_cell_of_its_nearest_centre():
    cells = rows_of_cells(Nearest(np.array([2, 0, 2, 0], np.int32)), 3)
    assert [own.tolist() for own in cells] == [[1, 3], [], [0, 2]]


def test_an_overlap_adds_the_closest_rows_of_neighbours():
    X = np.arange(10.0)[:, None]
    nearest = nearest_centres(X, np.array([[2.0], [7.0]]), two=True)
    cells = rows_of_cells(nearest, 2, overlap=0.4)
    assert [own.tolist() for own in cells] == [[0, 1, 2, 3, 4, 5, 6], [3, 4, 5, 6, 7, 8, 9]]


def test_each_row_is_predicted_by_the_model_of_its_cell(moons):
    X, y = moons
    model = trained(X, y)
    own = model.partition.nearest(X).own
    values = model.values(X, 1)
    for c, cell in enumerate(model.models):
        rows = np.flatnonzero(own == c)
        assert len(rows) == model.sizes[c]
        expected = np.full(len(rows), cell.value) if isinstance(cell, Constant) else cell.predict(X[rows])
        assert np.array_equal(values[rows], expected)


def test_a_file_is_predicted_in_passes_with_the_same_values(moons, tmp_path, monkeypatch):
    X, y = moons
    np.save(tmp_path / "X.npy", X)
    model = trained(X, y)
    monkeypatch.setattr("maxmargin.cells.rows.BUDGET", 100 * X.shape[1] * 8)
    assert np.array_equal(model.values(np.load(tmp_path / "X.npy", mmap_mode="r"), 1), model.values(X, 1))


def test_no_rows_have_no_values(moons):
    assert trained(*moons).values(np.empty((0, 2)), 1).shape == (0,)


def test_cells_without_time_are_constants_with_the_reason(moons):
    with Limit(0.0, shared=True):
        model = trained(*moons)
    assert {cell.status_ for cell in model.models} == {"max_time"}
    assert {cell.value for cell in model.models} == {0, 1}


def test_progress_ends_with_all_cells(moons, capsys):
    model = trained(*moons, verbose=True)
    assert f"{len(model.models)} of {len(model.models)} cells" in capsys.readouterr().err
