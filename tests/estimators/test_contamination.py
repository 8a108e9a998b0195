import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_moons
from sklearn.ensemble import IsolationForest
from sklearn.preprocessing import StandardScaler

from maxmargin import L2OneClassSVM, OneClassSVM, OneClassSVMCV
from maxmargin.estimators._contamination import share_below, three_sigma
from maxmargin.model_selection import SVMSearchCV

BOTH = [OneClassSVM(nu=0.2), L2OneClassSVM()]
KERNELS = ["rbf", "laplacian", "linear", "poly", "sigmoid"]


def name(model):
    return type(model).__name__


def standard(loader):
    return StandardScaler().fit_transform(loader(return_X_y=True)[0])


def share(model, X, weight=None):
    return np.average(model.predict(X) == -1, weights=weight)


@pytest.mark.parametrize("model", BOTH, ids=name)
@pytest.mark.parametrize("asked", [0.01, 0.07, 0.1, 0.25, 0.5])
def test_the_share_of_training_rows_is_that_of_an_isolation_forest(model, asked):
    X = np.random.default_rng(0).normal(size=(300, 4))
    ours = clone(model).set_params(contamination=asked).fit(X)
    theirs = IsolationForest(contamination=asked, n_estimators=50, random_state=0).fit(X)
    assert share(ours, X) == pytest.approx(asked, abs=1e-12)
    assert abs(share(ours, X) - share(theirs, X)) <= 1.5 / len(X)


@pytest.mark.parametrize("model", BOTH, ids=name)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("form", ["dense", "float32", "sparse"])
def test_the_share_holds_for_every_kernel_and_kind_of_data(model, kernel, form):
    X = np.abs(standard(load_wine)) + 0.1
    X = {"dense": X, "float32": X.astype(np.float32), "sparse": sp.csr_array(X)}[form]
    ours = clone(model).set_params(kernel=kernel, gamma=0.01, contamination=0.1).fit(X)
    assert 0.08 <= share(ours, X) <= 0.1
    assert ours.intercept_ == -ours.offset_
    np.testing.assert_allclose(ours.decision_function(X), ours.score_samples(X) - ours.offset_)


@pytest.mark.parametrize("model", BOTH, ids=name)
def test_given_matrices_and_functions_have_the_same_threshold(model):
    X = standard(load_wine)
    gamma = 0.05
    K = np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))
    asked = {"tol": 1e-8, "contamination": 0.1}
    expected = clone(model).set_params(gamma=gamma, **asked).fit(X).offset_

    def function(A, B):
        return np.exp(-gamma * ((A[:, None] - B) ** 2).sum(axis=2))

    for kernel, Z in (("precomputed", K), (function, X)):
        ours = clone(model).set_params(kernel=kernel, **asked).fit(Z)
        assert ours.offset_ == pytest.approx(expected, rel=1e-5)
        assert share(ours, Z) == pytest.approx(17 / 178)


@pytest.mark.parametrize("contamination", ["auto", 0.13])
@pytest.mark.parametrize("model", BOTH, ids=name)
def test_weights_equal_repetition(model, contamination):
    X = standard(load_wine)
    w = np.random.default_rng(0).integers(0, 4, len(X))
    model = clone(model).set_params(gamma=0.1, tol=1e-9, contamination=contamination)
    a = clone(model).fit(X, sample_weight=w)
    b = clone(model).fit(np.repeat(X, w, axis=0))
    # In units of the scores, which OneClassSVM scales by the sum of weights.
    assert a.offset_ == pytest.approx(b.offset_, rel=1e-6)
    if contamination != "auto":
        assert 0.1 <= share(a, X, w) <= 0.13


@pytest.mark.parametrize("model", BOTH, ids=name)
def test_equal_rows_are_on_one_side_and_no_more_than_the_share_is_outside(model):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(40, 2)), 10, axis=0)[rng.permutation(400)]
    for dtype in (np.float64, np.float32):
        ours = clone(model).set_params(contamination=0.11).fit(X.astype(dtype))
        outside = ours.predict(X.astype(dtype)) == -1
        # Four of the 40 points, a fifth would be too much; or three, where two have nearly equal scores.
        assert outside.sum() in (30, 40)
        assert len(np.unique(X[outside], axis=0)) == outside.sum() / 10


@pytest.mark.parametrize("model", BOTH, ids=name)
def test_rows_that_are_all_equal_are_inliers(model):
    X = np.ones((20, 3))
    for contamination in ("auto", 0.2):
        ours = clone(model).set_params(contamination=contamination, gamma=1.0)
        if name(model) == "OneClassSVM" and contamination == "auto":
            continue  # nu decides, as in scikit-learn
        assert (ours.fit_predict(X) == 1).all()
        assert ours.predict([[9.0, 9.0, 9.0]]) == -1


@pytest.mark.parametrize("model", BOTH, ids=name)
def test_coefficients_scores_and_certificate_do_not_depend_on_it(model):
    X = standard(load_breast_cancer)
    a = clone(model).fit(X)
    b = clone(model).set_params(contamination=0.05).fit(X)
    np.testing.assert_array_equal(a.dual_coef_, b.dual_coef_)
    np.testing.assert_array_equal(a.score_samples(X), b.score_samples(X))
    assert (a.dual_gap_, a.relative_gap_, a.status_) == (b.dual_gap_, b.relative_gap_, b.status_)
    assert a.offset_ != b.offset_


@pytest.mark.parametrize("model", BOTH, ids=name)
def test_a_warm_start_has_the_threshold_of_its_own_share(model):
    X = standard(load_wine)
    warm = clone(model).set_params(warm_start=True, contamination=0.1).fit(X)
    warm.set_params(contamination=0.3).fit(X)
    assert share(warm, X) == pytest.approx(53 / 178)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("contamination", ["auto", 0.1])
@pytest.mark.parametrize("limit", [{"max_time": 0.0}, {"max_iter": 1}])
@pytest.mark.parametrize("model", BOTH, ids=name)
def test_a_fit_without_time_has_a_finite_threshold(model, limit, contamination):
    X = standard(load_breast_cancer)
    ours = clone(model).set_params(contamination=contamination, **limit).fit(X)
    assert np.isfinite(ours.offset_).all()
    if contamination != "auto":
        assert share(ours, X) <= 0.1


# Clean samples: what the default of L2OneClassSVM calls outliers.
def gaussian(d):
    return lambda rng: rng.normal(size=(1000, d))


CLEAN = {
    **{f"gaussian, {d}": gaussian(d) for d in (1, 2, 5, 10, 30)},
    "uniform": lambda rng: rng.random((1000, 2)),
    "exponential": lambda rng: rng.exponential(size=(1000, 3)),
    "two clusters": lambda rng: rng.normal(size=(1000, 2)) + 5.0 * rng.integers(2, size=(1000, 1)),
    "moons": lambda rng: make_moons(1000, noise=0.1, random_state=1)[0],
}


@pytest.mark.parametrize("kind", CLEAN)
def test_the_default_calls_few_clean_rows_outliers(kind):
    rng = np.random.default_rng(0)
    X, new = CLEAN[kind](rng), CLEAN[kind](rng)
    model = L2OneClassSVM().fit(X)
    assert share(model, X) <= 0.03 and share(model, new) <= 0.05
    margin = L2OneClassSVM(contamination="margin").fit(X)
    assert share(margin, X) >= 0.08  # the paper's boundary


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("loader", [load_iris, load_wine, load_breast_cancer])
def test_the_default_calls_support_vectors_outliers_only_and_at_most_a_tenth(loader, C):
    X = standard(loader)
    model = L2OneClassSVM(C=C).fit(X)
    outside = np.flatnonzero(model.predict(X) == -1)
    assert set(outside) <= set(model.support_) and len(outside) <= len(X) / 10


def test_the_default_finds_rows_that_are_far_off():
    rng = np.random.default_rng(0)
    far = rng.uniform(5, 9, size=(6, 5)) * rng.choice([-1.0, 1.0], size=(6, 5))
    X = np.vstack([rng.normal(size=(300, 5)), far])
    model = L2OneClassSVM().fit(X)
    assert (model.predict(X)[-6:] == -1).all() and share(model, X) <= 0.04
    assert (model.predict(3.0 * far) == -1).all()


def test_a_threshold_is_between_scores_and_below_the_smallest_if_no_row_may_be_outside():
    ones = np.ones(5)
    scores = np.array([5.0, 1.0, 4.0, 2.0, 2.0])
    assert share_below(scores, ones, 0.2) == 1.5
    assert share_below(scores, ones, 0.4) == 1.5  # not one of two equal scores
    assert share_below(scores, ones, 0.5) == 1.5
    assert share_below(scores, np.array([1.0, 1, 1, 0.25, 0.25]), 0.5) == 3.0
    assert 0.99 < share_below(scores, ones, 0.1) < 1.0


def test_at_most_a_tenth_is_three_sigma_below_the_mean():
    rng = np.random.default_rng(0)
    for _ in range(200):
        scores = rng.normal(size=50) ** rng.integers(1, 6) * np.where(rng.random(50) < 0.1, -30.0, 1.0)
        weight = rng.random(50)
        below = weight[scores < three_sigma(scores, weight, np.inf)].sum()
        assert below <= 0.1 * weight.sum()
    assert three_sigma(scores, weight, -1e9) < -1e9


@pytest.mark.parametrize("model", BOTH, ids=name)
def test_a_search_over_shares_has_the_scores_of_separate_fits(model):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(150, 2)), rng.uniform(-6, 6, size=(30, 2))])
    y = np.repeat([1, -1], [150, 30])
    folds = [(np.arange(0, 180, 2), np.arange(1, 180, 2)), (np.arange(1, 180, 2), np.arange(0, 180, 2))]
    model = clone(model).set_params(tol=1e-8, gamma=0.5)
    grid = {"contamination": ["auto", 0.1, 0.2]}
    search = SVMSearchCV(model, grid, scoring="balanced_accuracy", cv=folds).fit(X, y)
    for k, contamination in enumerate(grid["contamination"]):
        for f, (train, test) in enumerate(folds):
            fitted = clone(model).set_params(contamination=contamination).fit(X[train])
            found = fitted.predict(X[test])
            expected = 0.5 * ((found[y[test] == 1] == 1).mean() + (found[y[test] == -1] == -1).mean())
            assert search.cv_results_[f"split{f}_test_score"][k] == pytest.approx(expected)


def test_a_tuner_scores_and_ends_with_the_share():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(180, 2)), rng.uniform(-8, 8, size=(20, 2))])
    y = np.repeat([1, -1], [180, 20])
    tuner = OneClassSVMCV(scoring="balanced_accuracy", contamination=0.1, refine=0).fit(X, y)
    assert share(tuner, X) == pytest.approx(0.1)
    # The score of held-out rows is that of labels from each fold's own threshold.
    found = tuner.held_out_predictions_
    assert 0.05 <= np.mean(found == -1) <= 0.2
