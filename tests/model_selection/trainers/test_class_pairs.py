"""Searches over class pairs against fits one by one, of this library and of scikit-learn."""

import numpy as np
import pytest
import sklearn.svm
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, ShuffleSplit, StratifiedKFold

from maxmargin import SVC
from maxmargin.model_selection import SVMSearchCV

GRID = {"C": [0.1, 1.0, 10.0, 1000.0], "gamma": [0.05, 0.5]}


def labelled(classes, n=150):
    return make_classification(
        n, 6, n_informative=5, n_redundant=0, n_classes=classes, flip_y=0.1, random_state=classes
    )


def mean_value(estimator, X, y):
    return float(np.mean(estimator.decision_function(X)))


CASES = {
    "accuracy": {},
    "training rows": {"return_train_score": True},
    "another scorer": {"scoring": "balanced_accuracy"},
    "values": {"scoring": mean_value},
    # Folds overlap, and some rows are held out of all of them.
    "overlapping folds": {"cv": ShuffleSplit(3, test_size=0.4, train_size=0.3, random_state=0)},
}


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced"}, {"break_ties": True}], ids=str)
def test_scores_are_those_of_fits_one_by_one(classes, case, options):
    X, y = labelled(classes)
    given = {"cv": StratifiedKFold(3), **CASES[case]}
    found = SVMSearchCV(SVC(tol=1e-6, **options), GRID, n_jobs=1, refit=False, **given).fit(X, y)
    usual = GridSearchCV(SVC(tol=1e-6, **options), GRID, refit=False, **given).fit(X, y)
    assert set(found.trainers_) == {"C path"}
    for key, scores in usual.cv_results_.items():
        if key.startswith("split"):
            np.testing.assert_allclose(found.cv_results_[key], scores, atol=1e-3)


# Each pair has multipliers between 0 and C for these C, so that the bias is unique.
UNIQUE = {"C": [2.0, 10.0, 50.0], "gamma": [0.05, 0.5]}


@pytest.mark.parametrize("classes", [3, 5])
@pytest.mark.parametrize("train", [False, True], ids=["", "training rows"])
def test_scores_are_those_of_scikit_learn(classes, train):
    X, y = labelled(classes)
    options = {"cv": StratifiedKFold(3), "refit": False, "return_train_score": train}
    for scoring, atol in [("accuracy", 1e-12), (mean_value, 1e-5)]:
        machine = SVC(tol=1e-6, decision_function_shape="ovo")
        theirs = sklearn.svm.SVC(tol=1e-6, decision_function_shape="ovo")
        found = SVMSearchCV(machine, UNIQUE, n_jobs=1, scoring=scoring, **options).fit(X, y)
        usual = GridSearchCV(theirs, UNIQUE, scoring=scoring, **options).fit(X, y)
        assert set(found.trainers_) == {"C path"}
        for key, scores in usual.cv_results_.items():
            if key.startswith("split"):
                np.testing.assert_allclose(found.cv_results_[key], scores, rtol=0, atol=atol, err_msg=key)
