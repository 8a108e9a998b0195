"""Predictions of fitted machines: alone and in batches, in every storage, before and after pickling."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC as Reference

from maxmargin import SVC, NuSVC, OneClassSVM, _costs

GAMMA = 0.3
TOL = {"float32": 3e-4, "float64": 1e-9}
BOTH = pytest.mark.parametrize("dtype", ["float32", "float64"])
STORAGE = pytest.mark.parametrize("storage", ["narrow", "wide", "csr"])


def blobs(k, n, storage="narrow", dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    d = 4 if storage == "narrow" else 80
    y = np.arange(n) % k
    centres = np.random.default_rng(99).normal(size=(k, d))
    X = (centres[y] + 0.7 * rng.normal(size=(n, d))) * (0.2 if storage == "wide" else 1.0)
    if storage == "csr":
        return sp.csr_matrix((X * (rng.random((n, d)) < 0.1)).astype(dtype)), y
    return X.astype(dtype), y


def fitted(k=5, n=150, storage="narrow", dtype="float64", **options):
    X, y = blobs(k, n, storage, dtype)
    return SVC(C=5.0, gamma=GAMMA, decision_function_shape="ovo", **options).fit(X, y), X


def dense(x):
    return (x.toarray() if sp.issparse(x) else np.asarray(x)).astype(np.float64)


def expected(model, X):
    """Decision values from the public attributes."""
    K, coef = rbf_kernel(dense(X), dense(model.support_vectors_), gamma=GAMMA), dense(model.dual_coef_)
    if len(model.classes_) == 2:
        return (K @ coef[0] + model.intercept_)[:, None]
    at = np.concatenate([[0], np.cumsum(model.n_support_)])
    part = [K[:, a:b] @ coef[:, a:b].T for a, b in zip(at[:-1], at[1:], strict=True)]
    pairs = combinations(range(len(model.classes_)), 2)
    return np.stack([part[a][:, b - 1] + part[b][:, a] for a, b in pairs], axis=1) + model.intercept_


def values(model, X):
    return model.decision_function(X).reshape(X.shape[0], -1)


@BOTH
@STORAGE
@pytest.mark.parametrize("k", [2, 3, 5])
def test_decision_values_are_those_of_the_public_attributes(k, storage, dtype):
    model, _ = fitted(k, storage=storage, dtype=dtype)
    new, _ = blobs(k, 300, storage, dtype, seed=1)
    np.testing.assert_allclose(values(model, new), expected(model, new), atol=TOL[dtype])


@BOTH
@STORAGE
@pytest.mark.parametrize("k", [2, 5])
def test_one_row_at_a_time_equals_the_batch(k, storage, dtype):
    model, _ = fitted(k, storage=storage, dtype=dtype)
    new, _ = blobs(k, 40, storage, dtype, seed=1)
    batch, labels = values(model, new), model.predict(new)
    one = np.concatenate([values(model, new[i : i + 1]) for i in range(40)])
    np.testing.assert_allclose(one, batch, atol=TOL[dtype])
    sure = np.abs(batch).min(axis=1) > TOL[dtype]
    same = np.concatenate([model.predict(new[i : i + 1]) for i in range(40)]) == labels
    assert same[sure].all()


@pytest.mark.parametrize("n", [255, 256, 257, 513])
@pytest.mark.parametrize("k", [2, 4])
def test_every_size_of_batch_gives_the_same_values(k, n):
    model, _ = fitted(k)
    new, _ = blobs(k, 600, seed=1)
    np.testing.assert_allclose(values(model, new[:n]), values(model, new)[:n], atol=1e-10)


@STORAGE
@pytest.mark.parametrize("rows", [1, 3])
def test_tiles_smaller_than_the_model_change_nothing(rows, storage, monkeypatch):
    model, X = fitted(storage=storage)
    before = values(model, X)
    monkeypatch.setattr(_costs, "EXPANSION_ROWS", rows)
    monkeypatch.setattr(_costs, "EXPANSION_COLUMNS", 7)
    np.testing.assert_allclose(values(model, X), before, atol=1e-10)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_change_nothing(n_jobs, monkeypatch):
    monkeypatch.setattr(_costs, "WORTH_A_THREAD", 0)
    model, _ = fitted(n_jobs=n_jobs)
    new, _ = blobs(5, 1100, seed=1)
    np.testing.assert_allclose(values(model, new), expected(model, new), atol=1e-9)


@BOTH
@STORAGE
def test_many_classes_with_hardly_any_support_vectors_predict_as_scikit_learn_does(storage, dtype):
    X, y = blobs(26, 78, storage, dtype)
    new, _ = blobs(26, 200, storage, dtype, seed=1)
    mine, theirs = (
        estimator(C=5.0, gamma=GAMMA, tol=1e-6, decision_function_shape="ovo").fit(X, y)
        for estimator in (SVC, Reference)
    )
    assert mine.n_support_.max() <= 3 and len(mine.classes_) == 26
    got, wanted = values(mine, new), values(theirs, new)
    np.testing.assert_allclose(got, wanted, atol=2e-5)
    sure = np.abs(wanted).min(axis=1) > 2e-5
    assert sure.any()
    np.testing.assert_array_equal(mine.predict(new)[sure], theirs.predict(new)[sure])


def test_a_class_of_one_sample_is_predicted():
    X, y = blobs(3, 90)
    X, y = np.vstack([X, [[50.0] * 4]]), np.append(y, 3)
    model = SVC(C=10.0, gamma=GAMMA, decision_function_shape="ovo").fit(X, y)
    assert model.n_support_[3] == 1 and model.predict(X[-1:]) == [3]
    np.testing.assert_allclose(values(model, X), expected(model, X), atol=1e-9)


@BOTH
@STORAGE
def test_ties_and_votes_follow_the_values(storage, dtype):
    model, _ = fitted(6, storage=storage, dtype=dtype)
    new, _ = blobs(6, 200, storage, dtype, seed=1)
    votes = np.zeros((200, 6), int)
    for column, (a, b) in zip(values(model, new).T, combinations(range(6), 2), strict=True):
        votes[column > 0, a] += 1
        votes[column <= 0, b] += 1
    np.testing.assert_array_equal(model.predict(new), votes.argmax(axis=1))


@BOTH
@STORAGE
@pytest.mark.parametrize("used", [False, True], ids=["fresh", "used before"])
@pytest.mark.parametrize("again", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy])
def test_a_copy_predicts_the_same_bits(again, used, storage, dtype):
    model, X = fitted(storage=storage, dtype=dtype)
    if used:
        model.predict(X)
    twin = again(model)
    np.testing.assert_array_equal(twin.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(twin.predict(X), model.predict(X))


def test_a_pickle_does_not_carry_the_prepared_vectors():
    model, X = fitted()
    before = len(pickle.dumps(model))
    model.predict(X)
    assert len(pickle.dumps(model)) == before


@STORAGE
def test_new_support_vectors_are_noticed(storage):
    model, X = fitted(storage=storage)
    old = model.decision_function(X)
    model.support_vectors_ = model.support_vectors_ * 0.5
    changed = model.decision_function(X)
    np.testing.assert_allclose(changed, expected(model, X), atol=1e-9)
    assert np.abs(changed - old).max() > 1e-3


def test_new_coefficients_of_the_kernel_are_noticed():
    model, X = fitted()
    values(model, X)
    other = SVC(C=5.0, gamma=GAMMA, decision_function_shape="ovo").fit(X[:100], np.arange(100) % 5)
    model.fit(X[:100], np.arange(100) % 5)
    np.testing.assert_array_equal(model.decision_function(X), other.decision_function(X))


def test_both_precisions_of_input_may_alternate():
    model, X = fitted()
    single, double = X.astype(np.float32), values(model, X)
    for _ in range(2):
        np.testing.assert_allclose(values(model, single), double, atol=TOL["float32"])
        np.testing.assert_array_equal(values(model, X), double)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.coo_array, sp.lil_matrix])
def test_every_sparse_format_and_dense_rows_give_the_values_of_csr(kind):
    model, X = fitted(storage="csr")
    wanted = values(model, X)
    np.testing.assert_allclose(values(model, kind(X)), wanted, atol=1e-12)
    np.testing.assert_allclose(values(model, X.toarray()), wanted, atol=1e-12)


def test_duplicate_entries_of_a_sparse_matrix_are_summed():
    model, X = fitted(storage="csr")
    halves = sp.csr_matrix((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)
    assert halves.nnz == 2 * X.nnz
    np.testing.assert_allclose(values(model, halves), values(model, X), atol=1e-12)


def test_rows_without_an_entry_are_the_origin():
    model, X = fitted(storage="csr")
    empty = sp.csr_matrix((3, X.shape[1]))
    np.testing.assert_allclose(values(model, empty), expected(model, empty), atol=1e-12)


@pytest.mark.parametrize("layout", ["fortran", "strided", "read-only", "list"])
def test_the_layout_of_dense_rows_does_not_matter(layout):
    model, X = fitted()
    wanted = values(model, X)
    other = {
        "fortran": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=0)[::2],
        "read-only": X.copy(),
        "list": X.tolist(),
    }[layout]
    if layout == "read-only":
        other.flags.writeable = False
    np.testing.assert_allclose(model.decision_function(other), wanted, atol=1e-12)


@BOTH
@STORAGE
def test_other_estimators_predict_one_row_at_a_time_as_in_a_batch(storage, dtype):
    X, y = blobs(3, 90, storage, dtype)
    nu = NuSVC(nu=0.2, gamma=GAMMA, decision_function_shape="ovo").fit(X, y)
    one_class = OneClassSVM(nu=0.2, gamma=GAMMA).fit(X)
    for model in (nu, one_class):
        one = np.concatenate([values(model, X[i : i + 1]) for i in range(30)])
        np.testing.assert_allclose(one, values(model, X)[:30], atol=TOL[dtype])
    K = rbf_kernel(dense(X), dense(one_class.support_vectors_), gamma=GAMMA)
    scores = K @ dense(one_class.dual_coef_)[0]
    np.testing.assert_allclose(one_class.score_samples(X), scores, atol=20 * TOL[dtype])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize(("k", "offset"), [(2, 1e5), (2, 1e7), (3, 1e6)])
def test_linear_values_of_data_far_from_the_origin_are_those_of_the_model(k, offset, storage):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 2))
    y = np.digitize(X @ rng.standard_normal(2) + 0.5 * rng.standard_normal(100), [0.0, 1.0][: k - 1])
    X = X + offset
    model = SVC(kernel="linear", C=10.0, tol=0.1, decision_function_shape="ovo").fit(storage(X), y)
    exact = [[Fraction(float(v)) for v in row] for row in X]
    at = np.concatenate([[0], np.cumsum(model.n_support_)])
    coef = dense(model.dual_coef_)
    found = model.decision_function(storage(X)).reshape(100, -1)
    for p, (a, b) in enumerate(combinations(range(k), 2)):
        first, second = (range(at[c], at[c + 1]) for c in (a, b))
        terms = [(coef[b - 1, v], v) for v in first] + [(coef[a, v], v) for v in second]
        w = [sum(Fraction(float(c)) * exact[model.support_[v]][j] for c, v in terms) for j in range(2)]
        shift = Fraction(float(model.intercept_[p]))
        true = [float(sum(x * z for x, z in zip(w, row, strict=True)) + shift) for row in exact]
        np.testing.assert_allclose(found[:, p], true, atol=1e-14 * offset)


def test_replaced_coefficients_count_for_accurate_weights():
    X = np.random.default_rng(0).normal(size=(50, 3)) + 1e7
    model = SVC(kernel="linear", tol=0.1).fit(X, X[:, 0] > 1e7)
    before = model.coef_.copy()
    model.dual_coef_ = 2.0 * model.dual_coef_
    np.testing.assert_allclose(model.coef_, 2.0 * before, rtol=1e-12)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.coef_, model.coef_)
