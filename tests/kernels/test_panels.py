"""Kernel rows from panels against plain float64, at every awkward size."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import _costs
from maxmargin.kernels import panels as module
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.panels import Lines, Panels, width_of

GAMMA = 0.3
RBF = Kernel("rbf", gamma=GAMMA)
EPS = {"float32": np.finfo(np.float32).eps, "float64": np.finfo(np.float64).eps}
SMALLEST = {"float32": 2.0**-126, "float64": 2.0**-1022}
BOTH = pytest.mark.parametrize("dtype", ["float32", "float64"])
STORAGE = pytest.mark.parametrize("storage", ["dense", "int32", "int64"])


def sample(n, storage="dense", dtype="float64", d=9, seed=0, scale=1.0):
    """Data in the kernel's own form: dense, or CSR with the given kind of index."""
    rng = np.random.default_rng(seed)
    X = (scale * rng.normal(size=(n, d))).astype(dtype)
    if storage == "dense":
        return X
    X *= rng.random((n, d)) < 0.4
    X[::5] = 0.0
    X = sp.csr_array(X)
    X.indices, X.indptr = X.indices.astype(storage), X.indptr.astype(storage)
    return X


def norms(X, gamma=GAMMA):
    X = X.toarray() if sp.issparse(X) else X
    return (gamma * np.log2(np.e) * (X.astype(np.float64) ** 2).sum(axis=1)).astype(X.dtype)


def take(X, rows):
    return Lines.of(X[rows]), norms(X)[rows]


def laid_out(X, order=None, gamma=GAMMA):
    order = np.arange(X.shape[0]) if order is None else np.asarray(order, dtype=np.intp)
    return Panels(Lines.of(X), X.shape[1], norms(X, gamma), Kernel("rbf", gamma=gamma).slope, order)


def exact(X, Z, gamma=GAMMA):
    X, Z = (np.asarray(x.toarray() if sp.issparse(x) else x, dtype=np.float64) for x in (X, Z))
    return np.exp(-gamma * ((X[:, None] - Z[None]) ** 2).sum(axis=2))


def assert_near(got, expected, dtype, scale=1.0, size=60.0):
    np.testing.assert_allclose(got, expected, rtol=size * EPS[dtype], atol=size * EPS[dtype] * scale)


# -- fill --------------------------------------------------------------------------------------


@BOTH
@STORAGE
@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 127, 128, 129, 300])
def test_rows_equal_the_exact_kernel_at_any_number_of_places(n, storage, dtype):
    X = sample(n, storage, dtype)
    rows = np.arange(0, n, 3)
    out = np.full((len(rows), n), np.nan, dtype)
    laid_out(X).fill(*take(X, rows), 0, n, out, np.arange(len(rows)))
    assert_near(out, exact(X[rows], X), dtype)


@BOTH
@STORAGE
def test_any_range_of_places_is_filled_and_nothing_outside_it(storage, dtype):
    width = width_of(dtype)
    n = 2 * width + 37
    X = sample(n, storage, dtype)
    panels, K = laid_out(X), exact(X[:4], X)
    lines, norm = take(X, np.arange(4))
    edges = [0, 1, width // 2, width - 1, width, width + 1, 2 * width, n - 1, n]
    slots = np.array([5, 0, 3, 1])
    for c0 in edges:
        for c1 in (c for c in edges if c >= c0):
            for first in {0, c0 // 2, c0}:
                out = np.full((7, n - first + 3), -7.0, dtype)
                panels.fill(lines, norm, c0, c1, out, slots, first)
                assert_near(out[slots, c0 - first : c1 - first], K[:, c0:c1], dtype)
                out[slots, c0 - first : c1 - first] = -7.0
                assert (out == -7.0).all()


@BOTH
@STORAGE
def test_more_rows_than_one_round_holds_go_to_their_own_slots(storage, dtype):
    m, n = 2 * _costs.PANEL_ROWS + 3, width_of(dtype) + 5
    X = sample(m, storage, dtype)
    slots = np.random.default_rng(1).permutation(m)
    out = np.full((m, n), np.nan, dtype)
    laid_out(X[:n]).fill(Lines.of(X), norms(X), 0, n, out, slots)
    assert_near(out[slots], exact(X, X[:n]), dtype)


@BOTH
@STORAGE
def test_no_lines_write_nothing(storage, dtype):
    X = sample(70, storage, dtype)
    table, target = np.full((2, 70), -7.0, dtype), np.full(70, -7.0)
    lines, norm = take(X, np.arange(0))
    panels, none, nothing = laid_out(X), np.arange(0), np.empty(0)
    panels.fill(lines, norm, 0, 70, table, none)
    panels.fill_and_add(lines, norm, 0, 70, table, none, nothing, target)
    panels.add(lines, norm, 0, 70, nothing, target, 0)
    assert (table == -7.0).all() and (target == -7.0).all()


@BOTH
def test_no_places_write_nothing(dtype):
    X = sample(4, "dense", dtype)
    panels = laid_out(X, [])
    assert len(panels.norm) == len(panels.values) == 0
    out = np.full((4, 3), -7.0, dtype)
    panels.fill(*take(X, np.arange(4)), 0, 0, out, np.arange(4))
    assert (out == -7.0).all()


@BOTH
def test_rows_of_a_sparse_matrix_without_any_entry_are_those_of_the_origin(dtype):
    X = sp.csr_array((130, 6), dtype=dtype)
    out = np.empty((2, 130), dtype)
    laid_out(X).fill(*take(X, np.arange(2)), 0, 130, out, np.arange(2))
    assert (out == 1.0).all()


@BOTH
@STORAGE
def test_the_same_sample_at_several_places_and_places_without_one(storage, dtype):
    X = sample(20, storage, dtype)
    order = np.array([3, -1, 3, 19, 0, -1, 3, 7] * 20)
    out = np.empty((20, len(order)), dtype)
    laid_out(X, order).fill(Lines.of(X), norms(X), 0, len(order), out, np.arange(20))
    assert_near(out, np.where(order >= 0, exact(X, X[np.maximum(order, 0)]), 0.0), dtype)
    np.testing.assert_array_equal(out[:, order == 3], np.tile(out[:, :1], np.count_nonzero(order == 3)))


def test_both_kinds_of_index_give_the_same_bits():
    out = []
    for kind in ("int32", "int64"):
        X = sample(150, kind, "float32")
        out.append(np.empty((150, 150), np.float32))
        laid_out(X).fill(Lines.of(X), norms(X), 0, 150, out[-1], np.arange(150))
    np.testing.assert_array_equal(*out)


def test_sorted_and_shuffled_entries_of_a_row_give_the_same_values():
    X = sample(80, "int32")
    shuffled, rng = X.copy(), np.random.default_rng(0)
    for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        order = a + rng.permutation(b - a)
        shuffled.indices[a:b], shuffled.data[a:b] = X.indices[order], X.data[order]
    out = np.empty((80, 80))
    laid_out(shuffled).fill(Lines.of(shuffled), norms(X), 0, 80, out, np.arange(80))
    assert_near(out, exact(X, X), "float64")


# -- the exponential ---------------------------------------------------------------------------


@BOTH
def test_the_exponential_has_the_precision_of_its_type_over_its_whole_range(dtype):
    low = np.log2(SMALLEST[dtype])
    exponents = np.concatenate(
        [np.linspace(low, 0, 5000), -np.logspace(-20, 2, 2000), np.arange(low, 1) / 2, [0.0]]
    )
    norm = -exponents.astype(dtype)
    panels = Panels(Lines.of(np.zeros((len(norm), 1), dtype)), 1, norm, 1.0, np.arange(len(norm)))
    out = np.empty((1, len(norm)), dtype)
    panels.fill(Lines.of(np.zeros((1, 1), dtype)), np.zeros(1, dtype), 0, len(norm), out, np.arange(1))
    expected = np.maximum(np.exp2(-norm.astype(np.longdouble)), np.longdouble(SMALLEST[dtype]))
    np.testing.assert_allclose(out[0].astype(np.longdouble), expected, rtol=4 * EPS[dtype], atol=0)
    assert (out <= 1.0).all()


@BOTH
@STORAGE
@pytest.mark.parametrize("scale", [10.0, 1e3, 1e6])
def test_far_points_have_a_value_of_nearly_zero_and_no_nan(storage, dtype, scale):
    X = sample(140, storage, dtype, scale=scale)
    out = np.full((140, 140), np.nan, dtype)
    laid_out(X).fill(Lines.of(X), norms(X), 0, 140, out, np.arange(140))
    K = exact(X, X)
    apart = K < 1e-40
    assert apart.mean() > 0.3
    assert (out[apart] >= 0).all() and (out[apart] <= (1e-37 if dtype == "float32" else 1e-40)).all()


@BOTH
@STORAGE
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_equal_points_have_a_value_of_nearly_one_and_never_more(storage, dtype, scale):
    X = sample(150, storage, dtype, scale=scale)
    out = np.empty((150, 150), dtype)
    laid_out(X).fill(Lines.of(X), norms(X), 0, 150, out, np.arange(150))
    assert (out <= 1.0).all()
    assert (np.diag(out) >= 1.0 - 8 * EPS[dtype] * (1 + norms(X).astype(float))).all()
    assert (np.diag(out)[norms(X) == 0] == 1.0).all()


@BOTH
def test_points_closer_than_rounding_can_tell_are_never_above_one(dtype):
    X = (100.0 + 1e-6 * np.random.default_rng(0).normal(size=(200, 5))).astype(dtype)
    out = np.empty((200, 200), dtype)
    laid_out(X, gamma=5.0).fill(Lines.of(X), norms(X, 5.0), 0, 200, out, np.arange(200))
    assert (out <= 1.0).all() and (out > 0.0).all() and np.isfinite(out).all()


# -- sums --------------------------------------------------------------------------------------

ROWS = pytest.mark.parametrize("m", [1, 7, 8, 9, _costs.PANEL_ROWS, _costs.PANEL_ROWS + 11])


@BOTH
@STORAGE
@ROWS
def test_fill_and_add_fills_as_fill_does_and_adds_the_product(m, storage, dtype):
    n = width_of(dtype) + 29
    X = sample(max(m, n), storage, dtype)
    rng = np.random.default_rng(2)
    coef, slots, before = rng.normal(size=m), rng.permutation(m + 2)[:m], rng.normal(size=n)
    panels, (lines, norm) = laid_out(X[:n]), take(X, np.arange(m))
    for c0, c1 in [(0, n), (3, n - 1), (10, 20), (width_of(dtype), n), (5, 5)]:
        plain, table = (np.full((m + 2, n), -7.0, dtype) for _ in range(2))
        target = before.copy()
        panels.fill(lines, norm, c0, c1, plain, slots)
        panels.fill_and_add(lines, norm, c0, c1, table, slots, coef, target)
        np.testing.assert_array_equal(table, plain)
        expected = before.copy()
        expected[c0:c1] += coef @ plain[slots, c0:c1].astype(np.float64)
        np.testing.assert_allclose(target, expected, rtol=1e-12, atol=1e-12)


@BOTH
@STORAGE
@ROWS
def test_add_adds_the_product_in_float64_and_only_to_its_range(m, storage, dtype):
    n = width_of(dtype) + 29
    X = sample(max(m, n), storage, dtype)
    coef = np.random.default_rng(2).normal(size=m) * 1e6
    panels, (lines, norm) = laid_out(X[:n]), take(X, np.arange(m))
    rows = np.empty((m, n), dtype)
    panels.fill(lines, norm, 0, n, rows, np.arange(m))
    for c0, c1, first in [(0, n, 0), (3, n - 1, 3), (10, 20, 4), (width_of(dtype), n, 1), (5, 5, 0)]:
        target = np.full(n - first + 2, 0.5)
        panels.add(lines, norm, c0, c1, coef, target, first)
        expected = np.full(len(target), 0.5)
        expected[c0 - first : c1 - first] += coef @ rows[:, c0:c1].astype(np.float64)
        np.testing.assert_allclose(target, expected, rtol=1e-12, atol=1e-7)


# -- putting and clearing ----------------------------------------------------------------------


@BOTH
@STORAGE
def test_clearing_everything_leaves_empty_panels(storage, dtype):
    X = sample(100, storage, dtype)
    order = np.random.default_rng(0).permutation(100)
    panels = laid_out(X, order)
    panels.clear(Lines.of(X), np.arange(100), order)
    assert not panels.values.any() and (panels.norm == module.NOWHERE).all()


@BOTH
@STORAGE
def test_any_sequence_of_changes_equals_a_new_layout(storage, dtype):
    X = sample(60, storage, dtype)
    rng = np.random.default_rng(3)
    size = width_of(dtype) + 11
    order = np.full(size, -1)
    panels, lines, norm = laid_out(X, order), Lines.of(X), norms(X)
    for _ in range(25):
        places = rng.permutation(size)[: rng.integers(0, 40)]
        members = rng.integers(-1, 60, len(places))
        panels.clear(lines, places, order[places])
        panels.put(lines, norm, places, members)
        order[places] = members
        new = laid_out(X, order)
        np.testing.assert_array_equal(panels.values, new.values)
        np.testing.assert_array_equal(panels.norm, new.norm)


@BOTH
def test_panels_begin_on_cache_lines(dtype):
    for n in (1, 50, 200):
        panels = laid_out(sample(n, "dense", dtype))
        assert panels.values.ctypes.data % 64 == panels.norm.ctypes.data % 64 == 0


def test_lines_of_a_dense_array_share_its_memory():
    X = sample(10)
    lines = Lines.of(X)
    assert lines.dense and np.shares_memory(lines.data, X)
    assert [
        list(lines.data[a:b]) for a, b in zip(lines.indptr[:-1], lines.indptr[1:], strict=True)
    ] == X.tolist()


# -- the kernel's use of them --------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("shape", ["dense", "narrow", "wide", "csr"])
def test_points_in_panels_give_the_rows_of_plain_points(shape, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 7)) + 20.0
    if shape != "dense":
        d = 31 if shape == "narrow" else 400
        X = rng.normal(size=(300, d)) * (rng.random((300, d)) < 0.05)
    X = sp.csr_matrix(X) if shape == "csr" else X
    points = RBF.prepare(X, dtype)
    both = RBF.lay_out(points)
    assert both.panels is not None and points.panels is None and both.X is points.X
    A = RBF.prepare(X[:11], dtype, like=points)
    plain, quick = (np.empty((11, 300), dtype) for _ in range(2))
    RBF.fill(A, points, 0, 300, plain, np.arange(11))
    RBF.fill(A, both, 0, 300, quick, np.arange(11))
    assert_near(quick, plain, dtype, size=200)
    assert_near(quick, exact(X[:11], X), dtype, size=200)


def test_only_what_is_quicker_in_panels_is_laid_out():
    rng = np.random.default_rng(0)
    wide, narrow = rng.normal(size=(20, 65)), rng.normal(size=(20, 64))
    assert RBF.lay_out(RBF.prepare(narrow)).panels is not None
    assert RBF.lay_out(RBF.prepare(wide)).panels is None
    for name in ("linear", "poly", "sigmoid", "laplacian"):
        kernel = Kernel(name)
        assert kernel.lay_out(kernel.prepare(narrow)).panels is None


@BOTH
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("index", [None, [5, 5, 0, 39], []])
def test_non_zeros_of_dense_and_sparse_data_are_the_same_points(index, storage, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 50)) * (rng.random((40, 50)) < 0.1)
    X[7] = 0.0
    index = None if index is None else np.array(index, dtype=np.intp)
    points = RBF.prepare(storage(X), dtype, index=index)
    rows = X if index is None else X[index]
    assert points.sparse and points.n == len(rows) and points.X.dtype == points.norm.dtype == dtype
    np.testing.assert_array_equal(points.X.toarray(), rows.astype(dtype))
    np.testing.assert_allclose(points.norm, norms(rows.astype(dtype)), rtol=4 * EPS[dtype])
