"""Products of the data of a linear kernel with weights."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import _costs as costs
from maxmargin.kernels.features import Features
from maxmargin.kernels.layout import canonical_csr


@pytest.fixture(params=["dense", "csr"])
def samples(request, monkeypatch):
    monkeypatch.setattr(costs, "WEIGHTS_ROWS", 7)  # several parts
    X = np.random.default_rng(0).normal(size=(40, 5))
    X[np.random.default_rng(1).random(X.shape) < 0.5] = 0.0
    return X, Features(X if request.param == "dense" else canonical_csr(sp.csr_matrix(X), np.dtype("f8")))


def test_products_are_those_of_the_matrix(samples):
    X, features = samples
    rows = np.array([3, 39, 3, *range(10, 20)])
    coef = np.random.default_rng(2).normal(size=len(rows))
    w = features.weights(rows, coef)
    np.testing.assert_allclose(w, X[rows].T @ coef, atol=1e-14)
    np.testing.assert_allclose(features.values(w, rows), X[rows] @ w, atol=1e-13)
    np.testing.assert_allclose(features.values(w, np.arange(40)), X @ w, atol=1e-13)
    out = np.ones(8)
    features.add(out, w, 2, 10)
    np.testing.assert_allclose(out, 1.0 + X[2:10] @ w, atol=1e-13)
    normal = np.tril(features.normal(rows))
    np.testing.assert_allclose(normal, np.tril(X[rows].T @ X[rows]), atol=1e-13)


def test_a_sample_of_sparse_data_is_as_wide_as_its_entries(samples):
    X, features = samples
    assert features.d == 5
    assert features.width == (np.count_nonzero(X) / 40 if sp.issparse(features.X) else 5.0)
