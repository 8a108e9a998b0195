"""Every estimator, and searches, with kernels that are objects."""

import math
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import (
    SVC,
    SVR,
    AllDistancesSVC,
    CellSVC,
    CrammerSingerSVC,
    IncrementalSVC,
    L2OneClassSVM,
    NuSVC,
    NuSVR,
    OneClassSVM,
)
from maxmargin.kernels import exp, laplacian, linear, of_products, of_rows, poly, rbf, sigmoid
from maxmargin.model_selection import SVMSearchCV


def gaussian(dot, xx, zz):
    return exp(-0.1 * (xx + zz - 2.0 * dot))


def manhattan(x, z):
    total = 0.0
    for k in range(len(x)):
        total += abs(x[k] - z[k])
    return math.exp(-0.1 * total)


KERNELS = {
    "sum": rbf(0.1) + 0.5 * linear(),
    "product": rbf(0.1) * poly(2, 0.1, 1.0),
    "features": rbf(np.linspace(0.0, 0.4, 6)),
    "of_products": of_products(gaussian) + 0.1 * linear(),
    "of_rows": of_rows(manhattan),
}
ESTIMATORS = [
    SVC(tol=1e-6), NuSVC(tol=1e-6, nu=0.3), SVR(tol=1e-6), NuSVR(tol=1e-6), OneClassSVM(tol=1e-6, nu=0.2),
    L2OneClassSVM(tol=1e-6), AllDistancesSVC(tol=1e-6), CrammerSingerSVC(tol=1e-6), IncrementalSVC(),
]  # fmt: skip


def samples(n=120, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=n) > 0.7, "yes", "no"), X[:, 0]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_fit_is_that_with_the_kernel_as_a_function_of_matrices(estimator, kernel):
    X, labels, numbers = samples()
    y = numbers if "SVR" in type(estimator).__name__ else labels
    function = KERNELS[kernel]
    model = clone(estimator).set_params(kernel=function).fit(X, y)
    plain = clone(estimator).set_params(kernel=lambda A, B: function(A, B)).fit(X, y)
    name = "decision_function" if hasattr(model, "decision_function") else "predict"
    scale = np.abs(getattr(plain, name)(X)).max()
    assert getattr(model, name)(X) == pytest.approx(getattr(plain, name)(X), abs=1e-3 * scale)
    assert clone(model).kernel == function
    assert pickle.loads(pickle.dumps(model)).predict(X) == pytest.approx(model.predict(X)) or y is labels


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
def test_the_objective_is_that_of_other_solvers(kernel, C):
    X, y, _ = samples(80)
    X[1], y[:2] = X[0], ("yes", "no")  # opposite labels on equal rows
    function = KERNELS[kernel]
    model = SVC(kernel=function, C=C, tol=1e-8).fit(X, y)
    K, sign = function(X), np.where(y == "yes", 1.0, -1.0)
    u = np.zeros(len(X))
    u[model.support_] = model.dual_coef_[0]
    assert model.status_ == "solved" and abs(u.sum()) <= 1e-9 * C * len(X)
    peer = sklearn.svm.SVC(kernel="precomputed", C=C, tol=1e-8).fit(K, y)
    v = np.zeros(len(X))
    v[peer.support_] = peer.dual_coef_[0]
    objective = [float(sign @ w - 0.5 * w @ K @ w) for w in (u, v)]
    assert objective[0] == pytest.approx(objective[1], rel=1e-6)
    gap = float(model.dual_gap_[0])
    slack = np.maximum(0.0, 1.0 - sign * model.decision_function(X)).sum() * C
    assert 0.5 * u @ K @ u + slack - objective[0] <= gap + 1e-6 * abs(objective[0])


@pytest.mark.parametrize("kernel", ["sum", "product", "features", "of_products"])
def test_sparse_rows_give_the_model_of_dense_ones(kernel):
    X, y, _ = samples()
    X = X * (np.random.default_rng(1).random(X.shape) < 0.4)
    dense = SVC(kernel=KERNELS[kernel], tol=1e-6).fit(X, y)
    sparse = SVC(kernel=KERNELS[kernel], tol=1e-6).fit(sp.csr_array(X), y)
    assert sp.issparse(sparse.support_vectors_)
    assert sparse.decision_function(sp.csr_array(X)) == pytest.approx(dense.decision_function(X), abs=1e-4)


def test_a_kernel_of_rows_refuses_sparse_rows():
    X, y, _ = samples()
    with pytest.raises(TypeError, match="need dense rows"):
        SVC(kernel=KERNELS["of_rows"]).fit(sp.csr_array(X), y)


@pytest.mark.parametrize("kernel", KERNELS)
def test_float32_rows_give_nearly_the_same_model(kernel):
    X, y, _ = samples(700)
    one = SVC(kernel=KERNELS[kernel], tol=1e-4).fit(X, y)
    other = SVC(kernel=KERNELS[kernel], tol=1e-4).fit(X.astype(np.float32), y)
    assert other.status_ == "solved"
    assert other.decision_function(X.astype(np.float32)) == pytest.approx(one.decision_function(X), abs=5e-3)


def test_rows_are_checked_as_for_named_kernels():
    X, y, _ = samples()
    model = make_pipeline(StandardScaler(), SVC(kernel=KERNELS["sum"])).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        SVC(kernel=KERNELS["sum"]).fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(ValueError, match="features"):
        model[-1].predict(X[:, :3])
    assert model[-1].support_vectors_.shape[1] == 6 and model[-1].n_features_in_ == 6


def test_sentinels_do_not_spoil_a_certificate():
    X, y, _ = samples()
    X[:3] = 1e8
    X[1, 0] += 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SVC(kernel=rbf(0.1) + laplacian(0.2), C=10.0, tol=1e-6).fit(X, y)
    assert model.status_ == "solved" and model.relative_gap_[0] < 1e-5
    D = ((X[:, None].astype(np.longdouble) - X) ** 2).sum(axis=2)
    K = np.exp(-0.1 * D) + np.exp(-0.2 * np.abs(X[:, None].astype(np.longdouble) - X).sum(axis=2))
    u = np.zeros(len(X))
    u[model.support_] = model.dual_coef_[0]
    values = K[:, :] @ u + model.intercept_[0]
    sign = np.where(y == "yes", 1.0, -1.0)
    primal = 0.5 * u @ K @ u + 10.0 * np.maximum(0.0, 1.0 - sign * values).sum()
    assert primal - (sign @ u - 0.5 * u @ K @ u) <= model.dual_gap_[0] + 1e-9 * primal


def test_one_kernel_alone_is_the_named_one():
    X, y, _ = samples()
    one, other = SVC(kernel=rbf(0.2)).fit(X, y), SVC(gamma=0.2).fit(X, y)
    assert np.array_equal(one.decision_function(X), other.decision_function(X))
    assert np.array_equal(one.dual_coef_, other.dual_coef_)


@pytest.mark.parametrize("search", [SVMSearchCV, GridSearchCV])
def test_a_search_takes_kernels_as_values(search):
    X, y, _ = samples(150)
    grid = {
        "kernel": [rbf(g) + 0.5 * linear() for g in (0.05, 0.5)] + ["rbf", of_rows(manhattan)],
        "C": [0.1, 1.0, 10.0],
    }
    found = search(SVC(), grid, cv=3).fit(X, y)
    plain = GridSearchCV(sklearn.svm.SVC(), grid, cv=3).fit(X, y)
    mean = found.cv_results_["mean_test_score"]
    assert mean == pytest.approx(plain.cv_results_["mean_test_score"], abs=0.021)
    assert found.best_score_ == mean.max()


@pytest.mark.parametrize("name", ["gamma", "degree", "coef0"])
def test_a_search_for_a_parameter_that_the_kernel_does_not_take_is_refused(name):
    X, y, _ = samples()
    pipeline = make_pipeline(StandardScaler(), SVC(kernel=KERNELS["sum"]))
    message = rf"{name} has no effect on the kernel rbf\(gamma=0.1\) \+ 0.5 \* linear\(\).*'svc__kernel'"
    with pytest.raises(ValueError, match=message):
        SVMSearchCV(pipeline, {f"svc__{name}": [1, 2]}).fit(X, y)


def test_an_indefinite_kernel_is_not_trained_along_a_chain():
    X, y, _ = samples()
    grid = {"C": [0.1, 1.0]}
    found = SVMSearchCV(SVC(kernel=sigmoid(0.1) + linear()), grid, cv=3).fit(X, y)
    plain = GridSearchCV(SVC(kernel=sigmoid(0.1) + linear()), grid, cv=3).fit(X, y)
    assert found.cv_results_["mean_test_score"] == pytest.approx(plain.cv_results_["mean_test_score"])


def test_cells_refuse_objects_with_a_way_out():
    X, y, _ = samples()
    with pytest.raises(ValueError, match="use one of the named kernels"):
        CellSVC(SVC(kernel=KERNELS["sum"])).fit(X, y)


def test_errors_of_a_function_stop_the_fit():
    X, y, _ = samples()

    def refuses(dot, xx, zz):
        if dot > 0.5:
            raise ValueError("too large")
        return dot

    with pytest.raises(ValueError, match="too large"):
        SVC(kernel=of_products(refuses)).fit(X, y)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_do_not_change_values(n_jobs):
    X, y, _ = samples(1500)
    model = SVC(kernel=KERNELS["of_products"], n_jobs=n_jobs, cache_size=1).fit(X, y)
    assert model.status_ == "solved"
    one = SVC(kernel=KERNELS["of_products"], n_jobs=1).fit(X, y)
    assert model.decision_function(X) == pytest.approx(one.decision_function(X), abs=5e-3)
