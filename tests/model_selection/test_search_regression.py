"""Searches over the parameters of regressors, beside scikit-learn's."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.datasets import make_friedman1
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVR, NuSVR
from maxmargin.model_selection import SVMSearchCV

GRID = {"C": [0.1, 1.0, 10.0], "gamma": [0.05, 0.5], "epsilon": [0.05, 0.3]}
TIGHT = {"tol": 1e-7}


def data(n=120):
    X, y = make_friedman1(n, n_features=5, noise=1.0, random_state=0)
    return StandardScaler().fit_transform(X), (y - y.mean()) / y.std()


def scores(search):
    return {k: v for k, v in search.cv_results_.items() if k.startswith(("split", "mean_test", "mean_train"))}


def assert_same(ours, theirs, atol=1e-5):
    for key, value in scores(theirs).items():
        np.testing.assert_allclose(ours.cv_results_[key], value, atol=atol, err_msg=key)
    assert ours.best_params_ == theirs.best_params_


def both(estimator, grid, X, y, rival=None, fit=None, **options):
    ours = SVMSearchCV(estimator, grid, **options).fit(X, y, **(fit or {}))
    return ours, GridSearchCV(rival or estimator, grid, **options).fit(X, y, **(fit or {}))


@pytest.mark.parametrize(
    "scoring", [None, "r2", "neg_mean_squared_error", "neg_mean_absolute_error", "explained_variance"]
)
def test_scores_equal_those_of_scikit_learns_search_with_scikit_learns_svr(scoring):
    X, y = data()
    options = {"scoring": scoring, "cv": 3, "return_train_score": True}
    assert_same(*both(SVR(**TIGHT), GRID, X, y, rival=svm.SVR(**TIGHT), **options))


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (NuSVR(**TIGHT), {"nu": [0.2, 0.5], "C": [0.1, 1.0]}),
        (SVR(loss="squared_epsilon_insensitive", **TIGHT), GRID),
        (SVR(**TIGHT), {"epsilon": [0.05, 0.2, 0.5]}),
        (SVR(**TIGHT), {"kernel": ["linear", "rbf"], "C": [0.1, 1.0]}),
        (SVR(solver="smo", **TIGHT), {"C": [0.1, 1.0]}),
        (SVR(**TIGHT), {"C": [1.0, np.inf], "epsilon": [0.5]}),
    ],
)
def test_every_regressor_gets_the_scores_of_fits_one_by_one(estimator, grid):
    X, y = data(90)
    assert_same(*both(estimator, grid, X, y, cv=3))


def test_several_metrics_splitters_pipelines_and_weights_are_honoured():
    X, y = data()
    weight = np.random.default_rng(0).uniform(0, 2, len(y))
    weight[:6] = 0
    assert_same(*both(SVR(gamma=0.2, **TIGHT), {"C": [0.1, 1.0]}, X, y, fit={"sample_weight": weight}))
    metrics = {"scoring": ["r2", "neg_mean_absolute_error"], "refit": "r2"}
    assert_same(*both(SVR(**TIGHT), GRID, X, y, cv=ShuffleSplit(3, random_state=0), **metrics))
    pipeline = make_pipeline(StandardScaler(), SVR(**TIGHT))
    grid = {"svr__C": [0.1, 1.0], "svr__epsilon": [0.05, 0.2], "standardscaler__with_std": [True, False]}
    assert_same(*both(pipeline, grid, X, y, cv=KFold(3, shuffle=True, random_state=0)))


def test_sparse_frames_columns_of_targets_and_precomputed_kernels_are_accepted():
    X, y = data(90)
    grid = {"C": [0.1, 1.0], "gamma": [0.1, 0.5]}
    expected = scores(SVMSearchCV(SVR(**TIGHT), grid).fit(X, y))
    frame = pd.DataFrame(X, columns=list("abcde"))
    for Z, target in ((sp.csr_matrix(X), y), (frame, pd.Series(y)), (X.astype(np.float32), y)):
        found = scores(SVMSearchCV(SVR(**TIGHT), grid).fit(Z, target))
        for key, value in expected.items():
            np.testing.assert_allclose(found[key], value, atol=1e-4)
    K = X @ X.T
    linear = SVMSearchCV(SVR(kernel="linear", **TIGHT), {"C": [0.1, 1.0]}).fit(X, y)
    given = SVMSearchCV(SVR(kernel="precomputed", **TIGHT), {"C": [0.1, 1.0]}).fit(K, y)
    np.testing.assert_allclose(
        given.cv_results_["mean_test_score"], linear.cv_results_["mean_test_score"], atol=1e-5
    )


@pytest.mark.parametrize("path", ["auto", "up", "down", "cold"])
def test_the_path_does_not_change_the_scores(path):
    X, y = data(90)
    found = SVMSearchCV(SVR(**TIGHT), GRID, path=path).fit(X, y)
    expected = SVMSearchCV(SVR(**TIGHT), GRID, memory=0.0).fit(X, y)
    np.testing.assert_allclose(
        found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"], atol=1e-5
    )


def test_a_search_along_c_does_not_fit_node_by_node():
    X, y = data(90)
    search = SVMSearchCV(SVR(), GRID).fit(X, y)
    assert set(search.trainers_) == {"C path"}
    assert search.best_score_ > 0.5


def test_targets_of_any_unit_are_searched_to_the_tolerance():
    X, y = data(90)
    grid = {"C": [0.1, 1.0], "gamma": [0.1]}
    small = SVMSearchCV(SVR(epsilon=0.1, tol=1e-5), grid).fit(X, y)
    large = SVMSearchCV(SVR(epsilon=1e4, tol=1.0), {**grid, "C": [1e4, 1e5]}).fit(X, 1e5 * y)
    np.testing.assert_allclose(
        large.cv_results_["mean_test_score"], small.cv_results_["mean_test_score"], atol=1e-4
    )


def test_bad_targets_are_reported_as_scikit_learn_does():
    X, y = data(30)
    y[0] = np.nan
    with pytest.raises(ValueError, match="NaN"), pytest.warns(FitFailedWarning):
        SVMSearchCV(SVR(), {"C": [0.1, 1.0]}).fit(X, y)
