"""Lazy predictions: type, chunks, index and names of the result, and one copy of the model per worker."""

import os
import pickle
import warnings

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from dask.dataframe.utils import assert_eq
from distributed import Client, get_worker
from sklearn.exceptions import NotFittedError

import maxmargin
from maxmargin.dask import SVC, SVR, NuSVC, OneClassSVM, lazy

pytestmark = pytest.mark.timeout(300)

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 4))
TWO = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, "yes", "no")
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
FRAME = pd.DataFrame(X, columns=list("abcd"), index=pd.Index(rng.permutation(90), name="key"))
LAZY = da.from_array(X, chunks=(40, 4))
MODELS = {
    "two": SVC(distribute=False).fit(X, TWO),
    "three": SVC(distribute=False).fit(X, THREE),
    "pairs": NuSVC(distribute=False, decision_function_shape="ovo").fit(X, THREE),
    "value": SVR(distribute=False).fit(X, X[:, 0]),
    "region": OneClassSVM(distribute=False).fit(X),
}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # that `probability` is deprecated
    MODELS["likely"] = SVC(distribute=False, probability=True).fit(X, THREE)
CASES = [
    ("two", "predict"), ("two", "decision_function"), ("three", "predict"), ("three", "decision_function"),
    ("pairs", "decision_function"), ("value", "predict"), ("region", "predict"),
    ("region", "decision_function"), ("region", "score_samples"), ("likely", "predict_proba"),
    ("likely", "predict_log_proba"),
]  # fmt: skip


@pytest.fixture(params=["cluster", "synchronous"])
def anywhere(request):
    """With and without a client."""
    if request.param == "cluster":
        request.getfixturevalue("client")
        yield
    else:
        with dask.config.set(scheduler="synchronous"):
            yield


@pytest.mark.parametrize(("model", "method"), CASES)
@pytest.mark.parametrize("chunks", [(40, 4), (40, 3), ((0, 50, 0, 40), 4), (-1, -1)], ids=str)
def test_arrays_have_the_values_chunks_and_type_of_the_ordinary_method(anywhere, model, method, chunks):
    expected = getattr(MODELS[model].to_local(), method)(X)
    data = da.from_array(X, chunks=chunks)
    found = getattr(MODELS[model], method)(data)
    assert isinstance(found, da.Array) and found.chunks[0] == data.chunks[0]
    assert (
        found.shape == expected.shape and found.dtype == expected.dtype and found.name.startswith(method[:5])
    )
    assert type(found._meta) is np.ndarray and found._meta.dtype == expected.dtype
    da.utils.assert_eq(found, expected, rtol=1e-12)


@pytest.mark.parametrize(("model", "method"), CASES)
def test_frames_keep_index_and_partitions(anywhere, model, method):
    fitted = MODELS[model]
    expected = getattr(fitted.to_local(), method)(X)
    data = dd.from_pandas(FRAME, npartitions=3, sort=False)
    with pytest.warns(UserWarning, match="has feature names, but"):  # as the ordinary ones, once
        found = getattr(fitted, method)(data)
    assert found.npartitions == 3
    if expected.ndim == 1:
        wanted = pd.Series(expected, index=FRAME.index, name=method)
    else:
        columns = None if model == "pairs" else fitted.classes_
        wanted = pd.DataFrame(expected, index=FRAME.index, columns=columns)
    assert_eq(found, wanted, check_dtype=True)


def test_divisions_of_frames_stay_known(anywhere):
    data = dd.from_pandas(FRAME.sort_index(), npartitions=3)
    model = SVC(distribute=False).fit(FRAME, TWO)
    assert model.predict(data).divisions == data.divisions
    assert_eq(
        model.predict(data),
        pd.Series(model.predict(FRAME.sort_index()), index=data.compute().index, name="predict"),
    )


def test_chunks_of_unknown_size_are_predicted(anywhere):
    data = LAZY[LAZY[:, 0] > 0]
    found = MODELS["two"].predict(data)
    assert np.isnan(found.shape[0])
    np.testing.assert_array_equal(found.compute(), MODELS["two"].predict(X[X[:, 0] > 0]))
    assert len(MODELS["two"].predict(LAZY[LAZY[:, 0] > 100]).compute()) == 0


def test_sparse_chunks_are_predicted(anywhere):
    model = SVC(distribute=False).fit(sp.csr_array(X), TWO)
    data = da.from_array(X, chunks=(40, 2)).map_blocks(sp.csr_matrix)
    np.testing.assert_array_equal(model.predict(data).compute(), model.predict(sp.csr_array(X)))


def test_rows_of_float32_give_the_type_of_the_ordinary_method(anywhere):
    model = SVC(distribute=False).fit(X.astype(np.float32), TWO)
    expected = model.to_local().decision_function(X.astype(np.float32))
    found = model.decision_function(LAZY.astype(np.float32))
    assert found.dtype == expected.dtype == found.compute().dtype
    np.testing.assert_allclose(found.compute(), expected, rtol=1e-6)


def test_nullable_columns_are_predicted(anywhere):
    whole = (10 * FRAME).round().astype(int)
    model = SVC(distribute=False).fit(whole, TWO)
    found = model.predict(dd.from_pandas(whole.astype("Int64"), npartitions=3, sort=False))
    np.testing.assert_array_equal(found.compute().to_numpy(), model.predict(whole))


def test_predictions_of_different_data_and_models_do_not_mix(anywhere):
    a, b = MODELS["two"], SVC(distribute=False, C=0.01).fit(X, TWO)
    found = dask.compute(a.predict(LAZY[:50]), a.predict(LAZY[40:]), b.predict(LAZY[:50]))
    for values, expected in zip(
        found, [a.predict(X[:50]), a.predict(X[40:]), b.predict(X[:50])], strict=True
    ):
        np.testing.assert_array_equal(values, expected)


def test_names_of_columns_are_compared_before_anything_is_computed():
    model = SVC(distribute=False).fit(FRAME, TWO)
    data = dd.from_pandas(FRAME, npartitions=2, sort=False)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(data.rename(columns={"a": "other"}))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(data[list("dcba")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(data).compute(scheduler="synchronous")
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        found = model.predict(LAZY)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(found.compute(scheduler="synchronous"), model.predict(FRAME))


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (LAZY[:, :3], ValueError, "X has 3 features, but SVC is expecting 4 features"),
        (LAZY[:, 0], ValueError, "Expected 2D array, got 1D array"),
        (dd.from_pandas(FRAME["a"], npartitions=2, sort=False), ValueError, "Expected 2D array, got 1D"),
        (
            dd.from_pandas(FRAME.assign(d="text"), npartitions=2, sort=False),
            ValueError,
            "column 'd' .* not numeric",
        ),
        (dask.delayed(X), TypeError, "must be a dask array or data frame"),
        (LAZY * 1j, ValueError, "Complex data not supported"),
    ],
)
def test_other_data_are_refused_before_anything_is_computed(data, error, message):
    with pytest.raises(error, match=message):
        MODELS["two"].predict(data)


def test_an_error_in_a_block_is_raised(anywhere):
    bad = X.copy()
    bad[45, 2] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        MODELS["two"].predict(da.from_array(bad, chunks=(40, 4))).compute()


def test_a_model_that_is_not_fitted_is_refused():
    with pytest.raises(NotFittedError):
        SVC().predict(LAZY)


# -- the model on workers ----------------------------------------------------------------------------------


class Counted(maxmargin.SVC):
    """Writes a file where it is unpickled."""

    folder = ""

    def __setstate__(self, state):
        super().__setstate__(state)
        with open(os.path.join(self.folder, f"{os.getpid()}-{id(self)}"), "a") as file:
            file.write("copy\n")


class CountedSVC(SVC):
    _local_class = Counted


@pytest.mark.parametrize("small", [True, False], ids=["in-the-graph", "on-the-cluster"])
def test_each_worker_gets_one_copy_of_the_model(client, tmp_path, monkeypatch, small):
    monkeypatch.setattr(lazy, "_SMALL", 1 << 30 if small else 0)
    monkeypatch.setattr(Counted, "folder", str(tmp_path))
    model = CountedSVC(distribute=False).fit(X, TWO)
    rows = da.from_array(np.tile(X, (10, 1)), chunks=(15, 4))
    values = [model.predict(rows), model.decision_function(rows)]
    dask.compute(*values)
    copies = [path.name.split("-")[0] for path in tmp_path.iterdir()]
    assert 1 <= len(copies) == len(set(copies)) <= 2
    assert all(path.read_text() == "copy\n" for path in tmp_path.iterdir())
    assert str(os.getpid()) not in copies


def test_a_large_model_is_sent_once(client, monkeypatch):
    monkeypatch.setattr(lazy, "_SMALL", 0)
    model = SVC(distribute=False).fit(X, TWO)
    first, second = (lazy_model(model) for _ in range(2))
    assert first is second and first.client is client
    np.testing.assert_array_equal(model.predict(LAZY).compute(), model.predict(X))


def lazy_model(model):
    model.predict(LAZY)
    return model._models.task(model.client)


@pytest.mark.parametrize("small", [True, False])
def test_a_changed_model_is_sent_again(client, monkeypatch, small):
    monkeypatch.setattr(lazy, "_SMALL", 1 << 30 if small else 0)
    model = SVC(distribute=False).fit(X, THREE)
    assert model.decision_function(LAZY).compute().shape == (90, 3)
    key = lazy_model(model).key
    assert lazy_model(model).key == key
    model.set_params(decision_function_shape="ovo", break_ties=False)
    assert lazy_model(model).key != key
    model.fit(X, TWO)
    np.testing.assert_array_equal(model.predict(LAZY).compute(), model.predict(X))
    model.intercept_ = model.intercept_ + 100.0
    np.testing.assert_array_equal(model.decision_function(LAZY).compute(), model.decision_function(X))


def test_predictions_work_after_a_restart_of_the_workers(start_cluster, monkeypatch):
    client = start_cluster(1)
    monkeypatch.setattr(lazy, "_SMALL", 0)
    model = SVC(distribute=False).fit(X, TWO)
    model.predict(LAZY).compute()
    client.restart(timeout=120)
    np.testing.assert_array_equal(model.predict(LAZY).compute(), model.predict(X))


@pytest.mark.parametrize("small", [True, False])
def test_predictions_work_with_another_client_and_with_none(cluster, client, monkeypatch, small):
    monkeypatch.setattr(lazy, "_SMALL", 1 << 30 if small else 0)
    expected = MODELS["two"].predict(X)
    with Client(cluster) as other:
        model = SVC(client=other, distribute=False).fit(X, TWO)
        np.testing.assert_array_equal(other.compute(model.predict(LAZY)).result(120), expected)
        model.set_params(client=client)
        np.testing.assert_array_equal(client.compute(model.predict(LAZY)).result(120), expected)
        model.set_params(client=other)
    assert other.status == "closed"
    np.testing.assert_array_equal(model.predict(LAZY).compute(scheduler="synchronous"), expected)


def test_a_pickled_estimator_predicts_without_its_client(client):
    model = SVC(client=client, distribute=False).fit(X, TWO)
    model.predict(LAZY).compute()
    found = pickle.loads(pickle.dumps(model))
    assert found.client is None and found.get_params()["client"] is None
    np.testing.assert_array_equal(found.predict(LAZY).compute(scheduler="synchronous"), model.predict(X))


def test_a_pickled_prediction_can_be_computed():
    values = pickle.loads(pickle.dumps(MODELS["two"].predict(LAZY)))
    np.testing.assert_array_equal(values.compute(scheduler="synchronous"), MODELS["two"].predict(X))


def test_a_task_can_predict(client):
    def task(model):
        get_worker()
        return model.predict(da.from_array(X, chunks=(40, 4))).compute(scheduler="synchronous")

    np.testing.assert_array_equal(client.submit(task, MODELS["two"]).result(120), MODELS["two"].predict(X))
