"""Checks that are skipped for plain arrays: what is accepted, raised and warned about is scikit-learn's."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import svm
from sklearn.base import clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_X_y

import maxmargin as mm
from maxmargin import _sklearn
from maxmargin.estimators import _validation
from maxmargin.estimators._plain import class_labels, plain_samples, plain_targets

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
y = (X[:, 0] > 0).astype(int)
CHECKS = {"dtype": [np.float64, np.float32], "order": "C", "accept_sparse": "csr"}


@pytest.mark.parametrize(
    "samples",
    [X, X.astype(np.float32), np.full((2, 2), 1e308), X[::2], np.asfortranarray(X), X.astype(">f8"), X[:0],
     X[:, :0], X[0], X.astype(int), X.tolist(), np.where(X > 1, np.nan, X), np.where(X > 1, np.inf, X),
     X.astype(object), X.astype(np.float16), X.astype(complex)],
)  # fmt: skip
def test_plain_samples_are_what_scikit_learn_returns_unchanged(samples):
    if plain_samples(samples):
        assert check_array(samples, **CHECKS) is samples


@pytest.mark.parametrize(
    "targets",
    [y, y.astype(float), y.astype(bool), y.astype(str), y[::-1], y[:5], y[:, None], y.tolist(),
     np.where(y > 0, np.nan, 0.0), np.where(y > 0, np.inf, 0.0), y.astype(object), y.astype(complex)],
)  # fmt: skip
def test_plain_targets_are_what_scikit_learn_returns_unchanged(targets):
    if plain_targets(targets, len(X)):
        assert np.shares_memory(check_X_y(X, targets, **CHECKS)[1], targets)


@pytest.mark.parametrize(
    ("kind", "plain"),
    [("d", True), ("f", True), (">f8", False), ("i", False), ("g", False)],
)
def test_arrays_as_training_uses_them_are_plain(kind, plain):
    assert plain_samples(X.astype(kind)) is plain


def test_targets_as_training_uses_them_are_plain():
    assert plain_targets(y, len(X)) and plain_targets(y.astype(float), len(X))
    assert not plain_targets(y[:5], len(X)) and not plain_targets(y.astype(object), len(X))


@pytest.mark.parametrize(
    "labels",
    [y, y.astype(float), y.astype(str), y.astype(bool), np.arange(60), np.arange(20), np.arange(60) // 2,
     y + 0.5, np.where(y > 0, 1e300, 0.0), y.astype(object), np.arange(61) // 2, np.arange(59) // 2],
)  # fmt: skip
def test_labels_are_checked_as_by_scikit_learn(labels):
    def outcome(function):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            try:
                function(labels)
            except ValueError as error:
                return str(error)
        return [str(w.message) for w in found]

    assert outcome(class_labels) == outcome(check_classification_targets)


def test_labels_and_their_numbers():
    _, classes, label = class_labels(np.array([3.0, 1.0, 3.0]))
    assert classes.tolist() == [1.0, 3.0]
    assert label.tolist() == [1, 0, 1]


def test_names_of_features_are_forgotten_with_an_array():
    model = mm.SVC().fit(pd.DataFrame(X, columns=list("abc")), y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)
    model.fit(X, y)
    assert not hasattr(model, "feature_names_in_")
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        model.predict(pd.DataFrame(X, columns=list("abc")))


@pytest.mark.parametrize("kind", ["SVC", "SVR", "OneClassSVM"])
@pytest.mark.parametrize("bad", [X[:, :2], np.where(X > 2, np.nan, X), X[0], X[:0], np.full((2, 3), np.inf)])
def test_samples_that_scikit_learn_refuses_are_refused_in_its_words(kind, bad):
    messages = []
    for module in (svm, mm):
        model = getattr(module, kind)().fit(X, y)
        with pytest.raises(ValueError) as error:
            model.predict(bad)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_parameters_are_checked_again_when_they_change():
    model = mm.SVC().fit(X, y)
    for wrong in ({"C": -1.0}, {"degree": 3.0}, {"kernel": "none"}, {"gamma": -1}):
        with pytest.raises(ValueError, match="must be"):
            clone(model).set_params(**wrong).fit(X, y)
    for right in ({"C": 1}, {"degree": 2}, {"gamma": 1.0}):
        clone(model).set_params(**right).fit(X, y)


def test_parameters_that_were_valid_are_not_checked_again(monkeypatch):
    mm.SVC(C=1.25).fit(X, y)
    calls = []
    monkeypatch.setattr(_sklearn.BaseEstimator, "_validate_params", lambda self: calls.append(self))
    mm.SVC(C=1.25).fit(X, y)
    assert not calls
    mm.SVC(C=1.5).fit(X, y)
    mm.SVC(C=1.25, class_weight={0: 1.0}).fit(X, y)
    assert len(calls) == 2


def test_other_constraints_of_a_subclass_count():
    class Small(mm.SVC):
        pass

    Small._parameter_constraints = {**mm.SVC._parameter_constraints, "C": [_sklearn.StrOptions({"a"})]}
    mm.SVC(C=1.75).fit(X, y)
    with pytest.raises(ValueError, match="'C' parameter of Small"):
        Small(C=1.75).fit(X, y)
    Small._parameter_constraints = mm.SVC._parameter_constraints
    Small(C=1.75).fit(X, y)
    Small._parameter_constraints = {**mm.SVC._parameter_constraints, "C": [_sklearn.StrOptions({"a"})]}
    with pytest.raises(ValueError, match="'C' parameter of Small"):
        Small(C=1.75).fit(X, y)


def test_data_in_fortran_order_are_copied_once_and_by_parts(monkeypatch):
    monkeypatch.setattr(_validation, "validate_data", lambda *_, **__: pytest.fail("scikit-learn's copy"))
    copies, copy = [], _validation.in_c_order
    monkeypatch.setattr(_validation, "in_c_order", lambda *given: copies.append(1) or copy(*given))
    model = mm.SVC(kernel="linear").fit(np.asfortranarray(X), y)
    assert len(copies) == 1
    np.testing.assert_array_equal(model.dual_coef_, mm.SVC(kernel="linear").fit(X, y).dual_coef_)
