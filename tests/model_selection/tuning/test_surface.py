import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression
from sklearn.dummy import DummyRegressor
from sklearn.metrics import check_scoring
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

from maxmargin import SVC, SVR
from maxmargin._compiled.threads import Threads
from maxmargin.model_selection.tuning.classes import ClassSurface
from maxmargin.model_selection.tuning.regression import TargetSurface
from maxmargin.model_selection.tuning.surface import Setting

CS = [0.1, 3.0, 100.0]


def classes(n_classes, n=240):
    return make_classification(
        n, 8, n_informative=5, n_classes=n_classes, flip_y=0.1, class_sep=0.8, random_state=0
    )


def surface(kind, estimator, X, y, splits, scoring=None, weight=None, threads=1):
    return kind(
        estimator, X, y, splits, check_scoring(estimator, scoring), weight, Threads(threads), np.float64
    )


@pytest.mark.parametrize("scoring", [None, "balanced_accuracy"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_scores_of_a_classifier_are_those_of_single_fits(n_classes, scoring):
    X, y = classes(n_classes)
    splits = list(StratifiedKFold(4).split(X, y))
    model = SVC(tol=1e-6)
    found = surface(ClassSurface, model, X, y, splits, scoring).scores(Setting("rbf", 0.1), CS)
    for C, scores in zip(CS, found, strict=True):
        fits = cross_val_score(clone(model).set_params(C=C, gamma=0.1), X, y, cv=splits, scoring=scoring)
        np.testing.assert_allclose(scores, fits, atol=1e-12)


@pytest.mark.parametrize("scoring", ["roc_auc", "neg_log_loss"])
def test_scores_of_values_and_probabilities_are_numbers(scoring):
    X, y = classes(2)
    splits = list(StratifiedKFold(3).split(X, y))
    found = surface(ClassSurface, SVC(), X, y, splits, scoring).scores(Setting("rbf", 0.1), CS)
    assert np.isfinite(found).all()


def test_scores_do_not_depend_on_what_was_asked_before():
    X, y = classes(3)
    splits = list(StratifiedKFold(4).split(X, y))
    cold = surface(ClassSurface, SVC(tol=1e-6), X, y, splits)
    warm = surface(ClassSurface, SVC(tol=1e-6), X, y, splits)
    setting = Setting("rbf", 0.2)
    for C in (100.0, 1.0, 10.0, 3.0):
        warm.scores(setting, [C])
    np.testing.assert_allclose(warm.scores(setting, CS), cold.scores(setting, CS), atol=1e-12)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0}])
def test_weights_are_those_of_single_fits(class_weight):
    X, y = classes(2)
    weight = np.random.default_rng(0).choice([0.0, 0.5, 2.0], len(y))
    splits = list(StratifiedKFold(3).split(X, y))
    model = SVC(tol=1e-6, class_weight=class_weight)
    found = surface(ClassSurface, model, X, y, splits, weight=weight).scores(Setting("rbf", 0.1), [1.0, 10.0])
    for c, C in enumerate((1.0, 10.0)):
        for k, (train, test) in enumerate(splits):
            fit = clone(model).set_params(C=C, gamma=0.1).fit(X[train], y[train], sample_weight=weight[train])
            assert found[c, k] == pytest.approx(fit.score(X[test], y[test]), abs=1e-12)


def test_two_threads_give_the_scores_of_one():
    X, y = classes(3)
    splits = list(StratifiedKFold(5).split(X, y))
    one, two = (surface(ClassSurface, SVC(tol=1e-6), X, y, splits, threads=t) for t in (1, 2))
    setting = Setting("rbf", 0.1)
    with two.threads:
        np.testing.assert_allclose(two.scores(setting, CS), one.scores(setting, CS), atol=1e-12)


def test_a_class_that_is_missing_in_a_fold_is_trained_without():
    X, y = classes(3)
    rare = np.flatnonzero(y == 2)
    splits = [(np.setdiff1d(np.arange(len(y)), rare), rare), *StratifiedKFold(3).split(X, y)]
    found = surface(ClassSurface, SVC(tol=1e-6), X, y, splits).scores(Setting("rbf", 0.1), [1.0])
    assert found[0, 0] == 0.0 and (found[0, 1:] > 0.3).all()


def test_a_fold_of_one_class_is_an_error_that_names_it():
    X, y = classes(2)
    same = np.flatnonzero(y == 1)
    splits = [(same[:40], same[40:])]
    with pytest.raises(ValueError, match="Fold 0 has training rows of one class only"):
        surface(ClassSurface, SVC(), X, y, splits).scores(Setting("rbf", 0.1), [1.0])


@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error"])
def test_scores_of_a_regressor_are_those_of_single_fits(scoring):
    X, y = make_regression(150, 5, noise=5.0, random_state=0)
    y = y / y.std()
    splits = list(KFold(4).split(X, y))
    model = SVR(tol=1e-7)
    found = surface(TargetSurface, model, X, y, splits, scoring).scores(
        Setting("rbf", 0.1, 0.05), [1.0, 10.0]
    )
    for C, scores in zip((1.0, 10.0), found, strict=True):
        fits = cross_val_score(
            clone(model).set_params(C=C, gamma=0.1, epsilon=0.05), X, y, cv=splits, scoring=scoring
        )
        np.testing.assert_allclose(scores, fits, atol=1e-5)


def test_rows_without_weight_do_not_train_a_regressor():
    X, y = make_regression(120, 4, noise=1.0, random_state=0)
    y = y / y.std()
    weight = np.where(np.arange(120) % 4 == 0, 0.0, 1.0)
    spoiled = np.where(weight == 0, 50.0, y)
    splits = [(np.arange(90), np.arange(90, 120)[weight[90:] > 0])]
    setting = Setting("rbf", 0.1, 0.05)
    a, b = (
        surface(TargetSurface, SVR(), X, t, splits, weight=weight).scores(setting, [1.0])
        for t in (y, spoiled)
    )
    np.testing.assert_allclose(a, b)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(
    ("scoring", "expected"), [(None, "share"), ("balanced_accuracy", "equal"), ("roc_auc_ovr", 0.5)]
)
def test_the_baseline_of_a_classifier_is_the_score_of_its_largest_class(n_classes, scoring, expected):
    X, y = classes(n_classes)
    y[:30] = 0
    splits = list(StratifiedKFold(4).split(X, y))
    found = surface(ClassSurface, SVC(), X, y, splits, scoring).baseline(Setting("rbf", 0.1))
    if expected == "share":
        expected = np.mean([np.mean(y[test] == 0) for _, test in splits])
    assert found == pytest.approx(1.0 / n_classes if expected == "equal" else expected)


def test_the_baseline_of_a_regressor_is_that_of_the_mean():
    X, y = make_regression(120, 5, noise=10.0, random_state=0)
    splits = list(KFold(4).split(X))
    found = surface(TargetSurface, SVR(), X, y, splits).baseline(Setting("rbf", 0.1))
    fits = cross_val_score(DummyRegressor(), X, y, cv=splits)
    assert found == pytest.approx(fits.mean())


def test_there_is_no_baseline_where_the_scorer_refuses_constant_models():
    def correlation(model, X, y):
        values = model.decision_function(X)
        if np.ptp(values) == 0:
            raise ValueError("constant")
        return np.corrcoef(values, y)[0, 1]

    X, y = classes(2)
    splits = list(StratifiedKFold(4).split(X, y))
    flat = surface(ClassSurface, SVC(), X, y, splits, correlation)
    assert flat.baseline(Setting("rbf", 0.1)) == -np.inf
    assert not flat.held_out


@pytest.mark.parametrize("n_classes", [2, 3])
def test_chains_side_by_side_have_the_scores_of_chains_one_by_one(n_classes):
    X, y = classes(n_classes, n=520)
    splits = list(StratifiedKFold(5).split(X, y))
    walks = [(Setting("rbf", gamma), CS) for gamma in (0.05, 0.1, 0.2)]
    alone = surface(ClassSurface, SVC(tol=1e-6), X, y, splits)
    several = surface(ClassSurface, SVC(tol=1e-6), X, y, splits, threads=2)
    with several.threads:
        found = several.scores_of(walks)
        again = several.scores(*walks[1])  # from solutions of folds that were trained in another group
    for walk, scores in zip(walks, found, strict=True):
        np.testing.assert_allclose(scores, alone.scores(*walk), atol=1e-12)
    np.testing.assert_allclose(again, found[1], atol=1e-12)
