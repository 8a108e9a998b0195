"""The warning about features of very different scales."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, OneClassSVM, UnscaledDataWarning
from maxmargin.estimators._scales import disparity


def test_fit_warns_of_unscaled_features_and_names_the_fix():
    X, y = load_breast_cancer(return_X_y=True)
    for fit in (lambda: SVC().fit(X, y), lambda: OneClassSVM().fit(X)):
        with pytest.warns(UnscaledDataWarning, match="StandardScaler"):
            fit()


def test_scaled_features_give_no_warning():
    X, y = load_breast_cancer(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_pipeline(StandardScaler(), SVC()).fit(X, y)
        SVC().fit(*load_iris(return_X_y=True))
        SVC().fit(*load_digits(return_X_y=True))


def test_search_warns_once_for_all_its_fits():
    from maxmargin.model_selection import SVMSearchCV

    X, y = load_breast_cancer(return_X_y=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SVMSearchCV(SVC(), {"C": [0.1, 1.0], "gamma": [1e-4, 1e-5]}, n_jobs=1).fit(X, y)
    assert sum(issubclass(w.category, UnscaledDataWarning) for w in caught) == 1


def test_constant_features_rare_sparse_ones_and_distances_do_not_count():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    X[:, 1] = 1e9
    assert disparity(X) is None
    X[:, 1] = np.float32(0.1)
    assert disparity(X.astype(np.float32)) is None
    assert disparity(sp.csr_array(X * [1.0, 1e6, 1.0])) is None
    assert disparity(X * [1.0, 1.0, 1e5]) == (2, 0, pytest.approx(1e5, rel=0.5))


def test_a_sample_of_rows_tells():
    X = np.random.default_rng(0).normal(size=(100_000, 4)) * [1.0, 1.0, 1e4, 1.0]
    large, _, ratio = disparity(X)
    assert large == 2 and 5e3 < ratio < 2e4
