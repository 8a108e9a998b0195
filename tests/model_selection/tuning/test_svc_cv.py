import pickle
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GroupKFold, TimeSeriesSplit, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, RobustScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import SVC, SVCCV, SVRCV
from maxmargin.model_selection.checkpoint import CheckpointError

WEIGHTS = "weights and repeated rows are split into folds in different ways"
EXPECTED = {f"check_sample_weight_equivalence_on_{kind}_data": WEIGHTS for kind in ("dense", "sparse")}
# As with scikit-learn's SVC(probability=True): a sigmoid's constant moves the border between two classes.
CLASSES = {**EXPECTED, "check_classifiers_train": "the likeliest class near the border may not be predicted"}


@parametrize_with_checks(
    [SVCCV(), SVCCV(calibrate=None), SVRCV()],
    expected_failed_checks=lambda estimator: CLASSES if getattr(estimator, "calibrate", None) else EXPECTED,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def cancer():
    return train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)


@pytest.fixture(scope="module")
def tuned(cancer):
    X, _, y, _ = cancer
    return SVCCV().fit(X, y)


def test_the_default_is_a_good_model(tuned, cancer):
    _, X_test, _, y_test = cancer
    assert tuned.score(X_test, y_test) > 0.95
    assert tuned.status_ == "solved" and not tuned.interrupted_


def test_the_final_model_is_a_scaler_and_an_svc_with_the_parameters(tuned, cancer):
    X, X_test, y, _ = cancer
    scaler, svc = tuned.best_estimator_
    assert isinstance(scaler, StandardScaler) and isinstance(svc, SVC)
    assert (svc.C, svc.gamma, svc.kernel) == (tuned.C_, tuned.gamma_, tuned.kernel_)
    again = make_pipeline(StandardScaler(), SVC(C=tuned.C_, gamma=tuned.gamma_)).fit(X, y)
    np.testing.assert_array_equal(again.predict(X_test), tuned.predict(X_test))
    np.testing.assert_allclose(again.decision_function(X_test), tuned.decision_function(X_test), atol=1e-2)


def test_results_have_a_row_for_every_combination(tuned):
    results = tuned.cv_results_
    assert len(results["params"]) == len(tuned.path_) == len(results["mean_test_score"])
    last = results["stage"] == results["stage"].max()
    assert results["rank_test_score"][last].min() == 1 < results["rank_test_score"][~last].min()
    best = int(np.argmin(results["rank_test_score"]))
    assert results["mean_test_score"][best] == pytest.approx(tuned.best_score_)
    splits = np.array([results[f"split{k}_test_score"] for k in range(tuned.n_splits_)])
    np.testing.assert_allclose(splits.mean(axis=0), results["mean_test_score"])


def test_fits_repeat(tuned, cancer):
    X, X_test, y, _ = cancer
    again = clone(tuned).fit(X, y)
    assert again.best_params_ == tuned.best_params_
    np.testing.assert_array_equal(again.predict_proba(X_test), tuned.predict_proba(X_test))


def test_a_pickled_model_predicts_the_same(tuned, cancer):
    again = pickle.loads(pickle.dumps(tuned))
    np.testing.assert_array_equal(again.predict_proba(cancer[1]), tuned.predict_proba(cancer[1]))


@pytest.mark.parametrize("calibrate", ["sigmoid", "isotonic", "temperature"])
def test_probabilities_sum_to_one_and_follow_the_labels(calibrate):
    X, y = load_iris(return_X_y=True)
    labels = np.array(["b", "c", "a"])[y]
    model = SVCCV(calibrate=calibrate).fit(X, labels)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_, ["a", "b", "c"])
    assert (model.classes_[p.argmax(axis=1)] == labels).mean() > 0.95
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(p))


def test_there_are_no_probabilities_without_calibration():
    model = SVCCV(calibrate=None).fit(*load_iris(return_X_y=True))
    assert not hasattr(model, "predict_proba") and model.calibrator_ is None


def test_probabilities_are_calibrated():
    X, y = make_classification(3000, 10, flip_y=0.3, random_state=0)
    model = SVCCV().fit(X[:1000], y[:1000])
    p = model.predict_proba(X[1000:])[:, 1]
    for low, high in ((0.0, 0.5), (0.5, 1.0)):
        some = (p >= low) & (p < high)
        assert p[some].mean() == pytest.approx(y[1000:][some].mean(), abs=0.08)


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "roc_auc", "f1", "neg_log_loss"])
def test_other_scores_choose_and_are_reported(scoring):
    X, y = make_classification(200, 6, weights=[0.8], random_state=0)
    model = SVCCV(scoring=scoring).fit(X, y)
    assert np.isfinite(model.best_score_) and np.isfinite(model.score(X, y))
    if scoring == "neg_log_loss":
        assert model.best_score_ < 0


def test_a_scorer_may_be_a_function():
    X, y = load_iris(return_X_y=True)
    model = SVCCV(scoring=lambda model, X, y: -float((model.predict(X) != y).sum())).fit(X, y)
    assert model.best_score_ <= 0


def test_groups_and_time_series_are_split_by_their_splitters():
    X, y = make_classification(150, 5, random_state=0)
    groups = np.repeat(np.arange(15), 10)
    assert SVCCV(cv=GroupKFold(3)).fit(X, y, groups=groups).n_splits_ == 3
    assert SVCCV(cv=TimeSeriesSplit(4)).fit(X, y).n_splits_ == 4
    splits = [(np.arange(100), np.arange(100, 150))]
    assert SVCCV(cv=splits).fit(X, y).n_splits_ == 1


@pytest.mark.parametrize(("scale", "kind"), [("standard", StandardScaler), ("robust", RobustScaler)])
def test_features_are_scaled_as_asked(scale, kind):
    X, y = load_iris(return_X_y=True)
    assert isinstance(SVCCV(scale=scale).fit(X, y).best_estimator_[0], kind)


def test_unscaled_data_and_sparse_data():
    X, y = load_iris(return_X_y=True)
    assert isinstance(SVCCV(scale=None).fit(X, y).best_estimator_, SVC)
    model = SVCCV().fit(sp.csr_array(X), y)
    assert isinstance(model.best_estimator_[0], MaxAbsScaler) and model.score(sp.csr_array(X), y) > 0.9


def test_a_data_frame_gives_names():
    pd = pytest.importorskip("pandas")
    X, y = load_iris(return_X_y=True)
    frame = pd.DataFrame(X, columns=list("abcd"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SVCCV().fit(frame, pd.Series(y))
        assert model.score(frame, y) > 0.9
    np.testing.assert_array_equal(model.feature_names_in_, list("abcd"))


def test_it_works_in_a_pipeline():
    X, y = load_iris(return_X_y=True)
    assert make_pipeline(FunctionTransformer(np.log1p), SVCCV()).fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("kernel", ["linear", "laplacian", "auto"])
def test_other_kernels(kernel):
    X, y = load_iris(return_X_y=True)
    model = SVCCV(kernel=kernel).fit(X, y)
    assert model.kernel_ in (("linear", "rbf", "laplacian") if kernel == "auto" else (kernel,))
    assert model.score(X, y) > 0.9


def test_a_linear_problem_is_solved_by_a_linear_kernel_where_it_may_choose():
    X, y = make_classification(200, 300, n_informative=60, class_sep=2.0, random_state=0)
    model = SVCCV(kernel="auto").fit(X, y)
    tried = {p.params["kernel"] for p in model.path_}
    assert tried == {"linear", "rbf", "laplacian"} and model.best_score_ > 0.7


def test_refinement_tries_more():
    X, y = make_classification(200, 5, flip_y=0.2, random_state=0)
    counts = [len(SVCCV(refine=k).fit(X, y).path_) for k in (0, 1, 2)]
    assert counts[0] < counts[1] <= counts[2]


def test_one_standard_error_chooses_a_model_that_is_not_larger():
    X, y = make_classification(300, 5, flip_y=0.3, random_state=0)
    best, simple = SVCCV().fit(X, y), SVCCV(select="1se").fit(X, y)
    assert simple.C_ * simple.gamma_ <= best.C_ * best.gamma_
    assert simple.best_score_ <= best.best_score_


def test_weights_count():
    X, y = make_classification(200, 5, flip_y=0.2, random_state=0)
    weight = np.where(np.arange(200) < 150, 1.0, 0.0)
    y_wrong = np.where(weight == 0, 1 - y, y)
    model = SVCCV(cv=[(np.arange(100), np.arange(100, 150))]).fit(X, y_wrong, sample_weight=weight)
    assert (model.predict(X[:150]) == y[:150]).mean() > 0.7


def test_a_time_limit_keeps_the_best_so_far():
    X, y = make_classification(200, 5, flip_y=0.3, random_state=0)

    def slow(model, X, y):
        time.sleep(0.1)
        return float(np.mean(model.predict(X) == y))

    with pytest.warns(ConvergenceWarning, match="ended by max_time"):
        model = SVCCV(max_time=5.0, scoring=slow).fit(X, y)
    assert 1 <= len(model.path_) < 10 and len(model.predict(X)) == 200
    assert model.best_estimator_[-1].max_time is None


def test_no_time_at_all_is_an_error():
    X, y = make_classification(300, 10, random_state=0)
    with pytest.raises(TimeoutError, match="max_time"):
        SVCCV(max_time=0.0).fit(X, y)


def test_a_checkpoint_continues_where_it_ended(tmp_path, monkeypatch):
    X, y = make_classification(300, 6, flip_y=0.2, random_state=0)
    whole = SVCCV().fit(X, y)
    path = tmp_path / "scores"
    first = SVCCV(checkpoint=path).fit(X, y)
    assert first.best_params_ == whole.best_params_
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:6]))
    again = SVCCV(checkpoint=path).fit(X, y)
    assert again.best_params_ == whole.best_params_ and len(again.path_) == len(whole.path_)
    np.testing.assert_allclose(again.predict_proba(X), whole.predict_proba(X), atol=1e-6)
    with pytest.raises(CheckpointError, match="another search"):
        SVCCV(checkpoint=path).fit(X[:-1], y[:-1])


def test_more_rows_are_used_until_the_choice_is_the_same():
    X, y = make_classification(6000, 5, n_informative=4, n_redundant=0, flip_y=0.1, random_state=0)
    model = SVCCV().fit(X, y)
    sizes = [p.n_rows for p in model.path_]
    assert 1000 <= sizes[0] <= 1002 and sizes[-1] >= 4000 and sizes == sorted(sizes)
    assert model.n_rows_ == sizes[-1]


def test_an_unfitted_model_says_so():
    with pytest.raises(NotFittedError):
        SVCCV().predict([[0.0]])


@pytest.mark.parametrize(
    "bad",
    [{"kernel": "poly"}, {"scale": "minmax"}, {"refine": 3}, {"select": "worst"}, {"calibrate": "platt"}],
)
def test_bad_parameters_are_named(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        SVCCV(**bad).fit(*load_iris(return_X_y=True))


def test_verbose_prints_each_combination(capsys):
    model = SVCCV(verbose=1).fit(*load_iris(return_X_y=True))
    assert len(capsys.readouterr().out.splitlines()) == len(model.path_)


def test_one_class_is_an_error():
    with pytest.raises(ValueError, match="greater than one"):
        SVCCV().fit(np.zeros((10, 2)), np.zeros(10))


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_a_common_factor_of_weights_changes_c_only(factor):
    X, y = make_classification(300, 6, n_informative=4, random_state=0)
    plain, weighted = SVCCV().fit(X, y), SVCCV().fit(X, y, np.full(300, factor))
    by_class = SVCCV(class_weight={0: factor, 1: factor}).fit(X, y)
    assert plain.best_score_ == weighted.best_score_ == by_class.best_score_
    assert pytest.approx(factor * weighted.C_) == plain.C_ == pytest.approx(factor * by_class.C_)


def test_the_score_is_the_one_that_is_maximised(cancer):
    X, X_test, y, y_test = cancer
    model = SVCCV(scoring="neg_log_loss", refine=0).fit(X, y)
    assert model.score(X_test, y_test) == model.scorer_(model, X_test, y_test) < 0


def test_a_class_without_weight_is_left_out():
    X, y = make_classification(240, 8, n_informative=5, n_classes=3, random_state=0)
    model = SVCCV(refine=0).fit(X, y, (y != 2) * 1.0)
    assert list(model.classes_) == [0, 1] == list(model.best_estimator_.classes_)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    with pytest.raises(ValueError, match=r"[Ss]ample weights must"):
        SVCCV().fit(X, y, np.zeros(240))
    with pytest.raises(ValueError, match="must not be negative"):
        SVCCV().fit(X, y, -np.ones(240))


def test_parameters_that_are_not_all_numbers_stay_what_they_are():
    X, y = make_classification(200, 6, n_informative=4, random_state=0)
    gammas = SVCCV(kernel="auto", refine=0).fit(X, y).cv_results_["param_gamma"]
    assert {type(gamma) for gamma in gammas} == {float, str}


@pytest.mark.parametrize(("scale", "factor"), [(None, 1e30), ("standard", 1e200)])
def test_features_that_overflow_are_refused_with_advice(scale, factor):
    X, y = make_classification(100, 6, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.raises(ValueError, match="scale='robust'"):
            SVCCV(scale=scale).fit(factor * X, y)


def test_the_final_fit_has_its_share_of_the_time_whatever_tuning_took(cancer):
    class Late(SVCCV):
        def _finish(self, *arguments):
            time.sleep(2.0)
            super()._finish(*arguments)

    X, _, y, _ = cancer
    assert Late(max_time=2.0).fit(X, y).status_ == "solved"


def test_more_features_than_rows_are_learnt():
    X, y = make_classification(
        580, 2000, n_informative=100, n_redundant=0, class_sep=3.0, flip_y=0.05, random_state=1
    )
    model = SVCCV().fit(X[:80], y[:80])  # for small C all rows get the same label
    assert model.score(X[80:], y[80:]) > 0.75


def test_rare_classes_are_found_if_the_score_asks_for_them():
    X, y = make_classification(
        3000, 10, n_informative=6, weights=[0.95], flip_y=0.02, class_sep=0.8, n_clusters_per_class=3,
        random_state=4,
    )  # fmt: skip
    model = SVCCV(scoring="balanced_accuracy").fit(X[:800], y[:800])
    assert model.score(X[800:], y[800:]) > 0.65  # 0.5 without the rare class


@pytest.mark.parametrize("scale", ["standard", "robust", None])
def test_scikit_learn_may_be_configured_to_make_data_frames(scale):
    frame = load_iris(as_frame=True).data
    y = load_iris().target
    plain = SVCCV(scale=scale, refine=0).fit(frame, y)
    with sklearn.config_context(transform_output="pandas"):
        model = SVCCV(scale=scale, refine=0).fit(frame, y)
        assert model.best_params_ == plain.best_params_
        np.testing.assert_array_equal(model.predict(frame), plain.predict(frame))
