import os
import re
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from joblib import parallel_config, register_parallel_backend
from joblib._parallel_backends import ThreadingBackend
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_blobs, make_classification
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer, roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    LeaveOneOut,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KernelCenterer, StandardScaler

from maxmargin import (
    SVC,
    SVR,
    AllDistancesSVC,
    CrammerSingerSVC,
    IncrementalSVC,
    IncrementalSVR,
    L2OneClassSVM,
    NuSVC,
    NuSVR,
    OneClassSVM,
    QuantileSVR,
)
from maxmargin.estimators.base import BaseSVM
from maxmargin.model_selection import SVMSearchCV
from maxmargin.model_selection import search as search_module
from maxmargin.model_selection.checkpoint import Checkpoint
from maxmargin.solvers.c_path import path as c_path

GRID = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.01, 0.1, 1.0]}
TIGHT = {"tol": 1e-7}


def cancer(n=200):
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:n], y[:n]


def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def both(estimator, grid, X, y=None, fit=None, rival=None, **options):
    ours = SVMSearchCV(estimator, grid, **options).fit(X, y, **(fit or {}))
    theirs = GridSearchCV(rival or estimator, grid, **options).fit(X, y, **(fit or {}))
    return ours, theirs


def assert_same_results(ours, theirs, atol=0.0):
    assert set(ours.cv_results_) == set(theirs.cv_results_)
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    for key in ours.cv_results_:
        if "test" in key or "train" in key:
            np.testing.assert_allclose(ours.cv_results_[key], theirs.cv_results_[key], atol=atol, err_msg=key)
    if hasattr(theirs, "best_index_"):
        assert ours.best_index_ == theirs.best_index_
        assert ours.best_params_ == theirs.best_params_


@pytest.mark.parametrize("data", [cancer, iris])
def test_scores_equal_those_of_scikit_learns_search_with_scikit_learns_svc(data):
    X, y = data()
    ours, theirs = both(SVC(**TIGHT), GRID, X, y, rival=svm.SVC(tol=1e-7), return_train_score=True)
    assert_same_results(ours, theirs)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("kernel", ["linear", "poly", "sigmoid", "rbf"])
def test_all_kernels_give_the_same_scores(kernel):
    X, y = iris()
    grid = {"C": [0.01, 0.1, 1.0], "gamma": [0.01, 0.05]}
    estimator = {"kernel": kernel, "coef0": 0.5, "degree": 2}
    ours, theirs = both(SVC(**estimator, tol=1e-6), grid, X, y, rival=svm.SVC(**estimator, tol=1e-6))
    assert_same_results(ours, theirs)


def test_classes_that_are_all_at_the_bound_get_libsvms_offset():
    X, y = load_digits(return_X_y=True)
    grid = {"C": [0.1, 1.0], "gamma": [1e-5, 1e-3]}
    ours, theirs = both(SVC(), grid, X[:600], y[:600], rival=svm.SVC())
    difference = np.abs(ours.cv_results_["mean_test_score"] - theirs.cv_results_["mean_test_score"])
    assert difference.max() <= 2 / 600


@pytest.mark.parametrize("memory", [0.0, 2000.0])
@pytest.mark.parametrize("kind", ["folds", "bootstrap", "pipeline", "given", "weights"])
@pytest.mark.parametrize("classes", [2, 4])
def test_scores_are_those_of_fits_where_the_bias_is_not_unique(kind, classes, memory):
    # Balanced classes and a small C: all multipliers are at their bounds, the bias has an interval.
    X, y = make_classification(
        120,
        6,
        n_informative=4,
        n_classes=classes,
        weights=[0.4, 0.6] if classes == 2 else None,
        random_state=4,
    )
    rng = np.random.default_rng(0)
    estimator = SVC(class_weight="balanced", tol=1e-8)
    grid = {"C": [1e-3, 0.03, 1.0], "gamma": [0.05, 0.5]}
    options = {"cv": 3}
    if kind == "bootstrap":
        options["cv"] = [(rng.integers(0, 120, 120), np.arange(120)) for _ in range(3)]
    elif kind == "pipeline":
        estimator, grid = (
            make_pipeline(StandardScaler(), estimator),
            {f"svc__{k}": v for k, v in grid.items()},
        )
    elif kind == "given":
        X, estimator, grid = (
            rbf_kernel(X, gamma=0.1),
            clone(estimator).set_params(kernel="precomputed"),
            {"C": grid["C"]},
        )
    fit = {"sample_weight": rng.integers(1, 4, 120)} if kind == "weights" else {}
    ours = SVMSearchCV(estimator, grid, memory=memory, **options).fit(X, y, **fit)
    assert_same_results(ours, GridSearchCV(estimator, grid, **options).fit(X, y, **fit))


def test_a_machine_of_the_path_with_a_wrong_sum_is_trained_by_an_ordinary_fit(monkeypatch):
    X, y = cancer(150)
    true = c_path.solve_all

    def damaged(K, diag, grid, found, flag):
        true(K, diag, grid, found, flag)
        found.u[..., 0] += 0.01
        found.decision[:] = 1.0

    monkeypatch.setattr(c_path, "solve_all", damaged)
    ours, theirs = both(SVC(**TIGHT), GRID, X, y, cv=3)
    assert_same_results(ours, theirs)
    assert set(ours.trainers_) == {"warm fits: not solved within the budget of the C path"}


def test_at_the_usual_tolerance_scores_differ_by_a_few_rows_at_most():
    X, y = make_classification(600, 10, flip_y=0.1, random_state=0)
    ours, theirs = both(SVC(), GRID, X, y, rival=svm.SVC())
    difference = np.abs(ours.cv_results_["mean_test_score"] - theirs.cv_results_["mean_test_score"])
    assert difference.max() <= 3 / 600


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (NuSVC(**TIGHT), {"nu": [0.05, 0.2], "gamma": [0.1, 1.0]}),
        (AllDistancesSVC(**TIGHT), {"nu": [0.1, 0.5], "gamma": [0.1, 1.0]}),
        (CrammerSingerSVC(**TIGHT), {"C": [0.1, 1.0, 10.0], "gamma": [0.1, "scale"]}),
        (SVC(loss="squared_hinge", **TIGHT), GRID),
        (SVC(solver="smo", **TIGHT), {"C": [0.1, 1.0], "gamma": [0.1, 1.0]}),
        (SVC(**TIGHT), {"C": [1.0, 10.0], "kernel": ["linear", "rbf"], "class_weight": [None, "balanced"]}),
        (SVC(**TIGHT), [{"C": [1.0, 10.0]}, {"kernel": ["linear"], "C": [0.1, 1.0]}]),
        (SVC(**TIGHT), {"gamma": [0.1, 1.0]}),
        (SVC(**TIGHT), {"C": [np.inf, 1.0]}),
        (IncrementalSVC(), {"C": [0.1, 1.0], "gamma": [0.1, 1.0]}),
        (IncrementalSVC(loss="hinge"), {"C": [0.1, 1.0]}),
        (IncrementalSVR(), {"C": [0.1, 1.0], "epsilon": [0.1, 0.3]}),
    ],
)
def test_every_estimator_gets_the_scores_of_fits_one_by_one(estimator, grid):
    X, y = iris()
    assert_same_results(*both(estimator, grid, X, y))


@pytest.mark.parametrize("estimator", [OneClassSVM(**TIGHT), L2OneClassSVM(C=10.0, **TIGHT)])
def test_outlier_detectors_are_searched_by_a_scorer(estimator):
    X, y = make_blobs(120, centers=1, random_state=0)
    X = np.vstack([X, X[:20] + 8.0])
    y = np.where(np.arange(140) < 120, 1, -1)
    grid = {"gamma": [0.05, 0.5], ("nu" if isinstance(estimator, OneClassSVM) else "C"): [0.1, 0.3, 0.6]}
    ours, theirs = both(estimator, grid, X, y, scoring="roc_auc", cv=StratifiedKFold(3))
    assert_same_results(ours, theirs, atol=1e-6)


def test_a_scaler_is_fitted_per_fold_and_its_parameters_are_searched():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:150], y[:150]
    pipeline = make_pipeline(StandardScaler(), PCA(random_state=0), SVC(**TIGHT))
    grid = {"pca__n_components": [3, 5], "svc__C": [0.1, 1.0, 10.0], "svc__gamma": [0.01, "scale"]}
    assert_same_results(*both(pipeline, grid, X, y, cv=3))


@pytest.mark.parametrize("scoring", ["accuracy", "f1", "roc_auc", "balanced_accuracy", "average_precision"])
def test_any_scorer_gets_what_it_asks_for(scoring):
    X, y = cancer(150)
    assert_same_results(*both(SVC(**TIGHT), GRID, X, y, scoring=scoring, cv=3), atol=1e-6)


def test_several_metrics_and_a_refit_by_one_of_them():
    X, y = cancer(150)
    options = {"scoring": {"auc": "roc_auc", "acc": "accuracy"}, "refit": "auc", "return_train_score": True}
    ours, theirs = both(SVC(**TIGHT), GRID, X, y, **options)
    assert_same_results(ours, theirs, atol=1e-6)
    assert ours.multimetric_
    assert set(ours.scorer_) == {"auc", "acc"}


def test_a_callable_that_looks_at_the_fitted_estimator_gets_a_fitted_one():
    X, y = cancer(120)

    def few_vectors(estimator, X, y):
        return -len(estimator.support_)

    assert_same_results(*both(SVC(**TIGHT), {"C": [0.1, 1.0]}, X, y, scoring=few_vectors, cv=3), atol=2)


def test_a_scorer_of_a_precomputed_kernel_gets_the_columns_of_the_training_rows():
    X, y = cancer(90)
    shapes = set()

    def seen(estimator, X, y):
        shapes.add(X.shape)
        return float(len(estimator.support_) > 0)

    SVMSearchCV(SVC(kernel="precomputed"), {"C": [1.0, 2.0]}, scoring=seen, cv=3, n_jobs=1).fit(X @ X.T, y)
    assert shapes == {(30, 60)}


def test_a_refit_rule_may_be_a_function():
    X, y = iris()
    search = SVMSearchCV(SVC(), GRID, refit=lambda results: 3).fit(X, y)
    assert search.best_index_ == 3
    assert search.best_estimator_.get_params()["C"] == search.cv_results_["params"][3]["C"]


def test_without_refit_there_is_no_estimator():
    X, y = iris()
    search = SVMSearchCV(SVC(), GRID, refit=False).fit(X, y)
    assert not hasattr(search, "best_estimator_")
    assert search.best_score_ > 0.9


@pytest.mark.parametrize(
    "cv",
    [3, StratifiedKFold(4, shuffle=True, random_state=1), ShuffleSplit(3, random_state=0), LeaveOneOut()],
)
def test_any_splitter_will_do(cv):
    X, y = iris()
    X, y = X[::3], y[::3]
    assert_same_results(*both(SVC(**TIGHT), {"C": [0.5, 5.0], "gamma": [0.1, 1.0]}, X, y, cv=cv))


def test_groups_reach_the_splitter():
    X, y = iris()
    groups = np.arange(150) % 5
    options = {"cv": GroupKFold(5), "fit": {"groups": groups}}
    assert_same_results(*both(SVC(**TIGHT), {"C": [0.5, 5.0]}, X, y, **options))


def test_rows_that_are_drawn_twice_count_twice():
    X, y = cancer(100)
    rng = np.random.default_rng(0)
    splits = [(rng.integers(0, 100, 100), rng.integers(0, 100, 30)) for _ in range(3)]
    assert_same_results(*both(SVC(**TIGHT), {"C": [0.1, 1.0], "gamma": [0.1]}, X, y, cv=splits))


@pytest.mark.parametrize("memory", [0.0, 2000.0])
@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (SVC(kernel="precomputed", **TIGHT), {"C": [0.1, 1.0]}),
        (NuSVC(kernel="precomputed"), {"nu": [0.1, 0.2]}),
    ],
)
@pytest.mark.parametrize("data", [cancer, iris])
def test_rows_of_a_given_matrix_that_are_drawn_twice_count_twice(estimator, grid, memory, data):
    X, y = data()
    X, y = X[::2], y[::2]
    n, rng = len(y), np.random.default_rng(0)
    # As many as there are rows: the rows alone are a square matrix too, but a wrong one.
    splits = [(rng.integers(0, n, n), rng.integers(0, n, 30)) for _ in range(3)]
    K = np.exp(-0.1 * np.square(X[:, None] - X[None]).sum(axis=2))
    theirs = GridSearchCV(estimator, grid, cv=splits).fit(K, y)
    assert_same_results(SVMSearchCV(estimator, grid, cv=splits, memory=memory).fit(K, y), theirs)


@pytest.mark.parametrize("memory", [0.0, 2000.0])
def test_a_kernel_that_a_pipeline_changes_is_split_as_scikit_learn_does(memory):
    X, y = iris()
    rng = np.random.default_rng(0)
    splits = [(rng.permutation(150), np.arange(150)), (rng.integers(0, 150, 150), np.arange(150))]
    pipeline = make_pipeline(KernelCenterer(), SVC(kernel="precomputed", **TIGHT))
    theirs = GridSearchCV(pipeline, {"svc__C": [0.1, 1.0]}, cv=splits).fit(X @ X.T, y)
    ours = SVMSearchCV(pipeline, {"svc__C": [0.1, 1.0]}, cv=splits, memory=memory).fit(X @ X.T, y)
    assert_same_results(ours, theirs)


def test_sample_weights_are_honoured():
    X, y = cancer(150)
    weight = np.random.default_rng(0).uniform(0, 2, 150)
    weight[:5] = 0
    options = {"fit": {"sample_weight": weight}, "cv": 3}
    assert_same_results(*both(SVC(**TIGHT), GRID, X, y, **options))


def test_sparse_frames_strings_and_precomputed_kernels_are_accepted():
    X, y = iris()
    names = np.array(["a", "b", "c"])[y]
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}
    dense = SVMSearchCV(SVC(**TIGHT), grid).fit(X, names)
    assert dense.predict(X).dtype.kind == "U"
    frame = pd.DataFrame(X, columns=list("wxyz"))
    for data in (sp.csr_matrix(X), frame, X.astype(np.float32)):
        other = SVMSearchCV(SVC(**TIGHT), grid).fit(data, names)
        np.testing.assert_allclose(other.cv_results_["mean_test_score"], dense.cv_results_["mean_test_score"])
    assert list(SVMSearchCV(SVC(), grid).fit(frame, y).feature_names_in_) == list("wxyz")
    K = X @ X.T
    linear = SVMSearchCV(SVC(kernel="linear", **TIGHT), {"C": [0.1, 1.0]}).fit(X, y)
    given = SVMSearchCV(SVC(kernel="precomputed", **TIGHT), {"C": [0.1, 1.0]}).fit(K, y)
    called = SVMSearchCV(SVC(kernel=lambda A, B: A @ B.T, **TIGHT), {"C": [0.1, 1.0]}).fit(X, y)
    for other in (given, called):
        np.testing.assert_allclose(
            other.cv_results_["mean_test_score"], linear.cv_results_["mean_test_score"]
        )


@pytest.mark.parametrize("path", ["auto", "up", "down", "cold", [-1, 0, 1, -1, 3, 4]])
def test_the_path_does_not_change_the_scores(path):
    X, y = iris()
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}
    search = SVMSearchCV(SVC(**TIGHT), grid, path=path).fit(X, y)
    other = GridSearchCV(SVC(**TIGHT), grid).fit(X, y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"])
    starts = sum(parent == -1 for parent, _ in search.path_)
    assert len(search.path_) == 6
    assert starts == (6 if path == "cold" else 2)


@pytest.mark.parametrize("memory", [0.0, 2000.0])
@pytest.mark.parametrize(
    ("estimator", "grid", "cold"),
    [
        (NuSVC(), {"nu": [0.05, 0.1, 0.2], "gamma": [0.1, 1.0]}, 2),
        (SVC(loss="squared_hinge"), {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}, 2),
        (CrammerSingerSVC(), {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}, 2),
        (AllDistancesSVC(), {"nu": [0.1, 0.3, 0.5], "gamma": [0.1, 1.0]}, 2),
        (AllDistancesSVC(), {"mu": [0.1, 0.2, 0.4], "gamma": [0.1, 1.0]}, 2),
        (NuSVR(), {"nu": [0.1, 0.3, 0.5], "gamma": [0.1, 1.0]}, 2),
        (QuantileSVR(), {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}, 2),
        (QuantileSVR(), {"quantile": [0.2, 0.5, 0.8], "gamma": [0.1, 1.0]}, 2),
        (SVR(max_time=1e6), {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}, 2),
        (OneClassSVM(), {"nu": [0.1, 0.3, 0.5], "gamma": [0.1, 1.0]}, 2),
        (L2OneClassSVM(), {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}, 1),
        (L2OneClassSVM(solver="maxminover"), {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}, 1),
    ],
)
def test_every_node_with_a_parent_starts_from_its_solution(monkeypatch, estimator, grid, cold, memory):
    X, y = iris()
    starts, solve = [], BaseSVM._solve

    def counted(self, *args, **options):
        starts.append(all(problem.warm is not None for problem in args[3]))
        return solve(self, *args, **options)

    def score(estimator, X, y=None):
        return float(np.mean(estimator.predict(X)))

    monkeypatch.setattr(BaseSVM, "_solve", counted)
    SVMSearchCV(estimator, grid, scoring=score, cv=3, refit=False, n_jobs=1, memory=memory).fit(X, y)
    assert starts.count(False) == 3 * cold
    assert starts.count(True) == 3 * (6 - cold)


@pytest.mark.parametrize("path", [[0], [1, 0, -1, -1], [-1, -1, -1, 9], "sideways"])
def test_an_invalid_path_is_refused(path):
    X, y = iris()
    with pytest.raises(ValueError, match="path"):
        SVMSearchCV(SVC(), {"C": [0.1, 1.0, 2.0, 3.0]}, path=path).fit(X, y)


def test_a_small_memory_budget_changes_the_way_not_the_scores():
    X, y = cancer(150)
    whole = SVMSearchCV(SVC(**TIGHT), GRID).fit(X, y)
    rows = SVMSearchCV(SVC(**TIGHT), GRID, memory=0.0).fit(X, y)
    np.testing.assert_allclose(rows.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"])


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (LogisticRegression(), "got LogisticRegression of sklearn. Use"),
        (make_pipeline(StandardScaler(), svm.SVC()), "got SVC of sklearn. Import SVC from maxmargin, or use"),
    ],
)
def test_other_estimators_are_refused_with_their_library_and_what_to_use(other, named):
    X, y = iris()
    with pytest.raises(TypeError, match=f"{named} sklearn.model_selection.GridSearchCV"):
        SVMSearchCV(other, {}).fit(X, y)


def test_a_node_that_fails_is_counted_as_scikit_learn_does():
    X, y = iris()
    with pytest.warns(FitFailedWarning, match="5 fits failed"):
        search = SVMSearchCV(SVC(), {"C": [1.0, -1.0]}).fit(X, y)
    assert np.isnan(search.cv_results_["mean_test_score"][1])
    assert search.best_params_ == {"C": 1.0}
    with pytest.raises(ValueError, match="All the"):
        SVMSearchCV(SVC(), {"C": [-1.0]}).fit(X, y)
    with pytest.raises(ValueError, match="'C' parameter"):
        SVMSearchCV(SVC(), {"C": [1.0, -1.0]}, error_score="raise").fit(X, y)


def test_a_fold_without_one_of_the_classes_is_counted_as_failed():
    X, y = cancer(60)
    folds = PredefinedSplit(y)  # each fold trains on one class
    with pytest.raises(ValueError, match="All the"):
        SVMSearchCV(SVC(), {"C": [1.0]}, cv=folds).fit(X, y)


def test_the_search_is_an_estimator_like_any_other():
    X, y = iris()
    search = SVMSearchCV(SVC(), GRID, cv=3, path="up", memory=100.0)
    copy = clone(search)
    assert copy.get_params()["path"] == "up"
    assert cross_val_score(search, X, y, cv=3).mean() > 0.9
    search.fit(X, y)
    assert search.score(X, y) == pytest.approx(np.mean(search.predict(X) == y))
    assert search.decision_function(X).shape == (150, 3)
    assert list(search.classes_) == [0, 1, 2]


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_parallel_work_gives_the_same_results(backend):
    X, y = iris()
    alone = SVMSearchCV(SVC(), GRID, n_jobs=1).fit(X, y)
    with parallel_config(backend=backend):
        together = SVMSearchCV(SVC(), GRID, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(
        alone.cv_results_["mean_test_score"], together.cv_results_["mean_test_score"]
    )


class ListsOnly(ThreadingBackend):
    """A backend without results before all are there, as Ray's and that of `multiprocessing`."""

    supports_return_generator = False


def test_a_backend_that_returns_lists_gets_some_jobs_at_a_time(monkeypatch, tmp_path):
    X, y = iris()
    register_parallel_backend("lists only", ListsOnly)
    monkeypatch.setattr("maxmargin.model_selection.search._JOBS_AT_ONCE", 1)
    events, add, run_job = [], Checkpoint.add, search_module.run_job
    monkeypatch.setattr(Checkpoint, "add", lambda *args: (events.append("kept"), add(*args)))
    monkeypatch.setattr(search_module, "run_job", lambda *args: (events.append("run"), run_job(*args))[1])
    alone = SVMSearchCV(SVC(), GRID, n_jobs=1).fit(X, y)
    events.clear()
    with parallel_config(backend="lists only"):
        together = SVMSearchCV(SVC(), GRID, n_jobs=2, checkpoint=tmp_path / "kept.jsonl").fit(X, y)
    np.testing.assert_array_equal(
        alone.cv_results_["mean_test_score"], together.cv_results_["mean_test_score"]
    )
    assert "kept" in events[: len(events) - 1 - events[::-1].index("run")]  # before the last job was run


def test_a_search_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    X, y = iris()
    file = tmp_path / "search.jsonl"
    whole = SVMSearchCV(SVC(), GRID, n_jobs=1).fit(X, y)
    ran = []
    original = search_module.run_job

    def stop_after_four(*args):
        if len(ran) == 2:
            raise KeyboardInterrupt
        ran.append(args[-1])
        return original(*args)

    monkeypatch.setattr(search_module, "run_job", stop_after_four)
    with pytest.warns(ConvergenceWarning, match="resumed"):
        part = SVMSearchCV(SVC(), GRID, n_jobs=1, checkpoint=file).fit(X, y)
    assert part.interrupted_
    assert np.isfinite(part.best_score_)
    assert np.isnan(part.cv_results_["mean_test_score"]).any()
    assert part.predict(X).shape == (150,)
    with file.open("a") as handle:
        handle.write('{"folds": [0], "nodes": [1')  # cut off
    again = []
    monkeypatch.setattr(search_module, "run_job", lambda *args: again.append(args[-1]) or original(*args))
    resumed = SVMSearchCV(SVC(), GRID, n_jobs=1, checkpoint=file).fit(X, y)
    assert not resumed.interrupted_
    assert len(again) == 3 - 2
    np.testing.assert_allclose(resumed.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"])


def test_a_checkpoint_of_another_search_is_refused(tmp_path):
    X, y = iris()
    file = tmp_path / "search.jsonl"
    SVMSearchCV(SVC(), GRID, checkpoint=file).fit(X, y)
    with pytest.raises(ValueError, match="another search"):
        SVMSearchCV(SVC(), GRID, checkpoint=file).fit(X + 1, y)
    (tmp_path / "other").write_text("hello\n")
    with pytest.raises(ValueError, match="not a checkpoint"):
        SVMSearchCV(SVC(), GRID, checkpoint=tmp_path / "other").fit(X, y)


def test_a_damaged_checkpoint_or_a_missing_folder_is_an_error_before_training(tmp_path, monkeypatch):
    X, y = iris()
    file = tmp_path / "search.jsonl"
    SVMSearchCV(SVC(), GRID, checkpoint=file).fit(X, y)
    file.write_bytes(file.read_bytes().replace(b'"n_test_samples": 30', b'"n_test_samples": 31', 1))
    monkeypatch.setattr(search_module, "run_job", _no_training)
    with pytest.raises(ValueError, match=r"search.jsonl, line 2: damaged"):
        SVMSearchCV(SVC(), GRID, checkpoint=file).fit(X, y)
    with pytest.raises(FileNotFoundError, match="folder"):
        SVMSearchCV(SVC(), GRID, checkpoint=tmp_path / "deep" / "search.jsonl").fit(X, y)
    assert not (tmp_path / "deep").exists()


def test_ctrl_c_leaves_the_results_so_far():
    X, y = load_digits(return_X_y=True)
    grid = {"C": list(np.logspace(-2, 4, 30)), "gamma": list(np.logspace(-5, -2, 60))}
    SVMSearchCV(SVC(), {"C": [1.0], "gamma": [1e-3]}, cv=2).fit(X, y)  # nothing is to be compiled below
    timer = threading.Timer(4.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        search = SVMSearchCV(SVC(), grid, cv=10).fit(X, y)
    timer.cancel()
    assert time.monotonic() - began < 60
    assert search.interrupted_
    assert 0 < np.isfinite(search.cv_results_["mean_test_score"]).sum() < 1800
    assert search.best_score_ > 0.5


def test_progress_is_shown_when_asked_for_and_not_otherwise(capfd):
    X, y = iris()
    SVMSearchCV(SVC(), GRID).fit(X, y)
    assert capfd.readouterr() == ("", "")
    SVMSearchCV(SVC(), GRID, progress=True).fit(X, y)
    out, err = capfd.readouterr()
    assert out == ""
    assert "60/60" in err
    assert "best" in err


def test_a_worker_that_is_killed_changes_nothing():
    distributed = pytest.importorskip("distributed")
    X, y = load_digits(return_X_y=True)
    X, y = X[:300] / 16.0, y[:300]
    grid = {"nu": [0.05, 0.1, 0.2], "gamma": list(np.logspace(-2, 0, 6))}
    here = SVMSearchCV(NuSVC(), grid, n_jobs=1).fit(X, y)
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        before = set(client.run(os.getpid).values())
        victim = sorted(before)[0]

        def kill_in_the_middle():
            while not any(client.processing().values()):
                time.sleep(0.05)
            time.sleep(0.5)
            os.kill(victim, signal.SIGKILL)

        killer = threading.Thread(target=kill_in_the_middle)
        killer.start()
        with parallel_config(backend="dask"):
            there = SVMSearchCV(NuSVC(), grid, n_jobs=2).fit(X, y)
        killer.join()
        client.wait_for_workers(2, timeout=60)
        assert victim not in set(client.run(os.getpid).values())
    np.testing.assert_array_equal(here.cv_results_["mean_test_score"], there.cv_results_["mean_test_score"])


def _no_training(*args):
    raise AssertionError("nothing must be trained")


@pytest.mark.parametrize(
    "scoring",
    [
        "roc_auc_ovr",
        "neg_log_loss",
        ["accuracy", "neg_brier_score"],
        make_scorer(roc_auc_score, response_method="predict_proba", multi_class="ovr"),
    ],
)
@pytest.mark.parametrize("estimator", [SVC(), make_pipeline(StandardScaler(), SVC())])
def test_a_scorer_of_probabilities_is_refused_in_one_line_before_training(monkeypatch, scoring, estimator):
    monkeypatch.setattr(search_module, "run_job", _no_training)
    X, y = iris()
    with pytest.raises(ValueError, match="needs predict_proba, which SVC does not have") as error:
        SVMSearchCV(estimator, {}, scoring=scoring, refit=False).fit(X, y)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("metric", "named"),
    [
        ("neg_log_loss", "scoring={'mine': 'neg_log_loss'} needs predict_proba"),
        (make_scorer(roc_auc_score, response_method="predict_proba"), "make_scorer(roc_auc_score, response"),
    ],
)
def test_a_scorer_that_is_refused_is_named_by_its_key_and_its_metric(monkeypatch, metric, named):
    monkeypatch.setattr(search_module, "run_job", _no_training)
    X, y = iris()
    with pytest.raises(ValueError, match=re.escape(named)):
        SVMSearchCV(SVC(), {}, scoring={"good": "accuracy", "mine": metric}, refit=False).fit(X, y)


def test_a_scorer_of_decision_values_is_refused_for_a_regressor_before_training(monkeypatch):
    monkeypatch.setattr(search_module, "run_job", _no_training)
    X, y = iris()
    with pytest.raises(ValueError, match="decision_function or predict_proba, which SVR does not have"):
        SVMSearchCV(SVR(), {"C": [1.0]}, scoring="roc_auc").fit(X, y)


def test_reports_of_scores_that_fail_tell_of_the_scorer_alone():
    X, y = iris()
    with pytest.warns(UserWarning, match="Scoring failed") as caught:
        search = SVMSearchCV(SVC(), {"C": [1.0]}, scoring="f1", refit=False).fit(X, y)
    assert np.isnan(search.cv_results_["mean_test_score"]).all()
    text = "".join(str(warning.message) for warning in caught)
    assert "average='binary'" in text
    assert "During handling" not in text and "FoldModel" not in text


@pytest.mark.parametrize("backend", ["threading", "loky"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_workers_have_scikit_learns_configuration(n_jobs, backend):
    def needs_a_frame(X):
        assert isinstance(X, pd.DataFrame)
        return X

    X, y = iris()
    frame = pd.DataFrame(X, columns=list("wxyz"))
    pipeline = make_pipeline(StandardScaler(), FunctionTransformer(needs_a_frame), SVC())
    with sklearn.config_context(transform_output="pandas"), parallel_config(backend=backend):
        search = SVMSearchCV(pipeline, {"svc__C": [1.0, 10.0], "svc__gamma": [0.1, 1.0]}, n_jobs=n_jobs)
        assert search.fit(frame, y).best_score_ > 0.9


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_metadata_are_routed_to_the_steps_and_scorers_that_ask_for_them(n_jobs):
    X, y = iris()
    weight = np.random.default_rng(0).uniform(0.1, 2.0, 150)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        machine = SVC(**TIGHT).set_fit_request(sample_weight=True)
        scaled = make_pipeline(StandardScaler().set_fit_request(sample_weight=True), machine)
        options = {"fit": {"sample_weight": weight}, "scoring": scorer, "n_jobs": n_jobs}
        assert_same_results(*both(machine, GRID, X, y, **options), atol=1e-12)
        grid = {"svc__C": [0.1, 1.0], "svc__gamma": [0.1, 1.0]}
        assert_same_results(*both(scaled, grid, X, y, **options), atol=1e-12)


class ScaledSVC(SVC):
    """A subclass whose methods change what they are given."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(5 * X, y, sample_weight)

    def predict(self, X):
        return super().predict(5 * X)


def test_a_subclass_with_methods_of_its_own_is_trained_and_scored_by_them():
    X, y = iris()
    assert_same_results(*both(ScaledSVC(**TIGHT), GRID, X, y), atol=0)


def test_splits_may_be_masks():
    X, y = iris()
    train = np.random.default_rng(0).random(len(y)) < 0.7
    assert_same_results(*both(SVC(**TIGHT), GRID, X, y, cv=[(train, ~train)]), atol=1e-12)


@pytest.mark.parametrize("path", ["auto", "cold"])
def test_an_indefinite_kernel_has_the_scores_of_cold_fits(path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 5)) * [1, 1, 3, 1, 1]
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=150), [-0.5, 0.5])
    grid = {"C": [1.0, 10.0], "gamma": [0.1, 1.0]}
    for kernel in ({"kernel": "sigmoid"}, {"kernel": "poly", "coef0": -1.0}):
        machine = SVC(max_iter=20_000, **kernel, **TIGHT)
        ours = SVMSearchCV(machine, grid, path=path).fit(X, y)
        assert_same_results(ours, GridSearchCV(machine, grid).fit(X, y), atol=0)


def test_random_draws_are_those_of_a_randomized_search():
    from scipy.stats import loguniform
    from sklearn.model_selection import RandomizedSearchCV

    X, y = load_iris(return_X_y=True)
    distributions = {"C": loguniform(0.1, 100.0), "gamma": loguniform(0.01, 1.0)}
    ours = SVMSearchCV(SVC(tol=1e-6), distributions, n_iter=7, random_state=3).fit(X, y)
    theirs = RandomizedSearchCV(SVC(tol=1e-6), distributions, n_iter=7, random_state=3).fit(X, y)
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=1e-12
    )
    assert ours.best_params_ == theirs.best_params_


def test_a_distribution_without_n_iter_is_an_error_that_names_it():
    from scipy.stats import loguniform

    with pytest.raises(TypeError, match="gamma are a distribution: give n_iter"):
        SVMSearchCV(SVC(), {"gamma": loguniform(0.01, 1.0)}).fit(*load_iris(return_X_y=True))


@pytest.mark.parametrize("calibrate", ["sigmoid", "isotonic", "temperature"])
@pytest.mark.parametrize("estimator", [SVC(), NuSVC(nu=0.2), make_pipeline(StandardScaler(), SVC())])
def test_probabilities_come_from_held_out_values(estimator, calibrate):
    X, y = load_iris(return_X_y=True)
    name = "svc__gamma" if hasattr(estimator, "steps") else "gamma"
    search = SVMSearchCV(estimator, {name: [0.1, 0.5]}, calibrate=calibrate).fit(X, y)
    p = search.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (search.classes_[p.argmax(axis=1)] == y).mean() > 0.9
    np.testing.assert_allclose(search.predict_log_proba(X), np.log(p))


def test_probabilities_are_not_there_unless_asked_for():
    search = SVMSearchCV(SVC(), {"C": [1.0]}).fit(*load_iris(return_X_y=True))
    assert not hasattr(search, "predict_proba")


def test_only_class_pairs_can_be_calibrated():
    with pytest.raises(ValueError, match="calibrate='sigmoid' needs SVC or NuSVC, got SVR"):
        SVMSearchCV(SVR(), {"C": [1.0]}, calibrate="sigmoid").fit(*load_iris(return_X_y=True))
