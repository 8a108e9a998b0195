"""Rows of data that are not copied equal those of data that are."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from maxmargin import SVC, SVR
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


def as_long(X):
    """The same with indices of 64 bits."""
    out = sp.csr_array(X)
    out.indices, out.indptr = out.indices.astype(np.int64), out.indptr.astype(np.int64)
    return out


def as_file(X, mode, folder):
    X.tofile(folder / "X")
    return np.memmap(folder / "X", X.dtype, mode, shape=X.shape)


def as_sparse_file(X, folder):
    """A CSR matrix over three files."""
    parts = []
    for name in ("data", "indices", "indptr"):
        part = getattr(X, name)
        part.tofile(folder / name)
        parts.append(np.memmap(folder / name, part.dtype, "r"))
    return sp.csr_array(tuple(parts), shape=X.shape)


FORMS = {
    "file": lambda X, folder: as_file(X, "r", folder),
    "copy on write": lambda X, folder: as_file(X, "c", folder),
    "Fortran order": lambda X, folder: np.asfortranarray(X),
    "every second row": lambda X, folder: np.repeat(X, 2, axis=0)[::2],
}
SPARSE_FORMS = {
    "long indices": lambda X, folder: as_long(X),
    "files": as_sparse_file,
    "files, long indices": lambda X, folder: as_sparse_file(as_long(X), folder),
    "columns": lambda X, folder: sp.csc_array(X),
    "matrix": lambda X, folder: sp.csr_matrix(X),
}
TARGET = (ONE_HOT.sum(axis=1) > 2).astype(int)


def assert_same_models(X, other, y):
    for model in (SVC(C=10.0, gamma=0.5, cache_size=1), SVR(C=0.1, gamma=0.5, kernel="laplacian", tol=0.1)):
        a, b = clone(model).fit(X, y), clone(model).fit(other, y)
        assert a.status_ == b.status_ == "solved"
        assert (a.dual_coef_ != b.dual_coef_).sum() == 0 and np.array_equal(a.intercept_, b.intercept_)
        assert np.array_equal(a.predict(X), b.predict(other))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("limit", [0, 1 << 40])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["dense", "mostly zero"])
def test_every_form_of_an_array_gives_the_same_model(monkeypatch, tmp_path, name, form, dtype, limit):
    monkeypatch.setattr(costs, "STREAMED_BYTES", limit)
    X = np.ascontiguousarray(DATA[name].astype(dtype))
    other = FORMS[form](X, tmp_path)
    kept = np.array(other)
    assert_same_models(X, other, TARGET)
    assert np.array_equal(other, kept)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("limit", [0, 1 << 40])
@pytest.mark.parametrize("form", SPARSE_FORMS)
def test_every_form_of_a_sparse_matrix_gives_the_same_model(monkeypatch, tmp_path, form, dtype, limit):
    monkeypatch.setattr(costs, "STREAMED_BYTES", limit)
    X = DATA["csr"].astype(dtype)
    assert_same_models(X, SPARSE_FORMS[form](X, tmp_path), TARGET)


@pytest.mark.parametrize("name", DATA)
def test_a_fit_to_data_in_place_is_that_to_copies(monkeypatch, name):
    copied = SVC(C=10.0, gamma=0.1, cache_size=1).fit(DATA[name], TARGET)
    monkeypatch.setattr(costs, "STREAMED_BYTES", 0)
    in_place = SVC(C=10.0, gamma=0.1, cache_size=1).fit(DATA[name], TARGET)
    assert in_place.status_ == copied.status_
    values = copied.decision_function(DATA[name])
    np.testing.assert_allclose(in_place.decision_function(DATA[name]), values, atol=0.01)
