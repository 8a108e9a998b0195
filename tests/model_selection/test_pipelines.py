"""Searches over pipelines: the scores of `GridSearchCV`, with preprocessing once per fold and setting."""

from collections import Counter
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from joblib import Memory
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_selection import SelectKBest
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
    TargetEncoder,
)

from maxmargin import SVC, SVR, NuSVC, OneClassSVM
from maxmargin.kernels.shared import SharedKernels
from maxmargin.model_selection import SVMSearchCV
from maxmargin.model_selection.pipelines import split_pipeline, steps_before
from maxmargin.model_selection.plan import jobs_of, parents_of
from maxmargin.model_selection.refusal import Refused
from maxmargin.model_selection.row_wise import is_row_wise
from maxmargin.model_selection.settings import key_of, keys_of

TIGHT = {"tol": 1e-7}
GRID = {"svc__C": [0.1, 1.0, 10.0], "svc__gamma": [0.05, 0.5]}


def data(n=90, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1.0, 10.0, 0.1, 3.0] + [0.0, 5.0, 0.0, -1.0]
    level = np.sin(X[:, 0]) + 0.1 * X[:, 1] + 0.3 * rng.normal(size=n)
    return X, np.digitize(level, np.quantile(level, np.linspace(0, 1, classes + 1)[1:-1]))


def frame(n=90, seed=0):
    X, y = data(n, seed)
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(X, columns=list("abcd"))
    table["kind"] = np.array(["red", "green", "blue", "grey"])[rng.integers(4, size=n)]
    table["size"] = pd.Categorical(np.array(["S", "M", "L"])[rng.integers(3, size=n)])
    return table, np.where((y + (table["kind"] == "red")) > 0, "yes", "no")


def columns(**options):
    return ColumnTransformer(
        [
            ("numbers", StandardScaler(), ["a", "b", "c"]),
            ("names", OneHotEncoder(handle_unknown="ignore"), ["kind", "size"]),
        ],
        **options,
    )


def compare(estimator, grid, X, y=None, fit=None, atol=0.0, **options):
    ours = SVMSearchCV(estimator, grid, **options).fit(X, y, **(fit or {}))
    options.pop("memory", None)
    theirs = GridSearchCV(estimator, grid, **options).fit(X, y, **(fit or {}))
    assert set(ours.cv_results_) == set(theirs.cv_results_)
    for key in ours.cv_results_:
        if ("_test_" in key or "_train_" in key) and not (atol and key.startswith("rank")):
            np.testing.assert_allclose(ours.cv_results_[key], theirs.cv_results_[key], atol=atol, err_msg=key)
    if hasattr(theirs, "best_index_"):
        assert ours.best_index_ == theirs.best_index_
    return ours


class Counting(TransformerMixin, BaseEstimator):
    """Scales like `StandardScaler`, and counts."""

    calls: ClassVar[Counter] = Counter()

    def __init__(self, factor=1.0):
        self.factor = factor

    def fit(self, X, y=None):
        Counting.calls["fit", self.factor] += 1
        self.mean_, self.scale_ = X.mean(axis=0), X.std(axis=0)
        return self

    def transform(self, X):
        Counting.calls["transform", self.factor] += 1
        return self.factor * (X - self.mean_) / self.scale_


@pytest.fixture
def counted(monkeypatch):
    """Calls of `Counting`, and of the distances of a data set."""
    Counting.calls = Counter()
    original = SharedKernels._distances
    monkeypatch.setattr(
        SharedKernels,
        "_distances",
        lambda self, name: Counting.calls.update(distances=1) or original(self, name),
    )
    return Counting.calls


# -- what is computed how often ----------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("machine", [SVC(), NuSVC(nu=0.2)])
def test_preprocessing_and_distances_are_computed_once_per_fold_and_setting(machine, n_jobs, counted):
    X, y = data()
    pipeline = Pipeline([("scale", Counting()), ("svm", machine)])
    own = {"svm__C": [1.0, 10.0]} if isinstance(machine, SVC) else {"svm__nu": [0.1, 0.2]}
    grid = {**own, "svm__gamma": [0.1, 0.2, 0.4], "scale__factor": [1.0, 2.0]}
    search = SVMSearchCV(pipeline, grid, cv=5, n_jobs=n_jobs).fit(X, y)
    best = search.best_params_["scale__factor"]
    for factor in (1.0, 2.0):
        assert counted["fit", factor] == 5 + (factor == best)
    assert counted["distances"] == 10


def test_folds_of_row_wise_steps_share_one_matrix_and_are_one_job(counted):
    X, y = data()
    pipeline = Pipeline([("scale", Normalizer()), ("svc", SVC(**TIGHT))])
    compare(pipeline, GRID, X, y, cv=5, n_jobs=1)
    assert counted["distances"] == 1
    candidates = [{"svc__gamma": g} for g in (0.1, 1.0)]
    assert [job.folds for job in jobs_of(pipeline, candidates, [-1, -1], 3)] == [(0, 1, 2)] * 2


def test_all_jobs_of_a_fold_follow_each_other_and_know_their_setting():
    pipeline = make_pipeline(StandardScaler(), SVC())
    candidates = [
        {"svc__gamma": g, "standardscaler__with_mean": m} for m in (True, False) for g in (0.1, 1.0)
    ]
    jobs = jobs_of(pipeline, candidates, parents_of(pipeline, candidates, "auto"), 3)
    assert [(job.setting, job.folds) for job in jobs] == [
        (s, (k,)) for s in (0, 1) for k in (0, 1, 2) for _ in "ab"
    ]


def test_no_text_of_a_pipeline_or_of_a_parameter_is_made(monkeypatch):
    def fails(self, *args, **kwargs):
        raise AssertionError("repr of an estimator")

    X, y = data()
    pipeline = Pipeline([("scale", StandardScaler()), ("svc", SVC())])
    grid = {**GRID, "scale": [StandardScaler(), MinMaxScaler()]}
    monkeypatch.setattr(BaseEstimator, "__repr__", fails)
    SVMSearchCV(pipeline, grid, cv=3, n_jobs=1).fit(X, y)


# -- settings ----------------------------------------------------------------------------------------


def multiply(X, factors):
    return X * factors[: X.shape[1]]


def test_arrays_with_the_same_text_are_different_settings():
    X, y = data()
    pipeline = Pipeline([("scale", FunctionTransformer(multiply)), ("svc", SVC(**TIGHT))])
    wide = np.hstack([X, np.zeros((len(X), 2996))])
    left, right = np.ones(3000), np.ones(3000)
    wide[:, 1500], right[1500] = 3.0 * y, 0.0
    assert repr(left) == repr(right)
    grid = {"scale__kw_args": [{"factors": left}, {"factors": right}], "svc__C": [1.0, 10.0]}
    ours = compare(pipeline, grid, wide, y, cv=3)
    assert len(set(ours.cv_results_["mean_test_score"])) > 1


def test_keys_compare_plain_values_by_value_and_objects_by_identity():
    assert key_of({"a": [1, (2.0, None)]}) == key_of({"a": [1, (2.0, None)]})
    assert key_of(True) != key_of(1) and key_of(np.float64(1)) != key_of(1.0) and key_of([1]) != key_of((1,))
    assert key_of(StandardScaler()) != key_of(StandardScaler())
    scaler = StandardScaler()
    assert keys_of({"b": scaler, "a": 1}) == keys_of({"a": 1, "b": scaler})


@pytest.mark.parametrize(
    "step",
    [
        None,
        "passthrough",
        Normalizer(),
        Binarizer(),
        PolynomialFeatures(),
        FunctionTransformer(),
        FunctionTransformer(np.tanh),
        make_pipeline(Normalizer(), make_pipeline("passthrough", FunctionTransformer(np.abs))),
    ],
)
def test_steps_that_look_at_single_rows_are_known(step):
    assert is_row_wise(step)
    if step not in (None, "passthrough"):
        X, _ = data()
        parts = [clone(step).fit(X[rows]).transform(X[rows]) for rows in (slice(0, 40), slice(40, 90))]
        np.testing.assert_allclose(np.vstack(parts), clone(step).fit_transform(X), rtol=1e-12)


class MyNormalizer(Normalizer):
    """A subclass, which may do anything."""

    def transform(self, X, copy=None):
        return X - X.mean(axis=0)


class MyPipeline(Pipeline):
    """A subclass, which may do anything."""


@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(),
        MyNormalizer(),
        MyPipeline([("n", Normalizer())]),
        FunctionTransformer(lambda X: X - X.mean(axis=0)),
        FunctionTransformer(np.cumsum),
        FunctionTransformer(np.add),
        FunctionTransformer(np.log1p, kw_args={"where": [True, False, True, True]}),
        make_pipeline(Normalizer(), PCA()),
        ColumnTransformer([("n", Normalizer(), [0, 1])]),
    ],
)
def test_steps_that_may_look_at_other_rows_are_not_row_wise(step):
    assert not is_row_wise(step)


def test_a_subclass_of_a_row_wise_step_is_fitted_per_fold():
    X, y = data()
    compare(Pipeline([("scale", MyNormalizer()), ("svc", SVC(**TIGHT))]), GRID, X, y, cv=3)


class Twice(Pipeline):
    """A pipeline with a `fit` of its own."""

    def fit(self, X, y=None, **params):
        return super().fit(np.vstack([X, X + 1.0]), np.concatenate([y, y]), **params)


def test_a_pipeline_that_overrides_methods_is_left_to_scikit_learn():
    X, y = data()
    search = compare(Twice([("scale", StandardScaler()), ("svc", SVC(**TIGHT))]), GRID, X, y, cv=3)
    assert all("Twice overrides fit" in trainer for trainer in search.trainers_)


class Zeros(Pipeline):
    """A pipeline with a `transform` of its own."""

    def fit_transform(self, X, y=None, **params):
        return np.zeros_like(X)

    def transform(self, X):
        return np.zeros_like(X)


@pytest.mark.parametrize("step", ["passthrough", Normalizer()])
def test_a_pipeline_in_the_middle_that_overrides_methods_transforms_by_them(step):
    X, y = data()
    pipeline = Pipeline([("zeros", Zeros([("step", step)])), ("svc", SVC(**TIGHT))])
    assert steps_before(pipeline, {}) is not None and not is_row_wise(pipeline[0])
    compare(pipeline, GRID, X, y, cv=3)
    compare(Pipeline([("both", Pipeline([("zeros", pipeline[0])])), ("svc", SVC(**TIGHT))]), GRID, X, y, cv=3)


# -- splitting ---------------------------------------------------------------------------------------


def test_a_pipeline_is_split_with_the_names_of_its_steps():
    scaler, machine = StandardScaler(), SVC()
    inner = Pipeline([("pca", PCA()), ("svc", machine)])
    before, last, prefix = split_pipeline(Pipeline([("scale", scaler), ("model", inner)], memory="cache"))
    assert last is machine and prefix == "model__svc__" and before.memory == "cache"
    assert before.get_params()["model__pca"] is inner.steps[0][1]
    assert split_pipeline(machine) == (None, machine, "")


@pytest.mark.parametrize(
    ("outer", "reason"),
    [
        ({"steps": []}, "steps is not a parameter"),
        ({"model": SVC()}, "model is not a parameter"),
        ({"model__svc": SVC()}, "model__svc is not a parameter"),
        ({"model__steps": []}, "model__steps is not a parameter"),
        ({"scale__nothing": 1}, "cannot be set"),
        ({"other": 1}, "cannot be set"),
    ],
)
def test_parameters_that_are_not_of_the_steps_before_the_last_are_refused(outer, reason):
    inner = Pipeline([("pca", PCA()), ("svc", SVC())])
    found = steps_before(Pipeline([("scale", StandardScaler()), ("model", inner)]), outer)
    assert isinstance(found, Refused) and reason in found.reason


def test_steps_that_all_pass_rows_on_are_none():
    pipeline = Pipeline([("scale", "passthrough"), ("more", None), ("svc", SVC())])
    assert steps_before(pipeline, {}) is None
    assert steps_before(pipeline, {"more": StandardScaler()}) is not None
    assert (
        steps_before(Pipeline([("scale", StandardScaler()), ("svc", SVC())]), {"scale": "passthrough"})
        is None
    )


# -- scores ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "grid"),
    [
        (
            [("scale", StandardScaler())],
            {"scale__with_mean": [True, False], "scale__with_std": [True, False]},
        ),
        ([("scale", "passthrough")], {"scale": [StandardScaler(), MinMaxScaler(), "passthrough", None]}),
        (
            [("scale", StandardScaler())],
            {"scale": [MinMaxScaler()], "scale__feature_range": [(0, 1), (-3, 3)]},
        ),
        ([("pick", SelectKBest()), ("scale", StandardScaler())], {"pick__k": [1, 2, "all"]}),
        ([("prepare", make_pipeline(StandardScaler(), PCA()))], {"prepare__pca__n_components": [1, 3]}),
        ([("both", FeatureUnion([("a", PCA(2)), ("b", MaxAbsScaler())]))], {"both__a": [PCA(1), "drop"]}),
        ([("norm", Normalizer()), ("log", FunctionTransformer(np.arctan))], {"norm__norm": ["l1", "l2"]}),
        ([("scale", StandardScaler())], {"svc__gamma": ["scale", "auto", 0.3]}),
        ([("norm", Normalizer())], {"svc__gamma": ["scale", "auto", 0.3]}),
        (
            [("scale", StandardScaler())],
            {"svc__kernel": ["linear", "poly", "laplacian"], "svc__coef0": [1.0]},
        ),
    ],
)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_search_over_steps_and_their_parameters_gives_the_scores_of_scikit_learn(steps, grid, n_jobs):
    X, y = data()
    pipeline = Pipeline([*steps, ("svc", SVC(**TIGHT))])
    search = compare(
        pipeline, {"svc__C": [0.3, 3.0], **grid}, X, y, cv=3, n_jobs=n_jobs, return_train_score=True
    )
    assert all(trainer.startswith("C path") for trainer in search.trainers_)


def test_a_pipeline_at_the_end_of_a_pipeline_is_searched():
    X, y = data()
    inner = Pipeline([("pca", PCA()), ("svc", SVC(**TIGHT))])
    pipeline = Pipeline([("scale", StandardScaler()), ("model", inner)])
    grid = {"model__svc__C": [0.3, 3.0], "model__pca__n_components": [1, 3], "scale__with_std": [True, False]}
    weight = np.random.default_rng(0).integers(1, 4, size=len(X))
    for fit in ({}, {"model__svc__sample_weight": weight}):
        assert set(compare(pipeline, grid, X, y, fit=fit, cv=3).trainers_) == {"C path"}


@pytest.mark.parametrize("output", ["default", "pandas"])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 1.0])
def test_tables_with_names_and_numbers_are_prepared_per_fold(output, threshold):
    table, y = frame()
    if output == "pandas" and threshold > 0:
        preparing = columns(sparse_threshold=threshold).set_params(names__sparse_output=False)
    else:
        preparing = columns(sparse_threshold=threshold)
        preparing.set_params(names__sparse_output=output == "default")
    with sklearn.config_context(transform_output=output):
        search = compare(
            make_pipeline(preparing, SVC(**TIGHT)), GRID, table, y, cv=3, return_train_score=True
        )
    assert set(search.trainers_) == {"C path"}


def test_cached_steps_are_fitted_by_the_cache(tmp_path, counted):
    X, y = data()
    pipeline = Pipeline([("scale", Counting()), ("svc", SVC(**TIGHT))], memory=Memory(tmp_path, verbose=0))
    for _ in range(2):
        SVMSearchCV(pipeline, GRID, cv=3, n_jobs=1).fit(X, y)
    assert counted["fit", 1.0] == 4  # three folds and the refit, in the first search
    compare(pipeline, GRID, X, y, cv=3)


def test_several_scores_groups_and_weights_are_honoured():
    X, y = data(classes=3)
    rng = np.random.default_rng(1)
    pipeline = Pipeline([("scale", StandardScaler()), ("svc", SVC(**TIGHT))])
    options = {"scoring": ["accuracy", "balanced_accuracy", "f1_macro"], "refit": "f1_macro"}
    fit = {"groups": rng.integers(6, size=len(X)), "svc__sample_weight": rng.integers(0, 3, size=len(X))}
    names = np.array(["low", "middle", "high"])[y]
    search = compare(pipeline, GRID, X, names, fit=fit, cv=GroupKFold(3), return_train_score=True, **options)
    assert set(search.trainers_) == {"C path"}


def test_held_out_rows_far_from_all_others_have_the_same_value():
    X, y = load_breast_cancer(return_X_y=True)
    pipeline = Pipeline([("scale", StandardScaler()), ("svc", SVC(**TIGHT))])
    grid = {"svc__C": [1.0, 100.0], "svc__gamma": [1.0]}
    compare(pipeline, grid, X[:150], y[:150], cv=3, scoring="roc_auc", atol=1e-6)  # ties count half


def test_weights_that_are_routed_to_steps_reach_them():
    X, y = data()
    weight = np.random.default_rng(1).integers(1, 4, size=len(X)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        machine = SVC(**TIGHT).set_fit_request(sample_weight=True)
        for asks in (True, False):
            scaler = StandardScaler().set_fit_request(sample_weight=asks)
            pipeline = Pipeline([("scale", scaler), ("svc", machine)])
            scorer = make_scorer(accuracy_score).set_score_request(sample_weight=asks)
            compare(pipeline, GRID, X, y, fit={"sample_weight": weight}, cv=3, scoring=scorer)


class Moody(StandardScaler):
    """Fails where it is fitted on large numbers."""

    def fit(self, X, y=None, sample_weight=None):
        if (np.asarray(X)[:, 0] > 1e5).any():
            raise RuntimeError("too large")
        return super().fit(X, y)


@pytest.mark.parametrize("error_score", [np.nan, -7.0])
def test_steps_that_fail_on_some_folds_are_reported_as_by_scikit_learn(error_score):
    X, y = data()
    X[0, 0] = 1e6
    pipeline = Pipeline([("scale", Moody()), ("svc", SVC(**TIGHT))])
    with pytest.warns(FitFailedWarning, match="RuntimeError: too large"):
        compare(pipeline, GRID, X, y, cv=KFold(3), error_score=error_score, refit=False)
    with pytest.raises(RuntimeError, match="too large"):
        SVMSearchCV(pipeline, GRID, cv=KFold(3), error_score="raise", refit=False).fit(X, y)


def test_training_rows_that_fit_and_transform_change_in_different_ways_get_the_scores_of_transform():
    table, y = frame()
    encoded = ColumnTransformer([("kind", TargetEncoder(random_state=0), ["kind", "size"])])
    pipeline = make_pipeline(encoded, SVC(**TIGHT))
    search = compare(pipeline, GRID, table, y, cv=3, return_train_score=True)
    assert all("training rows" in trainer for trainer in search.trainers_)
    assert set(compare(pipeline, GRID, table, y, cv=3).trainers_) == {"C path"}


def test_other_estimators_and_their_scores_work_at_the_end_of_a_pipeline():
    X, _ = data()
    y = np.sin(X[:, 0]) + 0.1 * X[:, 1]
    pipeline = Pipeline([("scale", StandardScaler()), ("svr", SVR(**TIGHT))])
    grid = {"svr__C": [0.1, 1.0], "svr__gamma": [0.1, "scale"], "scale__with_mean": [True, False]}
    compare(pipeline, grid, X, y, cv=3, atol=1e-5, scoring=["r2", "neg_mean_absolute_error"], refit=False)
    labels = np.where(X[:, 0] > -1, 1, -1)
    outliers = Pipeline([("scale", StandardScaler()), ("norm", Normalizer()), ("svm", OneClassSVM(**TIGHT))])
    compare(outliers, {"svm__nu": [0.1, 0.3], "svm__gamma": [0.1, 1.0]}, X, labels, cv=3, scoring="accuracy")


# -- at random ---------------------------------------------------------------------------------------


def random_steps(rng):
    """Steps and values of their parameters."""
    choices = [
        (StandardScaler(), {"with_mean": [True, False]}),
        (MinMaxScaler(), {"feature_range": [(0, 1), (-1, 1)]}),
        (Normalizer(), {"norm": ["l1", "l2", "max"]}),
        (PolynomialFeatures(2), {"include_bias": [True, False]}),
        (FunctionTransformer(np.arctan), {"func": [np.arctan, np.tanh, None]}),
        (FunctionTransformer(lambda X: X - X.mean(axis=0)), {}),
        (PCA(random_state=0), {"n_components": [2, 3]}),
        (SelectKBest(k=3), {"k": [2, 3]}),
        ("passthrough", {}),
        (make_pipeline(StandardScaler(), Normalizer()), {"standardscaler__with_std": [True, False]}),
    ]
    steps, grid = [], {}
    for k in range(int(rng.integers(1, 4))):
        step, values = choices[int(rng.integers(len(choices)))]
        steps.append((f"s{k}", step if isinstance(step, str) else clone(step)))
        for name, several in values.items():
            if rng.random() < 0.4:
                grid[f"s{k}__{name}"] = several[:2]
        if rng.random() < 0.2 and not any(name.startswith(f"s{k}__") for name in grid):
            grid[f"s{k}"] = ["passthrough", StandardScaler()]
    return steps, grid


@pytest.mark.parametrize("seed", range(24))
def test_random_pipelines_get_the_scores_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    classes = int(rng.integers(2, 4))
    X, y = data(int(rng.integers(50, 100)), seed, classes)
    steps, grid = random_steps(rng)
    regression = rng.random() < 0.25
    machine = SVR(**TIGHT) if regression else SVC(class_weight=[None, "balanced"][seed % 2], **TIGHT)
    last = "svm"
    if regression:
        y = np.sin(X[:, 0]) + 0.05 * X[:, 1]
    elif rng.random() < 0.3:
        y = np.array(["no", "yes", "perhaps"])[y]
    grid |= {f"{last}__C": [0.1, 1.0, 10.0], f"{last}__gamma": [["scale", 0.1], [0.05, 0.5]][seed % 2]}
    if rng.random() < 0.2:
        grid = [grid, {f"{last}__kernel": ["linear"], f"{last}__C": [0.1, 1.0]}]
    splits = [KFold(3), ShuffleSplit(3, test_size=0.3, random_state=seed)]
    cv = splits[seed % 2] if regression else [StratifiedKFold(3), splits[1]][seed % 2]
    fit = {f"{last}__sample_weight": rng.integers(1, 4, size=len(X))} if rng.random() < 0.3 else {}
    if rng.random() < 0.2 and isinstance(steps[0][1], Normalizer) and len(steps) == 1:
        X = sp.csr_matrix(X)
    if rng.random() < 0.3:
        X = pd.DataFrame(X, columns=list("abcd"))
    compare(
        Pipeline([*steps, (last, machine)]),
        grid,
        X,
        y,
        fit=fit,
        atol=1e-5 if regression else 1e-12,
        cv=cv,
        refit=False,
        n_jobs=int(rng.integers(1, 3)),
        memory=float(rng.choice([0.0, 2000.0])),
        return_train_score=bool(rng.random() < 0.3),
    )
