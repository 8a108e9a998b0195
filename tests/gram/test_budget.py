"""Rows that are not kept, budgets that are lent, and the numbers before, between and after."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

from maxmargin import _costs
from maxmargin.gram.gram import Gram
from maxmargin.kernels.inverted import InvertedIndex
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.panels import Panels

N, GAMMA = 150, 0.4
TOL = {"float32": 1e-4, "float64": 1e-10}
rng = np.random.default_rng(0)
DATA = {
    "narrow": rng.normal(size=(N, 4)),
    "wide": rng.normal(size=(N, 70)) / 4,  # no panels
    "csr": sp.csr_array(rng.normal(size=(N, 60)) * (rng.random((N, 60)) < 0.1)),
}
MATRIX = {name: rbf_kernel(X, gamma=GAMMA) for name, X in DATA.items()}
ALL = np.arange(N)

BOTH = pytest.mark.parametrize("dtype", ["float32", "float64"])
STORAGE = pytest.mark.parametrize("storage", DATA)
ROWS = pytest.mark.parametrize("rows", [0, 1, 20, N - 1, N])


def make(rows, storage="narrow", dtype="float64", **options):
    item = np.dtype(dtype).itemsize
    return Gram(DATA[storage], gamma=GAMMA, cache_bytes=rows * N * item, dtype=dtype, **options)


def added(gram, idx, coef, columns=None, keep=None):
    out = np.zeros(gram.n if columns is None else len(columns))
    gram.add(out, idx, coef, columns, keep=keep)
    return out


def bytes_held(gram):
    return int(np.count_nonzero(gram.valid.any(axis=1))) * gram._stride * gram.dtype.itemsize


def request(seed, size=40):
    own = np.random.default_rng(seed)
    idx = own.integers(0, N, size)
    return idx, own.normal(size=size), own.random(size) < 0.5


# -- keep --------------------------------------------------------------------------------------


@BOTH
@STORAGE
@ROWS
def test_add_gives_the_same_sum_whatever_is_kept(rows, storage, dtype):
    gram, K = make(rows, storage, dtype), MATRIX[storage]
    for seed in range(12):
        idx, coef, keep = request(seed)
        keep = {0: np.ones_like(keep), 1: np.zeros_like(keep)}.get(seed % 4, keep)
        np.testing.assert_allclose(added(gram, idx, coef, keep=keep), coef @ K[idx], atol=TOL[dtype])
        np.testing.assert_allclose(added(gram, idx, coef), coef @ K[idx], atol=TOL[dtype])
        held = np.flatnonzero(gram.held(ALL))
        np.testing.assert_allclose(gram.table[gram.slot[held], :N], K[held], atol=TOL[dtype])


@STORAGE
@ROWS
@pytest.mark.parametrize(
    "columns", [range(150), range(30, 140), [3, 4, 5, 90, 91, 7], range(0, 150, 2), [9, 9]]
)
def test_add_to_some_columns_gives_the_same_sum_whatever_is_kept(columns, rows, storage):
    columns, K = np.array(columns), MATRIX[storage]
    gram = make(rows, storage)
    for seed in range(6):
        idx, coef, keep = request(seed)
        expected = coef @ K[np.ix_(idx, columns)]
        np.testing.assert_allclose(added(gram, idx, coef, columns, keep), expected, atol=1e-10)


@pytest.mark.parametrize("storage", ["narrow", "csr"])
@pytest.mark.parametrize("rows", [20, N])
@pytest.mark.parametrize("columns", [None, np.arange(10, 90), np.arange(0, N, 2)], ids=["all", "run", "many"])
def test_rows_marked_not_to_be_kept_are_not_stored_and_the_others_are(rows, storage, columns):
    gram = make(rows, storage)
    idx, keep = np.array([3, 9, 140, 8, 77]), np.array([True, False, True, False, False])
    added(gram, idx, np.ones(5), columns, keep)
    np.testing.assert_array_equal(np.flatnonzero(gram.held(ALL)), [3, 140])
    before = gram.n_evals
    added(gram, [3, 140], np.ones(2))
    assert gram.n_evals == before
    added(gram, [9], np.ones(1))
    assert gram.n_evals == before + N and gram.held(np.array([9])).all()


def test_a_row_asked_for_twice_is_kept_if_one_of_them_is():
    gram = make(N)
    idx, keep = np.array([5, 5, 6, 6]), np.array([False, True, False, False])
    coef = np.array([1.0, 10.0, 100.0, 1000.0])
    np.testing.assert_allclose(added(gram, idx, coef, keep=keep), coef @ MATRIX["narrow"][idx], atol=1e-9)
    np.testing.assert_array_equal(np.flatnonzero(gram.held(ALL)), [5])


def test_rows_that_are_held_are_used_and_stay_though_they_are_not_to_be_kept():
    gram = make(20)
    gram.rows([1, 2, 3])
    before = gram.n_evals
    added(gram, [1, 2, 3], np.ones(3), keep=np.zeros(3, bool))
    assert gram.n_evals == before and gram.held(np.array([1, 2, 3])).all()


def test_rows_not_to_be_kept_drive_no_row_out():
    gram = make(3)
    gram.rows([1, 2, 3])
    idx = np.arange(10, 40)
    np.testing.assert_allclose(
        added(gram, idx, np.ones(30), keep=np.zeros(30, bool)), MATRIX["narrow"][idx].sum(axis=0), atol=1e-10
    )
    np.testing.assert_array_equal(np.flatnonzero(gram.held(ALL)), [1, 2, 3])


@ROWS
def test_the_counters_do_not_depend_on_what_is_kept_in_one_request(rows):
    idx, coef, keep = np.arange(0, N, 4), np.ones(38), np.arange(38) % 3 > 0
    plain, marked = make(rows), make(rows)
    added(plain, idx, coef)
    added(marked, idx, coef, keep=keep)
    assert (marked.n_evals, marked.n_calls) == (plain.n_evals, plain.n_calls) == (38 * N, 38 * N)


@STORAGE
def test_keep_with_segments_and_in_a_view_changes_no_number(storage):
    K, segments = MATRIX[storage], [0, 40, 41, 100, N]
    index = np.r_[20:70, 110:130]
    gram = make(N, storage, segments=segments)
    view = gram.view(index)
    for seed in range(8):
        idx, coef, keep = request(seed)
        np.testing.assert_allclose(added(gram, idx, coef, keep=keep), coef @ K[idx], atol=1e-10)
        out = np.zeros(len(index))
        view.add(out, idx % 70, coef, keep=keep)
        np.testing.assert_allclose(out, coef @ K[np.ix_(index[idx % 70], index)], atol=1e-10)


@STORAGE
@pytest.mark.parametrize("rows", [0, 20, N])
def test_two_threads_add_what_one_does(rows, storage, monkeypatch):
    monkeypatch.setattr(_costs, "WORTH_A_THREAD", 1)
    gram = make(rows, storage, n_jobs=2)
    with gram.threads:
        for seed in range(6):
            idx, coef, keep = request(seed)
            expected = coef @ MATRIX[storage][idx]
            np.testing.assert_allclose(added(gram, idx, coef, keep=keep), expected, atol=1e-10)
            np.testing.assert_allclose(added(gram, idx, coef), expected, atol=1e-10)


# -- parts, lending and taking back ------------------------------------------------------------


@BOTH
@STORAGE
@pytest.mark.parametrize("rows", [0, 1, 20, N - 1, N, 2 * N])
@pytest.mark.parametrize("held", [0, 10, N])
@pytest.mark.parametrize("size", [0, 1, 30, N])
def test_a_part_and_what_the_whole_holds_stay_within_one_budget(rows, held, size, storage, dtype):
    gram, K = make(rows, storage, dtype), MATRIX[storage]
    gram.rows(ALL[:held])
    index = np.random.default_rng(size).permutation(N)[:size]
    part = gram.part(index)
    assert part.table.nbytes <= part.cache_bytes and part.dtype == gram.dtype and part.n == size
    assert bytes_held(gram) + part.cache_bytes <= gram.cache_bytes
    coef = np.cos(np.arange(size))
    np.testing.assert_allclose(
        added(part, np.arange(size), coef), coef @ K[np.ix_(index, index)], atol=TOL[dtype]
    )
    np.testing.assert_allclose(part.rows(np.arange(size)), K[np.ix_(index, index)], atol=TOL[dtype])
    np.testing.assert_allclose(added(gram, ALL, np.ones(N)), K.sum(axis=0), atol=TOL[dtype])
    gram.reopen()
    assert not gram.lent and gram.capacity == min(N, rows)
    np.testing.assert_allclose(added(gram, ALL, np.ones(N)), K.sum(axis=0), atol=TOL[dtype])
    np.testing.assert_allclose(gram.rows(ALL), K, atol=TOL[dtype])


def test_a_part_that_fits_beside_the_rows_leaves_them_alone():
    gram = make(100)
    gram.rows(ALL[:50])
    part = gram.part(np.arange(40))
    assert not gram.lent and gram.held(ALL[:50]).all() and part.holds_all


def test_a_part_that_does_not_fit_beside_the_rows_gets_the_whole_budget():
    gram = make(100)
    gram.rows(ALL[:95])
    part = gram.part(np.arange(100))
    assert gram.lent and gram.capacity == 0 and not gram.held(ALL).any() and gram._table is None
    assert part.holds_all


@STORAGE
@pytest.mark.parametrize("rows", [0, 20, N])
def test_a_lent_cache_stores_nothing_and_everything_still_works(rows, storage):
    gram, K = make(rows, storage, segments=[0, 50, N]), MATRIX[storage]
    gram.rows([1, 2])
    gram.lend()
    idx, coef, keep = request(0)
    columns = np.arange(20, 90)
    np.testing.assert_allclose(gram.rows(idx), K[idx], atol=1e-12)
    np.testing.assert_allclose(added(gram, idx, coef), coef @ K[idx], atol=1e-10)
    np.testing.assert_allclose(added(gram, idx, coef, keep=keep), coef @ K[idx], atol=1e-10)
    expected = coef @ K[np.ix_(idx, columns)]
    np.testing.assert_allclose(added(gram, idx, coef, columns, keep), expected, atol=1e-10)
    np.testing.assert_allclose(gram.block(idx, columns), K[np.ix_(idx, columns)], atol=1e-12)
    assert gram.table.nbytes == 0 and not gram.held(ALL).any()
    with pytest.raises(ValueError, match="cannot hold"):
        gram.ensure([1])


def test_lending_twice_and_taking_back_twice_is_lending_and_taking_back_once():
    gram = make(20)
    gram.reopen()
    gram.rows([4])
    gram.reopen()
    assert gram.held(np.array([4])).all()
    gram.lend()
    gram.lend()
    gram.reopen()
    assert gram.capacity == 20
    gram.rows([4])
    gram.reopen()
    assert gram.held(np.array([4])).all()


def test_counters_go_on_when_a_budget_is_lent():
    gram = make(N)
    gram.rows([1, 2])
    gram.lend()
    gram.rows([1])
    gram.reopen()
    gram.rows([1])
    assert (gram.n_evals, gram.n_calls) == (4 * N, 4 * N)


def test_a_part_charges_whom_it_is_told_to():
    gram = make(N)
    part = gram.part(np.arange(30))
    part.add(np.zeros(30), [1, 2], [1.0, 1.0], tally=gram)
    assert (part.n_evals, gram.n_evals, gram.n_calls) == (0, 60, 60)


def test_a_given_matrix_can_be_lent_and_cut():
    K = MATRIX["narrow"]
    gram = Gram(K, "precomputed", cache_bytes=0)
    gram.lend()
    np.testing.assert_array_equal(gram.rows([3, 4]), K[[3, 4]])
    gram.reopen()
    np.testing.assert_allclose(added(gram, [3, 4], np.ones(2)), K[[3, 4]].sum(axis=0))


def test_a_part_of_a_gram_with_an_index_is_a_part_of_both():
    outer, inner = np.random.default_rng(0).permutation(N)[:60], np.array([3, 1, 59, 8])
    index = outer[inner]
    part = make(N, index=outer).part(inner)
    np.testing.assert_allclose(part.rows(np.arange(4)), MATRIX["narrow"][np.ix_(index, index)], atol=1e-12)


STEP = st.tuples(
    st.sampled_from(["add", "keep", "columns", "rows", "lend", "reopen", "part", "double"]),
    st.integers(0, 10**6),
)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(list(DATA)), st.integers(0, N + 1), st.booleans(), st.lists(STEP, max_size=10))
def test_any_sequence_of_requests_and_loans_stays_right(storage, rows, cut, steps):
    gram, K = make(rows, storage, segments=[0, 60, N] if cut else None), MATRIX[storage]
    for kind, seed in steps:
        idx, coef, keep = request(seed, seed % 50)
        if kind == "rows":
            np.testing.assert_allclose(gram.rows(idx), K[idx], atol=1e-10)
        elif kind == "lend":
            gram.lend()
        elif kind == "reopen":
            gram.reopen()
        elif kind == "double":
            assert gram.double() is gram
        elif kind == "part":
            index = np.unique(idx)
            part = gram.part(index)
            assert bytes_held(gram) + part.cache_bytes <= gram.cache_bytes
            got, expected = part.rows(np.arange(len(index))), K[np.ix_(index, index)]
            np.testing.assert_allclose(got, expected, atol=1e-10)
        else:
            columns = np.arange(seed % 70, 100) if kind == "columns" else None
            got = added(gram, idx, coef, columns, None if kind == "add" else keep)
            expected = coef @ (K[idx] if columns is None else K[np.ix_(idx, columns)])
            np.testing.assert_allclose(got, expected, atol=1e-10)
        assert gram.table.nbytes <= (0 if gram.lent else gram.cache_bytes)
        held = np.flatnonzero(gram.held(ALL))
        np.testing.assert_allclose(gram.table[gram.slot[held], :N], K[held], atol=1e-10)


def test_long_rows_with_padding_stay_within_the_budget_and_right():
    n = 1030  # rows begin on cache lines from here on
    X = np.random.default_rng(0).normal(size=(n, 3))
    K = rbf_kernel(X, gamma=GAMMA)
    for dtype in ("float32", "float64"):
        gram = Gram(X, gamma=GAMMA, cache_bytes=100 * n * np.dtype(dtype).itemsize, dtype=dtype)
        idx, coef = np.arange(0, n, 3), np.cos(np.arange(344))
        assert gram.table.nbytes <= gram.cache_bytes and gram.table.shape[1] > n
        for keep in (None, idx % 2 > 0):
            np.testing.assert_allclose(added(gram, idx, coef, keep=keep), coef @ K[idx], atol=TOL[dtype])
        np.testing.assert_allclose(gram.rows(idx), K[idx], atol=TOL[dtype])


def test_panels_count_their_padding_before_they_are_laid_out(monkeypatch):
    kernel, X = Kernel("rbf", gamma=1e-6), sp.random(7, 1000, 0.2, format="csr", random_state=0)
    points = kernel.prepare(X, "float32")
    for most, kind in ((128 * 1000 * 4, Panels), (128 * 1000 * 4 - 1, InvertedIndex)):
        monkeypatch.setattr(_costs, "PANELS_BYTES", most)
        assert isinstance(kernel.lay_out(points).panels, kind)


@pytest.mark.parametrize("n", [1023, 1024, 1025, 1030, 2040])
def test_a_part_that_fits_the_budget_holds_all_its_rows(n):
    X = np.random.default_rng(0).normal(size=(3000, 3))
    assert Gram(X, gamma=0.5).part(np.arange(n)).holds_all


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_rows_that_are_not_to_be_kept_do_not_grow_the_cache_beside_a_part(kernel):
    X = np.random.default_rng(0).normal(size=(150, 4))
    gram = Gram(X, kernel, gamma=0.4, dtype="float64", cache_bytes=100 * 150 * 8)
    gram.rows(np.arange(50))
    part = gram.part(np.arange(80))
    part.rows(np.arange(80))
    gram.add(np.zeros(150), np.arange(150), np.ones(150), keep=np.zeros(150, bool))
    assert gram.held(np.arange(150)).sum() == 50 and not gram.lent


def test_a_lent_budget_stays_lent_when_the_rows_become_float64():
    X = np.random.default_rng(0).normal(size=(300, 3))
    gram = Gram(X, gamma=0.5, cache_bytes=300 * 300 * 4)
    gram.lend()
    gram.double()
    assert gram.lent and gram.capacity == 0


def test_segments_come_back_with_the_budget():
    gram = Gram(np.random.default_rng(0).normal(size=(300, 3)), gamma=0.5, segments=[0, 100, 300])
    gram.lend()
    gram.reopen()
    assert gram.segments.tolist() == [0, 100, 300]


# -- packed tables -----------------------------------------------------------------------------


@pytest.fixture
def packed(monkeypatch):
    """Tables of any size are packed."""
    monkeypatch.setattr(_costs, "UNPACKED_BYTES", 0)


@BOTH
@STORAGE
def test_a_large_table_has_its_rows_in_the_order_of_their_first_use(storage, dtype, packed):
    gram = make(N, storage, dtype)
    assert gram.holds_all and not gram.in_place
    gram.ensure([70, 3])
    gram.ensure([3, 140, 5])
    assert gram.slot[[3, 70]].tolist() == [0, 1]  # a request is sorted
    assert gram.slot[[5, 140]].tolist() == [2, 3]
    assert np.count_nonzero(gram.slot >= 0) == 4
    np.testing.assert_allclose(gram.table[gram.slot[[70, 5]], :N], MATRIX[storage][[70, 5]], atol=TOL[dtype])


@BOTH
@STORAGE
def test_sums_blocks_and_squares_of_a_packed_table_equal_the_matrix(storage, dtype, packed):
    gram, K = make(N, storage, dtype), MATRIX[storage]
    for seed in range(4):
        idx, coef, keep = request(seed)
        for columns in (None, np.arange(20, 90)):
            expected = (K if columns is None else K[columns])[:, idx] @ coef
            np.testing.assert_allclose(added(gram, idx, coef, columns, keep), expected, atol=40 * TOL[dtype])
    np.testing.assert_allclose(gram.rows([9, 2, 9]), K[[9, 2, 9]], atol=TOL[dtype])
    some = np.arange(30, 60)
    np.testing.assert_allclose(gram.square(some, gram), K[np.ix_(some, some)], atol=TOL[dtype])
    gram.complete(77)
    np.testing.assert_allclose(gram.table[gram.slot[77], :N], K[77], atol=TOL[dtype])


def test_only_rows_in_use_take_memory_of_a_packed_table(packed):
    gram = make(N)
    gram.add(np.zeros(N), np.array([140, 7]), np.ones(2), keep=np.array([True, False]))
    assert gram.slot[140] == 0 and gram.slot[7] == -1
    assert gram._used == 1


def test_segments_and_given_matrices_keep_each_row_in_its_place(packed):
    assert make(N, segments=[0, 50, N]).fixed
    assert Gram(MATRIX["narrow"], "precomputed").fixed
    assert Gram(MATRIX["narrow"], "precomputed", index=np.arange(100)[::-1]).in_place  # a copy in this order


def test_threads_that_share_a_packed_table_give_each_row_one_slot(packed):
    from concurrent.futures import ThreadPoolExecutor

    gram = make(N)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda seed: gram.ensure(request(seed)[0]), range(40)))
    taken = gram.slot[gram.slot >= 0]
    assert len(np.unique(taken)) == len(taken) == gram._used
    used = np.flatnonzero(gram.slot >= 0)
    np.testing.assert_allclose(gram.table[gram.slot[used], :N], MATRIX["narrow"][used], atol=1e-10)
