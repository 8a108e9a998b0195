"""Stored rows: their places, kernel values and gradient."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from maxmargin.kernels import Kernel
from maxmargin.solvers.incremental.exactness import InexactError
from maxmargin.solvers.incremental.rows import StoredRows
from maxmargin.solvers.incremental.samples import Samples

GAMMA = 0.5
MEMORY = pytest.mark.parametrize("most_bytes", [0, 1 << 30], ids=["computed", "stored"])
LAYOUT = pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])


def stored(most_bytes, layout=np.asarray, n=100):
    rng = np.random.default_rng(0)
    X, y, ridge = rng.normal(size=(n, 3)), np.where(rng.random(n) < 0.5, 1.0, -1.0), rng.random(n) + 0.1
    samples = Samples(Kernel("rbf", gamma=GAMMA), most_bytes=most_bytes, n_jobs=1)
    rows = StoredRows(samples)
    for some in (slice(0, 1), slice(1, 40), slice(40, n)):  # within the first buffer and beyond it
        add(rows, layout(X[some]), y[some], ridge[some])
    return rows, X, y, ridge


def add(rows, X, y, ridge):
    rows.append(rows.samples.append(X), y, ridge, np.full(len(y), np.inf))


def assert_gradient(rows, X, y, ridge):
    K = rbf_kernel(X, gamma=GAMMA)
    u = rows.u[: rows.n]
    np.testing.assert_allclose(rows.g[: rows.n], K @ u + ridge * u - y, atol=1e-12)


@MEMORY
@LAYOUT
def test_rows_added_in_parts_have_the_kernel_values_of_all(most_bytes, layout):
    rows, X, _, ridge = stored(most_bytes, layout)
    K = rbf_kernel(X, gamma=GAMMA)
    assert (rows.samples.K is None) == (most_bytes == 0)
    np.testing.assert_allclose(rows.block(np.arange(100), np.array([3, 99])), K[:, [3, 99]], atol=1e-12)
    np.testing.assert_allclose(rows.diag[:100], 1.0 + ridge)
    coef = np.array([1.0, -2.0])
    np.testing.assert_allclose(rows.product(np.array([5, 70]), coef), K[:, [5, 70]] @ coef, atol=1e-12)


@MEMORY
def test_the_gradient_follows_changes_of_multipliers(most_bytes):
    rows, X, y, ridge = stored(most_bytes)
    base = rows.u.copy()
    rows.u[[3, 50, 80]] = [1.0, -0.5, 0.25]
    rows.update(base)
    assert_gradient(rows, X, y, ridge)
    rows.g[:] = np.nan
    rows.recompute_gradient()
    assert_gradient(rows, X, y, ridge)


@MEMORY
@LAYOUT
def test_compaction_keeps_the_held_rows_in_their_order(most_bytes, layout):
    rows, X, y, ridge = stored(most_bytes, layout)
    rows.alive[:60] = False
    rows.recompute_gradient()
    kept = rows.held
    rows.samples.compact(kept)
    rows.compact()
    rows.at[:40] -= 60
    assert rows.n == 40 and rows.held.tolist() == list(range(40))
    assert_gradient(rows, X[60:], y[60:], ridge[60:])
    add(rows, layout(X[:5]), y[:5], ridge[:5])
    expected = rbf_kernel(X[60:], X[:5], gamma=GAMMA)
    np.testing.assert_allclose(rows.block(np.arange(40), np.arange(40, 45)), expected, atol=1e-12)


def test_kernel_values_that_overflow_are_refused():
    samples = Samples(Kernel("poly", gamma=1.0, degree=9), most_bytes=0, n_jobs=1)
    with pytest.raises(InexactError, match="Kernel values overflow"):
        samples.append(np.full((1, 2), 1e200))
