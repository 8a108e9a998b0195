"""The block of the working set: both kinds against each other and against the exact matrix."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from maxmargin import _costs, dual
from maxmargin.gram.gram import Gram
from maxmargin.gram.view import View
from maxmargin.solvers import Batch, Stop, costs
from maxmargin.solvers.batch.block import (
    CachedBlock,
    FullBlock,
    IndexBlock,
    PanelBlock,
    block_for,
    compute_row,
)

N, GAMMA = 400, 0.4
RTOL = {"float32": 3e-5, "float64": 1e-12}
rng = np.random.default_rng(0)
DENSE = rng.normal(size=(N, 5))
SPARSE = rng.normal(size=(N, 50)) * (rng.random((N, 50)) < 0.08)
Y = np.where(rng.random(N) > 0.5, 1.0, -1.0)

BOTH = pytest.mark.parametrize("dtype", ["float32", "float64"])
STORAGE = pytest.mark.parametrize("storage", ["dense", "csr"])


def gram_of(storage="dense", dtype="float64", kind="gram"):
    """A Gram matrix or a view of one, and the samples behind its rows."""
    X = sp.csr_array(SPARSE) if storage == "csr" else DENSE
    some = np.random.default_rng(7).permutation(N)[: N // 2]
    if kind == "gram":
        return Gram(X, gamma=GAMMA, dtype=dtype), np.arange(N)
    if kind == "index":
        return Gram(X, gamma=GAMMA, dtype=dtype, index=some), some
    budget = 200 << 20 if kind == "view" else 0
    view = Gram(X, gamma=GAMMA, dtype=dtype, cache_bytes=budget).view(some)
    assert isinstance(view, View) == (kind == "view")
    return view, some


def problem_of(samples, ridge=False, rows=None):
    y = Y[samples]
    if rows is not None:
        return dual.c_svc(np.tile([1.0, -1.0], len(rows))[: len(rows)], bounds=np.ones(len(rows)), rows=rows)
    return dual.squared_c_svc(y, ridge=0.05 + np.arange(len(y)) / len(y)) if ridge else dual.c_svc(y)


def matrix(problem, samples, storage):
    X = SPARSE if storage == "csr" else DENSE
    K = rbf_kernel(X, gamma=GAMMA)[np.ix_(samples, samples)]
    return K[np.ix_(problem.row, problem.row)] + np.diag(problem.ridge)


def read(block, size):
    """All rows, as the pair loop has them."""
    rows = block.rows
    for i in range(size):
        if not rows.valid[i]:
            compute_row(rows, i)
    return block.Q[:size, :size].copy()


def entered(blocks, m, size, rounds, seed=0):
    """Members after each of some rounds of random replacements."""
    own = np.random.default_rng(seed)
    ids = np.full(size, -1, np.intp)
    for _ in range(rounds):
        count = own.integers(1, size + 1)
        places = np.sort(own.permutation(size)[:count])
        outside = np.setdiff1d(np.arange(m), np.delete(ids, places))
        ids[places] = own.permutation(outside)[:count]
        for block in blocks:
            block.enter(places, ids)
        yield ids


@BOTH
@STORAGE
@pytest.mark.parametrize("ridge", [False, True])
@pytest.mark.parametrize("kind", ["gram", "index", "view", "own cache"])
def test_both_blocks_equal_the_matrix_after_any_sequence_of_members(kind, ridge, storage, dtype):
    gram, samples = gram_of(storage, dtype, kind)
    problem = problem_of(samples, ridge)
    Q = matrix(problem, samples, storage)
    for size in (1, 17, 150):
        panel, full = PanelBlock(problem, gram, size), FullBlock(problem, gram, size)
        for ids in entered([panel, full], problem.m, size, 6, seed=size):
            there = np.flatnonzero(ids >= 0)
            at = np.ix_(there, there)
            expected = Q[np.ix_(ids[there], ids[there])]
            for block in (panel, full):
                np.testing.assert_allclose(read(block, size)[at], expected, atol=RTOL[dtype])
                np.testing.assert_allclose(block.diag[there], np.diag(expected), rtol=1e-6)
            np.testing.assert_array_equal(np.diag(panel.Q)[there], panel.diag[there])


@BOTH
@pytest.mark.parametrize("ridge", [False, True])
@pytest.mark.parametrize("kind", ["in place", "index", "view"])
def test_a_block_of_given_values_equals_the_matrix_after_any_sequence_of_members(kind, ridge, dtype):
    K = np.random.default_rng(3).normal(size=(90, 90))
    K = (K + K.T).astype(dtype)
    samples = np.arange(90) if kind == "in place" else np.random.default_rng(4).permutation(90)[:70]
    whole = Gram(K, "precomputed", dtype=dtype, index=samples if kind == "index" else None)
    gram = whole.view(samples) if kind == "view" else whole
    problem = problem_of(samples, ridge)
    Q = K.astype(np.float64)[np.ix_(samples, samples)] + np.diag(problem.ridge)
    for size in (1, 17, 60):
        block = CachedBlock(problem, gram, size)
        for ids in entered([block], problem.m, size, 4, seed=size):
            there = np.flatnonzero(ids >= 0)
            expected = Q[np.ix_(ids[there], ids[there])]
            np.testing.assert_allclose(read(block, size)[np.ix_(there, there)], expected, rtol=1e-6)


@BOTH
@pytest.mark.parametrize("frequent", [0.0, 0.07, 2.0])  # all columns in panels, some, none
@pytest.mark.parametrize("kind", ["gram", "index", "view", "own cache"])
def test_the_block_of_wide_sparse_samples_equals_the_matrix(kind, frequent, dtype, monkeypatch):
    monkeypatch.setattr(_costs, "PANEL_COLUMNS", 0)
    monkeypatch.setattr(_costs, "FREQUENT", frequent)
    gram, samples = gram_of("csr", dtype, kind)
    problem = problem_of(samples)
    Q = matrix(problem, samples, "csr")
    for size in (1, 17, 150):
        indexed = IndexBlock(problem, gram, size)
        blocks = [indexed, CachedBlock(problem, gram, size)] if gram.capacity >= gram.n else [indexed]
        for ids in entered(blocks, problem.m, size, 6, seed=size):
            there = np.flatnonzero(ids >= 0)
            for block in blocks:
                values = read(block, size)[np.ix_(there, there)]
                np.testing.assert_allclose(values, Q[np.ix_(ids[there], ids[there])], atol=RTOL[dtype])
                np.testing.assert_array_equal(np.diag(block.Q)[there], block.diag[there])


def test_blocks_of_wide_sparse_samples_come_from_cached_rows_where_all_fit(monkeypatch):
    monkeypatch.setattr(_costs, "PANEL_COLUMNS", 0)
    for kind, expected in (("gram", CachedBlock), ("view", CachedBlock), ("own cache", IndexBlock)):
        gram, samples = gram_of("csr", "float32", kind)
        assert not gram.panelled
        assert (gram.capacity >= gram.n) == (expected is CachedBlock)
        assert type(block_for(problem_of(samples), gram, 10)) is expected


def test_a_block_finds_rows_that_are_packed_in_the_order_of_their_use(monkeypatch):
    monkeypatch.setattr(_costs, "PANEL_COLUMNS", 0)
    monkeypatch.setattr(_costs, "UNPACKED_BYTES", 0)
    gram, samples = gram_of("csr", "float64", "gram")
    problem = problem_of(samples)
    Q = matrix(problem, samples, "csr")
    block = CachedBlock(problem, gram, 30)
    for ids in entered([block], problem.m, 30, 6, seed=0):
        there = np.flatnonzero(ids >= 0)
        values = read(block, 30)[np.ix_(there, there)]
        np.testing.assert_allclose(values, Q[np.ix_(ids[there], ids[there])], atol=1e-12)
    assert (gram.slot[gram.slot >= 0] != np.flatnonzero(gram.slot >= 0)).any()


@STORAGE
def test_rows_read_before_members_were_replaced_are_complete_again_after(storage):
    gram, samples = gram_of(storage)
    problem = problem_of(samples)
    Q = matrix(problem, samples, storage)
    block, ids = PanelBlock(problem, gram, 140), np.arange(140)
    block.enter(np.arange(140), ids)
    read(block, 140)
    ids = ids.copy()
    ids[[0, 70, 139]] = [200, 399, 300]
    block.enter(np.array([0, 70, 139]), ids)
    assert not block.rows.valid.any()
    np.testing.assert_allclose(read(block, 140), Q[np.ix_(ids, ids)], atol=1e-12)


def test_only_rows_that_were_asked_for_are_computed():
    gram, samples = gram_of()
    problem = problem_of(samples)
    block = PanelBlock(problem, gram, 50)
    block.enter_all(np.arange(50))
    compute_row(block.rows, 7)
    assert np.flatnonzero(block.rows.valid).tolist() == [7]
    assert np.flatnonzero(block.Q[:, :50].any(axis=1)).tolist() == [7]


@BOTH
@pytest.mark.parametrize("size", [1, 63, 64, 65, 128, 129])
def test_a_row_writes_nothing_into_its_neighbours(size, dtype):
    gram, samples = gram_of(dtype=dtype)
    block = PanelBlock(problem_of(samples), gram, size)
    block.enter_all(np.arange(size))
    for i in {0, size // 2, size - 1}:
        block.Q[:] = -7.0
        compute_row(block.rows, i)
        assert (np.delete(block.Q, i, axis=0) == -7.0).all()
        assert (block.Q[i, :size] >= 0).all()


def test_places_that_are_still_empty_have_values_of_zero():
    gram, samples = gram_of()
    block = PanelBlock(problem_of(samples), gram, 100)
    ids = np.full(100, -1)
    ids[[3, 90]] = [10, 20]
    block.enter(np.array([3, 90]), ids)
    compute_row(block.rows, 90)
    row = block.Q[90, :100].copy()
    assert row[90] == 1.0 and row[3] == pytest.approx(rbf_kernel(DENSE[[20]], DENSE[[10]], gamma=GAMMA)[0, 0])
    assert np.delete(row, [3, 90]).max() < 1e-300


@BOTH
def test_a_member_may_come_back_to_the_place_it_left_and_to_another(dtype):
    gram, samples = gram_of("csr", dtype)
    problem = problem_of(samples)
    Q = matrix(problem, samples, "csr")
    block = PanelBlock(problem, gram, 3)
    for members in ([1, 2, 3], [1, 2, 3], [3, 1, 2], [8, 9, 10], [1, 2, 3]):
        ids = np.array(members)
        block.enter(np.arange(3), ids)
        np.testing.assert_allclose(read(block, 3), Q[np.ix_(ids, ids)], atol=RTOL[dtype])


@BOTH
def test_a_full_block_is_symmetric_to_the_last_bit_though_rows_are_rounded(dtype):
    # Members that enter together have each value computed twice, and threads write both of them.
    K = np.random.default_rng(6).normal(size=(90, 90)).astype(dtype)
    gram = Gram(np.tril(K) + np.tril(K, -1).T + K * K.dtype.type(1e-6), "precomputed", dtype=dtype)
    problem = problem_of(np.arange(90), ridge=True)
    full = FullBlock(problem, gram, 40)
    for ids in entered([full], problem.m, 40, 6, seed=7):
        there = np.flatnonzero(ids >= 0)
        values = full.Q[np.ix_(there, there)]
        np.testing.assert_array_equal(values, values.T)


def test_variables_that_share_a_kernel_row_are_equal_points():
    gram, samples = gram_of()
    rows = np.array([5, 5, 9, 9, 300, 5])
    problem = problem_of(samples, rows=rows)
    panel, full = PanelBlock(problem, gram, 6), FullBlock(problem, gram, 6)
    for block in (panel, full):
        block.enter(np.arange(6), np.arange(6))
        np.testing.assert_allclose(read(block, 6), matrix(problem, samples, "dense"), atol=1e-12)


@STORAGE
@pytest.mark.parametrize("kind", ["gram", "view"])
def test_entering_all_at_once_equals_entering_by_and_by(kind, storage):
    gram, samples = gram_of(storage, kind=kind)
    problem = problem_of(samples, ridge=True)
    ids = np.arange(problem.m)
    Q = matrix(problem, samples, storage)
    for make in (PanelBlock, FullBlock):
        whole, bit_by_bit = make(problem, gram, problem.m), make(problem, gram, problem.m)
        whole.enter_all(ids)
        there = np.full(problem.m, -1)
        for places in np.array_split(ids, 3):
            there[places] = ids[places]
            bit_by_bit.enter(places, there)
        for block in (whole, bit_by_bit):
            np.testing.assert_allclose(read(block, problem.m), Q, atol=1e-12)


def test_the_panels_are_used_only_where_the_matrix_is_the_plain_kernel():
    gram, samples = gram_of()
    assert type(block_for(problem_of(samples), gram, 10)) is PanelBlock
    assert type(block_for(problem_of(samples, ridge=True), gram, 10)) is PanelBlock
    assert type(block_for(dual.nearest_points(Y), gram, 10)) is FullBlock
    assert type(block_for(dual.minimum_norm(Y), gram, 10)) is FullBlock
    assert type(block_for(problem_of(samples), Gram(DENSE, "linear"), 10)) is FullBlock
    given = Gram(np.eye(N), "precomputed")
    assert type(block_for(problem_of(samples), given, 10)) is CachedBlock
    assert type(block_for(dual.minimum_norm(Y), given, 10)) is FullBlock


def test_empty_places_of_a_block_never_read_values_that_were_not_computed(monkeypatch):
    monkeypatch.setattr(_costs, "PANEL_COLUMNS", 0)
    gram = Gram(sp.csr_array(SPARSE), gamma=GAMMA, segments=[0, 100, 250, N], dtype="float64")
    gram.table[:] = np.nan  # memory that was used before may hold anything
    samples = np.arange(100, N)
    block = CachedBlock(problem_of(samples), gram.view(samples), 20)
    ids = np.full(20, -1)
    ids[[3, 7]] = [0, 200]
    block.enter(np.array([3, 7]), ids)
    compute_row(block.rows, 3)
    assert np.isfinite(block.Q[3, :20]).all()


def test_a_cache_that_just_holds_all_rows_is_not_lent_while_blocks_read_it(monkeypatch):
    monkeypatch.setattr(_costs, "PANEL_COLUMNS", 0)
    monkeypatch.setattr(costs, "SHRINK_FROM", 10)
    monkeypatch.setattr(costs, "SHRINK_WORTH", 0.0)
    monkeypatch.setattr(costs, "SHRINK_SHARE", 0.99)
    gram = Gram(sp.csr_array(SPARSE), gamma=GAMMA, cache_bytes=N * N * 8, dtype="float64")
    assert gram.holds_all
    y = np.where(np.random.default_rng(0).random(N) < 0.5, 1, -1)
    solution = Batch(working_set=40).solve(dual.c_svc(y, C=1.0), gram, stop=Stop(1e-6))
    assert solution.status == "solved" and not gram.lent
