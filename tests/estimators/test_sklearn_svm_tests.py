"""scikit-learn's own tests of its SVMs, run against the classes of the same names here."""

import importlib.util
import types
from pathlib import Path
from unittest import mock

import pytest
import sklearn.svm
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris

import maxmargin

theirs = pytest.importorskip("sklearn.svm.tests.test_svm")
OURS = {name: getattr(maxmargin, name) for name in ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")}
# Behaviour that differs on purpose.
DIFFERENT = {
    "test_svr_errors": "the kernel that returns one value for two rows is refused by fit, not by predict",
    "test_tweak_params": "changes private arrays of LIBSVM's model",
    "test_svc_raises_error_internal_representation": "changes private arrays of LIBSVM's model",
    "test_libsvm_convergence_warnings": "two iterations are enough here",
    "test_custom_kernel_not_array_input": "its kernel is right for two equal data sets only",
    "test_svc_clone_with_callable_kernel": "coefficients equal to 1e-6 with tol 1e-3, by different engines; "
    "test_a_callable_kernel_agrees_with_the_built_in_one has a smaller tol",
    "test_negative_weight_equal_coeffs": "coefficients of NuSVR equal to 1e-3, with tol 1e-3 and another gap",
}
# The tests of an older scikit-learn expect another message for weights that are all zero.
OLDER = "negative dimensions are not allowed" in Path(theirs.__file__).read_text(encoding="utf-8")
if OLDER:
    DIFFERENT["test_negative_sample_weights_mask_all_samples"] = "the message of later versions"


def _with_our_classes():
    """Their module, loaded once more while our classes stand in the place of theirs."""
    spec = importlib.util.spec_from_file_location("sklearn_svm_tests", theirs.__file__)
    module = importlib.util.module_from_spec(spec)
    with mock.patch.multiple(sklearn.svm, **OURS):
        spec.loader.exec_module(module)
    module.svm = types.SimpleNamespace(**(vars(sklearn.svm) | OURS))
    return module


@pytest.fixture
def global_random_seed():
    return 42


_TESTS = {name: test for name, test in vars(_with_our_classes()).items() if name.startswith("test_")}
globals().update({name: test for name, test in _TESTS.items() if name not in DIFFERENT})


@pytest.mark.skipif(OLDER, reason="other messages in an older scikit-learn")
def test_error_messages_are_among_the_tests():
    assert {
        "test_negative_sample_weights_mask_all_samples",
        "test_negative_weights_svc_leave_just_one_label",
        "test_sparse_precomputed",
        "test_unfitted",
    } <= set(_TESTS) - set(DIFFERENT)


@pytest.mark.parametrize("sample_weight", [[1, -0.5, 1, 1, 1, 1], [1, 1, 1, 0, 1, 1]])
@pytest.mark.parametrize("name", ["SVC", "NuSVC", "NuSVR"])
def test_equal_coefficients_despite_left_out_rows(name, sample_weight):
    X, y = [[-2, -1], [-1, -1], [-1, -2], [1, 1], [1, 2], [2, 1]], [1, 1, 1, 2, 2, 2]
    model = OURS[name](kernel="linear", tol=1e-6).fit(X, y, sample_weight=sample_weight)
    first, second = abs(model.coef_).ravel()
    assert first == pytest.approx(second, rel=1e-5)


def test_a_callable_kernel_agrees_with_the_built_in_one():
    X, y = load_iris(return_X_y=True)
    own = clone(OURS["SVC"](kernel=lambda A, B: A @ B.T, tol=1e-9)).fit(X, y)
    built_in = OURS["SVC"](kernel="linear", tol=1e-9).fit(X, y)
    assert_allclose(own.dual_coef_, built_in.dual_coef_, atol=1e-6)
    assert_allclose(own.intercept_, built_in.intercept_, atol=1e-6)
    assert_array_equal(own.predict(X), built_in.predict(X))
