"""Sums of rows of a linear kernel go through weights."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.gram import Gram


def data(kind, n=90, d=7, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d))
    if kind == "dense":
        return X
    X[np.random.default_rng(seed + 1).random(X.shape) < 0.8] = 0.0
    if kind == "zeros":
        return np.hstack([X, np.zeros((n, 40))])
    if kind == "float32":
        return X.astype(np.float32)
    if kind == "hashed":  # many columns, few of which occur
        wide = sp.csr_matrix(X)
        return sp.csr_matrix((wide.data, wide.indices * 10**7, wide.indptr), shape=(n, 10**8))
    return sp.csr_matrix(X)


KINDS = ["dense", "zeros", "float32", "csr", "hashed"]


def dense(X):
    if sp.issparse(X):
        X = sp.csr_matrix(X)[:, np.unique(X.indices)].toarray()
    return np.asarray(X, dtype=np.float64)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_accurate_to_float64_in_any_precision_of_the_rows(kind, dtype):
    X = data(kind)
    K = dense(X) @ dense(X).T
    gram = Gram(X, "linear", dtype=dtype, n_jobs=1)
    idx, coef = np.array([3, 50, 7, 3]), np.array([1.0, -2.0, 0.5, 0.25])
    out = np.ones(gram.n)
    gram.add(out, idx, coef)
    np.testing.assert_allclose(out, 1.0 + K[:, idx] @ coef, rtol=0, atol=1e-13)
    rows = np.array([5, 80, 4])
    np.testing.assert_allclose(gram.exact(rows, idx, coef), K[rows][:, idx] @ coef, rtol=0, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [np.r_[10:30, 50:90], np.arange(0, 90, 2)[::-1]])
@pytest.mark.parametrize("cache_bytes", [0, 1 << 20])
def test_views_and_parts_use_their_own_columns(kind, columns, cache_bytes):
    X = data(kind)
    K = (dense(X) @ dense(X).T)[np.ix_(columns, columns)]
    gram = Gram(X, "linear", cache_bytes=cache_bytes, n_jobs=1)
    idx, coef = np.array([0, 30, 2]), np.array([1.0, -3.0, 0.5])
    for rows in (gram.view(columns), gram.part(columns), gram.view(columns).double()):
        out = np.zeros(len(columns))
        rows.add(out, idx, coef)
        np.testing.assert_allclose(out, K[:, idx] @ coef, rtol=0, atol=1e-13)
        np.testing.assert_allclose(rows.exact(idx, idx, coef), (K[:, idx] @ coef)[idx], rtol=0, atol=1e-13)
        accurate = rows.accurate(idx, idx, coef, np.full(3, 2.0))
        np.testing.assert_allclose(accurate, 2.0 * (K[:, idx] @ coef)[idx], rtol=0, atol=1e-13)


def test_sums_compute_and_cache_no_row():
    gram = Gram(data("csr"), "linear", n_jobs=1)
    gram.add(np.zeros(gram.n), np.arange(40), np.ones(40))
    assert gram.n_evals == 0 and gram.n_calls == 40 * gram.n and not gram.held(np.arange(40)).any()
    assert gram.sum_cost(10, 20) == 30
    assert Gram(data("csr"), "rbf", n_jobs=1).sum_cost(10, 20) == 200


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_the_bound_covers_the_rounding_of_sums_through_weights(kind):
    rng = np.random.default_rng(3)
    X = data(kind, n=400, d=30) * 1e4
    X = X + 1e6 * (X != 0) if kind == "csr" else X + 1e6
    X = sp.csr_matrix(X) if kind == "csr" else X
    coef = rng.normal(size=400)
    coef -= coef.mean()  # the large parts cancel
    everything = np.arange(400)
    gram = Gram(X, "linear", dtype="float64", n_jobs=1)
    wide = dense(X).astype(np.longdouble)
    true = wide @ (wide.T @ coef.astype(np.longdouble))
    error = np.abs(gram.exact(everything, everything, coef) - true)
    assert (error <= gram.bound(everything, everything, coef, double=True)).all()
    accurate = gram.accurate(everything, everything, coef, np.ones(400))
    assert (np.abs(accurate - true) <= 2.0**-52 * np.abs(true) + 1e-25 * np.abs(wide).max() ** 2).all()


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_accurate_sums_read_the_samples_where_they_are(kind):
    gram = Gram(data(kind, n=20_000, d=50), "linear", dtype="float64", n_jobs=1)
    everything, coef = np.arange(gram.n), np.ones(gram.n)
    gram.accurate(everything, everything, coef, coef)  # compiled
    size = gram.points.X.data.nbytes
    tracemalloc.start()
    gram.accurate(everything, everything, coef, coef)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 0.5 * size  # the result, and one number per sample where those begin
