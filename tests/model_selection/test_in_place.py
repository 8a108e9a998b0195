"""Steps that write into the rows they get: each candidate sees the rows that the user has given."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from maxmargin import SVC
from maxmargin.model_selection import SVMSearchCV

TIGHT = {"tol": 1e-7, "gamma": 0.5}
LAYOUTS = {
    "array": np.array,
    "Fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "CSR": sp.csr_array,
    "table": lambda X: pd.DataFrame(X, columns=list("abcd")),
}


def data(n=120):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)) * [1.0, 3.0, 0.5, 1.0] + [0.0, 1.0, 0.0, -1.0]
    return X, (np.abs(X[:, 0]) > 0.7).astype(int)


def dense(X):
    return X.toarray() if sp.issparse(X) else np.array(X)


def compare(estimator, grid, X, y, **options):
    """The scores of both searches, which must agree and leave X as it is."""
    found = {}
    for kind in (SVMSearchCV, GridSearchCV):
        given = X.copy()
        own = {} if kind is GridSearchCV else {"n_jobs": 1}
        found[kind] = kind(estimator, grid, refit=False, **{**own, **options}).fit(given, y)
        np.testing.assert_array_equal(dense(given), dense(X), err_msg=kind.__name__)
    ours, theirs = found[SVMSearchCV].cv_results_, found[GridSearchCV].cv_results_
    for key in theirs:
        if key.startswith("split"):
            np.testing.assert_allclose(ours[key], theirs[key], atol=1e-12, err_msg=key)
    return found[SVMSearchCV]


class Shift(TransformerMixin, BaseEstimator):
    """Adds a number to the rows that it gets; without any fitted attribute, as many users write steps."""

    def __init__(self, by=1.0):
        self.by = by

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        X += self.by
        return X


PIPELINES = {
    "row-wise": ([Normalizer(copy=False)], {"normalizer__norm": ["l1", "max"]}),
    "thresholds": ([Binarizer(copy=False)], {"binarizer__threshold": [0.0, 0.7]}),
    "row-wise, several": (
        [Normalizer(copy=False), Binarizer(copy=False)],
        {"normalizer__norm": ["l1", "max"], "binarizer__threshold": [0.1, 0.3]},
    ),
    "row-wise, new rows at the end": (
        [Normalizer(copy=False), PolynomialFeatures()],
        {"polynomialfeatures__degree": [1, 2]},
    ),
    "per fold": ([MaxAbsScaler(copy=False)], {"maxabsscaler__copy": [False, True]}),
    "per fold, then row-wise": (
        [StandardScaler(with_mean=False), Normalizer(copy=False)],
        {"normalizer__norm": ["l1", "max"]},
    ),
    "per fold, several": (
        [StandardScaler(with_mean=False, copy=False), Binarizer(copy=False)],
        {"binarizer__threshold": [0.0, 0.7]},
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("train", [False, True], ids=["", "training rows"])
@pytest.mark.parametrize("name", PIPELINES)
def test_scores_are_those_of_scikit_learn_and_the_rows_stay_as_they_are(name, train, layout):
    X, y = data()
    steps, grid = PIPELINES[name]
    pipeline = make_pipeline(*steps, SVC(**TIGHT))
    grid = {"svc__C": [1.0, 10.0], **grid}
    compare(pipeline, grid, LAYOUTS[layout](X), y, cv=3, return_train_score=train)


@pytest.mark.parametrize("memory", [0.0, 2000.0])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(copy=False),
        MinMaxScaler(copy=False),
        RobustScaler(copy=False),
        Binarizer(threshold=-1.0, copy=False),
        Shift(),
    ],
    ids=lambda step: type(step).__name__,
)
def test_rows_that_scikit_learn_transforms_twice_to_score_them_get_its_scores(step, n_jobs, memory):
    X, y = data()
    pipeline = Pipeline([("step", step), ("svm", SVC(**TIGHT))])
    given = (pipeline, {"svm__C": [0.1, 10.0]})
    for train in (False, True):
        options = {"cv": 3, "return_train_score": train}
        ours = SVMSearchCV(*given, **options, n_jobs=n_jobs, memory=memory, refit=False).fit(X.copy(), y)
        theirs = GridSearchCV(*given, **options, refit=False).fit(X.copy(), y)
        for key in theirs.cv_results_:
            if key.startswith("split"):
                np.testing.assert_allclose(ours.cv_results_[key], theirs.cv_results_[key], atol=1e-12)


def test_a_step_without_fitted_attributes_is_prepared_once_per_fold():
    X, y = data()
    pipeline = Pipeline([("step", Shift()), ("svc", SVC(**TIGHT))])
    assert set(compare(pipeline, {"svc__C": [1.0, 10.0]}, X, y, cv=3).trainers_) == {"C path"}


def test_a_row_wise_step_that_changes_its_own_output_is_left_to_scikit_learn_for_scores_of_training_rows():
    X, y = data()
    pipeline = make_pipeline(Binarizer(threshold=-1.0, copy=False), SVC(**TIGHT))
    search = compare(pipeline, {"svc__C": [1.0, 10.0]}, X, y, cv=3, return_train_score=True)
    assert all("training rows" in trainer for trainer in search.trainers_)
    search = compare(pipeline, {"svc__C": [1.0, 10.0]}, X, y, cv=3)
    assert set(search.trainers_) == {"C path"}


def part_of_the_rows(estimator, X, y):
    """A scorer that predicts rows which the search does not know."""
    return float(np.mean(estimator.predict(X[::2]) == y[::2]))


def writes_into_the_rows(estimator, X, y):
    """A scorer that writes into the rows that it gets."""
    score = float(X[0, 0])
    X[:] = 7.0
    return score


@pytest.mark.parametrize("train", [False, True], ids=["", "training rows"])
@pytest.mark.parametrize(
    ("scorer", "step"),
    [
        (part_of_the_rows, StandardScaler(copy=False)),
        (part_of_the_rows, Binarizer(threshold=-1.0, copy=False)),
        (writes_into_the_rows, StandardScaler()),
    ],
    ids=["a step per fold", "a row-wise step", "the scorer"],
)
def test_every_candidate_is_scored_with_rows_of_its_own(scorer, step, train):
    X, y = data()
    pipeline = Pipeline([("step", step), ("svm", SVC(**TIGHT))])
    compare(pipeline, {"svm__C": [0.1, 1.0, 10.0]}, X, y, cv=3, scoring=scorer, return_train_score=train)


@pytest.mark.parametrize("layout", ["array", "CSR", "table"])
def test_a_fit_on_all_rows_gets_the_rows_of_the_user_as_in_scikit_learn(layout):
    X, y = data()
    pipeline = make_pipeline(Binarizer(copy=False), SVC(**TIGHT))
    grid = {"svc__C": [1.0, 10.0], "binarizer__threshold": [0.0, 0.7]}
    left = []
    for kind in (SVMSearchCV, GridSearchCV):
        given = LAYOUTS[layout](X)
        search = kind(pipeline, grid, cv=KFold(3)).fit(given, y)
        left.append((dense(given), search.best_params_, search.best_estimator_.decision_function(given)))
    np.testing.assert_array_equal(left[0][0], left[1][0])
    assert left[0][1] == left[1][1]
    np.testing.assert_allclose(left[0][2], left[1][2], atol=1e-12)


# -- comparing training rows -------------------------------------------------------------------------


def above(X):
    return X > 0


def bytes_of(X):
    return (3 * np.abs(X)).clip(0, 255).astype(np.uint8)


def sparse_above(X):
    return sp.csr_array(X > 0)


@pytest.mark.parametrize("function", [above, bytes_of, sparse_above])
def test_rows_of_truth_values_and_of_bytes_can_be_scored(function):
    X, y = data()
    pipeline = make_pipeline(FunctionTransformer(function), SVC(**TIGHT))
    search = compare(pipeline, {"svc__C": [1.0, 10.0]}, X, y, cv=3, return_train_score=True)
    assert set(search.trainers_) == {"C path"}


class Unlike(TransformerMixin, BaseEstimator):
    """Transforms training rows in one way to fit, in another to score: they differ by one in few places."""

    def __init__(self, dtype):
        self.dtype = dtype

    def fit(self, X, y=None):
        return self

    def fit_transform(self, X, y=None):
        return np.full((len(X), 2), 254, dtype=np.uint8).astype(self.dtype)

    def transform(self, X):
        rows = np.full((len(X), 2), 254, dtype=np.uint8)
        rows[0, 0] = 255
        return rows.astype(self.dtype)


def in_one_column(X):
    """Rows as objects, whose comparison has no single truth value."""
    rows = np.empty((len(X), 1), dtype=object)
    rows[:, 0] = list(X)
    return rows


def products(A, B):
    return np.exp(-np.square(np.stack(A[:, 0])[:, None] - np.stack(B[:, 0])).sum(axis=2))


def test_rows_that_cannot_be_compared_are_left_to_scikit_learn():
    X, y = data()
    pipeline = make_pipeline(FunctionTransformer(in_one_column), SVC(kernel=products, tol=1e-7))
    search = compare(pipeline, {"svc__C": [1.0, 10.0]}, X, y, cv=3, return_train_score=True)
    assert all("training rows" in trainer for trainer in search.trainers_)
    assert set(compare(pipeline, {"svc__C": [1.0, 10.0]}, X, y, cv=3).trainers_) == {"C path"}


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int64])
def test_rows_that_differ_are_found_in_every_type(dtype):
    X, y = data()
    search = SVMSearchCV(
        make_pipeline(Unlike(dtype), SVC(**TIGHT)), {"svc__C": [1.0]}, cv=3, return_train_score=True
    ).fit(X, y)
    assert all("training rows" in trainer for trainer in search.trainers_)
