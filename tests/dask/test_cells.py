"""Cells that are trained on workers: the models of the ordinary estimator, whatever the chunks."""

from __future__ import annotations

import os
import pickle
import signal

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_friedman1, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import maxmargin
from expected_failures import failures_of_scikit_learns_own_class
from maxmargin import SVC, SVR
from maxmargin.cells.training import Constant
from maxmargin.dask import CellSVC, CellSVR
from maxmargin.dask.cells_rows import CellRows, split_cells, train_cells

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def moons():
    return make_moons(1500, noise=0.2, random_state=0)


def options(**more):
    return {"cell_size": 200, "report_cost": False, **more}


@pytest.fixture(scope="module")
def local(moons):
    return maxmargin.CellSVC(SVC(gamma=1.0), **options()).fit(*moons)


@pytest.mark.parametrize("chunks", [(1500,), (400, 1, 999, 100)])
def test_models_are_those_of_the_ordinary_estimator_whatever_the_chunks(client, moons, local, chunks):
    X, y = moons
    lazy = da.from_array(X, chunks=(chunks, (1, 1)))
    model = CellSVC(SVC(gamma=1.0), **options()).fit(lazy, da.from_array(y, chunks=(chunks,)))
    assert model.distributed_ and model.status_ == "solved"
    assert np.array_equal(model.centres_, local.centres_)
    assert np.array_equal(model.cell_sizes_, local.cell_sizes_)
    assert np.array_equal(model.decision_function(X), local.decision_function(X))
    values = model.decision_function(lazy)
    assert values.chunks == (chunks,)
    np.testing.assert_allclose(values.compute(), local.decision_function(X), atol=1e-12)


def test_a_worker_more_gives_the_same_models(start_cluster, moons, local):
    client = start_cluster(3)
    model = CellSVC(SVC(gamma=1.0), client=client, **options()).fit(*moons)
    assert np.array_equal(model.decision_function(moons[0]), local.decision_function(moons[0]))


def test_labels_weights_and_overlap_are_as_in_one_process(client, moons):
    X, y = moons
    labels, weight = np.array(["no", "yes"])[y], np.arange(len(y)) % 4 / 2.0
    kind = options(estimator=SVC(gamma=1.0, class_weight="balanced"), overlap=0.2)
    ordinary = maxmargin.CellSVC(**kind).fit(X, labels, weight)
    lazy = (da.from_array(each, chunks=400) for each in (labels, weight))
    model = CellSVC(**kind).fit(da.from_array(X, chunks=(400, 2)), *lazy)
    assert model.classes_.tolist() == ["no", "yes"]
    assert np.array_equal(model.cell_sizes_, ordinary.cell_sizes_)
    assert np.array_equal(model.decision_function(X), ordinary.decision_function(X))
    assert model.score(X, labels) == ordinary.score(X, labels)


def test_sparse_chunks_give_sparse_models(client, moons):
    X, y = moons
    X = sp.csr_matrix(X)
    ordinary = maxmargin.CellSVC(SVC(gamma=1.0), **options()).fit(X, y)
    lazy = da.map_blocks(sp.csr_matrix, da.from_array(X.toarray(), chunks=(500, 2)), dtype=float)
    model = CellSVC(SVC(gamma=1.0), **options()).fit(lazy, y)
    assert np.array_equal(model.decision_function(X), ordinary.decision_function(X))


def test_regression_estimates_gamma_from_all_chunks(client):
    X, y = make_friedman1(1000, random_state=0)
    ordinary = maxmargin.CellSVR(SVR(C=10.0), **options()).fit(X, y)
    model = CellSVR(SVR(C=10.0), **options()).fit(da.from_array(X, chunks=(300, 10)), y)
    assert model.estimator_.gamma == pytest.approx(ordinary.estimator_.gamma, rel=1e-12)
    np.testing.assert_allclose(model.predict(X), ordinary.predict(X), rtol=1e-3)


def test_the_cost_is_stated_as_in_one_process(client, moons):
    cost = CellSVC(cell_size=200).fit(da.from_array(moons[0], chunks=(500, 2)), moons[1]).cost_
    assert cost.cells.rows == cost.exact.rows == 900 and cost.held_out == 300


def test_few_rows_are_one_cell(client, moons):
    X, y = (part[:200] for part in moons)
    model = CellSVC(SVC(gamma=1.0)).fit(da.from_array(X, chunks=(70, 2)), y)
    assert model.n_cells_ == 1 and model.cost_ is None
    assert np.array_equal(model.decision_function(X), SVC(gamma=1.0).fit(X, y).decision_function(X))


def test_the_ordinary_estimator_and_copies_predict_the_same(client, moons, local):
    X, y = moons
    model = CellSVC(SVC(gamma=1.0), **options()).fit(da.from_array(X, chunks=(500, 2)), y)
    ordinary = model.to_local()
    assert type(ordinary) is maxmargin.CellSVC and ordinary.n_cells_ == model.n_cells_
    for copy in (ordinary, pickle.loads(pickle.dumps(ordinary)), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(copy.predict(X), local.predict(X))
    assert clone(model).cell_size == 200


def test_it_trains_in_this_process_if_asked_to(moons, local):
    X, y = moons
    model = CellSVC(SVC(gamma=1.0), distribute=False, **options()).fit(da.from_array(X, chunks=(500, 2)), y)
    assert not model.distributed_
    assert np.array_equal(model.predict(X), local.predict(X))


def test_frames_have_names_and_an_index_of_their_own(client):
    X, y = make_blobs(300, 2, centers=3, random_state=0)
    frame = pd.DataFrame(X, columns=["a", "b"], index=np.arange(300) + 7)
    lazy = dd.from_pandas(frame, npartitions=3)
    model = CellSVC(**options(cell_size=60)).fit(lazy, np.array(["x", "y", "z"])[y])
    assert model.feature_names_in_.tolist() == ["a", "b"]
    labels = model.predict(lazy).compute()
    assert labels.index.equals(frame.index) and labels.tolist() == model.predict(frame).tolist()
    values = model.decision_function(lazy).compute()
    np.testing.assert_allclose(values.to_numpy(), model.decision_function(frame), atol=1e-12)
    assert values.columns.tolist() == ["x", "y", "z"]


def test_a_chunk_with_nan_is_named(client, moons):
    X = np.array(moons[0])
    X[700, 1] = np.nan
    with pytest.raises(ValueError, match=r"chunk 1 .*NaN.*row 700"):
        CellSVC().fit(da.from_array(X, chunks=(500, 2)), moons[1])


def test_cells_that_there_is_no_time_for_are_constant(client, moons):
    X, y = moons
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = CellSVC(SVC(gamma=1.0), max_time=0.0, **options()).fit(da.from_array(X, chunks=(500, 2)), y)
    assert model.status_ == "max_time" and model.relative_gap_ == np.inf
    assert all(isinstance(each, Constant) for each in model.models_)


@pytest.fixture
def after_first_task(monkeypatch):
    """Sets what happens in this process once, when the first cells are trained."""

    def set_up(happens):
        train, todo = CellRows.train, [happens]

        def train_until(self, estimator, cells, y, weight, done):
            def done_and_more(count):
                done(count)
                if todo:
                    todo.pop()()

            return train(self, estimator, cells, y, weight, done_and_more)

        monkeypatch.setattr(CellRows, "train", train_until)
        return todo

    return set_up


def test_an_interrupt_keeps_the_cells_that_are_trained(client, moons, after_first_task):
    X, y = moons
    after_first_task(lambda: signal.raise_signal(signal.SIGINT))
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = CellSVC(SVC(gamma=1.0), **options()).fit(da.from_array(X, chunks=(500, 2)), y)
    assert model.status_ == "interrupted"
    assert {each.status_ for each in model.models_} == {"solved", "interrupted"}


def test_tasks_of_a_worker_that_is_killed_are_repeated(start_cluster, moons, local, after_first_task):
    X, y = moons
    client = start_cluster(2)
    victim = next(iter(client.run(os.getpid).values()))
    left = after_first_task(lambda: os.kill(victim, signal.SIGKILL))
    model = CellSVC(SVC(gamma=1.0), client=client, **options()).fit(da.from_array(X, chunks=(100, 2)), y)
    assert not left
    assert np.array_equal(model.decision_function(X), local.decision_function(X))


def test_tasks_have_readable_names(client, moons):
    CellSVC(SVC(gamma=1.0), **options()).fit(da.from_array(moons[0], chunks=(500, 2)), moons[1])
    names = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.task_prefixes))
    assert {"take-rows", "assign-cells", "split-cells", "train-cell"} <= set(names)


def test_a_task_trains_its_cells_from_the_pieces_of_all_parts():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    cells = [np.arange(0, 30), np.arange(30, 40)]
    halves = [
        split_cells(X[:20], [np.arange(20), np.arange(0)]),
        split_cells(X[20:], [np.arange(10), np.arange(10, 20)]),
    ]
    found = train_cells(SVC(gamma=1.0), [(y[own], np.ones(len(own))) for own in cells], None, *halves)
    for own, model in zip(cells, found, strict=True):
        expected = SVC(gamma=1.0).fit(X[own], y[own])
        assert np.array_equal(model.decision_function(X), expected.decision_function(X))


@pytest.mark.parametrize("collection", [dask.delayed([1])])
def test_other_collections_are_refused(client, collection):
    with pytest.raises(TypeError, match="dask array or data frame"):
        CellSVC().fit(collection, [1])


@parametrize_with_checks(
    [CellSVC(), CellSVR(cell_size=20)], expected_failed_checks=failures_of_scikit_learns_own_class
)
def test_scikit_learns_checks_pass_without_a_client(estimator, check):
    check(estimator)
