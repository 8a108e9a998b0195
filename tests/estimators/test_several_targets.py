"""Regressions with several targets: one problem for each column of y, over shared kernel rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVR, NuSVR
from maxmargin.model_selection import SVMSearchCV

SQUARED = "squared_epsilon_insensitive"
MODELS = {
    "svr": SVR(C=5.0, tol=1e-9),
    "squared": SVR(C=5.0, loss=SQUARED, tol=1e-9),
    "linear": SVR(C=5.0, kernel="linear", tol=1e-9),
    "smo": SVR(C=5.0, solver="smo", tol=1e-9),
    "hard tube": SVR(C=np.inf, epsilon=1.0, gamma=1.0, tol=1e-7),
    "nu": NuSVR(C=5.0, nu=0.3, tol=1e-9),
}


def data(n=150, seed=0):
    """Features and four targets in different units, of which two are equal and one is constant."""
    X, y = make_friedman1(n, n_features=6, noise=1.0, random_state=seed)
    X = StandardScaler().fit_transform(X)
    y = (y - y.mean()) / y.std()
    return X, np.column_stack([y, 10.0 * X[:, 0] - 3.0 * y, y, np.full(n, 7.0)])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_every_column_is_the_regression_of_that_column_alone(name, weighted):
    X, Y = data()
    w = np.random.default_rng(0).integers(0, 3, len(Y)) * 0.7 if weighted else None
    together = clone(MODELS[name]).fit(X, Y, w)
    assert together.status_ == "solved" and together.fit_status_ == 0
    apart = [clone(MODELS[name]).fit(X, column, w) for column in Y.T]
    scale = np.abs(Y).max()
    for k, alone in enumerate(apart):
        np.testing.assert_allclose(together.predict(X)[:, k], alone.predict(X), atol=2e-6 * scale)
    assert together.dual_gap_.shape == together.relative_gap_.shape == together.n_iter_.shape == (4,)
    assert (together.dual_gap_ <= 1e-5 * scale**2).all() and len(together.trace_) == 4
    np.testing.assert_allclose(together.predict(X)[:, 0], together.predict(X)[:, 2], atol=1e-6)
    if name == "nu":
        np.testing.assert_allclose(together.epsilon_, [model.epsilon_ for model in apart], atol=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_attributes_have_a_row_for_each_target_over_the_union_of_support_vectors(kernel, sparse):
    X, Y = data()
    given = sp.csr_array(X) if sparse else X
    model = SVR(kernel=kernel, epsilon=0.8, C=2.0).fit(given, Y)
    n = len(model.support_)
    assert model.dual_coef_.shape == (4, n) and model.intercept_.shape == (4,)
    assert model.n_support_.tolist() == [n] and model.support_vectors_.shape == (n, X.shape[1])
    coef = model.dual_coef_.toarray() if sparse else model.dual_coef_
    assert (coef != 0).any(axis=0).all() and not (coef != 0).all(axis=0).any()  # the constant needs none
    alone = SVR(kernel=kernel, epsilon=0.8, C=2.0).fit(given, Y[:, 1])
    assert set(alone.support_) <= set(model.support_)
    if kernel == "linear":
        weights = model.coef_.toarray() if sparse else model.coef_
        np.testing.assert_allclose(X @ weights.T + model.intercept_, model.predict(given), atol=1e-10)


def test_coefficients_are_in_the_order_in_memory_of_a_loaded_model():
    X, Y = data()
    assert SVR(epsilon=0.8).fit(X, Y).get_model().coef.flags.c_contiguous


def test_kernel_values_are_computed_once_for_all_targets():
    X, Y = data(400)
    one, many = SVR(C=5.0).fit(X, Y[:, 0]), SVR(C=5.0).fit(X, np.repeat(Y[:, :1], 6, axis=1))
    assert many.n_kernel_evals_ <= 1.1 * max(len(Y) ** 2, one.n_kernel_evals_)


def test_a_cache_too_small_for_the_matrix_is_shared_by_the_targets():
    X, Y = data(3000)
    kind = {"C": 1.0, "tol": 1e-2, "gamma": 0.3, "cache_size": 8}
    together = SVR(**kind).fit(X, Y[:, :2])
    expected = MultiOutputRegressor(SVR(**kind)).fit(X, Y[:, :2]).predict(X)
    np.testing.assert_allclose(together.predict(X), expected, atol=0.1)
    assert together.status_ == "solved"


def test_the_score_is_the_uniform_average_of_r2():
    X, Y = data()
    model = SVR(C=5.0).fit(X, Y)
    each = r2_score(Y, model.predict(X), multioutput="raw_values")
    assert model.score(X, Y) == pytest.approx(each.mean())


def test_a_single_column_is_one_target_with_scikit_learns_warning():
    X, Y = data()
    with pytest.warns(UserWarning, match="column-vector y"):
        model = SVR().fit(X, Y[:, :1])
    assert model.predict(X).ndim == 1 and isinstance(model.dual_gap_, float)


@pytest.mark.parametrize("form", [list, pd.DataFrame, np.asfortranarray, lambda Y: Y.astype(np.float32)])
def test_targets_may_have_any_form(form):
    X, Y = data(60)
    np.testing.assert_allclose(
        SVR().fit(X, form(Y)).predict(X), SVR().fit(X, Y).predict(X), atol=1e-2, rtol=1e-3
    )


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        (np.zeros((20, 0)), "1d array|column|0 feature"),
        (np.zeros((20, 2, 2)), "dim"),
        (np.full((20, 2), np.nan), "NaN"),
        (np.full((20, 2), "a"), "number|convert"),
        (sp.csr_array(np.ones((20, 2))), "toarray"),
        (np.zeros((19, 2)), "inconsistent"),
    ],
)
@pytest.mark.parametrize("kernel", ["rbf", lambda A, B: A @ B.T], ids=["rbf", "callable"])
def test_targets_that_are_none_are_refused(Y, message, kernel):
    with pytest.raises(ValueError, match=message):
        SVR(kernel=kernel).fit(np.arange(40.0).reshape(20, 2), Y)


@pytest.mark.parametrize("model", [SVR(C=10.0, tol=1e-6), NuSVR(C=10.0, tol=1e-6)])
def test_a_warm_start_begins_at_the_solution_of_each_target(model):
    X, Y = data(300)
    warm = clone(model).set_params(warm_start=True).fit(X, Y)
    cold = warm.n_iter_.sum()
    warm.fit(X, Y)
    assert warm.n_iter_.sum() < 0.2 * cold
    np.testing.assert_allclose(warm.predict(X), clone(model).fit(X, Y).predict(X), atol=1e-4)
    warm.fit(X, Y[:, 0])  # another problem: nothing to start from
    np.testing.assert_allclose(warm.predict(X), clone(model).fit(X, Y[:, 0]).predict(X), atol=1e-4)


def test_the_status_is_the_worst_of_all_targets_and_gaps_say_which():
    X, Y = data(300)
    Y = np.column_stack([Y[:, 3], Y[:, 0]])  # the constant needs no step
    with pytest.warns(ConvergenceWarning, match="1 of 2 targets"):
        model = SVR(C=100.0, max_iter=5).fit(X, Y)
    assert model.status_ == "max_iter" and model.fit_status_ == 1
    assert model.dual_gap_[0] < 1e-6 < 1.0 < model.dual_gap_[1]


def test_targets_that_were_not_begun_are_counted_and_certified():
    X, Y = data(300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SVR(max_time=0.0).fit(X, Y)
    assert model.status_ == "max_time" and model.predict(X).shape == Y.shape
    assert len(model.dual_gap_) == 4 and (model.dual_gap_ >= 0).all()


def test_pipelines_and_clones_predict_all_targets():
    X, Y = data()
    model = clone(make_pipeline(StandardScaler(), SVR(C=3.0))).fit(X, Y)
    assert model.predict(X[:5]).shape == (5, 4)


@pytest.mark.parametrize("model", [SVR(), NuSVR()])
def test_a_search_finds_what_scikit_learns_finds(model):
    X, Y = data(120)
    Y = Y[:, :3]  # R² of a constant is 0 or 1
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.05, 0.5]}
    ours = SVMSearchCV(model, grid, cv=3, progress=False).fit(X, Y)
    theirs = GridSearchCV(model, grid, cv=3).fit(X, Y)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=2e-3
    )
    assert ours.best_params_ == theirs.best_params_ and ours.predict(X).shape == Y.shape


def test_a_precomputed_kernel_and_a_function_train_several_targets():
    X, Y = data()
    expected = SVR(kernel="linear", tol=1e-8).fit(X, Y).predict(X)
    for kernel, given in (("precomputed", X @ X.T), (lambda A, B: A @ B.T, X)):
        model = SVR(kernel=kernel, tol=1e-8).fit(given, Y)
        np.testing.assert_allclose(model.predict(given), expected, atol=1e-5)
