"""Kernel matrices as input: any order and precision, read in place."""

import tracemalloc

import numpy as np
import pytest
from sklearn import svm
from sklearn.datasets import make_classification
from sklearn.metrics.pairwise import rbf_kernel

from maxmargin import SVC, SVR, NuSVC, OneClassSVM
from maxmargin.gram import cache
from maxmargin.solvers.batch import shared_rows


def data(n=300, classes=2, seed=0):
    X, y = make_classification(n, 8, n_informative=6, n_classes=classes, random_state=seed)
    return rbf_kernel(X, gamma=0.1), y


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_order_and_precision_gives_the_solution_of_scikit_learn(dtype, order, classes):
    K, y = data(classes=classes)
    K = K.astype(dtype)
    theirs = svm.SVC(kernel="precomputed", tol=1e-8, decision_function_shape="ovo").fit(K, y)
    ours = SVC(kernel="precomputed", tol=1e-8, decision_function_shape="ovo")
    given = np.asarray(K, order=order)
    values = ours.fit(given, y).decision_function(given)
    np.testing.assert_allclose(values, theirs.decision_function(K), atol=1e-5 if dtype == "float32" else 1e-6)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("make", [SVC, NuSVC])
def test_class_order_of_the_rows_does_not_matter(make, classes):
    K, y = data(classes=classes)
    order = np.argsort(y, kind="stable")
    one = make(kernel="precomputed", tol=1e-8).fit(K, y)
    other = make(kernel="precomputed", tol=1e-8).fit(K[np.ix_(order, order)], y[order])
    np.testing.assert_allclose(
        one.decision_function(K), other.decision_function(K[:, order]), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_rows_without_weight_are_not_read(classes):
    K, y = data(classes=classes)
    weight = np.ones(len(y))
    weight[::7] = 0.0
    kept = np.flatnonzero(weight)
    odd = K.copy()
    odd[::7], odd[:, ::7] = 1e6, 1e6
    one = SVC(kernel="precomputed", tol=1e-8).fit(odd, y, weight)
    other = SVC(kernel="precomputed", tol=1e-8).fit(K[np.ix_(kept, kept)], y[kept])
    np.testing.assert_allclose(one.intercept_, other.intercept_, atol=1e-6)
    np.testing.assert_array_equal(one.support_, kept[other.support_])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_fit_of_two_classes_and_a_prediction_do_not_copy_the_matrix(dtype, order, monkeypatch):
    K, y = data(2500)
    K = np.array(K, dtype=dtype, order=order)
    model = SVC(kernel="precomputed", C=0.1)
    model.fit(K[:100, :100], y[:100])  # imports
    copied = []  # tables of rows are not allocated where `tracemalloc` would see them
    for module in (cache, shared_rows):
        monkeypatch.setattr(module, "recycled", lambda shape, dtype: copied.append(shape))
    tracemalloc.start()
    try:
        model.fit(K, y).predict(K)
        assert tracemalloc.get_traced_memory()[1] < 0.7 * K.nbytes
    finally:
        tracemalloc.stop()
    assert not copied


@pytest.mark.parametrize("classes", [2, 3])
def test_a_matrix_larger_than_the_cache_is_solved_all_the_same(classes):
    K, y = data(600, classes)
    small = SVC(kernel="precomputed", cache_size=0.1, tol=1e-6).fit(K, y)
    large = SVC(kernel="precomputed", tol=1e-6).fit(K, y)
    assert small.status_ == "solved"
    np.testing.assert_allclose(small.decision_function(K), large.decision_function(K), atol=1e-5)


def test_a_read_only_matrix_and_a_slice_of_one_are_accepted():
    K, y = data()
    expected = SVC(kernel="precomputed").fit(K, y).decision_function(K)
    wide = np.repeat(np.repeat(K, 2, axis=0), 2, axis=1)
    fixed = K.copy()
    fixed.flags.writeable = False
    for given in (fixed, wide[::2, ::2]):
        model = SVC(kernel="precomputed").fit(given, y)
        np.testing.assert_allclose(model.decision_function(given), expected, atol=1e-9)
        SVR(kernel="precomputed").fit(given, K[0])


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_gap_holds_for_the_matrix_that_was_given(order):
    K, y = data(700)
    K = np.array(K + K.T, dtype=np.float32, order=order)
    model = SVC(kernel="precomputed", C=10.0).fit(K, y)
    signs = np.where(y == 1, 1.0, -1.0).astype(np.longdouble)
    u = np.zeros(len(y), np.longdouble)
    u[model.support_] = model.dual_coef_[0]
    values = K.astype(np.longdouble) @ u
    primal = 0.5 * u @ values + 10.0 * np.maximum(0, 1 - signs * (values + model.intercept_[0])).sum()
    dual = np.abs(u).sum() - 0.5 * u @ values
    assert 0 <= primal - dual <= model.dual_gap_[0] * (1 + 1e-6) + 1e-9


def test_values_of_a_float32_matrix_are_summed_in_float64():
    K, y = data(400)
    K = K.astype(np.float32)
    model = SVC(kernel="precomputed", C=100.0).fit(K, y)
    expected = K[:, model.support_].astype(np.float64) @ model.dual_coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(K), expected, rtol=1e-12, atol=1e-10)


def test_one_class_reads_a_matrix_in_either_order():
    K, _ = data()
    one, other = (
        OneClassSVM(kernel="precomputed", nu=0.2, tol=1e-8).fit(np.asarray(K, order=order)) for order in "CF"
    )
    np.testing.assert_allclose(one.decision_function(K), other.decision_function(K), atol=1e-7)
