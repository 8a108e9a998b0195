"""The estimators of maxmargin.dask: training of every container, where, and scores."""

import logging
import time

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from distributed import Client, worker_client

import maxmargin
import maxmargin.persistence
from maxmargin.dask import SVC, SVR, NuSVC, NuSVR, OneClassSVM, base
from maxmargin.kernels import laplacian, linear, of_products, of_rows, rbf
from processes import run_python

pytestmark = pytest.mark.timeout(300)

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 4))
TWO = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, "yes", "no")
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
VALUES = np.sin(X[:, 0]) + 0.1 * rng.normal(size=400)
WEIGHTS = rng.random(400)
LAZY = da.from_array(X, chunks=(150, 4))
FRAME = pd.DataFrame(X, columns=list("abcd"), index=rng.permutation(400))
KINDS = pytest.mark.parametrize(
    ("kind", "y"),
    [(SVC, TWO), (SVC, THREE), (NuSVC, TWO), (SVR, VALUES), (NuSVR, VALUES), (OneClassSVM, None)],
    ids=["SVC", "SVC-3", "NuSVC", "SVR", "NuSVR", "OneClassSVM"],
)
WAYS = pytest.mark.parametrize("distribute", [True, "auto", False])


def values_of(model, rows):
    method = "decision_function" if hasattr(model, "decision_function") else "predict"
    return getattr(model, method)(rows)


# -- training ----------------------------------------------------------------------------------------------


@WAYS
def test_the_share_of_outliers_is_that_of_the_ordinary_estimator(client, distribute):
    model = OneClassSVM(contamination=0.1, distribute=distribute, tol=1e-6).fit(LAZY)
    expected = maxmargin.OneClassSVM(contamination=0.1, tol=1e-6).fit(X)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    assert np.mean(model.predict(X) == -1) == 0.1


@WAYS
@KINDS
def test_the_solution_is_that_of_the_ordinary_estimator(client, kind, y, distribute):
    expected = kind._local_class(tol=1e-6).fit(X, y)
    model = kind(tol=1e-6, distribute=distribute).fit(
        LAZY, None if y is None else da.from_array(y, chunks=70)
    )
    assert model.status_ == "solved" and model.distributed_ is (distribute is True)
    np.testing.assert_allclose(values_of(model, X), values_of(expected, X), atol=1e-4)
    np.testing.assert_allclose(model.dual_gap_, expected.dual_gap_, atol=1e-2)
    assert np.all(np.asarray(model.relative_gap_) < 1e-4)
    assert isinstance(model.predict(X), np.ndarray)


@WAYS
@KINDS
def test_weights_count_as_in_the_ordinary_estimator(client, kind, y, distribute):
    weights = np.where(np.arange(400) % 4, WEIGHTS, 0.0)
    expected = kind._local_class(tol=1e-6).fit(X, y, sample_weight=weights)
    model = kind(tol=1e-6, distribute=distribute)
    model.fit(LAZY, y, sample_weight=da.from_array(weights, chunks=90))
    np.testing.assert_allclose(values_of(model, X), values_of(expected, X), atol=1e-4)


UNKNOWN = LAZY[da.ones(400, dtype=bool, chunks=150)]
CONTAINERS = {
    "column-chunks": (da.from_array(X, chunks=(150, 3)), TWO),
    "unknown-sizes": (UNKNOWN, da.from_array(TWO, chunks=150)),
    "one-chunk": (da.from_array(X, chunks=(-1, -1)), TWO),
    "empty-chunks": (da.from_array(X, chunks=((0, 200, 0, 200, 0), 4)), da.from_array(TWO, chunks=100)),
    "sparse": (LAZY.map_blocks(sp.csr_matrix), TWO),
    "frame": (
        dd.from_pandas(FRAME, npartitions=3, sort=False),
        dd.from_pandas(pd.Series(TWO, index=FRAME.index, dtype="category"), npartitions=3, sort=False),
    ),
    "local-rows": (X, da.from_array(TWO, chunks=150)),
    "local": (X.tolist(), TWO.tolist()),
    "local-sparse": (sp.csr_array(X), TWO),
    "local-frame": (FRAME, pd.Series(TWO)),
    "sorted-labels": (LAZY[np.argsort(TWO)], da.from_array(np.sort(TWO), chunks=150)),
}


@WAYS
@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_gives_the_same_model(client, container, distribute):
    rows, y = CONTAINERS[container]
    expected = maxmargin.SVC(tol=1e-6).fit(X, TWO)
    model = SVC(tol=1e-6, distribute=distribute).fit(rows, y)
    assert model.classes_.tolist() == ["no", "yes"] and model.n_features_in_ == 4
    assert (
        (model.feature_names_in_.tolist() == list("abcd"))
        if "frame" in container
        else not hasattr(model, "feature_names_in_")
    )
    form = (
        sp.csr_array
        if "sparse" in container
        else (lambda rows: FRAME)
        if "frame" in container
        else np.asarray
    )
    np.testing.assert_allclose(model.decision_function(form(X)), expected.decision_function(X), atol=1e-4)


@WAYS
def test_float32_rows_are_trained_as_such(client, distribute):
    model = SVC(distribute=distribute).fit(LAZY.astype(np.float32), TWO)
    assert (
        model.support_vectors_.dtype == maxmargin.SVC().fit(X.astype(np.float32), TWO).support_vectors_.dtype
    )
    assert model.score(X, TWO) == pytest.approx(maxmargin.SVC().fit(X, TWO).score(X, TWO), abs=0.01)


@WAYS
def test_a_single_class_is_refused_as_in_the_ordinary_estimator(client, distribute):
    with pytest.raises(ValueError, match="number of classes has to be greater than one; got 1 class"):
        SVC(distribute=distribute).fit(LAZY, np.zeros(400, int))


@pytest.mark.parametrize("distribute", ["auto", True])
def test_many_small_chunks_are_trained(client, distribute):
    rows = np.tile(X, (10, 1))
    model = SVC(distribute=distribute).fit(da.from_array(rows, chunks=(20, 4)), np.tile(TWO, 10))
    assert (
        model.status_ == "solved" and model.score(da.from_array(rows, chunks=(20, 4)), np.tile(TWO, 10)) > 0.9
    )


@WAYS
def test_kernels_that_are_functions_are_trained_and_predicted(client, distribute):
    model = SVC(kernel=lambda a, b: (1 + np.asarray(a) @ np.asarray(b).T) ** 2, distribute=distribute)
    model.fit(LAZY, TWO)
    expected = maxmargin.SVC(kernel="poly", degree=2, gamma=1.0, coef0=1.0).fit(X, TWO)
    np.testing.assert_allclose(
        model.decision_function(LAZY).compute(), expected.decision_function(X), rtol=0.01, atol=0.01
    )


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, lambda y: da.from_array(y, chunks=(150, 2))])
def test_several_targets_are_refused_with_what_works(client, form):
    with pytest.raises(ValueError, match="2 columns: here a model has one target"):
        SVR(distribute=False).fit(LAZY, form(X[:, :2]))


def rational(dot, xx, zz):
    return 1.0 / (1.0 + 0.5 * (xx + zz - 2.0 * dot))


def smallest(x, z):
    total = 0.0
    for k in range(len(x)):
        total += min(abs(x[k]), abs(z[k]))
    return total


@WAYS
@pytest.mark.parametrize(
    "kernel",
    [
        rbf(0.3) * (linear() + 1),
        rbf([0.1, 0.2, 0.3, 0.4]) + laplacian(0.1),
        of_products(rational) + 0.1 * linear(),
        of_rows(smallest),
    ],
    ids=["product", "features", "of_products", "of_rows"],
)
def test_kernels_that_are_objects_are_trained_and_predicted(client, distribute, kernel):
    model = SVC(kernel=kernel, distribute=distribute, tol=1e-5).fit(LAZY, TWO)
    expected = maxmargin.SVC(kernel=kernel, tol=1e-5).fit(X, TWO)
    assert model.status_ == "solved"
    np.testing.assert_allclose(
        model.decision_function(LAZY).compute(), expected.decision_function(X), rtol=1e-3, atol=1e-3
    )


def test_a_fit_without_targets_is_refused(client):
    with pytest.raises(ValueError, match="requires y to be passed"):
        SVC().fit(LAZY, None)


def test_parameters_are_checked_before_data_are_read(client):
    def never(block):
        raise AssertionError

    rows = LAZY.map_blocks(never, dtype=float, meta=np.empty((0, 0)))
    for model, message in [
        (SVC(C=-1.0), "'C' parameter"),
        (SVC(distribute="yes"), "'distribute' parameter"),
        (SVC(kernel="precomputed"), "kernel='precomputed' is not possible on a cluster"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(rows, TWO)


def test_probabilities_are_trained_on_one_worker_and_refused_on_all(client):
    with pytest.warns(FutureWarning, match="probability"):
        model = SVC(probability=True).fit(LAZY, THREE)
    found = model.predict_proba(LAZY)
    assert found.chunks == ((150, 150, 100), (3,))
    np.testing.assert_allclose(found.sum(axis=1).compute(), 1.0)
    with pytest.raises(ValueError, match="probability=True is only possible on one worker"):
        SVC(probability=True, distribute=True).fit(LAZY, THREE)


def test_warnings_of_the_worker_are_warnings_here(client):
    with pytest.warns(Warning, match="max_iter"):
        model = SVC(max_iter=3).fit(LAZY, TWO)
    assert model.status_ == "max_iter"


def test_a_warm_start_begins_with_the_last_solution(client):
    model = SVC(warm_start=True).fit(LAZY, TWO)
    first = int(model.n_iter_[0])
    assert int(model.fit(LAZY, TWO).n_iter_[0]) < first


# -- where it is trained -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("distribute", "few", "place"),
    [
        ("auto", 401, r"fewer than 401, where distribute=True saves no time: training on one worker"),
        ("auto", 400, r"training on all workers"),
        (True, 401, r"training on all workers"),
        (False, 400, r"training in this process"),
    ],
)
def test_the_place_of_training_is_said_once(client, monkeypatch, caplog, capsys, distribute, few, place):
    monkeypatch.setattr(base, "FEW_ROWS", few)
    with caplog.at_level(logging.INFO, logger="maxmargin.dask"):
        model = SVC(distribute=distribute, verbose=True).fit(LAZY, TWO)
    line = caplog.messages[0]
    assert line.startswith("SVC: 400 rows, ") and line.endswith(place)
    assert line not in capsys.readouterr().err
    with caplog.at_level(logging.WARNING, logger="maxmargin.dask"):
        SVC(distribute=distribute, verbose=True).fit(LAZY, TWO)
    assert capsys.readouterr().err.count(line) == 1
    assert model.distributed_ is ("all" in place) and (model.traffic_ is None) is ("all" not in place)


def test_without_a_client_small_data_are_trained_in_this_process():
    for rows in (X, LAZY):
        model = SVC().fit(rows, TWO)
        assert not model.distributed_ and model.status_ == "solved"
        assert isinstance(model.predict(X), np.ndarray)
    assert isinstance(model.predict(LAZY), da.Array)
    assert model.score(LAZY, da.from_array(TWO, chunks=70)) == model.to_local().score(X, TWO)


@pytest.mark.parametrize(
    ("distribute", "rows", "message"),
    [
        (True, X, "distribute=True needs a cluster"),
        (True, LAZY, "distribute=True needs a cluster"),
        ("auto", UNKNOWN, "X has an unknown number of rows"),
        ("auto", dd.from_pandas(FRAME, npartitions=2, sort=False), "X has an unknown number of rows"),
        ("auto", da.zeros((200_000, 4)), "X has 200,000 rows"),
    ],
)
def test_without_a_client_other_fits_are_refused_with_what_to_do(distribute, rows, message):
    with pytest.raises(ValueError, match=rf"^{message}, and there is no dask client: .*distribute=False"):
        SVC(distribute=distribute).fit(rows, TWO)


def test_without_a_client_data_of_unknown_size_can_be_trained_in_this_process():
    model = SVC(distribute=False).fit(UNKNOWN, da.from_array(TWO, chunks=150))
    np.testing.assert_array_equal(model.predict(X), maxmargin.SVC().fit(X, TWO).predict(X))


def test_clients_that_cannot_be_used_are_refused(cluster):
    with pytest.raises(TypeError, match=r"client must be a distributed\.Client or None, got 'tcp://"):
        SVC(client="tcp://127.0.0.1:8786").fit(LAZY, TWO)
    with Client(cluster) as closed:
        pass
    with pytest.raises(ValueError, match=r"client is closed: make a new Client\(\)"):
        SVC(client=closed).fit(LAZY, TWO)


def test_an_asynchronous_client_is_refused():
    # In a process of its own: its event loop would be that of the tests.
    run_python(
        """
        import asyncio
        import dask.array as da, numpy as np
        from distributed import Client
        from maxmargin.dask import SVC

        async def main():
            async with Client(processes=False, asynchronous=True, dashboard_address=None) as client:
                X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]
                for model in (SVC(client=client), SVC()):
                    try:
                        model.fit(da.from_array(X), y)
                    except ValueError as error:
                        assert "asynchronous" in str(error), error
                    else:
                        raise AssertionError
                # What needs no client is possible.
                fitted = SVC(distribute=False).fit(X, y)
                assert (await client.compute(fitted.predict(da.from_array(X)))).tolist() == y

        asyncio.run(main())
        """
    )


def test_a_client_that_is_given_is_used_and_not_the_current_one(cluster, client):
    with Client(cluster, set_as_default=False) as given:
        model = SVC(client=given).fit(given.persist(LAZY), given.persist(da.from_array(TWO, chunks=150)))
        assert model.score(given.persist(LAZY), given.persist(da.from_array(TWO, chunks=150))) > 0.9


def test_a_cluster_that_starts_workers_when_they_are_needed_trains(start_cluster):
    client = start_cluster(1)
    client.cluster.adapt(minimum=0, maximum=1, interval="100ms", wait_count=1)
    until = time.monotonic() + 120
    while client.nthreads() and time.monotonic() < until:
        time.sleep(0.1)
    assert not client.nthreads()
    model = SVC().fit(LAZY, TWO)
    np.testing.assert_array_equal(model.predict(LAZY).compute(), model.predict(X))


def test_a_fit_within_a_task_does_not_wait_for_its_own_worker(start_cluster):
    client = start_cluster(1)  # of one thread

    def fit(rows, y):
        return SVC().fit(rows, y)

    assert client.submit(fit, X, TWO).result(120).status_ == "solved"
    assert client.submit(lambda y: fit(da.from_array(X, chunks=150), y), TWO).result(120).status_ == "solved"

    def with_workers(rows, y):
        with worker_client() as own:
            return SVC(client=own, distribute=True).fit(rows, y)

    assert client.submit(with_workers, X, TWO).result(240).distributed_


# -- scores ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [X, LAZY, UNKNOWN, dd.from_pandas(pd.DataFrame(X), npartitions=3)], ids=str)
@pytest.mark.parametrize(("kind", "y"), [(SVC, TWO), (SVR, VALUES)])
def test_scores_are_floats_and_those_of_the_ordinary_estimator(client, kind, y, rows):
    model = kind(distribute=False).fit(X, y)
    for truth in (y, da.from_array(y, chunks=150)):
        for weights in (None, WEIGHTS, da.from_array(WEIGHTS, chunks=130)):
            found = model.score(rows, truth, sample_weight=weights)
            expected = model.to_local().score(X, y, sample_weight=None if weights is None else WEIGHTS)
            assert type(found) is float and found == pytest.approx(expected, rel=1e-12)


def test_targets_of_another_length_have_no_score(client):
    model = SVC(distribute=False).fit(X, TWO)
    with pytest.raises(ValueError, match="y has 300 values and X 400 rows"):
        model.score(LAZY, da.from_array(TWO[:300], chunks=150))
