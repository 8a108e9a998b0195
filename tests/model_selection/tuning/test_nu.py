import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.metrics import check_scoring
from sklearn.model_selection import StratifiedKFold, cross_val_score

from maxmargin import NuSVC, OneClassSVM
from maxmargin._compiled.threads import Threads
from maxmargin.model_selection.tuning.nu import NuClassSurface, OneClassSurface, largest_nu
from maxmargin.model_selection.tuning.surface import Setting

STEPS = [0.3, 3.0, 30.0]


def parts(n_classes=2, n=240, **more):
    X, y = make_classification(
        n, 8, n_informative=5, n_classes=n_classes, flip_y=0.1, class_sep=0.8, random_state=0, **more
    )
    return X, y, list(StratifiedKFold(4).split(X, y))


@pytest.mark.parametrize("sizes", [(30, 20), (10, 40), (5, 20, 60)])
def test_the_largest_nu_is_feasible_and_a_larger_one_is_not(sizes):
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = np.random.default_rng(0).normal(size=(len(y), 3)) + y[:, None]
    largest = largest_nu(y)
    NuSVC(nu=largest).fit(X, y)
    with pytest.raises(ValueError, match="infeasible"):
        NuSVC(nu=1.001 * largest).fit(X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_of_nu_svc_are_those_of_single_fits(n_classes, weighted):
    X, y, splits = parts(n_classes)
    model = NuSVC(tol=1e-6)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else None
    largest = 0.9 * largest_nu(y)
    surface = NuClassSurface(
        model, X, y, splits, check_scoring(model), weight, Threads(1), np.float64, largest=largest
    )
    found = surface.scores(Setting("rbf", 0.1), STEPS)
    for step, scores in zip(STEPS, found, strict=True):
        single = clone(model).set_params(**surface.parameters(Setting("rbf", 0.1), step))
        assert single.nu == pytest.approx(largest / (1 + step))
        given = None if weight is None else {"sample_weight": weight}
        fits = cross_val_score(single, X, y, cv=splits, params=given)
        np.testing.assert_allclose(scores, fits, atol=1e-12)


def test_a_fold_gets_the_largest_nu_that_it_allows():
    X, y, _ = parts(weights=[0.75])
    rare = np.flatnonzero(y == 1)
    splits = [(np.setdiff1d(np.arange(len(y)), rare[:40]), rare[:40])]  # fewer rows of the rare class train
    model = NuSVC()
    surface = NuClassSurface(
        model, X, y, splits, check_scoring(model), None, Threads(1), largest=largest_nu(y)
    )
    assert np.isfinite(surface.scores(Setting("rbf", 0.1), [0.0])).all()


def test_scores_of_one_class_svm_are_those_of_single_fits():
    X, y, splits = parts(weights=[0.9])
    y = 1 - 2 * y
    model = OneClassSVM(tol=1e-6)
    scorer = check_scoring(model, "roc_auc")
    surface = OneClassSurface(model, X, y, splits, scorer, None, Threads(1), np.float64, only_inliers=False)
    found = surface.scores(Setting("rbf", 0.1), STEPS)
    for step, scores in zip(STEPS, found, strict=True):
        single = clone(model).set_params(**surface.parameters(Setting("rbf", 0.1), step))
        np.testing.assert_allclose(
            scores, cross_val_score(single, X, y, cv=splits, scoring=scorer), atol=1e-6
        )
    labels = surface.predictions(Setting("rbf", 0.1), 3.0)
    assert set(labels) <= {-1, 1} and len(labels) == len(y)


def test_outliers_do_not_train_where_only_inliers_should():
    X, y, splits = parts(weights=[0.8])
    y = 1 - 2 * y
    model = OneClassSVM()
    scorer = check_scoring(model, "roc_auc")
    surface = OneClassSurface(model, X, y, splits, scorer, None, Threads(1), only_inliers=True)
    for k, (train, _) in enumerate(splits):
        np.testing.assert_array_equal(surface.training_rows(k), train[y[train] == 1])
