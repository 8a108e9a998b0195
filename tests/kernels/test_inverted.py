"""Kernel rows from an inverted index against plain float64, whatever is in its head."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import SVC
from maxmargin import _costs as costs
from maxmargin.kernels.inverted import InvertedIndex
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.panels import Lines, Panels

GAMMA = 0.3
RBF = Kernel("rbf", gamma=GAMMA)
TOL = {"float32": 2e-6, "float64": 2e-14}
BOTH = pytest.mark.parametrize("dtype", ["float32", "float64"])
# Share of the samples above which a column is in the head: all columns, some, none.
HEADS = pytest.mark.parametrize("frequent", [0.0, 0.2, 2.0])


def sample(n, dtype="float64", d=40, seed=0):
    """Rows whose columns occur in 90 % to 2 % of them; one column and some rows are empty."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < np.geomspace(0.9, 0.02, d)) * 0.5
    X[::7], X[:, 5] = 0.0, 0.0
    return sp.csr_array(X.astype(dtype))


def norms(X):
    return (GAMMA * np.log2(np.e) * (X.toarray().astype(np.float64) ** 2).sum(axis=1)).astype(X.dtype)


def lines(X):
    return Lines.of(X), norms(X)


def indexed(X):
    return InvertedIndex(Lines.of(X), X.shape[1], norms(X), RBF.slope)


def exact(X, Z):
    X, Z = X.toarray().astype(np.float64), Z.toarray().astype(np.float64)
    return np.exp(-GAMMA * ((X[:, None] - Z[None]) ** 2).sum(axis=2))


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    monkeypatch.setattr(costs, "INDEX_TILE", 128)


@BOTH
@HEADS
@pytest.mark.parametrize("n", [1, 63, 64, 65, 127, 128, 129, 300, 517])
def test_rows_equal_the_exact_kernel_at_any_number_of_samples(n, dtype, frequent, monkeypatch):
    monkeypatch.setattr(costs, "FREQUENT", frequent)
    X, A = sample(n, dtype), sample(23, dtype, seed=1)
    out = np.full((23, n), np.nan, dtype)
    indexed(X).fill(*lines(A), 0, n, out, np.arange(23))
    np.testing.assert_allclose(out, exact(A, X), rtol=TOL[dtype], atol=TOL[dtype])


@BOTH
@HEADS
def test_any_range_of_samples_is_filled_and_nothing_outside_it(dtype, frequent, monkeypatch):
    monkeypatch.setattr(costs, "FREQUENT", frequent)
    n = 300
    X = sample(n, dtype)
    index, K, slots = indexed(X), exact(X[:4], X), np.array([5, 0, 3, 1])
    edges = [0, 1, 64, 100, 127, 128, 129, 256, n - 1, n]
    for c0 in edges:
        for c1 in (c for c in edges if c >= c0):
            for first in {0, c0 // 2, c0}:
                out = np.full((7, n - first + 3), -7.0, dtype)
                index.fill(*lines(X[:4]), c0, c1, out, slots, first)
                part = out[slots, c0 - first : c1 - first]
                np.testing.assert_allclose(part, K[:, c0:c1], rtol=TOL[dtype], atol=TOL[dtype])
                out[slots, c0 - first : c1 - first] = -7.0
                assert (out == -7.0).all()


@BOTH
@HEADS
@pytest.mark.parametrize("c0", [0, 100])
def test_sums_of_rows_are_added_whether_rows_are_kept_or_not(dtype, frequent, c0, monkeypatch):
    monkeypatch.setattr(costs, "FREQUENT", frequent)
    m, n, c1 = 600, 300, 290  # more rows than the buffer holds
    X, A, coef = sample(n, dtype), sample(m, dtype, seed=1), np.cos(np.arange(m))
    index, K, slots = indexed(X), exact(A, X), np.random.default_rng(0).permutation(m)
    table, target = np.full((m, n), -7.0, dtype), np.ones(n)
    index.fill_and_add(*lines(A), c0, c1, table, slots, coef, target)
    expected = np.ones(n)
    expected[c0:c1] += coef @ K[:, c0:c1]
    np.testing.assert_allclose(target, expected, atol=1e3 * TOL[dtype])
    np.testing.assert_allclose(table[slots, c0:c1], K[:, c0:c1], rtol=TOL[dtype], atol=TOL[dtype])
    streamed = np.ones(n - c0)
    index.add(*lines(A), c0, c1, coef, streamed, c0)
    np.testing.assert_allclose(streamed, expected[c0:], atol=1e3 * TOL[dtype])


@BOTH
def test_no_lines_and_no_samples_write_nothing(dtype):
    X, none, nothing = sample(70, dtype), np.arange(0), np.empty(0)
    table, target = np.full((2, 70), -7.0, dtype), np.full(70, -7.0)
    index = indexed(X)
    index.fill(*lines(X[:0]), 0, 70, table, none)
    index.fill_and_add(*lines(X[:0]), 0, 70, table, none, nothing, target)
    index.add(*lines(X[:0]), 0, 70, nothing, target, 0)
    indexed(X[:0]).fill(*lines(X[:2]), 0, 0, table, np.arange(2))
    assert (table == -7.0).all() and (target == -7.0).all()


@HEADS
def test_columns_that_the_samples_do_not_have_are_ignored(frequent, monkeypatch):
    monkeypatch.setattr(costs, "FREQUENT", frequent)
    X = sample(50)
    A = sp.csr_array(([1.0, 2.0, 3.0], [0, 5, 5], [0, 3]), shape=(1, 40))  # column 5 is empty, twice here
    out = np.empty((1, 50))
    indexed(X).fill(Lines.of(A), np.zeros(1), 0, 50, out, np.arange(1))
    products = RBF.slope * X.toarray()[:, 0]
    np.testing.assert_allclose(out[0], np.exp2(np.minimum(0.0, products - norms(X))), rtol=1e-13)


def test_the_memory_of_an_index_follows_the_entries_and_not_the_columns():
    for n, d, share in ((7, 100_000, 0.2), (200, 50_000, 1e-3), (3000, 20_000, 1e-3)):
        X = sp.random_array((n, d), density=share, format="csr", random_state=0, dtype=np.float32)
        data = indexed(X).data
        assert data.values.nbytes <= 20 * X.data.nbytes
        assert data.starts.size <= 3 * X.nnz + 2 * d
        assert data.entries.size <= X.nnz


def test_a_head_that_would_be_too_large_has_the_most_frequent_columns(monkeypatch):
    monkeypatch.setattr(costs, "FREQUENT", 0.0)
    monkeypatch.setattr(costs, "PANELS_BYTES", 128 * 8 * 10)
    X = sample(128)
    index, out = indexed(X), np.empty((128, 128))
    count = np.bincount(X.indices, minlength=40)
    assert 8 <= index.data.head <= 10
    there = index.data.number < index.data.head
    assert count[there].min() > count[~there].max()
    index.fill(*lines(X), 0, 128, out, np.arange(128))
    np.testing.assert_allclose(out, exact(X, X), rtol=1e-13)


def test_wide_sparse_data_are_indexed_and_narrow_ones_laid_out_in_panels():
    for d, kind in ((costs.PANEL_COLUMNS, Panels), (costs.PANEL_COLUMNS + 1, InvertedIndex)):
        points = RBF.prepare(sp.random_array((50, d), density=0.01, format="csr", random_state=0))
        assert isinstance(RBF.lay_out(points).panels, kind)


@pytest.mark.filterwarnings("ignore::maxmargin.UnscaledDataWarning")
@pytest.mark.parametrize("n", [300, 900])
def test_a_fit_on_wide_sparse_data_equals_that_on_dense_data(n):
    rng = np.random.default_rng(0)
    X = sp.random_array((n, 3000), density=0.01, format="csr", random_state=1)
    y = (X @ rng.normal(size=3000) > 0) + (rng.random(n) < 0.1)
    sparse, dense = SVC(C=10.0, tol=1e-6).fit(X, y), SVC(C=10.0, tol=1e-6).fit(X.toarray(), y)
    np.testing.assert_allclose(sparse.decision_function(X), dense.decision_function(X.toarray()), atol=2e-5)
