"""Rows, blocks and sums of the Gram matrix under every budget, and what they cost."""

from __future__ import annotations

import threading
import time
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.metrics.pairwise import rbf_kernel

from maxmargin import SVC, _costs
from maxmargin.gram import cache, sums
from maxmargin.gram.gram import Gram
from maxmargin.gram.view import View
from maxmargin.kernels.kernel import Kernel

N, GAMMA = 40, 0.4
RTOL = {"float32": 2e-6, "float64": 1e-12}
X = np.random.default_rng(0).normal(size=(N, 4))
K = rbf_kernel(X, gamma=GAMMA)
BUDGETS = {"nothing": 0, "three rows": 3, "half": N // 2, "all but one": N - 1, "all": N}


def make(rows=N, dtype="float64", *, data=X, kernel="rbf", **options):
    """A Gram matrix whose cache holds the given number of rows (and a few bytes more)."""
    n = len(options.get("index", range(data.shape[0])))
    row = n * np.dtype(dtype).itemsize
    spare = 0 if rows >= n else row - 1
    return Gram(data, kernel, gamma=GAMMA, cache_bytes=rows * row + spare, dtype=dtype, **options)


def assert_near(got, expected, dtype="float64", scale=1.0):
    np.testing.assert_allclose(got, expected, rtol=RTOL[str(dtype)], atol=RTOL[str(dtype)] * scale)


def added(gram, idx, coef, columns=None):
    out = np.zeros(gram.n if columns is None else len(columns))
    if columns is None:
        gram.add(out, idx, coef)
    else:
        gram.add(out, idx, coef, columns)
    return out


@pytest.fixture
def eager(monkeypatch):
    """Threads for every piece of work, however small."""
    monkeypatch.setattr(_costs, "WORTH_A_THREAD", 1)


# -- values under every budget -----------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", BUDGETS.values(), ids=BUDGETS.keys())
def test_rows_block_and_add_equal_the_dense_matrix(rows, dtype):
    gram = make(rows, dtype)
    rng = np.random.default_rng(1)
    for _ in range(30):
        idx, columns = rng.integers(0, N, rng.integers(1, 12)), rng.integers(0, N, 7)
        coef = rng.normal(size=len(idx))
        assert_near(gram.rows(idx), K[idx], dtype)
        assert_near(gram.block(idx, columns), K[np.ix_(idx, columns)], dtype)
        assert_near(added(gram, idx, coef), coef @ K[idx], dtype, scale=20)
        assert_near(added(gram, idx, coef, columns), coef @ K[np.ix_(idx, columns)], dtype, scale=20)


@pytest.mark.parametrize("rows", BUDGETS.values(), ids=BUDGETS.keys())
def test_add_adds_to_what_is_there(rows):
    out = np.arange(N, dtype=float)
    make(rows).add(out, [3, 9], [1.0, -2.0])
    assert_near(out, np.arange(N) + K[3] - 2 * K[9], scale=40)


@pytest.mark.parametrize("rows", BUDGETS.values(), ids=BUDGETS.keys())
def test_rows_asked_for_twice_in_one_request_count_twice_in_the_sum(rows):
    gram = make(rows)
    idx = [5, 5, 8, 5, 11, 8]
    assert_near(gram.rows(idx), K[idx])
    assert_near(added(gram, idx, np.ones(6)), 3 * K[5] + 2 * K[8] + K[11], scale=10)


@pytest.mark.parametrize("rows", BUDGETS.values(), ids=BUDGETS.keys())
def test_nothing_asked_for_is_nothing_done(rows):
    gram = make(rows)
    gram.add(np.zeros(N), [], [])
    assert gram.rows([]).shape == (0, N)
    assert gram.block([], [1, 2]).shape == (0, 2)
    gram.ensure([])
    assert gram.n_evals == gram.n_calls == 0


@pytest.mark.parametrize("name", ["linear", "poly", "sigmoid", "laplacian"])
@pytest.mark.parametrize("rows", [0, 3, N])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix, sp.csr_array])
def test_every_kernel_and_storage_gives_the_values_of_its_kernel(name, rows, storage):
    sparse = sp.random(N, 50, 0.1, format="csr", random_state=0)
    data = sparse.toarray() if storage is np.asarray else storage(sparse)
    gram = make(rows, data=data, kernel=name)
    dense = Kernel(name, gamma=GAMMA).block(sparse, sparse)
    assert_near(gram.rows([1, 30, 2]), dense[[1, 30, 2]])
    assert_near(gram.diag, np.diag(dense))
    assert_near(added(gram, [0, 7], [1.0, 2.0]), dense[0] + 2 * dense[7], scale=10)


def test_streamed_rows_that_cross_tile_borders_are_right():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(2300, 3))
    dense = rbf_kernel(data, gamma=GAMMA)
    idx, coef = rng.permutation(2300)[:600], rng.normal(size=600)
    assert len(idx) > _costs.STREAM_ROWS
    for rows in (0, 100):
        gram = make(rows, data=data)
        assert_near(added(gram, idx, coef), coef @ dense[idx], scale=600)


def test_float32_rows_are_summed_in_float64():
    gram = make(dtype="float32")
    idx = np.arange(N)
    table = gram.rows(idx).astype(np.float64)
    coef = np.where(idx % 2, 1e9, -1e9) + idx
    out = added(gram, idx, coef)
    assert out.dtype == np.float64
    np.testing.assert_allclose(out, coef @ table, rtol=0, atol=1e-4)


def test_rows_of_a_subset_in_any_order_are_those_of_the_index():
    index = np.array([30, 2, 17, 5, 5])
    for rows in (0, 2, 5):
        gram = make(rows, index=index)
        assert gram.n == 5
        assert_near(gram.rows(np.arange(5)), K[np.ix_(index, index)])


# -- the budget --------------------------------------------------------------------------------

REQUEST = st.tuples(
    st.sampled_from(["rows", "add", "columns", "ensure", "block", "held"]),
    st.lists(st.integers(0, N - 1), max_size=N + 10),
)


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(["float32", "float64"]),
    st.integers(0, N + 2),
    st.lists(REQUEST, max_size=12),
)
def test_any_sequence_of_requests_stays_within_the_budget_and_right(dtype, rows, requests):
    gram = make(rows, dtype)
    for kind, wanted in requests:
        idx = np.array(wanted, dtype=np.intp)
        coef = np.cos(idx)
        if kind == "rows":
            assert_near(gram.rows(idx), K[idx], dtype)
        elif kind == "add":
            assert_near(added(gram, idx, coef), coef @ K[idx], dtype, scale=60)
        elif kind == "columns":
            columns = np.array([1, 2, 3, 30, 31, 7])
            assert_near(added(gram, idx, coef, columns), coef @ K[np.ix_(idx, columns)], dtype, scale=60)
        elif kind == "block":
            assert_near(gram.block(idx, idx[::2]), K[np.ix_(idx, idx[::2])], dtype)
        elif kind == "ensure" and len(set(wanted)) <= gram.capacity:
            gram.ensure(idx)
            assert gram.held(idx).all()
            assert_near(gram.table[gram.slot[idx]], K[idx], dtype)
        held = np.flatnonzero(gram.held(np.arange(N)))
        assert_near(gram.table[gram.slot[held]], K[held], dtype)
        assert len(set(gram.slot[held])) == len(held) <= gram.capacity
        assert gram.table.nbytes <= gram.cache_bytes


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_table_holds_as_many_rows_as_the_budget_allows(dtype):
    for rows in BUDGETS.values():
        gram = make(rows, dtype)
        assert gram.capacity == rows and gram.table.shape == (rows, N)


def test_the_table_never_moves_while_rows_come_and_go():
    gram = make(5)
    table = gram.table
    for s in range(0, N, 5):
        gram.ensure(np.arange(s, s + 5))
        assert gram.table is table


def test_ensure_of_more_rows_than_fit_tells_the_bytes_it_needs():
    gram = make(3)
    with pytest.raises(ValueError, match=f"at least {4 * N * 8} bytes"):
        gram.ensure([1, 2, 3, 4])
    make(4).ensure([1, 2, 3, 4])
    assert_near(gram.rows([1, 2, 3, 4]), K[1:5])


def test_rows_are_read_only():
    view = make().view(np.arange(5, 20))
    for gram in (make(0), make(3), make(), view):
        out = gram.rows([1, 2])
        with pytest.raises(ValueError, match="read-only"):
            out[0, 0] = 3.0


def test_rows_survive_later_evictions():
    gram = make(2)
    kept = gram.rows([0, 1])
    gram.rows([2, 3])
    assert_near(kept, K[:2])


def test_a_kernel_that_fails_once_leaves_no_wrong_rows_behind():
    fail = []

    def kernel(a, b):
        if fail and len(b) > 1:
            fail.pop()
            raise RuntimeError("once")
        return rbf_kernel(a, b, gamma=GAMMA)

    for rows in (0, 3, N):
        gram = make(rows, kernel=kernel)
        fail.append(True)
        with pytest.raises(RuntimeError, match="once"):
            gram.rows([4, 5])
        assert not gram.held(np.array([4, 5])).any()
        assert_near(gram.rows([4, 5]), K[[4, 5]])


@pytest.mark.parametrize("solver", ["auto", "smo"])
def test_a_fit_with_a_small_cache_finds_the_solution_of_one_with_a_large_cache(solver):
    data, y = make_classification(1500, 8, n_informative=6, flip_y=0.1, random_state=0)
    large, small = (SVC(C=10.0, solver=solver, cache_size=size).fit(data, y) for size in (200, 1))
    assert large.status_ == small.status_ == "solved"
    np.testing.assert_allclose(small.decision_function(data), large.decision_function(data), atol=0.02)


@pytest.mark.parametrize("classes", [2, 3])
def test_all_caches_of_one_svc_fit_stay_within_cache_size_together(classes, monkeypatch):
    rng = np.random.default_rng(0)
    data = rng.normal(size=(900, 5))
    y = np.arange(900) % classes
    budget = 0.25
    alive: weakref.WeakSet[Gram] = weakref.WeakSet()
    peak = [0]
    plain, table = Gram.__init__, Gram.table.fget

    def init(self, *args, **options):
        plain(self, *args, **options)
        alive.add(self)

    def watched(self):
        out = table(self)
        peak[0] = max(peak[0], sum(g._table.nbytes for g in list(alive) if g._table is not None))
        time.sleep(1e-4)  # lets the other machines come in between
        return out

    monkeypatch.setattr(Gram, "__init__", init)
    monkeypatch.setattr(Gram, "table", property(watched))
    SVC(solver="smo", cache_size=budget, n_jobs=2, max_iter=3000, gamma=1.0).fit(data, y)
    assert 0 < peak[0] <= budget * (1 << 20)


# -- what it costs -----------------------------------------------------------------------------


def cost(gram):
    return gram.n_evals, gram.n_calls


def test_counters_are_exact_where_all_rows_fit():
    gram = make()
    gram.rows([1, 2])
    assert cost(gram) == (2 * N, 2 * N)
    gram.rows([2, 1])
    assert cost(gram) == (2 * N, 4 * N)
    gram.add(np.zeros(N), [1, 3], [1.0, 1.0])
    assert cost(gram) == (3 * N, 6 * N)
    gram.block([0, 1, 2], [4, 5])
    assert cost(gram) == (3 * N + 6, 6 * N + 6)
    gram.ensure([3, 4, 4])
    assert cost(gram) == (4 * N + 6, 6 * N + 6)
    gram.exact(np.array([0, 1]), np.array([2, 3, 4]), np.ones(3))  # the certificate is not counted
    assert cost(gram) == (4 * N + 6, 6 * N + 6)


def test_counters_are_exact_without_a_cache():
    gram = make(0)
    gram.rows([1])
    gram.rows([1])
    assert cost(gram) == (2 * N, 2 * N)
    gram.add(np.zeros(N), [1, 2], [1.0, 1.0])
    assert cost(gram) == (4 * N, 4 * N)


def test_the_longest_unused_row_is_the_one_evicted():
    gram = make(3)
    gram.rows([0])
    gram.rows([1])
    gram.rows([2])
    gram.rows([0])
    assert gram.n_evals == 3 * N
    gram.rows([3])  # in place of 1
    assert gram.n_evals == 4 * N
    for kept in (0, 2, 3):
        gram.rows([kept])
    assert gram.n_evals == 4 * N
    gram.rows([1])
    assert gram.n_evals == 5 * N


def test_a_request_larger_than_the_cache_keeps_what_it_has():
    gram = make(3)
    gram.rows([0, 1, 2])
    gram.rows(np.arange(6))
    assert gram.n_evals == 6 * N
    gram.add(np.zeros(N), [0, 1, 2], np.ones(3))
    assert gram.n_evals == 6 * N


def test_add_keeps_the_rows_it_computed():
    gram = make(5)
    gram.add(np.zeros(N), [7, 8], [1.0, 1.0])
    assert gram.held(np.array([7, 8])).all()
    gram.rows([7, 8])
    assert gram.n_evals == 2 * N


def test_add_with_columns_counts_only_what_it_uses():
    scattered = np.arange(0, 400, 3)
    data = np.random.default_rng(0).normal(size=(400, 2))
    for columns in (np.arange(10, 25), np.array([3, 4, 9]), scattered):
        gram = make(400, data=data)
        gram.add(np.zeros(len(columns)), [1, 2], [1.0, 1.0], columns)
        assert gram.n_calls == 2 * len(columns)


# -- columns and segments ----------------------------------------------------------------------


@pytest.mark.parametrize("rows", [0, 3, N])
@pytest.mark.parametrize(
    "columns",
    [[0], [N - 1], list(range(N)), list(range(10, 20)), [5, 6, 7, 20, 21, 3], [9, 8, 7], [4, 4, 4]],
)
def test_add_with_columns_gives_those_columns(rows, columns):
    columns = np.array(columns)
    idx, coef = np.array([1, 38, 12, 7, 7]), np.array([1.0, -2.0, 0.5, 3.0, 1.0])
    assert_near(added(make(rows), idx, coef, columns), coef @ K[np.ix_(idx, columns)], scale=10)


@pytest.mark.parametrize("rows", [0, 20, 500])
def test_add_with_many_scattered_columns_gives_those_columns(rows):
    rng = np.random.default_rng(0)
    data = rng.normal(size=(500, 3))
    dense = rbf_kernel(data, gamma=GAMMA)
    columns, idx, coef = rng.permutation(500)[:300], rng.integers(0, 500, 30), rng.normal(size=30)
    assert sums._runs(columns) is None
    gram = make(rows, data=data)
    assert_near(added(gram, idx, coef, columns), coef @ dense[np.ix_(idx, columns)], scale=30)


@pytest.mark.parametrize("rows", [0, 3, N])
def test_add_with_no_columns_does_nothing(rows):
    make(rows).add(np.zeros(0), [1], [1.0], np.array([], dtype=np.intp))


SEGMENTS = [0, 10, 25, 25, N]


@pytest.mark.parametrize(
    ("columns", "width"),
    [
        (range(10), 10),
        (range(3, 7), 10),
        (range(10, 25), 15),
        (range(9, 11), 25),
        (range(25, N), 15),
        ([*range(10), *range(25, N)], 25),
        (range(N), N),
    ],
)
def test_only_the_touched_segments_are_computed(columns, width):
    columns = np.array(columns)
    gram = make(segments=SEGMENTS)
    assert_near(added(gram, [2, 30], [1.0, 2.0], columns), K[2, columns] + 2 * K[30, columns], scale=3)
    assert gram.n_evals == 2 * width
    assert_near(added(gram, [2, 30], [1.0, 1.0], columns), K[2, columns] + K[30, columns], scale=3)
    assert gram.n_evals == 2 * width
    assert_near(gram.rows([2, 30]), K[[2, 30]])
    assert gram.n_evals == 2 * N


def test_a_row_is_held_only_when_all_its_segments_are():
    gram = make(segments=SEGMENTS)
    gram.ensure([3], [0])
    assert gram.n_evals == 10 and not gram.held(np.array([3])).any()
    gram.ensure([3])
    assert gram.n_evals == N and gram.held(np.array([3])).all()


def test_neighbouring_segments_that_lack_the_same_rows_are_computed_at_once(monkeypatch):
    gram, ranges = make(segments=SEGMENTS), []
    fill = Kernel.fill

    def recorded(self, A, B, c0, c1, *rest):
        ranges.append((A.n, c0, c1))
        fill(self, A, B, c0, c1, *rest)

    monkeypatch.setattr(Kernel, "fill", recorded)
    gram.ensure([3, 4])
    assert ranges == [(2, 0, N)]
    gram.ensure([5], [0])
    gram.ensure([4, 5, 6])
    assert ranges[1:] == [(1, 0, 10), (1, 0, 10), (2, 10, N)]
    gram.ensure([8], [0, 3])
    assert ranges[4:] == [(1, 0, 10), (1, 25, N)]
    assert_near(gram.rows([3, 4, 5, 6, 8]), K[[3, 4, 5, 6, 8]])


def test_segments_without_room_for_all_rows_change_nothing():
    gram = make(N - 1, segments=SEGMENTS)
    columns = np.arange(10)
    assert_near(added(gram, [2], [1.0], columns), K[2, :10])
    assert_near(gram.rows([2, 5]), K[[2, 5]])
    assert gram.n_evals == 2 * N


# -- views -------------------------------------------------------------------------------------

INDEXES = {
    "range": np.arange(8, 30),
    "two ranges": np.concatenate([np.arange(10), np.arange(25, N)]),
    "scattered": np.random.default_rng(5).permutation(N)[:17],
    "one": np.array([6]),
    "all, reversed": np.arange(N)[::-1],
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES.keys())
@pytest.mark.parametrize("rows", [0, 3, N])
def test_a_view_gives_the_rows_and_columns_of_its_index(rows, index, dtype):
    gram = make(rows, dtype, segments=SEGMENTS)
    view = gram.view(index)
    part, n = K[np.ix_(index, index)], len(index)
    rng = np.random.default_rng(0)
    idx, columns = rng.integers(0, n, 9), rng.integers(0, n, 4)
    coef = rng.normal(size=9)
    assert view.n == n and isinstance(view, View) == (rows == N)
    assert_near(view.diag, np.ones(n))
    assert_near(added(view, idx, coef), coef @ part[idx], dtype, scale=20)
    assert_near(view.rows(idx), part[idx], dtype)
    assert_near(view.block(idx, columns), part[np.ix_(idx, columns)], dtype)
    assert_near(view.exact(idx, columns, coef[:4]), part[np.ix_(idx, columns)] @ coef[:4], scale=4)
    assert_near(view.double().rows(idx), part[idx])
    assert view.double().dtype == np.float64
    if len(set(idx)) <= view.capacity:
        view.ensure(idx)
        assert view.held(idx).all()
        assert_near(view.table[view.slot[idx]][:, view.columns], part[idx], dtype)


def test_a_view_shares_the_rows_of_its_base_both_ways():
    gram = make()
    gram.rows(np.arange(10))
    view = gram.view(np.arange(5, 20))
    view.rows(np.arange(5))
    assert view.n_evals == 0 and view.n_calls > 0
    added(view, np.arange(5), np.ones(5))
    assert view.n_evals == 0
    view.rows([5, 6])
    assert view.n_evals == 2 * N
    before = gram.n_evals
    gram.rows([10, 11])
    other = gram.view(np.array([11, 3, 10]))
    other.rows([0, 1, 2])
    assert gram.n_evals == before and other.n_evals == 0


def test_a_view_without_room_for_all_rows_has_a_cache_of_its_own_of_shorter_rows():
    gram = make(3)
    index = np.arange(10)
    view = gram.view(index)
    assert view.cache_bytes == gram.cache_bytes
    assert view.capacity == min(10, gram.cache_bytes // (10 * 8)) > 3
    view.rows(np.arange(4))
    assert view.n_evals == 40 and gram.n_evals == 0
    view.rows(np.arange(4))
    assert view.n_evals == 40
    assert view.table.nbytes <= gram.cache_bytes


@pytest.mark.parametrize("rows", [0, 3, len(K)])
def test_a_view_of_a_view_is_a_view_of_both_indexes(rows):
    outer, inner = INDEXES["scattered"], np.array([3, 1, 16, 8])
    nested = make(rows).view(outer).view(inner)
    index = outer[inner]
    assert_near(nested.rows([0, 1, 2, 3]), K[np.ix_(index, index)])


def test_a_view_of_a_gram_with_an_index_is_a_view_of_both():
    outer, inner = INDEXES["scattered"], np.array([3, 1, 16, 8])
    index = outer[inner]
    for rows in (0, 3, len(outer)):
        view = make(rows, "float32", index=outer).view(inner)
        assert_near(view.rows(np.arange(4)), K[np.ix_(index, index)], "float32")
        assert_near(view.double().rows(np.arange(4)), K[np.ix_(index, index)])
        got = view.exact(np.arange(4), np.array([1, 2]), np.array([1.0, 2.0]))
        assert_near(got, K[np.ix_(index, index[1:3])] @ [1.0, 2.0], scale=4)


# -- precision ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [0, 3, N])
def test_double_is_float64_takes_the_budget_and_the_counters_and_empties_the_old_cache(rows):
    gram = make(rows, "float32", segments=SEGMENTS)
    gram.rows([1, 2])
    before = cost(gram)
    twin = gram.double()
    assert twin.dtype == np.float64 and twin.rows([1, 2]).dtype == np.float64
    assert twin.cache_bytes == gram.cache_bytes and twin.table.nbytes <= twin.cache_bytes
    assert not gram.held(np.arange(N)).any() and gram._table is None
    assert twin.n_calls == before[1] + 2 * N
    assert_near(twin.rows(np.arange(N)), K)
    assert_near(gram.rows([1, 2]), K[[1, 2]], "float32")


def test_double_with_a_budget_leaves_the_old_cache_alone():
    gram = make(dtype="float32")
    gram.rows([1, 2])
    twin = gram.double(cache_bytes=0)
    assert twin.dtype == np.float64 and twin.capacity == 0 and cost(twin) == (0, 0)
    assert gram.held(np.array([1, 2])).all()
    assert_near(twin.rows([1, 2]), K[[1, 2]])


def test_double_of_float64_is_the_same_object():
    gram = make()
    assert gram.double() is gram


@pytest.mark.parametrize("index", [None, INDEXES["scattered"]])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
def test_exact_is_float64_whatever_the_rows_are(storage, index):
    options = {} if index is None else {"index": index}
    gram = make(3, "float32", data=storage(X), **options)
    rows, columns = np.array([0, 5, 16]), np.array([2, 3, 3, 11])
    at = np.arange(N) if index is None else index
    coef = np.array([1.0, -3.0, 2.0, 1e3])
    got = gram.exact(rows, columns, coef)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, K[np.ix_(at[rows], at[columns])] @ coef, rtol=1e-11, atol=1e-9)
    assert not gram.held(np.arange(gram.n)).any()


def test_exact_over_more_columns_than_one_part_is_right():
    data = np.random.default_rng(0).normal(size=(5000, 2))
    gram = make(0, "float32", data=data)
    rows, coef = np.array([0, 4999]), np.random.default_rng(1).normal(size=5000)
    expected = rbf_kernel(data[rows], data, gamma=GAMMA) @ coef
    np.testing.assert_allclose(gram.exact(rows, np.arange(5000), coef), expected, atol=1e-9)


def test_other_dtypes_are_refused():
    with pytest.raises(ValueError, match="float32 or float64"):
        Gram(X, dtype="float16")


# -- given matrices and callables --------------------------------------------------------------


def test_a_given_matrix_is_read_where_it_lies_and_costs_no_evaluations():
    gram = Gram(K, "precomputed", cache_bytes=0)
    assert np.shares_memory(gram.table, K)
    assert_near(gram.rows([3, 1]), K[[3, 1]])
    assert_near(added(gram, [3, 1], [1.0, 2.0]), K[3] + 2 * K[1], scale=3)
    assert_near(gram.block([3], [4, 5]), K[3:4, 4:6])
    gram.ensure([1, 2])
    assert gram.n_evals == 0 and gram.n_calls == 4 * N + 2
    assert_near(gram.exact(np.array([1]), np.array([2, 3]), np.ones(2)), K[1, 2:4].sum())
    view = gram.view(INDEXES["scattered"])
    index = INDEXES["scattered"]
    assert_near(view.rows([0, 1]), K[np.ix_(index[:2], index)])
    assert view.n_evals == 0 and np.shares_memory(view.table, K)
    assert gram.double() is gram


def test_a_given_matrix_is_not_changed():
    given_ = K.copy()
    gram = Gram(given_, "precomputed")
    gram.rows([1])
    added(gram, np.arange(N), np.ones(N))
    np.testing.assert_array_equal(given_, K)
    assert given_.flags.writeable


def test_a_given_matrix_with_index_is_cut():
    index = INDEXES["scattered"]
    gram = Gram(K, "precomputed", index=index)
    assert_near(gram.rows(np.arange(17)), K[np.ix_(index, index)])
    got = gram.exact(np.array([1]), np.array([2, 3]), np.ones(2))
    assert_near(got, K[index[1], index[2:4]].sum())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_of_a_given_matrix_with_index_are_copied_when_they_are_asked_for(dtype):
    index = INDEXES["scattered"]
    gram = Gram(np.asarray(K, dtype=dtype), "precomputed", index=index, dtype=dtype)
    assert gram.given and gram.dtype == dtype and not gram.held(np.arange(gram.n)).any()
    gram.ensure([2, 5])
    np.testing.assert_array_equal(gram.held(np.arange(gram.n)), np.isin(np.arange(gram.n), [2, 5]))
    assert gram.n_evals == 0
    np.testing.assert_array_equal(gram.table[gram.slot[5], : gram.n], np.asarray(K[index[5], index], dtype))


def test_a_given_matrix_with_index_keeps_to_the_budget():
    index = INDEXES["scattered"]
    gram = Gram(K, "precomputed", index=index, cache_bytes=3 * 8 * len(index))
    assert gram.capacity == 3 and not gram.given
    assert_near(gram.rows(np.arange(5)), K[np.ix_(index[:5], index)])


def test_a_float32_matrix_has_float32_rows_unless_more_digits_are_asked_for():
    given_ = K.astype(np.float32)
    gram = Gram(given_, "precomputed", dtype="float32")
    assert gram.dtype == np.float32 and np.shares_memory(gram.table, given_)
    double = gram.double()
    assert double.dtype == np.float64
    np.testing.assert_array_equal(double.rows([3, 1]), given_[[3, 1]].astype(np.float64))


@pytest.mark.parametrize("index", [None, INDEXES["scattered"]])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_given_values_are_within_their_bound(dtype, index):
    given_ = K.astype(dtype)
    gram = Gram(given_, "precomputed", dtype=dtype, index=index)
    at = np.arange(N) if index is None else index
    coef, all_ = np.random.default_rng(5).normal(size=gram.n), np.arange(gram.n)
    true = given_.astype(np.longdouble)[np.ix_(at, at)] @ coef
    for _ in range(2):  # from the matrix, and from rows that are cached
        exact = gram.exact(all_, all_, coef)
        assert (np.abs(exact - true) <= gram.bound(all_, all_, coef, double=True)).all()
        gram.ensure(all_)


def test_an_asymmetric_given_matrix_is_read_by_rows():
    given_ = np.arange(16.0).reshape(4, 4)
    np.testing.assert_array_equal(Gram(given_, "precomputed").rows([1, 2]), given_[[1, 2]])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [0, 3, N])
@pytest.mark.parametrize("data", [X, X.tolist(), sp.csr_matrix(X)], ids=["array", "list", "csr"])
def test_a_callable_gives_its_own_values(data, rows, dtype):
    gram = Gram(
        data,
        lambda a, b: rbf_kernel(a, b, gamma=GAMMA),
        cache_bytes=rows * N * np.dtype(dtype).itemsize,
        dtype=dtype,
    )
    assert_near(gram.diag, np.ones(N))
    assert_near(gram.rows([3, 1]), K[[3, 1]], dtype)
    assert_near(added(gram, [3, 1, 9, 10], np.ones(4)), K[[3, 1, 9, 10]].sum(axis=0), dtype, scale=4)
    assert_near(gram.block([3], [4, 5]), K[3:4, 4:6], dtype)
    assert_near(gram.exact(np.array([1]), np.array([2, 3]), np.ones(2)), K[1, 2:4].sum())
    index = INDEXES["scattered"]
    assert_near(gram.view(index).rows([0, 1]), K[np.ix_(index[:2], index)], dtype)


def test_a_callable_that_returns_nan_is_refused():
    with pytest.raises(ValueError, match="NaN"):
        Gram(X, lambda a, b: np.full((len(a), len(b)), np.nan)).rows([0])


def test_lists_are_taken_with_a_kernel_name_and_with_a_kernel():
    for kernel in ("rbf", Kernel("rbf", gamma=GAMMA)):
        gram = Gram(X.tolist(), kernel, gamma=GAMMA, dtype="float64")
        assert_near(gram.rows([1]), K[[1]])


# -- threads -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [0, 50, 700])
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.usefixtures("eager")
def test_one_and_two_threads_give_the_same_values(rows, storage, dtype):
    rng = np.random.default_rng(0)
    data = rng.normal(size=(700, 4))
    if storage == "csr":
        data = sp.random(700, 60, 0.1, format="csr", random_state=0)
    idx, coef = rng.permutation(700)[:90], rng.normal(size=90)
    results = []
    for n_jobs in (1, 2):
        gram = make(rows, dtype, data=data, n_jobs=n_jobs)
        with gram.threads:
            results.append(
                [
                    gram.rows(idx),
                    gram.block(idx, idx[::-1]),
                    added(gram, idx, coef),
                    added(gram, idx, coef, np.arange(100, 400)),
                    cost(gram),
                ]
            )
    for one, two in zip(*results, strict=True):
        assert_near(two, one, dtype, scale=90)


@pytest.mark.parametrize("index", ["range", "two ranges", "scattered"])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.usefixtures("eager")
def test_views_of_one_base_may_add_from_several_threads(n_jobs, index):
    rng = np.random.default_rng(0)
    data = rng.normal(size=(300, 4))
    dense = rbf_kernel(data, gamma=GAMMA)
    parts = {
        "range": [np.arange(s, s + 150) for s in (0, 50, 100, 150)],
        "two ranges": [np.r_[s : s + 50, s + 100 : s + 150] for s in (0, 50, 100, 150)],
        "scattered": [rng.permutation(300)[:200] for _ in range(4)],
    }[index]
    for _ in range(5):
        gram = make(300, data=data, segments=[0, 50, 100, 150, 200, 250, 300], n_jobs=n_jobs)
        wrong = []

        def work(k, gram=gram, wrong=wrong):
            own = np.random.default_rng(k)
            view = gram.view(parts[k])
            part = dense[np.ix_(parts[k], parts[k])]
            for _ in range(20):
                idx = own.integers(0, view.n, 10)
                coef = own.normal(size=10)
                if not np.allclose(added(view, idx, coef), coef @ part[idx], rtol=1e-10, atol=1e-10):
                    wrong.append(k)

        with gram.threads:
            team = [threading.Thread(target=work, args=(k,)) for k in range(4)]
            for thread in team:
                thread.start()
            for thread in team:
                thread.join()
        assert not wrong


class _SlowNumpy:
    """NumPy, with allocations slow enough for another thread to come in between."""

    def __init__(self):
        self.delays = [0.05, 0.4]

    def __getattr__(self, name):
        return getattr(np, name)

    def empty(self, *args, **options):
        time.sleep(self.delays.pop(0) if self.delays else 0.0)
        out = np.empty(*args, **options)
        out.fill(np.nan)
        return out


def test_two_threads_that_open_the_table_at_once_fill_the_same_table(monkeypatch):
    gram = make()
    monkeypatch.setattr(cache, "np", _SlowNumpy())
    team = [threading.Thread(target=gram.ensure, args=(rows,)) for rows in ([0, 1], [2, 3])]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    assert gram.held(np.arange(4)).all()
    assert_near(gram.rows(np.arange(4)), K[:4])


def test_a_row_that_others_know_is_completed_by_symmetry():
    X = np.random.default_rng(0).normal(size=(40, 3))
    whole = Gram(X, gamma=0.5, dtype="float64").rows(np.arange(40))
    for budget in (8 * 40 * 48, 8 * 40 * 10):
        gram = Gram(X, gamma=0.5, dtype="float64", cache_bytes=budget)
        for k in (3, 17, 29, 3, 5):
            gram.complete(k)
            np.testing.assert_allclose(gram.table[gram.slot[k], :40], whole[k], rtol=1e-14)
        assert gram.n_evals == 40 + 39 + 38 + 37
        assert gram.n_calls == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_view_computes_and_holds_the_segments_of_its_columns_only(dtype):
    X = np.random.default_rng(5).normal(size=(90, 3))
    gram = Gram(X, gamma=0.5, segments=[0, 30, 60, 90], dtype=dtype, cache_bytes=1 << 20)
    some = np.concatenate([np.arange(0, 30), np.arange(60, 90)])
    view = gram.view(some)
    view.ensure([2, 40])
    rows = some[[2, 40]]
    assert view.held(np.array([2, 40, 3])).tolist() == [True, True, False]
    assert gram.valid[rows].tolist() == [[True, False, True]] * 2
    assert not gram.held(rows).any()
    assert gram.n_evals == 0 and view.n_evals == 2 * 60
    K = rbf_kernel(X, gamma=0.5)
    np.testing.assert_allclose(
        view.table[view.slot[[2, 40]]][:, view.columns], K[np.ix_(rows, some)], atol=1e-6
    )
