"""Estimators with linear kernels: through weights, with the certificates of every other kernel."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm

from maxmargin import SVC, SVR, NuSVC, OneClassSVM
from maxmargin.model_selection import SVMSearchCV


def classes(n=1500, d=8, k=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    X = rng.normal(size=(n, d)) + np.eye(k, d)[y] * 2.0
    return X, y


def texts(n=1200, d=4000, k=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    columns = rng.integers(0, d, size=(n, 15))
    columns[:, :4] = rng.integers(0, 60, size=(n, 4)) + 60 * y[:, None]
    X = sp.csr_matrix((rng.random(n * 15) + 0.5, columns.ravel(), np.arange(0, 15 * n + 1, 15)), shape=(n, d))
    X.sum_duplicates()
    return X, y


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("make", [classes, texts])
def test_the_objective_of_every_pair_of_classes_is_that_of_scikit_learn(make, C):
    X, y = make()
    ours = SVC(kernel="linear", C=C, tol=1e-4, n_jobs=1).fit(X, y)
    theirs = svm.SVC(kernel="linear", C=C, tol=1e-4).fit(X, y)
    assert np.max(ours.relative_gap_) < 1e-2
    w, v = (sp.csr_matrix(m.coef_).toarray() for m in (ours, theirs))
    np.testing.assert_allclose(w, v, atol=0.02 * np.abs(v).max())
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=0.02)
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.99


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, lambda X: X.astype(np.float32)])
def test_other_estimators_agree_with_scikit_learn(form):
    X, y = classes(n=2600, k=2)
    t = X @ np.arange(8.0) + np.random.default_rng(1).normal(size=len(X))
    given = form(X)
    for ours, theirs, target in (
        (SVR(kernel="linear", n_jobs=1), svm.SVR(kernel="linear"), t),
        (NuSVC(kernel="linear", nu=0.3, n_jobs=1), svm.NuSVC(kernel="linear", nu=0.3), y),
        (OneClassSVM(kernel="linear", nu=0.2, n_jobs=1), svm.OneClassSVM(kernel="linear", nu=0.2), None),
    ):
        ours.fit(given, target)
        theirs.fit(X, target)
        w, v = (sp.csr_matrix(m.coef_).toarray() for m in (ours, theirs))
        np.testing.assert_allclose(w, v, atol=0.02 * np.abs(v).max())


def test_a_warm_start_needs_few_steps():
    X, y = classes(n=3000, k=2)
    model = SVC(kernel="linear", C=1.0, warm_start=True, n_jobs=1).fit(X, y)
    first = model.n_iter_.sum()
    assert model.fit(X, y).n_iter_.sum() < 0.5 * first


def test_a_search_has_the_scores_of_single_fits():
    X, y = classes(n=1400)
    grid = {"C": [0.1, 1.0, 10.0]}
    search = SVMSearchCV(SVC(kernel="linear"), grid, cv=3, n_jobs=1).fit(X, y)
    from sklearn.model_selection import GridSearchCV

    plain = GridSearchCV(SVC(kernel="linear", n_jobs=1), grid, cv=3).fit(X, y)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"], atol=3e-3
    )
