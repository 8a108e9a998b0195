"""Subclasses: which methods they override, and how a search trains them."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import TransformerMixin
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.metaestimators import available_if

from maxmargin import (
    SVC,
    SVR,
    AllDistancesSVC,
    CrammerSingerSVC,
    L2OneClassSVM,
    NuSVC,
    NuSVR,
    OneClassSVM,
    QuantileSVR,
)
from maxmargin.estimators.one_vs_one import BaseSVC
from maxmargin.model_selection import SVMSearchCV
from maxmargin.model_selection.overrides import overridden

GRID = {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}


def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


class Plain(SVC):
    """Nothing of its own."""


class Named(SVC):
    """A constructor with fewer parameters and a new one."""

    def __init__(self, C=1.0, gamma="scale", tol=1e-7, name="x"):
        super().__init__(C=C, gamma=gamma, tol=tol)
        self.name = name

    def __repr__(self):
        return f"Named({self.name})"

    @available_if(lambda self: self.name == "y")
    def predict_names(self, X):
        raise NotImplementedError


class Transforming(TransformerMixin, Plain):
    """A method that no estimator of the library has."""

    _search_axes = SVC._search_axes

    def transform(self, X):
        return self.decision_function(X)


class NarrowNu(NuSVC):
    """A subclass of another estimator."""

    def __init__(self, nu=0.5, gamma="scale", label=None):
        super().__init__(nu=nu, gamma=gamma, tol=1e-7)
        self.label = label


class Rounded(SVC):
    """Other decision values."""

    def decision_function(self, X):
        return np.round(super().decision_function(X), 1)


class Strict(SVC):
    """Another score."""

    def score(self, X, y, sample_weight=None):
        return super().score(X, y, sample_weight) - 0.1


class Wider(SVC):
    """Another kernel, by the hook."""

    def _kernel_for(self, X, kept):
        kernel = super()._kernel_for(X, kept)
        self._kernel = replace(kernel, gamma=0.5 * kernel.gamma)
        return self._kernel


class Mixin:
    """A mixin that overrides."""

    def predict(self, X):
        return super().predict(5 * X)


class Mixed(Mixin, SVC):
    """Overrides by a mixin."""


class Inherited(Rounded):
    """Overrides by its parent."""


@pytest.mark.parametrize(
    "kind",
    [
        SVC, SVR, NuSVC, NuSVR, QuantileSVR, OneClassSVM, L2OneClassSVM, AllDistancesSVC, CrammerSingerSVC,
        Plain, Named, Transforming, NarrowNu,
    ],
)  # fmt: skip
def test_the_estimators_and_innocent_subclasses_override_nothing(kind):
    assert overridden(kind) == []


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (Rounded, ["decision_function"]),
        (Inherited, ["decision_function"]),
        (Strict, ["score"]),
        (Wider, ["_kernel_for"]),
        (Mixed, ["predict"]),
    ],
)
def test_overridden_methods_are_found(kind, names):
    assert overridden(kind) == names


@pytest.mark.parametrize("kind", [Plain, Named, Transforming])
@pytest.mark.parametrize("scoring", [None, "balanced_accuracy"])
def test_an_innocent_subclass_gets_the_c_path(kind, scoring):
    X, y = iris()
    search = SVMSearchCV(kind(tol=1e-7), GRID, scoring=scoring).fit(X, y)
    usual = GridSearchCV(SVC(tol=1e-7), GRID, scoring=scoring).fit(X, y)
    assert set(search.trainers_) == {"C path"}
    assert [parent for parent, _ in search.path_] == [-1, -1, 0, 1, 2, 3]
    assert type(search.best_estimator_) is kind
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], usual.cv_results_["mean_test_score"])


def test_an_innocent_subclass_at_the_end_of_a_pipeline_gets_the_c_path():
    X, y = iris()
    grid = {"named__C": [0.1, 1.0], "named__name": ["x", "z"]}
    search = SVMSearchCV(make_pipeline(StandardScaler(), Named()), grid).fit(X, y)
    assert set(search.trainers_) == {"C path"}
    assert [parent for parent, _ in search.path_] == [-1, -1, 0, 1]


@pytest.mark.parametrize("memory", [0.0, 2000.0])
@pytest.mark.parametrize(
    ("estimator", "grid", "warm"),
    [
        (NarrowNu(), {"nu": [0.05, 0.1, 0.2], "gamma": [0.1, 1.0]}, 4),
        (NarrowNu(), {"nu": [0.05, 0.1, 0.2], "label": ["a", "b"]}, 4),
        (Named(), {"C": [1.0, np.inf, 10.0]}, 2),
    ],
)
def test_an_innocent_subclass_keeps_its_warm_starts(monkeypatch, estimator, grid, warm, memory):
    X, y = iris()
    starts, fit = [], BaseSVC.fit

    def counted(self, *args, **options):
        starts.append(self.warm_start and getattr(self, "_solutions", None) is not None)
        return fit(self, *args, **options)

    monkeypatch.setattr(BaseSVC, "fit", counted)
    search = SVMSearchCV(estimator, grid, cv=3, refit=False, n_jobs=1, memory=memory).fit(X, y)
    monkeypatch.undo()
    assert all(trainer.startswith("warm fits: ") for trainer in search.trainers_)
    assert sum(parent >= 0 for parent, _ in search.path_) == warm
    assert (starts.count(True), len(starts)) == (3 * warm, 3 * len(search.path_))
    usual = GridSearchCV(estimator, grid, cv=3, refit=False).fit(X, y)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], usual.cv_results_["mean_test_score"])


@pytest.mark.parametrize("kind", [Rounded, Inherited, Strict, Wider, Mixed])
@pytest.mark.parametrize("scoring", [None, "roc_auc"])
def test_a_subclass_that_overrides_a_method_is_trained_by_its_own_fit_and_this_is_reported(
    kind, scoring, capsys
):
    X, y = iris()
    X, y = X[y > 0], y[y > 0]
    search = SVMSearchCV(kind(tol=1e-7), GRID, scoring=scoring, verbose=1).fit(X, y)
    usual = GridSearchCV(kind(tol=1e-7), GRID, scoring=scoring).fit(X, y)
    names = " and ".join(overridden(kind))
    reason = f"scikit-learn: {kind.__name__} overrides {names}, so that its own methods must see the data"
    assert search.trainers_ == [reason] * 6
    assert f"6 of 6 candidates trained by {reason}" in capsys.readouterr().out
    assert {parent for parent, _ in search.path_} == {-1}
    for key in ("mean_test_score", "std_test_score", "rank_test_score"):
        np.testing.assert_array_equal(search.cv_results_[key], usual.cv_results_[key])
