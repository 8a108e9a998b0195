"""Leave-one-out values from one training, against n trainings."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, SVR, IncrementalSVC, IncrementalSVR, NuSVC
from maxmargin.model_selection import leave_one_out

X, Y = (part[::3] for part in load_iris(return_X_y=True))
T = X[:, 3] + 0.1 * np.sin(np.arange(len(X)))
TIGHT = {"gamma": 0.3, "tol": 1e-9}
SVCS = [
    SVC(**TIGHT),
    SVC(loss="squared_hinge", **TIGHT),
    SVC(C=50.0, kernel="linear", class_weight={0: 2.0}, **TIGHT),
    SVC(kernel="poly", degree=2, decision_function_shape="ovo", **TIGHT),
]
SVRS = [SVR(**TIGHT), SVR(C=50.0, loss="squared_epsilon_insensitive", **TIGHT), SVR(epsilon=0.0, **TIGHT)]


def slowly(estimator, X, y, method):
    return cross_val_predict(estimator, X, y, cv=LeaveOneOut(), method=method)


@pytest.mark.parametrize("estimator", SVCS, ids=str)
@pytest.mark.parametrize("labels", [Y, np.array(["b", "c", "a"])[Y], Y == 1], ids=["three", "names", "two"])
def test_classifiers_have_the_values_of_n_trainings(estimator, labels):
    if labels.dtype.kind != "i":  # cross_val_predict gives the estimator numbers instead of these labels
        estimator = clone(estimator).set_params(class_weight=None)
    for method in ("predict", "decision_function"):
        found = leave_one_out(estimator, X, labels, method=method)
        expected = slowly(estimator, X, labels, method)
        if method == "predict":
            np.testing.assert_array_equal(found, expected)
        else:
            np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("estimator", SVRS, ids=str)
def test_regressions_have_the_values_of_n_trainings(estimator):
    D = X[:, :3]
    np.testing.assert_allclose(leave_one_out(estimator, D, T), slowly(estimator, D, T, "predict"), atol=1e-6)


def test_the_values_are_those_of_scikit_learns_estimators():
    theirs = slowly(sklearn.svm.SVC(**TIGHT), X, Y, "decision_function")
    ours = leave_one_out(SVC(gamma=0.3), X, Y, method="decision_function")
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    theirs = slowly(sklearn.svm.SVR(**TIGHT), X[:, :3], T, "predict")
    np.testing.assert_allclose(leave_one_out(SVR(gamma=0.3), X[:, :3], T), theirs, atol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csr_array], ids=["dense", "matrix", "array"])
def test_a_precomputed_kernel_is_cut_by_rows_and_columns(form):
    K = X @ X.T
    for estimator, y in ((SVC(kernel="precomputed", tol=1e-9), Y), (SVR(kernel="precomputed", tol=1e-9), T)):
        expected = slowly(estimator, K, y, "predict")
        np.testing.assert_allclose(leave_one_out(estimator, form(K), y), expected, atol=1e-6)
    with pytest.raises(ValueError, match="is square"):
        leave_one_out(SVC(kernel="precomputed"), K[:, :7], Y)


@pytest.mark.parametrize(
    "convert",
    [lambda X: X.astype(np.float32), sp.csr_matrix, pd.DataFrame],
    ids=["float32", "sparse", "pandas"],
)
def test_rows_may_be_in_any_form(convert):
    expected = leave_one_out(SVC(gamma=0.3), X.astype(np.float32), Y, method="decision_function")
    found = leave_one_out(SVC(gamma=0.3), convert(X), Y, method="decision_function")
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_row_without_weight_has_the_value_of_the_model():
    rows, weight = np.arange(len(Y)), np.where(np.arange(len(Y)) % 4 == 0, 0.0, 1.5)
    found = leave_one_out(SVC(**TIGHT), X, Y, sample_weight=weight, method="decision_function")
    for k in range(6):
        model = SVC(**TIGHT).fit(X[rows != k], Y[rows != k], weight[rows != k])
        np.testing.assert_allclose(found[k], model.decision_function(X[[k]])[0], atol=1e-6)


def test_balanced_weights_and_gamma_are_those_of_all_rows():
    found = leave_one_out(SVC(class_weight="balanced"), X[:40], Y[:40], method="decision_function")
    full = SVC(class_weight="balanced").fit(X[:40], Y[:40])
    fixed = SVC(
        gamma=full.get_model().kernel.gamma, class_weight=dict(enumerate(full.class_weight_)), tol=1e-9
    )
    np.testing.assert_allclose(found, slowly(fixed, X[:40], Y[:40], "decision_function"), atol=1e-6)


def test_a_fitted_estimator_keeps_its_gamma_and_is_not_changed():
    fitted = SVC().fit(2.0 * X, Y)
    before = fitted.dual_coef_
    gamma = fitted.get_model().kernel.gamma
    found = leave_one_out(fitted, X, Y, method="decision_function")
    np.testing.assert_array_equal(found, leave_one_out(SVC(gamma=gamma), X, Y, method="decision_function"))
    assert fitted.dual_coef_ is before


def test_incremental_estimators_give_their_own_values():
    model = IncrementalSVC(gamma=0.3).fit(X[:10], Y[:10] + np.arange(10) % 2)
    values = leave_one_out(model, X, Y, method="decision_function")
    np.testing.assert_allclose(values, IncrementalSVC(gamma=0.3).fit(X, Y).leave_one_out(), atol=1e-9)
    assert model.n_held_ == 10
    found = leave_one_out(IncrementalSVR(gamma=0.3), X[:, :3], T)
    np.testing.assert_allclose(found, IncrementalSVR(gamma=0.3).fit(X[:, :3], T).leave_one_out(), atol=1e-9)


def test_what_cannot_be_left_out_exactly_is_refused_with_an_alternative():
    with pytest.raises(TypeError, match=r"NuSVC of maxmargin.*cross_val_predict"):
        leave_one_out(NuSVC(), X, Y)
    with pytest.raises(TypeError, match="SVC of sklearn"):
        leave_one_out(sklearn.svm.SVC(), X, Y)
    with pytest.raises(TypeError, match="transform X first"):
        leave_one_out(make_pipeline(StandardScaler(), SVC()), X, Y)
    with pytest.raises(ValueError, match="C is infinite"):
        leave_one_out(SVC(C=np.inf), X, Y)
    with pytest.raises(ValueError, match="bias='penalised'"):
        leave_one_out(SVC(bias="penalised"), X, Y)
    with pytest.raises(ValueError, match="method='decision_function' is not possible for SVR"):
        leave_one_out(SVR(), X, T, method="decision_function")
    with pytest.raises(ValueError, match="'C' parameter of SVC must be a float"):
        leave_one_out(SVC(C="1"), X, Y)
