"""Tasks for one part: conversion, and checks that name what is wrong."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.dask.parts import as_rows, check, check_parts, join, joined

X = np.random.default_rng(0).normal(size=(7, 3))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(("value", "kind"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_the_first_entry_that_is_not_finite_is_found(form, value, kind):
    data = X.copy()
    data[4, 2] = data[5, 0] = value
    found = check(form(data), 4)
    assert found.bad == (kind, 4, 2) and found.summary is None


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_finite_numbers_whose_sum_overflows_are_accepted(form):
    found = check(form(np.full((4, 2), 1e308)), 4)
    assert found.bad is None and found.shape == (4, 2)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_parts_without_rows_are_accepted(form):
    found = check(form(X[:0]), 4)
    assert found.bad is None and found.shape == (0, 3)


def test_the_chunk_row_and_column_of_a_bad_entry_are_named():
    bad = X.copy()
    bad[1, 2] = np.nan
    checked = [check(part, 4) for part in (X, X[:0], bad)]
    with pytest.raises(
        ValueError, match=r"chunk 2 \(rows 7 to 13\) of X contains NaN, first in row 8, column 2: "
    ):
        check_parts(checked)
    with pytest.raises(ValueError, match=r"column 2 \('height'\): impute"):
        check_parts(checked, np.array(["a", "b", "height"]))


def test_chunks_of_other_widths_or_kinds_are_named():
    with pytest.raises(ValueError, match=r"chunk 1 .* of X has 2 features, and chunk 0 has 3"):
        check_parts([check(X, 4), check(X[:, :2], 4)])
    with pytest.raises(ValueError, match=r"chunk 1 .* of X is sparse, and chunk 0 is dense"):
        check_parts([check(X, 4), check(sp.csr_array(X), 4)])


def test_chunks_without_rows_may_have_any_width_and_kind():
    assert check_parts([check(X[:0, :1], 4), check(X, 4), check(sp.csr_array(X[:0]), 4)]) == [0, 7, 0]


def test_data_without_rows_or_columns_are_refused():
    with pytest.raises(ValueError, match="X has no rows"):
        check_parts([check(X[:0], 4)])
    with pytest.raises(ValueError, match="X has no columns"):
        check_parts([check(X[:, :0], 4)])


def test_column_blocks_of_both_kinds_become_one_sparse_matrix():
    found = as_rows([X[:, :1], sp.csr_array(X[:, 1:])], np.dtype(np.float64))
    assert found.format == "csr"
    np.testing.assert_array_equal(found.toarray(), X)


def test_duplicates_of_sparse_entries_are_summed():
    twice = sp.csr_array((np.ones(3), [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    np.testing.assert_array_equal(as_rows([twice], np.dtype(np.float64)).data, [2.0, 1.0])


def test_blocks_that_are_no_matrices_are_refused():
    with pytest.raises(ValueError, match="chunk 3 of X has 1 dimensions; 2 are expected"):
        as_rows([X[0]], np.dtype(np.float64), 3)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_parts_are_joined_in_order(form):
    parts = [form(X[:2]), form(X[2:3]), form(X[3:])]
    for found in (joined(parts), join(*parts)):
        np.testing.assert_array_equal(found.toarray() if sp.issparse(found) else found, X)
    assert joined(parts[:1]) is parts[0]
