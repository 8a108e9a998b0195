import gc
import pickle
import re
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KernelCenterer, StandardScaler

from maxmargin import SVC
from maxmargin.kernels import Kernel
from maxmargin.model_selection.folds import Folds, kind_of
from maxmargin.model_selection.refusal import Refused

X = np.random.default_rng(0).normal(size=(12, 3))
Y = np.arange(12) % 2
SPLIT = (np.arange(8), np.arange(8, 12))
TWICE = (np.array([0, 0, 1, 5, 7, 7]), np.array([2, 3]))


def test_folds_without_preprocessing_share_one_matrix():
    folds = Folds(1e9)
    first = folds.get(X, Y, 0, SPLIT, None, np.float32, "named")
    other = folds.get(X, Y, 1, SPLIT[::-1], None, np.float32, "named")
    assert other.kernels is first.kernels is not None
    assert Folds(0.0).get(X, Y, 0, SPLIT, None, np.float32, "named").kernels is None


def test_a_matrix_is_not_shared_with_who_needs_more_digits_or_reads_the_data_otherwise():
    folds = Folds(1e9)
    rough = folds.get(X, Y, 0, SPLIT, None, np.float32, "named")
    fine = folds.get(X, Y, 0, SPLIT, None, np.float64, "named")
    assert (rough.kernels.dtype, fine.kernels.dtype) == (np.float32, np.float64)
    frame = X.tolist()
    assert folds.get(frame, Y, 0, SPLIT, None, np.float64, "function").X is frame


@pytest.mark.parametrize("memory", [0.0, 1e9])
@pytest.mark.parametrize("split", [SPLIT, TWICE])
def test_a_given_matrix_is_split_by_rows_and_columns(memory, split):
    K = X @ X.T
    fold = Folds(memory).get(K, Y, 0, split, None, np.float64, "given")
    train, test = fold.rows(pairwise=True)
    np.testing.assert_array_equal(train, K[np.ix_(split[0], split[0])])
    np.testing.assert_array_equal(test, K[np.ix_(split[1], split[0])])


def fails(X):
    raise KeyError("no such column")


@pytest.mark.parametrize(
    ("data", "before", "kind", "reason"),
    [
        (X @ X.T, KernelCenterer(), "given", "a pipeline changes a precomputed kernel matrix"),
        (X, None, "given", r"has the shape \(12, 3\)"),
        (sp.csr_matrix(X @ X.T), None, "given", "the data cannot be used .*[Ss]parse"),
        (np.full((12, 2), "a"), None, "named", "the data cannot be used .*could not convert"),
        (np.where(X > 1, np.nan, X), None, "named", "the data cannot be used .*NaN"),
        (X, make_pipeline(FunctionTransformer(fails)), "named", "failed .*KeyError: 'no such column'"),
    ],
)
def test_data_that_cannot_be_shared_are_refused_with_a_reason(data, before, kind, reason):
    refused = Folds(1e9).get(data, Y, 0, SPLIT, before, np.float64, kind)
    assert isinstance(refused, Refused)
    assert re.search(reason, refused.reason)


def test_a_kernel_matrix_that_cannot_be_used_is_refused_with_a_reason():
    fold = Folds(1e9).get(1e30 * X, Y, 0, SPLIT, None, np.float32, "named")
    with np.errstate(all="ignore"):
        assert "not finite in float32" in fold.matrix(Kernel("linear")).reason
    fold = Folds(1e9).get(X, Y, 0, SPLIT, None, np.float32, "function")
    assert "KeyError" in fold.matrix(Kernel(lambda A, B: fails(A))).reason
    assert "3 rows for 12" in fold.matrix(Kernel(lambda A, B: np.eye(3))).reason
    np.testing.assert_allclose(fold.matrix(Kernel(lambda A, B: A @ B.T)), X @ X.T, rtol=1e-6, atol=1e-6)


def test_a_variance_that_overflows_refuses_the_kernel():
    fold = Folds(1e9).get(1e200 * X, Y, 0, SPLIT, None, np.float64, "named")
    assert "variance of X" in fold.kernel_of(SVC()).reason
    assert fold.kernel_of(SVC(gamma=2.0)).gamma == 2.0


def test_jobs_of_a_process_share_the_folds_that_it_receives_and_none_are_sent_to_it():
    folds = Folds(1e9)
    folds.get(np.zeros((1000, 3)), None, 0, SPLIT, None, np.float32, "named")
    sent = pickle.dumps(folds)
    assert len(sent) < 500
    received = pickle.loads(sent)
    assert received is not folds and pickle.loads(sent) is received
    assert received.memory == folds.memory
    assert pickle.loads(pickle.dumps(Folds(1e9))) is not received


def test_received_folds_are_free_when_the_last_job_that_holds_them_ends():
    sent = pickle.dumps(Folds(1e9))
    received = pickle.loads(sent)
    seen = weakref.ref(received)
    del received
    gc.collect()
    assert seen() is None


def test_released_folds_are_made_again():
    folds = Folds(1e9)
    first = folds.get(X, Y, 0, SPLIT, None, np.float32, "named")
    folds.release()
    assert folds.get(X, Y, 0, SPLIT, None, np.float32, "named").kernels is not first.kernels


def test_kernels_are_told_apart_by_how_they_read_the_data():
    kernels = ("rbf", "precomputed", np.dot)
    assert [kind_of(SVC(kernel=kernel)) for kernel in kernels] == ["named", "given", "function"]


def test_rows_are_kept_until_the_last_job_that_was_announced_has_them():
    folds, before = Folds(1e9, keep=1), StandardScaler()
    splits = [SPLIT, SPLIT[::-1]]
    folds.expect([((0,), 0), ((1,), 0), ((1,), 0), ((0,), 0)])

    def rows(k):
        return folds.get(X, Y, k, splits[k], before, np.float32, "named").X

    first, second = rows(0), rows(1)
    assert rows(1) is second and rows(0) is first
    rows(1)
    assert rows(0) is not first
