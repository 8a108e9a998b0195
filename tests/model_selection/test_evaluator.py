import numpy as np
import pytest
import sklearn.svm
from sklearn.datasets import load_iris, make_classification, make_regression
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, SVR, NuSVC
from maxmargin.model_selection import Evaluator


@pytest.mark.parametrize("scoring", [None, "f1_macro"])
def test_scores_are_those_of_single_fits_in_any_order(scoring):
    X, y = load_iris(return_X_y=True)
    evaluator = Evaluator(SVC(tol=1e-6), X, y, scoring=scoring, cv=StratifiedKFold(4))
    for C, gamma in ((10.0, 0.1), (0.1, 0.1), (1.0, 0.1), (1.0, 2.0), (300.0, 0.1)):
        found = evaluator.evaluate({"C": C, "gamma": gamma})
        fits = cross_val_score(SVC(C=C, gamma=gamma, tol=1e-6), X, y, cv=StratifiedKFold(4), scoring=scoring)
        np.testing.assert_allclose(found.scores, fits, atol=1e-12)
        assert found.mean == pytest.approx(fits.mean()) and found.std == pytest.approx(fits.std())
        assert found.trainer == "C path"


def test_regression_and_other_estimators():
    X, y = make_regression(100, 4, noise=1.0, random_state=0)
    found = Evaluator(SVR(tol=1e-6), X, y, cv=KFold(3)).evaluate({"C": 100.0, "gamma": 0.1})
    fits = cross_val_score(SVR(C=100.0, gamma=0.1, tol=1e-6), X, y, cv=KFold(3))
    np.testing.assert_allclose(found.scores, fits, atol=1e-4)
    found = Evaluator(NuSVC(), *load_iris(return_X_y=True)).evaluate({"nu": 0.2})
    assert found.mean > 0.9 and found.trainer.startswith("warm fits")


def test_a_pipeline_is_prepared_for_each_setting_of_its_steps():
    X, y = make_classification(120, 5, random_state=0)
    evaluator = Evaluator(make_pipeline(StandardScaler(), SVC(tol=1e-6)), X, y)
    for with_std in (True, False, True):
        params = {"standardscaler__with_std": with_std, "svc__C": 2.0}
        fits = cross_val_score(make_pipeline(StandardScaler(with_std=with_std), SVC(C=2.0, tol=1e-6)), X, y)
        np.testing.assert_allclose(evaluator.evaluate(params).scores, fits, atol=1e-12)


def test_values_of_held_out_rows_are_there_if_asked_for():
    X, y = load_iris(return_X_y=True)
    found = Evaluator(SVC(), X, y, keep_values=True).evaluate({"C": 1.0})
    assert [v.shape for v in found.values] == [(30, 3)] * 5
    assert Evaluator(SVC(), X, y).evaluate({"C": 1.0}).values is None


def test_weights_reach_the_fits():
    X, y = make_classification(150, 4, flip_y=0.2, random_state=0)
    weight = np.where(np.arange(150) % 3 == 0, 0.0, 1.0)
    found = Evaluator(SVC(tol=1e-6), X, y, sample_weight=weight, cv=3).evaluate({"C": 1.0, "gamma": 0.5})
    fits = cross_val_score(SVC(gamma=0.5, tol=1e-6), X, y, cv=3, params={"sample_weight": weight})
    np.testing.assert_allclose(found.scores, fits, atol=1e-12)


def test_bad_parameters_raise_what_fit_raises():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="C"):
        Evaluator(SVC(), X, y).evaluate({"C": -1.0})


def test_estimators_of_other_libraries_are_refused():
    with pytest.raises(TypeError, match="Evaluator searches the parameters of estimators of maxmargin"):
        Evaluator(sklearn.svm.SVC(), *load_iris(return_X_y=True))


def test_memory_can_be_given_back():
    X, y = load_iris(return_X_y=True)
    evaluator = Evaluator(SVC(), X, y)
    before = evaluator.evaluate({"C": 1.0}).mean
    evaluator.release()
    assert evaluator.evaluate({"C": 1.0}).mean == before
