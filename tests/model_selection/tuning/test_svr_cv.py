import numpy as np
import pytest
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.model_selection import ShuffleSplit

from maxmargin import SVR, SVRCV


def test_the_default_is_a_good_model():
    X, y = make_friedman1(1000, noise=1.0, random_state=0)
    model = SVRCV().fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.88
    assert isinstance(model.best_estimator_[-1], SVR)


def test_the_choice_does_not_depend_on_the_units_of_the_targets():
    X, y = load_diabetes(return_X_y=True)
    one, thousand = SVRCV().fit(X, y), SVRCV().fit(X, 1000.0 * y)
    assert pytest.approx(1000.0 * one.C_) == thousand.C_
    assert thousand.epsilon_ == pytest.approx(1000.0 * one.epsilon_)
    assert thousand.gamma_ == one.gamma_
    np.testing.assert_allclose(thousand.predict(X), 1000.0 * one.predict(X), rtol=1e-3)


def test_several_tubes_are_tried():
    X, y = load_diabetes(return_X_y=True)
    model = SVRCV().fit(X, y)
    assert len({p.params["epsilon"] for p in model.path_}) == 3


def test_other_scores_and_integer_targets():
    X, y = load_diabetes(return_X_y=True)
    model = SVRCV(scoring="neg_mean_absolute_error", kernel="linear").fit(X, y.astype(int))
    assert model.best_score_ < 0 and model.kernel_ == "linear"


def test_constant_targets_are_predicted():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = SVRCV().fit(X, np.full(60, 7.0))
    np.testing.assert_allclose(model.predict(X), 7.0, atol=0.2)


def test_the_score_is_the_one_that_is_maximised():
    X, y = load_diabetes(return_X_y=True)
    model = SVRCV(scoring="neg_mean_absolute_error", refine=0).fit(X, y)
    assert model.score(X, y) == model.scorer_(model, X, y) < 0


def test_scores_that_are_not_finite_are_reported():
    X, y = load_diabetes(return_X_y=True)
    with pytest.warns(UserWarning, match="No parameter combination has a finite score"):
        SVRCV(cv=ShuffleSplit(2, test_size=1, random_state=0), refine=0).fit(X[:60], y[:60])
