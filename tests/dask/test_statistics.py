"""Statistics of chunks, pooled: those of all rows at once."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.dask.statistics import pool, summarize
from maxmargin.kernels.gamma import resolve_gamma

X = np.where(
    np.random.default_rng(0).random((50, 4)) < 0.6, 0.0, np.random.default_rng(1).normal(3.0, size=(50, 4))
)
FORMS = pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])


@FORMS
@given(cuts=st.lists(st.integers(0, 50), max_size=6))
def test_statistics_of_parts_pooled_are_those_of_all_rows(form, cuts):
    parts = np.split(X, sorted(cuts))
    found = pool([summarize(form(part)) for part in parts])
    assert found.rows == 50 and found.nonzero == np.count_nonzero(X)
    np.testing.assert_allclose(found.sums, X.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose([found.mean, found.variance], [X.mean(), X.var()], rtol=1e-12)
    assert (found.low, found.high) == (X.min(), X.max())


@FORMS
@pytest.mark.parametrize("gamma", ["scale", "auto", 0.3])
def test_gamma_is_that_of_the_ordinary_estimators(form, gamma):
    found = pool([summarize(form(X[:20])), summarize(form(X[20:]))]).gamma(gamma)
    assert found == pytest.approx(resolve_gamma(gamma, form(X)), rel=1e-12)


@FORMS
def test_rows_that_do_not_count_are_left_out(form):
    kept = np.arange(50) % 3 > 0
    found, expected = summarize(form(X), kept), summarize(form(X[kept]))
    assert found.rows == expected.rows == 33
    assert found.variance == pytest.approx(X[kept].var(), rel=1e-12)


@FORMS
def test_parts_of_which_no_row_counts_change_nothing(form):
    nothing = summarize(form(X), np.zeros(50, dtype=bool))
    found = pool([nothing, summarize(form(X)), nothing])
    assert found.rows == 50 and found.variance == pytest.approx(X.var(), rel=1e-12)


def test_equal_entries_have_exactly_no_variance():
    assert pool([summarize(np.full((3, 2), 0.1)), summarize(np.full((5, 2), 0.1))]).variance == 0.0


def test_entries_far_from_zero_keep_their_variance():
    far = 1e8 + np.random.default_rng(2).random((1000, 2))
    found = pool([summarize(part) for part in np.split(far, 8 * [0] + [100, 350])])
    assert found.variance == pytest.approx(far.var(), rel=1e-6)


def test_features_of_very_different_scales_are_noticed():
    rng = np.random.default_rng(3)
    plain = rng.normal(size=(300, 2))
    assert not pool([summarize(plain[:150]), summarize(plain[150:])]).unscaled
    scaled = plain * [1.0, 1e6]
    assert pool([summarize(scaled[:150]), summarize(scaled[150:])]).unscaled


def test_the_sample_has_about_as_many_rows_as_asked_for():
    sample = summarize(np.random.default_rng(4).normal(size=(1000, 2)), n_sample=10).sample
    assert 5 <= len(sample) <= 10 and sample.dtype == np.float64
    assert summarize(sp.csr_array(X)).sample.shape == (0, 4)


@FORMS
@pytest.mark.parametrize("size", [1e200, 1e308])
def test_only_an_estimate_of_gamma_needs_a_variance_within_the_range_of_float64(form, size):
    with np.errstate(over="ignore"):
        found = pool([summarize(form(size * np.sign(X[:20]))), summarize(form(-size * np.sign(X[20:])))])
    assert found.gamma(0.3) == 0.3 and found.gamma("auto") == 0.25
    with pytest.raises(ValueError, match="variance of X, which is too large for float64"):
        found.gamma("scale")
