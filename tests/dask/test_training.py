"""Training on chunks gives the solution of a fit in one process, and its certificates hold."""

import sys
import warnings
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import chi2_kernel

import maxmargin
import maxmargin.dask
from maxmargin.dask import training
from maxmargin.dask.data import TrainingData
from maxmargin.gram import Gram
from maxmargin.kernels import Kernel
from maxmargin.solvers import Batch

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
N = 1300


@pytest.fixture
def judge():
    """The judge of benchmarks/attack.py: gap, optimality and feasibility in long double."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import attacks.judge
    except ImportError as error:  # pragma: no cover
        pytest.skip(f"the judge cannot be imported: {error}")
    finally:
        sys.path.remove(str(BENCHMARKS))

    def faults(model, X, y, weight=None, **options):
        return [f for verdict in attacks.judge.judge(model, X, y, weight, **options) for f in verdict.faults]

    return faults


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Four chunks of a thousand rows, though there are two workers."""
    monkeypatch.setattr(training, "chunk_count", lambda n, threads: max(1, n // 250))


def data(classes=2, n=N, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    steps = np.linspace(-0.7, 0.7, classes + 1)[1:-1]
    return X, np.digitize(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n), steps)


def numbers(n=N):
    X, _ = data(n=n)
    return X, np.sin(2 * X[:, 0]) + 0.2 * np.random.default_rng(1).normal(size=n)


def sparse(X):
    return sp.csr_array(np.where(np.abs(X) > 0.8, X, 0.0))


def wide_sparse(X):
    """So many columns, with so few entries, that kernels use the non-zeros only."""
    return sp.csr_array(sp.hstack([sparse(X), sp.random_array((len(X), 200), density=0.02, rng=0)]))


def weights(n=N):
    w = np.random.default_rng(2).uniform(0.2, 2.0, size=n)
    w[::7] = 0.0
    return w


# Name: estimator, parameters, classes (0: numbers), form of X, weights.
CASES = {
    "rbf": ("SVC", {"C": 3.0}, 2, np.asarray, None),
    "float32": ("SVC", {"C": 3.0}, 2, np.float32, None),
    "sparse": ("SVC", {"gamma": 0.3}, 2, sparse, None),
    "wide and sparse": ("SVC", {"gamma": 0.3}, 2, wide_sparse, None),
    "linear": ("SVC", {"kernel": "linear", "C": 0.1}, 2, np.asarray, None),
    "linear, sparse": ("SVC", {"kernel": "linear", "C": 0.1}, 2, wide_sparse, None),
    "poly": ("SVC", {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.3}, 2, np.asarray, None),
    "laplacian": ("SVC", {"kernel": "laplacian", "gamma": 0.2}, 2, np.asarray, None),
    "weights": ("SVC", {}, 2, np.asarray, weights()),
    "weights of classes": ("SVC", {"class_weight": {0: 3.0, 1: 0.5}}, 2, np.asarray, None),
    "squared hinge": ("SVC", {"loss": "squared_hinge"}, 2, np.asarray, None),
    "tight": ("SVC", {"tol": 1e-7}, 2, np.asarray, None),
    "three classes": ("SVC", {}, 3, np.asarray, weights()),
    "five classes": ("SVC", {}, 5, np.float32, None),
    "nu-svc": ("NuSVC", {"nu": 0.4}, 2, np.asarray, None),
    "nu-svc, three classes": ("NuSVC", {"nu": 0.3}, 3, np.asarray, None),
    "svr": ("SVR", {"C": 2.0, "epsilon": 0.1}, 0, np.asarray, None),
    "svr, weights": ("SVR", {"epsilon": 0.1}, 0, sparse, weights()),
    "svr, squared loss": ("SVR", {"loss": "squared_epsilon_insensitive"}, 0, np.asarray, None),
    "nu-svr": ("NuSVR", {"nu": 0.3, "C": 0.5}, 0, np.asarray, None),
    "one-class": ("OneClassSVM", {"nu": 0.2}, 2, np.asarray, None),
    "one-class, weights": ("OneClassSVM", {"nu": 0.2, "kernel": "laplacian"}, 2, np.float32, weights()),
}


def both(name, parameters, X, y, weight=None, **options):
    """The same fit on the cluster and in this process."""
    # A small working set: these problems would be solved in one piece otherwise, without any round.
    parameters = {"solver": Batch(working_set=120), **parameters}
    target = () if name == "OneClassSVM" else (y,)
    distributed = getattr(maxmargin.dask, name)(**parameters, distribute=True, **options)
    local = getattr(maxmargin, name)(**parameters)
    return (model.fit(X, *target, sample_weight=weight) for model in (distributed, local))


def objectives(model):
    return np.array([trace[-1].objective for trace in model.trace_])


@pytest.mark.parametrize("case", CASES)
def test_the_solution_is_that_of_one_process_within_both_certificates(case, client, judge):
    name, parameters, classes, form, weight = CASES[case]
    X, y = data(classes) if classes else numbers()
    X = form(X)
    model, local = both(name, parameters, X, y, weight, client=client)
    assert model.distributed_ and model.traffic_.calls > 10
    assert model.status_ == local.status_ == "solved"
    assert np.shape(model.dual_gap_) == np.shape(local.dual_gap_) == np.shape(model.relative_gap_)
    assert judge(model.to_local(), X, y, weight) == []
    gaps = np.ravel(model.dual_gap_) + np.ravel(local.dual_gap_)
    scale = 1.0  # the gap of a one-class SVM is stated for coefficients with the sum nu n
    if name == "OneClassSVM":
        scale = (parameters["nu"] * (N if weight is None else weight.sum())) ** 2
    difference = np.abs(objectives(model) - objectives(local))
    assert (difference <= gaps / scale + 1e-9 * np.abs(objectives(local))).all()
    assert model.support_.dtype == local.support_.dtype
    found, wanted = model.predict(X), local.predict(X)
    if classes:
        assert np.mean(found == wanted) > 0.97
    else:
        np.testing.assert_allclose(found, wanted, atol=0.02)


@pytest.mark.parametrize(("loss", "classes", "weight"), [("hinge", 2, None), ("squared_hinge", 3, weights())])
def test_a_bias_may_be_penalised(loss, classes, weight, client):
    X, y = data(classes)
    parameters = {"loss": loss, "bias": "penalised", "tol": 1e-5}
    model, local = both("SVC", parameters, X, y, weight, client=client)
    assert model.distributed_ and model.status_ == local.status_ == "solved"
    gaps = np.ravel(model.dual_gap_) + np.ravel(local.dual_gap_)
    assert (np.abs(objectives(model) - objectives(local)) <= gaps + 1e-9 * np.abs(objectives(local))).all()
    np.testing.assert_allclose(model.intercept_, local.intercept_, atol=1e-2)
    np.testing.assert_allclose(model.decision_function(X), local.decision_function(X), atol=1e-2)


def test_a_tight_tolerance_is_reached_with_float64_rows(client):
    X, y = data()
    model, local = both("SVC", {"tol": 1e-9, "C": 2.0}, X, y, client=client)
    assert model.status_ == "solved"
    np.testing.assert_allclose(
        model.decision_function(X), local.decision_function(X), atol=1e-7 * np.abs(model.dual_coef_).sum()
    )
    assert model.relative_gap_[0] < 1e-8


def test_a_kernel_may_be_a_function(client, judge):
    X, y = data(n=900)
    X = np.abs(X)
    model, local = both("SVC", {"kernel": chi2_kernel, "solver": Batch(working_set=200)}, X, y, client=client)
    assert model.traffic_.calls > 5 and model.status_ == "solved"
    assert judge(model.to_local(), X, y, matrix=chi2_kernel(X)) == []
    assert np.abs(objectives(model) - objectives(local)) <= model.dual_gap_ + local.dual_gap_


def test_dask_arrays_with_chunks_of_any_size_give_the_bits_of_numpy_arrays(client):
    X, y = data()
    chunked = da.from_array(X, chunks=((1, 500, 3, 796), (4, 2)))
    fit = {"solver": Batch(working_set=120), "gamma": 0.3, "client": client, "distribute": True}
    one = maxmargin.dask.SVC(**fit).fit(X, y)
    other = maxmargin.dask.SVC(**fit).fit(chunked, da.from_array(y, chunks=77))
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)
    np.testing.assert_array_equal(one.support_, other.support_)


def test_a_warm_start_needs_few_rounds_and_reaches_the_solution(client, judge):
    X, y = data()
    model = maxmargin.dask.SVC(warm_start=True, solver=Batch(working_set=120), client=client, distribute=True)
    cold = model.fit(X, y).traffic_.calls
    warm = model.set_params(C=1.2).fit(X, y)
    assert warm.status_ == "solved" and warm.traffic_.calls < cold
    assert judge(warm.to_local(), X, y) == []


def test_rounding_that_float32_cannot_afford_is_noticed(client, judge):
    rng = np.random.default_rng(0)
    X, y = data()
    X = X + 1e4 * rng.normal(size=X.shape[1])  # far from the origin: the chunks have one centre
    model, _ = both("SVC", {"gamma": 0.2, "tol": 1e-4}, X, y, client=client)
    assert model.status_ == "solved"
    assert judge(model.to_local(), X, y) == []


def test_max_iter_ends_a_fit_with_the_model_so_far(client, judge):
    X, y = data()
    with pytest.warns(Warning, match="max_iter"):
        model = next(iter(both("SVC", {"max_iter": 200}, X, y, client=client)))
    assert model.status_ == "max_iter"
    assert judge(model.to_local(), X, y) == []


def test_a_small_problem_is_solved_by_the_client_alone(client, judge):
    X, y = data(n=450)
    model, _ = both("SVC", {"solver": "auto"}, X, y, client=client)
    assert judge(model.to_local(), X, y) == []
    assert model.status_ == "solved"


def test_solvers_that_read_rows_one_by_one_are_refused(client):
    X, y = data(n=450)
    with pytest.raises(ValueError, match="solver='auto'"):
        maxmargin.dask.SVC(solver="smo", distribute=True, client=client).fit(X, y)


def test_many_columns_in_few_rounds_do_not_provoke_a_warning_about_large_graphs(client):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 1500)), rng.permutation(np.arange(2000) % 2)  # 12 kB per row
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = {"gamma": 1e-3, "solver": Batch(working_set=1500), "distribute": True, "client": client}
        assert maxmargin.dask.SVC(**fit).fit(X, y).status_ == "solved"


@pytest.mark.parametrize("form", [np.asarray, wide_sparse], ids=["dense", "sparse"])
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "laplacian", "sigmoid"])
def test_sums_for_certificates_are_those_of_rows_in_one_process(client, kernel, form):
    rows, X = np.arange(0, 400, 9), form(data(n=400)[0] + 1e3)
    coef = np.random.default_rng(3).normal(size=400)
    ours = Gram(X, Kernel(kernel, gamma=1e-4, coef0=1.0), dtype="float64", n_jobs=1)
    loaded = TrainingData.load(client, X)
    with training.on_cluster(loaded) as samples:
        theirs = samples.gram(Kernel(kernel, gamma=1e-4, coef0=1.0), np.arange(400), np.float64, 1)
        expected, size = ours.accurate(rows, np.arange(400), coef, np.ones(400)), ours.rows(rows)
        error = 1e-12 * (np.abs(size) @ np.abs(coef))
        assert (np.abs(theirs.accurate(rows, np.arange(400), coef, np.ones(400)) - expected) <= error).all()
        assert (np.abs(theirs.exact(rows, np.arange(400), coef) - expected) <= error).all()


def test_a_linear_kernel_of_data_with_an_offset_makes_no_false_claim(client, judge):
    X, y = data(n=400, d=3)
    model = maxmargin.dask.SVC(kernel="linear", C=1e4, max_iter=2000, distribute=True, client=client)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X + 1e4, y)
    assert np.isfinite(model.dual_gap_).all()
    assert judge(model.to_local(), X + 1e4, y) == []
