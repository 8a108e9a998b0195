"""Errors of the user are reported as GridSearchCV does, and bugs of a trainer surface."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from maxmargin import SVC, SVR, NuSVC
from maxmargin.estimators.one_vs_one import BaseSVC
from maxmargin.model_selection import SVMSearchCV
from maxmargin.model_selection.folds import Fold
from maxmargin.solvers.c_path import class_pairs, path

X, Y = load_iris(return_X_y=True)
X = StandardScaler().fit_transform(X)
GROWING = {"C": [0.1, 1.0, 10.0]}


def outcome(search, X, y, **fit):
    """Scores and the warnings of scikit-learn's search, or the exception."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            search.fit(X, y, **fit)
        except Exception as error:
            return type(error), str(error).partition("\n")[0]
    kinds = [w.message for w in caught if w.category in (FitFailedWarning, UserWarning)]
    lines = sorted(str(message).strip().partition("\n")[0] for message in kinds)
    return {k: v for k, v in search.cv_results_.items() if k.startswith("split")}, lines


def assert_same_outcome(estimator, grid, X=X, y=Y, fit=None, memory=2000.0, **options):
    fit = fit or {}
    ours = outcome(SVMSearchCV(estimator, grid, refit=False, memory=memory, **options), X, y, **fit)
    theirs = outcome(GridSearchCV(estimator, grid, refit=False, **options), X, y, **fit)
    if isinstance(theirs[0], type):
        assert ours == theirs
        return
    assert ours[1] == theirs[1]
    for key, value in theirs[0].items():
        np.testing.assert_allclose(ours[0][key], value, atol=1e-12, err_msg=key)


def moody(X):
    """A transformer that fails for some folds."""
    if X[0, 0] == MOOD:
        raise KeyError("not today")
    return X


MOOD = X[0, 0]


def refuses(A, B):
    raise ArithmeticError("no kernel")


def only_small(A, B):
    if len(A) > 120:
        raise MemoryError("too many rows")
    return A @ B.T


def sometimes(estimator, X, y):
    if np.mean(estimator.predict(X) == y) > 0.94:
        raise ArithmeticError("too good")
    return 0.5


@pytest.mark.parametrize("memory", [0.0, 2000.0])
@pytest.mark.parametrize("error_score", [np.nan, -1.0, "raise"])
@pytest.mark.parametrize(
    "case",
    [
        {"estimator": NuSVC(tol=1e-7), "grid": {"nu": [0.2, 0.99]}, "y": np.minimum(Y, 1)},
        {"estimator": SVC(probability=True), "grid": GROWING},
        {"estimator": SVC(solver="nonsense"), "grid": GROWING},
        {"estimator": SVC(solver="mdm"), "grid": GROWING},
        {"estimator": SVC(class_weight={7: 2.0}), "grid": GROWING},
        {"estimator": SVC(class_weight={0: -2.0}), "grid": GROWING},
        {"estimator": SVC(tol=1e-7), "grid": {"C": [1.0, "much"]}},
        {"estimator": SVC(tol=1e-7), "grid": {"C": [1.0, 2.0], "degree": [3, -1]}},
        {"estimator": SVC(tol=1e-7), "grid": {"C": [1.0, 2.0], "colour": [3]}},
        {"estimator": SVC(break_ties=True, decision_function_shape="ovo", tol=1e-7), "grid": GROWING},
        {"estimator": make_pipeline(FunctionTransformer(moody), SVC(tol=1e-7)), "grid": {"svc__C": [1, 2]}},
        {"estimator": SVC(kernel=refuses), "grid": GROWING},
        {"estimator": SVC(kernel=only_small, tol=1e-7), "grid": GROWING},
        {"estimator": SVC(tol=1e-7), "grid": GROWING, "scoring": sometimes},
        {"estimator": NuSVC(tol=1e-7), "grid": {"nu": [0.05, 0.2]}, "scoring": sometimes},
        {"estimator": SVC(tol=1e-7), "grid": GROWING, "scoring": ["f1", "accuracy"]},
        {"estimator": SVC(tol=1e-7), "grid": GROWING, "X": X.astype(str)},
        {"estimator": SVC(tol=1e-7), "grid": GROWING, "X": np.full((150, 2), "a")},
        {"estimator": SVC(tol=1e-7), "grid": GROWING, "y": X[:, 0], "cv": 3},
        {"estimator": SVC(tol=1e-7), "grid": GROWING, "fit": {"sample_weight": np.full(150, np.nan)}},
        {"estimator": SVC(tol=1e-7), "grid": GROWING, "fit": {"sample_weight": np.zeros(150)}},
        {"estimator": SVR(tol=1e-7), "grid": GROWING, "y": np.where(Y == 2, np.nan, Y), "cv": 3},
    ],
)  # fmt: skip
def test_errors_of_the_user_are_reported_as_scikit_learn_does(case, error_score, memory):
    case = dict(case)
    estimator, grid = case.pop("estimator"), case.pop("grid")
    assert_same_outcome(estimator, grid, memory=memory, error_score=error_score, n_jobs=1, **case)


def broken(*args, **options):
    raise RuntimeError("a bug")


@pytest.mark.parametrize("estimator", [SVC(), SVR()])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_bug_of_the_c_path_surfaces(estimator, n_jobs, monkeypatch):
    monkeypatch.setattr(path, "solve_folds", broken)
    monkeypatch.setattr(class_pairs, "solve_pairs", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        SVMSearchCV(estimator, GROWING, n_jobs=n_jobs).fit(X, Y)


@pytest.mark.parametrize("kind", [ValueError, RuntimeError, IndexError])
def test_a_fit_that_fails_on_the_shared_matrix_alone_surfaces(kind, monkeypatch):
    fit = BaseSVC.fit

    def fails_on_a_matrix(self, X, y, sample_weight=None):
        if self.kernel == "precomputed":
            raise kind("a bug")
        return fit(self, X, y, sample_weight)

    monkeypatch.setattr(BaseSVC, "fit", fails_on_a_matrix)
    with pytest.raises(kind, match="a bug") as error:
        SVMSearchCV(NuSVC(), {"nu": [0.1, 0.2]}, n_jobs=1).fit(X, Y)
    assert "in a search only" in error.value.__notes__[0]


@pytest.mark.parametrize("alone", [ValueError("nu is infeasible"), KeyError("a bug"), ValueError("a")])
def test_a_fit_that_fails_otherwise_on_its_own_surfaces(alone, monkeypatch):
    def fails(self, X, y, sample_weight=None):
        raise ValueError("a bug") if self.kernel == "precomputed" else alone

    monkeypatch.setattr(BaseSVC, "fit", fails)
    with pytest.raises(ValueError, match="a bug") as error:
        SVMSearchCV(NuSVC(), {"nu": [0.1, 0.2]}, n_jobs=1).fit(X, Y)
    assert f"raises {type(alone).__name__}: {alone}" in error.value.__notes__[0]


def test_addresses_in_a_message_do_not_make_two_errors_different(monkeypatch):
    def fails(self, X, y, sample_weight=None):
        raise ValueError(f"cannot use <object at {hex(id(X))}>")

    monkeypatch.setattr(BaseSVC, "fit", fails)
    with pytest.raises(ValueError, match="All the 10 fits failed"):
        SVMSearchCV(NuSVC(), {"nu": [0.1, 0.2]}, n_jobs=1).fit(X, Y)


def test_a_bug_in_the_kernel_matrix_surfaces(monkeypatch):
    monkeypatch.setattr(Fold, "matrix", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        SVMSearchCV(NuSVC(), {"nu": [0.1, 0.2]}, n_jobs=1).fit(X, Y)


@pytest.mark.parametrize("estimator", [SVC(tol=1e-7), SVR(tol=1e-7, epsilon=0.05)])
@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error"])
def test_only_nodes_that_the_c_path_has_not_solved_are_trained_by_fits(estimator, scoring, monkeypatch):
    solve_folds, solve_pairs = path.solve_folds, class_pairs.solve_pairs

    def targets_short_of_budget(*args, **options):
        found = solve_folds(*args, **options)
        for of_fold in found[:2]:
            of_fold.solved[1] = False
            of_fold.decision[1] = np.nan
        return found

    def classes_short_of_budget(K, problems, found):
        solve_pairs(K, problems, found)
        found.solved[1, :2, 1] = False  # one pair is enough
        found.offset[:2, 1] = np.nan

    grid = {**GROWING, "gamma": [0.1, 1.0]}  # enough for all folds to be one job
    usual = GridSearchCV(estimator, grid, cv=3, scoring=scoring).fit(X, Y)
    monkeypatch.setattr(path, "solve_folds", targets_short_of_budget)
    monkeypatch.setattr(class_pairs, "solve_pairs", classes_short_of_budget)
    search = SVMSearchCV(estimator, grid, cv=3, scoring=scoring, n_jobs=1).fit(X, Y)
    reason = "warm fits: not solved within the budget of the C path"
    assert search.trainers_ == ["C path"] * 2 + [f"{reason}; C path"] * 2 + ["C path"] * 2
    for key in ("split0_test_score", "split1_test_score", "split2_test_score"):
        np.testing.assert_allclose(search.cv_results_[key], usual.cv_results_[key], atol=1e-5)
