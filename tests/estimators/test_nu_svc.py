"""NuSVC beside scikit-learn, on ordinary problems and on difficult ones."""

import warnings
from itertools import combinations

import numpy as np
import pytest
import sklearn.svm
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale

from maxmargin import NuSVC


def labelled(n=240, classes=3, **options):
    options = {"flip_y": 0.05, "class_sep": 1.5, "random_state": 0, **options}
    return make_classification(n, 6, n_informative=5, n_redundant=0, n_classes=classes, **options)


def largest_nu(y):
    sizes = np.bincount(y)
    return min(2 * min(a, b) / (a + b) for a, b in combinations(sizes.tolist(), 2))


def doubled(X, y):
    return np.vstack([X, X]), np.r_[y, y]


X3, Y3 = labelled()
WEIGHTS = np.random.default_rng(0).uniform(0.5, 2.0, len(Y3))
CASES = {
    "two classes": (*labelled(classes=2), None, {}),
    "three classes": (X3, Y3, None, {}),
    "five classes": (*labelled(600, 5), None, {}),
    "duplicates": (*doubled(X3, Y3), None, {}),
    "small nu": (X3, Y3, None, {"nu": 0.1}),
    "largest nu": (X3, Y3, None, {"nu": largest_nu(Y3)}),
    "unbalanced": (*labelled(weights=[0.1, 0.3, 0.6]), None, {"nu": 0.2}),
    "weights": (X3, Y3, WEIGHTS, {}),
    "weights of zero": (X3, Y3, np.where(np.arange(len(Y3)) % 5, WEIGHTS, 0.0), {}),
    "float32": (X3.astype(np.float32), Y3, None, {}),
    "many rows": (*labelled(1500), None, {}),
    "precomputed": (rbf_kernel(X3, gamma=0.2), Y3, None, {"kernel": "precomputed"}),
    "linear": (X3, Y3, None, {"kernel": "linear", "nu": 0.6}),
    "poly": (X3, Y3, None, {"kernel": "poly", "degree": 2, "coef0": 1.0, "nu": 0.5}),
}


@pytest.mark.parametrize("name", CASES)
def test_decision_values_are_those_of_scikit_learn(name):
    X, y, weight, options = CASES[name]
    options = {"nu": 0.3, "gamma": 0.2, "decision_function_shape": "ovo", **options}
    ours = NuSVC(tol=1e-6, **options).fit(X, y, weight)
    theirs = sklearn.svm.NuSVC(tol=1e-7, **options).fit(X.astype(np.float64), y, weight)
    assert ours.status_ == "solved"
    expected = theirs.decision_function(X.astype(np.float64))
    found = ours.decision_function(X)
    np.testing.assert_allclose(found, expected, atol=1e-5 * max(1.0, np.abs(expected).max()))
    assert np.isfinite(ours.dual_gap_).all() and (ours.relative_gap_ < 1e-3).all()


def test_an_indefinite_kernel_has_an_end():
    model = NuSVC(kernel="sigmoid", gamma=2.0, coef0=-1.0, nu=0.5, max_time=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X3, Y3)
    assert model.status_ != "max_time"
    assert np.isfinite(model.dual_coef_).all() and np.isfinite(model.intercept_).all()


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("n", [60, 700])
def test_hulls_that_intersect_are_warned_of(classes, n):
    X = np.tile(np.random.default_rng(0).normal(size=(n // classes, 3)), (classes, 1))
    y = np.repeat(np.arange(classes), n // classes)
    with pytest.warns(ConvergenceWarning, match="intersect to working precision"):
        NuSVC(nu=0.4, gamma=0.2).fit(X, y)


def test_a_warm_start_with_another_nu_leads_to_the_same_model():
    model = NuSVC(nu=0.2, gamma=0.2, tol=1e-6, warm_start=True).fit(X3, Y3)
    cold = NuSVC(nu=0.3, gamma=0.2, tol=1e-6).fit(X3, Y3)
    model.set_params(nu=0.3).fit(X3, Y3)
    np.testing.assert_allclose(model.decision_function(X3), cold.decision_function(X3), atol=1e-5)
    assert model.fit(X3, Y3).n_iter_.sum() <= 3  # nothing is left to do


@pytest.mark.filterwarnings("error:.*intersect")
@pytest.mark.filterwarnings("ignore:The solver ended")
def test_hulls_of_problems_that_were_not_solved_are_not_said_to_intersect():
    X, y = load_breast_cancer(return_X_y=True)
    NuSVC(nu=0.3, max_iter=3).fit(scale(X), y)
