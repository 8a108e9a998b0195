import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import NuSVC, NuSVCCV
from maxmargin._compiled.limits import Stopped

WEIGHTS = "weights and repeated rows are split into folds in different ways"
EXPECTED = {f"check_sample_weight_equivalence_on_{kind}_data": WEIGHTS for kind in ("dense", "sparse")}
# As with scikit-learn's SVC(probability=True): a sigmoid's constant moves the border between two classes.
EXPECTED["check_classifiers_train"] = "the likeliest class of a row near the border need not be the predicted"


@parametrize_with_checks([NuSVCCV()], expected_failed_checks=lambda estimator: EXPECTED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_default_is_a_good_model_with_probabilities():
    X, X_test, y, y_test = train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)
    model = NuSVCCV().fit(X, y)
    assert model.score(X_test, y_test) > 0.95
    assert isinstance(model.best_estimator_[-1], NuSVC) and model.best_estimator_[-1].nu == model.nu_
    p = model.predict_proba(X_test)
    assert (model.classes_[p.argmax(axis=1)] == y_test).mean() > 0.95
    assert "param_nu" in model.cv_results_ and "C" not in model.best_params_


def test_three_classes_with_names():
    X, y = load_iris(return_X_y=True)
    labels = np.array(["b", "c", "a"])[y]
    model = NuSVCCV().fit(X, labels)
    assert model.score(X, labels) > 0.9
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_rare_classes_bound_nu():
    X, y = make_classification(300, 6, weights=[0.9], flip_y=0, random_state=0)
    model = NuSVCCV(scoring="balanced_accuracy").fit(X, y)
    share = (y == 1).mean()
    assert model.nu_ <= 2 * share
    assert all(tried.params["nu"] <= 2 * share for tried in model.path_)


def test_hulls_that_meet_while_parameters_are_tried_do_not_warn():
    X, y = make_classification(600, 6, flip_y=0.3, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        NuSVCCV(n_jobs=2).fit(X, y)
    assert not [w for w in caught if w.filename.endswith("nu.py")]


def test_hulls_that_meet_are_never_chosen():
    X, y = make_classification(300, 6, flip_y=0.3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = NuSVCCV(kernel="linear").fit(X, y)
    assert not np.isfinite([tried.score for tried in model.path_]).all()  # some of them were tried
    assert np.isfinite(model.best_score_)


def test_a_time_limit_is_kept():
    X, y = make_classification(1000, 20, flip_y=0.3, random_state=0)
    with pytest.raises(TimeoutError, match="max_time"):
        NuSVCCV(max_time=0.0).fit(X, y)


def test_time_that_ends_between_training_and_prediction_leaves_a_node_out(monkeypatch):
    X, y = make_classification(300, 6, random_state=0)
    calls = []

    def late(model, K):
        calls.append(None)
        if len(calls) == 1:
            raise Stopped
        return np.asarray(model._pair_values(K)).reshape(len(K), -1)

    monkeypatch.setattr("maxmargin.model_selection.tuning.nu._pair_values", late)
    model = NuSVCCV(calibrate=None).fit(X, y)
    assert np.isfinite(model.best_score_)


def test_combinations_that_are_merely_inaccurate_are_not_left_out():
    model = NuSVCCV().fit(*load_iris(return_X_y=True))
    assert np.isfinite([tried.score for tried in model.path_]).all()
