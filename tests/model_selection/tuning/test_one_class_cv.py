import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_outlier_detector
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import OneClassSVM, OneClassSVMCV


class MeanScore:
    """A score that needs no labels; its text, by which parallel tests are named, is always the same."""

    def __call__(self, estimator, X, y=None):
        return float(np.mean(estimator.predict(X) == 1))

    def __repr__(self):
        return "mean_score"


mean_score = MeanScore()


WEIGHTS = "weights and repeated rows are split into folds in different ways"
EXPECTED = {f"check_sample_weight_equivalence_on_{kind}_data": WEIGHTS for kind in ("dense", "sparse")}


@parametrize_with_checks(
    [OneClassSVMCV(scoring=mean_score)], expected_failed_checks=lambda estimator: EXPECTED
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(300, 3)), rng.uniform(-8, 8, size=(40, 3))])
    y = np.repeat([1, -1], [300, 40])
    order = rng.permutation(len(y))
    return X[order], y[order]


@pytest.mark.parametrize("scoring", ["roc_auc", "balanced_accuracy", "average_precision"])
def test_labels_choose_a_good_detector(data, scoring):
    X, y = data
    model = OneClassSVMCV(scoring=scoring).fit(X, y)
    assert is_outlier_detector(model) and isinstance(model.best_estimator_[-1], OneClassSVM)
    assert model.best_score_ > 0.85 and model.best_estimator_[-1].nu == model.nu_
    values = model.decision_function(X)
    np.testing.assert_allclose(values, model.score_samples(X) - model.offset_, atol=1e-8)
    np.testing.assert_array_equal(model.predict(X), np.where(values > 0, 1, -1))
    assert set(model.held_out_predictions_) <= {-1, 1}
    assert np.isfinite(model.score(X, y))


def test_outliers_need_not_train(data):
    X, y = data
    model = OneClassSVMCV(scoring="roc_auc", train_on="inliers").fit(X, y)
    assert model.best_estimator_[-1].shape_fit_[0] == 300 and model.best_score_ > 0.9


def test_a_score_without_labels_needs_no_y(data):
    X, _ = data
    model = OneClassSVMCV(scoring=lambda estimator, X: float(np.mean(estimator.score_samples(X)))).fit(X)
    assert np.isfinite(model.best_score_) and np.isfinite(model.score(X))


def test_sparse_rows(data):
    X, y = data
    model = OneClassSVMCV(scoring="roc_auc").fit(sp.csr_array(X), y)
    assert model.predict(sp.csr_array(X)).shape == (len(y),)


def test_a_score_is_needed(data):
    with pytest.raises(ValueError, match="scoring='roc_auc'"):
        OneClassSVMCV().fit(*data)


def test_other_labels_are_refused_with_advice(data):
    X, y = data
    with pytest.raises(ValueError, match=r"np\.where"):
        OneClassSVMCV(scoring="roc_auc").fit(X, y == 1)
    with pytest.raises(ValueError, match="train_on='inliers' needs labels"):
        OneClassSVMCV(scoring=mean_score, train_on="inliers").fit(X)
    with pytest.raises(ValueError, match="inconsistent"):
        OneClassSVMCV(scoring="roc_auc").fit(X, y[:-1])


def test_an_unfitted_model_says_so():
    with pytest.raises(NotFittedError):
        OneClassSVMCV(scoring="roc_auc").decision_function([[0.0]])


def test_a_score_of_labels_needs_labels():
    with pytest.raises(ValueError, match="give y, 1 for inliers"):
        OneClassSVMCV(scoring="roc_auc").fit(np.random.default_rng(0).normal(size=(50, 2)))
