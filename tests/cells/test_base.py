"""Estimators on cells: data of many kinds, weights, limits, parameters that all cells share."""

import pickle
import signal
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_friedman1, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, SVR, CellSVC, CellSVR, NuSVC
from maxmargin.cells.rows import LocalRows
from maxmargin.cells.training import Constant
from maxmargin.estimators._scales import UnscaledDataWarning
from maxmargin.persistence import save


@pytest.fixture(scope="module")
def moons():
    return make_moons(1000, noise=0.2, random_state=0)


def cells(estimator=None, **more):
    return CellSVC(estimator, **{"cell_size": 150, "report_cost": False, **more})


@pytest.fixture(scope="module")
def fitted(moons):
    return cells().fit(*moons)


def test_few_rows_are_one_cell_whose_model_is_the_exact_one(moons):
    X, y = moons
    model, exact = CellSVC(cell_size=700).fit(X, y), SVC().fit(X, y)
    assert model.n_cells_ == 1 and model.cost_ is None
    assert np.array_equal(model.decision_function(X), exact.decision_function(X))
    assert model.relative_gap_ == exact.relative_gap_[0]


def test_attributes_describe_the_cells(fitted, moons):
    assert fitted.cell_sizes_.sum() == len(moons[1])
    assert fitted.centres_.shape == (fitted.n_cells_, 2) and len(fitted.models_) == fitted.n_cells_
    assert fitted.status_ == "solved"
    assert fitted.relative_gap_ == max(float(np.max(m.relative_gap_)) for m in fitted.models_) > 0


def test_cells_do_not_depend_on_threads(moons, fitted):
    X, y = moons
    two = cells(n_jobs=2).fit(X, y)
    assert np.array_equal(two.decision_function(X), fitted.decision_function(X))


@pytest.mark.parametrize(
    "convert", [np.float32, sp.csr_matrix, sp.coo_matrix, pd.DataFrame, np.asfortranarray]
)
def test_data_of_other_kinds_give_the_same_labels(moons, fitted, convert):
    X, y = moons
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = cells().fit(convert(X), y)
        assert np.mean(model.predict(convert(X)) == fitted.predict(X)) > 0.99


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_memory_map_gives_the_model_of_the_array(moons, tmp_path, dtype):
    X, y = moons[0].astype(dtype), moons[1]
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    weight = np.arange(len(y)) % 3 / 2.0  # with rows that do not count
    a, b = (cells().fit(data, y, weight) for data in (X, mapped))
    assert np.array_equal(a.decision_function(X), b.decision_function(mapped))


def test_a_pipeline_and_a_search_use_it_as_any_estimator(moons):
    X, y = moons
    pipeline = make_pipeline(StandardScaler(), cells())
    assert pipeline.fit(X, y).score(X, y) > 0.9
    search = GridSearchCV(cells(SVC()), {"estimator__C": [1e-3, 10.0]}, cv=2).fit(X, y)
    assert search.best_params_ == {"estimator__C": 10.0}


def test_model_files_refuse_it_with_an_alternative(fitted, tmp_path):
    with pytest.raises(TypeError, match=r"CellSVC cannot be stored.*Pickle"):
        save(fitted, tmp_path / "model.mm")


def test_copies_and_pickles_predict_the_same(moons, fitted):
    X, _ = moons
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.decision_function(X), fitted.decision_function(X))
    assert clone(fitted).get_params(deep=False) == fitted.get_params(deep=False)


def test_rows_without_weight_are_left_out(moons):
    X, y = moons
    weight = (np.arange(len(y)) % 3 > 0).astype(float)
    kept = weight > 0
    weighted = cells().fit(X, y, sample_weight=weight)
    fewer = cells().fit(X[kept], y[kept])
    assert np.array_equal(weighted.decision_function(X), fewer.decision_function(X))


def test_weights_reach_the_cells(moons):
    X, y = moons
    weight = np.where(y == 1, 10.0, 1.0)
    assert cells().fit(X, y, weight).predict(X).sum() > cells().fit(X, y).predict(X).sum()


def test_the_estimator_is_not_changed_and_its_parameters_are_shared(moons):
    X, y = moons
    svc = SVC(C=3.0, verbose=True, warm_start=True)
    model = cells(svc).fit(X, y)
    assert not hasattr(svc, "classes_") and svc.gamma == "scale"
    assert model.estimator_.gamma == pytest.approx(1 / (2 * X.var()))
    assert {(m.C, m.gamma) for m in model.models_ if not isinstance(m, Constant)} == {
        (3.0, model.estimator_.gamma)
    }


def test_parameters_are_chosen_once_for_all_cells(moons):
    model = cells(tune=True).fit(*moons)
    chosen = {(m.C, m.gamma) for m in model.models_ if not isinstance(m, Constant)}
    assert (
        chosen
        == {(model.estimator_.C, model.estimator_.gamma)}
        != {(1.0, cells().fit(*moons).estimator_.gamma)}
    )


def test_without_time_for_tuning_the_parameters_stay(moons):
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = cells(SVC(C=7.0), tune=True, max_time=0.0).fit(*moons)
    assert model.estimator_.C == 7.0


def test_a_sample_on_which_parameters_cannot_be_chosen_is_named(moons):
    X, y = moons[0], np.where(np.arange(1000) == 5, "rare", "other")
    with pytest.raises(ValueError, match=r"tune=True .* sample of 1,000 rows: .*one class.* tune=False"):
        cells(tune=True).fit(X, y)


def test_random_states_choose_the_samples(moons):
    X, y = moons
    centres = [cells(random_state=s).fit(X, y).centres_ for s in (None, 0, 1, np.random.RandomState(5))]
    assert np.array_equal(centres[0], centres[1])
    assert not np.array_equal(centres[0], centres[2]) and not np.array_equal(centres[0], centres[3])


def test_the_cost_compares_cells_with_exact_models(moons):
    cost = cells(report_cost=True).fit(*moons).cost_
    assert cost.cells.rows == cost.exact.rows == 675 and cost.held_out == 225
    for each in (cost.cells, cost.exact, cost.subsample):
        assert 0.8 < each.score <= 1.0 and each.seconds > 0


def test_progress_is_about_the_cells_of_the_fit_only(moons, capsys):
    model = cells(report_cost=True, verbose=True).fit(*moons)
    totals = {line.split(" cells")[0].split(" of ")[1] for line in capsys.readouterr().err.splitlines()}
    assert totals == {str(model.n_cells_)}


def test_the_cost_is_measured_on_more_rows_the_more_there_are():
    X, y = make_moons(4000, noise=0.2, random_state=0)
    cost = CellSVC(cell_size=40).fit(X, y).cost_
    assert cost.cells.rows + cost.held_out == int(np.sqrt(4000 * 40)) > 6 * 40


def test_the_cost_shows_what_a_smooth_function_loses():
    X, y = make_friedman1(2000, noise=0.1, random_state=1)
    cost = CellSVR(SVR(C=100.0), cell_size=100).fit(X, y).cost_
    assert cost.measure == "R²" and cost.cells.score < cost.exact.score - 2 * cost.error


# -- early ends ----------------------------------------------------------------------------------


def test_a_time_limit_leaves_constant_cells_and_says_so(moons):
    X, y = moons
    with pytest.warns(ConvergenceWarning, match="'max_time': raise max_time") as caught:
        model = cells(max_time=0.0, report_cost=True).fit(X, y)
    assert model.status_ == "max_time" and model.relative_gap_ == np.inf and model.cost_ is None
    assert caught[0].filename == __file__
    assert model.score(X, y) > 0.6


def test_a_time_limit_ends_the_fit_of_a_cell():
    X, y = make_friedman1(3000, noise=1.0, random_state=0)
    with pytest.warns(ConvergenceWarning):
        model = CellSVR(SVR(C=1e5, tol=1e-8), max_time=0.3, cell_size=5000).fit(X, y)
    assert model.status_ == "max_time"


def test_an_interrupt_keeps_trained_cells(moons, monkeypatch):
    X, y = moons
    train = LocalRows.train

    def train_and_press(self, estimator, cells, y, weight, done):
        pressed = []

        def press(count):
            done(count)
            if not pressed:
                pressed.append(signal.raise_signal(signal.SIGINT))

        return train(self, estimator, cells, y, weight, press)

    monkeypatch.setattr(LocalRows, "train", train_and_press)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = cells(n_jobs=1).fit(X, y)
    assert model.status_ == "interrupted"
    assert [m.status_ for m in model.models_].count("solved") == 1


def test_cells_that_reach_their_iterations_are_counted(moons):
    with pytest.warns(ConvergenceWarning, match=r"of \d+ cells ended .* 'max_iter'"):
        assert cells(SVC(max_iter=1)).fit(*moons).status_ == "max_iter"


# -- small and odd data ----------------------------------------------------------------------------


def test_one_feature_and_one_row_of_each_class_are_enough():
    assert CellSVC().fit([[0.0], [1.0]], ["a", "b"]).predict([[0.1], [0.9]]).tolist() == ["a", "b"]


def test_copies_of_two_rows():
    X, y = np.repeat([[0.0, 1.0], [1.0, 0.0]], 100, axis=0), np.repeat([3, 5], 100)
    model = CellSVC(cell_size=20).fit(X, y)
    assert model.n_cells_ == 2 and model.score(X, y) == 1.0


def test_cells_of_two_rows(moons):
    X, y = (part[:60] for part in moons)
    assert CellSVC(cell_size=2).fit(X, y).n_cells_ > 5


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(moons, bad):
    X = np.array(moons[0])
    X[3, 1] = bad
    with pytest.raises(ValueError, match="Input X contains"):
        cells().fit(X, moons[1])


def test_features_of_different_scales_give_one_warning(moons):
    X, y = moons
    with pytest.warns(UnscaledDataWarning) as caught:
        cells().fit(X * [1.0, 1e5], y)
    assert len(caught) == 1 and caught[0].filename == __file__


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: CellSVC(cell_size=1), ValueError, "cell_size"),
        (lambda: CellSVC(overlap=-1.0), ValueError, "overlap"),
        (lambda: CellSVC(SVR()), TypeError, r"maxmargin\.SVC"),
        (lambda: CellSVC(NuSVC()), TypeError, r"maxmargin\.SVC"),
        (lambda: CellSVR(SVC()), TypeError, r"maxmargin\.SVR"),
        (lambda: CellSVC(SVC(kernel="precomputed")), ValueError, "named kernels"),
        (lambda: CellSVC(SVC(kernel=np.dot)), ValueError, "named kernels"),
        (lambda: CellSVC(SVC(probability=True)), ValueError, "CalibratedClassifierCV"),
        (lambda: CellSVC(SVC(kernel="poly"), tune=True), ValueError, "one of the kernels rbf"),
        (lambda: CellSVC(n_jobs=0), ValueError, "n_jobs"),
        (lambda: CellSVC(SVC(C=-1.0)), ValueError, "'C' parameter of SVC"),
    ],
)
def test_wrong_arguments_are_refused(make, error, message, moons):
    with pytest.raises(error, match=message):
        make().fit(*moons)


def test_all_weights_zero_are_refused(moons):
    with pytest.raises(ValueError, match="zero or negative weights"):
        cells().fit(*moons, np.zeros(len(moons[1])))
