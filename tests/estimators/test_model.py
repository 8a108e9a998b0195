"""The common result of all fits: expansions, fitted attributes, and their consistency."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from maxmargin import (
    SVC,
    SVR,
    AllDistancesSVC,
    CrammerSingerSVC,
    IncrementalSVC,
    L2OneClassSVM,
    NuSVC,
    NuSVR,
    OneClassSVM,
    QuantileSVR,
)
from maxmargin._compiled.threads import Threads
from maxmargin.estimators.model import KernelModel
from maxmargin.kernels.kernel import Kernel

X, y = load_iris(return_X_y=True)
ESTIMATORS = [
    SVC(),
    NuSVC(nu=0.2),
    SVR(),
    NuSVR(),
    QuantileSVR(quantile=0.7),
    OneClassSVM(nu=0.2),
    L2OneClassSVM(C=10.0),
    AllDistancesSVC(),
    CrammerSingerSVC(),
]
FORMS = [np.asarray, sp.csr_matrix]


def name_of(value):
    return type(value).__name__ if hasattr(value, "fit") else getattr(value, "__name__", None)


def rows(A, B):
    """A kernel of lists of numbers."""
    return np.array([[float(a[0] * b[0] + 1.0) for b in B] for a in A])


def model_of(n=4, **fields):
    rng = np.random.default_rng(0)
    parts = {
        "kernel": Kernel("rbf", gamma=0.5),
        "vectors": rng.normal(size=(n, 3)),
        "support": np.arange(n, dtype=np.int32),
        "n_support": np.array([1, n - 1], dtype=np.int32),
        "coef": rng.normal(size=(2, n)),
        "intercept": np.zeros(1),
        "shape": (10, 3),
    }
    return KernelModel(**{**parts, **fields})


@pytest.mark.parametrize("name", ["linear", "poly", "rbf", "sigmoid", "laplacian"])
@pytest.mark.parametrize("form", FORMS, ids=name_of)
def test_expansions_are_sums_of_kernel_values(name, form):
    model = model_of(kernel=Kernel(name, gamma=0.5, coef0=1.0))
    model = replace(model, vectors=form(model.vectors), sparse=form is sp.csr_matrix)
    Z = np.random.default_rng(1).normal(size=(6, 3))
    K = model.kernel.block(Z, model.vectors)
    whole = model.expand(form(Z), threads=Threads(1))
    np.testing.assert_allclose(whole, (K @ model.coef.T)[None], atol=1e-12)
    parts = model.expand(form(Z), by_class=True, threads=Threads(1))
    np.testing.assert_allclose(parts[0], K[:, :1] @ model.coef[:, :1].T, atol=1e-12)
    np.testing.assert_allclose(parts.sum(axis=0), whole[0], atol=1e-12)


def test_precomputed_values_are_those_of_the_support_vectors():
    model = model_of(kernel=Kernel("precomputed"), vectors=None, support=np.array([1, 4, 5, 9], np.int32))
    K = np.random.default_rng(1).normal(size=(3, 10))
    expected = K[:, [1, 4, 5, 9]] @ model.coef.T
    np.testing.assert_allclose(model.expand(K, threads=Threads(1))[0], expected, atol=1e-12)
    assert model.support_vectors.shape == (0, 0)


def test_a_callable_kernel_gets_rows_of_any_kind():
    samples = [[float(k)] for k in range(6)]
    fitted = SVC(kernel=rows).fit(samples, [0, 0, 0, 1, 1, 1])
    model = fitted.get_model()
    assert model.vectors == [samples[k] for k in fitted.support_] and fitted.support_vectors_.shape == (0, 0)
    values = rows(samples, model.vectors) @ model.coef[0] + model.intercept
    np.testing.assert_allclose(fitted.decision_function(samples), values)


@pytest.mark.parametrize("form", FORMS, ids=name_of)
def test_weights_of_features_combine_the_vectors(form):
    model = model_of()
    model = replace(model, vectors=form(model.vectors), sparse=form is sp.csr_matrix)
    found = model.combine(form(model.coef))
    assert sp.issparse(found) == model.sparse
    dense = found.toarray() if model.sparse else found
    np.testing.assert_allclose(dense, model_of().coef @ model_of().vectors)


def test_vectors_are_prepared_once_and_neither_pickled_nor_copied():
    model = model_of()
    before = len(pickle.dumps(model))
    model.expand(np.zeros((1, 3)), threads=Threads(1))
    kept = model._prepared
    model.expand(np.ones((2, 3)), threads=Threads(1))
    assert kept is not None and model._prepared is kept
    assert len(pickle.dumps(model)) == before
    for again in (pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model), replace(model)):
        assert again._prepared is None
        np.testing.assert_array_equal(again.coef, model.coef)
    assert copy.copy(model).vectors is model.vectors


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"n_support": np.array([1, 1], np.int32)}, "do not add up to 4"),
        ({"support": np.array([0, 1, 2, 10], np.int32)}, "beyond the 10 training samples"),
        ({"support": np.array([-1, 1, 2, 3], np.int32)}, "beyond the 10 training samples"),
        ({"coef": np.zeros((2, 3))}, r"coefficients of shape \(2, 3\)"),
        ({"coef": np.zeros(4)}, r"coefficients of shape \(4,\)"),
        ({"vectors": np.zeros((3, 3))}, "3 support vectors for 4 indices"),
        ({"vectors": None}, "only a precomputed kernel"),
        ({"kernel": Kernel("precomputed")}, "only a precomputed kernel"),
        ({"sparse": True}, "sparse"),
        ({"vote_order": np.array([1, 1])}, "order of votes"),
    ],
    ids=lambda value: None if isinstance(value, str) else next(iter(value)),
)
def test_fields_that_contradict_each_other_are_refused(fields, message):
    model_of().check()
    with pytest.raises(ValueError, match=message):
        model_of(**fields).check()


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
@pytest.mark.parametrize("form", FORMS, ids=name_of)
def test_fitted_attributes_are_the_parts_of_the_model(estimator, form):
    fitted = clone(estimator).fit(form(X), y)
    for model in (fitted, pickle.loads(pickle.dumps(fitted)), copy.copy(fitted), copy.deepcopy(fitted)):
        inner = model.get_model()
        inner.check()
        assert model.support_ is inner.support and model.support_vectors_ is inner.vectors
        assert model.n_support_ is inner.n_support and model.shape_fit_ == inner.shape == X.shape
        assert (model.dual_coef_ is inner.coef) == (form is np.asarray)
        assert not hasattr(model, "intercept_") or model.intercept_ is inner.intercept
        assert model.get_model() is inner
        assert all(a.flags.writeable for a in (model.support_, inner.coef, inner.intercept))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
@pytest.mark.parametrize("form", FORMS, ids=name_of)
def test_an_estimator_that_is_given_a_model_predicts_the_same_bits(estimator, form):
    fitted = clone(estimator).fit(form(X), y)
    given = {name: getattr(fitted, name) for name in ("classes_",) if hasattr(fitted, name)}
    again = clone(estimator).set_model(fitted.get_model(), **given)
    np.testing.assert_array_equal(again.predict(form(X)), fitted.predict(form(X)))
    if hasattr(fitted, "decision_function"):
        np.testing.assert_array_equal(again.decision_function(form(X)), fitted.decision_function(form(X)))
    assert again.n_features_in_ == 4 and again.fit(form(X), y).status_ == "solved"


def test_an_inconsistent_model_is_not_accepted():
    with pytest.raises(ValueError, match="do not add up"):
        SVC().set_model(model_of(n_support=np.array([1, 1], np.int32)))


def test_attributes_and_kernel_parameters_that_were_replaced_are_in_the_model():
    fitted = SVC(kernel="poly").fit(X, y > 0)
    before = fitted.get_model()
    fitted.intercept_ = fitted.intercept_ + 1.0
    fitted.support_vectors_ = 0.5 * fitted.support_vectors_
    fitted.set_params(degree=2)
    after = fitted.get_model()
    assert after.intercept is fitted.intercept_ and after.vectors is fitted.support_vectors_
    assert after.kernel == replace(before.kernel, degree=2) and after.coef is before.coef
    assert fitted.get_model() is after
    values = after.kernel.block(X, after.vectors) @ after.coef[0] + after.intercept
    np.testing.assert_allclose(fitted.decision_function(X), values, atol=1e-9)


def test_coefficients_that_were_changed_in_place_count():
    fitted = SVC().fit(X, y > 0)
    old = fitted.decision_function(X)
    fitted.dual_coef_ *= 2.0
    np.testing.assert_allclose(
        fitted.decision_function(X) - fitted.intercept_, 2.0 * (old - fitted.intercept_), atol=1e-12
    )


def test_a_second_fit_leaves_the_model_of_a_copy_alone():
    fitted = SVC().fit(X, y)
    twin = copy.copy(fitted)
    expected = fitted.decision_function(X)
    fitted.fit(X[:, :2], y == 1)
    np.testing.assert_array_equal(twin.decision_function(X), expected)


@pytest.mark.parametrize("estimator", [SVC(), IncrementalSVC()], ids=name_of)
def test_there_is_no_model_before_the_fit(estimator):
    with pytest.raises(NotFittedError):
        estimator.get_model()


@pytest.mark.parametrize("form", FORMS, ids=name_of)
def test_an_incremental_classifier_has_a_model_and_rows_that_restore_it(form):
    fitted = IncrementalSVC().fit(form(X), y > 0).forget([0, 60])
    model = fitted.get_model()
    model.check()
    assert model.shape == (148, 4) and model.coef.shape == (1, len(fitted.support_))
    again = clone(fitted).set_rows(fitted.get_rows())
    np.testing.assert_array_equal(again.decision_function(form(X)), fitted.decision_function(form(X)))
    np.testing.assert_array_equal(again.classes_, fitted.classes_)
    more = [each.partial_fit(form(X[:1]), y[:1] > 0).decision_function(form(X)) for each in (fitted, again)]
    np.testing.assert_allclose(*more, atol=1e-9)


def test_coefficients_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="not finite"):
        KernelModel.from_training(
            Kernel("linear"), X, np.arange(2), n_support=[2], coef=np.array([[np.inf, 1.0]]),
            intercept=np.zeros(1), shape=X.shape,
        )  # fmt: skip
