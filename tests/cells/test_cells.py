"""Models on cells: partition, constant cells, data of many kinds, and the statement of cost."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_friedman1, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import maxmargin
from expected_failures import failures_of_scikit_learns_own_class
from maxmargin import SVC, SVR, CellSVC, CellSVR
from maxmargin.cells.partition import Partition, n_cells_for, sample_rows
from maxmargin.cells.training import Constant


@pytest.fixture(scope="module")
def moons():
    return make_moons(3000, noise=0.2, random_state=0)


@pytest.fixture(scope="module")
def fitted(moons):
    return CellSVC(cell_size=500, report_cost=False).fit(*moons)


@parametrize_with_checks(
    [CellSVC(), CellSVR(), CellSVC(cell_size=10), CellSVR(cell_size=20)],
    expected_failed_checks=failures_of_scikit_learns_own_class,
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


def test_few_rows_are_one_cell_whose_model_is_the_exact_one(moons):
    X, y = moons
    cells, exact = CellSVC(cell_size=2500).fit(X, y), SVC().fit(X, y)
    assert cells.n_cells_ == 1 and cells.cost_ is None
    assert np.array_equal(cells.decision_function(X), exact.decision_function(X))


def test_cells_have_about_the_size_that_was_asked_for(fitted, moons):
    assert fitted.cell_sizes_.sum() == len(moons[1])
    assert n_cells_for(3000, 500) <= fitted.n_cells_ + 2
    assert fitted.cell_sizes_.max() <= 3.5 * 500


def test_a_row_is_predicted_by_the_model_of_its_own_cell(fitted, moons):
    X, _ = moons
    own = np.argmin(((X[:, None] - fitted.centres_) ** 2).sum(axis=2), axis=1)
    predicted = fitted.predict(X)
    for c, model in enumerate(fitted.models_):
        rows = np.flatnonzero(own == c)
        of_model = np.full(len(rows), model.value) if isinstance(model, Constant) else model.predict(X[rows])
        assert np.array_equal(predicted[rows], fitted.classes_[of_model])


def test_the_partition_does_not_depend_on_chunks_or_threads(moons):
    X, y = moons
    one, two = (CellSVC(cell_size=300, report_cost=False, n_jobs=k).fit(X, y) for k in (1, 2))
    assert np.array_equal(one.centres_, two.centres_)
    assert np.array_equal(one.decision_function(X), two.decision_function(X))
    sample = X[sample_rows(len(X), 1000)]
    partition = Partition.of_sample(sample, len(X), 300)
    parts = [partition.nearest(X[a : a + 7]).own for a in range(0, len(X), 7)]
    assert np.array_equal(partition.nearest(X).own, np.concatenate(parts))


def test_a_cell_with_one_class_predicts_it():
    X, y = make_blobs(2000, centers=[[0, 0], [100, 0], [0, 100], [100, 100]], random_state=0)
    model = CellSVC(cell_size=300, report_cost=False).fit(X, np.array(list("abcd"))[y])
    assert any(isinstance(each, Constant) for each in model.models_)
    assert model.score(X, np.array(list("abcd"))[y]) == 1.0
    values = model.decision_function(X)
    assert values.shape == (2000, 4)
    assert np.array_equal(model.classes_[values.argmax(axis=1)], model.predict(X))


def test_classes_that_a_cell_does_not_have_come_last():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(600, 2)), rng.normal(size=(600, 2)) + 50])
    y = np.concatenate([rng.integers(0, 2, 600), rng.integers(2, 4, 600)])
    model = CellSVC(SVC(gamma=0.5), cell_size=400, report_cost=False).fit(X, y)
    values = model.decision_function(X)
    assert (values[:600, :2].min(axis=1) > values[:600, 2:].max(axis=1)).all()
    assert set(model.predict(X[:600])) <= {0, 1}


@pytest.mark.parametrize("convert", [np.float32, sp.csr_matrix, pd.DataFrame, np.asfortranarray])
def test_data_of_other_kinds_give_the_same_labels(moons, fitted, convert):
    X, y = moons
    data = X.astype(np.float32) if convert is np.float32 else convert(X)
    model = CellSVC(cell_size=500, report_cost=False).fit(data, y)
    assert np.mean(model.predict(data) == fitted.predict(X)) > 0.99


def test_a_memory_map_gives_the_model_of_the_array(moons, tmp_path):
    X, y = moons
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    a, b = (CellSVC(cell_size=400, report_cost=False).fit(data, y) for data in (X, mapped))
    assert np.array_equal(a.decision_function(X), b.decision_function(mapped))


def test_rows_without_weight_are_left_out(moons):
    X, y = moons
    weight = (np.arange(len(y)) % 3 > 0).astype(float)
    kept = weight > 0
    kind = {"cell_size": 300, "report_cost": False}
    weighted = CellSVC(SVC(gamma=1.0), **kind).fit(X, y, sample_weight=weight)
    fewer = CellSVC(SVC(gamma=1.0), **kind).fit(X[kept], y[kept])
    assert np.array_equal(weighted.decision_function(X), fewer.decision_function(X))


def test_overlap_adds_rows_of_neighbours(moons, fitted):
    X, y = moons
    more = CellSVC(cell_size=500, overlap=0.2, report_cost=False).fit(X, y)
    assert np.array_equal(more.centres_, fitted.centres_)
    assert 1.05 * len(y) < more.cell_sizes_.sum() <= 1.2 * len(y)


def test_the_cost_compares_the_same_rows(moons):
    X, y = moons
    cost = CellSVC(cell_size=200).fit(X, y).cost_
    assert cost.cells.rows == cost.exact.rows == 900 and cost.held_out == 300
    assert cost.subsample.rows <= cost.exact.rows
    for each in (cost.cells, cost.exact, cost.subsample):
        assert 0.8 < each.score <= 1.0 and each.seconds > 0
    assert 0 <= cost.error < 0.05 and "held-out" in str(cost)


def test_a_narrow_problem_costs_nothing_and_a_global_one_shows_its_price():
    X, y = make_friedman1(3000, noise=0.1, random_state=1)
    cost = CellSVR(SVR(C=100.0), cell_size=200).fit(X, y).cost_
    assert cost.measure == "R²"
    assert (
        cost.cells.score < cost.exact.score - 2 * cost.error
    )  # the regression function is smooth across cells


def test_parameters_are_chosen_once_for_all_cells(moons):
    X, y = moons
    model = CellSVC(cell_size=800, tune=True, report_cost=False).fit(X, y)
    chosen = {(m.C, m.gamma) for m in model.models_ if not isinstance(m, Constant)}
    assert chosen == {(model.estimator_.C, model.estimator_.gamma)}
    assert isinstance(model.estimator_.gamma, float)


def test_a_time_limit_leaves_constant_cells_and_says_so(moons):
    X, y = moons
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = CellSVC(cell_size=100, max_time=0.0, report_cost=False).fit(X, y)
    assert model.status_ == "max_time" and model.score(X, y) > 0.7


def test_nested_parameters_copies_and_pickles(moons, fitted):
    X, y = moons
    search = GridSearchCV(
        CellSVC(SVC(), cell_size=500, report_cost=False), {"estimator__C": [0.1, 10.0]}, cv=2
    )
    assert search.fit(X, y).best_params_["estimator__C"] in (0.1, 10.0)
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict(X), fitted.predict(X))
    assert clone(fitted).get_params()["cell_size"] == 500


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: CellSVC(cell_size=1), ValueError, "cell_size"),
        (lambda: CellSVC(overlap=-1.0), ValueError, "overlap"),
        (lambda: CellSVC(SVR()), TypeError, "maxmargin.SVC"),
        (lambda: CellSVC(SVC(kernel="precomputed")), ValueError, "named kernels"),
        (lambda: CellSVC(n_jobs=0), ValueError, "n_jobs"),
    ],
)
def test_wrong_arguments_are_refused(make, error, message, moons):
    with pytest.raises(error, match=message):
        make().fit(*moons)


def test_a_model_file_is_refused_with_a_reason(fitted, tmp_path):
    from maxmargin import persistence

    with pytest.raises(TypeError, match="CellSVC"):
        persistence.save(fitted, tmp_path / "model.maxmargin")


def test_names_are_in_the_package():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert maxmargin.CellSVC is CellSVC and maxmargin.CellSVR is CellSVR
