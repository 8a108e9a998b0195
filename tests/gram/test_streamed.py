"""Rows of data that are not copied equal those of data that are."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import SVC
from maxmargin import _costs as costs
from maxmargin.gram import Gram
from maxmargin.kernels.streamed_panels import StreamedPanels

N = 1500
RNG = np.random.default_rng(0)
DENSE = RNG.normal(size=(N, 9))
ONE_HOT = np.where(RNG.random((N, 40)) < 0.1, RNG.random((N, 40)), 0.0)
OUTLIERS = DENSE.copy()
OUTLIERS[:3] *= 1e4
DATA = {
    "dense": DENSE,
    "wide": RNG.normal(size=(N, 80)),
    "mostly zero": ONE_HOT,
    "outliers": OUTLIERS,
    "csr": sp.csr_array(ONE_HOT),
    "dense csr": sp.csr_array(DENSE),
}
INDEX = RNG.permutation(N)[:1200]


def both(monkeypatch, X, **options):
    """The Gram of data that are copied, and of the same that are not."""
    options = {"gamma": 0.1, "cache_bytes": 1 << 18, "index": INDEX, **options}
    copied = Gram(X, **options)
    monkeypatch.setattr(costs, "STREAMED_BYTES", 0)
    streamed = Gram(X, **options)
    assert streamed.points.streamed and not copied.points.streamed
    return copied, streamed


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "sigmoid"])
@pytest.mark.parametrize("given", ["float32", "float64"])
@pytest.mark.parametrize("name", DATA)
def test_sums_rows_and_bounds_equal_those_of_copied_data(monkeypatch, name, given, kernel):
    for dtype in ("float32", "float64"):
        copied, streamed = both(monkeypatch, DATA[name].astype(given), kernel=kernel, dtype=dtype)
        monkeypatch.undo()
        rows, coef = np.arange(0, 1200, 7), np.linspace(-1.0, 1.0, 172)
        u, v = np.zeros(1200), np.zeros(1200)
        copied.add(u, rows, coef)
        streamed.add(v, rows, coef)
        assert np.array_equal(u, v)
        assert np.array_equal(copied.rows([3, 5]), streamed.rows([3, 5]))
        assert np.array_equal(copied.block(rows, rows), streamed.block(rows, rows))
        assert np.array_equal(copied.diag, streamed.diag)
        assert np.array_equal(copied.bound(rows, rows, coef), streamed.bound(rows, rows, coef))
        assert copied.cost == streamed.cost


@pytest.mark.parametrize("name", DATA)
def test_exact_sums_are_close_to_those_of_copied_data(monkeypatch, name):
    copied, streamed = both(monkeypatch, DATA[name])  # vectors are streamed too
    rows, coef = np.arange(0, 1200, 3), np.linspace(-1.0, 1.0, 400)
    wanted = copied.exact(rows, rows, coef)
    assert (
        np.abs(streamed.exact(rows, rows, coef) - wanted).max() <= copied.bound(rows, rows, coef, True).max()
    )


@pytest.mark.parametrize("name", ["dense", "mostly zero", "csr"])
def test_gathered_samples_are_those_on_demand(monkeypatch, name):
    copied, streamed = both(monkeypatch, DATA[name])
    assert streamed.on_demand is None and streamed.panelled
    assert isinstance(streamed.laid_out.panels, StreamedPanels)
    rows = np.array([7, 3, 900])
    for a, b in zip(copied.gather(rows).lines, streamed.gather(rows).lines, strict=True):
        assert np.array_equal(a, b)
    assert np.array_equal(copied.on_demand.norm[rows], streamed.gather(rows).norm)


def test_csr_with_wide_unsorted_and_repeated_indices_is_summed_once(monkeypatch):
    X = sp.csr_array(ONE_HOT)
    twice = sp.csr_array(
        (
            np.repeat(X.data / 2, 2),
            np.repeat(X.indices, 2)[::1].astype(np.int64),
            2 * X.indptr.astype(np.int64),
        ),
        shape=X.shape,
    )
    monkeypatch.setattr(costs, "STREAMED_BYTES", 0)
    assert np.array_equal(Gram(X, gamma=0.1).rows([1, 2]), Gram(twice, gamma=0.1).rows([1, 2]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("limit", [0, 1 << 40])
def test_fit_on_a_read_only_memory_map_equals_the_fit_on_an_array(monkeypatch, tmp_path, dtype, limit):
    monkeypatch.setattr(costs, "STREAMED_BYTES", limit)
    X, y = ONE_HOT.astype(dtype), (ONE_HOT.sum(axis=1) > 2).astype(int)
    X.tofile(tmp_path / "X")
    mapped = np.memmap(tmp_path / "X", dtype, "r", shape=X.shape)
    a, b = (SVC(C=10.0, gamma=0.5, cache_size=1).fit(data, y) for data in (X, mapped))
    assert np.array_equal(a.dual_coef_, b.dual_coef_) and np.array_equal(a.intercept_, b.intercept_)
