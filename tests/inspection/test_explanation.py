"""Shapley values of models: additive, exact, named, and in the form of the package shap."""

import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from coalitions import shapley_values
from maxmargin import (
    SVC,
    SVCCV,
    SVR,
    AllDistancesSVC,
    CellSVC,
    CrammerSingerSVC,
    IncrementalSVC,
    IncrementalSVR,
    L2OneClassSVM,
    NuSVC,
    NuSVR,
    OneClassSVM,
    QuantileSVR,
)
from maxmargin.inspection import ShapleyValues, shapley
from maxmargin.kernels import laplacian, linear, poly, rbf

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 4))
TWO = np.where(X[:, 0] * X[:, 1] + X[:, 2] > 0, "yes", "no")
THREE = (X[:, 0] * X[:, 1] > 0) * 1 + (X[:, 2] > 0.3)
FOUR = THREE + (X[:, 3] > 1)
BACKGROUND, ROWS = X[:3], X[10:12]

MODELS = [
    (SVC(), TWO), (SVC(decision_function_shape="ovo"), THREE), (SVC(decision_function_shape="ovo"), FOUR),
    (SVC(loss="squared_hinge"), TWO), (NuSVC(nu=0.7), TWO), (SVR(), X[:, 0]), (NuSVR(), X[:, 0]),
    (OneClassSVM(contamination=0.1), None), (L2OneClassSVM(), None), (IncrementalSVC(gamma=0.3), TWO),
    (CrammerSingerSVC(), TWO), (CrammerSingerSVC(), THREE), (AllDistancesSVC(), TWO),
    (AllDistancesSVC(), THREE), (SVR(), X[:, :2]), (NuSVR(), X[:, :3]), (SVC(bias="penalised"), TWO),
    (sklearn.svm.SVC(), TWO), (sklearn.svm.NuSVC(nu=0.2, decision_function_shape="ovo"), THREE),
    (IncrementalSVC(gamma=0.3, loss="hinge"), TWO), (IncrementalSVR(gamma=0.3), X[:, 0]),
    (IncrementalSVC(gamma=0.3, decision_function_shape="ovo"), THREE), (sklearn.svm.SVR(), X[:, 0]),
    (sklearn.svm.OneClassSVM(), None),
]  # fmt: skip
KINDS = [f"{type(model).__module__.split('.')[0]} {type(model).__name__}" for model, _ in MODELS]


def values_of(model):
    """What is explained, with a column per output."""
    f = model.decision_function if hasattr(model, "decision_function") else model.predict
    return lambda rows: f(rows).reshape(rows.shape[0], -1)


@pytest.mark.parametrize("distribution", ["joint", "independent"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
@pytest.mark.parametrize(("model", "y"), MODELS, ids=KINDS)
def test_values_are_those_of_the_definition_and_add_up(model, y, kernel, distribution):
    if kernel == "laplacian" and "sklearn" in type(model).__module__:
        pytest.skip("not a kernel of scikit-learn's estimators")
    model.set_params(kernel=kernel).fit(X, y)
    f = values_of(model)
    found = shapley(model, ROWS, BACKGROUND, distribution=distribution)
    outputs = f(ROWS).shape[1]
    assert found.values.shape == ((2, 4) if outputs == 1 else (2, 4, outputs))
    assert found.base_values.shape == (() if outputs == 1 else (outputs,))
    assert len(found.output_names) == outputs
    np.testing.assert_allclose(found.predicted.reshape(2, -1), f(ROWS), rtol=0, atol=1e-10)
    expected, base = shapley_values(f, ROWS[0], BACKGROUND, distribution == "independent")
    np.testing.assert_allclose(found.values[0].reshape(4, -1), expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.base_values, base if outputs > 1 else base[0], rtol=0, atol=1e-10)


GAMMAS = [0.1, 0.0, 0.5, 0.3]
SUMS = [
    rbf(GAMMAS), laplacian(GAMMAS), rbf(0.1) + 0.5 * linear(), rbf(0.3) * rbf(GAMMAS) + 2.0,
    2 * linear() + linear(),
    (rbf(0.3) + 1.0) * (2.0 * rbf(GAMMAS) + rbf(0.1)) + laplacian(0.2) * laplacian(GAMMAS),
]  # fmt: skip


@pytest.mark.parametrize("distribution", ["joint", "independent"])
@pytest.mark.parametrize("kernel", SUMS, ids=repr)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, np.float32], ids=["dense", "sparse", "float32"])
def test_sums_of_kernels_are_explained_by_those_of_their_terms(kernel, distribution, form):
    model = SVR(kernel=kernel).fit(form(X), X[:, :2])
    found = shapley(model, form(ROWS), form(BACKGROUND), distribution=distribution)
    f = values_of(model)
    expected, base = shapley_values(
        lambda rows: f(form(rows)), ROWS[0], BACKGROUND, distribution == "independent"
    )
    atol = 1e-5 if form is np.float32 else 1e-10
    np.testing.assert_allclose(found.values[0], expected, rtol=0, atol=atol)
    np.testing.assert_allclose(found.base_values, base, rtol=0, atol=atol)


def test_quantiles_are_explained_as_functions_that_are_not_sorted():
    y = X[:, 0] + 0.3 * RNG.normal(size=80)
    model = QuantileSVR(quantiles=[0.4, 0.5, 0.6], gamma=1.0).fit(X, y)
    found = shapley(model, X, BACKGROUND)
    assert found.output_names == ("quantile 0.4", "quantile 0.5", "quantile 0.6")
    assert (np.diff(found.predicted, axis=1) < 0).any()
    np.testing.assert_allclose(np.sort(found.predicted, axis=1), model.predict(X), rtol=0, atol=1e-9)
    one = QuantileSVR(quantile=0.5).fit(X, y)
    np.testing.assert_allclose(shapley(one, X, BACKGROUND).predicted, one.predict(X), rtol=0, atol=1e-9)


def test_with_one_value_for_each_class_the_pairs_are_explained():
    model = SVC().fit(X, THREE)
    found = shapley(model, ROWS, BACKGROUND)
    pairs = model.set_params(decision_function_shape="ovo").decision_function(ROWS)
    np.testing.assert_allclose(found.predicted, pairs, rtol=0, atol=1e-12)
    assert found.output_names == ("0 against 1", "0 against 2", "1 against 2")


@pytest.mark.parametrize("y", [THREE, TWO])
def test_outputs_are_named_and_can_be_selected(y):
    classes = tuple(map(str, np.unique(y)))
    joint = shapley(CrammerSingerSVC().fit(X, y), ROWS, BACKGROUND)
    assert joint.output_names == (classes if len(classes) > 2 else classes[1:])
    assert shapley(SVC().fit(X, TWO), ROWS, BACKGROUND).output_names == ("yes",)
    assert shapley(SVR().fit(X, X[:, 0]), ROWS, BACKGROUND).output_names == ("prediction",)
    assert shapley(SVR().fit(X, X[:, :2]), ROWS, BACKGROUND).output_names == ("target 0", "target 1")
    assert shapley(OneClassSVM().fit(X), ROWS, BACKGROUND).output_names == ("decision value",)
    if len(classes) > 2:
        one = joint.of_output("2")
        np.testing.assert_array_equal(one.values, joint.values[:, :, 2])
        np.testing.assert_array_equal(one.values, joint.of_output(-1).values)
        assert one.base_values == joint.base_values[2] and one.output_names == ("2",)
        for wrong, message in (
            (None, "several outputs"),
            ("3", "no output '3'"),
            (3, "less than the number"),
        ):
            with pytest.raises(ValueError, match=message):
                joint.of_output(wrong)
    else:
        assert joint.of_output() is joint.of_output(0) is joint


def test_a_single_class_of_an_incremental_model_has_no_values():
    model = IncrementalSVC(gamma=0.3).partial_fit(X[:5], TWO[:5], classes=["no", "yes"])
    found = shapley(model, ROWS, BACKGROUND)
    np.testing.assert_allclose(found.predicted, model.decision_function(ROWS), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
def test_sparse_and_float32_models_are_explained(kernel):
    Z = np.where(np.abs(X) > 0.5, X, 0.0)
    dense = shapley(SVC(kernel=kernel, gamma=0.3).fit(Z, TWO), Z[:4], Z[4:9])
    model = SVC(kernel=kernel, gamma=0.3).fit(sp.csr_array(Z), TWO)
    for rows, background in ((sp.csr_array(Z[:4]), sp.csr_array(Z[4:9])), (sp.csr_matrix(Z[:4]), Z[4:9])):
        found = shapley(model, rows, background)
        np.testing.assert_allclose(found.values, dense.values, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(found.data, Z[:4])
    single = SVC(kernel=kernel, gamma=0.3).fit(Z.astype(np.float32), TWO)
    found = shapley(single, Z[:4].astype(np.float32), Z[4:9].astype(np.float32))
    assert found.values.dtype == np.float64
    np.testing.assert_allclose(found.predicted, single.decision_function(Z[:4].astype(np.float32)), atol=1e-5)


def test_a_pipeline_is_explained_in_its_last_features_and_shown_in_those_of_the_input():
    frame = pd.DataFrame(100 + 10 * X, columns=list("abcd"))
    model = make_pipeline(StandardScaler(), SVC()).fit(frame, TWO)
    found = shapley(model, frame[10:12], frame[:3])
    assert found.feature_names == tuple("abcd")
    np.testing.assert_array_equal(found.data, frame[10:12])
    np.testing.assert_allclose(found.predicted, model.decision_function(frame[10:12]), rtol=0, atol=1e-12)
    inner = shapley(model[-1], model[:-1].transform(frame[10:12]), model[:-1].transform(frame[:3]))
    np.testing.assert_array_equal(inner.values, found.values)
    assert inner.feature_names == tuple(f"feature {k}" for k in range(4))
    plain = make_pipeline(StandardScaler(), SVC()).fit(frame.to_numpy(), TWO)
    assert shapley(plain, ROWS, BACKGROUND).feature_names == inner.feature_names


def test_features_that_steps_make_have_their_names_and_values():
    model = make_pipeline(PCA(2), SVC()).fit(X, TWO)
    found = shapley(model, ROWS, BACKGROUND)
    assert found.feature_names == ("pca0", "pca1")
    np.testing.assert_allclose(found.data, model[0].transform(ROWS))
    unnamed = make_pipeline(FunctionTransformer(lambda Z: Z[:, :2]), SVC()).fit(X, TWO)
    found = shapley(unnamed, ROWS, BACKGROUND)
    assert found.feature_names == ("feature 0", "feature 1")
    np.testing.assert_array_equal(found.data, ROWS[:, :2])


def test_searches_and_tuners_are_explained_by_their_best_estimator():
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [1, 10]}, cv=2).fit(X, TWO)
    found = shapley(search, ROWS, BACKGROUND)
    np.testing.assert_array_equal(found.values, shapley(search.best_estimator_, ROWS, BACKGROUND).values)
    tuned = SVCCV(random_state=0).fit(X, TWO)
    found = shapley(tuned, ROWS, BACKGROUND)
    np.testing.assert_allclose(found.predicted, tuned.decision_function(ROWS), rtol=0, atol=1e-9)


def test_data_far_from_the_origin_lose_no_digits():
    model = SVC(gamma=0.3).fit(X + 1e6, TWO)
    near = SVC(gamma=0.3).fit(X, TWO)
    found, expected = (
        shapley(m, ROWS + shift, BACKGROUND + shift) for m, shift in ((model, 1e6), (near, 0.0))
    )
    np.testing.assert_allclose(found.predicted, model.decision_function(ROWS + 1e6), rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=1e-2)  # two fits with tol=1e-3


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (SVC(kernel="poly").fit(X, TWO), ValueError, "'laplacian' or 'linear', got 'poly'.*KernelExplainer"),
        (SVC(kernel="sigmoid").fit(X, TWO), ValueError, "got 'sigmoid'"),
        (SVC(kernel="precomputed").fit(X @ X.T, TWO), ValueError, "got 'precomputed'"),
        (SVC(kernel=lambda a, b: a @ b.T).fit(X, TWO), ValueError, "got <function"),
        (SVC(kernel=rbf(1) * linear()).fit(X, TWO), ValueError, "products of rbf with rbf"),
        (SVC(kernel=rbf(1) + poly(2)).fit(X, TWO), ValueError, "products of rbf with rbf"),
        (SVC(kernel=rbf(1) * laplacian(1)).fit(X, TWO), ValueError, "products of rbf with rbf"),
        (LogisticRegression().fit(X, TWO), TypeError, "support vector machine.*got LogisticRegression"),
        (CellSVC().fit(X, TWO), TypeError, "got CellSVC"),
        (SVC(), NotFittedError, "not fitted"),
        (GridSearchCV(SVC(), {"C": [1]}, refit=False, cv=2).fit(X, TWO), NotFittedError, "refit=True"),
    ],
)  # fmt: skip
def test_what_cannot_be_explained_is_refused_with_what_can(model, error, message):
    with pytest.raises(error, match=message):
        shapley(model, ROWS, BACKGROUND)


def test_wrong_rows_and_distributions_are_refused():
    model = SVC().fit(X, TWO)
    with pytest.raises(ValueError, match="must be 'joint' or 'independent', got 'marginal'"):
        shapley(model, ROWS, BACKGROUND, distribution="marginal")
    for rows, background in ((ROWS[:, :3], BACKGROUND), (ROWS, BACKGROUND[:, :3])):
        with pytest.raises(ValueError, match="3 features, but SVC is expecting 4"):
            shapley(model, rows, background)
    with pytest.raises(ValueError, match="NaN"):
        shapley(model, ROWS, np.full((1, 4), np.nan))
    with pytest.raises(ValueError, match="minimum of 1"):
        shapley(model, ROWS, BACKGROUND[:0])


def test_without_shap_the_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match=r"to_shap needs shap.*pip install shap"):
        shapley(SVC().fit(X, TWO), ROWS, BACKGROUND).to_shap()


def test_an_explanation_of_shap_has_the_same_values(monkeypatch):
    """Against a class with the arguments of `shap.Explanation`, so that it runs without the package."""

    class Explanation:
        def __init__(self, values, base_values=None, data=None, *, feature_names=None, output_names=None):
            self.__dict__.update(locals())

    monkeypatch.setitem(sys.modules, "shap", type(sys)("shap"))
    monkeypatch.setattr(sys.modules["shap"], "Explanation", Explanation, raising=False)
    for y in (TWO, THREE):
        found = shapley(SVC().fit(X, y), ROWS, BACKGROUND)
        given = found.to_shap()
        assert given.values is found.values and given.data is found.data
        assert given.base_values.shape == (2, *found.values.shape[2:])
        assert (given.base_values == found.base_values).all()
        assert given.feature_names == [f"feature {k}" for k in range(4)]
        assert given.output_names == ("yes" if y is TWO else ["0 against 1", "0 against 2", "1 against 2"])


@pytest.mark.parametrize("y", [TWO, THREE])
def test_values_agree_with_the_exact_explainer_of_shap(y):
    shap = pytest.importorskip("shap")
    model = SVC(decision_function_shape="ovo").fit(X, y)
    found = shapley(model, ROWS, X[:9])
    masker = shap.maskers.Independent(X[:9], max_samples=9)
    expected = shap.explainers.Exact(model.decision_function, masker)(ROWS)
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=1e-9)
    own = found.to_shap()
    assert isinstance(own, shap.Explanation)
    np.testing.assert_allclose(own.base_values, expected.base_values, rtol=0, atol=1e-9)
    assert own[0].values.shape == found.values[0].shape


def test_values_compare_by_identity_and_know_their_predictions():
    one = ShapleyValues(np.ones((2, 3)), np.array(0.5), np.zeros((2, 3)), ("a", "b", "c"), ("prediction",))
    np.testing.assert_array_equal(one.predicted, [3.5, 3.5])
    assert one == one and one != ShapleyValues(one.values, one.base_values, one.data, *[("a",)] * 2)
