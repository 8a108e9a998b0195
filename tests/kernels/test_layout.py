"""The layout of data: copies are made in parts, which can be stopped."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import _costs as costs
from maxmargin._compiled.limits import Limit, Stopped
from maxmargin.kernels.layout import canonical_csr, in_c_order, laid_out, squared_norms


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(costs, "COPIED_VALUES", 30)
    monkeypatch.setattr(costs, "COPY_TIME", 1e7)


def sparse(dtype="f8"):
    X = sp.random_array((40, 9), density=0.3, rng=np.random.default_rng(0), format="csr")
    return sp.csr_matrix((10 * X).astype(dtype))


@pytest.fixture
def late():
    limit = Limit(seconds=0.0)
    assert limit.over
    limit._ended -= 1.0
    with limit:
        yield


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_a_copy_in_c_order_has_the_same_values(order, dtype):
    X = np.random.default_rng(0).normal(size=(40, 18))
    X = X[:, ::2] if order == "strided" else np.asarray(X, order=order)
    found = in_c_order(X, np.dtype(dtype))
    assert found.dtype == dtype and found.flags.c_contiguous
    np.testing.assert_array_equal(found, X.astype(dtype))
    assert in_c_order(found, np.dtype(dtype)) is found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("given", ["f4", "f8", "i8"])
def test_selected_csr_rows_are_canonical_and_have_their_values(given, dtype):
    X = sparse(given)
    twice = sp.csr_matrix((np.repeat(X.data, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)
    index = np.array([39, 3, 3, 0, 20])
    for matrix, factor in ((X, 1), (twice, 2)):
        found = laid_out(matrix, np.dtype(dtype), index, None, True)
        assert found.dtype == dtype and found.has_canonical_format
        assert found.indices.dtype == found.indptr.dtype == np.int32
        np.testing.assert_array_equal(found.toarray(), factor * X.toarray()[index].astype(dtype))
    assert laid_out(X, np.dtype(dtype), np.empty(0, np.intp), None, True).shape == (0, 9)


@pytest.mark.parametrize("kind", ["fortran", "rows", "csr"])
def test_a_long_copy_ends_when_there_is_no_time_left(kind, late):
    X = sparse() if kind == "csr" else np.ones((40, 9), order="F")
    with pytest.raises(Stopped):
        laid_out(X, np.dtype("f4"), None if kind == "fortran" else np.arange(40), None, kind == "csr")


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_squared_norms_of_csr_rows_are_summed_in_float64(dtype):
    X = canonical_csr(sparse(), np.dtype(dtype))
    expected = (X.toarray().astype(np.float64) ** 2).sum(axis=1)
    np.testing.assert_allclose(squared_norms(X), expected, rtol=1e-15)
