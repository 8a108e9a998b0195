"""The compiled primitives against NumPy."""

from __future__ import annotations

import subprocess
import sys

import numba as nb
import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin._compiled.intrinsics import INDEX_BITS, fmax, fmin, index_in, with_index
from maxmargin._compiled.sums import add_rows
from maxmargin.kernels._loops import csr_dots, csr_l1, dense_l1, rbf_rows, scatter_panel
from maxmargin.kernels.inverted import InvertedIndex
from maxmargin.kernels.panels import Lines


@nb.njit
def put(values, index):
    out = np.empty_like(values)
    for i in range(len(values)):
        out[i] = with_index(values[i], index)
    return out


@nb.njit
def get(values):
    out = np.empty(len(values), np.int64)
    for i in range(len(values)):
        out[i] = index_in(values[i])
    return out


@nb.njit
def argmax(values):
    best = values.dtype.type(0)
    for i in range(len(values)):
        best = fmax(best, with_index(values[i], i))
    return index_in(best)


@nb.njit
def smaller(a, b):
    return fmin(a, b)


# -- exp2 --------------------------------------------------------------------------------------


def exp2(x, dtype=np.float32):
    """2 ** min(0, x) through `rbf_rows`, with 1 for the row and no norms."""
    x = np.asarray(x, dtype)
    out = np.full((1, len(x)), np.nan, dtype)
    zero, one = np.zeros(len(x), dtype), np.ones((1, 1), dtype)
    rbf_rows(one, x[:, None], zero[:1], zero, 0, len(x), out, np.zeros(1, np.intp), 0)
    return out[0]


def test_exp2_has_relative_error_below_3e_7_above_minus_126():
    x = np.concatenate([np.linspace(-126, 0, 400_001), -np.geomspace(1e-8, 126, 100_001)])
    x = np.maximum(x.astype(np.float32), np.float32(-126))
    exact = np.exp2(x.astype(np.float64))
    assert np.max(np.abs(exp2(x) - exact) / exact) < 3e-7


def test_exp2_in_float64_has_relative_error_below_1e_15_above_minus_1022():
    x = np.concatenate([np.linspace(-1022, 0, 400_001), -np.geomspace(1e-16, 1022, 100_001)])
    exact = np.exp2(x.astype(np.longdouble))
    assert np.max(np.abs(exp2(x, np.float64) - exact) / exact) < 1e-15


@pytest.mark.parametrize(("dtype", "least"), [(np.float32, -126), (np.float64, -1022)])
def test_exp2_is_exact_at_integers_and_ends_at_the_smallest_normal_number(dtype, least):
    x = np.arange(least, 1.0)
    np.testing.assert_array_equal(exp2(x, dtype), np.exp2(x).astype(dtype))
    assert (exp2([least - 0.5, least - 20, -1e4, -1e30], dtype) == dtype(2.0**least)).all()
    assert (exp2([1e-7, 0.3, 5.0, 1e10], dtype) == 1).all()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rbf_rows_subtract_both_norms_and_write_to_slots_and_offset(dtype, sparse):
    rng = np.random.default_rng(0)
    A, X = rng.normal(size=(5, 9)).astype(dtype), rng.normal(size=(60, 9)).astype(dtype)
    a, b = (rng.uniform(0, 3, size=k).astype(dtype) for k in (5, 60))
    slots = np.array([7, 0, 3, 9, 4])
    out = np.full((10, 50), np.nan, dtype)
    if sparse:
        index = InvertedIndex(Lines.of(sp.csr_array(X)), 9, b, 1.0)
        index.fill(Lines.of(sp.csr_array(A)), a, 10, 47, out, slots, 4)
    else:
        rbf_rows(A, X, a, b, 10, 47, out, slots, 4)
    exact = np.exp2(np.minimum(0, A.astype(np.float64) @ X.T[:, 10:47] - a[:, None] - b[10:47]))
    np.testing.assert_allclose(out[slots, 6:43], exact, rtol=1e-5 if dtype == np.float32 else 1e-13)
    written = np.zeros(out.shape, bool)
    written[slots, 6:43] = True
    assert np.isnan(out[~written]).all()


# -- argmax in one pass ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_index_in_returns_what_with_index_put_in(kind):
    values = np.array([0.0, 1e-20, 0.3, 1.0, 12345.678], kind)
    for index in [0, 1, 1000, (1 << INDEX_BITS) - 1]:
        assert (get(put(values, index)) == index).all()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_with_index_changes_a_value_by_its_low_bits_only(kind):
    values = np.random.default_rng(0).uniform(1e-3, 1e3, 200).astype(kind)
    got = put(values, 1234)
    assert got.dtype == kind
    np.testing.assert_allclose(got, values, rtol=2.0 ** (INDEX_BITS - np.finfo(kind).nmant))


@pytest.mark.parametrize("index", ["int32", "uint32", "int64", "uint8"])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_with_index_takes_integers_of_every_width(kind, index):
    # In a process of its own: a failed compilation would spoil the intrinsic for the others.
    script = (
        "import numba, numpy as np\n"
        "from maxmargin._compiled.intrinsics import index_in, with_index\n"
        "f = numba.njit(lambda v, i: index_in(with_index(v, i)))\n"
        f"assert f(np.{kind}(1.5), np.{index}(5)) == 5\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-500:]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_argmax_by_index_bits_finds_the_largest_up_to_the_lost_bits(kind):
    rng = np.random.default_rng(0)
    lost = 2.0 ** (INDEX_BITS - np.finfo(kind).nmant)
    for n in (1, 7, 64, 1 << INDEX_BITS):
        values = rng.uniform(size=n).astype(kind)
        assert values[argmax(values)] >= values.max() * (1 - 2 * lost)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_argmax_by_index_bits_finds_a_clear_winner_at_every_place(kind):
    values = np.random.default_rng(0).uniform(0, 1, 300).astype(kind)
    for place in range(300):
        raised = values.copy()
        raised[place] = 2
        assert argmax(raised) == place


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_fmin_and_fmax_pick_as_python_does(kind):
    values = np.arange(10, dtype=kind)
    assert argmax(values) == 9
    for a, b in [(1, 2), (2, 1), (-3, 3), (0, 0)]:
        got = smaller(kind(a), kind(b))
        assert got == min(a, b)


# -- sums of rows ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [0, 1, 7, 8, 9, 16, 29])
@pytest.mark.parametrize(("c0", "c1"), [(0, 2500), (3, 1027), (100, 101), (1024, 2500), (5, 5)])
def test_add_rows_equals_the_dense_product(dtype, k, c0, c1):
    rng = np.random.default_rng(k)
    table = rng.normal(size=(12, 2500)).astype(dtype)
    slots, coef = rng.integers(0, 12, k), rng.normal(size=k)
    start = rng.normal(size=c1 - c0)
    out = start.copy()
    add_rows(out, table, slots, coef, c0, c1)
    expected = start + coef @ table[slots, c0:c1].astype(np.float64)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


def test_add_rows_sums_float32_rows_in_float64():
    table = np.full((100, 3), np.float32(0.1))
    table[0] = np.float32(1e8)
    out = np.zeros(3)
    add_rows(out, table, np.arange(100), np.ones(100), 0, 3)
    exact = 1e8 + 99 * float(np.float32(0.1))
    np.testing.assert_allclose(out, exact, rtol=1e-14)


# -- sparse and 1-norm loops -------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_panel_products_and_distances_equal_dense_algebra(dtype):
    rng = np.random.default_rng(0)
    A, B = (sp.random(n, 50, 0.2, format="csr", dtype=dtype, random_state=rng) for n in (11, 40))
    a, b = A.toarray().astype(np.float64), B.toarray().astype(np.float64)
    panel = np.full((50, 23), np.nan, dtype)
    scatter_panel(B.indptr, B.indices, B.data, 9, 32, panel)
    np.testing.assert_array_equal(panel, b[9:32].T.astype(dtype))
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    tile = np.full((11, 23), np.nan, dtype)
    csr_dots(A.indptr, A.indices, A.data, panel, tile)
    np.testing.assert_allclose(tile, a @ b[9:32].T, rtol=tolerance, atol=tolerance)
    distance = np.abs(a[:, None] - b[None, 9:32]).sum(axis=2)
    norm = np.abs(b[9:32]).sum(axis=1).astype(dtype)
    csr_l1(A.indptr, A.indices, A.data, panel, norm, tile)
    np.testing.assert_allclose(tile, distance, rtol=tolerance, atol=tolerance)
    dense_l1(a.astype(dtype), panel, tile)
    np.testing.assert_allclose(tile, distance, rtol=tolerance, atol=tolerance)


def test_scatter_panel_adds_duplicate_entries():
    panel = np.empty((2, 1))
    scatter_panel(np.array([0, 2]), np.array([1, 1]), np.array([0.25, 0.5]), 0, 1, panel)
    np.testing.assert_array_equal(panel, [[0.0], [0.75]])
